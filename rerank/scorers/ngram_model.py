"""`--ngram`: an n-gram language model as features, log-probability `NAME` and `NAMEoov`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary
from decoders.problem import DocumentProblem
from rerank.corpus.kbest import KBest
from rerank.files.paths import FilePath
from rerank.formats.arpa import read_ngrams
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.cached_scores import ListTexts
from rerank.scorers.file_scorer import FileScorer, ListInfo
from rerank.scorers.kenlm_model import KenlmModel, is_kenlm_binary
from rerank.scorers.unknown_words import UnknownWords

if TYPE_CHECKING:
    from lm.ngrams.model import NGramModel

_BLOCK = 1 << 22  # bytes of text scored at once; their words take ten times as much


class Model(Protocol):
    """An n-gram model as scores need it."""

    @property
    def unknown_share(self) -> float:
        """Probability of `<unk>` without a context."""
        ...

    def __contains__(self, word: bytes) -> bool:
        """Whether a word is in the vocabulary."""
        ...

    def scores(self, text: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
        """Log p (n,) of LF-ended lines and `</s>` in nats, their unknown words, and all words."""
        ...


class ArpaModel:
    """A model of an ARPA file."""

    def __init__(self, model: NGramModel) -> None:
        self._model, self.unknown_share = model, model.unknown_share

    def __contains__(self, word: bytes) -> bool:
        """Whether a word is in the vocabulary."""
        return word in self._model.vocabulary.ids

    def scores(self, text: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
        """Log p (n,) of LF-ended lines and `</s>` in nats, their unknown words, and all words."""
        from lm.vocabulary import UNKNOWN

        tokens, offsets = self._model.vocabulary.encode_lines(text)
        sums = self._model.scores(tokens, offsets).sum(axis=1)
        before = np.concatenate([[0], np.cumsum(tokens == UNKNOWN)])
        return sums, np.diff(before[offsets]), len(tokens)


class NGramScores(FileScorer):
    """Features of order 0: log p of a candidate's words and `</s>` in nats, and its unknown words.

    The model is an ARPA file or, with the extra `kenlm`, a KenLM binary. It scores about a million
    words a second or more, no slower than a cache is read: nothing is cached.
    Scores are equal to the last bit for any batch.
    """

    runs_on = "cpu"

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self.columns = (f"{name}oov",)
        self._model: Model
        binary = is_kenlm_binary(path)
        self._model = KenlmModel(path) if binary else ArpaModel(read_ngrams(path, notices))
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
        texts = ListTexts.of(kbest)
        blocks = [self._model.scores(block) for block in _blocks(texts.text)]
        sums, unknown = (np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[:2])
        words = sum(words for _, _, words in blocks)
        self._unknown.add_candidates(texts, words, unknown, self._model.__contains__)
        lists = np.split(sums, texts.offsets[1:-1]) if kbest.n else []
        return ScoredDocument(Unary(lists), unknown.astype(np.float64)[:, None])

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


def _blocks(text: bytes) -> Iterator[bytes]:
    """LF-ended lines in blocks of about `_BLOCK` bytes, at least one, the last maybe empty."""
    start = 0
    while len(text) - start > _BLOCK:
        stop = text.find(b"\n", start + _BLOCK) + 1
        yield text[start:stop]
        start = stop
    yield text[start:]
