"""What several test files need: one thread, and tiny language models with chance weights."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings
from support.files import write, write_weights
from support.words import WORDS
from support.world import SOUND, World

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tensors so small that threads wait for each other
# of each law; tests that need more say so
settings.register_profile("suite", max_examples=30, deadline=None)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def no_scores_of_before(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every test begins with an empty score cache of its own."""
    monkeypatch.setenv("RERANK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty folder, from now on the current one, with the files of a sound run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power cut in these tests
    found = World(tmp_path)
    for name, content in SOUND.items():
        found.write(name, content)
    return found


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folder of a tiny model of each published name that reads text alone, over twelve words.

    Its weights are large enough that contexts matter.
    """
    from support.models import OF_TEXT_ALONE, save_models

    folders = {name: tmp_path_factory.mktemp(name) for name in OF_TEXT_ALONE}
    save_models(folders, WORDS, 6, 8, oov_rate=0.25)
    return folders


@pytest.fixture(scope="session")
def saved(model_folders: Mapping[str, Path]) -> "dict[str, SavedModel]":
    """These models, read back."""
    from lm.checkpoint import load_model

    return {name: load_model(folder) for name, folder in model_folders.items()}


@pytest.fixture
def tuning_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists of five documents to tune on, better candidates scoring higher.

    Sentence 3 has no candidates, nor has document v with 8 and 9. `dev.m` and `dev.pairs` are
    scores of another tool, of hypotheses and of pairs; no two hypotheses of a list are alike.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    documents = [*"xxxxx", *"yyy", *"vv", *"zzzz", "w"]
    lines, pairs, numbers, references = list[str](), list[str](), list[float](), list[str]()
    before: tuple[str, int] | None = None
    for t, name in enumerate(documents):
        words = rng.choice(WORDS, int(rng.integers(6, 10))).tolist()
        references.append(" ".join(words))
        n = 0 if t in (3, 8, 9) else int(rng.integers(3, 6))
        for k in range(n):
            faults = int(rng.integers(0, 5))
            wrong = [*words[: len(words) - int(rng.integers(0, 3))], *["or"] * k]
            for place in rng.choice(len(wrong), min(faults, len(wrong)), replace=False).tolist():
                wrong[place] = str(rng.choice(WORDS))
            lm, *tm = (3 * rng.standard_normal(3) - 2 * faults - k).round(2).tolist()
            lines.append(f"{t} ||| {' '.join(wrong)} ||| LM0= {lm} TM0= {tm[0]} {tm[1]} ||| 0")
            numbers.append(round(float(rng.standard_normal()) - faults, 3))
        if n:
            sentence = t - documents.index(name)
            width = before[1] if before and before[0] == name else 0
            for i in range(width) or ["-"]:
                values = rng.standard_normal(n).round(3).tolist()
                pairs += [f"{name}\t{sentence}\t{i}\t{k}\t{v}" for k, v in enumerate(values)]
            before = name, n
    files = {"kbest": lines, "docs": documents, "ref": references, "m": numbers, "pairs": pairs}
    for end, content in files.items():
        write(f"dev.{end}", map(str, content))
    write_weights("start.json", {"LM0": [0.5], "TM0": [0.25, 0.25]})
    return tmp_path
