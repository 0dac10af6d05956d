"""Segments of documents read side by side, for training and perplexity.

A segment has up to L sentences from each of B documents. All L · B sentences are one batch where
the hidden states do not depend on the context, and where the context does not depend on hidden
states; else B sentences are.

Training adds noise: dropout of numbers, contexts missing or corrupted. Rates are
of what is dropped. What is kept is divided by 1 − rate, so that expectations stay. All noise is a
function of generators; a `Noise` serves a single update. At test time the sentences before are
candidates of a k-best list. A model that has read nothing but clean text in training trusts their
words too much: contexts may be taken from sentences that are corrupted as machine translations are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import on_device
from lm.corpus import Corpus, PackedBatch, Segment
from lm.model import DocumentLM
from lm.sentences import Positions, ReadSentences, Rows

# shares of the words of a corrupted sentence: words are dropped and moved, as in the noise of
# Lample et al. 2018 (https://arxiv.org/abs/1711.00043), and replaced, as wrong translations are
DROPPED = 0.1
REPLACED = 0.1
SWAPPED = 0.1


class Copies(NamedTuple):
    """B sentences, and behind them C corrupted copies of some, as a text of B + C sentences.

    sources: (B + C,) which of the B sentences each is or copies; left: (B,) the sentence of the
    text that stands for each of the B in the contexts after it: its copy, if it has one.
    """

    text: Corpus
    sources: NDArray[np.int64]
    left: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Corruption:
    """Makes corrupted copies of sentences, of each with probability `share`."""

    share: float
    rng: np.random.Generator

    def copies(self, corpus: Corpus, chosen: NDArray[np.int64]) -> Copies:
        """The sentences `chosen` (B,) of a corpus, and copies of some; O(words) time."""
        n = len(chosen)
        copied = np.flatnonzero(self.rng.random(n) < self.share)
        sources = np.concatenate([np.arange(n), copied])
        text = corpus.take(chosen[sources])
        clean, lengths = text.tokens[: text.sentences[n]], np.diff(text.sentences)
        owners = np.repeat(np.arange(len(copied)), lengths[n:])
        words, owners = self._corrupted(corpus, text.tokens[len(clean) :], owners)
        lengths[n:] = np.bincount(owners, minlength=len(copied))
        tokens, offsets = np.concatenate([clean, words]), np.concatenate([[0], np.cumsum(lengths)])
        left = np.arange(n)
        left[copied] = n + np.arange(len(copied))
        return Copies(Corpus(tokens, offsets, np.array([0, len(sources)])), sources, left)

    def _corrupted(
        self, corpus: Corpus, words: NDArray[np.int32], owners: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Words of sentences after corruption; owners: (N,) sentence of each word, ascending."""
        fate = self.rng.random(len(words))
        kept = fate >= DROPPED
        words, owners, fate = words[kept].copy(), owners[kept], fate[kept]
        replaced = fate < DROPPED + REPLACED
        # a random token of the text is a draw from its unigram distribution
        drawn = self.rng.integers(max(1, len(corpus.tokens)), size=int(replaced.sum()))
        words[replaced] = corpus.tokens[drawn]
        # a swapped word goes behind its right neighbour, unless it is the last
        place = np.arange(len(words)) + 1.5 * (self.rng.random(len(words)) < SWAPPED)
        return words[np.lexsort((place, owners))], owners


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Training noise of an update.

    dropout: rate for single numbers of inputs and output features; context_dropout: for whole
    contexts. corruption: of the sentences that contexts are taken from.
    """

    dropout: float
    context_dropout: float
    generator: torch.Generator
    corruption: Corruption | None = None

    def features(self, x: Tensor) -> Tensor:
        """Values (N, D), with dropout of single numbers."""
        if self.dropout == 0.0:
            return x
        keep = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.dropout
        return x * keep / (1 - self.dropout)

    def forget(self, contexts: Rows, null: Rows) -> Rows:
        """Contexts (B rows), some of them replaced by the null context."""
        rows = torch.rand(len(contexts), 1, generator=self.generator, device=contexts.device)
        dropped = rows[:, 0] < self.context_dropout
        return contexts.put(dropped, null.take(dropped))


def generator_of(seed: int, *numbers: int, device: torch.device | str = "cpu") -> torch.Generator:
    """Generator that hashes a seed and numbers: a CPU's ignores more than 32 bits of its seed."""
    mixed = int(np.random.SeedSequence((seed, *numbers)).generate_state(1)[0])
    return torch.Generator(device).manual_seed(mixed)


