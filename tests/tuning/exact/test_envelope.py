"""Envelopes of documents, against all of their paths, decoders, and envelopes of lists."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.chains import decoded_path, pair_counts

from rerank.metrics.bleu import WIDTH
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.dominance import CandidateSubset
from rerank.tuning.exact.envelope import DocumentEnvelope, document_envelope, gathered
from rerank.tuning.mert.envelope import Direction, Scratch, upper_envelopes
from rerank.tuning.pools.pool import Pool

LO, HI = -2.0, 2.0


def path_of(envelope: DocumentEnvelope, segment: int) -> NDArray[np.int64]:
    """Rows (T,) of the best path between breaks segment − 1 and segment, 0 <= segment <= m."""
    path, end = envelope.first.copy(), envelope.starts[segment]
    path[envelope.sentences[:end]] = envelope.rows[:end]  # numpy: of equal places the last one
    return path


def chain_of(seed: int, sizes: list[int], *, contextual: int = 1, spread: int = 9) -> DocumentChain:
    """Two static features, then contextual ones; multiples of a quarter, so that sums are exact."""
    rng = np.random.default_rng(seed)
    n, n_pairs = sum(sizes), pair_counts(sizes).sum()
    columns = rng.integers(-9, 10, size=(2 + contextual, n)) / 4
    pairs = [rng.integers(-spread, spread + 1, size=n_pairs) / 4 for _ in range(contextual)]
    kinds = (np.float32, np.float64)
    return DocumentChain(
        np.cumsum([0, *sizes]),
        columns,
        rng.integers(-9, 10, size=n) / 4,
        rng.integers(0, 50, size=(n, WIDTH)),
        np.arange(2, 2 + contextual),
        tuple(p.astype(kinds[c % 2]) for c, p in enumerate(pairs)),
    )


def search(
    chain: DocumentChain,
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    *,
    lo: float = LO,
    hi: float = HI,
    most: int = 10**6,
) -> DocumentEnvelope:
    """The envelope from weights (F,) along a direction (F,); nothing is written to."""
    unary = (chain.unary(weights), chain.slopes(direction))
    pair = (weights[chain.contextual], direction[chain.contextual])
    for array in (*unary, *pair, *chain.pairs, chain.columns, chain.statistics, chain.offsets):
        array.flags.writeable = False
    return document_envelope(chain, unary, pair, lo=lo, hi=hi, most=most)


def score(chain: DocumentChain, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Score of a path."""
    total, begin, sizes = float(chain.unary(weights)[rows].sum()), 0, np.diff(chain.offsets)
    choices = rows - chain.offsets[:-1]
    for t, size in enumerate(sizes):
        at = begin + (choices[t - 1] if t else 0) * size + choices[t]
        for feature, flat in zip(chain.contextual, chain.pairs, strict=True):
            total += float(weights[feature] * flat[at])
        begin += (sizes[t - 1] if t else 1) * size
    return total


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=5)
VECTORS = st.lists(st.integers(-4, 4), min_size=4, max_size=4).map(lambda q: np.array(q) / 4)


@given(st.integers(0, 2**32), SIZES, VECTORS, VECTORS)
def test_in_every_segment_the_path_is_the_best_of_all(
    seed: int, sizes: list[int], weights: NDArray[np.float64], direction: NDArray[np.float64]
) -> None:
    chain = chain_of(seed, sizes, contextual=2)
    found = search(chain, weights, direction)
    assert found.complete
    assert (np.diff(found.breaks) > 0).all()
    steps = [LO, *found.breaks.tolist(), HI]
    rows = [np.array(p) for p in product(*(range(a, b) for a, b in pairwise(chain.offsets)))]
    for segment, (a, b) in enumerate(pairwise(steps)):
        here = weights + (a + b) / 2 * direction
        most = max(score(chain, path, here) for path in rows)
        assert score(chain, path_of(found, segment), here) == pytest.approx(most, abs=1e-9)


@given(st.integers(0, 2**32), SIZES, VECTORS)
def test_at_a_single_step_it_is_viterbi_search_ties_included(
    seed: int, sizes: list[int], weights: NDArray[np.float64]
) -> None:
    chain = chain_of(seed, sizes, contextual=2, spread=2)
    found = search(chain, weights, np.ones(4), lo=0.0, hi=0.0)
    np.testing.assert_array_equal(found.first, decoded_path(chain, weights)[0])
    assert len(found.breaks) == 0


