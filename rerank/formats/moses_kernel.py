"""Compiled reader of Moses k-best lists, for lines of the common shape.

A line has the common shape if it has exactly the columns and labels of the first line, no white
space but blanks, and numbers that need at most one rounding. Sparse features, `tag_np= 2`, may
stand among them: tokens that hold `_` and end in their only mark of a label, `=` before a blank and
such a number. Its values are those of `moses_grammar.parse`, bit for bit. Any other line is marked
as not done and left to the grammar. Indices into the bytes are −1 from where a line departs from
the common shape. Once this module is loaded, it reads short lists, too (`moses`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import KBestRows, SparseColumns
from rerank.files.compilation import njit
from rerank.formats.moses_grammar import Layout
from rerank.formats.token_kernel import FREE, Bytes, Floats, Ints, number, skip_blanks, word_slot

_BLANK, _BAR, _ZERO, _NINE, _MARK, _SPARSE, _TAB = b" |09=_\t"
_ID_DIGITS = 9  # of a sentence id


class Template(NamedTuple):
    """`Layout` as arrays: label j, empty inside a block, is `labels[ends[j]:ends[j + 1]]`."""

    fields: int
    column: int
    labels: Bytes
    ends: Ints  # (F+1,)
    places: Ints  # (F,) column of the dense matrix for the j-th value of a line


class SparseEntries(NamedTuple):
    """Arrays for up to E sparse features of n lines.

    names: (E, 2) spans of names in the bytes; values: (E,); ends: (n+1,), row i has the entries
    ends[i]:ends[i + 1].
    """

    names: Ints
    values: Floats
    ends: Ints


Columns: TypeAlias = tuple[Ints, Ints, Floats, Floats, NDArray[np.bool_]]
"""Ids, text spans, dense features, totals of the rows, and which rows are done."""


def read_common(rows: KBestRows, layout: Layout, done: NDArray[np.bool_]) -> SparseColumns:
    """Store each line that has the common shape in `rows`, and mark it in `done`. O(bytes).

    Its sparse features are returned; other lines have none there.
    """
    columns = (rows.sentences, rows.text_spans, rows.dense, rows.totals, done)
    blob = np.frombuffer(rows.lines.blob, np.uint8)
    most = int(np.count_nonzero(blob == _MARK))
    entries = SparseEntries(
        np.empty((most, 2), np.int64), np.empty(most), np.zeros(len(rows) + 1, np.int64)
    )
    labels = [label for label, _ in layout.values]
    template = Template(
        fields=layout.fields,
        column=layout.column,
        labels=np.frombuffer(b"".join(labels), np.uint8),
        ends=np.cumsum([0, *map(len, labels)], dtype=np.int64),
        places=np.array([place for _, place in layout.values], dtype=np.int64),
    )
    _read_rows(blob, rows.lines.spans, template, columns, entries)
    n_entries = int(entries.ends[-1])
    names, values = entries.names[:n_entries], entries.values[:n_entries]
    ids, firsts = _numbered(blob, names)
    unique = tuple(blob[a:b].tobytes().decode() for a, b in names[firsts].tolist())
    done &= ~_repeated(entries.ends, ids, len(unique))
    return SparseColumns(unique, entries.ends, ids, values.copy())


@njit(cache=True)
def _read_rows(
    blob: Bytes, spans: Ints, template: Template, columns: Columns, entries: SparseEntries
) -> None:
    _, _, dense, totals, done = columns
    m = 0
    for row in range(len(spans)):
        i, end = spans[row]
        i = _read_id_and_text(blob, i, end, columns, row)
        for _ in range(template.column - 2):  # columns between text and features
            i = _next_column(blob, i, end)
        i, m = _read_features(blob, i, end, template, dense[row], entries, m)
        fields = template.column + 1
        totals[row] = np.nan
        if fields < template.fields:
            totals[row], i = number(blob, _after_bars(blob, i, end), end)
            fields += 1
        i = skip_blanks(blob, i, end)
        complete = i == end
        i = _after_bars(blob, i, end)
        while i >= 0:  # further columns
            i = _next_column(blob, i, end)
            fields, complete = fields + 1, True
        done[row] = complete and fields == template.fields
        if not done[row]:
            m = entries.ends[row]
        entries.ends[row + 1] = m


@njit(cache=True)
def _read_id_and_text(blob: Bytes, i: int, end: int, columns: Columns, row: int) -> int:
    """Start of the third column, or −1; id and span of the text are stored."""
    i = skip_blanks(blob, i, end)
    first, sentence = i, 0
    while i < end and _ZERO <= blob[i] <= _NINE:
        sentence = 10 * sentence + (blob[i] - _ZERO)
        i += 1
    if not 0 < i - first <= _ID_DIGITS:
        return -1
    start = _after_bars(blob, i, end)
    next_start = _next_column(blob, start, end)
    stop = next_start - 3
    while start < stop and _is_white(blob[start]):
        start += 1
    while start < stop and _is_white(blob[stop - 1]):
        stop -= 1
    sentences, text_spans, _, _, _ = columns
    sentences[row] = sentence
    text_spans[row, 0], text_spans[row, 1] = start, stop
    return next_start


@njit(cache=True)
def _is_white(byte: int) -> bool:
    """Whether a byte is a blank or a TAB."""
    return byte in (_BLANK, _TAB)


@njit(cache=True)
def _read_features(
    blob: Bytes, i: int, end: int, template: Template, dense: Floats, entries: SparseEntries, m: int
) -> tuple[int, int]:
    """Index after the features that start at `i`, or −1, and the number of sparse entries, was m.

    `dense` (F,) is filled; sparse features may be before and after any block of dense values.
    """
    for j in range(len(template.places)):
        labelled = template.ends[j] < template.ends[j + 1]
        after = _read_label(blob, i, end, template, j)
        if after < 0 and labelled:
            i, m = _read_sparse(blob, i, end, entries, m)
            after = _read_label(blob, i, end, template, j)
        dense[template.places[j]], i = number(blob, after, end)
        if i < 0 or (i < end and blob[i] != _BLANK and _after_bars(blob, i, end) < 0):
            return -1, m
    return _read_sparse(blob, i, end, entries, m)


@njit(cache=True)
def _read_label(blob: Bytes, i: int, end: int, template: Template, j: int) -> int:
    """Index after blanks and the label of the j-th dense value, or −1 if it is not at `i`."""
    i = skip_blanks(blob, i, end)
    for b in range(template.ends[j], template.ends[j + 1]):
        if i < 0 or i == end or blob[i] != template.labels[b]:
            return -1
        i += 1
    return i


@njit(cache=True)
def _are_bars(blob: Bytes, i: int, end: int) -> bool:
    """Whether `|||` is at `i`."""
    return i + 3 <= end and blob[i] == blob[i + 1] == blob[i + 2] == _BAR


@njit(cache=True)
def _after_bars(blob: Bytes, i: int, end: int) -> int:
    """The index after blanks and the `|||` at `i`, or −1 if it is not there."""
    i = skip_blanks(blob, i, end)
    return i + 3 if i >= 0 and _are_bars(blob, i, end) else -1


@njit(cache=True)
def _next_column(blob: Bytes, i: int, end: int) -> int:
    """The index after the next `|||` from `i` on, or −1 if there is none."""
    while 0 <= i <= end - 3:
        if _are_bars(blob, i, end):
            return i + 3
        i += 1
    return -1


# Sparse features


@njit(cache=True)
def _read_sparse(blob: Bytes, i: int, end: int, entries: SparseEntries, m: int) -> tuple[int, int]:
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
        if after < 0 or not (after == end or blob[after] == _BLANK or _are_bars(blob, after, end)):
            return start, m
        entries.names[m, 0], entries.names[m, 1], entries.values[m] = start, i - 1, value
        i, m = after, m + 1
    return i, m


@njit(cache=True)
def _numbered(blob: Bytes, spans: Ints) -> tuple[Ints, Ints]:
    """A number for each byte string (E,), equal for equal ones, and the first of each number."""
    size = 16
    while size < 2 * len(spans):
        size *= 2
    table, of_slot = np.full((size, 2), FREE), np.empty(size, np.int64)
    numbers, firsts, n = np.empty(len(spans), np.int64), np.empty(len(spans), np.int64), 0
    for e in range(len(spans)):
        slot = word_slot(table, blob, blob[spans[e, 0] : spans[e, 1]])
        if table[slot, 0] == FREE:
            table[slot] = spans[e]
            of_slot[slot], firsts[n] = n, e
            n += 1
        numbers[e] = of_slot[slot]
    return numbers, firsts[:n]


@njit(cache=True)
def _repeated(ends: Ints, ids: Ints, n_names: int) -> NDArray[np.bool_]:
    """Which rows (n,) have a name twice."""
    latest, repeated = np.full(n_names, -1), np.zeros(len(ends) - 1, np.bool_)
    for row in range(len(repeated)):
        for e in range(ends[row], ends[row + 1]):
            repeated[row] |= latest[ids[e]] == row
            latest[ids[e]] = row
    return repeated
