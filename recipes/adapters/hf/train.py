"""Train a small GPT-2 or Llama with its tokenizer on a text: a folder for `--lm NAME=hf:DIR`.

    python recipes/adapters/hf/train.py TEXT --out models/gpt

TEXT has a sentence a line and a blank line between documents, as for `rerank train-lm`. It needs
the extra `hf`. Documents are strings of sentences that end in newlines, the first one after the
token of the beginning; the model reads stretches of `--positions` tokens of them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

BEGIN = "<|endoftext|>"


def documents(text: Path) -> list[str]:
    """The documents of a text, each with a newline after every sentence."""
    blocks = text.read_text(encoding="utf-8").split("\n\n")
    return [block.strip("\n") + "\n" for block in blocks if block.strip()]


def tokenizer_of(texts: list[str], vocabulary: int) -> Any:
    """A byte-level BPE tokenizer of at most so many tokens, learnt from texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BEGIN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    own.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=own, bos_token=BEGIN, eos_token=BEGIN)


def model_of(kind: str, vocabulary: int, options: argparse.Namespace) -> Any:
    """A new model of an architecture and these sizes."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    if kind == "gpt2":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocabulary,
                n_embd=options.width,
                n_layer=options.layers,
                n_head=options.heads,
                n_positions=options.positions,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=options.width,
            intermediate_size=4 * options.width,
            num_hidden_layers=options.layers,
            num_attention_heads=options.heads,
            num_key_value_heads=options.heads,
            max_position_embeddings=options.positions,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def batches(ids: torch.Tensor, length: int, size: int, seed: int) -> Iterator[torch.Tensor]:
    """Random stretches (size, length) of the text, without end."""
    random = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(ids) - length + 1, (size,), generator=random)
        yield torch.stack([ids[s : s + length] for s in starts.tolist()])


def train(model: Any, ids: torch.Tensor, options: argparse.Namespace) -> None:
    """AdamW with a cosine schedule for so many updates, or so many seconds if these end first."""
    length = min(options.positions, len(ids))
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01)
    model.train()
    began = time.monotonic()
    for update, stretch in enumerate(batches(ids, length, options.batch, options.seed)):
        share = max(update / options.updates, (time.monotonic() - began) / options.seconds)
        if share >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min(1, (update + 1) / 20) * math.cos(share * math.pi / 2)
        stretch = stretch.to(options.device)
        loss = model(input_ids=stretch, labels=stretch).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if update % 50 == 0:
            print(f"update {update}: {loss.item():.3f} nats a token", flush=True)
    model.eval()


def main() -> None:
    """Train and save a model."""
    from transformers.utils import logging

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("text", type=Path, help="a sentence a line, blank lines between documents")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--kind", choices=["gpt2", "llama"], default="gpt2")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--positions", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=8000, help="tokens, at most")
    parser.add_argument("--batch", type=int, default=16, help="stretches of an update")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable_progress_bar()
    torch.manual_seed(options.seed)
    texts = documents(options.text)
    words = tokenizer_of(texts, options.vocabulary)
    ids = torch.tensor([i for text in words(texts)["input_ids"] for i in (0, *text)])
    model = model_of(options.kind, len(words), options).to(options.device)
    size = sum(weight.numel() for weight in model.parameters())
    print(f"{options.kind}: {size:,} weights, {len(words):,} tokens; text of {len(ids):,} tokens")
    train(model, ids, options)
    model.save_pretrained(options.out)
    words.save_pretrained(options.out)
    print(f"{options.out}: written; use it with --lm NAME=hf:{options.out}")


if __name__ == "__main__":
    main()
