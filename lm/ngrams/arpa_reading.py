"""N-gram models read from ARPA files.

The grammar: any lines; `\\data\\`; a line `ngram n=count` for each order n from 1; for each order a
line `\\n-grams:` and `count` lines of a base-10 logarithm, n words and, in all orders but the last,
perhaps a back-off (0 if it is missing); `\\end\\`. Blank lines may stand between these parts. Words
and numbers are separated by TAB or space.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lm.ngrams import MOST_ORDER
from lm.ngrams.arpa_lines import ArpaError, Lines, ngrams_and_weights, shown, words_and_weights
from lm.ngrams.arpa_writing import STUPID_BACKOFF
from lm.ngrams.model import UNKNOWN_MISSING, NGramModel
from lm.ngrams.trie import NGrams, Nodes
from lm.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary

_HEADER = 1000  # lines above the data
_COUNT = re.compile(rb"ngram[ \t]+([0-9]{1,2})[ \t]*=[ \t]*([0-9]{1,10})")
_STUPID = re.compile(STUPID_BACKOFF + rb" (0\.[0-9]{1,9})\b")
_UNKNOWN_FORMS = (SPECIAL[UNKNOWN], b"<UNK>")


def read_arpa(lines: Iterable[bytes]) -> NGramModel:
    """The model in the lines of an ARPA file; ArpaError if they are not one.

    The prefix of every n-gram must be there, too, as KenLM demands; suffixes may be missing. A file
    without `<unk>` gives unknown words log10 probability −100, as KenLM does. Memory: about 40
    bytes an n-gram while they are read.
    """
    text = Lines(lines)
    unseen = _above_the_data(text)
    counts = _counts(text)
    vocabulary, own, weights = _unigrams(text, counts[0], last=len(counts) == 1)
    ids = {**{word: i for i, word in enumerate(SPECIAL)}, **vocabulary.ids}
    ids[_UNKNOWN_FORMS[1]] = UNKNOWN
    ngrams, root = NGrams.of_words(len(vocabulary)), np.zeros(1, np.float32)
    probs, backoffs = [root, own], [root, weights]
    for n, count in enumerate(counts[1:], 2):
        text.expect(b"\\%d-grams:" % n, f"{counts[n - 2]:,} {n - 1}-grams")
        first, last = text.number + 1, n == len(counts)
        words, own, weights = ngrams_and_weights(text, n, count, ids, last=last)
        parents, order = _places(words, ngrams, first)
        ngrams = ngrams.extended(parents[order], words[order, -1])
        probs.append(own[order])
        backoffs.append(weights if last else weights[order])
    text.expect(b"\\end\\", f"{counts[-1]:,} {len(counts)}-grams")
    if rest := text.filled():
        raise text.fault(f"expected the end of the file after \\end\\, found {shown(rest)}")
    contexts = np.concatenate(backoffs[:-1])
    return NGramModel(vocabulary, ngrams, np.concatenate(probs), contexts, unseen)


def _above_the_data(text: Lines) -> float:
    """Reads up to the line `\\data\\`; the back-off of unseen contexts that the lines above name."""
    unseen = 0.0
    for _ in range(_HEADER):
        line = text.filled()
        if line == b"\\data\\":
            return unseen
        if not line:
            break
        if found := _STUPID.match(line):
            unseen = math.log10(max(float(found[1]), 1e-9))
    raise ArpaError(
        f"expected \\data\\ in the first {_HEADER:,} lines, found none; an n-gram model is a text "
        "file in ARPA format, not one in a binary format: have it written in that format",
        max(1, text.number),
    )


def _counts(text: Lines) -> list[int]:
    """The number of n-grams of each order; reads the line above the first n-grams, too."""
    counts: list[int] = []
    while found := _COUNT.fullmatch(line := text.filled()):
        if int(found[1]) != len(counts) + 1 or len(counts) == MOST_ORDER:
            expected = f"the counts of the orders 1, 2, … up to {MOST_ORDER} at most"
            raise text.fault(f"expected {expected}, found {shown(line)}")
        counts.append(int(found[2]))
    if not counts or line != b"\\1-grams:":
        raise text.fault(f"expected lines ngram n=count, then \\1-grams:, found {shown(line)}")
    return counts


def _unigrams(
    text: Lines, count: int, *, last: bool
) -> tuple[Vocabulary, NDArray[np.float32], NDArray[np.float32]]:
    """The vocabulary, and the probabilities and back-offs (V,) of its words by their ids."""
    first = text.number + 1
    words, probs, backoffs = words_and_weights(text, count, last=last)
    rows: dict[bytes, int] = {}
    for row, token in enumerate(words):
        word = SPECIAL[UNKNOWN] if token in _UNKNOWN_FORMS else token
        if rows.setdefault(word, row) != row:
            raise text.fault(f"expected each word once, found {shown(token)} again", first + row)
    for mark in (START, END):
        if SPECIAL[mark] not in rows:
            raise text.fault(f"expected {SPECIAL[mark].decode()} among the 1-grams, found none")
    unknown = rows.pop(SPECIAL[UNKNOWN], count)  # the last row, if the file has none
    marks = [rows.pop(SPECIAL[mark]) for mark in (START, END)]
    by_id = np.array([unknown, *marks, *rows.values()])
    missing = np.array([UNKNOWN_MISSING], np.float32)
    probs, backoffs = np.concatenate([probs, missing]), np.concatenate([backoffs, 0 * missing])
    return Vocabulary(tuple(rows)), probs[by_id], backoffs[by_id]


def _places(
    words: NDArray[np.int32], ngrams: NGrams, first: int
) -> tuple[Nodes, NDArray[np.int64]]:
    """The parents (m,) of n-grams (m, n), and their order by (parent, last word).

    first: line of the first one, for messages.
    """
    n, parents = words.shape[1], ngrams.nodes(words[:, :-1])
    if (parents < 0).any():
        raise ArpaError(
            f"expected the first {n - 1} words of this {n}-gram among the {n - 1}-grams, found "
            "none; have the file written by a program that keeps them, such as lmplz",
            first + int(np.argmax(parents < 0)),
        )
    keys = parents.astype(np.int64) * ngrams.n_words + words[:, -1]
    order = np.argsort(keys)
    again = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(again):
        row = int(np.maximum(order[again], order[again + 1]).min())
        raise ArpaError(
            f"expected each {n}-gram once, found this one again; remove one of the lines",
            first + row,
        )
    return parents, order
