"""`--ngram`: an n-gram language model as features, log-probability `NAME` and `NAMEoov`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary
from rerank.corpus.kbest import KBest, NamedLists, split_words
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.notices import Notices
from rerank.scorers.cached_scores import ListTexts
from rerank.scorers.features import ScoredDocument
from rerank.scorers.score_files import FileScorer, ListInfo
from rerank.scorers.unknown_words import UnknownWords

if TYPE_CHECKING:
    from lm.ngrams import NGramModel

MAGIC = b"mmap lm http://kheafield.com/code"  # KenLM, lm/binary_format.cc
_MARKERS = frozenset([b"<s>", b"</s>"])  # in a hypothesis, words that no text has
_BLOCK = 1 << 22  # bytes of text scored at once; their words take ten times as much


class KenlmModel:
    """A model of any of KenLM's binary formats. InputError for one that cannot be loaded.

    unknown_share: probability of `<unk>` without a context; of_words: that it has no subword units.
    """

    of_words = True

    def __init__(self, path: FilePath) -> None:
        source = display(path)
        try:
            import kenlm
        except ImportError:
            raise InputError(
                "a KenLM binary needs the package kenlm: pip install 'rerank-mt[kenlm]' (with a "
                "C++ compiler); or give the ARPA file that it was built from",
                source=source,
            ) from None
        try:
            self._model: Any = kenlm.Model(os.fspath(path))
        except (OSError, RuntimeError, ValueError) as fault:
            reason = " ".join(str(fault).split())
            raise InputError(
                f"kenlm cannot load this binary: {reason:.200}; build it again from its ARPA file",
                source=source,
            ) from None
        self._state: Any = kenlm.State
        self._known: dict[bytes, bool] = {}
        empty, after = kenlm.State(), kenlm.State()
        self._model.NullContextWrite(empty)
        self.unknown_share = 10.0 ** float(self._model.BaseScore(empty, "<unk>", after))

    def __contains__(self, word: bytes) -> bool:
        """Whether a word is in the vocabulary."""
        if word not in self._known:
            self._known[word] = word not in _MARKERS and word.decode() in self._model
        return self._known[word]

    def scores(self, text: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
        """Log p (n,) of LF-ended lines and `</s>` in nats, their unknown words, and all words.

        Words before a line's first difference from the line above are not scored again.
        """
        lines = text.split(b"\n")[:-1]
        sums, unknown, words = np.zeros(len(lines)), np.zeros(len(lines), np.int64), 0
        begin = self._state()
        self._model.BeginSentenceWrite(begin)
        path: list[tuple[bytes, Any, float, int]] = [(b"", begin, 0.0, 0)]
        for n, line in enumerate(lines):
            tokens = split_words(line)
            words += len(tokens)
            common = 0
            while (
                common < min(len(tokens), len(path) - 1) and path[common + 1][0] == tokens[common]
            ):
                common += 1
            del path[common + 1 :]
            for word in tokens[common:]:
                _, state, total, missing = path[-1]
                after, known = self._state(), word in self
                total += self._model.BaseScore(state, word.decode() if known else "<unk>", after)
                path.append((word, after, total, missing + (not known)))
            _, state, total, missing = path[-1]
            sums[n] = total + self._model.BaseScore(state, "</s>", self._state())
            unknown[n] = missing
        return sums * math.log(10), unknown, words


def read_ngrams(path: FilePath, notices: Notices) -> NGramModel:
    """The n-gram model of an ARPA file, plain or compressed; `-` is standard input.

    InputError, with the line, for another file.
    """
    from lm.ngrams.arpa import ArpaError, read_arpa

    try:
        # unusual characters in its words are those of the training text: nothing to warn of here
        model = read_arpa(read_lines(path, Notices()))
    except ArpaError as fault:
        raise InputError(str(fault), source=display(path), line=fault.line) from None
    if not model.unknown_share:
        notices.add("no-unknown-word", source=display(path))
    return model


class ArpaModel:
    """A model of an ARPA file, with the attributes of a `KenlmModel`."""

    def __init__(self, model: NGramModel) -> None:
        from lm.subwords import SubwordVocabulary

        self.of_words = not isinstance(model.vocabulary, SubwordVocabulary)
        self._model, self.unknown_share = model, model.unknown_share

    def __contains__(self, word: bytes) -> bool:
        """Whether a word is in the vocabulary, or made of pieces that were learnt."""
        return self._model.vocabulary.knows(word)

    def scores(self, text: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
        """Log p (n,) of LF-ended lines and `</s>` in nats, their unknown words, and all words."""
        from lm.vocabulary import UNKNOWN

        tokens, offsets = self._model.vocabulary.encode_lines(text)
        sums = self._model.scores(tokens, offsets)[:, :2].sum(axis=1)
        before = np.concatenate([[0], np.cumsum(tokens == UNKNOWN)])
        return sums, np.diff(before[offsets]), len(tokens)


class NGramScores(FileScorer):
    """Features of order 0: log p of a candidate's words and `</s>` in nats, and its unknown words.

    The model is an ARPA file or, with the extra `kenlm`, a KenLM binary. It scores about a million
    words a second or more, no slower than a cache is read: nothing is cached.
    Scores are equal to the last bit for any batch.
    """

    runs_on = "cpu"
    seconds: float = 0.0

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self._model: KenlmModel | ArpaModel = (
            KenlmModel(path) if is_kenlm_binary(path) else ArpaModel(read_ngrams(path, notices))
        )
        self.columns = (f"{name}oov",) if self._model.of_words else ()
        self._unknown = UnknownWords()

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Scores of each document's candidates, and (n, 1) counts of unknown words."""
        began = time.perf_counter()
        scored = [self._scored(kbest) for _, kbest in documents]
        self.seconds += time.perf_counter() - began
        self.documents += len(documents)
        return scored

    def _scored(self, kbest: KBest) -> ScoredDocument:
        texts = ListTexts.of(kbest)
        blocks = [self._model.scores(block) for block in _blocks(texts.text)]
        sums, unknown = (np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[:2])
        words = sum(words for _, _, words in blocks)
        if self._model.of_words:
            self._unknown.add_candidates(texts, words, unknown, self._model.__contains__)
        else:
            self._unknown.add_first(texts, self._model.__contains__)
        lists = np.split(sums, texts.offsets[1:-1]) if kbest.n else []
        columns = unknown.astype(np.float64)[:, None][:, : len(self.columns)]
        return ScoredDocument(Unary(lists), columns)

    def finish(self, source: str, notices: Notices) -> None:
        """A warning if a run has far more unknown words than p(`<unk>`) lets expect."""
        if self._model.of_words:
            about = {"oov_rate": self._model.unknown_share}
            self._unknown.warn(self.name, about, notices, source=source)
        else:
            self._unknown.warn_of_language(self.name, notices, source=source)
        self._unknown = UnknownWords()

    def report(self) -> str:
        """`ngram: 12 documents scored by model.arpa.gz in 0.1 s`."""
        return (
            f"{self.name}: {self.documents:,} documents scored by {self.place.source} in "
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


def is_kenlm_binary(path: FilePath) -> bool:
    """Whether a file begins as KenLM's binary formats do; False if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
