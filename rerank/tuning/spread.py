"""The spread of minimum Bayes risk decoding, chosen by a corpus metric on held-out documents.

The spread is the standard deviation within a list to which scores are scaled before they become
probabilities (`decoders.mbr`). Its default is left only for a spread that is better by more than
one standard error of the difference: the rule of Breiman et al. (1984), "Classification and
Regression Trees", §3.4.3, towards the default. The error is that of the jackknife over folds, which
are documents or, where these are few, blocks of sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decoders.table import SPREAD
from rerank.metrics import Metric, Rows

SPREADS = (SPREAD, 0.35, 0.5, 0.7, 1.0, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0)  # the default first
FEWEST, BLOCKS, MOST = 4, 10, 20  # documents for folds of documents, else blocks; folds at most


@dataclass(frozen=True, slots=True)
class SpreadChoice:
    """A chosen spread of `SPREADS`, and what it brings on folds that it was not chosen on.

    mbr: score, each fold under the spread chosen on the others; plain: of the paths of highest
    score; scores: (C,) under each of `SPREADS`; all as published. gain: of mbr over plain, above 0
    if mbr is better, and its standard error
    """

    spread: float
    mbr: float
    plain: float
    scores: tuple[float, ...]
    gain: float
    error: float
    folds: int

    def by_spread(self) -> dict[str, float]:
        """`scores` by spread, the smallest first."""
        return {f"{one:g}": score for one, score in sorted(zip(SPREADS, self.scores, strict=True))}

    def to_text(self) -> str:
        """One line for people."""
        kept = "the default" if self.spread == SPREAD else f"better than {SPREAD:g}, the default"
        return (
            f"spread {self.spread:g}, {kept}; held out: mbr {self.mbr:.2f}, path of highest score "
            f"{self.plain:.2f}, gain {self.gain:.2f} ± {self.error:.2f} ({self.folds} folds)"
        )

    def to_provenance(self) -> dict[str, object]:
        """Entry of a weights file."""
        held_out = {"mbr": self.mbr, "highest_score": self.plain, "gain": self.gain}
        held_out |= {"gain_error": self.error, "folds": self.folds}
        return {"held_out": held_out, "by_spread": self.by_spread()}


def folds_of(sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Numbers of the sentences of each fold, given how many each document has.

    Whole documents in a row, at most `MOST` folds; with fewer than `FEWEST` documents `BLOCKS`
    blocks of sentences in a row.
    """
    numbers = np.arange(sum(sizes))
    if len(sizes) < FEWEST:
        blocks = np.array_split(numbers, BLOCKS)
    else:
        last = [group[-1] for group in np.array_split(np.arange(len(sizes)), MOST) if len(group)]
        blocks = np.split(numbers, np.cumsum(sizes)[last][:-1])
    return [block for block in blocks if len(block)]


def choose_spread(sums: Rows, plain: Rows, metric: Metric) -> SpreadChoice:
    """The choice, given statistics (C, G, W) of the C `SPREADS` on G folds, and of plain (G, W).

    The default, too, where choosing is no better than the default on held-out folds. O(C G²)
    scores.
    """
    folds = np.arange(len(plain))
    chosen = [best(np.delete(sums, g, axis=1), metric) for g in folds]
    both = np.stack([sums[chosen, folds], plain])  # (2, G, W)
    mbr, highest = metric.scores(both.sum(axis=1)).tolist()
    scores = metric.scores(sums.sum(axis=1)).tolist()
    return SpreadChoice(
        spread=SPREADS[best(sums, metric)] if mbr > scores[0] else SPREAD,
        mbr=metric.shown(mbr),
        plain=metric.shown(highest),
        scores=tuple(map(metric.shown, scores)),
        gain=mbr - highest,
        error=difference_error(both, metric),
        folds=len(folds),
    )


def best(sums: Rows, metric: Metric) -> int:
    """Which of C settings, with statistics (C, G, W) on G folds, is best.

    The first, or the best of those that are better by more than a standard error of the difference;
    of one fold the first.
    """
    if sums.shape[1] < 2:
        return 0
    scores = metric.scores(sums.sum(axis=1))
    errors = np.array([difference_error(sums[[c, 0]], metric) for c in range(len(sums))])
    return int(np.where(scores - scores[0] > errors, scores, scores[0]).argmax())


def difference_error(sums: Rows, metric: Metric) -> float:
    """Standard error of the difference of two scores, with statistics (2, G, W) on G folds.

    The jackknife: B. Efron, "The jackknife, the bootstrap and other resampling plans", 1982, §3.
    """
    scores = metric.scores(sums.sum(axis=1, keepdims=True) - sums)  # without one fold each
    differences, folds = scores[0] - scores[1], sums.shape[1]
    return float(np.sqrt((folds - 1) / folds * ((differences - differences.mean()) ** 2).sum()))
