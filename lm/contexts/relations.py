"""Discourse relations between sentences: labels that transform the context, or a task."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.backend import linear
from lm.composition import RELATION_CLASSIFIERS, load
from lm.contexts import Context, LabelledContext
from lm.contexts.document import DocumentRecurrence, Encodings, PreviousEncoding
from lm.corpus import PackedBatch
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows
from lm.side_information import n_labels

NOISE = 0.1  # times 1/√H: largest difference of an initial matrix from the identity
NONE_BEFORE, NO_LABEL, LABELLED = 0, 1, 2  # from LABELLED on: a label's number is added


class RelationMatrices(nn.Module):
    """tanh(R_d h) with a matrix R_d (H, H) for each label d (Eisenstein's memo, eqs. 9–10).

    The memo leaves the initial matrices open: they are near the identity, so that all relations
    begin alike. `<unk>` has a matrix, too, which is trained where the training text has that label.
    O(B H²) time; (R − 2) H² parameters for R words of the labels' vocabulary.
    """

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        bound = NOISE / hidden**0.5
        matrices = torch.empty(n_labels(labels), hidden, hidden).uniform_(-bound, bound)
        matrices.diagonal(dim1=1, dim2=2).add_(1.0)
        self.matrices = nn.Parameter(matrices)

    def forward(self, labels: Tensor, h: Tensor) -> Tensor:
        """Transformed rows (B, H); labels: (B,) of `labels_of`, h: (B, H)."""
        order = torch.argsort(labels, stable=True)
        sizes = torch.bincount(labels, minlength=len(self.matrices)).tolist()
        parts = zip(torch.split(h[order], sizes), self.matrices, strict=True)
        products = torch.cat([linear(rows, matrix) for rows, matrix in parts])
        return torch.tanh(products[torch.argsort(order)].float())


class RelationProjection(LabelledContext):
    """tanh(R_{d_i} h_{i−1}), d_i the relation of sentence i to the previous (memo, eq. 9).

    h is that of `DocumentRecurrence`; the label of the first sentence says how the learned h_0
    enters. Tensors of a context: the transformed vector, then the state of the recurrence.
    """

    sentences: int | None = None
    side_information: ClassVar[tuple[str, ...]] = ("relations",)
    transformed: ClassVar[type[Encodings]] = DocumentRecurrence
    options: ClassVar[tuple[str, ...]] = (*DocumentRecurrence.options, "relation_labels")

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, relation_labels: int, **named: Any
    ) -> None:
        super().__init__(embedding, recurrence)
        self.of_document = self.transformed(embedding, recurrence, **named)
        self.width = self.of_document.width
        self.merges_sentences = self.of_document.merges_sentences
        self.relations = RelationMatrices(relation_labels, self.width)

    def start(self, batch: int) -> Rows:
        """h_0 for each row, which no label has transformed yet."""
        return self._untransformed(self.of_document.start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The vectors of the sentences."""
        return self.of_document.summary(sentences)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """h_i, which no label has transformed yet."""
        return self._untransformed(self.of_document.advance(contexts.rest, summary))

    def _untransformed(self, states: Rows) -> Rows:
        return Rows.of(self.of_document.value(states), *states.tensors)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The vectors transformed as the labels say."""
        states = contexts.rest
        value = self.relations(encoded.tensors[0], self.of_document.value(states))
        return Rows.of(value, *states.tensors)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """That of the encoder."""
        return self.of_document.sentence_key(words)


class DecoupledRelationProjection(RelationProjection):
    """tanh(R_{d_i} g(w_{i−1})): eq. 9 with the decoupled context of the memo's §3.1; order 1."""

    sentences = 1
    transformed = PreviousEncoding
    options: ClassVar[tuple[str, ...]] = (*PreviousEncoding.options, "relation_labels")


class RelationRecurrence(LabelledContext, DocumentRecurrence):
    """h_i = f(b_i, tanh(R_{d_i} h_{i−1})) (Eisenstein's memo, eq. 10); words see h_{i−1} (eq. 3).

    So d_i counts from the next sentence on. tanh(R h) is in place of the hidden state of f's top
    layer. Tensors of a context: h_{i−1}, then the state of f.
    """

    side_information: ClassVar[tuple[str, ...]] = ("relations",)
    options: ClassVar[tuple[str, ...]] = RelationProjection.options
    value = Context.value

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, relation_labels: int, **named: Any
    ) -> None:
        super().__init__(embedding, recurrence, **named)
        self.relations = RelationMatrices(relation_labels, self.width)

    def start(self, batch: int) -> Rows:
        """h_0 for each row."""
        return self._untransformed(super().start(batch))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of f from the transformed states."""
        return self._untransformed(super().advance(contexts.rest, summary))

    def _untransformed(self, states: Rows) -> Rows:
        return Rows.of(self.level.output(states.tensors), *states.tensors)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states from which f goes on after the sentences, transformed as the labels say."""
        h, *state = contexts.tensors
        state[-self.level.tensors] = self.relations(encoded.tensors[0], h)
        return Rows.of(h, *state)


