"""Documents read side by side, the context handed on from sentence to sentence.

The one walk that training and perplexity share: a segment of up to L sentences from each
of B documents, contexts in, output features and contexts out. Where the hidden states do
not see the context, all L · B sentences are one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.batches import Packed, Segment
from lm.contexts import SentenceRecurrence
from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.vocabulary import END


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

    def forget(self, contexts: Tensor, null: Tensor) -> Tensor:
        """Contexts (B, C), some of them replaced by the null context."""
        rows = torch.rand(len(contexts), 1, generator=self.generator, device=contexts.device)
        return torch.where(rows < self.context_dropout, null, contexts)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A segment read: features (N, R) with targets (N,), contexts (B, C) handed on.

    extra: loss of the context's own prediction (the sentence level of an HRNNLM), nats.
    """

    features: Tensor
    targets: Tensor
    contexts: Tensor
    extra: Tensor


def read(
    model: DocumentLM,
    corpus: Corpus,
    segment: Segment,
    contexts: Tensor,
    noise: Noise | None = None,
) -> Reading:
    """The segment's output features and the contexts after it.

    contexts: (B, C) as handed on by the segment before; streams that begin a document
    start afresh.
    """
    null = model.context.start(len(contexts))
    begins = torch.from_numpy(segment.begins).to(contexts.device)[:, None]
    contexts = torch.where(begins, null, contexts)
    walk = _in_turn if model.fusion.touches_hidden else _together
    return walk(model, corpus, segment.sentences, contexts, noise)


def _in_turn(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Tensor,
    noise: Noise | None,
) -> Reading:
    """Place by place: B sentences are unrolled once their contexts are known."""
    features, targets, extra = [], [], contexts.new_zeros(())
    for row in grid:
        index, given = _given(model, row, contexts, noise)
        if not len(index):
            break
        batch = Packed.of(corpus, row[row >= 0], contexts.device)
        value = model.context.value(given)
        hidden, summary = model.unroll(batch, value, noise.drop if noise else _same)
        features.append(_features(model, batch, hidden, value, noise))
        targets.append(batch.targets)
        extra = extra + _next_words(model, batch, given)
        contexts = contexts.index_copy(0, index, model.context.advance(given, summary))
    return Reading(torch.cat(features), torch.cat(targets), contexts, extra)


def _together(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Tensor,
    noise: Noise | None,
) -> Reading:
    """All L · B sentences are one batch; the contexts follow from their summaries."""
    batch = Packed.of(corpus, grid[grid >= 0], contexts.device)
    nothing = contexts.new_zeros(len(batch.order), 0)
    hidden, summary = model.unroll(batch, nothing, noise.drop if noise else _same)
    all_given, done = [], 0
    for row in grid:
        index, given = _given(model, row, contexts, noise)
        if not len(index):
            break
        all_given.append(given)
        following = model.context.advance(given, summary[done : done + len(index)])
        contexts = contexts.index_copy(0, index, following)
        done += len(index)
    joined = torch.cat(all_given)
    features = _features(model, batch, hidden, model.context.value(joined), noise)
    return Reading(features, batch.targets, contexts, _next_words(model, batch, joined))


def _given(
    model: DocumentLM, row: NDArray[np.int64], contexts: Tensor, noise: Noise | None
) -> tuple[Tensor, Tensor]:
    """Streams with a sentence at this place, and the contexts these sentences receive."""
    index = torch.from_numpy(np.flatnonzero(row >= 0)).to(contexts.device)
    given = contexts[index]
    return index, given if noise is None else noise.forget(given, model.context.start(len(given)))


def _features(
    model: DocumentLM, batch: Packed, hidden: Tensor, value: Tensor, noise: Noise | None
) -> Tensor:
    """Output features (N, R) in packed order; value: (B, D) in the caller's order."""
    added = model.fusion.at_output(value)
    spread = None if added is None else added[batch.order][batch.rows]
    if noise is not None:
        hidden = noise.drop(hidden)
    return model.head.features(hidden, spread)


def _next_words(model: DocumentLM, batch: Packed, given: Tensor) -> Tensor:
    """−log p of the sentences' words from their contexts alone, where the context learns so."""
    if not isinstance(model.context, SentenceRecurrence):
        return given.new_zeros(())
    logits = model.context.next_word_logits(given[batch.order]).float()
    log_probs = torch.log_softmax(logits, dim=1)[batch.rows, batch.targets]
    return -log_probs[batch.targets != END].sum()


def _same(x: Tensor) -> Tensor:
    return x
