"""How sure a difference is when the documents, not the sentences, are the sample.

Sentences of a document stand or fall together, so both tests draw whole documents: the sign-flip
test (would it matter which system a document's output came from?) and the bootstrap (how far would
the score move with other documents of the kind?). Every draw sums statistics, (D, S), and scores
the sums. The sign-flip test is approximate randomisation (Noreen 1989; Riezler and Maxwell 2005)
over documents: swapping the two systems' outputs of a document flips the sign of its part of the
difference where the score is a sum. Up to 20 documents it is exact randomisation. Items that stand
alone, such as contrastive ones, have the interval of Wilson and the sign test.

Riezler and Maxwell (2005), https://aclanthology.org/W05-0908; Koehn (2004),
https://aclanthology.org/W04-3250; Phipson and Smyth (2010), https://doi.org/10.2202/1544-6115.1585;
Wilson (1927), https://doi.org/10.1080/01621459.1927.10502953; McNemar (1947),
https://doi.org/10.1007/BF02295996, in its exact form, which is the sign test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FEWEST_DOCUMENTS = 10  # below, one document more or less decides
MOST_EXACT = 20  # documents whose 2**D patterns are all tried
DRAWS = 10_000
RESAMPLES = 1_000
# Share of texts without a true difference whose bootstrap p is below 0.05, by number of documents:
# of 2,000 texts with documents drawn from WMT23 Chinese-English, by BLEU of two systems whose
# outputs are swapped at random in each document; mean of two such pairs. Sign-flip test: 4% to 6%.
BOOTSTRAP_TYPE_I_ERRORS = {12: 0.28, 25: 0.22, 50: 0.18, 100: 0.15}

Statistics: TypeAlias = NDArray[Any]
SumsToScores: TypeAlias = Callable[[Statistics], NDArray[np.float64]]
"""Scores of summed statistics: (…, S) to (…)."""

_ROUNDING = 1e-12  # of a score; differences that are equal but for rounding are as large
_BLOCK = 2**20  # draws × documents held at once


def sign_flip_p_value(
    system: Statistics,
    baseline: Statistics,
    metric: SumsToScores,
    *,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> float | None:
    """Share of the ways to swap the two systems' documents that differ as much as observed.

    `system`, `baseline`: (D, S). Two-sided; a pattern with an equal difference counts, also if it
    is equal but for the rounding of sums of floats. All 2**D
    patterns up to 20 documents; above, `draws` of them, the observed one added to both counts, so
    that p is never 0. None below 10 documents, where no test could say much.
    O(patterns × D × S) time, flat memory.
    """
    n_documents = len(system)
    if n_documents < FEWEST_DOCUMENTS:
        return None
    exact = n_documents <= MOST_EXACT
    observed = _least_as_large(metric(system.sum(axis=0)), metric(baseline.sum(axis=0)))
    change, bits = system - baseline, np.arange(n_documents)
    as_far = tried = 0 if exact else 1
    # all patterns but their mirror images, which give the same difference: the last document stays
    for n in _blocks(2 ** (n_documents - 1) if exact else draws, n_documents):
        if exact:
            swapped = (np.arange(tried, tried + n)[:, None] >> bits) & 1
        else:
            swapped = rng.integers(2, size=(n, n_documents))
        moved = _sums(swapped, change)
        ours, theirs = system.sum(axis=0) - moved, baseline.sum(axis=0) + moved
        as_far += int(np.count_nonzero(abs(metric(ours) - metric(theirs)) >= observed))
        tried += n
    return as_far / tried


def bootstrap_p_value(
    system: float, baseline: float, draws: NDArray[np.float64], baseline_draws: NDArray[np.float64]
) -> float:
    """P of a difference of scores by paired bootstrap resampling of documents, as in sacrebleu.

    draws: (R,) scores of the system, and of the baseline, under the same resamples. With d the
    absolute differences under them, p is the share of resamples with
    d − mean(d) ≥ |observed difference|, the observed one added to both counts (Riezler and Maxwell
    2005; sacrebleu has >, so that a system against itself has the least p there and 1 here). Where
    the gain is large this is one tail of its distribution: about half the p of a two-sided test.
    With few documents it is lower still, for resampled sums vary less than those of new documents
    (`BOOTSTRAP_TYPE_I_ERRORS`). Koehn (2004) counts the resamples that the system wins, without
    shifting them. O(R).
    """
    differences = abs(draws - baseline_draws)
    observed = _least_as_large(np.asarray(system), np.asarray(baseline))
    as_far = np.count_nonzero(differences - differences.mean() >= observed)
    return (int(as_far) + 1) / (len(differences) + 1)


def sign_test_p_value(better: int, worse: int) -> float:
    """Two-sided sign test: the chance of counts as uneven if better and worse are equally likely.

    Documents that are equal do not count; 1 if all are. Exact; O(better + worse).
    """
    n, fewer = better + worse, min(better, worse)
    as_uneven = 2 * sum(math.comb(n, k) for k in range(fewer + 1))
    return float(min(1.0, as_uneven / 2**n))


def wilson_interval(successes: float, n: int) -> tuple[float, float]:
    """Ends of the 95% score interval of a proportion of n > 0 independent items.

    successes: 0…n; an item may count ½, which makes the interval wider than it need be.
    """
    z = NormalDist().inv_cdf(0.975)
    p, weight = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / weight
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / weight
    return max(0.0, centre - half), min(1.0, centre + half)


def sign_test(better: int, worse: int) -> float:
    """Two-sided p of so uneven a split if an item were as likely to be better as worse.

    Items that are neither do not count; 1 if all are. With outcomes right and wrong this is the
    exact test of McNemar.
    """
    if not better + worse:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(better, better + worse).pvalue)


def bootstrap(
    statistics: Statistics,
    metric: SumsToScores,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> NDArray[np.float64]:
    """Scores under `resamples` draws of D documents with replacement: (…, D, S) to (…, resamples).

    Leading axes (systems) see the same draws, so differences between their scores are paired.
    """
    n_documents = statistics.shape[-2]
    scores = []
    for n in _blocks(resamples, n_documents):
        drawn = rng.integers(n_documents, size=(n, n_documents))
        places = drawn + n_documents * np.arange(n)[:, None]
        times = np.bincount(places.ravel(), minlength=n * n_documents).reshape(n, n_documents)
        scores.append(metric(_sums(times, statistics)))
    return np.concatenate(scores, axis=-1)


def percentile_interval(scores: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the central 95% of resampled scores (R,), interpolated between neighbours."""
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def _least_as_large(
    system: NDArray[np.float64], baseline: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The least absolute difference that counts as one as large as that of two scores."""
    return np.asarray(abs(system - baseline) - _ROUNDING * np.maximum(abs(system), abs(baseline)))


def _blocks(total: int, n_documents: int) -> Iterator[int]:
    """Sizes that add up to `total`, each small enough for memory; they depend on D alone."""
    size = max(1, _BLOCK // n_documents)
    for first in range(0, total, size):
        yield min(size, total - first)


def _sums(times: NDArray[np.int64], statistics: Statistics) -> Statistics:
    """Statistics (…, n, S) with each document taken `times` (n, D) over, from (…, D, S).

    In float64, for which a fast product exists; whole numbers below 2**53 stay exact.
    """
    sums = times.astype(np.float64) @ statistics.astype(np.float64)
    return sums.astype(statistics.dtype)
