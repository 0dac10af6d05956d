"""Which outputs of several systems agree most with those of the others.

For a sentence that is the mean utility against them. BLEU of a document is no mean over its
sentences: n-grams and lengths are summed over all of it. So minimum Bayes risk (Kumar & Byrne 2004,
https://aclanthology.org/N04-1022) is sought for the document: choices x, an output of each
sentence, of the greatest expected utility

    U(x) = mean over systems j of ln BLEU(x, output of system j).

All systems are as likely to be right, but outliers are left out: those whose mean BLEU with the
other systems, as translation and as reference, is below half of the median; logarithms would give
one that is garbage a large say. Systems without outputs of the document are left out, too.
BLEU is sacrebleu's, but that ε = 0.1 is added to the matches and to the n-grams of every order,
since short documents may share no 4-gram (Lin & Och 2004, https://aclanthology.org/C04-1072), and
that an empty document counts as ε words in the brevity penalty.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit
from rerank.corpus.kbest import KBest
from rerank.metrics import bleu
from rerank.metrics.consensus import ExpectedUtility, Floats, Integers, PairwiseBleu

Statistics = NDArray[np.int32]
EPSILON = 0.1
OUTLIER = 0.5  # of the median of the systems' mean BLEU with the others
_LEAST_GAIN = 1e-12  # of other choices: less is rounding


def leave_one_out(utility: ExpectedUtility, t: int, votes: Floats) -> Floats:
    """Mean utility (K,) of each candidate of sentence t against the outputs of the other systems.

    votes: (K,) numbers of systems, M in all, whose output each candidate is. Of the M − 1 others of
    a candidate, votes − 1 have the same text. 0 where M = 1. utility: `PairwiseBleu` or
    `PairwiseChrf`; the cost is that of one expectation, O(K² V / 63) for V different n-grams.
    """
    systems = float(votes.sum())
    if systems == 1:
        return np.zeros_like(votes)
    expected = utility.expected(t, votes / systems)
    own = 100.0 * (utility.words(t) > 0)  # of a text against itself
    return np.maximum((systems * expected - own) / (systems - 1), 0.0)  # rounding goes below


def document_consensus(kbest: KBest, indicators: Floats, utility: Floats) -> Floats:
    """W · (U(x with this candidate) − U(x)) of each candidate (n,), in natural logarithms.

    indicators: (n, M), 1 where a candidate is the output of a system; utility: (n,), whose best
    candidates are the first choices. From these, x is improved sentence by sentence until no other
    candidate of one sentence is better: candidates of x have 0, others less. This is approximate:
    changes of several sentences at once may be better. Of equal candidates the first one counts. A
    system without output of a sentence is left out there. W, the mean number of words of the
    systems' documents, makes values of long and short documents comparable.

    O(K² V / 63) time a sentence for the matches of V different n-grams, then O(n M) a pass over the
    document, of which there are few; O(n M) memory.
    """
    if not kbest.n:
        return np.zeros(0)
    indicators = indicators[:, indicators.any(axis=0)]
    offsets = np.unique(kbest.offsets)  # of sentences with candidates
    statistics = _statistics(kbest, indicators, offsets)
    spans = pairwise(offsets.tolist())
    choices = np.array([a + utility[a:b].argmax() for a, b in spans], np.int64)
    sums = statistics[choices].sum(axis=0, dtype=np.float64)
    of_systems = [statistics[output > 0].sum(axis=0, dtype=float) for output in indicators.T]
    shares = _shares(np.array(of_systems))
    values = np.zeros(kbest.n)
    while _improve(statistics, offsets, shares, choices, sums, values):
        pass
    return values * float(shares @ sums[:, -1])


def _statistics(kbest: KBest, indicators: Floats, offsets: Integers) -> Statistics:
    """BLEU statistics (n, M, WIDTH) of each candidate against the output of each system."""
    utility = PairwiseBleu(kbest)
    found = np.zeros((*indicators.shape, bleu.WIDTH), np.int32)
    for s, (a, b) in enumerate(pairwise(offsets.tolist())):
        own, words = indicators[a:b].argmax(axis=0), utility.words(s).astype(np.int64)
        part = found[a:b]
        part[..., : bleu.ORDER] = utility.matches(s)[:, own]
        totals = np.maximum(words[:, None] - np.arange(bleu.ORDER), 0)
        part[..., bleu.ORDER : -1] = totals[:, None]
        part[..., -1] = words[own]
        part[:, ~indicators[a:b].any(axis=0)] = 0
    return found


@njit(cache=True)
def _improve(
    statistics: Statistics,
    offsets: Integers,
    shares: Floats,
    choices: Integers,
    sums: Floats,
    values: Floats,
) -> bool:
    """Go through the document once, taking better candidates; whether there were any.

    values: (n,) is filled with U of each candidate less U of the choice it was compared with.
    """
    changed, others, added = False, sums.copy(), sums.copy()
    for t in range(len(choices)):
        chosen, best, most = choices[t], choices[t], _LEAST_GAIN
        others[:] = sums - statistics[chosen]
        base = _utility(sums, shares)
        for k in range(offsets[t], offsets[t + 1]):
            added[:] = others + statistics[k]
            values[k] = _utility(added, shares) - base
            if values[k] > most:
                best, most = k, values[k]
            elif k != chosen:  # of choices that are as good, x has one
                values[k] = min(values[k], -_LEAST_GAIN)
        if best != chosen:
            choices[t], changed = best, True
            sums[:] = others + statistics[best]
    return changed


@njit(cache=True)
def _shares(statistics: Floats) -> Floats:
    """Share (M,) of each system in U, from statistics (M, M, WIDTH) of all pairs of systems."""
    size = len(statistics)
    agreements = np.zeros(size)
    for i in range(size):
        for j in range(size):
            if i != j:
                agreement = math.exp(_log_bleu(statistics[i, j]))
                agreements[i] += agreement
                agreements[j] += agreement
    kept = (agreements >= OUTLIER * np.median(agreements)).astype(np.float64)
    shares: Floats = kept / kept.sum()
    return shares


@njit(cache=True)
def _utility(sums: Floats, shares: Floats) -> float:
    """Mean ln BLEU of summed statistics (M, WIDTH)."""
    total = 0.0
    for j in range(len(shares)):
        total += shares[j] * _log_bleu(sums[j])
    return total


@njit(cache=True)
def _log_bleu(statistics: Floats) -> float:
    """Smoothed ln BLEU of statistics (WIDTH,): matches, n-grams, words of the reference."""
    total, order = 0.0, len(statistics) // 2
    for n in range(order):
        total += math.log((statistics[n] + EPSILON) / (statistics[order + n] + EPSILON)) / order
    words, reference = statistics[order], statistics[2 * order]
    return total + float(min(0.0, 1.0 - reference / max(words, EPSILON)))
