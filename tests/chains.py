"""Small documents made up as chains, and all of their paths: the truth in tests of exact search."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.chains import Pairwise, Unary
from decoders.weighted import WeightedSum
from rerank.bleu import ORDER, WIDTH
from rerank.tuning.document_chain import DocumentChain


def made_up(
    rng: np.random.Generator,
    sizes: list[int],
    *,
    spread: int = 3,
    static: int = 2,
    contextual: int = 1,
) -> DocumentChain:
    """A chain of quarters up to `spread`: equal scores are exactly equal. Contextual ones last."""
    n, n_pairs = sum(sizes), sum(a * b for a, b in zip([1, *sizes], sizes, strict=False))
    offsets = np.cumsum([0, *sizes])

    def quarters(*shape: int) -> NDArray[np.float64]:
        return rng.integers(-4 * spread, 4 * spread + 1, size=shape) / 4

    columns = np.concatenate([quarters(static, n), np.zeros((contextual, n))])
    pairs = tuple(quarters(n_pairs).astype(np.float32) for _ in range(contextual))
    which = np.arange(static, static + contextual)
    return DocumentChain(offsets, columns, quarters(n), statistics(rng, offsets), which, pairs)


def statistics(rng: np.random.Generator, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Plausible statistics: a reference length per list, matches that become rarer with order."""
    rows = np.zeros((offsets[-1], WIDTH), dtype=np.int64)
    for start, end in pairwise(offsets):
        reference = rng.integers(4, 12)
        length = rng.integers(4, 12, size=end - start)
        totals = length[:, None] - np.arange(ORDER)
        matches = np.minimum.accumulate(rng.integers(0, totals + 1), axis=1)
        rows[start:end] = np.column_stack([matches, totals, np.full(end - start, reference)])
    return rows


@st.composite
def chains(draw: st.DrawFn, *, contextual: int = 1, longest: int = 5) -> DocumentChain:
    """Chains of few paths: sentences of one candidate, equal candidates, no sentence at all."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 4), max_size=longest))
    return made_up(rng, sizes, spread=draw(st.sampled_from([0, 1, 9])), contextual=contextual)


def matrices(chain: DocumentChain, c: int) -> list[NDArray[np.float64]]:
    """The pairs (K_{t−1}, K_t) of one contextual feature."""
    sizes = np.diff(chain.offsets).tolist()
    before = [1, *sizes][: len(sizes)]
    ends = np.cumsum([a * b for a, b in zip(before, sizes, strict=True)])
    blocks = np.split(chain.pairs[c].astype(np.float64), ends[:-1]) if sizes else []
    return [m.reshape(a, b) for m, a, b in zip(blocks, before, sizes, strict=True)]


def problem(chain: DocumentChain, weights: NDArray[np.float64]) -> WeightedSum:
    """What decoders see of a chain."""
    unary = chain.fixed + weights @ chain.columns
    parts: list[tuple[float, Unary | Pairwise]] = [
        (1.0, Unary([unary[a:b] for a, b in pairwise(chain.offsets)]))
    ]
    for c, feature in enumerate(chain.contextual):
        parts.append((float(weights[feature]), Pairwise(matrices(chain, c))))
    return WeightedSum(parts)


def paths(chain: DocumentChain) -> NDArray[np.int64]:
    """Rows (∏ K_t, T) of all paths, in the order of ties: by the last sentence first."""
    lists = [range(a, b) for a, b in pairwise(chain.offsets)]
    return np.array([path[::-1] for path in product(*reversed(lists))], dtype=np.int64)


def scores(chain: DocumentChain, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of all paths, in the order of `paths`."""
    rows = paths(chain)
    found = (chain.fixed + weights @ chain.columns)[rows].sum(axis=1)
    choices = rows - chain.offsets[:-1]
    for c, feature in enumerate(chain.contextual):
        for t, matrix in enumerate(matrices(chain, c)):
            before = choices[:, t - 1] if t else np.zeros(len(rows), dtype=np.int64)
            found = found + weights[feature] * matrix[before, choices[:, t]]
    return np.asarray(found)
