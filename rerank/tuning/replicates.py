"""Replicates of a tuning, and what they agree on.

One tuning gives weights that another start, or another sample of documents, would not have given
(Clark et al. 2011, https://aclanthology.org/P11-2031). Replicates draw documents anew, as a
bootstrap does, and start elsewhere; the mean of their weights is steadier than any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Weights (R, F) of R replicates, all of one norm or of one scale."""

    weights: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Their mean, (F,)."""
        return np.asarray(self.weights.mean(axis=0))

    @property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each weight, (F,), of the sample; zeros for one replicate."""
        if len(self.weights) == 1:
            return np.zeros(self.weights.shape[1])
        return np.asarray(self.weights.std(axis=0, ddof=1))


def resampled(n_documents: int, rng: np.random.Generator) -> list[int]:
    """Numbers of as many documents drawn with replacement, in order."""
    return sorted(rng.integers(n_documents, size=n_documents).tolist())


def held_out(n_documents: int, share: float, rng: np.random.Generator) -> list[int]:
    """Numbers of the documents kept from tuning: a share of all, rounded, but at least one.

    ValueError where none would be left to tune on.
    """
    number = max(1, round(share * n_documents))
    if number >= n_documents:
        raise ValueError(f"{number} of {n_documents} documents held out leave none to tune on")
    return sorted(rng.permutation(n_documents)[:number].tolist())
