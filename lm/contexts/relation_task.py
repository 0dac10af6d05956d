"""Discourse relations as an auxiliary task of the document context."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.composition import RELATION_CLASSIFIERS, load
from lm.contexts.document_recurrence import DocumentRecurrence
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences
from lm.side_information import labels_of, n_labels

NONE_BEFORE, NO_LABEL, LABELLED = 0, 1, 2  # from LABELLED on: a label's number is added


class RelationTask(DocumentRecurrence):
    """h_i of `DocumentRecurrence`, also trained to tell d_i (Eisenstein's memo, eqs. 11 and 12).

    d_i is the relation of sentence i to the one before. A classifier tells it from h_i and h_{i−1}
    in training, and its loss reaches f, g and the embedding of the words. The first sentence of a
    document has no predecessor, and no loss. Scores do not depend on relations, which are needed
    in training alone. Tensors of a context: whether a sentence and a label are there, and which
    label; then the state of f.
    """

    training_information: ClassVar[tuple[str, ...]] = ("relations",)
    options: ClassVar[tuple[str, ...]] = (
        *DocumentRecurrence.options,
        *("relation_labels", "relation_classifier"),
    )

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        relation_labels: int,
        relation_classifier: str = "bilinear",
        **named: Any,
    ) -> None:
        super().__init__(embedding, recurrence, **named)
        classifier = load(RELATION_CLASSIFIERS[relation_classifier])
        self.classifier = classifier(n_labels(relation_labels), self.width)

    def start(self, batch: int) -> Rows:
        """h_0 for each row, without a sentence."""
        return _with(NONE_BEFORE, super().start(batch))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of f; no label yet."""
        return _with(NO_LABEL, super().advance(_state(contexts), summary))

    def encoded(self, side: Rows) -> Rows:
        """The labels (B,)."""
        return Rows.of(labels_of(side.tensors[0]))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The labels beside the states."""
        (labels,), given = encoded.tensors, contexts.tensors[0] > NONE_BEFORE
        noted = torch.where(given, labels + LABELLED, NONE_BEFORE)
        return Rows.of(noted, *contexts.tensors[1:])

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1}, (B, H)."""
        return super().value(_state(contexts))

    def auxiliary_nll(self, contexts: Rows, batch: PackedBatch) -> Tensor | None:
        """−log p(d_i) at each sentence's last position, and 0 elsewhere, (N,); None without d."""
        noted = contexts.tensors[0]
        given = noted >= LABELLED
        if not bool(given.any()):
            return None
        nothing = self.first.new_zeros(len(batch.inputs), 0)
        sentences = ReadSentences(batch.positions, nothing)
        state = _state(contexts)
        after = super().advance(state, self.summary(sentences))
        logits = self.classifier(super().value(after), super().value(state))
        labels = (noted - LABELLED).clamp(min=0)
        log_probs = torch.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
        own = -log_probs.masked_fill(~given, 0.0)
        return own.new_zeros(len(batch.inputs)).index_copy(0, sentences.positions.last, own)

    def auxiliary_parameters(self) -> list[nn.Parameter]:
        """Those of the classifier, and all that h is made of."""
        return list(self.parameters())


def _with(note: int, states: Rows) -> Rows:
    notes = torch.full((len(states),), note, device=states.device)
    return Rows.of(notes, *states.tensors)


def _state(contexts: Rows) -> Rows:
    return Rows(contexts.tensors[1:])
