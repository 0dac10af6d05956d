"""Documents searched together: the paths of each alone, and one call for each round."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.beam import beam, beam_steps
from decoders.chains import Chain, Pairwise, Unary
from decoders.greedy import greedy, greedy_steps
from decoders.lockstep import Steps, alone, along, forced, path_score, together
from decoders.problem import Answer, DocumentProblem, Floats, Indices, Path, ScoreError
from decoders.requests import Extend, Rescore
from decoders.tables import HistoryTable
from decoders.weighted import WeightedSum

Build = Callable[[Sequence[int], np.random.Generator], DocumentProblem]


def scores(shape: Sequence[int], rng: np.random.Generator) -> Floats:
    """Scores of any size, or of few so that sums are equal, or impossible ones among them."""
    values = [-np.inf, -1.0, -0.5, 0.0, 0.25]
    kind = rng.integers(3)
    array = rng.normal(size=shape) if kind == 0 else rng.choice(values[kind - 1 :], size=shape)
    array.flags.writeable = False
    return array


def unary(lengths: Sequence[int], rng: np.random.Generator) -> Unary:
    return Unary([scores((k,), rng).astype(np.float32) for k in lengths])


def pairwise(lengths: Sequence[int], rng: np.random.Generator) -> Pairwise:
    return Pairwise([scores(s, rng) for s in itertools.pairwise([1, *lengths])])


def history(lengths: Sequence[int], rng: np.random.Generator) -> HistoryTable:
    return HistoryTable([scores(lengths[: t + 1], rng) for t in range(len(lengths))])


def mixed(lengths: Sequence[int], rng: np.random.Generator) -> WeightedSum:
    """One to four parts, of which some may have no weight."""
    builds = [(unary, pairwise, history)[kind] for kind in rng.integers(3, size=rng.integers(1, 5))]
    parts = [build(lengths, rng) for build in builds]
    return WeightedSum([(float(rng.choice([0, 0.3, 1, 2.7])), part) for part in parts])


def nested(lengths: Sequence[int], rng: np.random.Generator) -> WeightedSum:
    return WeightedSum([(0.7, mixed(lengths, rng)), (0.1, history(lengths, rng))])


BATCHES = st.lists(
    st.tuples(
        st.sampled_from([unary, pairwise, history, mixed, nested]),
        st.lists(st.integers(1, 4), max_size=4),
    ),
    max_size=6,
)


class Noting(Chain):
    """Scores of 0, and which documents were asked for which sentence with how many states."""

    lengths: tuple[int, ...] = ()
    order = 1

    def __init__(self, name: str, lengths: tuple[int, ...], calls: list[list[object]]) -> None:
        self.name, self.lengths, self.calls = name, lengths, calls

    def pairwise(self, t: int) -> Floats:
        return np.zeros((self.lengths[t - 1] if t else 1, self.lengths[t]))

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Noting, Indices, int]]) -> list[Answer]:
        requests[0][0].calls.append([(problem.name, t, len(s)) for problem, s, t in requests])
        return super().extend_together(requests)


@settings(max_examples=150, deadline=None)
@given(batch=BATCHES, seed=st.integers(0, 2**32 - 1), width=st.integers(1, 9))
def test_together_each_finds_what_it_finds_alone(
    batch: list[tuple[Build, list[int]]], seed: int, width: int
) -> None:
    rng = np.random.default_rng(seed)
    problems = [build(lengths, rng) for build, lengths in batch]
    searches = [beam_steps(problem, width=width, n_best=width) for problem in problems]
    assert together(problems, searches) == [beam(p, width=width, n_best=width) for p in problems]
    assert together(problems, list(map(greedy_steps, problems))) == list(map(greedy, problems))


@settings(max_examples=50, deadline=None)
@given(batch=BATCHES, seed=st.integers(0, 2**32 - 1))
def test_scores_found_together_are_those_of_the_paths(
    batch: list[tuple[Build, list[int]]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    problems = [build(lengths, rng) for build, lengths in batch]
    found = together(problems, [beam_steps(problem, width=3) for problem in problems])
    for problem, (path,) in zip(problems, found, strict=True):
        assert path.score == path_score(problem, path.choices)


def test_no_documents_have_no_paths() -> None:
    assert together([], []) == []


def test_requests_of_one_round_arrive_as_one_call() -> None:
    calls: list[list[object]] = []
    documents = {"a": (2, 3), "b": (), "c": (2,), "d": (1, 2, 2)}
    problems = [Noting(name, lengths, calls) for name, lengths in documents.items()]
    together(problems, [beam_steps(problem, width=4) for problem in problems])
    assert calls == [
        [("a", 0, 1), ("c", 0, 1), ("d", 0, 1)],
        [("a", 1, 2), ("d", 1, 1)],
        [("d", 2, 2)],
    ]


def test_parts_of_sums_of_one_round_arrive_as_one_call() -> None:
    calls: list[list[object]] = []
    zeros = Unary([np.zeros(2), np.zeros(3)])
    a, b, c, unweighted = (Noting(name, (2, 3), calls) for name in "abcd")
    problems = [
        WeightedSum([(1, zeros), (1, a), (0, unweighted)]),
        WeightedSum([(0, zeros), (2, b), (1, zeros), (0.5, c)]),
        WeightedSum([(0, unweighted), (1, zeros)]),
    ]
    together(problems, [beam_steps(problem, width=4) for problem in problems])
    assert calls == [
        [("a", 0, 1), ("b", 0, 1), ("c", 0, 1)],
        [("a", 1, 2), ("b", 1, 2), ("c", 1, 2)],
    ]


def test_searches_of_several_kinds_run_side_by_side() -> None:
    calls: list[list[object]] = []
    problems = [Noting(name, (2, 3), calls) for name in "ab"]
    searches = [greedy_steps(problems[0]), beam_steps(problems[1], width=5, n_best=2)]
    assert together(problems, searches) == [
        Path((0, 0), 0.0),
        [Path((0, 0), 0.0), Path((1, 0), 0.0)],
    ]
    assert calls[1] == [("a", 1, 1), ("b", 1, 2)]


def sampled(problem: DocumentProblem, rng: np.random.Generator) -> Steps[Path]:
    """One path drawn sentence by sentence."""
    states, choices, total = problem.initial(), [], 0.0
    for t in range(len(problem.lengths)):
        (row,), successors = yield Extend(states, t)
        choices.append(int((row + rng.gumbel(size=row.size)).argmax()))
        total += float(row[choices[-1]])
        states = problem.select(successors, np.zeros(1, np.intp), np.array(choices[-1:]))
    return Path(tuple(choices), total)


def test_a_search_that_draws_draws_the_same_in_any_company() -> None:
    rng = np.random.default_rng(3)
    problems = [
        HistoryTable([rng.normal(size=(3,) * (t + 1)) for t in range(n)]) for n in (4, 2, 4)
    ]

    def search(d: int) -> Steps[Path]:
        return sampled(problems[d], np.random.default_rng([7, d]))

    each = [alone(problem, search(d)) for d, problem in enumerate(problems)]
    assert together(problems, [search(d) for d in range(3)]) == each
    assert together(problems[::-1], [search(d) for d in (2, 1, 0)]) == each[::-1]


def poisoned(value: float, *, length: int = 2) -> Unary:
    """NaN or so at candidate 1 of sentence 1."""
    return Unary([np.zeros(length), np.array([0, value])])


FINE = Unary([np.zeros(2), np.zeros(2)])


@pytest.mark.parametrize(
    "bad",
    [poisoned(np.nan), WeightedSum([(0, poisoned(np.nan)), (1, FINE), (2, poisoned(np.inf))])],
    ids=["found by the search", "found by the sum"],
)
def test_a_fault_names_the_problem_beside_sentence_candidate_and_part(
    bad: DocumentProblem,
) -> None:
    summed = WeightedSum([(1, FINE), (1, FINE), (1, FINE)])
    problems = [Unary([]), Unary([np.zeros(2)]), summed, FINE, bad, FINE]
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1") as caught:
        together(problems, [beam_steps(problem, width=2) for problem in problems])
    fault = caught.value
    assert (fault.problem, fault.sentence, fault.candidate) == (4, 1, 1)
    assert fault.part == (2 if isinstance(bad, WeightedSum) else None)
    with pytest.raises(ScoreError) as caught:
        beam(bad, width=2)
    assert caught.value.problem is None
    assert str(caught.value) == str(fault)


def test_of_several_faults_the_one_of_the_earliest_sentence_is_told() -> None:
    problems = [poisoned(np.nan), Unary([np.array([np.nan])])]
    with pytest.raises(ScoreError, match=r"^sentence 0, ") as caught:
        together(problems, list(map(greedy_steps, problems)))
    assert caught.value.problem == 1


def test_moves_inside_paths_of_one_round_arrive_as_one_call() -> None:
    calls: list[list[int]] = []

    class Moving(HistoryTable):
        @classmethod
        def rescore_together(
            cls, requests: Sequence[tuple[Moving, Indices, int, int]]
        ) -> list[NDArray[np.float64]]:
            calls.append([t for _, _, t, _ in requests])
            return super().rescore_together(requests)

    def moved(n: int) -> Steps[list[float]]:
        sums: list[float] = []
        for t in range(n):
            found = yield Rescore(np.array([[0, 0, 1]]), t, 0)
            sums += found.tolist()
        return sums

    tables = [np.array([1.0]), np.array([[2.0]]), np.array([[[3.0, 4]]])]
    problems = [Moving(tables) for _ in range(3)]
    assert together(problems, [moved(2), moved(0), moved(3)]) == [[1, 2], [], [1, 2, 4]]
    assert calls == [[0, 0], [1, 1], [2]]


def test_a_path_is_scored_beside_searches() -> None:
    problem = Pairwise([np.array([[1.0, 0]]), np.array([[0, 1.0], [9, 9]])])
    searches = [along(problem, (1, 1)), along(problem, (0, 0)), greedy_steps(problem)]
    assert [path.score for path in together([problem] * 3, searches)] == [9, 1, 2]
    assert [row.tolist() for row in forced(problem, (1, 0))] == [[1, 0], [9, 9]]
    with pytest.raises(ValueError, match="expected 2 choices, found 1"):
        alone(problem, along(problem, (1,)))


def test_a_path_is_rescored_where_sentences_depend_on_later_ones() -> None:
    class RightToLeft(Noting):
        """Each sentence but the last scores 1 when the next one takes the same candidate."""

        causal = False

        def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
            return np.array((paths[:, 1:] == paths[:, :-1]).sum(axis=1), dtype=np.float64)

    calls: list[list[object]] = []
    problem = RightToLeft("a", (2, 2, 2), calls)
    assert path_score(problem, (0, 0, 1)) == 1
    assert path_score(problem, (1, 1, 1)) == 2
    assert calls == []
    with pytest.raises(ValueError, match="no candidate 2"):
        path_score(problem, (0, 0, 2))
