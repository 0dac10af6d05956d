"""The scale α of scores as log-probabilities, by likelihood.

BLEU determines weights up to a positive factor only; decoders that sample from p(candidate) ∝
exp(α · score) need the factor α too. Expected BLEU would drive it to infinity, so it is fitted by
the likelihood of the best candidates of each list (in equal shares where several have the best
quality). With the scores s and the best candidates B_t of each list t it is

    L(α) = Σ_t (mean of α s over B_t − log Σ_k exp(α s_k)),

concave, with slope Σ_t (mean of s over B_t − E_α s) and curvature −Σ_t Var_α s. Scores that depend
on context are those after the decoded path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of, runs_of_lists
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.notices import Notices
from rerank.tuning.objective import sentence_bleu
from rerank.tuning.pool import Choices, TuningSet

RANGE = 1e4  # α is sought within this factor of 1 ÷ spread of the scores, up and down
_BLOCK = 1 << 16  # candidates whose probabilities are held at once
_HALVINGS = 60  # of the range, on a logarithmic scale
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scale:
    """A fitted α, its standard error by the curvature, and how many lists it was fitted on."""

    alpha: float
    error: float
    n_lists: int

    def to_text(self) -> str:
        """One line for people."""
        return (
            f"alpha {self.alpha:.3g} ± {self.error:.2g} "
            f"(likelihood of the best candidates of {self.n_lists} lists)"
        )

    def to_provenance(self) -> dict[str, object]:
        """What a weights file says of it."""
        return {"alpha_error": self.error, "alpha_lists": self.n_lists}


def scale_of_path(
    corpus: TuningSet, path: Choices, weights: Floats, notices: Notices
) -> Scale | None:
    """The scale of weights (F,), fitted to the candidates of best sentence BLEU under a path."""
    offsets = offsets_of(np.concatenate([np.diff(each.offsets) for each in corpus.documents]))
    scores, quality = (corpus.store.working((offsets[-1],), np.float64) for _ in range(2))
    end = 0
    for document, rows, choices in zip(corpus.documents, corpus.statistics, path, strict=True):
        begin, end = end, end + len(rows)
        scores[begin:end] = document.under(choices) @ weights + document.sparse
        quality[begin:end] = sentence_bleu(rows)
    corpus.store.release()
    return fit_scale(scores, quality, offsets, notices, corpus.store)


def fit_scale(
    scores: Floats,
    quality: Floats,
    offsets: Integers,
    notices: Notices,
    store: ArrayStore = IN_MEMORY,
) -> Scale | None:
    """The most likely scale; None, with a notice, where none within `RANGE` is.

    scores: (n,) natural logarithms, unnormalised; −inf is no candidate at any scale. quality: (n,)
    larger is better. List t is offsets[t]:offsets[t + 1]. Lists in which all candidates have one
    quality or one score are left out. O(n) time for each of 60 halvings of the range.
    """
    lists = _Lists.of(scores, quality, offsets, store)
    if lists is None:
        notices.add("no-alpha", why="in no list do both BLEU and the score differ")
        return None
    unit = math.ldexp(1.0, math.frexp(float(lists.scores.min()))[1] - 1)  # squares need the room
    lists.scores[:] /= unit
    spread = math.sqrt(lists.variance(0.0) / lists.n)
    low, high = 1 / (RANGE * spread), RANGE / spread
    if lists.slope(low) <= 0:
        notices.add("no-alpha", why="the best candidates do not score above the others")
        return None
    if lists.slope(high) >= 0:
        notices.add("no-alpha", why="the best candidates score highest, at any scale")
        return None
    for _ in range(_HALVINGS):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if lists.slope(middle) > 0 else (low, middle)
    return Scale(low / unit, 1 / math.sqrt(lists.variance(low)) / unit, lists.n)


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """The S lists in which scores and qualities differ, one after the other.

    scores: (n,) less the largest of their list; shares: (n,) of each candidate among the best, a
    sum of 1 in each list; memory: (n,) for terms of a sum
    """

    scores: Floats
    shares: Floats
    offsets: Integers
    memory: Floats

    @classmethod
    def of(
        cls, scores: Floats, quality: Floats, offsets: Integers, store: ArrayStore
    ) -> _Lists | None:
        """Those lists among all; None if there is no such list."""
        kept, shares, memory = (store.working(scores.shape, np.float64) for _ in range(3))
        ends = [0]
        for start, end in pairwise(offsets.tolist()):
            possible = scores[start:end] > -np.inf
            values, good = scores[start:end][possible], quality[start:end][possible]
            if len(values) and values.min() < values.max() and good.min() < good.max():
                best = good == good.max()
                place = slice(ends[-1], ends[-1] + len(values))
                kept[place], shares[place] = values - values.max(), best / best.sum()
                ends.append(place.stop)
        if len(ends) == 1:
            return None
        n = ends[-1]
        return cls(kept[:n], shares[:n], np.array(ends), memory[:n])

    @property
    def n(self) -> int:
        """S."""
        return len(self.offsets) - 1

    def slope(self, alpha: float) -> float:
        """L'(α)."""
        np.multiply(self.shares, self.scores, out=self.memory)
        means = np.concatenate([means for _, _, means in self._probabilities(alpha)])
        return float(self.memory.sum() - means.sum())

    def variance(self, alpha: float) -> float:
        """−L''(α), the sum of the variances of the score."""
        for offsets, probabilities, means in self._probabilities(alpha):
            rows, means = slice(offsets[0], offsets[-1]), np.repeat(means, np.diff(offsets))
            self.memory[rows] = probabilities * (self.scores[rows] - means) ** 2
        return float(self.memory.sum())

    def _probabilities(self, alpha: float) -> Iterator[tuple[Integers, Floats, Floats]]:
        """Runs of lists: their offsets, probabilities of the candidates, mean score of each."""
        for begin, end in runs_of_lists(self.offsets, _BLOCK):
            offsets = self.offsets[begin : end + 1]
            scores, starts = self.scores[offsets[0] : offsets[-1]], offsets[:-1] - offsets[0]
            powers = np.exp(alpha * scores)  # at most 1, and 1 at least once in a list
            sums = np.repeat(np.add.reduceat(powers, starts), np.diff(offsets))
            probabilities = powers / sums
            yield offsets, probabilities, np.add.reduceat(probabilities * scores, starts)
