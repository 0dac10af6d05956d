"""Text as columns of ids: a sentence on each line, and documents as `DOCUMENTS` names them.

A backward model (`Config.backward`) reads the words of each sentence from right to left: it
predicts the last word first, and `</s>` after the first word. A model of reversed documents
(`Config.reverse_documents`) reads the sentences of a document from the last to the first: contexts
are later sentences. Either is an ordinary model of the reordered text, and a model may be both.

Training reads segments of documents side by side, as packed batches of sentences.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import on_device
from lm.sentences import Positions, Rows
from lm.side_information import TARGET, SideText, SideTexts, rows_of
from lm.vocabulary import END, START, UNKNOWN, Vocabulary, characters, words_of

PARAGRAPH = b"<p>"
Sentence = list[bytes] | None  # its words; None where a document ends
Text = TypeVar("Text", bound=SideText)


@dataclass(frozen=True, slots=True, eq=False)
class Corpus(SideText):
    """Documents of sentences of word ids (without `<s>` and `</s>`).

    tokens: (N,) int32 ids; sentences: (S + 1,) offsets into tokens; documents: (D + 1,)
    offsets into sentences; side: side information of all sentences, by kind; predicted: (S,)
    whether the words of a sentence are predicted, or only read, None where all are predicted;
    words: (S,) numbers of words where tokens are subword pieces, None where they are words.
    """

    documents: NDArray[np.int64]
    side: SideTexts = field(default_factory=dict)
    predicted: NDArray[np.bool_] | None = None
    words: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, documents: Sequence[Sequence[Sequence[int]]]) -> Corpus:
        """Columns of nested lists of ids; documents and sentences may be empty."""
        sentences = list(chain.from_iterable(documents))
        offsets = np.cumsum([0, *map(len, sentences)])
        tokens = np.fromiter(chain.from_iterable(sentences), np.int32, int(offsets[-1]))
        return cls(tokens, offsets, np.cumsum([0, *map(len, documents)]))

    @property
    def n_sentences(self) -> int:
        """S, the number of sentences."""
        return len(self.sentences) - 1

    @property
    def n_documents(self) -> int:
        """D, the number of documents."""
        return len(self.documents) - 1

    @property
    def n_unknown(self) -> int:
        """Number of tokens outside the vocabulary."""
        return int(np.count_nonzero(self.tokens == UNKNOWN))

    def without_longer(self, most: int) -> Corpus:
        """The corpus without sentences of more than `most` words, and without empty documents."""
        lengths = np.diff(self.sentences)
        kept = lengths <= most
        before = np.concatenate([[0], np.cumsum(kept)])  # sentences kept before each
        return self.taken(np.flatnonzero(kept), np.unique(before[self.documents]))

    def rearranged(self, documents: Sequence[NDArray[np.int64]]) -> Corpus:
        """Documents of sentences of this corpus, given by their indices; O(words).

        A sentence may occur several times, except where `side` has numbers of sentences.
        """
        chosen = np.concatenate([np.zeros(0, dtype=np.int64), *documents])
        return self.taken(chosen, np.cumsum([0, *map(len, documents)]))

    def taken(self, chosen: NDArray[np.int64], documents: NDArray[np.int64]) -> Corpus:
        """The sentences `chosen`, in this order; documents: (D + 1,) offsets into these."""
        text = self.take(chosen)
        side = {kind: beside.take(chosen) for kind, beside in self.side.items()}
        predicted = None if self.predicted is None else self.predicted[chosen]
        words = None if self.words is None else self.words[chosen]
        return Corpus(text.tokens, text.sentences, documents, side, predicted, words)

    def in_stretches(self, number: int) -> Corpus:
        """The corpus as a single text, cut into `number` documents of equal length.

        Lengths, in sentences, differ by at most 1; there are no more documents than sentences.
        """
        bounds = np.arange(number + 1) * self.n_sentences // number
        return replace(self, documents=np.unique(bounds))

    def in_passages(self, size: int) -> Corpus:
        """Passages of `size` sentences in place of documents; only their last one is predicted.

        They are cut from the beginnings of documents, and a shorter rest is left out. The training
        for the choice of next sentences of Ghosh et al. 2016, §4.3, has passages of four.
        """
        passages = [
            np.arange(first, first + size)
            for begin, end in pairwise(self.documents.tolist())
            for first in range(begin, end - size + 1, size)
        ]
        predicted = np.arange(len(passages) * size) % size == size - 1
        return replace(self.rearranged(passages), predicted=predicted)

    def side_rows(
        self, kinds: Sequence[str], chosen: NDArray[np.int64], device: torch.device
    ) -> Rows:
        """Side information (B rows) of the sentences `chosen`: a tensor for each of the kinds."""
        return rows_of({**self.side, TARGET: self}, kinds, chosen, self.documents, device)

    def digest(self) -> str:
        """Digest of the ids, the boundaries of sentences and documents, `side` and `predicted`."""
        state = hashlib.sha256()
        beside = [(text.sentences, text.tokens) for _, text in sorted(self.side.items())]
        predicted = () if self.predicted is None else (self.predicted,)
        columns = (self.documents, self.sentences, self.tokens, *predicted)
        for column in (*columns, *(column for pair in beside for column in pair)):
            state.update(len(column).to_bytes(8))
            state.update(np.ascontiguousarray(column).data)
        return state.hexdigest()[:16]


DOCUMENTS: Mapping[str, Callable[[bytes], Sentence]] = {  # what a line says
    # a blank line parts documents
    "blank": lambda line: words_of(line) or None,
    # a line whose first character is `=` closes a document, and a blank line is a sentence without
    # words, as in the data files and the code of Ji et al. 2016
    "equals": lambda line: None if line.startswith(b"=") else words_of(line),
    # paragraphs are documents, as for the contextual LSTMs of Ghosh et al. 2016
    "paragraphs": lambda line: None if line.strip(b" ") == PARAGRAPH else words_of(line) or None,
}


def intern(lines: Iterable[bytes], documents: str = "blank") -> tuple[list[bytes], Corpus]:
    """Distinct words in order of first appearance, and the corpus in their indices; O(words)."""
    index: dict[bytes, int] = {}
    tokens, sentences, bounds = array("i"), [0], [0]
    for words in map(DOCUMENTS[documents], lines):
        if words is not None:
            tokens.fromlist([index.setdefault(word, len(index)) for word in words])
            sentences.append(len(tokens))
        else:
            bounds.append(len(sentences) - 1)
    bounds.append(len(sentences) - 1)
    columns = np.array(tokens, np.int32), np.array(sentences), np.unique(bounds)
    return list(index), Corpus(*columns)


def encode(lines: Iterable[bytes], vocabulary: Vocabulary, documents: str = "blank") -> Corpus:
    """The corpus of a text in a vocabulary's ids."""
    words, corpus = intern(lines, documents)
    return renumber(corpus, words, vocabulary)