@pytest.mark.parametrize("strength", [0.0, 0.05, 1.0, 20.0], ids=str)
@pytest.mark.parametrize("feature", [0, 2], ids=["static", "contextual"])
def test_a_long_document_is_decoded_as_predicted(strength: float, feature: int) -> None:
    """Weak, strong and overwhelming context; the box is divided where much stays in it."""
    rng = np.random.default_rng(5)
    chain = chain_of(5, [20] * 30)
    noise = rng.standard_normal((3, 600))
    chain = replace(chain, columns=noise, pairs=(rng.standard_normal(len(chain.pairs[0])),))
    weights = np.array([1.0, -0.5, strength])
    found = search(chain, weights, np.eye(3)[feature])
    assert len(found.breaks) > (10 if strength < 20 else 0)
    steps = [LO, *found.breaks.tolist(), HI]
    for segment in range(0, len(steps) - 1, 7):
        here = weights + (steps[segment] + steps[segment + 1]) / 2 * np.eye(3)[feature]
        rows, best = decoded_path(chain, here)
        path = path_of(found, segment)
        assert score(chain, path, here) == pytest.approx(best, abs=1e-9)
        if steps[segment + 1] - steps[segment] > 1e-6:
            np.testing.assert_array_equal(path, rows)


@pytest.mark.parametrize("seed", range(5))
def test_without_pairs_the_breaks_are_those_of_the_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = chain_of(seed, rng.integers(1, 9, 12).tolist(), contextual=0)
    weights, direction = np.array([0.3, 0.7]), np.array([1.0, -0.2])
    found = search(chain, weights, direction)
    scores = chain.unary(weights)
    pool = Pool(chain.offsets, chain.columns.T, chain.statistics, scores)
    along = Direction.of(pool, chain.slopes(direction))
    lists = upper_envelopes(pool, scores, pool.choices(scores), along, Scratch(pool))
    expected, ours = lists.breaks.round(9), found.breaks.round(9)
    inside = np.unique(expected[(expected > LO) & (expected < HI)])
    np.testing.assert_array_equal(np.unique(ours[(ours > LO) & (ours < HI)]), inside)


def test_changes_are_differences_of_the_statistics_of_paths() -> None:
    chain = chain_of(8, [6] * 9)
    found = search(chain, np.array([1.0, 0.5, 0.25]), np.array([0.5, -0.5, 1.0]))
    sums = [chain.statistics[path_of(found, i)].sum(axis=0) for i in range(len(found.breaks) + 1)]
    np.testing.assert_array_equal(found.changes(chain.statistics), np.diff(sums, axis=0))


def test_no_more_breaks_than_asked_for_and_it_says_so() -> None:
    chain = chain_of(9, [8] * 40)
    weights, direction = np.array([1.0, 0.5, 0.25]), np.array([0.5, -0.5, 1.0])
    everything = search(chain, weights, direction)
    assert everything.complete
    assert not search(chain, weights, direction, most=10).complete


@pytest.mark.parametrize("sizes", [[], [1], [1, 1, 1]], ids=["empty", "one", "no choice"])
def test_a_document_without_a_choice_has_one_segment(sizes: list[int]) -> None:
    chain = chain_of(10, sizes)
    found = search(chain, np.ones(3), np.ones(3))
    assert found.complete
    np.testing.assert_array_equal(path_of(found, 0), np.arange(len(sizes)))
    assert found.changes(chain.statistics).shape == (0, WIDTH)


def test_pairs_of_some_candidates_are_gathered_with_their_own_lines() -> None:
    chain = chain_of(11, [3, 2])
    weights, direction = np.array([1.0, 0.5, 0.25]), np.array([0.5, -0.5, 1.0])
    unary = (chain.unary(weights), chain.slopes(direction))
    some = CandidateSubset(np.array([0, 2, 4]), np.array([0, 2, 3]))
    found = gathered(chain, unary, (weights[2:], direction[2:]), some)
    np.testing.assert_array_equal(found.starts, [0, 2, 4])
    rows, places = [0, 2, 4, 4], [0, 2, 3 + 1, 3 + 2 * 2 + 1]
    pairs = chain.pairs[0].astype(np.float64)[places]
    np.testing.assert_array_equal(found.base, unary[0][rows] + weights[2] * pairs)
    np.testing.assert_array_equal(found.slope, unary[1][rows] + direction[2] * pairs)
