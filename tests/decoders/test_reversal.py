"""Documents searched from the last sentence to the first, or in both directions."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    DYADIC,
    LENGTHS,
    ORDERS,
    SEEDS,
    SOME_LENGTHS,
    BothSides,
    ExactMatch,
    posterior_of,
    random_problem,
    rng,
    unbounded,
)

from decoders.arrays import HistoryTable, WeightedSum
from decoders.batching import conditional_scores, path_score
from decoders.problem import Array, DocumentProblem, ScoreError
from decoders.result import Direction
from decoders.reversal import direction_of, own_scores, reversed_problem
from decoders.search import decode, decode_all
from decoders.sweeps import best_starts
from decoders.table import DECODERS, Options
from decoders.viterbi import exhaustive

VALUES = DYADIC[0]  # sums in either order are equal
SHAPE = [2, 3, 2]
PARTS: dict[str, DocumentProblem] = {
    "order 0": random_problem(0, SHAPE, rng(1)),
    "pairs": random_problem(1, SHAPE, rng(1)),
    "later pairs": reversed_problem(random_problem(1, SHAPE[::-1], rng(1))),
    "earlier": random_problem(None, SHAPE, rng(1)),
    "earlier two": random_problem(2, SHAPE, rng(1)),
    "later": reversed_problem(random_problem(None, SHAPE[::-1], rng(1))),
    "later two": reversed_problem(random_problem(2, SHAPE[::-1], rng(1))),
    "neighbours": BothSides([np.zeros(k) for k in SHAPE], 1.0),
}


def paths_of(lengths: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*map(range, lengths)))


def both(one: DocumentProblem, other: DocumentProblem, weight: float = 1.0) -> WeightedSum:
    """A problem, and another one read from the last sentence on."""
    return WeightedSum([(1.0, one), (weight, reversed_problem(other))])


# Reversed problems
@given(lengths=LENGTHS, order=ORDERS, seed=SEEDS)
def test_paths_keep_their_scores_reversed(lengths: list[int], order: int | None, seed: int) -> None:
    problem = random_problem(order, lengths, rng(seed), VALUES)
    turned = reversed_problem(problem)
    assert tuple(turned.lengths) == tuple(lengths)[::-1]
    assert reversed_problem(turned) is problem
    assert (turned.given_later, problem.given_later) == (True, False)
    assert turned.causal == (order in (0, 1))
    assert turned.order == (order if order in (0, 1) else None)
    for path in paths_of(lengths):
        assert path_score(turned, path[::-1]) == path_score(problem, path)


@given(lengths=SOME_LENGTHS, order=ORDERS, seed=SEEDS, data=st.data())
def test_rescoring_says_what_a_change_inside_a_path_is_worth(
    lengths: list[int], order: int | None, seed: int, data: st.DataObject
) -> None:
    """Over a horizon that reaches the order, and of other orders both ends."""
    problem = random_problem(order, lengths, rng(seed), VALUES)
    turned, n = reversed_problem(problem), len(lengths)
    t = data.draw(st.integers(0, n - 1))
    u = data.draw(st.integers(t, n - 1))
    one, other = (rng(seed + i).integers(turned.lengths) for i in (1, 2))
    other[:t], other[u + 1 :] = one[:t], one[u + 1 :]
    sums = turned.rescore(np.array([one, other]), t, u - t + (n if order is None else order))
    truth = [path_score(problem, path[::-1].tolist()) for path in (one, other)]
    assert sums[0] - sums[1] == truth[0] - truth[1]


@given(lengths=LENGTHS, order=ORDERS, seed=SEEDS)
def test_own_scores_have_their_context(lengths: list[int], order: int | None, seed: int) -> None:
    class Within(HistoryTable):
        causal = False

        def scores_within(self, choices: Sequence[int]) -> list[Array]:
            return conditional_scores(problem, choices)

    problem = random_problem(order, lengths, rng(seed), VALUES)
    path = rng(seed).integers(lengths).tolist()
    truth = [row.tolist() for row in conditional_scores(problem, path)]
    within = Within(problem.tables, problem.order)
    for one in (problem, within):
        assert [row.tolist() for row in own_scores(one, path)] == truth
        turned = own_scores(reversed_problem(one), path[::-1])[::-1]
        assert [row.tolist() for row in turned] == truth
    with pytest.raises(ValueError, match="expected"):
        own_scores(within, [*path, 0])


# Directions
@pytest.mark.parametrize(
    ("names", "expected", "order"),
    [
        (["order 0"], "forward", 0),
        (["order 0", "pairs", "later pairs"], "forward", 1),
        (["earlier", "later pairs"], "forward", None),
        (["later"], "reversed", None),
        (["later two", "pairs", "order 0"], "reversed", 2),
        (["later", "later two", "later pairs"], "reversed", None),
        (["earlier", "later"], "both", None),
        (["earlier two", "later two"], "both", None),
        (["neighbours"], "both", None),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_directions_follow_dependence(names: list[str], expected: str, order: int | None) -> None:
    unweighted = (0.0, PARTS["later"]) if expected == "forward" else (0.0, PARTS["earlier"])
    problem = WeightedSum([*((1.0, PARTS[name]) for name in names), unweighted])
    assert direction_of(problem) is Direction(expected)
    searched = reversed_problem(problem) if expected == "reversed" else problem
    assert searched.order == order


# Searches in reverse order
@pytest.mark.parametrize("name", sorted(DECODERS))
@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_a_reversed_problem_is_searched_as_the_other(name: str, order: int | None) -> None:
    if not DECODERS[name].serves(order):
        return
    problems = [
        random_problem(order, shape, rng(n)) for n, shape in enumerate(([3, 2, 4], [2] * 5))
    ]
    options, ids, utilities = Options(scale=0.7, gap=4), ["a", "b"], [ExactMatch()] * 2
    truth = decode_all(problems, name, options, documents=ids, utilities=utilities)
    turned = [WeightedSum([(1.0, reversed_problem(problem))]) for problem in problems]
    result = decode_all(turned, name, options, documents=ids, utilities=utilities)
    for one, other in zip(result, truth, strict=True):
        if order in (0, 1):  # searched forward, as every chain
            assert (one.direction, one.exact) == (Direction.FORWARD, other.exact)
            assert one.exact <= (one.choices == other.choices[::-1])
            continue
        assert (one.direction, other.direction) == (Direction.REVERSED, Direction.FORWARD)
        assert [path.choices for path in one.paths] == [p.choices[::-1] for p in other.paths]
        for name in ("score", "best_score", "exact", "log_normaliser"):
            assert getattr(one, name) == getattr(other, name)
        if other.posterior is not None:
            ours, theirs = posterior_of(one), posterior_of(other)
            np.testing.assert_array_equal(ours.draws, theirs.draws[:, ::-1])
            for marginals, expected in zip(ours.marginals, theirs.marginals[::-1], strict=True):
                np.testing.assert_array_equal(marginals, expected)


def test_equal_paths_of_a_reversed_search_are_decided_from_the_first_sentence() -> None:
    table = HistoryTable([np.zeros(2), np.array([[0.0, 1.0], [1.0, 0.0]])], None)
    assert exhaustive(table)[0].choices == decode(table, "exhaustive").choices == (1, 0)
    assert decode(reversed_problem(table), "exhaustive").choices == (0, 1)


@pytest.mark.parametrize(("faulty", "sentence"), [(0, 2), (1, 1), (2, 0)])
def test_a_fault_of_a_reversed_search_has_its_place(faulty: int, sentence: int) -> None:
    tables = [np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2, 2))]
    good = WeightedSum([(1.0, reversed_problem(HistoryTable([np.zeros(2)], None)))])
    tables[faulty][..., 1] = np.nan
    bad = WeightedSum([(1.0, reversed_problem(HistoryTable(tables, None)))])
    with pytest.raises(ScoreError, match=f"sentence {sentence}, candidate 1") as raised:
        decode_all([good, bad], "beam")
    fault = raised.value
    assert (fault.position, fault.sentence, fault.candidate, fault.part) == (1, sentence, 1, 0)


# Both directions: sweeps
ONE, OTHER = (unbounded([3, 2, 3, 2][::step], 7, VALUES) for step in (1, -1))


@pytest.mark.parametrize("weight", [1 / 64, 64.0])
def test_sweeps_start_from_the_path_of_the_direction_that_counts_more(weight: float) -> None:
    problem = both(ONE, OTHER, weight)
    forward, backward = problem.causal_part(), reversed_problem(problem).causal_part()
    assert forward is not None
    assert backward is not None
    paths = [exhaustive(forward)[0].choices, exhaustive(backward)[0].choices[::-1]]
    start = best_starts({4: problem}, 1000)[4]
    assert start == paths[weight > 1] == max(paths, key=lambda path: path_score(problem, path))
    assert reversed_problem(ONE).causal_part() is None


@pytest.mark.parametrize("name", ["sweeps", "auto"])
def test_sweeps_search_the_sum_of_both_directions(name: str) -> None:
    problem = both(ONE, OTHER)
    start = path_score(problem, best_starts({0: problem}, 8)[0])
    optimum, path = max((path_score(problem, path), path) for path in paths_of(problem.lengths))
    result = decode(problem, name)
    assert (result.direction, result.decoder, result.exact) == (Direction.BOTH, "sweeps", False)
    assert start <= result.score == path_score(problem, result.choices) <= optimum
    whole = decode(problem, "sweeps", Options(block=4))  # all sentences at once
    assert (whole.score, whole.choices) == (optimum, path)
    narrow = decode(problem, "sweeps", Options(width=1, horizon=0, gap=8))
    assert narrow.score <= narrow.best_score
    assert decode_all([problem, problem], name)[1] == result


def test_without_a_part_that_can_be_decoded_the_first_candidates_are_the_start() -> None:
    problem = BothSides([np.array([0.0, 1.0])] * 3, gain=0.5)
    assert best_starts({1: problem}, 8) == {1: (0, 0, 0)}
    assert decode(problem).choices == (1, 1, 1)
    assert decode(both(HistoryTable([]), HistoryTable([]))).choices == ()
    table = HistoryTable([np.array([0.0, 1.0]), np.zeros((2, 2))])
    assert best_starts({0: both(table, table)}, 8) == {0: (1, 0)}  # as good as (0, 1): the first


def test_faults_in_either_direction_name_problem_and_sentence() -> None:
    broken = HistoryTable([np.zeros(2), np.array([[0.0, np.nan]] * 2)], None)
    fine = HistoryTable([np.zeros(2), np.zeros((2, 2))], None)
    for one, other, sentence in ((broken, fine, 1), (fine, broken, 0)):
        with pytest.raises(ScoreError) as raised:
            decode_all([fine, both(one, other)], "sweeps")
        assert (raised.value.position, raised.value.sentence) == (1, sentence)
