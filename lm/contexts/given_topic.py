"""A topic that a file gives each sentence, as a learned embedding; or any other discrete feature.

Ghosh et al. 2016, arXiv:1602.06291, eq. 1 with a T that no topic model infers: the topic of the
source sentence, a dialog act, a speaker. What is given is not searched, so that the order is 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context
from lm.contexts.carried_state import CarriedState
from lm.recurrences import Recurrence, State
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


class CarriedStateAndGivenTopic(CarriedState):
    """The state after the previous sentence, to begin in, and the given topic of the sentence.

    The words and topics of all earlier sentences and the topic of the one that is read, as the
    CLSTM for the choice of next sentences has them (§4.3). Tensors of a context: those of the
    state, then the embedding of the label (B, K), 0 before any sentence is entered.
    """

    side_information: ClassVar[tuple[str, ...]] = GivenTopic.side_information
    options: ClassVar[tuple[str, ...]] = GivenTopic.options

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, topic_labels: int
    ) -> None:
        super().__init__(embedding, recurrence)
        self.topic = GivenTopic(embedding, recurrence, topic_labels=topic_labels)
        self.width = self.topic.width

    def start(self, batch: int) -> Rows:
        """Zeros."""
        return _side_by_side(super().start(batch), self.topic.start(batch))

    def encoded(self, side: Rows) -> Rows:
        """Embeddings (B, K) of the labels."""
        return self.topic.encoded(side)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The state, and the embedding of the sentence's label."""
        return _side_by_side(Rows(contexts.tensors[:-1]), encoded)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The state after the sentence; the label stays until the next one is entered."""
        return _side_by_side(summary, Rows(contexts.tensors[-1:]))

    def state(self, contexts: Rows) -> State:
        """The carried state."""
        return contexts.tensors[:-1]

    def value(self, contexts: Rows) -> Tensor:
        """The embedding of the label."""
        return contexts.tensors[-1]


def _side_by_side(state: Rows, topic: Rows) -> Rows:
    return Rows((*state.tensors, *topic.tensors))
