"""The scale of scores as log-probabilities: α by likelihood, the spread of mbr by held-out metrics.

BLEU determines weights up to a positive factor only; decoders that sample from p(candidate) ∝
exp(α · score) need the factor α too. Expected BLEU would drive it to infinity, so it is fitted by
the likelihood of the best candidates of each list (in equal shares where several have the best
quality). With the scores s and the best candidates B_t of each list t it is

    L(α) = Σ_t (mean of α s over B_t − log Σ_k exp(α s_k)),

concave, with slope Σ_t (mean of s over B_t − E_α s) and curvature −Σ_t Var_α s. Where the scores
depend on context they are those after the decoded path: this is the likelihood of each list given
the choices before it, not that of a path.

The spread of minimum Bayes risk decoding is the standard deviation within a list to which scores
are scaled before they become probabilities (`decoders.mbr`). Its default is left only for a spread
that is better by more than one standard error of the difference: the rule of Breiman et al. (1984),
"Classification and Regression Trees", §3.4.3, towards the default. The error is that of the
jackknife over folds, which are documents or, where these are few, blocks of sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from decoders.table import SPREAD
from rerank.corpus.columns import runs_of_lists
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.metrics import Metric, Rows
from rerank.metrics.bleu import WIDTH, corpus_bleu
from rerank.metrics.significance import FEWEST_DOCUMENTS
from rerank.metrics.verdict import Gain, judged
from rerank.notices import Notices
from rerank.tuning.objective import Sums

_CURE = "where one is needed, give --alpha"
RANGE = 1e4  # α is sought within this factor of 1 ÷ spread of the scores, up and down
_BLOCK = 1 << 16  # candidates whose probabilities are held at once
_HALVINGS = 60  # of the range, on a logarithmic scale
SPREADS = (SPREAD, 0.35, 0.5, 0.7, 1.0, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0)  # the default first
FEWEST, BLOCKS, MOST = 4, 10, 20  # documents for folds of documents, else blocks; folds at most


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
        notices.add(f"no alpha is fitted: in no list do both BLEU and the score differ; {_CURE}")
        return None
    unit = math.ldexp(1.0, math.frexp(float(lists.scores.min()))[1] - 1)  # squares need the room
    lists.scores[:] /= unit
    spread = math.sqrt(lists.variance(0.0) / lists.n)
    low, high = 1 / (RANGE * spread), RANGE / spread
    if lists.slope(low) <= 0:
        notices.add(
            f"no alpha is fitted: the best candidates do not score above the others; {_CURE}"
        )
        return None
    if lists.slope(high) >= 0:
        notices.add(f"no alpha is fitted: the best candidates score highest, at any scale; {_CURE}")
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


# The spread of minimum Bayes risk decoding


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

    def verdict(self, metric: str) -> str:
        """Whether mbr is better than the paths of highest score, in words."""
        gain = Gain.of_error(metric, self.gain, self.error)
        if self.folds < FEWEST_DOCUMENTS:
            gain = Gain(metric, self.gain, None)
        return f"mbr against the paths of highest score, held out: {judged(gain)}"

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


def choose_spread(documents: Sequence[Rows], metric: Metric) -> SpreadChoice:
    """The choice, given statistics (C + 1, T, W) of each document's sentences.

    They are those under the C `SPREADS`, and of the paths of highest score. The default is chosen,
    too, where choosing is no better than the default on held-out folds. O(C G²) scores for G folds.
    """
    of_folds = folds_of([one.shape[1] for one in documents])
    whole = np.concatenate(documents, axis=1)
    every = np.stack([whole[:, fold].sum(axis=1) for fold in of_folds], axis=1)
    sums, plain, folds = every[:-1], every[-1], np.arange(len(of_folds))
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
