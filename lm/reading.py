"""Segments of documents read side by side, for training and perplexity.

A segment has up to L sentences from each of B documents. All L · B sentences are one batch where
the hidden states do not depend on the context, and where the context does not depend on hidden
states; else B sentences are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.batches import PackedBatch, Segment
from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.noise import Noise
from lm.sentences import Positions, ReadSentences, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A segment's features (N, R), targets (N,), auxiliary loss, and contexts (B rows) after it.

    auxiliary_loss: the sum that training minimises; auxiliary_nats: Σ −log p by the same
    predictions, without gradient. sentences: (N,) index in the corpus of each target's sentence;
    lengths: (N,) number of its words; parts: the positions of the features, some at a time, and
    the contexts that these refer to.
    """

    features: Tensor
    targets: Tensor
    contexts: Rows
    auxiliary_loss: Tensor
    auxiliary_nats: Tensor
    sentences: Tensor
    lengths: Tensor
    parts: Sequence[tuple[Positions, Rows]]

    def of_predicted(self, corpus: Corpus) -> Reading:
        """The positions of the sentences that are predicted (`Corpus.predicted`), without parts."""
        if corpus.predicted is None:
            return self
        kept = torch.from_numpy(corpus.predicted)[self.sentences.cpu()].to(self.sentences.device)
        names = ("features", "targets", "sentences", "lengths")
        return replace(self, **{name: getattr(self, name)[kept] for name in names}, parts=())


def read(
    model: DocumentLM,
    corpus: Corpus,
    segment: Segment,
    contexts: Rows,
    noise: Noise | None = None,
) -> Reading:
    """The segment's output features and the contexts after it.

    contexts: (B rows) after the previous segment; replaced where a stream begins a document.
    A context that noise has dropped is null for its sentence alone: what follows is advanced from
    the true one. Only what is kept of hidden states that read the null context has lost it.
    """
    begins = torch.from_numpy(segment.begins).to(contexts.device)
    contexts = contexts.put(begins, model.context.start(len(contexts)).take(begins))
    reader = _sentence_by_sentence
    if not model.fusion.hidden_depends_on_context:
        reader = _all_sentences
    elif not model.context.reads_states:
        reader = _contexts_first
    return reader(model, corpus, segment.sentences, contexts, noise)


def _sentence_by_sentence(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Rows,
    noise: Noise | None,
) -> Reading:
    """B sentences at a time, once their contexts are known."""
    drop = noise.features if noise else _unchanged
    sides = _sides(model, corpus, grid, contexts)
    features, targets, sentences_of, lengths = [], [], [], []
    losses = torch.zeros(2, device=contexts.device)
    parts: list[tuple[Positions, Rows]] = []
    for row, side in zip(grid, sides, strict=True):
        index, true, given = _given(model, row, contexts, side, noise)
        if not len(index):
            break
        batch = PackedBatch.of(corpus, row[row >= 0], contexts.device)
        sentences, summary = _unrolled(model, corpus, row[row >= 0], batch, given, noise)
        features.append(model.features(sentences, given, drop))
        targets.append(batch.targets)
        sentences_of.append(_sentences(batch, row))
        lengths.append(batch.lengths)
        parts.append((sentences.positions, given))
        losses = losses + _auxiliary(model, true, batch)
        contexts = contexts.put(index, model.context.advance(true, summary))
    columns = torch.cat(features), torch.cat(targets), contexts, losses[0], losses[1].detach()
    return Reading(*columns, torch.cat(sentences_of), torch.cat(lengths), parts)


def _all_sentences(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Rows,
    noise: Noise | None,
) -> Reading:
    """All L · B sentences in one batch; then the contexts, from what is kept of the sentences."""
    drop = noise.features if noise else _unchanged
    batch = PackedBatch.of(corpus, grid[grid >= 0], contexts.device)
    null = model.context.start(len(batch.order))
    sentences, summary = _unrolled(model, corpus, grid[grid >= 0], batch, null, noise)
    sides = _sides(model, corpus, grid, contexts)
    true, given, contexts = _contexts_of(model, grid, contexts, summary, sides, noise)
    features = model.features(sentences, given, drop)
    loss, nats = _auxiliary(model, true, batch)
    columns = features, batch.targets, contexts, loss, nats.detach(), _sentences(batch, grid)
    return Reading(*columns, batch.lengths, [(sentences.positions, given)])


