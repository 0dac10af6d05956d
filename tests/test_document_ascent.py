"""Ascent on documents: never down, to a point that no feature improves, and as decoded."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.chains import Pairwise, Unary
from decoders.viterbi import viterbi
from decoders.weighted import WeightedSum
from rerank.bleu import ORDER, corpus_bleu, length_ratio
from rerank.tuning.document_ascent import document_ascent
from rerank.tuning.document_chain import DocumentChain
from rerank.tuning.document_line_search import ChainSet, document_line_search

ALL = np.arange(3)
START = np.array([0.1, -0.5, 0.0])


def documents_of(seed: int) -> ChainSet:
    """Candidates match the better, the larger features and the pairs that paths have in mind."""
    rng = np.random.default_rng(seed)
    chains = []
    for size in (9, 5):
        sizes = rng.integers(2, 9, size)
        n, n_pairs = sizes.sum(), (sizes * np.concatenate([[1], sizes[:-1]])).sum()
        columns = np.vstack([rng.standard_normal((2, n)), np.zeros((1, n))])
        quality = 1 / (1 + np.exp(-columns.sum(axis=0) - rng.standard_normal(n)))
        totals = rng.integers(8, 14, size=n)[:, None] - np.arange(ORDER)
        matches = (totals * quality[:, None] ** np.arange(1, 5)).astype(np.int64)
        references = np.repeat(rng.integers(8, 14, size=size), sizes)
        statistics = np.column_stack([matches, totals, references])
        pairs = rng.standard_normal(n_pairs).astype(np.float32)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        which = np.array([2])
        chains.append(DocumentChain(offsets, columns, np.zeros(n), statistics, which, (pairs,)))
    return ChainSet.of(chains, np.zeros(9, dtype=np.int64))


def decoded(documents: ChainSet, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Statistics of the paths that the decoder finds."""
    found = documents.gaps.copy()
    for chain in documents.chains:
        unary, sizes = chain.unary(weights), np.diff(chain.offsets).tolist()
        lists = Unary([unary[a:b] for a, b in pairwise(chain.offsets)])
        ends = np.cumsum([a * b for a, b in zip([1, *sizes], sizes, strict=False)])
        blocks = zip(np.split(chain.pairs[0], ends[:-1]), sizes, strict=True)
        pairs = Pairwise([m.reshape(-1, k) for m, k in blocks])
        best = viterbi(WeightedSum([(1.0, lists), (float(weights[2]), pairs)]))[0]
        found += chain.statistics[chain.offsets[:-1] + np.array(best.choices)].sum(axis=0)
    return found


@pytest.mark.parametrize("chosen_moves", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_it_never_falls_and_ends_where_no_feature_gains(seed: int, chosen_moves: int) -> None:
    documents, rng = documents_of(seed), np.random.default_rng(0)
    START.flags.writeable = False
    end = document_ascent(documents, START, features=ALL, rng=rng, chosen_moves=chosen_moves)
    assert end.bleu > corpus_bleu(decoded(documents, START))
    np.testing.assert_array_equal(end.statistics, decoded(documents, end.weights))
    assert end.bleu == corpus_bleu(end.statistics)
    assert end.ratio == length_ratio(end.statistics)
    unaries = documents.unaries(end.weights)
    for feature in range(3):
        found = document_line_search(
            documents, unaries, end.weights, np.eye(3)[feature], floor=end.bleu
        )
        assert found.step == 0.0


def test_random_directions_gain_or_leave_it_the_same_for_the_same_seed() -> None:
    documents = documents_of(4)
    ends = [
        document_ascent(
            documents, START, features=ALL, rng=np.random.default_rng(7), random_directions=n
        )
        for n in (0, 10, 10)
    ]
    assert ends[1].bleu >= ends[0].bleu
    assert ends[1].searches >= ends[0].searches + 10
    np.testing.assert_array_equal(ends[1].weights, ends[2].weights)


def test_only_the_features_named_move() -> None:
    rng = np.random.default_rng(0)
    end = document_ascent(
        documents_of(5), START, features=np.array([2, 0]), rng=rng, random_directions=3
    )
    assert end.weights[1] == START[1]
    assert end.weights[2] != 0


def test_it_stops_after_the_most_searches() -> None:
    rng = np.random.default_rng(0)
    end = document_ascent(documents_of(6), START, features=ALL, rng=rng, most_searches=2)
    assert end.searches == 2


def test_without_a_feature_to_move_the_start_is_the_end() -> None:
    rng = np.random.default_rng(0)
    documents, nothing = documents_of(7), np.zeros(0, dtype=np.int64)
    end = document_ascent(
        documents, START, features=nothing, rng=rng, chosen_moves=2, random_directions=5
    )
    np.testing.assert_array_equal(end.weights, START)
    np.testing.assert_array_equal(end.statistics, decoded(documents, START))
    assert end.searches == 0
