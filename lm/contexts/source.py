"""Source sentences as context: nothing of the target side, so that the order is 0."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.composition import SOURCE_CONTEXTS
from lm.contexts import Context
from lm.contexts.document_recurrence import DocumentRecurrence
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.side_information import words_of


class SourceSentences(Context):
    """h_i = f(g(w_i of the source), h_{i−1}) (Eisenstein's memo, §2.1, eqs. 6–8).

    g and f are those of `DocumentRecurrence`, over embeddings of source words. The memo conditions
    sentence i on h_{i−1} (`previous`); the source of sentence i itself is known, too (`current`,
    `both`, the default). Tensors of a context: h_{i−1}, then the state of f after sentence i.
    """

    sentences = 0
    side_information: ClassVar[tuple[str, ...]] = ("source",)
    options: ClassVar[tuple[str, ...]] = (
        *DocumentRecurrence.options,
        *("source_words", "source_context"),
    )

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        source_words: int,
        source_context: str = "both",
        encoder: str = "cnn",
        sentence_recurrence: str | None = None,
    ) -> None:
        super().__init__(embedding, recurrence)
        words = nn.Embedding(source_words, embedding.embedding_dim)
        nn.init.uniform_(words.weight, -0.1, 0.1)
        self.of_document = DocumentRecurrence(
            words, recurrence, encoder=encoder, sentence_recurrence=sentence_recurrence
        )
        self.chosen = SOURCE_CONTEXTS[source_context]
        self.width = sum(self.chosen) * self.of_document.width

    @property
    def source_level(self) -> DocumentRecurrence:
        """The recurrence over source sentences, and their encoder."""
        return self.of_document

    def start(self, batch: int) -> Rows:
        """h_0 for each row, before any sentence."""
        start = self.of_document.start(batch)
        return Rows.of(self.of_document.value(start), *start.tensors)

    def encoded(self, side: Rows) -> Rows:
        """Vectors g(w), (B, width of g), of source sentences."""
        return Rows.of(self.of_document.encoder.encode(*words_of(side.tensors[0])))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """One step of f: h_i becomes h_{i−1}, and the sentences' vectors enter."""
        state = Rows(contexts.tensors[1:])
        following = self.of_document.advance(state, encoded)
        return Rows.of(self.of_document.value(state), *following.tensors)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The contexts, unchanged: target sentences leave nothing."""
        return contexts

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1}, h_i, or both, (B, H) or (B, 2H)."""
        both = contexts.tensors[0], self.of_document.value(Rows(contexts.tensors[1:]))
        return torch.cat([h for h, given in zip(both, self.chosen, strict=True) if given], dim=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Nothing: all target sentences leave equal contexts."""
        return b""
