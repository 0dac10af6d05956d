"""Ascent on documents: never down, to a point that no feature improves, and as decoded."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from decoders.viterbi import viterbi
from decoders.weighted_sum import WeightedSum
from rerank.metrics.bleu import ORDER, corpus_bleu
from rerank.notices import Notices
from rerank.tuning.ascent import Optimum
from rerank.tuning.bounds import Bounds
from rerank.tuning.document_ascent import DocumentStrategy, document_ascent
from rerank.tuning.document_chain import DocumentChain
from rerank.tuning.document_line_search import ChainSet, document_line_search
from rerank.tuning.goals import CORPUS_BLEU, Goal
from rerank.tuning.objectives import Corpus
from rerank.tuning.regularisation import Window
from rerank.tuning.strategies import STRATEGIES, coordinates, in_turn, random_directions

ALL = np.arange(3)
START = np.array([0.1, -0.5, 0.0])
ON_DOCUMENTS = sorted(STRATEGIES.keys() - {"gradient"})  # which needs a pool


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
    return ChainSet.of(chains, np.zeros((2, 9), dtype=np.int64))


def decoded(documents: ChainSet, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Statistics of the paths that the decoder finds."""
    found: NDArray[np.int64] = documents.gaps.sum(axis=0)
    for chain in documents.chains:
        unary, sizes = chain.unary(weights), np.diff(chain.offsets).tolist()
        lists = Unary([unary[a:b] for a, b in pairwise(chain.offsets)])
        ends = np.cumsum([a * b for a, b in zip([1, *sizes], sizes, strict=False)])
        blocks = zip(np.split(chain.pairs[0], ends[:-1]), sizes, strict=True)
        pairs = Pairwise([m.reshape(-1, k) for m, k in blocks])
        best = viterbi(WeightedSum([(1.0, lists), (float(weights[2]), pairs)]))[0]
        found += chain.statistics[chain.offsets[:-1] + np.array(best.choices)].sum(axis=0)
    return found


def climbed(
    documents: ChainSet,
    start: NDArray[np.float64] = START,
    strategy: DocumentStrategy = coordinates,
    *,
    features: NDArray[np.int64] = ALL,
    bounds: Bounds | None = None,
    most: float = math.inf,
) -> Optimum:
    start.flags.writeable = False
    return document_ascent(
        documents,
        start,
        CORPUS_BLEU,
        strategy,
        np.random.default_rng(7),
        features=features,
        notices=Notices(),
        bounds=bounds,
        most_searches=most,
    )


@pytest.mark.parametrize("name", ON_DOCUMENTS)
@pytest.mark.parametrize("seed", range(2))
def test_every_strategy_gains_and_ends_at_what_is_decoded(seed: int, name: str) -> None:
    documents = documents_of(seed)
    end = climbed(documents, strategy=STRATEGIES[name], most=100)
    assert end.value > corpus_bleu(decoded(documents, START))
    np.testing.assert_array_equal(end.statistics, decoded(documents, end.weights))
    assert end.value == corpus_bleu(end.statistics)


@pytest.mark.parametrize("name", ON_DOCUMENTS)
@pytest.mark.parametrize("kind", ["mean", "min"])
def test_with_a_window_every_strategy_ends(name: str, kind: Literal["mean", "min"]) -> None:
    """Smoothed values rise from step to step; else weights would double until they overflow."""
    end = document_ascent(
        documents_of(5),
        START,
        Goal(Corpus(), Window(2, kind)),
        STRATEGIES[name],
        np.random.default_rng(7),
        features=ALL,
        notices=Notices(),
    )
    assert np.isfinite(end.weights).all()
    assert end.searches < 600


@pytest.mark.parametrize("name", ["coordinates", "best-of-all"])
def test_it_ends_where_no_feature_gains(name: str) -> None:
    documents = documents_of(3)
    end = climbed(documents, strategy=STRATEGIES[name])
    unaries = documents.unaries(end.weights)
    for feature in range(3):
        line = (end.weights, np.eye(3)[feature])
        found = document_line_search(
            documents, unaries, line, CORPUS_BLEU, end.value, notices=Notices()
        )
        assert found.size == 0.0


def test_the_same_seed_gives_the_same_weights() -> None:
    documents = documents_of(4)
    once, again = (climbed(documents, strategy=random_directions, most=60) for _ in range(2))
    np.testing.assert_array_equal(once.weights, again.weights)


def test_only_the_features_named_move() -> None:
    end = climbed(documents_of(5), strategy=random_directions, features=np.array([2, 0]))
    assert end.weights[1] == START[1]
    assert end.weights[2] != 0


def test_weights_keep_to_their_bounds() -> None:
    free = climbed(documents_of(0))
    assert free.weights[1] > 0
    bounds = Bounds(np.array([0.0, -1.0, 0.0]), np.array([2.0, -0.25, 1.0]))
    end = climbed(documents_of(0), bounds=bounds)
    assert bounds.hold(end.weights)


def test_it_stops_after_the_most_searches() -> None:
    assert climbed(documents_of(6), strategy=in_turn, most=2).searches == 2


def test_without_a_feature_to_move_the_start_is_the_end() -> None:
    documents = documents_of(7)
    end = climbed(documents, features=np.zeros(0, dtype=np.int64))
    np.testing.assert_array_equal(end.weights, START)
    np.testing.assert_array_equal(end.statistics, decoded(documents, START))
    assert end.searches == 0
