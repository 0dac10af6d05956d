"""Minimum Bayes risk: against the expected utility of every document."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from support.problems import ExactMatch, posterior_of, random_problem, rng

from decoders.arrays import HistoryTable, Unary
from decoders.batching import conditional_scores, path_score
from decoders.exhaustive import exhaustive
from decoders.mbr import mbr, standard_deviation
from decoders.problem import Array, Path


class Gains:
    """What candidate k is worth where candidate l is right: `gains[t][k, l]`."""

    def __init__(self, gains: list[Array]) -> None:
        self.gains = gains

    def expected(self, t: int, marginals: Array) -> Array:
        return np.asarray(marginals @ self.gains[t].T)

    def words(self, t: int) -> Array:
        """Candidate k has k words."""
        return np.arange(len(self.gains[t]), dtype=np.float64)


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


@pytest.mark.parametrize("order", [0, 1, 2, None])
@pytest.mark.parametrize("spread", [0.7, 1.4])
def test_without_a_scale_the_scores_get_the_standard_deviation_of_the_spread(
    order: int | None, spread: float
) -> None:
    """The scores are those after the path of first candidates."""
    problem = random_problem(order, (3, 2, 4), rng(3))
    deviation = math.sqrt(sum(np.var(row) for row in conditional_scores(problem, (0, 0, 0))) / 3)
    assert standard_deviation(problem) == pytest.approx(deviation, rel=1e-12)
    gains = [rng(seed).random(size=(k, k)) for seed, k in enumerate((3, 2, 4))]
    both = [
        mbr(problem, utility=Gains(gains), rng=rng(), particles=200, alpha=alpha, spread=spread)
        for alpha in (None, spread / deviation)
    ]
    assert both[0].paths == both[1].paths
    for one, other in zip(*(posterior_of(found).marginals for found in both), strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**-3, 2.0**900])
def test_without_a_scale_the_factor_of_all_weights_does_not_matter(factor: float) -> None:
    scores = [rng(2).normal(size=k) for k in (4, 3, 5)]
    gains = [rng(seed).random(size=(k, k)) for seed, k in enumerate((4, 3, 5))]
    one, other = (
        mbr(Unary([f * row for row in scores]), utility=Gains(gains), rng=rng())
        for f in (1.0, factor)
    )
    assert one.choices == other.choices
    assert other.score == factor * one.score


def test_the_standard_deviation_leaves_out_what_is_impossible_and_lists_without_a_choice() -> None:
    rows = [np.array([1.0, 3.0, -np.inf]), np.zeros(1), np.array([-np.inf, 2.0]), np.zeros(4)]
    assert standard_deviation(Unary(rows)) == math.sqrt((1.0 + 0.0) / 2)
    assert standard_deviation(Unary([np.zeros(1)])) == 0.0
    assert standard_deviation(Unary([])) == 0.0


def test_a_word_reward_is_added_for_each_word() -> None:
    gains = [np.array([[0.0, 3.0, 1.0]] * 3).T]  # of candidates with 0, 1 and 2 words
    found = [
        mbr(Unary([np.zeros(3)]), utility=Gains(gains), rng=rng(), word_reward=reward).choices
        for reward in (0.0, 1.9, 2.1, -2.9, -3.1)
    ]
    assert found == [(1,), (1,), (2,), (1,), (0,)]


def test_a_missing_utility_and_invalid_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="mbr needs a utility"):
        mbr(Unary([]), utility=None, alpha=1.0, rng=rng())
    with pytest.raises(ValueError, match="scale alpha above 0"):
        mbr(Unary([]), utility=ExactMatch(), alpha=0.0, rng=rng())
    for spread, reward in ((0.0, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, math.nan)):
        with pytest.raises(ValueError, match="finite spread above 0 and a finite word reward"):
            mbr(Unary([]), utility=ExactMatch(), rng=rng(), spread=spread, word_reward=reward)
