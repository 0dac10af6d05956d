"""Small language models trained on a made-up text."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm.training.trainer import Report
from rerank.notices import Notices
from rerank.pipeline import Recipe, train_lm

SMALL = Recipe(
    "codclm",
    embed=12,
    hidden=16,
    epochs=4,
    learning_rate=5e-2,
    streams=4,
    device="cpu",
    precision="float32",
)
QUICK = replace(SMALL, epochs=1)  # 10 updates


def made_up(seed: int, n_documents: int) -> str:
    """Documents of five sentences about one thing each, in a fixed order of words."""
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(n_documents):
        thing = rng.choice(["lamp", "house", "boat", "dog", "king", "moon"])
        pairs = zip(
            rng.choice(["lit", "dark", "old"], 5), rng.choice(["town", "sea"], 5), strict=True
        )
        documents.append("".join(f"the {thing} is {how} in the {place}\n" for how, place in pairs))
    return "\n".join(documents)


def with_texts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, from now on the current one, with 200 sentences to train on and 50 held out."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power cut in these tests
    Path("train.txt").write_text(made_up(1, 40), encoding="utf-8")
    Path("valid.txt").write_text(made_up(2, 10), encoding="utf-8")
    return folder


def trained(recipe: Recipe = QUICK, out: str = "lm", **options: Any) -> Report:
    options = {"train": "train.txt", "valid": "valid.txt", "notices": Notices(), **options}
    last = train_lm(recipe, options.pop("train"), options.pop("valid"), Path(out), **options)
    assert last is not None
    return last
