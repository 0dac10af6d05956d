"""A beam whose survivors are drawn: by Gumbel noise, without replacement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import CHI2_999, ORDERS, SEEDS, chi2, probabilities, random_problem, rng

from decoders.arrays import Pairwise, Unary
from decoders.batching import path_score
from decoders.exhaustive import exhaustive
from decoders.problem import Path
from decoders.random_beam import draw_paths, random_beam

SOME_IMPOSSIBLE = (-np.inf, *np.linspace(-1, 1.5, 9))


@pytest.mark.parametrize("width", [2, 3])
def test_on_order_1_paths_are_drawn_one_after_the_other_without_replacement(width: int) -> None:
    problem = Pairwise([np.array([[0.0, 0.5]]), np.array([[1.0, 0], [-0.5, 0.25]])])
    shares, draws = probabilities(problem, 0.8), rng(5)
    pairs = []
    for _ in range(2500):
        choices, _ = draw_paths(problem, width=width, alpha=0.8, rng=draws)
        pairs.append(tuple(choices[:2].ravel().tolist()))
    expected = {
        one + other: shares[one] * shares[other] / (1 - shares[one])
        for one in shares
        for other in shares.keys() - {one}
    }
    assert chi2(pairs, expected) < CHI2_999[11]


def test_on_order_0_the_first_draw_has_the_probability_of_its_path() -> None:
    problem, draws = Unary([np.array([0.0, 1]), np.array([0.5, 0, -np.inf])]), rng(6)
    paths = [draw_paths(problem, width=1, alpha=2.0, rng=draws)[0][0].tolist() for _ in range(2000)]
    assert chi2(paths, probabilities(problem, 2.0)) < CHI2_999[3]


@given(
    order=ORDERS,
    lengths=st.lists(st.integers(1, 3), max_size=4),
    seed=SEEDS,
    width=st.integers(1, 90),
)
def test_draws_are_distinct_and_their_scores_those_of_the_paths(
    order: int | None, lengths: list[int], seed: int, width: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), SOME_IMPOSSIBLE)
    choices, scores = draw_paths(problem, width=width, alpha=1.0, rng=rng(seed))
    rows = [tuple(row) for row in choices.tolist()]
    assert len(set(rows)) == len(rows) == min(width, math.prod(lengths))
    assert scores.tolist() == [path_score(problem, row) for row in rows]


@given(order=ORDERS, lengths=st.lists(st.integers(1, 3), max_size=4), seed=SEEDS)
def test_a_width_that_covers_all_paths_lists_what_enumeration_lists(
    order: int | None, lengths: list[int], seed: int
) -> None:
    problem = random_problem(order, lengths, rng(seed))
    found = random_beam(problem, width=81, alpha=1.0, rng=rng(seed), n_best=9)
    assert found == exhaustive(problem, n_best=9)


def test_possible_paths_are_drawn_before_impossible_ones() -> None:
    # one path of 81 is possible: prefixes are drawn for what may come of them
    matrices = [np.zeros((1, 3)), *(np.full((3, 3), -np.inf) for _ in range(3))]
    for matrix, (before, after) in zip(matrices[1:], [(2, 1), (1, 1), (1, 0)], strict=True):
        matrix[before, after] = -1.0
    for seed in range(20):
        assert random_beam(Pairwise(matrices), width=1, alpha=1.0, rng=rng(seed)) == [
            Path((2, 1, 1, 0), -3.0)
        ]


def test_a_thousand_sentences_keep_their_noise_apart() -> None:
    problem = random_problem(1, (4,) * 1000, rng(7))
    paths = random_beam(problem, width=8, alpha=1.0, rng=rng(7), n_best=8)
    assert len({path.choices for path in paths}) == 8
    assert paths[0].score == path_score(problem, paths[0].choices)


def test_invalid_options_are_refused() -> None:
    for width, n_best in ((0, 1), (4, 0), (4, 5)):
        with pytest.raises(ValueError, match="1 <= n_best <= width"):
            random_beam(Unary([]), width=width, alpha=1.0, rng=rng(), n_best=n_best)
    with pytest.raises(ValueError, match="scale alpha above 0"):
        random_beam(Unary([]), width=1, alpha=-1.0, rng=rng())
