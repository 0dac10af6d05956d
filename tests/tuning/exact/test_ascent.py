"""Ascent on documents: never down, to a point that no feature improves, and as decoded."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.chains import decoded_statistics, pair_counts

from rerank.metrics.bleu import ORDER, corpus_bleu
from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.exact.ascent import document_ascent
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.line_search import ChainSet, document_line
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import BLEU_GOAL

ALL = np.arange(3)
START = np.array([0.1, -0.5, 0.0])


def documents_of(seed: int) -> ChainSet:
    """Candidates match the better, the larger features and the pairs that paths have in mind."""
    rng = np.random.default_rng(seed)
    chains = []
    for size in (9, 5):
        sizes = rng.integers(2, 9, size)
        n, n_pairs = sizes.sum(), pair_counts(sizes.tolist()).sum()
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
    return ChainSet.of(chains, np.zeros((2, 9), dtype=np.int64))


def climbed(
    documents: ChainSet,
    start: NDArray[np.float64] = START,
    *,
    features: NDArray[np.int64] = ALL,
    bounds: Bounds | None = None,
) -> Optimum:
    start.flags.writeable = False
    return document_ascent(
        documents,
        start,
        BLEU_GOAL,
        features=features,
        notices=Notices(),
        bounds=bounds,
    )


@pytest.mark.parametrize("seed", range(2))
def test_an_ascent_gains_and_its_value_is_that_of_decoding(seed: int) -> None:
    documents = documents_of(seed)
    end = climbed(documents)
    assert end.value > corpus_bleu(decoded_statistics(documents, START))
    np.testing.assert_array_equal(end.statistics, decoded_statistics(documents, end.weights))
    assert end.value == corpus_bleu(end.statistics)


def test_it_ends_where_no_feature_gains() -> None:
    documents = documents_of(3)
    end = climbed(documents)
    unaries = documents.unaries(end.weights)
    for feature in range(3):
        ahead = (end.weights, np.eye(3)[feature])
        line = document_line(documents, unaries, ahead, notices=Notices())
        assert BLEU_GOAL.best(line, end.value).size == 0.0


def test_only_the_features_named_move() -> None:
    end = climbed(documents_of(5), features=np.array([2, 0]))
    assert end.weights[1] == START[1]
    assert end.weights[2] != 0


def test_weights_keep_to_their_bounds() -> None:
    free = climbed(documents_of(0))
    assert free.weights[1] > 0
    bounds = Bounds(np.array([0.0, -1.0, 0.0]), np.array([2.0, -0.25, 1.0]))
    end = climbed(documents_of(0), bounds=bounds)
    assert bounds.hold(end.weights)


def test_without_a_feature_to_move_the_start_is_the_end() -> None:
    documents = documents_of(7)
    end = climbed(documents, features=np.zeros(0, dtype=np.int64))
    np.testing.assert_array_equal(end.weights, START)
    np.testing.assert_array_equal(end.statistics, decoded_statistics(documents, START))
    assert end.searches == 0
