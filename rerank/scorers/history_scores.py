"""Scores of a document's lists after histories, in memory and as arrays of the score cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.scorers.cached_scores import Arrays, CachedScores
from rerank.scorers.histories import KEY_BYTES

Scores = NDArray[np.float32]


class HistoryScores:
    """Scores (K_t,) of each sentence t after histories of `KEY_BYTES` keys.

    lengths: K_t of the lists that are asked for; what was cached may be longer, and is as good if
    it is no shorter. Memory: 4 bytes a candidate and about 300 a history.
    """

    def __init__(self, kept: CachedScores) -> None:
        self.lengths = tuple(kept.requested.counts.tolist())
        self.grown = False
        self._rows: dict[tuple[int, bytes], Scores] = {}
        if "history" in kept.arrays:
            sizes, sentences = kept.arrays["size"], kept.arrays["sentence"].tolist()
            rows = np.split(kept.arrays["scores"], np.cumsum(sizes)[:-1])
            raw = kept.arrays["history"].tobytes()
            keys = [raw[i : i + KEY_BYTES] for i in range(0, len(raw), KEY_BYTES)]
            self._rows = dict(zip(zip(sentences, keys, strict=True), rows, strict=True))

    def has(self, t: int, key: bytes) -> bool:
        """Whether the scores of sentence t after a history are known."""
        found = self._rows.get((t, key))
        return found is not None and len(found) >= self.lengths[t]

    def stacked(self, t: int, keys: Sequence[bytes]) -> Scores:
        """Scores (N, K_t) after histories, all of them known."""
        k = self.lengths[t]
        return np.stack([self._rows[t, key][:k] for key in keys])

    def enter(self, t: int, keys: Sequence[bytes], scores: Sequence[Scores] | Scores) -> None:
        """Add the scores (M, K_t) after histories."""
        self.grown = self.grown or len(keys) > 0
        self._rows.update(zip(((t, key) for key in keys), scores, strict=True))

    def arrays(self) -> Arrays:
        """All scores, as the cache holds them."""
        rows = list(self._rows.values())
        return {
            "sentence": np.array([t for t, _ in self._rows], dtype=np.int32),
            "history": np.frombuffer(b"".join(key for _, key in self._rows), dtype=np.uint8),
            "size": np.array(list(map(len, rows)), dtype=np.int32),
            "scores": np.concatenate(rows),
        }
