"""Documents searched in batches: the results of each alone, and one call for each round."""

from collections.abc import Sequence

import numpy as np
import pytest

from decoders.arrays import Unary, WeightedSum
from decoders.batching import run_batch
from decoders.beam import beam, greedy
from decoders.problem import Answer, Array, Chain, DocumentProblem, Floats, Indices, ScoreError


class Recording(Chain):
    """Scores of 0; records the document, sentence and number of states of each request."""

    lengths: tuple[int, ...] = ()
    order = 1

    def __init__(self, name: str, lengths: tuple[int, ...], calls: list[list[object]]) -> None:
        self.name, self.lengths, self.calls = name, lengths, calls

    def pairwise(self, t: int) -> Floats:
        return np.zeros((self.lengths[t - 1] if t else 1, self.lengths[t]))

    @classmethod
    def extend_together(cls, requests: Sequence[tuple["Recording", Indices, int]]) -> list[Answer]:
        requests[0][0].calls.append([(problem.name, t, len(s)) for problem, s, t in requests])
        return super().extend_together(requests)

    @classmethod
    def rescore_together(
        cls, requests: Sequence[tuple["Recording", Indices, int, int]]
    ) -> list[Array]:
        requests[0][0].calls.append([(problem.name, -t, len(p)) for problem, p, t, _ in requests])
        return super().rescore_together(requests)


def test_requests_of_one_round_arrive_as_one_call_also_those_of_parts_of_sums() -> None:
    calls: list[list[object]] = []
    documents = {"a": (2, 3), "b": (), "c": (2,), "d": (1, 2, 2)}
    problems: list[DocumentProblem] = [
        Recording(name, lengths, calls) for name, lengths in documents.items()
    ]
    run_batch(problems, [beam.steps(problem, width=4) for problem in problems])
    rounds = [[("a", 0, 1), ("c", 0, 1), ("d", 0, 1)], [("a", 1, 2), ("d", 1, 1)], [("d", 2, 2)]]
    assert calls == rounds
    calls.clear()
    unweighted = [(0.0, Recording("x", lengths, calls)) for lengths in documents.values()]
    sums = [WeightedSum([(1, p), zero]) for p, zero in zip(problems, unweighted, strict=True)]
    run_batch(sums, [beam.steps(total, width=4) for total in sums])
    assert calls == rounds


# Faults
FINE = Unary([np.zeros(2), np.zeros(2)])
NAN, INF = (Unary([np.zeros(2), np.array([0, value])]) for value in (np.nan, np.inf))


@pytest.mark.parametrize(
    ("bad", "part"),
    [(NAN, None), (WeightedSum([(0, NAN), (1, FINE), (2, INF)]), 2)],
    ids=["found by the search", "found by the sum"],
)
def test_a_fault_names_the_problem_and_place(bad: DocumentProblem, part: int | None) -> None:
    summed = WeightedSum([(1, FINE), (1, FINE), (1, FINE)])
    problems = [Unary([]), Unary([np.zeros(2)]), summed, FINE, bad, FINE]
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1") as caught:
        run_batch(problems, [beam.steps(problem, width=2) for problem in problems])
    fault = caught.value
    assert (fault.position, fault.sentence, fault.candidate, fault.part) == (4, 1, 1, part)
    with pytest.raises(ScoreError) as alone:
        beam(bad, width=2)
    assert (alone.value.position, str(alone.value)) == (None, str(fault))


def test_of_several_faults_the_one_of_the_earliest_sentence_is_reported() -> None:
    problems = [NAN, Unary([np.array([np.nan])])]
    with pytest.raises(ScoreError, match=r"^sentence 0, ") as caught:
        run_batch(problems, list(map(greedy.steps, problems)))
    assert caught.value.position == 1
