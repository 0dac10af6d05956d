"""Weighted sums: how problems add up, and whose fault it is when they do not."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    DYADIC,
    LENGTHS,
    SEEDS,
    BothSides,
    Untouchable,
    pairs,
    rng,
    second,
    unary,
    unbounded,
)

from decoders.arrays import Pairwise, Unary, WeightedSum
from decoders.batching import conditional_scores, path_score
from decoders.problem import Answer, Array, Chain, DocumentProblem, Indices, ScoreError
from decoders.viterbi import exhaustive

UNARY, PAIRS, TABLE = (build((2, 3), 4) for build in (unary, pairs, unbounded))
IMPOSSIBLE = Pairwise([np.zeros((1, 2)), np.array([[0.0, 0, 0], [0, 0, -np.inf]])])


@given(lengths=LENGTHS, seed=SEEDS, weights=st.tuples(*[st.sampled_from([0, 0.5, 1, -2, 3])] * 4))
def test_a_sum_scores_paths_as_its_parts_do_and_has_the_highest_order_with_weight(
    lengths: list[int], seed: int, weights: Sequence[float]
) -> None:
    parts = [b(lengths, seed, DYADIC[0]) for b in (unary, pairs, second, unbounded)]
    total = WeightedSum(list(zip(weights, parts, strict=True)))
    orders = [n for n, weight in enumerate(weights) if weight]
    assert total.order == (None if 3 in orders else max(orders, default=0))
    for path in exhaustive(total, n_best=9):
        own = [path_score(part, path.choices) for part in parts]
        assert path.score == path_score(total, path.choices) == float(np.dot(weights, own))


def test_parts_without_weight_are_not_evaluated_and_alone_score_zero() -> None:
    parts: list[tuple[float, DocumentProblem]] = [(0.0, Untouchable()), (-0.0, Untouchable())]
    assert path_score(WeightedSum([*parts, (1, UNARY)]), (1, 0)) == path_score(UNARY, (1, 0))
    rows = conditional_scores(WeightedSum(parts), (1, 2))
    assert [row.tolist() for row in rows] == [[0, 0], [0, 0, 0]]
    assert WeightedSum(parts).pairwise(1).tolist() == [[0] * 3] * 2


def test_a_sum_depends_on_later_sentences_where_a_part_with_weight_does() -> None:
    both = BothSides([np.zeros(2), np.zeros(3)], 1.0)
    total = WeightedSum([(1, UNARY), (2, both)])
    assert not total.causal
    assert WeightedSum([(1, UNARY), (0, both)]).causal
    part = total.causal_part()
    assert part is not None
    assert path_score(part, (1, 2)) == path_score(UNARY, (1, 2))


def test_every_way_to_ask_gives_the_same_bits() -> None:
    flat = Unary([rng(7).normal(size=k).astype(np.float32) for k in (3, 4)])
    total = WeightedSum([(0.1, pairs((3, 4), 7)), (0.7, flat), (-1.3, pairs((3, 4), 8))])
    _, successors = total.extend(total.initial(), 0)
    states = total.select(successors, np.zeros(3, np.intp), np.arange(3))
    assert np.array_equal(total.extend(states, 1)[0], total.pairwise(1))
    alone = WeightedSum([(0.1, flat)])
    assert float(alone.unary(0)[0]) == 0.1 * float(flat.scores[0][0])  # widened before the product
    assert np.array_equal(alone.pairwise(1)[2], alone.unary(1))


# Faults
NAN = Unary([np.zeros(2), np.array([0, 0, np.nan])])


class OneRow(Chain):
    lengths = (2, 3)
    order = 1

    def pairwise(self, t: int) -> Array:
        return np.zeros((1, self.lengths[t]))


class Raising(Chain):
    lengths = (2, 3)
    order = 1

    def pairwise(self, t: int) -> Array:
        raise ScoreError("no scores today", sentence=t)


class Vague(Unary):
    """A class that does not say which problem is at fault."""

    @classmethod
    def extend_together(cls, requests: Sequence[tuple["Vague", Indices, int]]) -> list[Answer]:
        raise ScoreError("one of you", sentence=0)


def asked(*sums: WeightedSum) -> None:
    WeightedSum.extend_together([(total, total.initial(), 0) for total in sums])


GOOD = WeightedSum([(1, UNARY), (1, TABLE)])
INF = Unary([np.array([0, np.inf]), np.zeros(3)])
FAULTS: dict[str, tuple[Callable[[], Any], str, int | None]] = {
    "NaN": (lambda: path_score(WeightedSum([(1, UNARY), (0, INF), (1, NAN)]), (0, 0)),
        r"^sentence 1, candidate 2, scorer 2 .*NaN", None),
    "one of several sums": (lambda: asked(WeightedSum([(1, UNARY), (0, INF)]), GOOD,
        WeightedSum([(1, INF)])), r"^sentence 0, candidate 1, scorer 0 .*\+inf", 2),
    "raised by a part of a part": (lambda: asked(GOOD, WeightedSum([(1, UNARY), (1, WeightedSum([(1,
        Raising())]))])), "no scores today", 1),
    "nobody knows whose": (lambda: asked(*[WeightedSum([(1, Vague([np.zeros(2)]))])] * 2),
        "one of you", None),
    "shape": (lambda: WeightedSum([(1, PAIRS), (1, OneRow())]).pairwise(1),
        r"sentence 1, scorer 1 .*\(2, 3\), found \(1, 3\)", None),
    "−inf under a negative weight": (lambda: WeightedSum([(-1, IMPOSSIBLE)]).pairwise(1),
        r"^sentence 1, scorer 0 .*−inf under a negative weight", None),
    "−inf of a sum": (lambda: WeightedSum([(-1, IMPOSSIBLE)]).rescore(np.array([[1, 2]]), 0, 1),
        "−inf under a negative weight", 0),
    "NaN of one of several sums": (lambda: WeightedSum.rescore_together([(one, np.array([[0, 0]]),
        0, 1) for one in (GOOD, WeightedSum([(1, NAN)]))]), r"^sentence 1, candidate 2 .*NaN", 1),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message", "problem"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_sentence_candidate_scorer_and_sum(
    call: Callable[[], Any], message: str, problem: int | None
) -> None:
    with pytest.raises(ScoreError, match=message) as caught:
        call()
    assert caught.value.position == problem
