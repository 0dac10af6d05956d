"""The totals of a k-best list beside the weights that are said to have made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.notices import Notices

TOLERANCE = 1e-3  # relative; Moses writes six digits


@dataclass(slots=True)
class Disagreement:
    """Count of the lines whose total is not the weighted sum of their features.

    A constant of a sentence does not count, as no choice depends on it: it is taken to be the
    median difference of the sentence, so that one wrong total does not make its whole list wrong.
    """

    source: str
    count: int = 0
    line: int = 0
    largest: float = 0.0

    def add(self, kbest: KBest, sums: NDArray[np.float64]) -> None:
        """Compare the totals of a document with the weighted sums (n,). O(n log n)."""
        if kbest.totals is None or kbest.line_numbers is None:
            return
        gaps = kbest.totals - sums
        gaps -= np.repeat(_medians(gaps, kbest), kbest.counts)
        wrong = np.flatnonzero(np.abs(gaps) > TOLERANCE * np.maximum(1.0, np.abs(kbest.totals)))
        if not len(wrong):
            return
        self.line = self.line or int(kbest.line_numbers[wrong].min())
        self.count += len(wrong)
        self.largest = max(self.largest, float(np.abs(gaps[wrong]).max()))

    def report(self, notices: Notices) -> None:
        """Add the notice of all documents, if there is anything to say."""
        if self.count:
            notices.add(
                "total that is not weights · features, up to a constant of its sentence (a list "
                f"made with other weights?); the largest difference is {self.largest:.3g}",
                source=self.source,
                line=self.line,
                count=self.count,
            )


def _medians(values: NDArray[np.float64], kbest: KBest) -> NDArray[np.float64]:
    """The middle value of each sentence, the lower one of two; (T,), 0 without candidates."""
    sentence = np.repeat(np.arange(len(kbest)), kbest.counts)
    in_order = values[np.lexsort((values, sentence))]
    medians = np.zeros(len(kbest))
    present = kbest.counts > 0
    medians[present] = in_order[(kbest.offsets[:-1] + (kbest.counts - 1) // 2)[present]]
    return medians
