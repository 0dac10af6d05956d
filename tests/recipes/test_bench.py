"""The scripts that `recipes/bench` times the engine against score what it scores.

The truth is `obvious.py`: a softmax of all logits, for each candidate in each context.
"""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from support import causal
from support.world import ROOT, World

from lm.model import Config, DocumentLM
from lm.scoring import ScoringEngine

VOCABULARY = 40


def lists(seed: int) -> list[list[list[int]]]:
    """Lists of two documents: shared prefixes, an empty candidate, and one that is there twice."""
    rng = np.random.default_rng(seed)
    result = []
    for k in (9, 12, 5, 7):
        first = rng.integers(3, VOCABULARY, 6).tolist()
        ends = [rng.integers(3, VOCABULARY, n).tolist() for n in rng.integers(0, 4, k)]
        result.append([first[: 6 - len(end)] + end for end in ends] + [[], first, first])
    return result


@pytest.mark.parametrize(
    ("tied", "spread"),
    [(True, 1.0), (False, 30.0), (True, 5000.0)],
    ids=["flat", "peaked", "overflowing"],
)
@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm"])
def test_every_script_has_the_scores_of_the_obvious_one(
    name: str, tied: bool, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of pairs may stop at a number of contexts."""
    monkeypatch.syspath_prepend(ROOT / "recipes" / "bench")
    tasks: Any = import_module("tasks")
    model = DocumentLM.seeded(Config(name, VOCABULARY, 6, 8, tied=tied), 3).eval()
    with torch.no_grad():
        model.head.bias.normal_(generator=torch.Generator().manual_seed(4))
        (model.embedding.weight if tied else model.head.weight()).mul_(spread)
    data = import_module("lists").Set("", lists(5), [True, False, True, False])
    obvious = import_module("obvious").ContextLM.of(model)
    task = tasks.TASKS[name]
    truth = task.peers["script"].scores(obvious, data, None)
    result = {n: p.scores(p.ready(obvious), data, None) for n, p in task.peers.items()}
    result["ours"] = task.ours(ScoringEngine.of(model), data)
    for scores in result.values():
        for own, expected in zip(scores, truth, strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-4)
    for peer in task.peers.values() if name == "codclm" else ():
        limited = peer.scores(peer.ready(obvious), data, 4)
        for own, expected in zip(limited, truth, strict=True):
            assert len(own) == (min(4, len(expected)) if peer.limited else len(expected))


def test_attention_in_plain_pytorch_scores_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources of different lengths, one of them empty."""
    monkeypatch.syspath_prepend(ROOT / "recipes" / "bench")
    tasks: Any = import_module("tasks")
    model = tasks.seeded(Config("attention", VOCABULARY, 6, 6, tied=True, source_words=9))
    with torch.no_grad():  # of the source, too
        for parameter in model.context.parameters():
            parameter.mul_(9)
    sources = [[3, 4, 5, 8], [], [7], [6, 6, 3]]
    data = import_module("lists").Set("", lists(5), [True, False, True, False], sources)
    task = tasks.TASKS["attention"]
    result = task.ours(ScoringEngine.of(model), data)
    for own, expected in zip(
        result, task.peers["good"].scores(task.script(model), data, None), strict=True
    ):
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-4)
    data.sources.reverse()
    for own, other in zip(result, task.ours(ScoringEngine.of(model), data), strict=True):
        assert np.abs(own - other).max() > 0.01


def test_causal_models_are_compared_with_float64(world: World, script: Any) -> None:
    causal.save(world.folder / "gpt", positions=128)
    lists = [["the lamp is lit", "the lamp", "it gives"], ["she is old", "no sea", "he reads"]]
    world.write("l", [f"{t} ||| {x} ||| A= 0 ||| 0" for t, own in enumerate(lists) for x in own])
    result = script("bench/causal.py", "--lm", "gpt", "--kbest", "l", "--sentences", 2, "--runs", 1)
    rows = {line.split()[0]: line.split()[-2:] for line in result.out.splitlines()[2:]}
    assert rows.keys() == {"ours", "loop", "padded", "cached"}
    assert float(rows["ours"][0]) == 0
    assert all(0 < float(exact) < 1e-4 for _, exact in rows.values())