def _contexts_first(
    model: DocumentLM,
    corpus: Corpus,
    grid: NDArray[np.int64],
    contexts: Rows,
    noise: Noise | None,
) -> Reading:
    """The contexts, which depend on words alone; then all L · B sentences in one batch."""
    chosen = grid[grid >= 0]
    batch = PackedBatch.of(corpus, chosen, contexts.device)
    summary = _summary_of_words(model, corpus, chosen, batch, noise)
    sides = _sides(model, corpus, grid, contexts)
    true, given, contexts = _contexts_of(model, grid, contexts, summary, sides, noise)
    sentences = model.unroll(batch, given, noise.inputs if noise else _unchanged)
    features = model.features(sentences, given, noise.features if noise else _unchanged)
    loss, nats = _auxiliary(model, true, batch)
    columns = features, batch.targets, contexts, loss, nats.detach(), _sentences(batch, grid)
    return Reading(*columns, batch.lengths, [(sentences.positions, given)])


def _contexts_of(
    model: DocumentLM,
    grid: NDArray[np.int64],
    contexts: Rows,
    summary: Rows,
    sides: Sequence[Rows | None],
    noise: Noise | None,
) -> tuple[Rows, Rows, Rows]:
    """Contexts of all sentences of a grid, row by row: true, with noise; and those after it."""
    all_true, all_given, done = [], [], 0
    for row, side in zip(grid, sides, strict=True):
        index, true, given = _given(model, row, contexts, side, noise)
        if not len(index):
            break
        all_true.append(true)
        all_given.append(given)
        own = summary.take(slice(done, done + len(index)))
        contexts = contexts.put(index, model.context.advance(true, own))
        done += len(index)
    return Rows.cat(all_true), Rows.cat(all_given), contexts


def _summary_of_words(
    model: DocumentLM,
    corpus: Corpus,
    chosen: NDArray[np.int64],
    batch: PackedBatch,
    noise: Noise | None,
) -> Rows:
    """What contexts that need no hidden states take from sentences, or from corrupted copies."""
    nothing = model.embedding.weight.new_zeros(0)
    corruption = noise.corruption if noise and model.order != 0 else None
    if corruption is None:
        read = ReadSentences(batch.positions, nothing.new_zeros(len(batch.inputs), 0))
        return model.context.summary(read)
    copies = corruption.copies(corpus, chosen)
    both = PackedBatch.of(copies.text, np.arange(len(copies.sources)), nothing.device)
    read = ReadSentences(both.positions, nothing.new_zeros(len(both.inputs), 0))
    left = torch.from_numpy(copies.left).to(nothing.device)
    return model.context.summary(read).take(left)


def _auxiliary(model: DocumentLM, contexts: Rows, batch: PackedBatch) -> Tensor:
    """(2,): sums of what training minimises of the context's own loss, and of its nats."""
    nll = model.context.auxiliary_nll(contexts, batch)
    if nll is None:
        return torch.zeros(2, device=contexts.device)
    minimised = nll / batch.lengths.clamp(min=1) if model.context.averaged else nll
    return torch.stack([minimised.sum(), nll.sum()])


def _sides(
    model: DocumentLM, corpus: Corpus, grid: NDArray[np.int64], contexts: Rows
) -> list[Rows | None]:
    """Side information of the sentences of each row of a grid, encoded all together.

    With that of training where the corpus has it.
    """
    context = model.context
    kinds = [*context.side_information]
    kinds += [kind for kind in context.training_information if kind in corpus.side]
    if not kinds:
        return [None] * len(grid)
    encoded = context.encoded(corpus.side_rows(kinds, grid[grid >= 0], contexts.device))
    ends = np.cumsum((grid >= 0).sum(axis=1))
    return [encoded.take(slice(a, b)) for a, b in pairwise([0, *ends.tolist()])]


