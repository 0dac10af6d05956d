"""The maximum-entropy classifier of `recipes/coherence`."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from support.world import ROOT

RECIPE = ROOT / "recipes" / "coherence"


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(RECIPE)
    return import_module("maximum_entropy")


def text(path: Path, seed: int, documents: int, *, ordered: bool) -> Path:
    """Documents whose sentences name their position, or chance."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(documents):
        for i in range(5):
            place = i if ordered else rng.integers(5)
            lines.append(f"place{place} {' '.join(rng.choice(list('abcdefgh'), 3))}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_training_ends_where_the_gradient_is_zero(recipe: Any) -> None:
    """At the minimum, penalty · weights = Σ (adjacent − p) · features."""
    rng = np.random.default_rng(1)
    words = [np.unique(rng.integers(6, size=3)) for _ in range(20)]
    features = recipe.features_of(words, [(i, j) for i in range(20) for j in range(20)], 6)
    adjacent = rng.random(400) < 0.3
    weights = recipe.Classifier.trained(features, adjacent, 5.0).weights
    slope = features.T @ (adjacent - expit(features @ weights))
    np.testing.assert_allclose(slope, 5.0 * weights, atol=0.02)


@pytest.mark.parametrize("ordered", [True, False])
def test_documents_are_told_from_permutations_where_there_is_an_order(
    ordered: bool, tmp_path: Path, script: Any
) -> None:
    train, valid, new = (
        text(tmp_path / str(n), n, size, ordered=ordered) for n, size in enumerate((150, 25, 25))
    )
    options = ["--train", train, "--valid", valid, "--permutations", 5]
    lines = script("coherence/maximum_entropy.py", *options, new).out.splitlines()
    share = float(lines[-1].split("|")[2].split()[0])
    assert share > 95 if ordered else 30 < share < 70
