"""Problems: what they score, by the definition; enumeration; what they refuse."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import BUILDS, DYADIC, SEEDS, SOME_LENGTHS, Build, random_problem, rng, unary

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import conditional_scores, follow, path_score
from decoders.problem import (
    DocumentProblem,
    Path,
    ScoreError,
    UnsuitedDecoder,
    checked,
    checked_sums,
)
from decoders.reversal import reversed_problem
from decoders.viterbi import exhaustive

VALUES = (-np.inf, *np.arange(-9, 9) / 4)  # no sum of them is rounded
TABLE = HistoryTable([np.array([1.0, 2]), np.array([[1.0, 2, 3], [4, 5, -np.inf]])])
PAIRS = Pairwise([np.array([[0.0, 1]]), TABLE.tables[1]])


@given(
    lengths=st.lists(st.integers(1, 4), max_size=4), order=st.sampled_from([0, 1, 2, 5, None]),
    seed=SEEDS,
)  # fmt: skip
def test_enumeration_lists_the_sums_of_entries_by_score_and_then_from_the_last_sentence(
    lengths: list[int], order: int | None, seed: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), VALUES)
    paths = []
    for choices in product(*map(range, lengths)):
        score = 0.0
        for t, table in enumerate(problem.tables):
            score += float(table[choices[0 if order is None else max(0, t - order) : t + 1]])
        paths.append(Path(choices, score))
        assert path_score(problem, choices) == score
    paths.sort(key=lambda path: (-path.score, path.choices[::-1]))
    assert exhaustive(problem, n_best=300) == paths
    assert exhaustive(problem) == paths[:1]
    assert problem.lengths == tuple(lengths)
    chains: list[DocumentProblem] = [Unary(problem.tables)] if order == 0 else []
    chains += [Pairwise([np.atleast_2d(one) for one in problem.tables])] if order == 1 else []
    for chain in chains:
        assert exhaustive(chain, n_best=7) == paths[:7]
        expected = [problem.pairwise(t).tolist() for t in range(len(lengths))]
        assert [chain.pairwise(t).tolist() for t in range(len(lengths))] == expected


@given(
    build=st.sampled_from(BUILDS), lengths=SOME_LENGTHS, seed=SEEDS,
    values=st.sampled_from(DYADIC), t=st.integers(0, 4), horizon=st.integers(0, 5),
)  # fmt: skip
def test_scores_after_several_histories_and_sums_along_paths_are_those_of_each_path(
    build: Build, lengths: list[int], seed: int, values: Sequence[float], t: int, horizon: int
) -> None:
    problem, t = build(lengths, seed, values), t % len(lengths)
    paths = rng(seed).integers(lengths, size=(6, len(lengths)))
    truth = [conditional_scores(problem, path) for path in paths.tolist()]
    states, parents = problem.initial(), np.zeros(6, np.intp)
    for s in range(t):
        _, successors = problem.extend(states, s)
        states, parents = problem.select(successors, parents, paths[:, s]), np.arange(6)
    if t:
        result, _ = problem.extend(states, t)
        assert result.tolist() == [rows[t].tolist() for rows in truth]
    window = range(t, min(t + horizon + 1, len(lengths)))
    sums = [sum(rows[s][path[s]] for s in window) for rows, path in zip(truth, paths, strict=True)]
    assert problem.rescore(paths, t, horizon).tolist() == sums
    assert DocumentProblem.rescore(problem, paths, t, horizon).tolist() == sums
    together = type(problem).rescore_together([(problem, paths, t, horizon)] * 2)
    assert [one.tolist() for one in together] == [sums] * 2


def test_histories_that_end_alike_have_equal_states() -> None:
    problem = random_problem(2, (3, 2, 2, 2), rng(5))
    states = problem.initial()
    for t, choices in enumerate(([0, 1, 2], [1, 1, 1], [0, 0, 0])):
        _, successors = problem.extend(states, t)
        parents = np.arange(3) if t else np.zeros(3, dtype=np.intp)
        states = problem.select(successors, parents, np.array(choices))
    assert len({*states.tolist()}) == 1  # (·, 1, 0) thrice


def test_enumeration_takes_a_million_paths_and_refuses_more_with_their_number() -> None:
    assert exhaustive(unary([1] * 1000, 1, [0.5])) == [Path((0,) * 1000, 500.0)]
    assert exhaustive(Unary([np.arange(10.0)] * 6)) == [Path((9,) * 6, 54.0)]
    with pytest.raises(UnsuitedDecoder, match=r"1,000,000 paths, this has about 10\^2000"):
        exhaustive(Unary([np.zeros(100)] * 1000))
    with pytest.raises(UnsuitedDecoder):
        exhaustive(Unary([np.zeros(k) for k in (101, 99, 101)]))


def numbered(value: float) -> DocumentProblem:
    return Pairwise([np.zeros((1, 2)), np.array([[0, value], [0, 0]])])


PATHS = np.array([[0, 0]])
TURNED = reversed_problem(TABLE)
REFUSED: dict[str, tuple[type[Exception], Callable[[], object], str]] = {
    "no candidate": (ScoreError, lambda: Unary([np.zeros(2), np.zeros(0)]), r"^sentence 1 .*\(0,"),
    "matrix for vector": (ScoreError, lambda: Unary([np.zeros(2), np.zeros((1, 2))]), "ce 1 .* fo"),
    "rows": (ScoreError, lambda: Pairwise([np.zeros((1, 2)), np.zeros((3, 2))]), "sentence 1 "),
    "table": (ScoreError, lambda: HistoryTable([np.zeros(2), np.zeros((3, 2))]), "sentence 1 "),
    "table of another order": (ScoreError, lambda: HistoryTable([np.zeros(2), np.zeros((2, 3)),
        np.zeros((2, 3, 2))], 1), r"^sentence 2 .*shape \(3, K_t\) .* found \(2, 3, 2\)"),
    "path too short": (ValueError, lambda: path_score(PAIRS, (1,)), "expected 2 choices, found 1"),
    "choice too high": (ValueError, lambda: path_score(PAIRS, (0, 3)), "no candidate 3"),
    "choice below 0": (ValueError, lambda: follow(PAIRS, (-1, 0)), "no candidate -1"),
    "vectors of order 1": (UnsuitedDecoder, lambda: PAIRS.unary(1), "use beam"),
    "vectors of a table": (UnsuitedDecoder, lambda: TABLE.unary(1), "use beam"),
    "pairs of a table": (UnsuitedDecoder, lambda: TABLE.pairwise(1), "use beam"),
    "mean": (UnsuitedDecoder, lambda: TABLE.average(None, np.ones((1, 2))), "no mean; merge by ma"),
    "scores within": (UnsuitedDecoder, lambda: TABLE.scores_within([0, 0]), "within a path"),
    "initial in reverse": (UnsuitedDecoder, TURNED.initial, "search the reversed problem"),
    "extend in reverse": (UnsuitedDecoder, lambda: TURNED.extend(None, 0),
        "search the reversed pr"),
    "select in reverse": (UnsuitedDecoder, lambda: TURNED.select(None, PATHS[0], PATHS[0]),
        "search the reversed problem"),
    "no scores": (ScoreError, lambda: checked(np.zeros((1, 0)), 4, shape=(1, 0)), "leave the sent"),
    "shape": (ScoreError, lambda: checked(np.zeros((3, 1)), 4, shape=(1, 3)), r"sentence 4 .*\(1,"),
    "sum that is NaN": (ScoreError, lambda: checked_sums(np.array([0, np.nan]), 3, 2), "3 .*s NaN"),
    "sum of inf": (ScoreError, lambda: checked_sums(np.array([0, np.inf]), 3, 2), r"3 .*is \+inf"),
    "sums": (ScoreError, lambda: checked_sums(np.zeros((2, 1)), 3, 2), r"3 .*\(2,\), found \(2, 1"),
    "NaN": (ScoreError, lambda: numbered(np.nan).rescore(PATHS, 0, 1), "^sentence 1, candidate 1 "),
    "+inf": (ScoreError, lambda: exhaustive(numbered(np.inf)), r"^sentence 1, candidate 1 .*\+inf"),
    "list of no paths": (ValueError, lambda: exhaustive(PAIRS, n_best=0), "n_best >= 1"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_invalid_is_refused_by_its_place(
    fault: type[Exception], call: Callable[[], object], message: str
) -> None:
    with pytest.raises(fault, match=message):
        call()
