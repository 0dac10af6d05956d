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


def test_of_several_faults_the_one_of_the_earliest_sentence_is_reported() -> None:
    """That one fault has its problem and place: test_search, test_weighted_sum, test_reversal."""
    problems = [Unary([np.zeros(2), np.array([0, np.nan])]), Unary([np.array([np.nan])])]
    with pytest.raises(ScoreError, match=r"^sentence 0, ") as caught:
        run_batch(problems, list(map(greedy.steps, problems)))
    assert caught.value.position == 1
