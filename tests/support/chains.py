"""Documents as chains of lists, and the paths that the decoder finds through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from decoders.viterbi import viterbi
from decoders.weighted_sum import WeightedSum
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.line_search import ChainSet
from rerank.tuning.exact.trellis import Trellis


def pair_counts(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Pairs (T,) of a sentence's candidates with those of the sentence before; the first alone."""
    return np.array([a * b for a, b in zip([1, *sizes], sizes, strict=False)], dtype=np.int64)


def random_trellis(
    seed: int, sizes: Sequence[int], *, spread: int = 9, unit: float = 0.25
) -> Trellis:
    """Lines whose scores and slopes are multiples of `unit`: of quarters, sums are exact.

    They cannot be written to; with a low spread many are equal.
    """
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *pair_counts(sizes)])
    lines = rng.integers(-spread, spread + 1, size=(2, starts[-1])) * unit
    lines.flags.writeable = False
    return Trellis(np.cumsum([0, *sizes]), starts, lines[0], lines[1])


def decoded_path(
    chain: DocumentChain, weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], float]:
    """Rows (T,) and score of the path that the decoder finds under weights (F,)."""
    sizes, scores = np.diff(chain.offsets).tolist(), chain.unary(weights)
    unary = Unary([scores[a:b] for a, b in pairwise(chain.offsets)])
    pairs = (
        (float(weights[feature]), Pairwise(list(matrices(flat, sizes))))
        for feature, flat in zip(chain.contextual, chain.pairs, strict=True)
    )
    best = viterbi(WeightedSum([(1.0, unary), *pairs]))[0]
    return chain.offsets[:-1] + np.array(best.choices, dtype=np.int64), best.score


def matrices(flat: NDArray[np.floating], sizes: Sequence[int]) -> Iterator[NDArray[np.floating]]:
    """Pairs (K_{t−1}, K_t) of each sentence."""
    ends = np.cumsum(pair_counts(sizes))
    for part, size in zip(np.split(flat, ends[:-1]), sizes, strict=False):  # no sentences: one part
        yield part.reshape(-1, size)


def decoded_statistics(documents: ChainSet, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Statistics (W,) of the paths that the decoder finds, gaps included."""
    found: NDArray[np.int64] = documents.gaps.sum(axis=0)
    for chain in documents.chains:
        found += chain.statistics[decoded_path(chain, weights)[0]].sum(axis=0)
    return found
