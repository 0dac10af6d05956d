"""How a sentence becomes a vector b = g(w): the encoders, one file each.

An encoder reads the words of a sentence, and nothing else. `lm.composition.ENCODERS` names them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.composition import ENCODERS, load
from lm.recurrences import Recurrence


class Encoder(nn.Module):
    """Base of the sentence encoders.

    width: columns of a vector. merges_sentences: whether different sentences may have equal
    vectors, as `sentence_key` says. Constructors receive the embedding of the words, which an
    encoder shares with whatever else has it, and a recurrence of the word level's kind and size,
    for its sizes.

    The encoder of target sentences shares the embedding of the word level: no paper gives a word
    two of them, and a table of its own would be most of an encoder's parameters. Sentences of
    another language come with the embedding of their own vocabulary.
    """

    merges_sentences: ClassVar[bool] = False
    width: int

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__()
        self.embedding = embedding

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, width) of sentences; of a sentence without words, those of no input.

        words: (B, M) ids in reading order, padded at the beginning; mask: (B, M), true for words.
        `<s>` and `</s>` are not among them.
        """
        raise TypeError("an encoder defines encode")

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Bytes that are equal for sentences of equal vectors; here the words."""
        return words.tobytes()


def encoder_of(name: str, embedding: nn.Embedding, recurrence: Recurrence) -> Encoder:
    """The encoder of a name of `lm.composition.ENCODERS`."""
    encoder: Encoder = load(ENCODERS[name])(embedding, recurrence)
    return encoder
