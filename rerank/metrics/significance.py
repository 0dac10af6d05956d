"""How sure a difference is when the documents, not the sentences, are the sample; and in words.

Sentences of a document stand or fall together, so both tests draw whole documents: the sign-flip
test (would it matter which system a document's output came from?), which is approximate
randomisation over documents, and the bootstrap (how far would the score move with other documents
of the kind?). Every draw sums statistics, (D, S), and scores the sums. Items that stand alone, such
as contrastive ones, have the interval of Wilson and the sign test.

Of telling documents from copies with permuted sentences, Ji et al. (2016) report the mean accuracy
over 1,000 test sets, https://arxiv.org/abs/1511.03962, §4.2, and a z-test between models. z grows
with the number of *sets*, which is the experimenter's choice: it tells how well the mean over sets
is known, not whether other documents would agree. Of choosing the next sentence among candidates,
as Ghosh et al. (2016), https://arxiv.org/abs/1602.06291, §4.2: in a block of k passages, D_d is the
last sentence of passage d, and row c of a score matrix holds the scores of all D_d in the context
before D_c.

Riezler and Maxwell (2005), https://aclanthology.org/W05-0908; Koehn (2004),
https://aclanthology.org/W04-3250; Phipson and Smyth (2010), https://doi.org/10.2202/1544-6115.1585;
Wilson (1927), https://doi.org/10.1080/01621459.1927.10502953; McNemar (1947),
https://doi.org/10.1007/BF02295996, in its exact form, which is the sign test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FEWEST_DOCUMENTS = 10  # below, one document more or less decides
MOST_EXACT = 20  # documents whose 2**D patterns are all tried
DRAWS = 10_000
RESAMPLES = 1_000
SETS = 1_000  # of documents and permutations, of which accuracies are compared

Statistics: TypeAlias = NDArray[Any]
Array = NDArray[np.float64]
Outcomes = NDArray[np.float64]  # 1 right, 0 wrong; in a tie ½, or 1 / n among n choices
SumsToScores: TypeAlias = Callable[[Statistics], NDArray[np.float64]]
"""Scores of summed statistics: (…, S) to (…)."""

SIGNIFICANT = 0.05  # p of a difference that is called significant
MIXED = "mixed: "  # a verdict of metrics that differ significantly in both directions
_OTHER_LENGTH = 0.01  # difference of length ratios that is worth a word
_IDLE = 0.005  # share of choices that depend on a feature which contributes nothing
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

    `system`, `baseline`: (D, S). Two-sided; a pattern with an equal difference counts. All 2**D
    patterns up to 20 documents; above, `draws` of them, the observed pattern added to both counts,
    so that p is never 0. None below 10 documents. O(patterns × D × S) time, flat memory.
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

    draws: (R,) scores under the same resamples. With d the absolute differences under them, p is
    the share of resamples with d − mean(d) ≥ |observed difference|, the observed difference added
    to both counts (Riezler and Maxwell 2005; sacrebleu has >, so that a system against itself has
    the least p there and 1 here). This is one tail of the distribution: about half the p of a
    two-sided test, and lower still with few documents. Of texts without a true difference it is
    below 0.05 in 28% with 12 documents, 22% with 25, 18% with 50 and 15% with 100 (2,000 texts of
    documents of WMT23 Chinese-English, whose outputs are swapped at random); the sign-flip test
    in 4% to 6%.
    """
    differences = abs(draws - baseline_draws)
    observed = _least_as_large(np.asarray(system), np.asarray(baseline))
    as_far = np.count_nonzero(differences - differences.mean() >= observed)
    return (int(as_far) + 1) / (len(differences) + 1)


def sign_test(better: int, worse: int) -> float:
    """Two-sided p of so uneven a split if an item were as likely to be better as worse.

    Items that are neither do not count; 1 if all are. With outcomes right and wrong this is the
    exact test of McNemar. O(better + worse).
    """
    n, fewer = better + worse, min(better, worse)
    ways = as_uneven = 1
    for k in range(fewer):
        ways = ways * (n - k) // (k + 1)  # of choosing k + 1 of n
        as_uneven += ways
    return float(min(1.0, 2 * as_uneven / 2**n))