WITHOUT_NOISE = Noise(0.0, 0.0, torch.Generator())


Grid: TypeAlias = NDArray[np.int64]  # (L, B) sentences of a segment, −1 where there is none


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A segment's features (N, R), targets (N,), auxiliary loss, and contexts (B rows) after it.

    auxiliary_loss: the sum that training minimises; auxiliary_nats: Σ −log p of the same
    predictions, without gradient. sentences: (N,) index in the corpus of each target's sentence;
    lengths: (N,) number of its words; parts: positions of the features, and their contexts.
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
    model: DocumentLM, corpus: Corpus, segment: Segment, contexts: Rows, noise: Noise | None = None
) -> Reading:
    """The segment's output features and the contexts after it.

    contexts: (B rows) after the previous segment; replaced where a stream begins a document.
    A context that noise has dropped is null for its sentence alone: what follows is advanced from
    the true context.
    """
    begins = torch.from_numpy(segment.begins).to(contexts.device)
    contexts = contexts.put(begins, model.context.start(len(contexts)).take(begins))
    noise = noise or WITHOUT_NOISE
    reader = _SegmentReader(model, corpus, noise, noise.corruption if model.order != 0 else None)
    if model.fusion.hidden_depends_on_context and model.context.reads_states:
        return reader.sentence_by_sentence(segment.sentences, contexts)
    return reader.all_at_once(segment.sentences, contexts)


