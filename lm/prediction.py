"""Log-probabilities of words: what a head offers to the scoring engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from lm.backend import Backend
from lm.normalisers import Pair, log_sums, pair_log_sums
from lm.vocabulary import END


class Predictor(Protocol):
    """A head ready to score words."""

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (M,) of words[m] after position parents[m], and (N,) of `</s>`, in nats.

        features: (N, R) of the positions.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinearPredictor:
    """Scores of a linear head; weight: (V, R + 1), the bias as its last column."""

    weight: Tensor
    backend: Backend

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of words and of `</s>`; O(N V R) time."""
        columns = _with_column(features, 1.0)
        log_z = log_sums(columns, self.weight, self.backend)
        into, leave = self._logits(columns, parents, words)
        return into - log_z[parents], leave - log_z

    def pair(self, features: Tensor, shifts: Tensor) -> Pair:
        """Features (N, R) of positions and (C, R) that contexts add, for the next two methods."""
        return _with_column(features, 1.0), _with_column(shifts, 0.0)

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """Log normalisers (N, C) of each pair, and a mask of those that were recomputed."""
        return pair_log_sums(pairs, self.weight, self.backend)

    def pair_log_probs(
        self, pair: Pair, log_z: Tensor, parents: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores (M, C) of words and (N, C) of `</s>` in each context, given `log_z` (N, C)."""
        columns, shifts = pair
        into, leave = self._logits(columns, parents, words)
        into = into[:, None] - log_z[parents]
        leave = leave[:, None] - log_z
        into += self.weight[words] @ shifts.T
        leave += shifts @ self.weight[END]
        return into, leave

    def _logits(self, columns: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        return (columns[parents] * self.weight[words]).sum(dim=1), columns @ self.weight[END]


def _with_column(features: Tensor, value: float) -> Tensor:
    """(N, R + 1): features and a last column, which multiplies the bias."""
    return torch.cat([features, features.new_full((len(features), 1), value)], dim=1)
