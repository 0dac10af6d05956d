"""Documents searched in batches: the results of each alone, and one call for each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    DYADIC,
    SEEDS,
    RightToLeft,
    random_pairwise,
    random_problem,
    random_unary,
    rng,
)

from decoders.arrays import Chain, HistoryTable, Pairwise, Unary
from decoders.batching import (
    Extend,
    Request,
    Rescore,
    Steps,
    answer_all,
    batchable,
    conditional_scores,
    follow,
    path_score,
    run_batch,
)
from decoders.beam import beam
from decoders.greedy import greedy
from decoders.problem import Answer, Array, DocumentProblem, Floats, Indices, Path, ScoreError
from decoders.weighted_sum import WeightedSum

Build = Callable[[Sequence[int], int], DocumentProblem]
START = np.zeros(1, dtype=np.intp)


def few(lengths: Sequence[int], seed: int) -> HistoryTable:
    """Scores of which many are equal or impossible."""
    return random_problem(None, lengths, rng(seed), DYADIC[seed % 3])


def mixed(lengths: Sequence[int], seed: int) -> WeightedSum:
    """One to four parts, of which some may have no weight."""
    builds = [(random_unary, random_pairwise, few)[kind] for kind in rng(seed).integers(3, size=3)]
    weights = rng(seed).choice([0, 0.3, 1, 2.7], size=3).tolist()
    return WeightedSum(
        [(w, build(lengths, seed)) for w, build in zip(weights, builds, strict=True)]
    )


def nested(lengths: Sequence[int], seed: int) -> WeightedSum:
    return WeightedSum([(0.7, mixed(lengths, seed)), (0.1, few(lengths, seed + 1))])


BATCHES = st.lists(
    st.tuples(
        st.sampled_from([random_unary, random_pairwise, few, mixed, nested]),
        st.lists(st.integers(1, 4), max_size=4),
    ),
    max_size=6,
)


class Recording(Chain):
    """Scores of 0; records the document, sentence and number of states of each request."""

    lengths: tuple[int, ...] = ()
    order = 1

    def __init__(self, name: str, lengths: tuple[int, ...], calls: list[list[object]]) -> None:
        self.name, self.lengths, self.calls = name, lengths, calls

    def pairwise(self, t: int) -> Floats:
        return np.zeros((self.lengths[t - 1] if t else 1, self.lengths[t]))

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Recording, Indices, int]]) -> list[Answer]:
        requests[0][0].calls.append([(problem.name, t, len(s)) for problem, s, t in requests])
        return super().extend_together(requests)


@given(batch=BATCHES, seed=SEEDS, width=st.integers(1, 9))
def test_in_a_batch_each_finds_what_it_finds_alone(
    batch: list[tuple[Build, list[int]]], seed: int, width: int
) -> None:
    problems = [build(lengths, seed + d) for d, (build, lengths) in enumerate(batch)]
    searches = [beam.steps(problem, width=width, n_best=width) for problem in problems]
    found = run_batch(problems, searches)
    assert found == [beam(p, width=width, n_best=width) for p in problems]
    assert run_batch(problems, list(map(greedy.steps, problems))) == list(map(greedy, problems))
    for problem, paths in zip(problems, found, strict=True):
        assert paths[0].score == path_score(problem, paths[0].choices)


def test_no_documents_have_no_paths() -> None:
    assert run_batch([], []) == []


def test_requests_of_one_round_arrive_as_one_call() -> None:
    calls: list[list[object]] = []
    documents = {"a": (2, 3), "b": (), "c": (2,), "d": (1, 2, 2)}
    problems = [Recording(name, lengths, calls) for name, lengths in documents.items()]
    run_batch(problems, [beam.steps(problem, width=4) for problem in problems])
    assert calls == [
        [("a", 0, 1), ("c", 0, 1), ("d", 0, 1)],
        [("a", 1, 2), ("d", 1, 1)],
        [("d", 2, 2)],
    ]


def test_parts_of_sums_of_one_round_arrive_as_one_call() -> None:
    calls: list[list[object]] = []
    zeros = Unary([np.zeros(2), np.zeros(3)])
    a, b, c, unweighted = (Recording(name, (2, 3), calls) for name in "abcd")
    problems = [
        WeightedSum([(1, zeros), (1, a), (0, unweighted)]),
        WeightedSum([(0, zeros), (2, b), (1, zeros), (0.5, c)]),
        WeightedSum([(0, unweighted), (1, zeros)]),
    ]
    run_batch(problems, [beam.steps(problem, width=4) for problem in problems])
    assert calls == [
        [("a", 0, 1), ("b", 0, 1), ("c", 0, 1)],
        [("a", 1, 2), ("b", 1, 2), ("c", 1, 2)],
    ]


def test_searches_of_several_kinds_run_side_by_side() -> None:
    calls: list[list[object]] = []
    problems = [Recording(name, (2, 3), calls) for name in "ab"]
    searches = [greedy.steps(problems[0]), beam.steps(problems[1], width=5, n_best=2)]
    assert run_batch(problems, searches) == [
        Path((0, 0), 0.0),
        [Path((0, 0), 0.0), Path((1, 0), 0.0)],
    ]
    assert calls[1] == [("a", 1, 1), ("b", 1, 2)]


@batchable
def sample(problem: DocumentProblem, rng: np.random.Generator) -> Steps[Path]:
    """One path drawn sentence by sentence."""
    states, choices, total = problem.initial(), [], 0.0
    for t in range(len(problem.lengths)):
        (row,), successors = yield Extend(states, t)
        choices.append(int((row + rng.gumbel(size=row.size)).argmax()))
        total += float(row[choices[-1]])
        states = problem.select(successors, np.zeros(1, np.intp), np.array(choices[-1:]))
    return Path(tuple(choices), total)


def test_a_search_that_draws_draws_the_same_in_any_batch() -> None:
    problems = [random_problem(None, (3,) * n, rng(n)) for n in (4, 2, 4)]
    searches = [partial(sample.steps, problem) for problem in problems]
    each = [sample(problem, rng(d)) for d, problem in enumerate(problems)]
    found = run_batch(problems, [search(rng(d)) for d, search in enumerate(searches)])
    backwards = run_batch(problems[::-1], [searches[d](rng(d)) for d in (2, 1, 0)])
    assert found == backwards[::-1] == each


def test_a_batchable_search_keeps_the_name_and_text_of_its_function() -> None:
    assert sample.__name__ == "sample"  # type: ignore[attr-defined]
    assert sample.__doc__ == "One path drawn sentence by sentence."


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
        run_batch(problems, [beam.steps(problem, width=2) for problem in problems])
    fault = caught.value
    assert (fault.problem, fault.sentence, fault.candidate) == (4, 1, 1)
    assert fault.part == (2 if isinstance(bad, WeightedSum) else None)
    with pytest.raises(ScoreError) as caught:
        beam(bad, width=2)
    assert caught.value.problem is None
    assert str(caught.value) == str(fault)


def test_of_several_faults_the_one_of_the_earliest_sentence_is_reported() -> None:
    problems = [poisoned(np.nan), Unary([np.array([np.nan])])]
    with pytest.raises(ScoreError, match=r"^sentence 0, ") as caught:
        run_batch(problems, list(map(greedy.steps, problems)))
    assert caught.value.problem == 1


def test_moves_inside_paths_of_one_round_arrive_as_one_call() -> None:
    calls: list[list[int]] = []

    class Rescored(HistoryTable):
        @classmethod
        def rescore_together(
            cls, requests: Sequence[tuple[Rescored, Indices, int, int]]
        ) -> list[Array]:
            calls.append([t for _, _, t, _ in requests])
            return super().rescore_together(requests)

    def moved(n: int) -> Steps[list[float]]:
        sums: list[float] = []
        for t in range(n):
            found = yield Rescore(np.array([[0, 0, 1]]), t, 0)
            sums += found.tolist()
        return sums

    tables = [np.array([1.0]), np.array([[2.0]]), np.array([[[3.0, 4]]])]
    problems = [Rescored(tables) for _ in range(3)]
    assert run_batch(problems, [moved(2), moved(0), moved(3)]) == [[1, 2], [], [1, 2, 4]]
    assert calls == [[0, 0], [1, 1], [2]]


def test_a_path_is_scored_beside_searches() -> None:
    problem = Pairwise([np.array([[1.0, 0]]), np.array([[0, 1.0], [9, 9]])])
    searches = [
        follow.steps(problem, (1, 1)),
        follow.steps(problem, (0, 0)),
        greedy.steps(problem),
    ]
    assert [path.score for path in run_batch([problem] * 3, searches)] == [9, 1, 2]
    assert [row.tolist() for row in conditional_scores(problem, (1, 0))] == [[1, 0], [9, 9]]
    with pytest.raises(ValueError, match="expected 2 choices, found 1"):
        follow(problem, (1,))


def test_a_path_is_rescored_where_sentences_depend_on_later_ones() -> None:
    problem = RightToLeft([np.zeros(2)] * 3, 1.0)
    assert path_score(problem, (0, 0, 1)) == 1
    assert path_score(problem, (1, 1, 1)) == 2
    with pytest.raises(ValueError, match="no candidate 2"):
        path_score(problem, (0, 0, 2))


def test_answers_come_in_the_order_of_the_requests() -> None:
    unary, pairs = random_unary((2, 3), 4), random_pairwise((2, 3), 5)
    paths = np.array([[0, 2], [1, 1]])
    requests: list[list[tuple[DocumentProblem, Request]]] = [
        [(unary, Extend(START, 1)), (pairs, Rescore(paths, 0, 5))],
        [],
        [(pairs, Extend(START, 0)), (unary, Rescore(paths, 1, 0)), (unary, Extend(START, 0))],
    ]
    (first, rescored), none, (second, moved, third) = answer_all(requests)
    assert none == []
    assert [found[0].tolist() for found in (first, second, third)] == [
        problem.extend(START, t)[0].tolist() for problem, t in ((unary, 1), (pairs, 0), (unary, 0))
    ]
    assert rescored.tolist() == pairs.rescore(paths, 0, 5).tolist()
    assert moved.tolist() == unary.rescore(paths, 1, 0).tolist()
    assert answer_all([]) == []


def test_each_class_is_called_once_for_each_kind_of_request() -> None:
    calls: list[tuple[str, int]] = []

    class Recording(Unary):
        @classmethod
        def extend_together(
            cls, requests: Sequence[tuple[Recording, Indices, int]]
        ) -> list[Answer]:
            calls.append(("extend", len(requests)))
            return super().extend_together(requests)

        @classmethod
        def rescore_together(
            cls, requests: Sequence[tuple[Recording, Indices, int, int]]
        ) -> list[Array]:
            calls.append(("rescore", len(requests)))
            return super().rescore_together(requests)

    a, b = Recording([np.zeros(2)]), Recording([np.ones(3)])
    path = np.zeros((1, 1), dtype=np.intp)
    answer_all(
        [
            [(a, Extend(START, 0)), (b, Rescore(path, 0, 0))],
            [(Unary([np.zeros(1)]), Extend(START, 0)), (b, Extend(START, 0))],
        ]
    )
    assert sorted(calls) == [("extend", 2), ("rescore", 1)]


@pytest.mark.parametrize("request_", [Extend((START,), 0), Rescore(np.array([[1]]), 0, 0)])
def test_a_fault_names_the_owner_of_the_request(request_: Request) -> None:
    bad = WeightedSum([(1, Unary([np.array([0, np.nan])]))])
    fine = WeightedSum([(1, Unary([np.zeros(2)]))])
    with pytest.raises(ScoreError, match=r"^sentence 0, candidate 1.*NaN") as caught:
        answer_all([[], [(fine, request_)], [(bad, request_), (fine, request_)]])
    assert caught.value.problem == 2
