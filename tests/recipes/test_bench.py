"""The scripts that `recipes/bench` times the engine against score what it scores.

The truth is `obvious.py`: a softmax of all logits, for each candidate in each context.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lm.engine import ScoringEngine
from lm.model import Config, DocumentLM

BENCH = Path(__file__).parents[2] / "recipes" / "bench"
VOCABULARY = 40


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The recipe's table of models and scripts."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module("tasks")


def documents(seed: int) -> tuple[list[list[list[int]]], list[bool]]:
    """Lists of two documents: shared prefixes, an empty candidate, and one that is there twice."""
    rng = np.random.default_rng(seed)
    lists = []
    for k in (9, 12, 5, 7):
        first = rng.integers(3, VOCABULARY, 6).tolist()
        ends = [rng.integers(3, VOCABULARY, n).tolist() for n in rng.integers(0, 4, k)]
        lists.append([first[: 6 - len(end)] + end for end in ends] + [[], first, first])
    return lists, [True, False, True, False]


@pytest.mark.parametrize("spread", [1.0, 30.0, 5000.0], ids=["flat", "peaked", "overflowing"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm"])
def test_every_script_has_the_scores_of_the_obvious_one(
    tasks: Any, name: str, tied: bool, spread: float
) -> None:
    model = DocumentLM.seeded(Config(name, VOCABULARY, 6, 8, tied=tied), 3).eval()
    with torch.no_grad():
        model.head.bias.normal_(generator=torch.Generator().manual_seed(4))
        (model.embedding.weight if tied else model.head.weight()).mul_(spread)
    lists, first = documents(5)
    data = import_module("lists").Set("", lists, first)
    obvious = import_module("obvious").ContextLM.of(model)
    task = tasks.TASKS[name]
    truth = task.peers["script"].scores(obvious, data, None)
    found = {n: p.scores(p.ready(obvious), data, None) for n, p in task.peers.items()}
    found["ours"] = task.ours(ScoringEngine.of(model), data)
    for scores in found.values():
        for own, expected in zip(scores, truth, strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-4)


def test_the_obvious_script_alone_and_the_good_one_stop_at_a_number_of_contexts(
    tasks: Any,
) -> None:
    lists, first = documents(6)
    data = import_module("lists").Set("", lists, first)
    model = DocumentLM.seeded(Config("codclm", VOCABULARY, 6, 8), 3).eval()
    obvious = import_module("obvious").ContextLM.of(model)
    peers = tasks.TASKS["codclm"].peers
    whole = peers["script"].scores(obvious, data, None)
    for peer in peers.values():
        limited = peer.scores(peer.ready(obvious), data, 4)
        for own, expected in zip(limited, whole, strict=True):
            assert len(own) == (min(4, len(expected)) if peer.limited else len(expected))
            np.testing.assert_allclose(own, expected[: len(own)], atol=1e-4)
