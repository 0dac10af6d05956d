"""Tiny training runs: a made-up text, what a run computes, and a run that is interrupted."""

from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lm.corpus import Corpus, encode
from lm.training.state import load_training, save_training
from lm.training.trainer import Report, Trainer
from lm.vocabulary import Vocabulary

WORDS = tuple(b"w%d" % i for i in range(21))
VOCABULARY = Vocabulary(WORDS)


def text(documents: int, seed: int) -> Corpus:
    """Documents of 2–5 sentences, each a stretch of the circle of words, begun at its own word."""
    rng = np.random.default_rng(seed)
    lines: list[bytes] = []
    for _ in range(documents):
        begin = int(rng.integers(21))
        for length in rng.integers(1, 6, size=rng.integers(2, 6)):
            lines.append(b" ".join(WORDS[(begin + i) % 21] for i in range(length)))
        lines.append(b"")
    return encode(lines, VOCABULARY)


TRAIN, VALID = text(8, 0), text(3, 1)


def figures(report: Report | None) -> tuple[object, ...] | None:
    """A report without what the clock says."""
    return None if report is None else astuple(replace(report, seconds=0, words_per_second=0))


def tensors(trainer: Trainer) -> dict[str, Tensor]:
    """Everything that a run computes."""
    state = dict(trainer.model.state_dict())
    for index, moments in trainer.optimiser.state_dict()["state"].items():
        state |= {f"{index}.{name}": value for name, value in moments.items()}
    if trainer.average is not None:
        averaged = trainer.average.model.state_dict()
        state |= {f"average.{name}": tensor for name, tensor in averaged.items()}
    return {**state, **{f"contexts.{n}": t for n, t in enumerate(trainer.contexts.tensors)}}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def interrupted(
    make: Callable[[], Trainer],
    folder: Path,
    updates: int,
    damage: Callable[[Trainer], None] = lambda trainer: None,
) -> tuple[Trainer, list[object]]:
    """A run left after so many updates and gone on with by another process's trainer."""
    first = make()
    reports: list[object] = []
    for _, report in zip(range(updates), first.run(), strict=False):
        reports.append(figures(report))
    save_training(folder, first)
    torch.manual_seed(99)  # a fresh process has another global generator
    second = make()
    with torch.no_grad():
        for parameter in second.model.parameters():
            parameter.fill_(0.5)
    load_training(folder, second)
    damage(second)
    reports.extend(figures(report) for report in second.run())
    return second, reports
