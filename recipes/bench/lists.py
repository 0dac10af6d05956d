"""K-best lists to measure on: real ones as word ids, and a made-up one of a thousand candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from pathlib import Path

import numpy as np

from lm.corpus import Corpus
from lm.sentences import Rows
from lm.vocabulary import SPECIAL, Vocabulary
from rerank.corpus.documents import Documents
from rerank.files.lines import read_lines
from rerank.formats.document_files import documents_of_file
from rerank.notices import Notices
from rerank.runs.lists import KBestFile, Lists

KBest = list[list[int]]
Words = list[list[bytes]]
MADE_UP = "made-up 1000-best"
# name: k-best list, document ids and source (None: one document; no source)
FILES: dict[str, tuple[str, str | None, str | None]] = {
    "tvsub test": (
        "tvsub-zh-en/test.nbest.xz",
        "tvsub-zh-en/test.docids",
        "tvsub-zh-en/test.zh",
    ),
    "ted tst2010": (
        "ted-zh-en/tst2010.nbest.gz",
        "ted-zh-en/tst2010.docids",
        "ted-zh-en/tst2010.zh",
    ),
    "europarl": ("fixtures/moses-oldstyle-europarl.nbest.gz", None, None),
}


@dataclass(frozen=True, slots=True)
class Set:
    """Consecutive k-best lists, whether a document begins with each, and source words of each."""

    name: str
    lists: list[KBest]
    first: list[bool]
    sources: list[list[int]] = field(default_factory=list)

    def head(self, n: int, k: int | None = None) -> Set:
        """The first k candidates of the first n sentences."""
        lists = [c[:k] for c in self.lists[:n]]
        return Set(self.name, lists, self.first[:n], self.sources[:n])

    def side(self) -> Rows:
        """The sources as side information."""
        corpus = Corpus.of([self.sources])
        return Rows.of(corpus.rows(np.arange(len(self.sources))))

    def documents(self) -> Iterator[list[KBest]]:
        """The lists of each document."""
        starts = [t for t, begins in enumerate(self.first) if begins]
        for start, stop in zip(starts, [*starts[1:], len(self.lists)], strict=True):
            yield self.lists[start:stop]

    @property
    def tokens(self) -> int:
        """Steps of a recurrence without sharing: a candidate's words and `<s>`."""
        return sum(len(candidate) + 1 for c in self.lists for candidate in c)

    def nodes(self) -> int:
        """Distinct prefixes over all sentences, the empty one included."""
        return len(_prefixes(candidate for c in self.lists for candidate in c))

    def list_nodes(self) -> list[int]:
        """Number of trie nodes of each sentence."""
        return [len(_prefixes(c)) for c in self.lists]


def _prefixes(candidates: Iterator[list[int]] | KBest) -> set[tuple[int, ...]]:
    return {tuple(c[:end]) for c in candidates for end in range(len(c) + 1)}


@dataclass(frozen=True, slots=True)
class Text:
    """A set before its words have ids."""

    name: str
    lists: list[Words]
    first: list[bool]
    sources: Words

    @classmethod
    def read(cls, data: Path, name: str, sentences: int) -> Text:
        """The first sentences of a k-best list; those without candidates are left out."""
        file, docids, source = FILES[name]
        lines = [] if source is None else list(read_lines(data / source, Notices()))
        sources: Words = []
        notices = Notices()
        documents = Documents.one(1 << 20)
        if docids is not None:
            documents = documents_of_file(data / docids, notices)
        lists: list[Words] = []
        first: list[bool] = []
        kbest = KBestFile(data / file, Lists(data / file), documents=documents)
        for _, document in kbest.read(notices):
            rows = [document.rows(t) for t in np.flatnonzero(document.counts).tolist()]
            lists += ([document.tokens(row) for row in of] for of in rows)
            first += [i == 0 for i in range(len(rows))]
            numbers = (document.first + t for t in np.flatnonzero(document.counts).tolist())
            sources += [lines[n].split() for n in numbers] if lines else []
            if len(lists) >= sentences:
                break
        return cls(name, lists[:sentences], first[:sentences], sources[:sentences])

    def encoded(self, vocabulary: Vocabulary, source: Vocabulary | None = None) -> Set:
        """The set in the ids of a vocabulary; source: [default: the words of its sources]."""
        source = source or _most_frequent(self.sources, len(vocabulary))
        lists = [[vocabulary.encode(words) for words in c] for c in self.lists]
        return Set(self.name, lists, self.first, list(map(source.encode, self.sources)))

    def vocabulary(self, size: int) -> Vocabulary:
        """Its most frequent words, `size` ids in all."""
        return _most_frequent((words for c in self.lists for words in c), size)


def _most_frequent(texts: Iterable[list[bytes]], size: int) -> Vocabulary:
    counts = Counter(word for words in texts for word in words)
    return Vocabulary.most_frequent(counts.items(), size - len(SPECIAL))


def made_up(vocabulary: int, *, sentences: int = 20, k: int = 1000, seed: int = 1) -> Set:
    """The k best readings of each of some sentence lattices with Zipf words: one document.

    A sentence is 8 to 12 phrases, each with 2 to 6 alternatives of 1 to 3 words and a cost;
    a reading takes one of each, and costs their sum. As in a phrase-based system's list, the
    readings share most of their phrases and differ anywhere in the sentence.
    """
    rng = np.random.default_rng(seed)
    rate = 1.0 / np.arange(1, vocabulary - len(SPECIAL) + 1)
    words = rng.choice(len(rate), size=100_000, p=rate / rate.sum()) + len(SPECIAL)
    stream = iter(words.tolist())
    lists = [_readings(rng, stream, k) for _ in range(sentences)]
    return Set(MADE_UP, lists, [t == 0 for t in range(sentences)])


def _readings(rng: np.random.Generator, words: Iterator[int], k: int) -> KBest:
    """The k cheapest readings of one lattice, cheapest first, all different."""
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    for _ in range(rng.integers(8, 13)):
        phrases = [
            (float(rng.exponential()), list(islice(words, int(rng.integers(1, 4)))))
            for _ in range(rng.integers(2, 7))
        ]
        extended = sorted((a + b, x + y) for a, x in best for b, y in phrases)
        best = nsmallest(k, _distinct(extended))
    return [reading for _, reading in best]


def _distinct(readings: Sequence[tuple[float, list[int]]]) -> Iterator[tuple[float, list[int]]]:
    seen: set[tuple[int, ...]] = set()
    for cost, reading in readings:
        if tuple(reading) not in seen:
            seen.add(tuple(reading))
            yield cost, reading
