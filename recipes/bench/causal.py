"""Time `--lm NAME=hf:DIR` against scripts that score the same candidates with transformers.

    python recipes/bench/causal.py --lm DIR --kbest LIST [--sentences 8] [--top 100] [--prompt 500]
    python recipes/bench/causal.py --lm DIR --kbest LIST --rating [--sentences 2] [--top 10]

The scores are log p of every candidate after the first candidates of all earlier sentences of the
document (the whole list is one document); with --prompt, after that many tokens, as of a prompt,
which are made of other lists. With --rating what is scored are the 101
answers to the question of a judge for a rating of each candidate, the first one of its list as
source. *loop*: one forward pass for each candidate with its whole context, which is what one would
write first. *padded*: batches of candidates, sorted by
length and padded, each with its whole context; logits of the candidates' tokens alone. *cached*:
batches of padded candidates after the key–value pairs of the context, which are computed once a
sentence and shared: what a good engineer writes in an hour. All in one process with the same
threads. *float64*: the same model in float64, which is exact here; how far each way in float32 is
from it, and from ours, is printed. It fails where ours is farther from it than 1e-4 nats (long
sentences: 1e-6 of their score, if that is more).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lm.backend import Backend
from lm.causal import (
    CausalContext,
    CausalEngine,
    CausalModel,
    cache_argument,
    open_causal_model,
    trees_of,
)
from lm.trie import Candidates
from rerank.scorers.judge_forms import FORMS, TEMPLATE
from rerank.scorers.judge_models import answers_in_tokens, question_in_tokens
from rerank.scorers.judge_options import VARIABLES
from rerank.scorers.templates import JinjaTemplate

Task = tuple[tuple[int, ...], list[list[int]]]  # context and candidates of a sentence, in ids
Scores = list[NDArray[np.float64]]  # log-probabilities of the candidates, an array each task
BATCH = 25  # candidates of a padded batch


def loop(model: Any, tasks: Sequence[Task]) -> Scores:
    """A forward pass for each candidate; `log_softmax` of many words loses digits in float32."""
    result = []
    for context, candidates in tasks:
        own = []
        for candidate in candidates:
            ids = torch.tensor([[*context, *candidate]])
            logits = model(input_ids=ids).logits[0, len(context) - 1 : -1]
            log_probs = logits.double().log_softmax(-1)
            own.append(float(log_probs.gather(1, ids[0, len(context) :, None]).sum()))
        result.append(np.array(own))
    return result


def padded(model: Any, tasks: Sequence[Task]) -> Scores:
    """Batches of candidates of about the same length, each with its context, padded at the end."""
    result = []
    for context, candidates in tasks:
        own, order = np.zeros(len(candidates)), np.argsort([len(c) for c in candidates])
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH].tolist()
            longest = max(len(candidates[r]) for r in rows)
            ids = torch.zeros(len(rows), len(context) + longest, dtype=torch.long)
            for i, r in enumerate(rows):
                ids[i, : len(context) + len(candidates[r])] = torch.tensor(
                    [*context, *candidates[r]]
                )
            hidden = model.base_model(input_ids=ids[:, :-1]).last_hidden_state
            own[rows] = _sums(
                model,
                hidden[:, len(context) - 1 :],
                ids[:, len(context) :],
                [len(candidates[r]) for r in rows],
            )
        result.append(own)
    return result


def cached(model: Any, tasks: Sequence[Task]) -> Scores:
    """As `padded`, after key–value pairs of the context that all candidates share."""
    from transformers import DynamicCache

    result = []
    for context, candidates in tasks:
        own, order = np.zeros(len(candidates)), np.argsort([len(c) for c in candidates])
        past = DynamicCache()
        if len(context) > 1:
            ids = torch.tensor([context[:-1]], device=model.device)
            model.base_model(
                input_ids=ids, use_cache=True, **{cache_argument(model.base_model): past}
            )
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH].tolist()
            longest = max(len(candidates[r]) for r in rows)
            ids = torch.zeros(len(rows), 1 + longest, dtype=torch.long)
            for i, r in enumerate(rows):
                ids[i, : 1 + len(candidates[r])] = torch.tensor([context[-1], *candidates[r]])
            ids = ids.to(model.device)
            size = (len(rows), -1, -1, -1)
            pairs = DynamicCache([(k.expand(size), v.expand(size)) for k, v, *_ in past])
            named = {cache_argument(model.base_model): pairs}
            hidden = model.base_model(input_ids=ids[:, :-1], use_cache=True, **named)
            lengths = [len(candidates[r]) for r in rows]
            own[rows] = _sums(model, hidden.last_hidden_state, ids[:, 1:], lengths)
        result.append(own)
    return result


def _sums(
    model: Any, hidden: torch.Tensor, ids: torch.Tensor, lengths: Sequence[int]
) -> NDArray[np.float64]:
    """Sums of log-probabilities of the first `lengths` ids of each row."""
    mask = (torch.arange(ids.shape[1]) < torch.tensor(lengths)[:, None]).to(ids.device)
    log_probs = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
    logits = model.get_output_embeddings()(hidden[mask])
    logits = logits if logits.dtype is torch.float64 else logits.float()
    words = ids[mask]
    log_probs[mask] = (logits.gather(1, words[:, None])[:, 0] - logits.logsumexp(1)).double()
    sums: NDArray[np.float64] = log_probs.sum(1).cpu().numpy()
    return sums


def ours(engine: CausalEngine, tasks: Sequence[Task], contexts: Sequence[CausalContext]) -> Scores:
    """Our engine, from ids on, without anything stored before."""
    engine.forget()
    requests = [
        (context, trees_of(Candidates.of([candidates])))
        for context, (_, candidates) in zip(contexts, tasks, strict=True)
    ]
    return engine.scores(requests)


def read(path: Path, sentences: int, top: int) -> list[list[str]]:
    """The first lists of a k-best list in Moses' format, plain or gzipped."""
    import gzip

    lists: dict[str, list[str]] = {}
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            number, text, *_ = line.split(" ||| ")
            if number not in lists and len(lists) == sentences:
                break
            own = lists.setdefault(number, [])
            if len(own) < top:
                own.append(text.strip())
    return list(lists.values())