@dataclass(frozen=True, slots=True, eq=False)
class _SegmentReader:
    """Reads sentences of a corpus in their contexts, with noise in training."""

    model: DocumentLM
    corpus: Corpus
    noise: Noise
    corruption: Corruption | None

    def sentence_by_sentence(self, grid: Grid, contexts: Rows) -> Reading:
        """B sentences at a time, once their contexts are known."""
        model = self.model
        sides = self._sides(grid, contexts)
        columns: list[tuple[Tensor, ...]] = []
        losses = torch.zeros(2, device=contexts.device)
        parts: list[tuple[Positions, Rows]] = []
        for row, side in zip(grid, sides, strict=True):
            index, true, noisy = self._entered(row, contexts, side)
            if not len(index):
                break
            chosen = row[row >= 0]
            batch = PackedBatch.of(self.corpus, chosen, contexts.device)
            sentences, summary = self._unrolled(chosen, batch, noisy)
            features = model.features(sentences, noisy, self.noise.features)
            columns.append((features, batch.targets, _sentences(batch, chosen), batch.lengths))
            parts.append((sentences.positions, noisy))
            losses = losses + self._auxiliary(true, batch)
            contexts = contexts.put(index, model.context.advance(true, summary))
        features, targets, sentences_of, lengths = map(torch.cat, zip(*columns, strict=True))
        nats = losses[1].detach()
        return Reading(features, targets, contexts, losses[0], nats, sentences_of, lengths, parts)

    def all_at_once(self, grid: Grid, contexts: Rows) -> Reading:
        """All L · B sentences in a batch; contexts are made before it if they need words alone."""
        model, chosen = self.model, grid[grid >= 0]
        batch = PackedBatch.of(self.corpus, chosen, contexts.device)
        if model.fusion.hidden_depends_on_context:
            _, summary = self._unrolled(chosen, batch, None)
            true, noisy, contexts = self._contexts(grid, contexts, summary)
            sentences = model.unroll(batch, noisy, self.noise.features)
        else:
            null = model.context.start(len(batch.order))
            sentences, summary = self._unrolled(chosen, batch, null)
            true, noisy, contexts = self._contexts(grid, contexts, summary)
        features = model.features(sentences, noisy, self.noise.features)
        loss, nats = self._auxiliary(true, batch)
        columns = features, batch.targets, contexts, loss, nats.detach(), _sentences(batch, chosen)
        return Reading(*columns, batch.lengths, [(sentences.positions, noisy)])

    def _contexts(self, grid: Grid, contexts: Rows, summary: Rows) -> tuple[Rows, Rows, Rows]:
        """Contexts of all sentences, row by row: true, with noise; and those after the grid."""
        all_true, all_noisy, done = [], [], 0
        for row, side in zip(grid, self._sides(grid, contexts), strict=True):
            index, true, noisy = self._entered(row, contexts, side)
            if not len(index):
                break
            all_true.append(true)
            all_noisy.append(noisy)
            left = summary.take(slice(done, done + len(index)))
            contexts = contexts.put(index, self.model.context.advance(true, left))
            done += len(index)
        return Rows.cat(all_true), Rows.cat(all_noisy), contexts

    def _auxiliary(self, contexts: Rows, batch: PackedBatch) -> Tensor:
        """(2,): sums of what training minimises of the context's own loss, and of its nats."""
        context = self.model.context
        nll = context.auxiliary_nll(contexts, batch)
        if nll is None:
            return torch.zeros(2, device=contexts.device)
        minimised = nll / batch.lengths.clamp(min=1) if context.averaged else nll
        return torch.stack([minimised.sum(), nll.sum()])

    def _sides(self, grid: Grid, contexts: Rows) -> list[Rows | None]:
        """Side information of the sentences of each row of a grid, that of training included."""
        context, corpus = self.model.context, self.corpus
        kinds = [*context.side_information]
        kinds += [kind for kind in context.training_information if kind in corpus.side]
        if not kinds:
            return [None] * len(grid)
        encoded = context.encoded(corpus.side_rows(kinds, grid[grid >= 0], contexts.device))
        ends = np.cumsum((grid >= 0).sum(axis=1))
        return [encoded.take(slice(a, b)) for a, b in pairwise([0, *ends.tolist()])]

    def _entered(self, row: Grid, contexts: Rows, side: Rows | None) -> tuple[Tensor, Rows, Rows]:
        """Streams with a sentence in this row of a grid, their contexts, and these with noise."""
        (index,) = on_device((np.flatnonzero(row >= 0),), contexts.device)
        context, true = self.model.context, contexts.take(index)
        if side is not None:
            true = context.enter(true, side)
        if self.noise is WITHOUT_NOISE:
            return index, true, true
        null = context.start(len(true))
        if side is not None:
            null = context.enter(null, side)
        return index, true, self.noise.forget(true, null)

    def _unrolled(
        self, chosen: Grid, batch: PackedBatch, contexts: Rows | None
    ) -> tuple[ReadSentences, Rows]:
        """Sentences `chosen`, packed in `batch`, read in contexts; and what contexts take of them.

        It is taken from corrupted copies of some sentences, which are read side by side with them.
        contexts: None where contexts take words alone, and nothing needs to be read.
        """
        model, device = self.model, batch.rows.device

        def unrolled(batch: PackedBatch, contexts: Rows | None) -> ReadSentences:
            if contexts is None:
                return ReadSentences.unread(batch.positions)
            return model.unroll(batch, contexts, self.noise.features)

        if self.corruption is None:
            sentences = unrolled(batch, contexts)
            return sentences, model.context.summary(sentences)
        text, *indices = self.corruption.copies(self.corpus, chosen)
        sources, left = on_device(indices, device)
        packed = PackedBatch.of(text, np.arange(len(sources)), device)
        sentences = unrolled(packed, None if contexts is None else contexts.take(sources))
        summary = model.context.summary(sentences).take(left)
        # packed sentences keep their order: without the copies, positions are those of `batch`
        originals = sentences.positions.context < len(chosen)
        return ReadSentences(batch.positions, sentences.states.take(originals)), summary


def _sentences(batch: PackedBatch, chosen: Grid) -> Tensor:
    """(N,) index in the corpus of the sentence of each position of a batch of these sentences."""
    return torch.from_numpy(chosen).to(batch.rows.device)[batch.order[batch.rows]]


@torch.no_grad()
def contexts_after(model: DocumentLM, corpus: Corpus, *, unread: int = 0) -> Rows:
    """Contexts (D rows) after each document, or before its last `unread` sentences."""
    contexts = model.context.start(corpus.n_documents)
    begins, lengths = corpus.documents[:-1], np.diff(corpus.documents) - unread
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
    """Contexts (B rows) after another sentence each: (B,) indices of sentences of a corpus."""
    batch = PackedBatch.of(corpus, sentences, contexts.device)
    contexts = entered(model, corpus, sentences, contexts)
    read = model.unroll(batch, contexts)
    return model.context.advance(contexts, model.context.summary(read))


@torch.no_grad()
def entered(
    model: DocumentLM, corpus: Corpus, sentences: NDArray[np.int64], contexts: Rows
) -> Rows:
    """Contexts (B rows) in which (B,) sentences are read, with side information of the corpus."""
    kinds = model.context.side_information
    if not kinds:
        return contexts
    side = corpus.side_rows(kinds, sentences, contexts.device)
    return model.context.enter(contexts, model.context.encoded(side))
