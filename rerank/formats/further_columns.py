"""Alignments and the like: columns of a Moses list beside text, features and total.

Moses writes them after the total, Marian before the features:

    0 ||| a b ||| LM0= -3 ||| -1.5 ||| 0-1=0-1 ||| 0-0 1-1      segmentation, alignment
    0 ||| a b ||| 0-0 1-1 ||| WordScores= -0.2 -0.1 ||| F0= -0.3 ||| -0.3

In JSON lines they are keys of a candidate: `segmentation`, `alignment` and `word_scores`.

Sources: moses/Manager.cpp (OutputNBest) of https://github.com/moses-smt/mosesdecoder and
src/translator/output_printer.h of https://github.com/marian-nmt/marian-dev.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rerank.formats import moses_grammar as grammar
from rerank.notices import Notices

WORD_SCORES = "line with Marian's word scores, which a Moses list cannot hold; left out"
OTHER = "column that is no alignment or segmentation, left out"
_MARK = b"WordScores="
_ALIGNMENT = re.compile(rb"\s*(?:[0-9]+-[0-9]+(?:\s+|$))*")
_SEGMENTATION = re.compile(rb"\s*(?:[0-9]+(?:-[0-9]+)?=[0-9]+(?:-[0-9]+)?(?:\s+|$))+")
AFTER_TOTAL = {"segmentation": _SEGMENTATION, "alignment": _ALIGNMENT}  # in this order


def further_columns(line: bytes, notices: Notices, *, source: str = "") -> dict[str, str]:
    """The columns of a valid line beside text, features and total, by their keys in JSON lines."""
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    values = grammar.feature_values(fields[column])
    scores = [value.number for value in values if value.name == grammar.WORD_SCORES]
    found = {"word_scores": b" ".join(scores).decode()} if scores else {}
    for place, field in enumerate(fields):
        text = field.strip()
        if place < 2 or place in (column, column + 1):
            continue
        if text.startswith(_MARK):
            found["word_scores"] = text.removeprefix(_MARK).strip().decode()
        elif _ALIGNMENT.fullmatch(field):
            found["alignment"] = text.decode()
        elif _SEGMENTATION.fullmatch(field):
            found["segmentation"] = text.decode()
        elif place > column:  # before the features it is part of the text
            notices.add(OTHER, source=source)
    return found


def with_columns(line: bytes, columns: Mapping[str, object]) -> bytes:
    """A line of a Moses list that ends with its total, with the columns that Moses has after it."""
    known = ((str(columns.get(key)).encode(), form) for key, form in AFTER_TOTAL.items())
    return b" ||| ".join([line, *(text.strip() for text, form in known if form.fullmatch(text))])


def as_moses_writes(line: bytes, notices: Notices, *, source: str = "") -> bytes:
    """A valid line in the form of Moses: `id ||| text ||| Name= v v ||| total ||| alignment`.

    A line that any version of Moses writes stays as it is, with old labels `lm: -3`, too; and so
    does one with `|||` in its text, whose columns are not sure. Numbers keep their digits.
    """
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    values = list(grammar.feature_values(fields[column]))
    if column == 2 and not _is_dialect(fields[2], values):
        return line
    before = [field for field in fields[2:column] if not field.strip().startswith(_MARK)]
    if not all(map(_ALIGNMENT.fullmatch, before)):
        return line
    if len(before) < column - 2 or any(v.name == grammar.WORD_SCORES for v in values):
        notices.add(WORD_SCORES, source=source)
    if column + 1 == len(fields) and before:  # no total that it could follow
        notices.add(OTHER, source=source)
        before = []
    columns = [fields[0], fields[1], b" ".join(_tokens(values)), *fields[column + 1 :], *before]
    return b" ||| ".join(field.strip() for field in columns)


def _is_dialect(field: bytes, values: Sequence[grammar.Value]) -> bool:
    """Whether a feature column is as Marian writes it, and no version of Moses."""
    labels = [value.label for value in values if value.label]
    return (
        not set(labels) <= set(field.split())  # no blank between label and value
        or any(value.name == grammar.WORD_SCORES for value in values)
    )


def _tokens(values: Sequence[grammar.Value]) -> Iterator[bytes]:
    """The tokens of a feature column, with numbers as mert-moses.pl reads them."""
    for value in values:
        if value.name != grammar.WORD_SCORES:
            if value.label:
                yield value.label[:-1] + b"="
            yield value.number.lower().replace(b"e+", b"e").lstrip(b"+")