def renumber(text: Text, words: list[bytes], vocabulary: Vocabulary) -> Text:
    """An interned text in a vocabulary's ids."""
    tokens, sentences = vocabulary.numbered(words, text.tokens, text.sentences)
    encoded = replace(text, tokens=tokens, sentences=sentences)
    if isinstance(encoded, Corpus) and sentences is not text.sentences:
        return replace(encoded, words=np.diff(text.sentences))
    return encoded


def spelled(words: list[bytes], text: Text, known: Container[bytes]) -> tuple[list[bytes], Text]:
    """An interned text with the characters of unknown words in place of these, interned again."""
    index: dict[bytes, int] = {}
    pieces = [
        [
            index.setdefault(piece, len(index))
            for piece in ([word] if word in known else characters(word))
        ]
        for word in words
    ]
    joined = Corpus.of([pieces]).take(text.tokens.astype(np.int64))
    offsets = joined.sentences[text.sentences]
    return list(index), replace(text, tokens=joined.tokens, sentences=offsets)


def build_vocabulary(
    words: list[bytes], text: SideText, size: int, *, least: int = 1, unknown: bytes | None = None
) -> Vocabulary:
    """Vocabulary of the `size` most frequent words, of `least` or more, without `unknown`."""
    counts = np.bincount(text.tokens, minlength=len(words)).tolist()
    pairs = zip(words, counts, strict=True)
    kept = ((word, n) for word, n in pairs if word != unknown and n >= least)
    return Vocabulary.most_frequent(kept, size)


def with_last_words_twice(corpus: Corpus) -> Corpus:
    """The corpus with the last word of each sentence twice, as the reader of Ji et al. has it."""
    lengths = np.diff(corpus.sentences)
    filled = lengths > 0
    times = np.ones(len(corpus.tokens), dtype=np.int64)
    times[corpus.sentences[1:][filled] - 1] = 2
    sentences = np.concatenate([[0], np.cumsum(lengths + filled)])
    return replace(corpus, tokens=np.repeat(corpus.tokens, times), sentences=sentences)


def in_reading_order(
    corpus: Corpus, *, backward: bool | None, reverse_documents: bool | None = None
) -> Corpus:
    """The corpus as a model reads it; see the two fields of `lm.composition.Config`."""
    if reverse_documents:
        corpus = corpus.taken(mirrored(corpus.documents), corpus.documents)
    if backward:
        corpus = replace(corpus, tokens=corpus.tokens[mirrored(corpus.sentences)])
    return corpus


def mirrored(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices (N,) of N things where each group offsets[g]:offsets[g + 1] is in reverse order."""
    mirror = np.repeat(offsets[:-1] + offsets[1:] - 1, np.diff(offsets))
    return mirror - np.arange(len(mirror))


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
