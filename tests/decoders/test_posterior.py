"""What is said of draws: marginals, ranks, scales."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoders.posterior import Posterior, check_scale, ranked
from decoders.problem import Path


def test_marginals_of_draws_are_sums_of_their_weights() -> None:
    draws = np.array([[0, 2], [1, 2], [0, 0]])
    posterior = Posterior.of_draws(draws, np.array([0.5, 0.25, 0.25]), (2, 3), -1.5)
    assert [row.tolist() for row in posterior.marginals] == [[0.75, 0.25], [0.25, 0, 0.75]]
    assert (posterior.log_normaliser, posterior.exact, posterior.extinct) == (-1.5, False, False)


def test_a_document_without_a_possible_path_gives_no_candidate_a_share() -> None:
    posterior = Posterior.none((2, 1), exact=True)
    assert posterior.extinct
    assert posterior.exact
    assert [row.tolist() for row in posterior.marginals] == [[0, 0], [0]]
    assert posterior.draws.shape == (0, 2)
    assert posterior.weights.size == 0


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=20),
    n_best=st.integers(1, 30),
)
def test_paths_are_ranked_by_score_and_then_from_the_last_sentence(
    rows: list[tuple[int, ...]], n_best: int
) -> None:
    scores = [sum(row) % 3 / 2 for row in rows]  # many are equal
    expected = sorted(
        {Path(row, score) for row, score in zip(rows, scores, strict=True)},
        key=lambda path: (-path.score, path.choices[::-1]),
    )
    assert ranked(np.array(rows), np.array(scores), n_best) == tuple(expected[:n_best])


def test_the_empty_path_is_ranked_too() -> None:
    assert ranked(np.zeros((3, 0), np.intp), np.zeros(3), 2) == (Path((), 0.0),)
    with pytest.raises(ValueError, match="n_best >= 1, found 0"):
        ranked(np.zeros((1, 1), np.intp), np.zeros(1), 0)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_is_positive_and_finite(alpha: float) -> None:
    check_scale(0.01)
    with pytest.raises(ValueError, match="finite scale alpha above 0"):
        check_scale(alpha)
