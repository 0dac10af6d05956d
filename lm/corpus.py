"""Text as columns of ids: a sentence on each line, blank lines between documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm.vocabulary import UNKNOWN, Vocabulary, words_of


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Documents of sentences of word ids (without `<s>` and `</s>`).

    tokens: (N,) int32 ids; sentences: (S + 1,) offsets into tokens; documents: (D + 1,)
    offsets into sentences.
    """

    tokens: NDArray[np.int32]
    sentences: NDArray[np.int64]
    documents: NDArray[np.int64]

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

    def digest(self) -> str:
        """Digest of the ids and of the boundaries of sentences and documents."""
        state = hashlib.sha256()
        for column in (self.documents, self.sentences, self.tokens):
            state.update(len(column).to_bytes(8))
            state.update(np.ascontiguousarray(column).data)
        return state.hexdigest()[:16]


def intern(lines: Iterable[bytes]) -> tuple[list[bytes], Corpus]:
    """Distinct words in order of first appearance, and the corpus in their indices; O(words)."""
    index: dict[bytes, int] = {}
    tokens: list[NDArray[np.int32]] = []
    sentences, documents, pending = [0], [0], []
    for line in lines:
        words = words_of(line)
        if words:
            pending.extend([index.setdefault(word, len(index)) for word in words])
            sentences.append(sentences[-1] + len(words))
            if len(pending) > 1 << 16:
                tokens.append(np.asarray(pending, dtype=np.int32))
                pending = []
        else:
            documents.append(len(sentences) - 1)
    documents.append(len(sentences) - 1)
    tokens.append(np.asarray(pending, dtype=np.int32))
    columns = np.concatenate(tokens), np.asarray(sentences), np.unique(documents)
    return list(index), Corpus(*columns)


def encode(lines: Iterable[bytes], vocabulary: Vocabulary) -> Corpus:
    """The corpus of a text in a vocabulary's ids."""
    words, corpus = intern(lines)
    return renumber(corpus, words, vocabulary)


def renumber(corpus: Corpus, words: list[bytes], vocabulary: Vocabulary) -> Corpus:
    """An interned corpus in a vocabulary's ids."""
    ids = np.asarray(vocabulary.encode(words), dtype=np.int32)
    tokens = ids[corpus.tokens] if len(ids) else corpus.tokens
    return Corpus(tokens, corpus.sentences, corpus.documents)


def build_vocabulary(words: list[bytes], corpus: Corpus, size: int, least: int = 1) -> Vocabulary:
    """Vocabulary of the `size` most frequent words of an interned corpus, of `least` or more."""
    counts = np.bincount(corpus.tokens, minlength=len(words))
    frequent = int(np.count_nonzero(counts >= least))
    return Vocabulary.most_frequent(words, counts.tolist(), min(size, frequent))
