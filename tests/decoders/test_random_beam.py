"""A beam whose survivors are drawn: by Gumbel noise, without replacement."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.chains import Pairwise, Unary
from decoders.exhaustive import exhaustive
from decoders.lockstep import alone, path_score
from decoders.problem import Path, ScoreError
from decoders.random_beam import drawn_steps, random_beam
from decoders.tables import HistoryTable


def table(order: int | None, lengths: list[int], seed: int) -> HistoryTable:
    """Scores some of which are −inf."""
    rng = np.random.default_rng(seed)
    tables = []
    for t in range(len(lengths)):
        first = 0 if order is None else max(0, t - order)
        scores = rng.normal(size=tuple(lengths[first : t + 1]))
        scores[rng.random(scores.shape) < 0.2] = -np.inf
        scores.flags.writeable = False
        tables.append(scores)
    return HistoryTable(tables, order)


@pytest.mark.parametrize("width", [2, 3])
def test_on_order_1_paths_are_drawn_one_after_the_other_without_replacement(width: int) -> None:
    problem = Pairwise([np.array([[0.0, 0.5]]), np.array([[1.0, 0], [-0.5, 0.25]])])
    alpha, runs = 0.8, 4000
    shares = {p.choices: math.exp(alpha * p.score) for p in exhaustive(problem, n_best=4)}
    z = math.fsum(shares.values())
    rng = np.random.default_rng(5)
    counts: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for _ in range(runs):
        choices, _ = alone(problem, drawn_steps(problem, width=width, alpha=alpha, rng=rng))
        counts[tuple(map(tuple, choices[:2].tolist()))] += 1
    chi2 = 0.0
    for one in shares:  # p(one) · p(other | not one)
        for other in shares.keys() - {one}:
            expected = runs * shares[one] / z * shares[other] / (z - shares[one])
            chi2 += (counts.pop((one, other), 0) - expected) ** 2 / expected
    assert not counts
    assert chi2 < 31.26  # quantile of 0.999, 11 degrees of freedom


def test_on_order_0_the_first_draw_has_the_probability_of_its_path() -> None:
    problem, runs = Unary([np.array([0.0, 1]), np.array([0.5, 0, -np.inf])]), 2000
    shares = {p.choices: math.exp(2 * p.score) for p in exhaustive(problem, n_best=6)}
    z, rng = math.fsum(shares.values()), np.random.default_rng(6)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(runs):
        choices, _ = alone(problem, drawn_steps(problem, width=1, alpha=2.0, rng=rng))
        counts[tuple(choices[0].tolist())] += 1
    expected = {path: runs * share / z for path, share in shares.items() if share}
    assert counts.keys() == expected.keys()
    chi2 = sum((counts[path] - n) ** 2 / n for path, n in expected.items())
    assert chi2 < 16.27  # quantile of 0.999, 3 degrees of freedom


@settings(max_examples=80, deadline=None)
@given(
    order=st.sampled_from([0, 1, 2, None]),
    lengths=st.lists(st.integers(1, 3), max_size=4),
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 90),
)
def test_draws_are_distinct_and_their_scores_those_of_the_paths(
    order: int | None, lengths: list[int], seed: int, width: int
) -> None:
    problem, rng = table(order, lengths, seed), np.random.default_rng(seed)
    choices, scores = alone(problem, drawn_steps(problem, width=width, alpha=1.0, rng=rng))
    rows = [tuple(row) for row in choices.tolist()]
    assert len(set(rows)) == len(rows) == min(width, math.prod(lengths))
    assert scores.tolist() == [path_score(problem, row) for row in rows]


@settings(max_examples=40, deadline=None)
@given(
    order=st.sampled_from([0, 1, 2, None]),
    lengths=st.lists(st.integers(1, 3), max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_width_that_covers_all_paths_lists_what_enumeration_lists(
    order: int | None, lengths: list[int], seed: int
) -> None:
    problem, rng = table(order, lengths, seed), np.random.default_rng(seed)
    found = random_beam(problem, width=81, alpha=1.0, rng=rng, n_best=9)
    assert found == exhaustive(problem, n_best=9)


def test_possible_paths_are_drawn_before_impossible_ones() -> None:
    # one path of 81 is possible: prefixes are drawn for what may come of them
    matrices = [np.zeros((1, 3)), *(np.full((3, 3), -np.inf) for _ in range(3))]
    for matrix, (before, after) in zip(matrices[1:], [(2, 1), (1, 1), (1, 0)], strict=True):
        matrix[before, after] = -1.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert random_beam(Pairwise(matrices), width=1, alpha=1.0, rng=rng) == [
            Path((2, 1, 1, 0), -3.0)
        ]


def test_a_thousand_sentences_keep_their_noise_apart() -> None:
    rng = np.random.default_rng(7)
    matrices = [rng.normal(size=(1 if t == 0 else 4, 4)) for t in range(1000)]
    paths = random_beam(Pairwise(matrices), width=8, alpha=1.0, rng=rng, n_best=8)
    assert len({path.choices for path in paths}) == 8
    assert paths[0].score == path_score(Pairwise(matrices), paths[0].choices)


def test_an_empty_document_has_the_empty_path() -> None:
    rng = np.random.default_rng(1)
    for problem in (Unary([]), HistoryTable([])):
        assert random_beam(problem, width=2, alpha=1.0, rng=rng) == [Path((), 0.0)]


def test_options_that_are_none_are_refused() -> None:
    rng = np.random.default_rng(1)
    for width, n_best in ((0, 1), (4, 0), (4, 5)):
        with pytest.raises(ValueError, match="1 <= n_best <= width"):
            random_beam(Unary([]), width=width, alpha=1.0, rng=rng, n_best=n_best)
    with pytest.raises(ValueError, match="scale alpha above 0"):
        random_beam(Unary([]), width=1, alpha=-1.0, rng=rng)


@pytest.mark.parametrize("order", [0, 2])
def test_nan_is_refused_by_sentence_and_candidate(order: int) -> None:
    tables = [np.zeros(1), np.array([0, np.nan]) if order == 0 else np.array([[0, np.nan]])]
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN"):
        random_beam(HistoryTable(tables, order), width=2, alpha=1.0, rng=np.random.default_rng(1))
