"""Lines of many sentences as they lie in memory, split into words or characters by machine code.

White space is Unicode's, as Python's `str.split` knows it; all text is UTF-8. Words of a reference
are numbered sentence by sentence, by comparing their bytes; all words of a hypothesis that no
reference of its sentence has are one number, since none of their n-grams can match.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.corpus.kbest import KBest
from rerank.metrics.bleu import ORDER, WIDTH, Statistics, count_row
from rerank.metrics.ngrams import trie

Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The n lines of T sentences, UTF-8.

    blob: their bytes, and maybe others; spans: (n, 2) of the lines in it; rows: (T+1,), sentence t
    has the lines rows[t]:rows[t + 1]
    """

    blob: Bytes
    spans: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, groups: Iterable[Iterable[bytes]]) -> Texts:
        """The lines of each sentence; UnicodeDecodeError for what is not UTF-8. O(bytes)."""
        lines: list[bytes] = []
        rows = [0]
        for group in groups:
            lines.extend(group)
            rows.append(len(lines))
        blob = b"".join(lines)
        for line in lines:
            line.decode()
        ends = offsets_of(np.fromiter(map(len, lines), np.int64, len(lines)))
        spans = np.stack([ends[:-1], ends[1:]], axis=1)
        return cls(np.frombuffer(blob, np.uint8), spans, np.array(rows))

    @classmethod
    def of_lists(cls, kbest: KBest) -> Texts:
        """The candidates of each sentence, an empty line for one without; no text is copied."""
        counts = np.maximum(kbest.counts, 1)
        spans = np.zeros((int(counts.sum()), 2), np.int64)
        spans[np.repeat(kbest.counts > 0, counts)] = kbest.texts.spans
        return cls(np.frombuffer(kbest.texts.blob, np.uint8), spans, offsets_of(counts))

    def __len__(self) -> int:
        """T."""
        return len(self.rows) - 1

    @property
    def longest(self) -> int:
        """Bytes of the longest line, 0 if there is none."""
        return int((self.spans[:, 1] - self.spans[:, 0]).max(initial=0))


def check_sentences(hypotheses: Texts, references: Texts) -> None:
    """ValueError unless both are of the same sentences, each with a reference."""
    if len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses of {len(hypotheses)} sentences, references of {len(references)}"
        )
    if not np.diff(references.rows).all():
        raise ValueError("a sentence without a reference")


def word_statistics(hypotheses: Texts, references: Texts) -> Statistics:
    """BLEU's statistics (n, 9) of the hypotheses, whose words white space separates.

    Equal to `rerank.metrics.bleu.statistics` of the lines under `Tokenizer("none")`.
    O(bytes) time; memory of the result and of one sentence's references.
    """
    check_sentences(hypotheses, references)
    texts = hypotheses.blob, hypotheses.spans, hypotheses.rows
    sources = references.blob, references.spans, references.rows
    return _statistics(texts, sources, hypotheses.longest)


_Columns: TypeAlias = tuple[Bytes, NDArray[np.int64], NDArray[np.int64]]
_FREE = -1
_PRIME = 1099511628211  # of the 64-bit FNV-1a hash
_GOLDEN = -7046029254386353131  # 2**64 / golden ratio, odd, as int64: multiplicative hashing


@njit(cache=True)
def blank(blob: Bytes, i: int) -> int:
    """Bytes of the white-space character that begins at blob[i]; 0 if none begins there.

    U+0009–000D, 001C–0020, 0085, 00A0, 1680, 2000–200A, 2028, 2029, 202F, 205F, 3000, which is
    what `str.split` splits on. Inside a character no other begins, so that any i will do.
    """
    first = blob[i]
    if first < 0x80:
        return 1 if first == 0x20 or 0x09 <= first <= 0x0D or 0x1C <= first <= 0x1F else 0
    if first == 0xC2:
        return 2 if blob[i + 1] in (0x85, 0xA0) else 0
    if first < 0xE1 or first > 0xE3:
        return 0
    second, third = blob[i + 1], blob[i + 2]
    if first == 0xE1:
        white = second == 0x9A and third == 0x80
    elif first == 0xE3:
        white = second == 0x80 and third == 0x80
    elif second == 0x80:
        white = third <= 0x8A or third in (0xA8, 0xA9, 0xAF)
    else:
        white = second == 0x81 and third == 0x9F
    return 3 if white else 0


@njit(cache=True)
def _next_word(blob: Bytes, i: int, stop: int) -> tuple[int, int]:
    """Where the first word at or after i begins and ends; (stop, stop) if there is none."""
    while i < stop:
        skipped = blank(blob, i)
        if skipped == 0:
            break
        i += skipped
    end = i
    while end < stop and blank(blob, end) == 0:
        end += 1
    return i, end


@njit(cache=True)
def _slot(table: NDArray[np.int64], words: Bytes, word: Bytes) -> int:
    """Slot of a word among those of `words`, or the free one where it belongs."""
    code = np.int64(0)
    for byte in word:
        code = (code ^ np.int64(byte)) * _PRIME
    mask = len(table) - 1
    slot = (code * _GOLDEN >> 32) & mask
    while table[slot, 0] != _FREE:
        begin, end = table[slot]
        if end - begin == len(word):
            same = 0
            while same < len(word) and words[begin + same] == word[same]:
                same += 1
            if same == len(word):
                break
        slot = (slot + 1) & mask
    return int(slot)


@njit(cache=True)
def _numbered(
    blob: Bytes, spans: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Word numbers (L,) of the lines (R, 2), where each begins in them (R+1,), the words' table.

    The table has where a word first begins and ends; its number is its slot + 1.
    """
    room = np.sum(spans[:, 1] - spans[:, 0] + 1) // 2 + len(spans)  # no fewer than the words
    size = 2
    while size < 2 * room:  # at most half full
        size *= 2
    table = np.full((size, 2), _FREE)
    ids, starts = np.empty(room, np.int64), np.zeros(len(spans) + 1, np.int64)
    n = 0
    for r in range(len(spans)):
        begin, end = _next_word(blob, spans[r, 0], spans[r, 1])
        while begin < end:
            slot = _slot(table, blob, blob[begin:end])
            if table[slot, 0] == _FREE:
                table[slot, 0], table[slot, 1] = begin, end
            ids[n] = slot + 1
            n += 1
            begin, end = _next_word(blob, end, spans[r, 1])
        starts[r + 1] = n
    return ids[:n], starts, table


@njit(cache=True)
def _statistics(texts: _Columns, references: _Columns, longest: int) -> Statistics:
    """Statistics (n, 9) of the hypotheses, of which none is of more than `longest` bytes."""
    blob, spans, rows = texts
    words, reference_spans, reference_rows = references
    counts = np.zeros((len(spans), WIDTH), np.int64)
    ids = np.empty(longest // 2 + 1, np.int64)
    for t in range(len(rows) - 1):
        lines = reference_spans[reference_rows[t] : reference_rows[t + 1]]
        reference_ids, starts, table = _numbered(words, lines)
        ngrams = trie(reference_ids, starts, ORDER)
        for row in range(rows[t], rows[t + 1]):
            n = 0
            begin, end = _next_word(blob, spans[row, 0], spans[row, 1])
            while begin < end:
                slot = _slot(table, words, blob[begin:end])
                ids[n] = slot + 1 if table[slot, 0] != _FREE else 0
                n += 1
                begin, end = _next_word(blob, end, spans[row, 1])
            count_row(ngrams, ids[:n], len(starts) + row, starts, counts[row])
    return counts
