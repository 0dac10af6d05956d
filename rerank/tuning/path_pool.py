"""A pool of paths: a list for each document, whose candidates are whole paths through it.

Features and statistics of a path are sums over its sentences. The score of a document is the
largest of its paths, and so convex in the weights; the paths kept bound it from below, and meet it
wherever one of them is what the decoder finds. Every decoding can only tighten that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.tuning.objectives import Sums
from rerank.tuning.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """N paths of a document of T sentences.

    choices: (N, T) integers; features: (N, F) float64 and statistics: (N, W), sums over the
    sentences; fixed: (N,) float64, score of what is not tuned
    """

    choices: NDArray[np.integer]
    features: NDArray[np.float64]
    statistics: Sums
    fixed: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.choices)

    def take(self, rows: Sequence[int]) -> Paths:
        """The paths of these rows."""
        kept = np.asarray(rows, dtype=np.intp)
        return Paths(
            self.choices[kept], self.features[kept], self.statistics[kept], self.fixed[kept]
        )

    def joined(self, others: Paths) -> Paths:
        """Both, each path once, in the order of arrival. O((N + M) T) for M others."""
        both = Paths(
            np.concatenate([self.choices, others.choices]),
            np.concatenate([self.features, others.features]),
            np.concatenate([self.statistics, others.statistics]),
            np.concatenate([self.fixed, others.fixed]),
        )
        rows: dict[bytes, int] = {}
        for row, path in enumerate(both.choices.astype(np.int64)):
            rows.setdefault(path.tobytes(), row)
        return both.take(list(rows.values()))


@dataclass(frozen=True, slots=True, eq=False)
class PathPool:
    """Paths of each of D documents.

    gaps: (D, W) summed statistics of the sentences without candidates; one more row is that of the
    documents without any candidate
    """

    documents: tuple[Paths, ...]
    gaps: Sums

    def __len__(self) -> int:
        return sum(map(len, self.documents))

    def joined(self, found: Sequence[Paths]) -> PathPool:
        """With further paths of each document, each path once."""
        pairs = zip(self.documents, found, strict=True)
        return PathPool(tuple(paths.joined(others) for paths, others in pairs), self.gaps)

    def pool(self) -> Pool:
        """The same for a tuner: a list for each document, and one for its gaps.

        Of paths with equal scores the one that arrived first wins.
        """
        documents, more = self.documents, len(self.gaps)
        n_features = documents[0].features.shape[1]
        return Pool(
            offsets_of(np.array([*map(len, documents), *[1] * more])),
            np.concatenate([*(d.features for d in documents), np.zeros((more, n_features))]),
            np.concatenate([*(d.statistics for d in documents), self.gaps]),
            np.concatenate([*(d.fixed for d in documents), np.zeros(more)]),
            np.concatenate([np.arange(len(documents)), np.arange(more)]),
        )

    def sums(self, found: Sequence[Paths]) -> Sums:
        """Summed statistics (D, W) of the first of each document's paths; one row per gap's."""
        sums = self.gaps.copy()
        sums[: len(found)] += np.array([paths.statistics[0] for paths in found])
        return sums