def timed(work: Callable[[], Scores], runs: int) -> tuple[float, Scores]:
    """Seconds of CPU time of the fastest run, and its scores."""
    seconds = []
    for _ in range(runs):
        began = process_time()
        result = work()
        seconds.append(process_time() - began)
    return min(seconds), result


def tasks_of(
    opened: CausalModel, lists: Sequence[list[str]], prompt: list[str], size: int | None
) -> list[Task]:
    """Contexts and candidates: after `size` tokens of the texts of a prompt, or after the lists."""
    tasks: list[Task] = []
    before: list[list[int]] = []
    filling = [token for one in opened.encode([f"{text}\n" for text in prompt]) for token in one]
    for texts in lists:
        candidates = opened.encode([f"{text}\n" for text in texts])
        room = opened.positions - 1 - max(map(len, candidates))
        while before and sum(map(len, before)) > room:
            del before[0]
        own = [token for one in before for token in one]
        if size is not None:
            own = filling[len(tasks) * size :][:size]
            if len(own) < size or size > room:
                raise SystemExit(f"--prompt {size}: too long for the list, or for the model")
        tasks.append(((opened.begin, *own), candidates))
        before.append(candidates[0])
    return tasks


def tasks_of_rating(opened: CausalModel, lists: Sequence[list[str]]) -> list[Task]:
    """Questions of a judge about the candidates of lists, and the possible answers."""
    template, form = JinjaTemplate(TEMPLATE, VARIABLES), FORMS["rating"]
    answers = answers_in_tokens(opened, form)
    tasks: list[Task] = []
    for source, *texts in lists:
        for text in texts:
            values = {name: "" for name in VARIABLES}
            values |= {"form": form.name, "source": source, "candidate": text}
            question = question_in_tokens(opened, template.rendered(values, "bench"))
            tasks.append((tuple(question), answers))
    return tasks


def farthest(some: Scores, others: Scores) -> float:
    """The largest difference of two scores of a candidate."""
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--lm", type=Path, required=True, help="folder of the model")
    parser.add_argument("--kbest", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=8)
    parser.add_argument("--top", type=int, default=100)
    parser.add_argument("--prompt", type=int, help="tokens before each list")
    parser.add_argument("--rating", action="store_true", help="answers to questions of a judge")
    parser.add_argument("--runs", type=int, default=3, help="of all but the loop, which runs once")
    options = parser.parse_args()
    opened = open_causal_model(options.lm)
    engine = CausalEngine(opened, Backend())
    engine.check()
    prompt = options.prompt
    wanted = options.sentences if prompt is None else options.sentences * (1 + prompt)
    lists = read(options.kbest, wanted, options.top)
    others = [own[0] for own in lists[options.sentences :]]
    tasks = tasks_of(opened, lists[: options.sentences], others, prompt)
    if options.rating:
        tasks = tasks_of_rating(opened, lists)
    contexts = [CausalContext(ids) for ids, _ in tasks]
    hypotheses = sum(len(candidates) for _, candidates in tasks)
    tokens = sum(len(c) for _, candidates in tasks for c in candidates)
    length = np.mean([len(ids) for ids, _ in tasks])
    print(
        f"{len(tasks)} lists, {hypotheses} candidates, {tokens / hypotheses:.1f} tokens each after "
        f"{length:.0f} tokens of context; {torch.get_num_threads()} threads"
    )
    peers = {"padded": padded, "cached": cached}
    with torch.no_grad():
        own_seconds, own = timed(lambda: ours(engine, tasks, contexts), options.runs)
        rows = {"ours": (own_seconds, own), "loop": timed(lambda: loop(opened.model, tasks), 1)}
        for name, peer in peers.items():
            rows[name] = timed(lambda peer=peer: peer(opened.model, tasks), options.runs)  # type: ignore[misc]
        exact = cached(opened.model.double(), tasks)
    print(f"{'':8}{'CPU s':>9}{'per CPU s':>14}{'ours is':>9}{'|Δ| to ours':>13}{'to float64':>12}")
    for name, (seconds, scores) in rows.items():
        rate, ratio = hypotheses / seconds, seconds / own_seconds
        ends = f"{farthest(scores, own):13.1e}{farthest(scores, exact):12.1e}"
        print(f"{name:8}{seconds:9.2f}{rate:14.0f}{ratio:8.1f}×{ends}")
    worst, largest = farthest(own, exact), max(float(np.abs(one).max()) for one in exact)
    if worst > max(1e-4, 1e-6 * largest):
        raise SystemExit(f"ours and float64 differ by {worst:.2g} nats")


if __name__ == "__main__":
    main()
