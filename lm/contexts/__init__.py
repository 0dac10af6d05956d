"""What a model keeps of the sentences before: the contexts, one file each.

A context is a row of a batch (`Rows`) whose tensors only its own class reads. `start` gives
the context of no sentence, which is also the null context of training; `advance` the context
after one more sentence; `value` what fusion adds to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.recurrence import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences


class Reads(Enum):
    """What a context takes from a sentence; states depend on the context they were read in."""

    NOTHING = "nothing"
    WORDS = "words"
    HIDDEN = "top hidden states"
    STATES = "whole recurrent states"


class Context(nn.Module):
    """Base of the contexts, and the facts that each of them states.

    reads: what it takes from a sentence; sentences: how many earlier sentences it depends on
    beside what their states depended on, None for all; per_word: whether fusion receives a
    value for each word, by attention, or one for the sentence; averages: whether a weighted
    mean of contexts is a context; width: D, columns of a value.

    Constructors receive the embedding of the words and a recurrence of the word level's kind
    and size, for their sizes.
    """

    reads: ClassVar[Reads] = Reads.NOTHING
    per_word: ClassVar[bool] = False
    averages: ClassVar[bool] = True
    sentences: int | None = 1
    width = 0

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__()
        self.register_buffer("empty", embedding.weight.new_zeros(0), persistent=False)

    def start(self, batch: int) -> Rows:
        """Contexts before any sentence: vectors of zeros."""
        return Rows.of(self.get_buffer("empty").new_zeros(batch, self.width))

    def summary(self, sentences: ReadSentences) -> Rows:
        """What is taken from sentences that were read, (B rows)."""
        raise TypeError("a context defines what it takes from a sentence")

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """Contexts after one more sentence each: what was taken from that sentence."""
        return summary

    def value(self, contexts: Rows) -> Tensor:
        """What fusion receives for each sentence, (B, D)."""
        return contexts.tensors[0]

    def word_values(self, contexts: Rows, row: Tensor, query: Tensor) -> Tensor:
        """What fusion receives at each of N positions, (N, D), if `per_word`.

        row: (N,) its context; query: (N, H) hidden state at the previous position, zeros at
        the first.
        """
        raise TypeError("only a context with a value per word defines word_values")

    def auxiliary_loss(self, contexts: Rows, batch: PackedBatch) -> Tensor | None:
        """Training loss of the context's own, in nats, of sentences read in these contexts."""
        return None

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Digits that are equal for sentences which leave equal contexts; here the words."""
        return words.tobytes()

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """Digits that are equal for histories of equal values.

        sentences: keys of the last n sentences, fewer at the beginning of a document.
        """
        lengths = np.array([len(key) for key in sentences], dtype=np.int64)
        return lengths.tobytes() + b"".join(sentences)


class NoContext(Context):
    """Sentences are independent."""

    sentences = 0

    def summary(self, sentences: ReadSentences) -> Rows:
        """Nothing, (B, 0)."""
        last = sentences.positions.last
        return Rows.of(sentences.hidden.new_zeros(len(last), 0))


def learned_start(width: int) -> nn.Parameter:
    """A vector to learn, for documents to begin with."""
    return nn.Parameter(torch.empty(width).uniform_(-0.1, 0.1))
