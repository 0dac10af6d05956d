"""The feature `defects`: 1 of candidates that are no translations, where a better one is there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from decoders.arrays import Unary
from rerank.corpus.defects import defects_of, whole
from rerank.corpus.kbest import KBest, NamedLists
from rerank.scorers.features import FeatureSource, ScoredDocument

DEFECTS = "defects"
WEIGHT = -10_000.0  # more than differences of other features can make up for


class DefectFeature(FeatureSource):
    """1 of candidates with a worse defect than the least bad one of their sentence, else 0."""

    preset = WEIGHT

    def __init__(self) -> None:
        super().__init__(DEFECTS)
        self._decided = 0

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """The feature of each document."""
        scored = []
        for _, kbest in documents:
            values = np.where(whole(kbest), 0.0, 1.0)
            parts = [values[a:b] for a, b in pairwise(kbest.offsets.tolist()) if a < b]
            scored.append(ScoredDocument(Unary(parts), np.zeros((kbest.n, 0))))
        return scored

    def count(self, kbest: KBest, choices: Sequence[int]) -> dict[str, Sequence[object]]:
        """Count sentences that keep a candidate with a defect, for lack of a better one.

        `defects` of each sentence that has candidates: kinds, and how many candidates have them.
        """
        if kbest.defects is not None and kbest.n:
            starts = np.unique(kbest.offsets)[:-1]
            self._decided += int((kbest.defects[starts + np.array(choices)] > 0).sum())
        counts = zip(defects_of(kbest), kbest.counts.tolist(), strict=True)
        return {DEFECTS: [kinds for kinds, n in counts if n]}

    def report(self) -> str:
        """`defects: 3 sentences of which every candidate has a defect`."""
        n = self._decided
        return f"{self.name}: {n:,} sentences of which every candidate has a defect; the least bad"
