"""Dominated candidates, against the best paths of all, in any surroundings."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.chains import pair_counts

from rerank.metrics.bleu import WIDTH
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.dominance import CandidateSubset, undominated

Line = tuple[NDArray[np.float64], NDArray[np.float64]]


def chain_of(rng: np.random.Generator, sizes: list[int], *, spread: int) -> DocumentChain:
    """A chain whose two contextual features are all that it has."""
    n, n_pairs = sum(sizes), pair_counts(sizes).sum()
    pairs = tuple(rng.integers(-spread, spread + 1, size=n_pairs) / 4 for _ in range(2))
    statistics = np.zeros((n, WIDTH), dtype=np.int64)
    offsets = np.cumsum([0, *sizes])
    return DocumentChain(offsets, np.zeros((2, n)), np.zeros(n), statistics, np.arange(2), pairs)


def best_rows(chain: DocumentChain, unary: Line, pair: Line, step: float) -> set[int]:
    """Rows of all the paths of highest score at a step."""
    sizes = np.diff(chain.offsets).tolist()
    weights = pair[0] + step * pair[1]
    values = unary[0] + step * unary[1]
    flat = sum(w * p for w, p in zip(weights, chain.pairs, strict=True))
    ends = np.cumsum([a * b for a, b in zip([1, *sizes], sizes, strict=False)])
    blocks = np.split(np.asarray(flat), ends[:-1])
    matrices = [m.reshape(-1, k) for m, k in zip(blocks, sizes, strict=True)]
    scored = {}
    for path in product(*map(range, sizes)):
        rows = [int(chain.offsets[t]) + k for t, k in enumerate(path)]
        pairs = sum(m[j, k] for m, j, k in zip(matrices, (0, *path), path, strict=False))
        scored[tuple(rows)] = values[rows].sum() + pairs
    most = max(scored.values())
    return {row for rows, score in scored.items() if score >= most - 1e-9 for row in rows}


@settings(max_examples=50)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from([0, 1, 8]),
    st.sampled_from([(0.0, 0.0), (-1.0, 0.5), (-2.0, 2.0)]),
)
def test_no_row_of_a_best_path_is_left_out(
    seed: int, sizes: list[int], spread: int, box: tuple[float, float]
) -> None:
    rng = np.random.default_rng(seed)
    chain = chain_of(rng, sizes, spread=spread)
    unary = (rng.integers(-20, 21, sum(sizes)) / 4, rng.integers(-20, 21, sum(sizes)) / 4)
    pair = (rng.integers(-4, 5, 2) / 4, rng.integers(-4, 5, 2) / 4)  # signs change in the box
    kept = undominated(chain, CandidateSubset.all(chain), unary, pair, box)
    assert (np.diff(kept.offsets) > 0).all()
    for step in np.linspace(*box, 17):
        assert best_rows(chain, unary, pair, step) <= set(kept.rows.tolist())
    again = undominated(chain, kept, unary, pair, box)
    assert set(again.rows.tolist()) <= set(kept.rows.tolist())


def test_without_context_a_single_step_leaves_the_best_and_their_equals() -> None:
    rng = np.random.default_rng(1)
    sizes = [5] * 20
    chain = chain_of(rng, sizes, spread=0)
    scores = rng.integers(-3, 4, 100) / 1.0
    kept = undominated(
        chain,
        CandidateSubset.all(chain),
        (scores, np.zeros(100)),
        (np.ones(2), np.ones(2)),
        (0.0, 0.0),
    )
    for t, (start, end) in enumerate(pairwise(chain.offsets.tolist())):
        own = kept.rows[kept.offsets[t] : kept.offsets[t + 1]]
        np.testing.assert_array_equal(
            own, start + np.flatnonzero(scores[start:end] == scores[start:end].max())
        )


@pytest.mark.parametrize("slope", [-0.5, 0.0, 0.5])
def test_a_candidate_below_the_two_best_lines_is_left_out(slope: float) -> None:
    """Lines −step, step, and one that is below them everywhere from −2 to 2, above in between."""
    nothing = (np.zeros(2), np.zeros(2))
    chain = chain_of(np.random.default_rng(0), [3], spread=0)
    for height, left in ((-1.5, 2), (0.5, 3)):
        unary = (np.array([0.0, 0.0, height]), np.array([-1.0, 1.0, slope]))
        kept = undominated(chain, CandidateSubset.all(chain), unary, nothing, (-2.0, 2.0))
        assert len(kept.rows) == left


def test_pairs_of_candidates_begin_one_block_after_another() -> None:
    found = CandidateSubset(np.array([1, 2, 5, 7, 8]), np.array([0, 2, 3, 5]))
    np.testing.assert_array_equal(found.starts, [0, 2, 4, 6])
    nothing = CandidateSubset(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    np.testing.assert_array_equal(nothing.starts, [0])
