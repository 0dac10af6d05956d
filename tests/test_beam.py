"""Beam search: the best few hypotheses of each sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.beam import beam, full_width, survivors
from decoders.exhaustive import HistoryTable
from decoders.greedy import greedy
from decoders.lockstep import path_score
from decoders.problem import Pairwise, Path, ScoreError, Unary


@settings(max_examples=200, deadline=None)
@given(
    scores=st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0]), min_size=1, max_size=30),
    width=st.integers(1, 35),
)
def test_survivors_are_the_first_of_a_stable_sort(scores: list[float], width: int) -> None:
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:width]
    assert survivors(np.array(scores), width).tolist() == sorted(ranked)


def test_a_narrow_beam_loses_what_a_wide_one_keeps() -> None:
    problem = Pairwise([np.array([[1.0, 0]]), np.array([[0, 1.0], [9, 9]])])
    assert beam(problem, width=1) == [Path((0, 1), 2.0)]
    assert beam(problem, width=2) == [Path((1, 0), 9.0)]


def test_paths_come_best_first_and_equal_ones_by_the_rule_of_ties() -> None:
    problem = Unary([np.array([0, 1.0]), np.array([1.0, 0]), np.zeros(1)])
    assert [path.choices for path in beam(problem, width=4, n_best=4)] == [
        (1, 0, 0),
        (0, 0, 0),  # as good as (1, 1, 0), which is larger at the last sentence that differs
        (1, 1, 0),
        (0, 1, 0),
    ]


def test_equal_prefixes_are_cut_by_the_rule_of_ties() -> None:
    # three prefixes score 1: (0, 0), (1, 0), (0, 1); the two smallest read from the end stay
    tables = [np.zeros(2), np.array([[1.0, 1], [1, 0]]), np.zeros((2, 2, 1))]
    assert [path.choices for path in beam(HistoryTable(tables), width=2, n_best=2)] == [
        (0, 0, 0),
        (1, 0, 0),
    ]
    tables[2][0, 1] = 5  # what the cut prefix would have won
    assert beam(HistoryTable(tables), width=2)[0].choices == (0, 0, 0)
    assert beam(HistoryTable(tables), width=3)[0].choices == (0, 1, 0)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 6))
def test_scores_are_those_of_the_paths_and_paths_differ(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, size=4)
    problem = HistoryTable([rng.normal(size=tuple(lengths[: t + 1])) for t in range(4)])
    paths = beam(problem, width=width, n_best=width)
    assert [path.score for path in paths] == [path_score(problem, p.choices) for p in paths]
    assert len({path.choices for path in paths}) == len(paths) == min(width, lengths.prod())
    assert sorted(paths, key=lambda path: -path.score) == paths


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_width_1_is_greedy_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, size=5)
    tables = [rng.integers(-2, 2, size=lengths[: t + 1]).astype(float) for t in range(5)]
    assert beam(HistoryTable(tables), width=1) == [greedy(HistoryTable(tables))]


def test_all_equal_scores_leave_the_first_candidates() -> None:
    paths = beam(Unary([np.zeros(50)] * 1000), width=8, n_best=3)
    assert [path.choices[:2] for path in paths] == [(0, 0), (1, 0), (2, 0)]
    assert {path.choices[2:] for path in paths} == {(0,) * 998}


def test_a_long_document_of_order_0_is_decoded_exactly_by_any_width() -> None:
    scores = np.random.default_rng(1).normal(size=(1000, 7)).astype(np.float32)
    for width in (1, 5):
        (path,) = beam(Unary(list(scores)), width=width)
        assert path.choices == tuple(scores.argmax(axis=1).tolist())


def test_impossible_candidates_rank_last_but_are_listed() -> None:
    problem = Unary([np.array([-np.inf, -3]), np.array([0.0])])
    assert beam(problem, width=2, n_best=2) == [Path((1, 0), -3.0), Path((0, 0), -np.inf)]


def test_an_empty_document_has_the_empty_path() -> None:
    assert beam(Unary([]), width=3, n_best=2) == [Path((), 0.0)]
    assert full_width(()) == 1


def test_nan_is_refused_by_sentence() -> None:
    with pytest.raises(ScoreError, match=r"^sentence 2, candidate 1 .*NaN"):
        beam(Unary([np.zeros(2), np.zeros(1), np.array([0, np.nan])]), width=2)


def test_scores_of_a_wrong_shape_are_refused_by_sentence() -> None:
    class Wrong(Unary):
        def pairwise(self, t: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
            return np.zeros((9, 9))

    with pytest.raises(ScoreError, match=r"sentence 0 .*shape \(1, 2\), found \(1, 9\)"):
        beam(Wrong([np.zeros(2)]), width=2)


@pytest.mark.parametrize(("width", "n_best"), [(0, 1), (4, 0), (4, 5)])
def test_widths_and_lists_that_do_not_fit_are_refused(width: int, n_best: int) -> None:
    with pytest.raises(ValueError, match="expected 1 <= n_best <= width"):
        beam(Unary([]), width=width, n_best=n_best)
