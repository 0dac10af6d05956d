"""Time `--lm NAME=seq2seq:DIR` against scripts that score the same candidates with transformers.

    python recipes/bench/seq2seq.py --model DIR --source FILE --kbest LIST [--sentences 8]

*loop*: the model's own loss for each candidate, source included, which is what one would write
first. *padded*: the source encoded once, its candidates in one padded batch. All in one process
with the same threads; it fails where scores differ by more than 1e-4 nats (float32 sums of long
sentences: 1e-6 of them, if that is more).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from causal import Scores, read, timed

from lm.backend import Backend
from lm.seq2seq import SourceAndTarget, TranslationEngine, TranslationModel, open_translation_model

Task = list[SourceAndTarget]  # the candidates of a sentence


def padded(model: TranslationModel, tasks: list[Task]) -> Scores:
    """The source encoded once, the candidates in one batch, padded at the end."""
    from transformers.modeling_outputs import BaseModelOutput

    result, own = [], model.model
    for task in tasks:
        states = own.get_encoder()(input_ids=torch.tensor([task[0].source])).last_hidden_state
        longest = max(len(one.target) for one in task)
        rows = [[*one.target, *[-100] * (longest - len(one.target))] for one in task]
        labels = torch.tensor(rows)
        ids = torch.cat([torch.full_like(labels[:, :1], model.start), labels[:, :-1]], 1)
        outputs = BaseModelOutput(last_hidden_state=states.expand(len(task), -1, -1))
        logits = own(encoder_outputs=outputs, decoder_input_ids=ids.clamp(min=0)).logits
        log_probs = logits.log_softmax(2).gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
        result.append(log_probs.masked_fill(labels < 0, 0).double().sum(1).numpy())
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--src", help="language that it reads, if its tokenizer has tokens for it")
    parser.add_argument("--tgt", help="language that it predicts")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--kbest", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=8)
    parser.add_argument("--top", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3, help="of all but the loop, which runs once")
    options = parser.parse_args()
    model = open_translation_model(options.model, options.src, options.tgt)
    engine, tasks = TranslationEngine(model, Backend()), list[Task]()
    engine.check()
    lines = options.source.read_text(encoding="utf-8").split("\n")
    lists = read(options.kbest, options.sentences, options.top)
    for line, texts in zip(model.encode(lines[: len(lists)]), lists, strict=True):
        targets = map(model.target.around, ([one] for one in model.encode(texts, target=True)))
        tasks.append([SourceAndTarget(model.source.around([line]), target) for target in targets])
    hypotheses, tokens = sum(map(len, tasks)), sum(len(one.target) for own in tasks for one in own)
    print(
        f"{len(tasks)} lists, {hypotheses} candidates, {tokens / hypotheses:.1f} tokens each; "
        f"{torch.get_num_threads()} threads"
    )
    with torch.no_grad():
        own_seconds, own = timed(lambda: engine.scores(tasks), options.runs)
        work = engine.counts
        rows = {
            "ours": (own_seconds, own),
            "loop": timed(
                lambda: [np.array([engine.plain_score(one) for one in task]) for task in tasks], 1
            ),
            "padded": timed(lambda: padded(model, tasks), options.runs),
        }
    print(f"{work.tokens / work.nodes:.2f} tokens scored for each that the decoder read")
    print(f"{'':8}{'CPU s':>9}{'per CPU s':>14}{'ours is':>9}{'max|Δ|':>10}")
    for name, (seconds, scores) in rows.items():
        pairs = list(zip(own, scores, strict=True))
        worst = max(float(np.abs(a - b).max()) for a, b in pairs)
        allowed = max(1e-4, 1e-6 * max(float(np.abs(a).max()) for a, _ in pairs))
        rate, ratio = hypotheses / seconds, seconds / own_seconds
        print(f"{name:8}{seconds:9.2f}{rate:14.0f}{ratio:8.1f}×{worst:10.1e}")
        if worst > allowed:
            raise SystemExit(f"{name} and ours differ by {worst:.2g} nats")


if __name__ == "__main__":
    main()
