"""Where sweeps over both directions begin, and that they are never worse than there."""

import numpy as np
import pytest
from support.problems import DYADIC, RightToLeft, random_problem, rng

from decoders.arrays import HistoryTable
from decoders.batching import path_score
from decoders.directions import Direction
from decoders.problem import ScoreError, UnsuitedDecoder
from decoders.reversal import reversed_problem
from decoders.search import Options, decode, decode_all
from decoders.starts import best_starts
from decoders.viterbi import viterbi
from decoders.weighted_sum import WeightedSum

LENGTHS = [3, 2, 3, 2]
ONE, OTHER = (random_problem(None, LENGTHS[::step], rng(7), DYADIC[0]) for step in (1, -1))
WIDE = 1000  # keeps every history


def both(weight: float) -> WeightedSum:
    return WeightedSum([(1.0, ONE), (weight, reversed_problem(OTHER))])


def best(problem: WeightedSum) -> tuple[float, tuple[int, ...]]:
    """The best of all paths."""
    paths = [tuple(path) for path in np.ndindex(*LENGTHS)]
    return max((path_score(problem, path), path) for path in paths)


@pytest.mark.parametrize("weight", [1 / 64, 64.0])
def test_the_path_of_the_direction_that_counts_more_is_the_start(weight: float) -> None:
    problem = both(weight)
    forward, backward = problem.causal_part(), reversed_problem(problem).causal_part()
    assert forward is not None
    assert backward is not None
    paths = [
        decode(forward, "beam", Options(width=WIDE)).choices,
        decode(backward, "beam", Options(width=WIDE)).choices[::-1],
    ]
    start = best_starts({4: problem}, WIDE)[4]
    assert start == max(paths, key=lambda path: path_score(problem, path))
    assert start == paths[weight > 1]
    first = path_score(problem, (0,) * 4)
    assert path_score(problem, start) >= first


@pytest.mark.parametrize("name", ["sweeps", "auto"])
def test_sweeps_search_the_sum_of_both_directions(name: str) -> None:
    problem = both(1.0)
    start = path_score(problem, best_starts({0: problem}, 8)[0])
    optimum, path = best(problem)
    found = decode(problem, name)
    assert (found.direction, found.decoder, found.exact) == (Direction.BOTH, "sweeps", False)
    assert start <= found.score == path_score(problem, found.choices) <= optimum
    whole = decode(problem, "sweeps", Options(block=4))  # all sentences at once
    assert (whole.score, whole.choices) == (optimum, path)
    narrow = decode(problem, "sweeps", Options(width=1, horizon=0, gap=8))
    assert narrow.score <= narrow.best_score
    assert decode_all([problem, problem], name)[1] == found


@pytest.mark.parametrize("name", ["beam", "viterbi", "smc", "exhaustive", "mbr"])
def test_other_decoders_refuse_both_directions(name: str) -> None:
    with pytest.raises(UnsuitedDecoder, match=r"later sentences; decoders that fit: sweeps"):
        decode(both(1.0), name, Options(scale=1.0))


def test_without_a_part_that_can_be_decoded_the_first_candidates_are_the_start() -> None:
    problem = RightToLeft([np.array([0.0, 1.0])] * 3, gain=0.5)
    assert best_starts({1: problem}, 8) == {1: (0, 0, 0)}
    assert best_starts({}, 8) == {}
    empty = WeightedSum(
        [(1.0, HistoryTable([], None)), (1.0, reversed_problem(HistoryTable([], None)))]
    )
    assert decode(empty).choices == ()
    assert decode(problem).choices == (1, 1, 1)


def test_faults_in_either_direction_name_problem_and_sentence() -> None:
    broken = HistoryTable([np.zeros(2), np.array([[0.0, np.nan]] * 2)], None)
    fine = HistoryTable([np.zeros(2), np.zeros((2, 2))], None)
    for one, other, sentence in ((broken, fine, 1), (fine, broken, 0)):
        problem = WeightedSum([(1.0, one), (1.0, reversed_problem(other))])
        with pytest.raises(ScoreError) as raised:
            decode_all([fine, problem], "sweeps")
        assert (raised.value.problem, raised.value.sentence) == (1, sentence)


def test_an_exact_search_of_one_direction_needs_no_start() -> None:
    problem = WeightedSum(
        [(1.0, reversed_problem(random_problem(2, LENGTHS[::-1], rng(3), DYADIC[0])))]
    )
    found = decode(problem)
    (truth,) = viterbi(reversed_problem(problem))
    assert (found.choices, found.decoder, found.exact) == (truth.choices[::-1], "viterbi", True)
