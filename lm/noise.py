"""Noise of training: dropout of numbers, words and weights, contexts missing or corrupted.

Rates are of what is dropped. What is kept is divided by 1 − rate, so that expectations stay.
All noise is a function of generators; a `Noise` serves a single update.

At test time the sentences before are candidates of a k-best list. A model that has read nothing
but clean text in training trusts their words too much: contexts may be taken from sentences that
are corrupted as machine translations are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.corpus import Corpus
from lm.recurrences import Recurrence
from lm.sentences import Positions, Rows
from lm.vocabulary import START

# shares of the words of a corrupted sentence: words are dropped and moved, as in the noise of
# Lample et al. 2018 (https://arxiv.org/abs/1711.00043), and replaced, as wrong translations are
DROPPED = 0.1
REPLACED = 0.1
SWAPPED = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """B sentences, and behind them C corrupted copies of some, as a text of B + C sentences.

    sources: (B + C,) which of the B sentences each is or copies; left: (B,) the sentence of the
    text that stands for each of the B in the contexts after it: its copy, if it has one.
    """

    text: Corpus
    sources: NDArray[np.int64]
    left: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Corruption:
    """Makes corrupted copies of sentences, of each with probability `share`."""

    share: float
    rng: np.random.Generator

    def copies(self, corpus: Corpus, chosen: NDArray[np.int64]) -> Copies:
        """The sentences `chosen` (B,) of a corpus, and copies of some; O(words) time."""
        n = len(chosen)
        copied = np.flatnonzero(self.rng.random(n) < self.share)
        sources = np.concatenate([np.arange(n), copied])
        text = corpus.take(chosen[sources])
        clean, lengths = text.tokens[: text.sentences[n]], np.diff(text.sentences)
        owners = np.repeat(np.arange(len(copied)), lengths[n:])
        words, owners = self._corrupted(corpus, text.tokens[len(clean) :], owners)
        lengths[n:] = np.bincount(owners, minlength=len(copied))
        tokens, offsets = np.concatenate([clean, words]), np.concatenate([[0], np.cumsum(lengths)])
        left = np.arange(n)
        left[copied] = n + np.arange(len(copied))
        return Copies(Corpus(tokens, offsets, np.array([0, len(sources)])), sources, left)

    def _corrupted(
        self, corpus: Corpus, words: NDArray[np.int32], owners: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Words of sentences after corruption; owners: (N,) sentence of each word, ascending."""
        fate = self.rng.random(len(words))
        kept = fate >= DROPPED
        words, owners, fate = words[kept].copy(), owners[kept], fate[kept]
        replaced = fate < DROPPED + REPLACED
        # a random token of the text is a draw from its unigram distribution
        drawn = self.rng.integers(max(1, len(corpus.tokens)), size=int(replaced.sum()))
        words[replaced] = corpus.tokens[drawn]
        # a swapped word goes behind its right neighbour, unless it is the last
        place = np.arange(len(words)) + 1.5 * (self.rng.random(len(words)) < SWAPPED)
        return words[np.lexsort((place, owners))], owners


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Training noise of an update.

    dropout: rate for single numbers of inputs and output features; context_dropout: for whole
    contexts; locked_dropout: for columns of a sentence's inputs and output features, the same for
    all its words (Gal & Ghahramani 2016, https://arxiv.org/abs/1512.05287). words: (V,) factors of
    the words' embeddings, from `word_factors`; None: all are 1. corruption: of the sentences that
    contexts are taken from.
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
        if self.dropout == 0.0:
            return x
        keep = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.dropout
        return x * keep / (1 - self.dropout)

    def forget(self, contexts: Rows, null: Rows) -> Rows:
        """Contexts (B rows), some of them replaced by the null context."""
        rows = torch.rand(len(contexts), 1, generator=self.generator, device=contexts.device)
        dropped = rows[:, 0] < self.context_dropout
        return contexts.put(dropped, null.take(dropped))


def generator_of(seed: int, *numbers: int, device: torch.device | str = "cpu") -> torch.Generator:
    """Generator that hashes a seed and numbers: a CPU's ignores more than 32 bits of its seed."""
    mixed = int(np.random.SeedSequence((seed, *numbers)).generate_state(1)[0])
    return torch.Generator(device).manual_seed(mixed)


WITHOUT_NOISE = Noise(0.0, 0.0, torch.Generator())


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


@contextmanager
def dropped_weights(model: nn.Module, rate: float, generator: torch.Generator) -> Iterator[None]:
    """Hidden-to-hidden matrices W of all recurrences are W ∘ mask inside, and W again after it.

    Merity et al. 2018 (https://arxiv.org/abs/1708.02182), §2. The mask of an update serves all its
    time steps. The forward and the backward pass belong inside; gradients are those of W after it:
    d/dW = mask ∘ d/d(W ∘ mask).
    """
    parts = model.modules() if rate else ()
    matrices = [m for part in parts if isinstance(part, Recurrence) for m in part.recurrent]
    whole = [matrix.detach().clone() for matrix in matrices]
    masks = [dropout_mask(tuple(matrix.shape), rate, generator) for matrix in matrices]
    with torch.no_grad():
        for matrix, mask in zip(matrices, masks, strict=True):
            matrix.mul_(mask)
    try:
        yield
    finally:
        with torch.no_grad():
            for matrix, kept, mask in zip(matrices, whole, masks, strict=True):
                matrix.copy_(kept)
                if matrix.grad is not None:
                    matrix.grad.mul_(mask)
