"""Grammar of Moses k-best lists: parsing of a line.

    id ||| text ||| LM0= -38.1 TM0= -4.2 -5.3 tag_np= 2 ||| total [||| further columns]

Dialects are accepted: `|||` with or without blanks, old labels (`lm: -3`), no blank between label
and value, alignments, hard or soft, before the features (Marian), no labels, no total. As in Moses,
a label with `_` is a sparse feature, which has one value and is 0 where it is absent. A dense label
may be repeated; its values are then those of one feature function. Numbers are finite ASCII
decimals; other spellings that Python accepts (`1_0`, `nan`) are refused. White space around `|||`
is no part of the text.

Sources: moses/Manager.cpp (OutputNBest) and mert/FeatureArray.cpp of
https://github.com/moses-smt/mosesdecoder; src/translator/output_printer.h of
https://github.com/marian-nmt/marian-dev.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rerank.corpus.columns import Label
from rerank.corpus.kbest import MAX_ID
from rerank.errors import InputError, shown
from rerank.files.encoding import NUMBER
from rerank.formats.tokens import Number

SEPARATOR = b"|||"
WORD_SCORES = "WordScores"  # Marian's scores of single tokens: a column, or among the features

NUMBER_LIKE = re.compile(rb"%s|[+-]?(?:nan|inf|infinity)" % NUMBER.pattern, re.IGNORECASE)
_LABELLED = re.compile(rb"\s*(?!WordScores=)[-+.,0-9]*[^-+.,0-9=\s][^=\s]*(?:=|:\s)")
_GLUED = re.compile(rb"[=:][-+.0-9][^=\s]*(?:\s|$)")
_NUMBERS = rb"%s(?:,%s)+" % (NUMBER.pattern, NUMBER.pattern)  # of a target word: soft alignment
_ALIGNED = rb"\s*(?:(?:[0-9]+-[0-9]+|%s)(?:\s+|$))*" % _NUMBERS
_BEFORE_FEATURES = re.compile(rb"\s*WordScores=.*|%s([^\s=:|]+=.*)?" % _ALIGNED)

_OTHER_FEATURES = re.compile(
    rb"\s*[{\[(]|.*?(?:[A-Za-z][0-9_]*\s+[=:]\s|[=:]\s*[-+.0-9eE]+[,;]|\w:[-+.0-9])"
)

FEATURES = "features are written as 'LM0= -3.5 WP0= -2'"
BARS = "'|||' inside a hypothesis is written &#124;&#124;&#124;"


class Value(NamedTuple):
    """A number of a feature column; label: as written before it, empty for further values."""

    label: bytes
    name: str
    number: bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns and labels of a list, which all lines share."""

    fields: int  # columns of a line
    column: int  # the one that holds the features; the next one is the total
    labels: tuple[Label, ...]
    values: tuple[tuple[bytes, int], ...]  # per dense value: label before it, its place in a row
    unlabelled: bool  # whether its numbers have no labels
    dialect: tuple[str, ...]  # notices: how the list differs from what Moses writes today


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """One hypothesis: sentence id, span of its text in the line, features, total."""

    sentence: int
    text: tuple[int, int]
    dense: list[float]  # in the order of `Layout.labels`
    sparse: dict[str, float]
    total: float | None
    oddities: tuple[str, ...]  # notices


