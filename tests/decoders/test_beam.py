"""Beam search: the best few hypotheses of each sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import DYADIC, ORDERS, SEEDS, random_problem, rng

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.beam import backtrack, beam, full_width, recombine, top_positions
from decoders.greedy import greedy
from decoders.problem import Floats, Indices, Path, ScoreError


@given(
    scores=st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0]), min_size=1, max_size=30),
    width=st.integers(1, 35),
)
def test_top_positions_are_the_first_of_a_stable_sort(scores: list[float], width: int) -> None:
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:width]
    assert top_positions(np.array(scores), width).tolist() == sorted(ranked)


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


@settings(max_examples=25)
@given(seed=SEEDS)
def test_width_1_is_greedy_search(seed: int) -> None:
    problem = random_problem(None, rng(seed).integers(1, 4, size=5).tolist(), rng(seed), DYADIC[0])
    assert beam(problem, width=1) == [greedy(problem)]


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


def test_scores_of_a_wrong_shape_are_refused_by_sentence() -> None:
    class Wrong(Unary):
        def pairwise(self, t: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
            return np.zeros((9, 9))

    with pytest.raises(ScoreError, match=r"sentence 0 .*shape \(1, 2\), found \(1, 9\)"):
        beam(Wrong([np.zeros(2)]), width=2)


@pytest.mark.parametrize(
    ("width", "n_best", "threshold"), [(0, 1, 0), (4, 0, 0), (4, 1, -0.5), (4, 1, np.nan)]
)
def test_invalid_options_are_refused(width: int, n_best: int, threshold: float) -> None:
    with pytest.raises(ValueError, match="width and n_best of at least 1 and a threshold"):
        beam(Unary([]), width=width, n_best=n_best, threshold=threshold)


@given(
    seed=SEEDS,
    shape=st.tuples(st.integers(1, 4), st.integers(1, 8)),
    width=st.none() | st.integers(1, 9),
    n_best=st.integers(1, 5),
)
def test_recombination_keeps_the_best_few_of_the_best_groups(
    seed: int, shape: tuple[int, int], width: int | None, n_best: int
) -> None:
    draws = rng(seed)
    scores = draws.choice([-np.inf, -1.0, 0.0, 0.5], size=shape)
    tails = np.unique(draws.integers(4, size=shape[1]), return_inverse=True)[1]
    by_score = sorted(range(scores.size), key=lambda i: (-scores.flat[i], i))
    groups: dict[tuple[int, int], list[int]] = {}  # in the order of their best
    for place in by_score:
        row, column = divmod(place, shape[1])
        groups.setdefault((row, int(tails[column])), []).append(place)
    best = list(groups.values())[:width]
    kept, dropped = recombine(scores, tails, width=width, n_best=n_best)
    assert kept.tolist() == sorted(place for group in best for place in group[:n_best])
    assert dropped == (len(best) < len(groups))


def test_histories_that_end_alike_share_a_place_in_the_beam() -> None:
    # after sentence 1 the beam holds (0, 0), (1, 0) in one place, (0, 1), (1, 1) in the other
    matrices = [np.array([[1.0, 0.5]]), np.array([[2.0, 0], [2, 0]]), np.array([[0.0], [9]])]
    problem = Pairwise(matrices)
    assert beam(problem, width=2)[0] == Path((0, 1, 0), 10.0)
    tables = [matrices[0][0], matrices[1], np.stack([matrices[2]] * 2)]
    assert beam(HistoryTable(tables), width=2)[0] == Path((0, 0, 0), 3.0)  # two places for (·, 0)
    assert beam(HistoryTable(tables), width=3)[0] == Path((0, 1, 0), 10.0)


def test_each_context_is_scored_once() -> None:
    class Counting(Pairwise):
        def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
            sizes.append(len(states))
            return super().extend(states, t)

    sizes: list[int] = []
    problem = Counting([np.zeros((1, 3)), *[np.zeros((3, 3))] * 3])
    assert len(beam(problem, width=9, n_best=20)) == 20
    assert sizes == [1, 3, 3, 3]


def test_more_paths_than_the_width_come_out_where_the_beam_has_seen_them() -> None:
    problem = HistoryTable([np.array([0.0, 1]), np.array([[0, 1.0], [2, 3]])])
    assert [path.choices for path in beam(problem, width=1, n_best=3)] == [(1, 1), (1, 0)]


@given(
    order=ORDERS, seed=SEEDS, width=st.integers(1, 6), threshold=st.sampled_from([0.0, 1.0, np.inf])
)
def test_no_list_holds_a_path_under_another_score(
    order: int | None, seed: int, width: int, threshold: float
) -> None:
    problem = random_problem(order, (3,) * 4, rng(seed), [-np.inf, -0.5, 0, 1])
    paths = beam(problem, width=width, n_best=81, threshold=threshold)
    assert [path.score for path in paths] == [path_score(problem, p.choices) for p in paths]
    assert len({path.choices for path in paths}) == len(paths)


def test_backtracking_follows_the_parents() -> None:
    parents, choices = [np.array([0, 0]), np.array([1, 0, 1])], [np.array([4, 5]), np.arange(3)]
    assert backtrack(parents, np.array([0, 1]), choices).tolist() == [[5, 0], [4, 1]]
    assert backtrack(parents, np.array([2])).tolist() == [[1, 2]]
    assert backtrack([], np.array([0, 0])).shape == (2, 0)


def test_what_is_worse_than_the_best_by_more_than_the_threshold_goes() -> None:
    tables = [np.array([0.0, 1, -1]), np.array([[9.0], [0], [99]])]
    assert beam(HistoryTable(tables), width=3, threshold=0.5)[0].choices == (1, 0)
    assert beam(HistoryTable(tables), width=3, threshold=1)[0].choices == (0, 0)
    assert beam(HistoryTable(tables), width=3, threshold=2)[0].choices == (2, 0)
    impossible = [np.full(2, -np.inf), np.zeros((2, 1))]
    assert len(beam(HistoryTable(impossible), width=2, threshold=0, n_best=2)) == 2


def test_the_full_width_is_the_number_of_contexts() -> None:
    assert full_width((3, 4, 5, 2)) == 60
    assert full_width((3, 4, 5, 2), 0) == 1
    assert full_width((3, 4, 5, 2), 1) == 5
    assert full_width((3, 4, 5, 2), 2) == 20
    assert full_width((3, 4, 5, 2), 7) == 60
    assert full_width(()) == full_width((), 1) == full_width((9,)) == full_width((9,), 2) == 1
