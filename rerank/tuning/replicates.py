"""Samples of documents: bootstrap replicates of a tuning set, and documents held out from it.

One tuning gives weights that another start, or another sample of documents, would not have given
(Clark et al. 2011, https://aclanthology.org/P11-2031). The mean of weights that were tuned on
several resampled sets is steadier than any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Weights (R, F) of R tunings, in one norm, and the BLEU of each on all documents."""

    weights: NDArray[np.float64]
    bleu: tuple[float, ...]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Their mean, (F,)."""
        return np.asarray(self.weights.mean(axis=0))

    @property
    def spread(self) -> NDArray[np.float64]:
        """Sample standard deviation of each weight, (F,)."""
        return np.asarray(self.weights.std(axis=0, ddof=1))

    def to_dict(self, names: Sequence[str]) -> Mapping[str, object]:
        """Entry of a weights file."""
        spread = dict(zip(names, self.spread.tolist(), strict=True))
        return {"bleu": list(self.bleu), "spread": spread}

    def to_text(self, names: Sequence[str]) -> str:
        """Means and standard deviations, for people."""
        figures = zip(names, self.mean, self.spread, strict=True)
        listed = ", ".join(f"{name} {mean:.4f} ± {spread:.4f}" for name, mean, spread in figures)
        return f"mean of {len(self.bleu)} replicates: {listed}"


def resampled(n_documents: int, rng: np.random.Generator) -> list[int]:
    """Numbers of as many documents drawn with replacement, in order."""
    return sorted(rng.integers(n_documents, size=n_documents).tolist())


def held_out(n_documents: int, share: float, rng: np.random.Generator) -> list[int]:
    """Numbers of the held-out documents: a share of all, rounded, but at least one.

    ValueError where none would be left to tune on.
    """
    number = max(1, round(share * n_documents))
    if number >= n_documents:
        raise ValueError(f"{number} of {n_documents} documents held out leave none to tune on")
    return sorted(rng.permutation(n_documents)[:number].tolist())
