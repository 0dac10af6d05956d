"""Documents read side by side, the context handed on from sentence to sentence.

Training and perplexity share it: a segment of up to L sentences from each of B documents,
contexts in, output features and contexts out. Where the hidden states do not depend on the
context, all L · B sentences are one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.batches import PackedBatch, Segment
from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Training noise: dropout on inputs and features, and sentences whose context is null."""

    dropout: float
    context_dropout: float
    generator: torch.Generator

    def drop(self, x: Tensor) -> Tensor:
        """Inverted dropout."""
        if self.dropout == 0.0:
            return x
        keep = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.dropout
        return x * keep / (1 - self.dropout)

    def forget(self, contexts: Rows, null: Rows) -> Rows:
        """Contexts (B rows), some of them replaced by the null context."""
        rows = torch.rand(len(contexts), 1, generator=self.generator, device=contexts.device)
        return contexts.where(rows[:, 0] < self.context_dropout, null)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A segment read: features (N, R) with targets (N,), contexts (B rows) handed on.

    auxiliary_loss: of the context's own prediction, in nats; 0 for most contexts.
    """

    features: Tensor
    targets: Tensor
    contexts: Rows
    auxiliary_loss: Tensor


def read(
    model: DocumentLM,
    corpus: Corpus,
    segment: Segment,
    contexts: Rows,
    noise: Noise | None = None,
) -> Reading:
    """The segment's output features and the contexts after it.

    contexts: (B rows) handed on by the segment before; streams that begin a document start
    afresh.
    """
    begins = torch.from_numpy(segment.begins).to(contexts.device)
    contexts = contexts.where(begins, model.context.start(len(contexts)))
    depends = model.fusion.hidden_depends_on_context
    reader = _sentence_by_sentence if depends else _all_sentences
    return reader(model, corpus, segment.sentences, contexts, noise)


def _sentence_by_sentence(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Rows,
    noise: Noise | None,
) -> Reading:
    """B sentences at a time, once their contexts are known."""
    drop = noise.drop if noise else _same
    features, targets, loss = [], [], torch.zeros((), device=contexts.device)
    for row in grid:
        index, given = _given(model, row, contexts, noise)
        if not len(index):
            break
        batch = PackedBatch.of(corpus, row[row >= 0], contexts.device)
        sentences = model.unroll(batch, given, drop)
        features.append(model.features(sentences, given, drop))
        targets.append(batch.targets)
        loss = loss + _auxiliary_loss(model, given, batch)
        following = model.context.advance(given, model.context.summary(sentences))
        contexts = contexts.put(index, following)
    return Reading(torch.cat(features), torch.cat(targets), contexts, loss)


def _all_sentences(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Rows,
    noise: Noise | None,
) -> Reading:
    """All L · B sentences in one batch; the contexts follow from what is kept of them."""
    drop = noise.drop if noise else _same
    batch = PackedBatch.of(corpus, grid[grid >= 0], contexts.device)
    sentences = model.unroll(batch, model.context.start(len(batch.order)), drop)
    summary = model.context.summary(sentences)
    all_given, done = [], 0
    for row in grid:
        index, given = _given(model, row, contexts, noise)
        if not len(index):
            break
        all_given.append(given)
        own = summary.take(slice(done, done + len(index)))
        contexts = contexts.put(index, model.context.advance(given, own))
        done += len(index)
    joined = Rows.cat(all_given)
    features = model.features(sentences, joined, drop)
    return Reading(features, batch.targets, contexts, _auxiliary_loss(model, joined, batch))


def _given(
    model: DocumentLM, row: NDArray[np.int64], contexts: Rows, noise: Noise | None
) -> tuple[Tensor, Rows]:
    """Streams with a sentence at this place, and the contexts these sentences receive."""
    index = torch.from_numpy(np.flatnonzero(row >= 0)).to(contexts.device)
    given = contexts.take(index)
    return index, given if noise is None else noise.forget(given, model.context.start(len(given)))


def _auxiliary_loss(model: DocumentLM, given: Rows, batch: PackedBatch) -> Tensor:
    loss = model.context.auxiliary_loss(given, batch)
    return torch.zeros((), device=given.device) if loss is None else loss


def _same(x: Tensor) -> Tensor:
    return x
