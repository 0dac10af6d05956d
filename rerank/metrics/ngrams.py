"""Lines of many sentences as they lie in memory, their words and n-grams, by machine code.

White space is Unicode's, as Python's `str.split` knows it; all text is UTF-8. Words of a reference
are numbered sentence by sentence; all words of a hypothesis that no reference of its sentence has
get the same number, since none of their n-grams can match.

Tokens, words or characters, are numbers in 0 … 2³²−1. N-grams are the nodes of a trie, kept in a
hash table with open addressing: a node is named by its slot + 1 (the root is 0) and looked up by
(parent, last token), so that equal keys are equal n-grams, whatever the hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import TextColumn, offsets_of
from rerank.corpus.kbest import KBest
from rerank.files.compilation import njit
from rerank.formats.token_kernel import FREE, GOLDEN, Bytes, word_slot

Columns: TypeAlias = tuple[Bytes, NDArray[np.int64], NDArray[np.int64]]
"""`Texts` for compiled functions: bytes, where lines begin and end in them (n, 2), and rows."""

_KEY, _ALLOWED, _USED, _USER = 0, 1, 2, 3  # columns; used: count in the sequence numbered `user`


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The n lines of T sentences, UTF-8; sentence t has the lines rows[t]:rows[t + 1]."""

    lines: TextColumn
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, groups: Iterable[Iterable[bytes]]) -> Texts:
        """The lines of each sentence; UnicodeDecodeError for what is not UTF-8. O(bytes)."""
        if isinstance(groups, Texts):
            return groups
        lines: list[bytes] = []
        rows = [0]
        for group in groups:
            lines.extend(group)
            rows.append(len(lines))
        for line in lines:
            line.decode()
        return cls(TextColumn.of(lines), np.array(rows))

    @classmethod
    def of_lists(cls, kbest: KBest) -> Texts:
        """The candidates of each sentence, an empty line for one without; no text is copied."""
        counts = np.maximum(kbest.counts, 1)
        spans = np.zeros((int(counts.sum()), 2), np.int64)
        spans[np.repeat(kbest.counts > 0, counts)] = kbest.texts.spans
        return cls(TextColumn(kbest.texts.blob, spans), offsets_of(counts))

    def __iter__(self) -> Iterator[list[bytes]]:
        """The lines of one sentence after another."""
        lines = iter(self.lines.to_list())
        return (list(islice(lines, n)) for n in np.diff(self.rows).tolist())


