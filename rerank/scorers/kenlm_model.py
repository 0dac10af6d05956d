"""N-gram models in KenLM's binary formats, read by the package `kenlm` (extra `kenlm`)."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import split_words
from rerank.errors import InputError
from rerank.files.paths import FilePath, display

MAGIC = b"mmap lm http://kheafield.com/code"  # KenLM, lm/binary_format.cc
_MARKERS = frozenset([b"<s>", b"</s>"])  # in a hypothesis, words that no text has


def is_kenlm_binary(path: FilePath) -> bool:
    """Whether a file begins as KenLM's binary formats do; False if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class KenlmModel:
    """A model of any of KenLM's binary formats. InputError for one that cannot be loaded.

    unknown_share: probability of `<unk>` without a context.
    """

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
            own = split_words(line)
            words += len(own)
            common = 0
            while common < min(len(own), len(path) - 1) and path[common + 1][0] == own[common]:
                common += 1
            del path[common + 1 :]
            for word in own[common:]:
                _, state, total, missing = path[-1]
                after, known = self._state(), word in self
                total += self._model.BaseScore(state, word.decode() if known else "<unk>", after)
                path.append((word, after, total, missing + (not known)))
            _, state, total, missing = path[-1]
            sums[n] = total + self._model.BaseScore(state, "</s>", self._state())
            unknown[n] = missing
        return sums * math.log(10), unknown, words
