"""Minimum Bayes risk: against the expected utility of every document."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from support.problems import ExactMatch, posterior_of, random_problem, rng

from decoders.arrays import HistoryTable, Unary
from decoders.batching import path_score
from decoders.exhaustive import exhaustive
from decoders.mbr import mbr
from decoders.problem import Array, Path


class Gains:
    """What candidate k is worth where candidate l is right: `gains[t][k, l]`."""

    def __init__(self, gains: list[Array]) -> None:
        self.gains = gains

    def expected(self, t: int, marginals: Array) -> Array:
        return np.asarray(self.gains[t] @ marginals)


@pytest.mark.parametrize("order", [0, 1, 2, None])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_no_document_has_a_higher_expected_utility(order: int | None, alpha: float) -> None:
    lengths, differs = (3, 2, 4), False
    every = list(product(*map(range, lengths)))
    for seed in range(6):
        problem, draws = random_problem(order, lengths, rng(seed)), rng(seed)
        gains = [draws.random(size=(k, k)) for k in lengths]
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
        found = mbr(problem, utility=Gains(gains), alpha=alpha, rng=draws, particles=10**6)
        assert found.paths == (Path(best, path_score(problem, best)),)
        assert posterior_of(found).exact == (order in (0, 1))
        differs = differs or best != paths[0].choices
    assert differs  # it is not the search for the best path in disguise


def test_equal_utilities_go_to_the_first_candidate() -> None:
    found = mbr(
        Unary([np.zeros(3), np.array([-1.0, 0, 0])]),
        utility=ExactMatch(),
        alpha=1.0,
        rng=rng(1),
    )
    assert found.paths == (Path((0, 1), 0.0),)


@pytest.mark.parametrize("order", [1, 2])
def test_without_a_possible_path_the_first_candidates_come_out(order: int) -> None:
    problem = HistoryTable([np.zeros(3), np.full((3, 3), -np.inf)], order)
    found = mbr(problem, utility=ExactMatch(), alpha=1.0, rng=rng(1))
    assert found.paths == (Path((0, 0), -np.inf),)
    assert posterior_of(found).extinct


def test_a_thousand_sentences_of_order_0_take_their_likeliest_candidates() -> None:
    scores = rng(2).normal(size=(1000, 3))
    found = mbr(Unary(list(scores)), utility=ExactMatch(), alpha=0.2, rng=rng(1))
    assert found.paths[0].choices == tuple(scores.argmax(axis=1).tolist())


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_with_all_zero_scores_the_path_is_the_consensus_of_equal_candidates(
    order: int | None,
) -> None:
    gains = [rng(seed).random(size=(4, 4)) for seed in range(3)]
    found = mbr(
        random_problem(order, (4, 4, 4), rng(), [0.0]),
        utility=Gains(gains),
        alpha=0.1,
        rng=rng(),
        particles=10**6,
    )
    consensus = tuple(int(gain.mean(axis=1).argmax()) for gain in gains)
    assert found.paths == (Path(consensus, 0.0),)
    if order in (0, 1):
        assert np.array(posterior_of(found).marginals) == pytest.approx(0.25)


def test_a_missing_utility_and_a_scale_of_0_are_refused() -> None:
    with pytest.raises(ValueError, match="mbr needs a utility"):
        mbr(Unary([]), utility=None, alpha=1.0, rng=rng())
    with pytest.raises(ValueError, match="scale alpha above 0"):
        mbr(Unary([]), utility=ExactMatch(), alpha=0.0, rng=rng())
