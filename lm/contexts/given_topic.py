"""A topic that a file gives each sentence, as a learned embedding; or any other discrete feature.

Ghosh et al. 2016, arXiv:1602.06291, eq. 1 with a T that no topic model infers: the topic of the
source sentence, a dialog act, a speaker. What is given is not searched, so that the order is 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lm.contexts import Context
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.side_information import labels_of, n_labels


class GivenTopic(Context):
    """The embedding, of the size of a word's, of the label of the sentence that is read.

    `<unk>`, a label that the training text has not, has an embedding too, which is trained where
    the training text has it. Tensor of a context: the embedding (B, K). (R − 2)K parameters for R
    words of the labels' vocabulary.
    """

    sentences = 0
    side_information: ClassVar[tuple[str, ...]] = ("topics",)
    options: ClassVar[tuple[str, ...]] = ("topic_labels",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, topic_labels: int
    ) -> None:
        super().__init__(embedding, recurrence)
        self.width = embedding.embedding_dim
        # not an `nn.Embedding`, whose rows would be taken for those of words
        table = torch.empty(n_labels(topic_labels), self.width).uniform_(-0.1, 0.1)
        self.table = nn.Parameter(table[None])

    def encoded(self, side: Rows) -> Rows:
        """Embeddings (B, K) of the labels."""
        return Rows.of(nn.functional.embedding(labels_of(side.tensors[0]), self.table[0]))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The embedding of the sentence's label."""
        return encoded

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The contexts, unchanged: target sentences leave nothing."""
        return contexts

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Nothing: all target sentences leave equal contexts."""
        return b""
