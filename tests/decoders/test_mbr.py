"""Minimum Bayes risk: against the expected utility of every document."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.chains import Unary
from decoders.exhaustive import exhaustive
from decoders.lockstep import path_score
from decoders.mbr import mbr
from decoders.posterior import Posterior
from decoders.problem import Path, ScoreError
from decoders.tables import HistoryTable

Array = NDArray[np.float64]


class Gains:
    """What candidate k is worth where candidate l is right: `gains[t][k, l]`."""

    def __init__(self, gains: list[Array]) -> None:
        self.gains = gains

    def expected(self, t: int, marginals: Array) -> Array:
        return np.asarray(self.gains[t] @ marginals)


EXACT_MATCH = Gains([np.eye(3)] * 1000)


def table(order: int | None, lengths: tuple[int, ...], seed: int) -> HistoryTable:
    rng = np.random.default_rng(seed)
    shapes = [lengths[0 if order is None else max(0, t - order) : t + 1] for t in range(3)]
    return HistoryTable([rng.normal(size=shape) for shape in shapes], order)


@pytest.mark.parametrize("order", [0, 1, 2, None])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_no_document_has_a_higher_expected_utility(order: int | None, alpha: float) -> None:
    lengths, differs = (3, 2, 4), False
    every = list(product(*map(range, lengths)))
    for seed in range(10):
        problem, rng = table(order, lengths, seed), np.random.default_rng(seed)
        gains = [rng.random(size=(k, k)) for k in lengths]
        paths = exhaustive(problem, n_best=24)
        weights = [math.exp(alpha * path.score) for path in paths]

        utilities = [
            sum(
                w * sum(g[k, r] for g, k, r in zip(gains, choices, path.choices, strict=True))
                for w, path in zip(weights, paths, strict=True)
            )
            for choices in every
        ]
        best = every[int(np.argmax(utilities))]
        found = mbr(problem, utility=Gains(gains), alpha=alpha, rng=rng, particles=10**6)
        assert found.paths == (Path(best, path_score(problem, best)),)
        assert found.posterior is not None
        assert found.posterior.exact == (order in (0, 1))
        differs = differs or best != paths[0].choices
    assert differs  # it is not the search for the best path in disguise


def test_equal_utilities_go_to_the_first_candidate() -> None:
    found = mbr(
        Unary([np.zeros(3), np.array([-1.0, 0, 0])]),
        utility=EXACT_MATCH,
        alpha=1.0,
        rng=np.random.default_rng(1),
    )
    assert found.paths == (Path((0, 1), 0.0),)


@pytest.mark.parametrize("order", [1, 2])
def test_without_a_possible_path_the_first_candidates_come_out(order: int) -> None:
    problem = HistoryTable([np.zeros(3), np.full((3, 3), -np.inf)], order)
    found = mbr(problem, utility=EXACT_MATCH, alpha=1.0, rng=np.random.default_rng(1))
    assert found.paths == (Path((0, 0), -np.inf),)
    assert isinstance(found.posterior, Posterior)
    assert found.posterior.extinct


def test_an_empty_document_has_the_empty_path() -> None:
    for order in (0, 2):
        found = mbr(
            HistoryTable([], order), utility=EXACT_MATCH, alpha=1.0, rng=np.random.default_rng(1)
        )
        assert found.paths == (Path((), 0.0),)


def test_a_thousand_sentences_of_order_0_take_their_likeliest_candidates() -> None:
    scores = np.random.default_rng(2).normal(size=(1000, 3))
    found = mbr(Unary(list(scores)), utility=EXACT_MATCH, alpha=0.2, rng=np.random.default_rng(1))
    assert found.paths[0].choices == tuple(scores.argmax(axis=1).tolist())


def test_a_missing_utility_a_scale_of_0_and_nan_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="mbr needs a utility"):
        mbr(Unary([]), utility=None, alpha=1.0, rng=rng)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scale alpha above 0"):
        mbr(Unary([]), utility=EXACT_MATCH, alpha=0.0, rng=rng)
    bad = Unary([np.zeros(3), np.array([0, 0, np.nan])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 2 .*NaN"):
        mbr(bad, utility=EXACT_MATCH, alpha=1.0, rng=rng)