def wilson_interval(successes: float, n: int) -> tuple[float, float]:
    """Ends of the 95% score interval of a proportion of n > 0 independent items.

    successes: 0…n; an item may count ½, which makes the interval wider than it need be.
    """
    z = NormalDist().inv_cdf(0.975)
    p, weight = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / weight
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / weight
    return max(0.0, centre - half), min(1.0, centre + half)


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


# Accuracies of language models


def accuracies_of_sets(
    outcomes: Sequence[Sequence[Outcomes]], *, rng: np.random.Generator, sets: int = SETS
) -> NDArray[np.float64]:
    """Accuracies (M, sets) of M models on the same test sets. O(M sets D) time.

    outcomes: by model, by document (D of them), of P_d ≥ 1 permutations. A set has D documents
    drawn with replacement, and for each draw one of the document's permutations.
    """
    sizes = np.array([len(permutations) for permutations in outcomes[0]])
    begins = np.cumsum(sizes) - sizes
    columns = np.array([np.concatenate(documents) for documents in outcomes])
    accuracies = np.empty((len(outcomes), sets))
    for b in range(sets):
        drawn = rng.integers(len(sizes), size=len(sizes))
        accuracies[:, b] = columns[:, begins[drawn] + rng.integers(sizes[drawn])].mean(axis=1)
    return accuracies