def layout(line: bytes) -> Layout:
    """Columns and labels of a list, from its first line; `InputError` if the line is not valid."""
    fields = line.split(SEPARATOR)
    labelled = [c for c in range(2, len(fields)) if _LABELLED.match(fields[c])]
    columns = feature_columns(fields) or labelled  # `parse` refuses the total
    if not columns:
        raise InputError(
            "expected 'id ||| text ||| features ||| total' as Moses and Marian write it, "
            f"found {_columns(len(fields))}: {shown(line)}"
        )
    column = columns[0]
    for n, field in enumerate(fields[2 : column + 1], 2):
        odd = _OTHER_FEATURES.match(field) if n == column else before_features(field) is None
        if odd:
            expected = "features" if n == column else "features or an alignment"
            cure = BARS
            if _OTHER_FEATURES.match(field) or re.search(rb"[{\[(]", field):
                cure = FEATURES
            elif is_numeric(field) or is_numeric(fields[1]):
                cure = "numbers stand after the text, as features, and the total after these"
            raise InputError(f"expected {expected}, found {shown(field)}; {cure}")
    values = list(feature_values(_feature_field(fields, column, column - 2)))
    dense = [v for v in values if not (is_sparse(v.name) or v.name == WORD_SCORES)]
    widths = Counter(v.name for v in dense)
    rank = {name: i for i, name in enumerate(widths)}
    order = sorted(range(len(dense)), key=lambda j: rank[dense[j].name])
    places = sorted(range(len(dense)), key=order.__getitem__)  # the inverse permutation
    return Layout(
        fields=len(fields),
        column=column,
        labels=tuple(Label(*item) for item in widths.items()),
        values=tuple((v.label, place) for v, place in zip(dense, places, strict=True)),
        unlabelled=bool(values) and not any(value.label for value in values),
        dialect=tuple(_dialect(fields, column, values)),
    )


def feature_columns(fields: Sequence[bytes]) -> list[int]:
    """Columns that may hold the features: those followed by a number or by no column.

    If any of them begins with a label, only those that do; else those of numbers alone.
    """

    def before_total(c: int) -> bool:
        return c + 1 == len(fields) or NUMBER_LIKE.fullmatch(fields[c + 1].strip()) is not None

    columns = [c for c in range(2, len(fields)) if before_total(c)]
    return [c for c in columns if _LABELLED.match(fields[c])] or [
        c for c in columns if all(map(NUMBER_LIKE.fullmatch, fields[c].split()))
    ]


def is_numeric(field: bytes) -> bool:
    """Whether a column has numbers alone, one at least."""
    numbers = field.split()
    return bool(numbers) and all(map(NUMBER_LIKE.fullmatch, numbers))


def before_features(field: bytes) -> tuple[bytes, bytes] | None:
    """Alignment and features of a column before that of the features; None if it has others.

    Marian's scorer appends features to the third column, even where that is the alignment.
    """
    match = _BEFORE_FEATURES.fullmatch(field)
    if match is None:
        return None
    return (field[: match.start(1)], match[1]) if match[1] else (field, b"")


def _feature_field(fields: Sequence[bytes], column: int, n_before: int) -> bytes:
    """The features of a line, those after an alignment in one of the columns before included."""
    before = fields[column - n_before : column]
    parts = [pair[1] for field in before if b"=" in field and (pair := before_features(field))]
    return b" ".join([*parts, fields[column]])


def feature_values(field: bytes) -> Iterator[Value]:
    """The numbers of a feature column, or of a line of a weights file, with their names.

    Numbers before any label are called F0, F1, …. A number after the value of a sparse feature
    belongs to the dense feature before it, as in Moses.
    """
    label, name, block, bare = b"", "", "", 0
    for token in field.split():
        head, mark, number = token.rpartition(b"=" if b"=" in token else b":")
        if mark:
            if label:
                break
            label, name = head + mark, _decoded(head)
            if not is_sparse(name):
                block = name
            if not number:
                continue
        elif not label:
            name = block or f"F{bare}"
            bare += not block
        yield Value(label, name, number)
        label = b""
    if label:
        raise InputError(f"expected a number after {shown(label)}, found none")


def is_sparse(name: str) -> bool:
    """Whether a feature is sparse: Moses' rule, a `_` in its name."""
    return "_" in name


