"""Compiled reader of sparse features, `tag_np= 2`, in lines of k-best lists.

A feature has the common shape if its token ends in its only mark of a label, `=` before a blank,
holds `_` and no white space, and a number follows that needs at most one rounding. Names are told
apart by their bytes, in a hash table with open addressing: O(bytes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit
from rerank.corpus.columns import SparseColumns
from rerank.formats.number_kernel import Bytes, Floats, Ints, number

_BLANK, _BAR, _MARK, _SPARSE = b" |=_"


class SparseEntries(NamedTuple):
    """Arrays for up to E sparse features of n lines.

    names: (E, 2) spans of names in the bytes; values: (E,); ends: (n+1,), row i has the entries
    ends[i]:ends[i + 1].
    """

    names: Ints
    values: Floats
    ends: Ints


def room(blob: Bytes, n: int) -> SparseEntries:
    """Room for all sparse features of n lines."""
    most = int(np.count_nonzero(blob == _MARK))
    return SparseEntries(np.empty((most, 2), np.int64), np.empty(most), np.zeros(n + 1, np.int64))


@njit(cache=True)
def read_sparse(blob: Bytes, i: int, end: int, entries: SparseEntries, m: int) -> tuple[int, int]:
    """Read the sparse features at index i, as entries from the m-th on.

    Returns the index of the first token that is not of the common shape, and the new number of
    entries.
    """
    while i >= 0:
        while i < end and blob[i] == _BLANK:
            i += 1
        start, sparse = i, False
        while i < end and blob[i] > _BLANK:
            sparse |= blob[i] == _SPARSE
            if blob[i] == blob[i - 1] == blob[i - 2] == _BAR:
                return start, m
            i += 1
        if not sparse or i == end or blob[i] != _BLANK or blob[i - 1] != _MARK:
            return start, m
        value, after = number(blob, i, end)
        if after < 0 or not _at_token_end(blob, after, end):
            return start, m
        entries.names[m, 0], entries.names[m, 1], entries.values[m] = start, i - 1, value
        i, m = after, m + 1
    return i, m


@njit(cache=True)
def _at_token_end(blob: Bytes, i: int, end: int) -> bool:
    """Whether a blank, `|||` or the end is at `i`."""
    if i == end or blob[i] == _BLANK:
        return True
    return i + 3 <= end and blob[i] == blob[i + 1] == blob[i + 2] == _BAR


def sparse_columns(blob: Bytes, entries: SparseEntries) -> tuple[SparseColumns, NDArray[np.bool_]]:
    """The features of n rows, names in order of appearance, and which rows (n,) have one twice."""
    n_entries = int(entries.ends[-1])
    names, values = entries.names[:n_entries], entries.values[:n_entries]
    ids, firsts = _numbered(blob, names)
    found = tuple(blob[a:b].tobytes().decode() for a, b in names[firsts].tolist())
    columns = SparseColumns(found, entries.ends, ids, values.copy())
    return columns, _repeated(entries.ends, ids, len(found))


@njit(cache=True)
def _numbered(blob: Bytes, spans: Ints) -> tuple[Ints, Ints]:
    """A number for each byte string (E,), equal for equal ones, and the first of each number."""
    n_slots = 16
    while n_slots < 2 * len(spans):
        n_slots *= 2
    slots = np.full(n_slots, -1)
    numbers, firsts, n = np.empty(len(spans), np.int64), np.empty(len(spans), np.int64), 0
    for e in range(len(spans)):
        start, stop = spans[e]
        slot = _hash(blob, start, stop) & (n_slots - 1)
        while slots[slot] >= 0 and not _equal(blob, spans[firsts[slots[slot]]], start, stop):
            slot = (slot + 1) & (n_slots - 1)
        if slots[slot] < 0:
            slots[slot], firsts[n] = n, e
            n += 1
        numbers[e] = slots[slot]
    return numbers, firsts[:n]


@njit(cache=True)
def _hash(blob: Bytes, start: int, stop: int) -> int:
    """A non-negative number of 62 bits: FNV-1a, folded."""
    found = np.uint64(0xCBF29CE484222325)
    for i in range(start, stop):
        found = (found ^ np.uint64(blob[i])) * np.uint64(0x100000001B3)
    return int((found ^ (found >> np.uint64(32))) >> np.uint64(2))


@njit(cache=True)
def _equal(blob: Bytes, span: Ints, start: int, stop: int) -> bool:
    """Whether the bytes at two spans are equal."""
    if span[1] - span[0] != stop - start:
        return False
    for i in range(stop - start):  # noqa: SIM110  # all() is not compiled
        if blob[span[0] + i] != blob[start + i]:
            return False
    return True


@njit(cache=True)
def _repeated(ends: Ints, ids: Ints, n_names: int) -> NDArray[np.bool_]:
    """Which rows (n,) have a name twice."""
    latest, found = np.full(n_names, -1), np.zeros(len(ends) - 1, np.bool_)
    for row in range(len(found)):
        for e in range(ends[row], ends[row + 1]):
            found[row] |= latest[ids[e]] == row
            latest[ids[e]] = row
    return found