def z_test(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> tuple[float, float] | None:
    """Statistic z and one-sided p of the difference of two means over samples (B,) each.

    z = (m₁ − m₂) / √((s₁² + s₂²) / B), s² with B − 1 degrees of freedom; p = 1 − Φ(z), 0 where it
    underflows. None where neither sample varies.
    """
    variance = (np.var(higher, ddof=1) + np.var(lower, ddof=1)) / len(higher)
    if not variance > 0:
        return None
    z = float((higher.mean() - lower.mean()) / math.sqrt(variance))
    return z, NormalDist().cdf(-z)


def share(statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    """Accuracies (…) of statistics (…, 2): things that are right, and things."""
    return np.asarray(statistics[..., 0] / statistics[..., 1])


def normalised(log_probs: Array, alone: Array) -> Array:
    """Scores (k, k) of equation 4: log p(D_d | c) less the log of its mean over the k contexts.

    The paper prints D_i with its context alone; here candidates are compared, as its text says.
    """
    most = log_probs.max(axis=0)
    return np.asarray(log_probs - (most + np.log(np.exp(log_probs - most).mean(axis=0))))


SCORES: Mapping[str, Callable[[Array, Array], Array]] = {
    "normalised": normalised,
    "log_p": lambda log_probs, alone: log_probs,
    "pmi": lambda log_probs, alone: log_probs - alone,
}
"""Scores (k, k) by log p(D_d | context c), (k, k), and log p(D_d) at a beginning, (k,)."""


def outcomes_of(scores: Array) -> Array:
    """(k,) outcomes of a matrix of scores (k, k): 1 right, 0 wrong, 1 / n in a tie of n choices."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(np.diagonal(best) / best.sum(axis=1))


# Verdicts


@dataclass(frozen=True, slots=True)
class Gain:
    """What a system gains over another in a metric; positive is better. p: None without a test."""

    metric: str
    difference: float
    p: float | None

    @classmethod
    def of_error(cls, metric: str, difference: float, error: float, n_documents: int) -> Gain:
        """A gain, tested by its standard error against the normal distribution; not of few."""
        if n_documents < FEWEST_DOCUMENTS:
            return cls(metric, difference, None)
        if error > 0:
            return cls(metric, difference, 2 * NormalDist().cdf(-abs(difference) / error))
        return cls(metric, difference, 1.0 if difference == 0 else None)

    @property
    def shown(self) -> float:
        """The difference as it is printed, so that equal figures are no gain."""
        return round(self.difference, 2)

    @property
    def significant(self) -> bool:
        """Whether chance hardly explains the gain."""
        return self.p is not None and self.p < SIGNIFICANT


def verdict(
    gains: Sequence[Gain],
    rest: Sequence[Gain] = (),
    longer: float = 0.0,
    others: Sequence[Gain] = (),
) -> str:
    """Whether a system is better than another, by the tests of its gains.

    gains: in the metrics that decide: those that were optimised, or BLEU; rest: in other metrics;
    longer: difference of the length ratios; others: in scores that may be better or worse if higher
    """
    both = [*gains, *rest]
    tested = any(gain.p is not None for gain in both)
    if not any(gain.shown for gain in both):
        line = "no difference"
    elif tested:
        line = _tested(gains, both, longer)
    else:
        parts = [_in_direction(both, sign) for sign in (1, -1)]
        line = ", ".join(filter(None, parts)) + (_length(longer) if all(parts) else "")
    for gain in others:
        if gain.significant:
            line += f"; {gain.metric} {'higher' if gain.difference > 0 else 'lower'}, significant"
    if tested or line == "no difference":
        return line
    return f"{line}; not tested: fewer than {FEWEST_DOCUMENTS} documents"


def judged(gain: Gain) -> str:
    """The verdict of a gain, with its number and, if it was tested, p."""
    p = f", {p_text(gain.p)}" if gain.p is not None and gain.shown else ""
    return f"{verdict([gain])} ({gain.metric} {gain.difference:+.2f}{p})"


def _tested(gains: Sequence[Gain], both: Sequence[Gain], longer: float) -> str:
    """The direction of the gains that decide, if they agree; then all metrics that differ."""
    signs = {1 if gain.difference > 0 else -1 for gain in gains if gain.significant}
    sign = signs.pop() if len(signs) == 1 else 0
    certain = [gain for gain in both if gain.significant]
    unsure = [gain for gain in both if not gain.significant]
    if sign:
        alike = [gain.metric for gain in certain if gain.difference * sign > 0]
        rest = [gain.metric for gain in unsure if gain.difference * sign >= 0]
        head = f"{'better' if sign > 0 else 'worse'}, significant in {_listed(alike)}"
        head += f", not in {_listed(rest)}" if rest else ""
        certain = [gain for gain in certain if gain.difference * sign < 0]
    else:
        names = _listed([gain.metric for gain in unsure])
        head = f"no significant difference in {names}" if names else ""
    mixed = ""
    if not sign and len({gain.difference > 0 for gain in certain}) > 1:
        certain.sort(key=lambda gain: gain.difference < 0)
        told = [
            f"{_in_direction([x], 1) or _in_direction([x], -1)} ({p_text(x.p)})" for x in certain
        ]
        mixed, certain = f"{MIXED}{', '.join(told)}", []
    differing = [_in_direction(certain, way, ", significant") for way in (1, -1)]
    differing.append(_in_direction(unsure, -sign, ", not significant"))
    length = _length(longer) if mixed or any(differing) else ""
    return "; ".join(filter(None, [mixed, head, *differing])) + length


def _in_direction(gains: Sequence[Gain], sign: int, test: str = "") -> str:
    """`BLEU and TER better` and what the test says, of the gains of a sign; '' without any."""
    names = [gain.metric for gain in gains if gain.difference * sign > 0]
    return f"{_listed(names)} {'better' if sign > 0 else 'worse'}{test}" if names else ""


def answer(verdict: str) -> tuple[str, str]:
    """What a verdict answers to "is it better?", and its direction: `up`, `down` or `same`.

    "but": another metric differs significantly in the other direction.
    """
    if verdict.startswith(MIXED):
        return "Mixed", "same"
    for word, other, short, direction in (
        ("better", "worse", "Yes", "up"),
        ("worse", "better", "No", "down"),
    ):
        if verdict.startswith(word):
            return f"{short}{', but' * (f'{other}, significant' in verdict)}", direction
    return "No" if verdict == "no difference" else "Not certain", "same"


def idle(models: Sequence[tuple[str, float, int]], sentences: int) -> str:
    """Which language models contribute nothing to the choices of sentences; '' for none.

    models: name, weight, and number of choices that would be others without the model's score.
    """
    lines = [
        f"your language model {name} contributes nothing (weight {weight:.3g}): without it "
        f"{changed:,} of {sentences:,} choices would be others"
        for name, weight, changed in models
        if changed < _IDLE * sentences
    ]
    return "; ".join(lines)


def p_text(p: float | None) -> str:
    """`p 0.042` or `p < 0.001`; '' for None."""
    return "" if p is None else f"p {p:.3f}" if p >= 0.001 else "p < 0.001"


def _length(longer: float) -> str:
    """What may explain that metrics differ: another length of the output."""
    if abs(longer) < _OTHER_LENGTH:
        return ""
    return f"; the output is {'longer' if longer > 0 else 'shorter'}"


def _listed(names: Sequence[str]) -> str:
    """`BLEU, chrF and TER`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
