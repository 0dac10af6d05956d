"""Layout of the pairs of candidates of a document's neighbouring sentences in one array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest

Ints = NDArray[np.int64]
DROPPED, MISSING = -1, -2  # a candidate that --top leaves out, and one that no list has


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Index of each pair of kept candidates: `starts[t] + previous · counts[t] + index`.

    T sentences, those without candidates included; a sentence's neighbour is the nearest earlier
    one that has candidates. Candidate i of sentence t in the file is number `kept[offsets[t] + i]`
    of the kept candidates, for i < sizes[t]; lists that are not whole have more candidates.
    """

    counts: Ints  # (T,) kept candidates
    neighbours: Ints  # (T,), −1 where there is none
    starts: Ints  # (T + 1,)
    kept: Ints
    offsets: Ints  # (T + 1,)
    whole: NDArray[np.bool_]  # (T,) whether all candidates of a list are kept

    @classmethod
    def of(cls, kbest: KBest, top: int | None) -> Grid:
        """The pairs of k-best lists whose first `top` candidates are kept; all if it is None."""
        counts = kbest.counts
        present = np.flatnonzero(counts)
        neighbours = np.full(len(counts), -1)
        neighbours[present[1:]] = present[:-1]
        before = np.where(neighbours < 0, 1, counts[neighbours])
        sizes = np.zeros_like(counts)
        sizes[present] = kbest.ranks[kbest.offsets[1:][present] - 1] + 1
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        kept = np.full(offsets[-1], DROPPED)
        within = np.arange(kbest.n) - np.repeat(kbest.offsets[:-1], counts)
        kept[np.repeat(offsets[:-1], counts) + kbest.ranks] = within
        starts = np.concatenate([[0], np.cumsum(before * counts)])
        whole = np.ones_like(counts, dtype=np.bool_) if top is None else counts < top
        return cls(counts, neighbours, starts, kept, offsets, whole)

    @property
    def sizes(self) -> Ints:
        """(T,) candidates in the file up to the last that is kept."""
        return np.diff(self.offsets)

    def kept_numbers(self, t: Ints, index: Ints) -> Ints:
        """Numbers (n,) of candidates in the file among the kept ones, `DROPPED` or `MISSING`."""
        listed = index < self.sizes[t]
        found = np.where(self.whole[t], MISSING, DROPPED)
        found[listed] = self.kept[self.offsets[t[listed]] + index[listed]]
        return found

    def places(self, t: Ints, previous: Ints, index: Ints) -> Ints:
        """Indices (n,) of pairs of candidates in the file, `DROPPED` or `MISSING`.

        previous: −1 in a sentence that has no neighbour.
        """
        before, first = np.zeros_like(t), self.neighbours[t] < 0
        before[~first] = self.kept_numbers(self.neighbours[t[~first]], previous[~first])
        before[first != (previous < 0)] = MISSING
        own = self.kept_numbers(t, index)
        found = self.starts[t] + before * self.counts[t] + own
        return np.where(np.minimum(before, own) < 0, np.minimum(before, own), found)

    def pair(self, place: int) -> tuple[int, int, int]:
        """Sentence of a pair, and the numbers of its two candidates in the file."""
        t = int(np.searchsorted(self.starts, place, side="right")) - 1
        previous, index = divmod(place - int(self.starts[t]), int(self.counts[t]))
        return t, self._listed(int(self.neighbours[t]), previous), self._listed(t, index)

    def _listed(self, t: int, candidate: int) -> int:
        """Number in the file of a kept candidate of sentence t; 0 if t is −1."""
        kept = self.kept[self.offsets[t] : self.offsets[t + 1]] if t >= 0 else np.zeros(1)
        return int(np.flatnonzero(kept == candidate)[0])

    def matrices(self, flat: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """(K_{t-1}, K_t) of each sentence that has candidates, views of the values by index."""
        return [
            flat[self.starts[t] : self.starts[t + 1]].reshape(-1, self.counts[t])
            for t in np.flatnonzero(self.counts).tolist()
        ]