class Bilinear(nn.Module):
    """Logits h_iᵀ Θ_d h_{i−1} with a matrix Θ_d (H, H) for each label d (memo, eq. 11).

    The memo's Θ must be a tensor of as many matrices as there are labels. H² parameters a label;
    O(B H²) time a label.
    """

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.matrices = nn.Parameter(torch.empty(labels, hidden, hidden).uniform_(-bound, bound))

    def forward(self, h: Tensor, before: Tensor) -> Tensor:
        """Logits (B, labels) from h_i and h_{i−1}, (B, H)."""
        products = linear(before, self.matrices.flatten(0, 1)).view(len(h), -1, h.shape[1])
        return (products.float() * h[:, None].float()).sum(dim=2)


class Perceptron(nn.Module):
    """Logits W_2 tanh(W_1 [h_i; h_{i−1}] + b_1) + b_2 with H hidden units (memo, eq. 12).

    The memo says "MLP" alone: a hidden layer of the size of h is ours. H(2H + 1) parameters and
    H + 1 a label; O(B H²) time.
    """

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        self.units = nn.Linear(2 * hidden, hidden)
        self.labels = nn.Linear(hidden, labels)

    def forward(self, h: Tensor, before: Tensor) -> Tensor:
        """Logits (B, labels) from h_i and h_{i−1}, (B, H)."""
        pairs = torch.cat([h, before], dim=1)
        units = torch.tanh(linear(pairs, self.units.weight, self.units.bias).float())
        return linear(units, self.labels.weight, self.labels.bias).float()


class RelationTask(LabelledContext, DocumentRecurrence):
    """h_i of `DocumentRecurrence`, also trained to tell d_i (Eisenstein's memo, eqs. 11 and 12).

    A classifier tells d_i from h_i and h_{i−1} in training, and its loss reaches f, g and the
    embedding of the words. The first sentence of a document has no loss. Scores do not depend on
    relations. Tensors of a context: whether a sentence and a label are there, and which label; then
    the state of f.
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
        states = super().start(batch)
        return Rows.of(torch.full((batch,), NONE_BEFORE, device=states.device), *states.tensors)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of f; no label yet."""
        states = super().advance(contexts.rest, summary)
        return Rows.of(torch.full_like(contexts.tensors[0], NO_LABEL), *states.tensors)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The labels beside the states."""
        (labels,), has_previous = encoded.tensors, contexts.tensors[0] > NONE_BEFORE
        noted = torch.where(has_previous, labels + LABELLED, NONE_BEFORE)
        return Rows.of(noted, *contexts.rest.tensors)

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1}, (B, H)."""
        return super().value(contexts.rest)

    def auxiliary_nll(self, contexts: Rows, batch: PackedBatch) -> Tensor | None:
        """−log p(d_i) at each sentence's last position, and 0 elsewhere, (N,); None without d."""
        noted = contexts.tensors[0]
        labelled = noted >= LABELLED
        if not bool(labelled.any()):
            return None
        sentences = ReadSentences.unread(batch.positions)
        state = contexts.rest
        after = super().advance(state, self.summary(sentences))
        logits = self.classifier(super().value(after), super().value(state))
        labels = (noted - LABELLED).clamp(min=0)
        log_probs = torch.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
        nll = -log_probs.masked_fill(~labelled, 0.0)
        return nll.new_zeros(len(batch.inputs)).index_copy(0, sentences.positions.last, nll)
