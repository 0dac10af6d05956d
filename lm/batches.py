"""Sentences side by side: packed batches, and the order in which training reads documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import on_device
from lm.corpus import Corpus
from lm.sentences import Positions
from lm.vocabulary import END, START


@dataclass(frozen=True, slots=True, eq=False)
class PackedBatch:
    """B sentences without padding, N = sum of their lengths + B positions.

    Sentences are sorted by length, longest first, and laid out time step by time step; inputs
    are `<s> w_1 … w_M`, targets `w_1 … w_M </s>`, (N,) ids. order: (B,) index of each packed
    row in the caller's sentences; rows: (N,) packed row of each position; last: (B,) position of
    each packed row's last input; sizes: number of rows alive at each time step; before: (N,)
    position of the input before, −1 at the first.
    """

    order: Tensor
    rows: Tensor
    last: Tensor
    sizes: tuple[int, ...]
    inputs: Tensor
    targets: Tensor
    before: Tensor

    @property
    def positions(self) -> Positions:
        """The inputs' positions; sentences and contexts are in the caller's order."""
        last = torch.empty_like(self.last).index_copy(0, self.order, self.last)
        context = self.order[self.rows]
        return Positions(self.inputs, self.before, context, last, max(0, len(self.sizes) - 1))

    @property
    def lengths(self) -> Tensor:
        """Number of words (N,) of the sentence of each position, without `</s>`."""
        inputs = torch.zeros_like(self.order).index_add_(0, self.rows, torch.ones_like(self.rows))
        return inputs[self.rows] - 1

    @classmethod
    def of(
        cls, corpus: Corpus, chosen: NDArray[np.int64], device: torch.device | None = None
    ) -> PackedBatch:
        """The packed batch of the sentences `chosen` ((B,) indices) of a corpus."""
        starts = corpus.sentences[chosen]
        lengths = corpus.sentences[chosen + 1] - starts + 1
        order = np.argsort(-lengths, kind="stable")
        starts, lengths = starts[order], lengths[order]
        steps = int(lengths[0]) if len(lengths) else 0
        sizes = np.searchsorted(-lengths, -np.arange(steps), side="left")
        time = np.repeat(np.arange(steps), sizes)
        rows = np.arange(len(time)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        position = starts[rows] + time
        last = time == lengths[rows] - 1
        tokens = corpus.tokens
        clipped = np.minimum(position, max(len(tokens) - 1, 0))
        words = tokens[clipped] if len(tokens) else np.zeros(len(time), dtype=np.int32)
        before = tokens[position - 1] if len(tokens) else words
        targets = np.where(last, END, words).astype(np.int64)
        inputs = np.where(time == 0, START, before).astype(np.int64)
        previous = np.arange(len(time)) - sizes[time - 1] if steps else time
        ends = np.flatnonzero(last)
        ends = ends[np.argsort(rows[ends])]
        columns = {"order": order, "rows": rows, "last": ends, "inputs": inputs}
        columns |= {"targets": targets, "before": np.where(time == 0, -1, previous)}
        tensors = dict(zip(columns, on_device([*columns.values()], device), strict=True))
        return cls(sizes=tuple(sizes.tolist()), **tensors)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Up to L consecutive sentences from each of B streams, one document each.

    sentences: (L, B) indices into the corpus, -1 where a stream's document has ended; begins:
    (B,) whether a stream starts a document here.
    """

    sentences: NDArray[np.int64]
    begins: NDArray[np.bool_]

    @property
    def active(self) -> int:
        """Number of streams with a sentence."""
        return int((self.sentences[0] >= 0).sum())


def segments(
    corpus: Corpus, order: Sequence[int] | NDArray[np.int64], *, streams: int, length: int
) -> Iterator[Segment]:
    """Documents in an order, read by `streams` readers, `length` sentences at a time.

    A reader that finishes its document takes the next; a segment never crosses a document's end.
    O(sentences) time, O(streams) memory.
    """
    queue = iter(order)
    position, end = np.zeros((2, streams), dtype=np.int64)
    while True:
        begins = np.zeros(streams, dtype=np.bool_)
        for stream in np.flatnonzero(position >= end):
            document = next(queue, None)
            if document is not None:
                position[stream], end[stream] = corpus.documents[document : document + 2]
                begins[stream] = True
        grid = position + np.arange(length)[:, None]
        grid[grid >= end] = -1
        if (grid[0] < 0).all():
            return
        yield Segment(grid, begins)
        position = np.minimum(position + length, end)


def independent_segments(
    corpus: Corpus, *, streams: int, length: int, seed: int, epoch: int
) -> Iterator[Segment]:
    """Stretches of up to `length` sentences in a random order, each as if it were a document.

    Documents are cut from their beginnings, as by Ji et al. 2016, §3.1. O(sentences / length)
    memory.
    """
    first, end = corpus.documents[:-1], corpus.documents[1:]
    counts = -(-(end - first) // length)
    document = np.repeat(np.arange(corpus.n_documents), counts)
    rank = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts, ends = first[document] + rank * length, end[document]
    order = np.random.default_rng((seed, epoch)).permutation(len(starts))
    for chosen in np.array_split(order, range(streams, len(order), streams)):
        grid = starts[chosen] + np.arange(length)[:, None]
        grid[grid >= ends[chosen]] = -1
        absent = np.full((length, streams - len(chosen)), -1)
        yield Segment(np.hstack([grid, absent]), np.ones(streams, dtype=np.bool_))


def carried_segments(
    corpus: Corpus, *, streams: int, length: int, seed: int, epoch: int
) -> Iterator[Segment]:
    """`segments` of the documents in an order that is a function of seed and epoch."""
    order = np.random.default_rng((seed, epoch)).permutation(corpus.n_documents)
    return segments(corpus, order, streams=streams, length=length)


SEGMENTS: Mapping[str, Callable[..., Iterator[Segment]]] = {  # of an epoch, by its seed alone
    "carried": carried_segments,
    "independent": independent_segments,
}
