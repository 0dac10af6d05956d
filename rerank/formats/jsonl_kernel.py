"""Compiled reader of JSON lines whose candidates all have the form of the first one.

A candidate has that form if its bytes are those of the first one but for its text and its numbers.
Its values equal those of the general reader (`rerank.formats.jsonl`); a line with any other
candidate, valid or not, is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit
from rerank.corpus import LARGEST
from rerank.formats.number_kernel import Bytes, Floats, Ints, number, skip_blanks

_TEXT, _TOTAL = -1, -2  # kinds of values; others are columns of the features
_QUOTE, _BACKSLASH, _COMMA, _CLOSE, _MINUS, _POINT, _ZERO, _NINE = b'"\\,]-.09'
_SPACE, _PLUS, _E = b" +e"
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

Flags: TypeAlias = NDArray[np.bool_]
Output: TypeAlias = tuple[Ints, Flags, Floats, Floats, Ints]
"""Spans of the texts, which of them have escapes, features, totals, and numbers left to Python."""


@dataclass(frozen=True, slots=True)
class CandidateTemplate:
    """Form of a candidate: the bytes before each value, and after the last; kinds of the values."""

    literals: tuple[bytes, ...]  # (V+1,)
    kinds: tuple[int, ...]  # (V,)
    width: int  # of the features

    @classmethod
    def of(
        cls, candidate: bytes, text: str, score: str | None, features: str
    ) -> CandidateTemplate | None:
        """The form of a valid JSON object with these keys alone; None for another object.

        features: key of an object of numbers and lists of numbers; an object without it has the
        score as its only feature.
        """
        literals, kinds, done = [], [], 0
        columns, of_features = 0, features.encode()
        keys: list[bytes] = []  # of the object and of the one inside
        depth = lists = 0
        tokens = list(_TOKEN.finditer(candidate))
        roles = {text.encode(): _TEXT} | ({score.encode(): _TOTAL} if score else {})
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            word, (start, stop) = token[0], token.span()
            if word in b"{}[]:,":
                depth += (word == b"{") - (word == b"}")
                lists += (word == b"[") - (word == b"]")
                keys = keys[:depth]
                continue
            if following is not None and following[0] == b":" and word[:1] == b'"':
                keys = [*keys[: depth - 1], word[1:-1]]
                continue
            role = roles.get(keys[0]) if depth == 1 and not lists else None
            if role == _TEXT and word[:1] == b'"':
                start, stop = start + 1, stop - 1
                kinds.append(_TEXT)
            elif _NUMBER.fullmatch(word) and role == _TOTAL:
                kinds.append(_TOTAL)
            elif depth == 2 and lists < 2 and keys[0] == of_features and _NUMBER.fullmatch(word):
                kinds.append(columns)
                columns += 1
            else:
                return None
            literals.append(candidate[done:start])
            done = stop
        if kinds.count(_TEXT) != 1 or kinds.count(_TOTAL) > 1:
            return None
        if not columns and b'"%s"' % of_features in candidate:
            return None
        return cls((*literals, candidate[done:]), tuple(kinds), columns)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateColumns:
    """The N candidates of the lines that have the form, in their order."""

    counts: Ints  # (L,) of each line; −1 for a line that is left
    stops: Ints  # (L,) of the `]` behind the candidates, in the block of all lines
    text_spans: Ints  # (N, 2) in the block
    escaped: Flags  # (N,) whether a text has JSON escapes
    dense: Floats  # (N, F)
    totals: Floats  # (N,); NaN without totals


def read_candidates(
    blob: bytes, starts: Sequence[int], ends: Sequence[int], template: CandidateTemplate
) -> CandidateColumns:
    """The candidates of L lines, whose first candidates are at `starts` in a block. O(bytes)."""
    most = blob.count(template.literals[0])
    numbers = len(template.kinds) - 1
    spans, escaped = np.zeros((most, 2), np.int64), np.zeros(most, np.bool_)
    dense, totals = np.zeros((most, template.width)), np.full(most, np.nan)
    left = np.zeros((most * max(1, numbers) + 1, 4), np.int64)
    counts, stops = np.zeros((2, len(starts)), np.int64)
    n, n_left = _read_lines(
        np.frombuffer(blob, np.uint8),
        np.array(list(zip(starts, ends, strict=True)), np.int64).reshape(-1, 2),
        np.frombuffer(b"".join(template.literals), np.uint8),
        np.cumsum([0, *map(len, template.literals)], dtype=np.int64),
        np.array(template.kinds, np.int64),
        (spans, escaped, dense, totals, left),
        (counts, stops),
    )
    lines = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
    refused = set()
    for row, kind, start, stop in left[:n_left].tolist():
        value = float(blob[start:stop]) if _NUMBER.fullmatch(blob[start:stop]) else np.nan
        if not abs(value) <= LARGEST:
            refused.add(int(lines[row]))
        elif kind == _TOTAL:
            totals[row] = value
        else:
            dense[row, kind] = value
    kept = np.ones(n, np.bool_)
    if refused:
        kept = ~np.isin(lines, list(refused))
        counts[list(refused)] = -1
    rows = np.flatnonzero(kept)
    return CandidateColumns(counts, stops, spans[rows], escaped[rows], dense[rows], totals[rows])


@njit(cache=True)
def _read_lines(
    blob: Bytes,
    lines: Ints,
    literals: Bytes,
    bounds: Ints,
    kinds: Ints,
    output: Output,
    of_lines: tuple[Ints, Ints],
) -> tuple[int, int]:
    """Numbers of candidates and of numbers left to Python."""
    counts, stops = of_lines
    row = left = 0
    for line in range(len(lines)):
        i, end = lines[line]
        first, first_left = row, left
        while i >= 0:
            if row == len(output[0]):
                i = -1
                break
            i, left = _read_candidate(blob, i, end, literals, bounds, kinds, output, row, left)
            i = skip_blanks(blob, i, end)
            row += 1
            if i < 0 or i >= end or blob[i] != _COMMA:
                break
            i = skip_blanks(blob, i + 1, end)
        if 0 <= i < end and blob[i] == _CLOSE:
            counts[line], stops[line] = row - first, i
        else:
            counts[line], row, left = -1, first, first_left
    return row, left


@njit(cache=True)
def _read_candidate(
    blob: Bytes,
    i: int,
    end: int,
    literals: Bytes,
    bounds: Ints,
    kinds: Ints,
    output: Output,
    row: int,
    left: int,
) -> tuple[int, int]:
    """Index behind the candidate at `i`, or −1, and how many numbers are left to Python so far."""
    spans, escaped, dense, totals, numbers = output
    for v in range(len(kinds) + 1):
        size = bounds[v + 1] - bounds[v]
        if i + size > end:
            return -1, left
        for b in range(bounds[v], bounds[v + 1]):
            if blob[i] != literals[b]:
                return -1, left
            i += 1
        if v == len(kinds):
            return i, left
        start = i
        if kinds[v] == _TEXT:
            escaped[row] = False
            while i < end and blob[i] != _QUOTE:
                if blob[i] < _SPACE:
                    return -1, left
                if blob[i] == _BACKSLASH:
                    escaped[row] = True
                    i += 1
                i += 1
            spans[row, 0], spans[row, 1] = start, i
            continue
        stop = _number_end(blob, i, end)
        if stop < 0:
            return -1, left
        value, i = number(blob, i, stop)
        if i != stop:
            i = stop
            numbers[left, 0], numbers[left, 1], numbers[left, 2], numbers[left, 3] = (
                row,
                kinds[v],
                start,
                stop,
            )
            left += 1
        elif kinds[v] == _TOTAL:
            totals[row] = value
        else:
            dense[row, kinds[v]] = value
    return -1, left


@njit(cache=True)
def _number_end(blob: Bytes, i: int, end: int) -> int:
    """Index behind the number at `i`; −1 if it is none, or written as JSON does not allow."""
    if i < end and blob[i] == _MINUS:
        i += 1
    if i >= end or not _ZERO <= blob[i] <= _NINE:
        return -1
    if blob[i] == _ZERO and i + 1 < end and _ZERO <= blob[i + 1] <= _NINE:
        return -1
    digit = True
    while i < end:
        is_digit = _ZERO <= blob[i] <= _NINE
        in_number = is_digit or blob[i] in (_POINT, _MINUS, _PLUS) or (blob[i] | 0x20) == _E
        if not in_number:
            break
        if not digit and not is_digit and blob[i] in (_POINT, _E, _E - 0x20):
            return -1  # of `1.e5`
        digit = is_digit
        i += 1
    return i if digit else -1
