"""Requests of searches: one call for each class of problems and kind of request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.chains import Pairwise, Unary
from decoders.problem import Answer, DocumentProblem, Indices, ScoreError
from decoders.requests import Extend, Request, Rescore, answered
from decoders.weighted import WeightedSum

START = np.zeros(1, dtype=np.intp)


def test_answers_come_in_the_order_of_the_requests() -> None:
    rng = np.random.default_rng(4)
    unary = Unary([rng.normal(size=k) for k in (2, 3)])
    pairs = Pairwise([rng.normal(size=s) for s in ((1, 2), (2, 3))])
    paths = np.array([[0, 2], [1, 1]])
    requests: list[tuple[DocumentProblem, Request]] = [
        (unary, Extend(START, 1)),
        (pairs, Rescore(paths, 0, 5)),
        (pairs, Extend(START, 0)),
        (unary, Rescore(paths, 1, 0)),
        (unary, Extend(START, 0)),
    ]
    found = answered(requests, range(5))
    assert [found[n][0].tolist() for n in (0, 2, 4)] == [
        problem.extend(START, t)[0].tolist() for problem, t in ((unary, 1), (pairs, 0), (unary, 0))
    ]
    assert found[1].tolist() == pairs.rescore(paths, 0, 5).tolist()
    assert found[3].tolist() == unary.rescore(paths, 1, 0).tolist()
    assert answered([], []) == []


def test_each_class_is_called_once_for_each_kind_of_request() -> None:
    calls: list[tuple[str, int]] = []

    class Noting(Unary):
        @classmethod
        def extend_together(cls, requests: Sequence[tuple[Noting, Indices, int]]) -> list[Answer]:
            calls.append(("extend", len(requests)))
            return super().extend_together(requests)

        @classmethod
        def rescore_together(
            cls, requests: Sequence[tuple[Noting, Indices, int, int]]
        ) -> list[NDArray[np.float64]]:
            calls.append(("rescore", len(requests)))
            return super().rescore_together(requests)

    a, b = Noting([np.zeros(2)]), Noting([np.ones(3)])
    path = np.zeros((1, 1), dtype=np.intp)
    answered(
        [
            (a, Extend(START, 0)),
            (b, Rescore(path, 0, 0)),
            (Unary([np.zeros(1)]), Extend(START, 0)),
            (b, Extend(START, 0)),
        ],
        range(4),
    )
    assert sorted(calls) == [("extend", 2), ("rescore", 1)]


@pytest.mark.parametrize("request_", [Extend((START,), 0), Rescore(np.array([[1]]), 0, 0)])
def test_a_fault_names_the_owner_of_the_request(request_: Request) -> None:
    bad = WeightedSum([(1, Unary([np.array([0, np.nan])]))])
    fine = WeightedSum([(1, Unary([np.zeros(2)]))])
    with pytest.raises(ScoreError, match=r"^sentence 0, candidate 1.*NaN") as caught:
        answered([(fine, request_), (bad, request_), (fine, request_)], [7, 8, 8])
    assert caught.value.problem == 8
