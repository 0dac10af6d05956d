"""`--ngram`: an n-gram language model as features, log-probability `NAME` and `NAMEoov`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary
from decoders.problem import DocumentProblem
from rerank.corpus.kbest import KBest, split_words
from rerank.files.paths import FilePath
from rerank.formats.arpa import read_ngrams
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.cached_scores import ListTexts
from rerank.scorers.file_scorer import FileScorer, ListInfo
from rerank.scorers.unknown_words import UnknownWords


class NGramScores(FileScorer):
    """Features of order 0: log p of a candidate's words and `</s>` in nats, and its unknown words.

    A model scores millions of words a second, no slower than a cache is read: nothing is cached.
    Scores are equal to the last bit for any batch.
    """

    runs_on = "cpu"

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self.columns = (f"{name}oov",)
        self._model = read_ngrams(path, notices)
        self._unknown, self._seconds = UnknownWords(), 0.0

    @property
    def seconds(self) -> float:
        """Time that scores took."""
        return self._seconds

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[ScoredDocument]:
        """Scores of each document's candidates, and (n, 1) counts of unknown words."""
        began = time.perf_counter()
        found = [self._scored(kbest) for _, kbest in documents]
        self._seconds += time.perf_counter() - began
        self.documents += len(documents)
        return found

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Scores of one document's candidates."""
        return self._scored(kbest).problem

    def _scored(self, kbest: KBest) -> ScoredDocument:
        from lm.vocabulary import UNKNOWN

        texts = ListTexts.of(kbest)
        tokens, offsets = self._model.vocabulary.encode_lines(texts.text)
        sums = self._model.scores(tokens, offsets).sum(axis=1)
        before = np.concatenate([[0], np.cumsum(tokens == UNKNOWN)])
        unknown = np.diff(before[offsets])
        self._count(texts, len(tokens), unknown)
        lists = np.split(sums, texts.offsets[1:-1]) if kbest.n else []
        return ScoredDocument(Unary(lists), unknown.astype(np.float64)[:, None])

    def _count(self, texts: ListTexts, words: int, unknown: NDArray[np.int64]) -> None:
        """Count the unknown words, and name those of one hypothesis of each list."""
        self._unknown.words += words
        self._unknown.oov += int(unknown.sum())
        rows = np.flatnonzero(unknown)
        owners = np.searchsorted(texts.offsets, rows, side="right")
        lines, known = texts.text.split(b"\n"), self._model.vocabulary.ids
        for row in rows[np.unique(owners, return_index=True)[1]].tolist():
            self._unknown.named.update(w for w in split_words(lines[row]) if w not in known)

    def forgetful(self) -> NGramScores:
        """A copy for measuring time, which does not count."""
        twin = copy(self)
        twin._unknown = UnknownWords()
        return twin

    def remembers(self, kbest: KBest) -> bool:
        """False: scores are computed."""
        return False

    def finish(self, source: str, notices: Notices) -> None:
        """A warning if a run has far more unknown words than p(`<unk>`) lets expect."""
        about = {"oov_rate": self._model.unknown_share}
        self._unknown.warn(self.name, about, notices, source=source)
        self._unknown = UnknownWords()

    def report(self) -> str:
        """`ngram: 12 documents scored by model.arpa.gz in 0.1 s`."""
        return (
            f"{self.name}: {self.documents:,} documents scored by {self.source} in "
            f"{self.seconds:.1f} s"
        )
