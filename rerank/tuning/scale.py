"""The scale α of scores as log-probabilities, by likelihood.

BLEU determines weights up to a positive factor only; decoders that sample from p(candidate) ∝
exp(α · score) need the factor α too. Expected BLEU would drive it to infinity, so it is fitted by
the likelihood of the best candidates of each list (in equal shares where several have the best
quality). With the scores s and the best candidates B_t of each list t it is

    L(α) = Σ_t (mean of α s over B_t − log Σ_k exp(α s_k)),

concave, with slope Σ_t (mean of s over B_t − E_α s) and curvature −Σ_t Var_α s. Where the scores
depend on context they are those after the decoded path: this is the likelihood of each list given
the choices before it, not that of a path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import runs_of_lists
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.metrics.bleu import WIDTH, corpus_bleu
from rerank.notices import Notices
from rerank.tuning.objective import Sums

RANGE = 1e4  # α is sought within this factor of 1 ÷ spread of the scores, up and down
_BLOCK = 1 << 16  # candidates whose probabilities are held at once
_HALVINGS = 60  # of the range, on a logarithmic scale


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


def fit_scale(
    scores: NDArray[np.float64],
    quality: NDArray[np.float64],
    offsets: NDArray[np.int64],
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


def bleu_quality(statistics: Sums) -> NDArray[np.float64]:
    """BLEU (n,) of each candidate by itself, of statistics (n, W)."""
    counts = statistics[:, :WIDTH].astype(np.int64, copy=False)
    return corpus_bleu(counts, effective_order=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """The lists in which scores and qualities differ, one after the other.

    scores: (n,) less the largest of their list; shares: (n,) of each candidate among the best, a
    sum of 1 in each list; offsets: (S + 1,) rows of the lists; memory: (n,) for terms of a sum.
    """

    scores: NDArray[np.float64]
    shares: NDArray[np.float64]
    offsets: NDArray[np.int64]
    memory: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        quality: NDArray[np.float64],
        offsets: NDArray[np.int64],
        store: ArrayStore,
    ) -> _Lists | None:
        """Those lists among all; None if there is no such list."""
        kept, shares, memory = (store.working(scores.shape, np.float64) for _ in range(3))
        ends = [0]
        for start, end in pairwise(offsets.tolist()):
            possible = scores[start:end] > -np.inf
            own, good = scores[start:end][possible], quality[start:end][possible]
            if len(own) and own.min() < own.max() and good.min() < good.max():
                best = good == good.max()
                place = slice(ends[-1], ends[-1] + len(own))
                kept[place], shares[place] = own - own.max(), best / best.sum()
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
        for lists, probabilities, means in self._probabilities(alpha):
            rows = slice(self.offsets[lists.start], self.offsets[lists.stop])
            sizes = np.diff(self.offsets[lists.start : lists.stop + 1])
            self.memory[rows] = probabilities * (self.scores[rows] - np.repeat(means, sizes)) ** 2
        return float(self.memory.sum())

    def _probabilities(
        self, alpha: float
    ) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
        """Runs of lists: which, the probabilities of their candidates, their mean scores."""
        for begin, end in runs_of_lists(self.offsets, _BLOCK):
            own = self.offsets[begin : end + 1]
            scores, starts = self.scores[own[0] : own[-1]], own[:-1] - own[0]
            powers = np.exp(alpha * scores)  # at most 1, and 1 at least once in a list
            probabilities = powers / np.repeat(np.add.reduceat(powers, starts), np.diff(own))
            yield slice(begin, end), probabilities, np.add.reduceat(probabilities * scores, starts)