def columns_of(
    hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
) -> tuple[Columns, Columns, int]:
    """The columns of hypotheses and of references, and the bytes of the longest line.

    ValueError unless both are of the same sentences, each with a reference.
    """
    both = Texts.of(hypotheses), Texts.of(references)
    n, m = (len(texts.rows) - 1 for texts in both)
    if n != m:
        raise ValueError(f"hypotheses of {n} sentences, references of {m}")
    if not np.diff(both[1].rows).all():
        raise ValueError("a sentence without a reference")
    longest = max(int(np.diff(texts.lines.spans).max(initial=0)) for texts in both)
    columns, others = (
        (np.frombuffer(texts.lines.blob, np.uint8), texts.lines.spans, texts.rows) for texts in both
    )
    return columns, others, longest


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
def next_word(blob: Bytes, i: int, stop: int) -> tuple[int, int]:
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
def numbered_words(
    blob: Bytes, spans: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Word numbers (L,) of the lines (R, 2), where each begins in them (R+1,), the words' table.

    The table has where a word first begins and ends; its number is its slot + 1.
    """
    room = np.sum(spans[:, 1] - spans[:, 0] + 1) // 2 + len(spans)  # no fewer than the words
    size = 2
    while size < 2 * room:  # at most half full
        size *= 2
    table = np.full((size, 2), FREE)
    ids, starts = np.empty(room, np.int64), np.zeros(len(spans) + 1, np.int64)
    n = 0
    for r in range(len(spans)):
        begin, end = next_word(blob, spans[r, 0], spans[r, 1])
        while begin < end:
            slot = word_slot(table, blob, blob[begin:end])
            if table[slot, 0] == FREE:
                table[slot, 0], table[slot, 1] = begin, end
            ids[n] = slot + 1
            n += 1
            begin, end = next_word(blob, end, spans[r, 1])
        starts[r + 1] = n
    return ids[:n], starts, table


@njit(cache=True)
def trie(ids: NDArray[np.int64], starts: NDArray[np.int64], order: int) -> NDArray[np.int64]:
    """N-grams of references, each with its largest count, for `add_matches`. O(order · L).

    ids: (L,) tokens; reference r is ids[starts[r]:starts[r + 1]].
    """
    size = 2
    while size < 2 * order * (starts[-1] - starts[0]):  # at most half full
        size *= 2
    table = np.full((size, 4), FREE)
    for r in range(len(starts) - 1):
        for i in range(starts[r], starts[r + 1]):
            node = 0
            for j in range(i, min(i + order, starts[r + 1])):
                slot = slot_of(table, node << 32 | ids[j])
                if table[slot, _KEY] == FREE:
                    table[slot, _KEY], table[slot, _ALLOWED] = node << 32 | ids[j], 0
                used = _use(table[slot], r)
                table[slot, _ALLOWED] = max(table[slot, _ALLOWED], used)
                node = slot + 1
    return table


@njit(cache=True)
def add_matches(
    table: NDArray[np.int64], ids: NDArray[np.int64], user: int, counts: NDArray[np.int64]
) -> None:
    """Add the clipped matches of a hypothesis `ids` (L,) to `counts` (order,). O(order · L).

    `user`: a number not used with this table before, no less than that of its references.
    """
    for i in range(len(ids)):
        node = 0
        for n in range(min(len(counts), len(ids) - i)):
            slot = slot_of(table, node << 32 | ids[i + n])
            if table[slot, _KEY] == FREE:
                break  # no reference has this n-gram, nor a longer one
            if _use(table[slot], user) <= table[slot, _ALLOWED]:
                counts[n] += 1
            node = slot + 1


@njit(cache=True)
def slot_of(table: NDArray[np.int64], key: int) -> int:
    """Slot of a key in the first column, or the free one where it belongs."""
    mask = len(table) - 1
    slot = (key * GOLDEN >> 32) & mask
    while table[slot, _KEY] != key and table[slot, _KEY] != FREE:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _use(entry: NDArray[np.int64], user: int) -> int:
    """How often the sequence `user` has now used an n-gram."""
    if entry[_USER] != user:
        entry[_USER], entry[_USED] = user, 0
    entry[_USED] += 1
    return int(entry[_USED])


@njit(cache=True)
def numbered_ngrams(
    ids: NDArray[np.int64], starts: NDArray[np.int64], order: int
) -> tuple[NDArray[np.int64], int]:
    """Numbers (L, order) of the n-grams that begin at each token, 0 past the end; the next number.

    They count from 1. ids: (L,) tokens; text k is ids[starts[k]:starts[k + 1]]. O(order · L) time,
    and memory of the distinct n-grams.
    """
    table = np.full((1024, 2), FREE)
    numbers = np.zeros((len(ids), order), np.int64)
    n = 1
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            node = 0
            for j in range(min(order, starts[k + 1] - i)):
                key = node << 32 | ids[i + j]
                slot = slot_of(table, key)
                if table[slot, _KEY] == FREE:
                    table[slot, 0], table[slot, 1] = key, n
                    n += 1
                node = table[slot, 1]
                numbers[i, j] = node
                if 2 * n > len(table):
                    table = _doubled(table)
    return numbers, n


@njit(cache=True)
def _doubled(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The hash table of keys and numbers in twice the memory."""
    doubled = np.full((2 * len(table), 2), FREE)
    for entry in table:
        if entry[_KEY] != FREE:
            doubled[slot_of(doubled, entry[_KEY])] = entry
    return doubled