def _given(
    model: DocumentLM,
    row: NDArray[np.int64],
    contexts: Rows,
    side: Rows | None,
    noise: Noise | None,
) -> tuple[Tensor, Rows, Rows]:
    """Streams with a sentence in this row of a grid, and the contexts of these sentences.

    The true contexts, and those in which noise lets the sentences be read. side: of the sentences.
    """
    index = torch.from_numpy(np.flatnonzero(row >= 0)).to(contexts.device)
    true = contexts.take(index)
    if side is not None:
        true = model.context.enter(true, side)
    if noise is None:
        return index, true, true
    null = model.context.start(len(true))
    return (
        index,
        true,
        noise.forget(true, null if side is None else model.context.enter(null, side)),
    )


def _sentences(batch: PackedBatch, grid: NDArray[np.int64]) -> Tensor:
    """(N,) index in the corpus of the sentence of each position of a batch of these sentences."""
    given = torch.from_numpy(grid[grid >= 0]).to(batch.rows.device)
    return given[batch.order[batch.rows]]


def _unrolled(
    model: DocumentLM,
    corpus: Corpus,
    chosen: NDArray[np.int64],
    batch: PackedBatch,
    given: Rows,
    noise: Noise | None,
) -> tuple[ReadSentences, Rows]:
    """Sentences `chosen`, packed in `batch`, read in contexts; and what the next contexts take.

    They take it from corrupted copies of some sentences. A copy is read in its sentence's context
    and side by side with it.
    """
    inputs = noise.inputs if noise else _unchanged
    corruption = noise.corruption if noise and model.order != 0 else None
    if corruption is None:
        sentences = model.unroll(batch, given, inputs)
        return sentences, model.context.summary(sentences)
    copies = corruption.copies(corpus, chosen)
    sources, left = (torch.from_numpy(a).to(given.device) for a in (copies.sources, copies.left))
    both = PackedBatch.of(copies.text, np.arange(len(sources)), given.device)
    sentences = model.unroll(both, given.take(sources), inputs)
    summary = model.context.summary(sentences).take(left)
    # the order of packed sentences is stable: without the copies, positions are those of `batch`
    own = sentences.positions.context < len(chosen)
    return ReadSentences.of(batch.positions, sentences.states.take(own)), summary


def _unchanged(x: Tensor, positions: Positions) -> Tensor:
    return x


@torch.no_grad()
def contexts_after(model: DocumentLM, corpus: Corpus) -> Rows:
    """Contexts (D rows) after the last sentence of each document, which may have none.

    The documents are read side by side, a sentence of each at a time. O(words · H²) time; the
    states of one sentence of each document are in memory.
    """
    contexts = model.context.start(corpus.n_documents)
    begins, lengths = corpus.documents[:-1], np.diff(corpus.documents)
    for t in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > t)
        index = torch.from_numpy(longer).to(contexts.device)
        contexts = contexts.put(
            index, read_on(model, corpus, begins[longer] + t, contexts.take(index))
        )
    return contexts


@torch.no_grad()
def read_on(
    model: DocumentLM, corpus: Corpus, sentences: NDArray[np.int64], contexts: Rows
) -> Rows:
    """Contexts (B rows) after one more sentence each: (B,) indices of sentences of a corpus."""
    batch = PackedBatch.of(corpus, sentences, contexts.device)
    contexts = entered(model, corpus, sentences, contexts)
    read = model.unroll(batch, contexts)
    return model.context.advance(contexts, model.context.summary(read))


@torch.no_grad()
def entered(
    model: DocumentLM, corpus: Corpus, sentences: NDArray[np.int64], contexts: Rows
) -> Rows:
    """Contexts (B rows) in which (B,) sentences are read, given side information if any is needed.

    The corpus has that of its sentences.
    """
    kinds = model.context.side_information
    if not kinds:
        return contexts
    side = corpus.side_rows(kinds, sentences, contexts.device)
    return model.context.enter(contexts, model.context.encoded(side))
