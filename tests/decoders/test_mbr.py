"""Minimum Bayes risk: against the expected utility of every document."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.problems import ExactMatch, all_paths, posterior_of, random_problem, rng

from decoders.arrays import Unary
from decoders.batching import conditional_scores, path_score
from decoders.mbr import NEAR, best, mbr, standard_deviation
from decoders.problem import Array, Path

every_order = pytest.mark.parametrize("order", [0, 1, 2, None])


class Gains:
    """What candidate k is worth where candidate l is right: `gains[t][k, l]`."""

    def __init__(self, gains: list[Array]) -> None:
        self.gains = gains

    @classmethod
    def drawn(cls, lengths: tuple[int, ...], seed: int = 0) -> "Gains":
        return cls([rng(seed + t).random(size=(k, k)) for t, k in enumerate(lengths)])

    def expected(self, t: int, marginals: Array) -> Array:
        return np.asarray(marginals @ self.gains[t].T)

    def words(self, t: int) -> Array:
        """Candidate k has k words."""
        return np.arange(len(self.gains[t]), dtype=np.float64)


@every_order
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_no_document_has_a_higher_expected_utility(order: int | None, alpha: float) -> None:
    lengths, differs = (3, 2, 4), False
    for seed in range(5):
        problem, utility = random_problem(order, lengths, rng(seed)), Gains.drawn(lengths, seed)
        paths = all_paths(problem)
        utilities = {
            choices: sum(
                math.exp(alpha * score)
                * sum(g[k, r] for g, k, r in zip(utility.gains, choices, path, strict=True))
                for path, score in paths.items()
            )
            for choices in product(*map(range, lengths))
        }
        chosen = max(utilities, key=lambda choices: utilities[choices])
        result = mbr(problem, utility=utility, alpha=alpha, rng=rng(seed), particles=10**6)
        assert result.paths == (Path(chosen, path_score(problem, chosen)),)
        assert posterior_of(result).exact == (order in (0, 1))
        differs = differs or chosen != next(iter(paths))
    assert differs  # it is not the search for the best path in disguise


def test_equal_utilities_go_to_the_first_candidate() -> None:
    problem = Unary([np.zeros(3), np.array([-1.0, 0, 0])])
    result = mbr(problem, utility=ExactMatch(), alpha=1.0, rng=rng(1))
    assert result.paths == (Path((0, 1), 0.0),)
    near = np.array([[1 - NEAR / 2, 1.0, 0.5], [1 - NEAR * 2, 1.0, 0.5]])  # rounding, and more
    assert best(ExactMatch(), 0, near).tolist() == [0, 1]


@every_order
@pytest.mark.parametrize("spread", [0.7, 1.4])
def test_scores_get_the_standard_deviation_of_a_spread(order: int | None, spread: float) -> None:
    """The scores are those after the path of first candidates."""
    problem, utility = random_problem(order, (3, 2, 4), rng(3)), Gains.drawn((3, 2, 4))
    deviation = math.sqrt(sum(np.var(row) for row in conditional_scores(problem, (0, 0, 0))) / 3)
    assert standard_deviation(problem) == pytest.approx(deviation, rel=1e-12)
    given: list[dict[str, Any]] = [{"spread": spread}, {"alpha": spread / deviation}, {}]
    one, other, usual = (
        posterior_of(mbr(problem, utility=utility, rng=rng(), particles=200, **how))
        for how in given
    )
    for mine, theirs in zip(one.marginals, other.marginals, strict=True):
        assert mine == pytest.approx(theirs)
    assert (usual.log_normaliser == one.log_normaliser) == (spread == 1.4)  # the default


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**-3, 2.0**900])
def test_without_a_scale_the_factor_of_all_weights_does_not_matter(factor: float) -> None:
    scores = [rng(2).normal(size=k) for k in (4, 3, 5)]
    one, other = (
        mbr(Unary([f * row for row in scores]), utility=Gains.drawn((4, 3, 5)), rng=rng())
        for f in (1.0, factor)
    )
    assert (one.choices, other.score) == (other.choices, factor * one.score)


def test_the_standard_deviation_leaves_out_what_is_impossible_and_lists_without_a_choice() -> None:
    rows = [np.array([1.0, 3.0, -np.inf]), np.zeros(1), np.array([-np.inf, 2.0]), np.zeros(4)]
    assert standard_deviation(Unary(rows)) == math.sqrt((1.0 + 0.0) / 2)
    assert standard_deviation(Unary([np.zeros(1)])) == standard_deviation(Unary([])) == 0.0


def test_a_word_reward_is_added_for_each_word() -> None:
    utility = Gains([np.array([[0.0, 3.0, 1.0]] * 3).T])  # of candidates with 0, 1 and 2 words
    result = [
        mbr(Unary([np.zeros(3)]), utility=utility, rng=rng(), word_reward=reward).choices
        for reward in (0.0, 1.9, 2.1, -2.9, -3.1)
    ]
    assert result == [(1,), (1,), (2,), (1,), (0,)]
