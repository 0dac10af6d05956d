"""Accuracy of language models that tell documents from others, and choose the next sentence.

Of telling documents from copies with permuted sentences, Ji et al. (2016) report the mean over
1,000 test sets, https://arxiv.org/abs/1511.03962, §4.2, and a z-test between models. z grows with
the number of *sets*, which is the experimenter's choice: it tells how well the mean over sets is
known, not whether other documents would agree. `rerank.metrics.significance` does.

Of choosing the next sentence among candidates, as Ghosh et al. (2016),
https://arxiv.org/abs/1602.06291, §4.2: in a block of k passages, D_d is the last sentence of
passage d, and row c of a score matrix holds the scores of all D_d in the context before D_c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

SETS = 1_000
Array = NDArray[np.float64]
Outcomes = NDArray[np.float64]  # 1 right, 0 wrong; in a tie ½, or 1 / n among n choices


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
