"""Choice of the next sentence among candidates, as Ghosh et al. (2016) score it.

https://arxiv.org/abs/1602.06291, §4.2. In a block of k passages, D_d is the last sentence of
passage d, and context c what is before D_c. Row c of a score matrix holds the scores of all D_d
in context c; the right choice there is D_c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def normalised(log_probs: Array, alone: Array) -> Array:
    """Scores (k, k) of equation 4: log p(D_d | c) less the log of its mean over the k contexts.

    log_probs: (k, k) log p(D_d | context c). The paper prints D_i with its own context alone; the
    candidates of a context are compared here, as its text says.
    """
    most = log_probs.max(axis=0)
    found: Array = log_probs - (most + np.log(np.exp(log_probs - most).mean(axis=0)))
    return found


def unnormalised(log_probs: Array, alone: Array) -> Array:
    """Scores (k, k) log p(D_d | context c), the numerator of equation 4."""
    return log_probs


def pointwise_information(log_probs: Array, alone: Array) -> Array:
    """Scores (k, k) log p(D_d | context c) − log p(D_d).

    alone: (k,) log p(D_d) at the beginning of a document, in place of the mean over contexts.
    """
    found: Array = log_probs - alone
    return found


SCORES: Mapping[str, Callable[[Array, Array], Array]] = {
    "normalised": normalised,
    "log_p": unnormalised,
    "pmi": pointwise_information,
}


def outcomes_of(scores: Array) -> Array:
    """(k,) outcomes of a matrix of scores (k, k): 1 right, 0 wrong, 1 / n in a tie of n choices."""
    best = scores == scores.max(axis=1, keepdims=True)
    found: Array = np.diagonal(best) / best.sum(axis=1)
    return found
