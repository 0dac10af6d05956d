"""Segments of documents read side by side, for training and perplexity.

A segment has up to L sentences from each of B documents. Where the hidden states do not
depend on the context, all L · B sentences are one batch.
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
    """Training noise: dropout of inputs and features, and of whole contexts."""

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
        dropped = rows[:, 0] < self.context_dropout
        return contexts.put(dropped, null.take(dropped))


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A segment's features (N, R), targets (N,), auxiliary loss, and contexts (B rows) after it.

    lengths: (N,) number of words of each target's sentence.
    """

    features: Tensor
    targets: Tensor
    contexts: Rows
    auxiliary_loss: Tensor
    lengths: Tensor


def read(
    model: DocumentLM,
    corpus: Corpus,
    segment: Segment,
    contexts: Rows,
    noise: Noise | None = None,
) -> Reading:
    """The segment's output features and the contexts after it.

    contexts: (B rows) after the previous segment; replaced where a stream begins a document.
    """
    begins = torch.from_numpy(segment.begins).to(contexts.device)
    contexts = contexts.put(begins, model.context.start(len(contexts)).take(begins))
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
    drop = noise.drop if noise else _unchanged
    features, targets, lengths = [], [], []
    loss = torch.zeros((), device=contexts.device)
    for row in grid:
        index, given = _given(model, row, contexts, noise)
        if not len(index):
            break
        batch = PackedBatch.of(corpus, row[row >= 0], contexts.device)
        sentences = model.unroll(batch, given, drop)
        features.append(model.features(sentences, given, drop))
        targets.append(batch.targets)
        lengths.append(batch.lengths)
        loss = loss + model.context.auxiliary_loss(given, batch)
        following = model.context.advance(given, model.context.summary(sentences))
        contexts = contexts.put(index, following)
    columns = torch.cat(features), torch.cat(targets), contexts, loss
    return Reading(*columns, torch.cat(lengths))


def _all_sentences(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Rows,
    noise: Noise | None,
) -> Reading:
    """All L · B sentences in one batch; then the contexts, from what is kept of the sentences."""
    drop = noise.drop if noise else _unchanged
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
    loss = model.context.auxiliary_loss(joined, batch)
    return Reading(features, batch.targets, contexts, loss, batch.lengths)


def _given(
    model: DocumentLM, row: NDArray[np.int64], contexts: Rows, noise: Noise | None
) -> tuple[Tensor, Rows]:
    """Streams with a sentence in this row of a grid, and the contexts of these sentences."""
    index = torch.from_numpy(np.flatnonzero(row >= 0)).to(contexts.device)
    given = contexts.take(index)
    return index, given if noise is None else noise.forget(given, model.context.start(len(given)))


def _unchanged(x: Tensor) -> Tensor:
    return x