def features(field: bytes, number: Number) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Dense and sparse features of a feature column."""
    dense: dict[str, list[float]] = {}
    sparse: dict[str, float] = {}
    for _, name, token in feature_values(field):
        if name == WORD_SCORES:
            continue
        if not is_sparse(name):
            dense.setdefault(name, []).append(number(token, name))
        elif name in sparse:
            raise InputError(f"expected one value of the sparse feature {name}, found two")
        else:
            sparse[name] = number(token, name)
    return dense, sparse


def parse(line: bytes, layout: Layout, number: Number) -> ParsedLine:
    """A line of a list of the given layout; `InputError` if it has another. O(bytes)."""
    fields = line.split(SEPARATOR)
    column = _feature_column(fields, layout)
    text = SEPARATOR.join(fields[1 : 2 + column - layout.column])
    start = len(fields[0]) + len(SEPARATOR) + len(text) - len(text.lstrip(b" \t"))
    dense, sparse = features(_feature_field(fields, column, layout.column - 2), number)
    total = None
    if column + 1 < len(fields):
        total = number(fields[column + 1].strip(), "the total")
    oddities = {
        "bars-in-hypothesis": column > layout.column,
        "sparse-features": bool(sparse),
        "no-total": total is None and layout.column + 1 < layout.fields,
    }
    return ParsedLine(
        sentence=sentence_id(fields[0].strip()),
        text=(start, start + len(text.strip(b" \t"))),
        dense=_in_order(dense, layout.labels),
        sparse=sparse,
        total=total,
        oddities=tuple(kind for kind, present in oddities.items() if present),
    )


# Parts


def _feature_column(fields: Sequence[bytes], layout: Layout) -> int:
    """The feature column of a line, also of one with `|||` inside its hypothesis."""
    if len(fields) == layout.fields:
        return layout.column
    if len(fields) == 1:
        raise InputError(
            f"expected {_columns(layout.fields)} as on the first line, found {shown(fields[0])}; "
            "leave out lines of logging"
        )
    columns = feature_columns(fields)
    if len(columns) != 1 or columns[0] < layout.column:
        raise InputError(
            f"expected {_columns(layout.fields)} as on the first line, found {len(fields)}; {BARS}"
        )
    return columns[0]


def _columns(n: int) -> str:
    return f"{n} column" if n == 1 else f"{n} columns"


def _dialect(fields: Sequence[bytes], column: int, values: Sequence[Value]) -> Iterator[str]:
    """Notices of a list that differs from what Moses writes today."""
    if any(value.label.endswith(b":") for value in values):
        yield "old-labels"
    if _GLUED.search(fields[column]):
        yield "glued-labels"
    if any(value.name == WORD_SCORES for value in values):
        yield "word-scores"
    if values and not values[0].label:
        yield "unlabelled-features"
    if column + 1 == len(fields):
        yield "no-total"
    if any(map(is_numeric, fields[column + 2 :])):
        yield "numbers-not-read"
    blanks = [f[-1:] + g[:1] for f, g in pairwise(fields)]
    if any(pair != b"  " for pair in blanks):
        yield "glued-bars"


def sentence_id(token: bytes) -> int:
    """A sentence id: ASCII digits, at most 2**31 - 1; InputError for another."""
    if not token.isdigit():
        raise InputError(
            f"expected a sentence id (digits 0-9), found {shown(token)}; number the sentences"
        )
    digits = token.lstrip(b"0") or b"0"
    if len(digits) > len(str(MAX_ID)) or int(digits) > MAX_ID:
        raise InputError(f"expected a sentence id below 2^31, found {shown(token)}")
    return int(digits)


def _in_order(dense: Mapping[str, list[float]], labels: Sequence[Label]) -> list[float]:
    """Values in the order of the labels; `InputError` if a label has another number of values."""
    widths = {name: len(values) for name, values in dense.items()}
    expected = {label.name: label.width for label in labels}
    if widths == expected:
        return [value for name in expected for value in dense[name]]
    raise InputError(
        f"expected {sum(expected.values())} feature values as on the first line, "
        f"found {sum(widths.values())}: {differing_widths(expected, widths)}"
    )


def differing_widths(expected: Mapping[str, int], widths: Mapping[str, int]) -> str:
    """What the first labels are that have another number of values, for a message."""
    names = dict.fromkeys([*expected, *widths])
    pairs = [(name, widths.get(name, 0), expected.get(name, 0)) for name in names]
    faults = [f"{name} has {n} instead of {other}" for name, n, other in pairs if n != other]
    return ", ".join(faults[:5])


def _decoded(name: bytes) -> str:
    """The name of a feature."""
    with suppress(UnicodeDecodeError):
        if name:
            return name.decode()
    raise InputError(f"expected a feature name before '=', found {shown(name)}")
