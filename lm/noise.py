"""Noise of training: dropout of numbers and of words, contexts that are missing or corrupted.

Rates are of what is dropped. What is kept is divided by 1 − rate, so that expectations stay.
All noise is a function of generators; a `Noise` serves one update.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lm.corruption import Corruption
from lm.rows import Rows
from lm.sentences import Positions
from lm.vocabulary import START


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Training noise of one update.

    dropout: rate for single numbers of inputs and output features; context_dropout: for whole
    contexts; locked_dropout: for columns of a sentence's inputs and output features, with one
    mask for all its words (Gal & Ghahramani 2016, https://arxiv.org/abs/1512.05287). words: (V,)
    factors of the words' embeddings, from `word_factors`; None: all are 1. corruption: of the
    sentences that contexts are taken from, if any.
    """

    dropout: float
    context_dropout: float
    generator: torch.Generator
    locked_dropout: float = 0.0
    words: Tensor | None = None
    corruption: Corruption | None = None

    def inputs(self, embedded: Tensor, positions: Positions) -> Tensor:
        """Embeddings (N, K) of the words at the positions, with noise."""
        if self.words is not None:
            embedded = embedded * self.words[positions.words, None]
        return self.features(embedded, positions)

    def features(self, x: Tensor, positions: Positions) -> Tensor:
        """Values (N, D) at the positions, with dropout of columns and of single numbers."""
        if self.locked_dropout:
            shape = len(positions.last), x.shape[1]
            mask = dropout_mask(shape, self.locked_dropout, self.generator)
            x = x * mask[positions.context]
        return self.drop(x)

    def drop(self, x: Tensor) -> Tensor:
        """Inverted dropout of single numbers."""
        if self.dropout == 0.0:
            return x
        keep = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.dropout
        return x * keep / (1 - self.dropout)

    def forget(self, contexts: Rows, null: Rows) -> Rows:
        """Contexts (B rows), some of them replaced by the null context."""
        rows = torch.rand(len(contexts), 1, generator=self.generator, device=contexts.device)
        dropped = rows[:, 0] < self.context_dropout
        return contexts.put(dropped, null.take(dropped))


def dropout_mask(shape: tuple[int, ...], rate: float, generator: torch.Generator) -> Tensor:
    """Factors of inverted dropout: 0 with probability `rate`, else 1 / (1 − rate)."""
    keep = torch.rand(shape, generator=generator, device=generator.device) >= rate
    return keep / (1 - rate)


def word_factors(words: int, rate: float, generator: torch.Generator) -> Tensor | None:
    """Factors (V,) that drop the embeddings of whole words for an update; None at rate 0.

    The embedding dropout of Merity et al. 2018 (https://arxiv.org/abs/1708.02182, §4.3), but
    for `<s>`, without which all sentences of the update would lack their first input.
    """
    if rate == 0.0:
        return None
    factors = dropout_mask((words,), rate, generator)
    factors[START] = 1.0
    return factors
