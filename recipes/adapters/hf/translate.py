"""Train a small Marian model with its tokenizer on a bitext: a folder for `seq2seq:DIR`.

    python recipes/adapters/hf/translate.py SOURCE TARGET --out models/mt --seconds 600

SOURCE and TARGET have a sentence a line; pairs with an empty side are left out. It needs the extra
`hf`. Both sides share a byte-level BPE, so that no word is unknown.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from pathlib import Path
from typing import Any

import torch
from train import BEGIN, tokenizer_of

PAD = "<pad>"


def pairs_of(source: Path, target: Path) -> list[tuple[str, str]]:
    """The pairs of sentences of a bitext."""
    texts = [path.read_text(encoding="utf-8").split("\n") for path in (source, target)]
    return [(a, b) for a, b in zip(*texts, strict=True) if a.strip() and b.strip()]


def words_of(pairs: list[tuple[str, str]], vocabulary: int) -> Any:
    """A tokenizer of both sides whose texts end in a token."""
    from tokenizers.processors import TemplateProcessing

    words = tokenizer_of([text for pair in pairs for text in pair], vocabulary)
    words.add_special_tokens({"pad_token": PAD})
    end = (BEGIN, words.eos_token_id)
    words.backend_tokenizer.post_processor = TemplateProcessing(f"$A {BEGIN}", special_tokens=[end])
    return words


def model_of(words: Any, options: argparse.Namespace) -> Any:
    """A new model of these sizes."""
    from transformers import MarianConfig, MarianMTModel

    sides = ("encoder", "decoder")
    return MarianMTModel(
        MarianConfig(
            vocab_size=len(words),
            decoder_vocab_size=len(words),
            d_model=options.width,
            max_position_embeddings=options.positions,
            scale_embedding=True,
            pad_token_id=words.pad_token_id,
            eos_token_id=words.eos_token_id,
            forced_eos_token_id=words.eos_token_id,
            decoder_start_token_id=words.pad_token_id,
            **{f"{side}_layers": options.layers for side in sides},
            **{f"{side}_attention_heads": options.heads for side in sides},
            **{f"{side}_ffn_dim": 4 * options.width for side in sides},
        )
    )


def train(model: Any, words: Any, pairs: list[tuple[str, str]], options: Any) -> None:
    """AdamW with a cosine schedule for so many seconds of CPU time; batches of equal lengths."""
    shuffled = random.Random(options.seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01)
    ordered = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0])))
    batches = [ordered[a : a + options.batch] for a in range(0, len(ordered), options.batch)]
    model.train()
    began, update, total = time.process_time(), 0, 0.0
    while (share := (time.process_time() - began) / options.seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min(1, (update + 1) / 100) * math.cos(share * math.pi / 2)
        sources, targets = zip(*shuffled.choice(batches), strict=True)
        cut = {"padding": True, "return_tensors": "pt", "truncation": True, "max_length": 64}
        batch, labels = words(list(sources), **cut), words(list(targets), **cut)["input_ids"]
        labels = labels.masked_fill(labels == words.pad_token_id, -100)
        loss = model(batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        update, total = update + 1, total + loss.item()
        if update % 100 == 0:
            print(f"update {update}: {total / 100:.3f} nats a token", flush=True)
            total = 0.0
    model.eval()


def main() -> None:
    """Train and save a model."""
    from transformers.utils import logging

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--positions", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=4000, help="tokens, at most")
    parser.add_argument("--batch", type=int, default=32, help="pairs of an update")
    parser.add_argument("--seconds", type=float, default=600, help="of CPU time")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable_progress_bar()
    torch.manual_seed(options.seed)
    pairs = pairs_of(options.source, options.target)
    words = words_of(pairs, options.vocabulary)
    model = model_of(words, options)
    print(f"{model.num_parameters():,} weights, {len(words):,} tokens, {len(pairs):,} pairs")
    train(model, words, pairs, options)
    model.save_pretrained(options.out)
    words.save_pretrained(options.out)
    print(f"{options.out}: written; use it with --model seq2seq:{options.out}")


if __name__ == "__main__":
    main()
