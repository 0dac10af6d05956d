"""Writing of Moses k-best lists: features appended to a line, and new lines.

Output is restricted to what the strictest reader, mert-moses.pl, accepts: names of letters and
digits, one blank between tokens, finite numbers without capital E or `+`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rerank.errors import InputError, RerankError, UsageError
from rerank.formats.moses_grammar import SEPARATOR, feature_columns
from rerank.formats.tokens import shown, written

_NAME = re.compile(r"[A-Za-z][0-9A-Za-z]*")
_SPARSE_NAME = re.compile(r"[^\s=:|_][^\s=:|]*_[^\s=:|]*")


def append_features(
    line: bytes, features: Sequence[tuple[str, float]], total: float | None = None
) -> bytes:
    """The line with ` Name= v` appended to its features and, if given, its total replaced.

    A missing total column is added; all other bytes are unchanged. Numbers have nine significant
    digits. `RerankError` for infinity and NaN, `UsageError` for a name that Moses cannot read.
    """
    fields = line.split(SEPARATOR)
    columns = feature_columns(fields)
    if not columns:
        raise InputError(f"expected a feature column to append to, found {shown(line)}")
    column = columns[0]
    body = fields[column].rstrip()
    blanks = fields[column][len(body) :]
    for name, value in features:
        body += b" %s= %s" % (_checked(name, _NAME), written(value, name, digits=9))
    if total is not None:
        new = written(total, "the total", digits=9)
        if column + 1 == len(fields):
            blanks = blanks or b" "
            fields.append(b" " + new)
        else:
            old = fields[column + 1]
            fields[column + 1] = old.replace(old.strip(), new, 1)
    fields[column] = body + blanks
    return SEPARATOR.join(fields)


def format_line(
    sentence: int,
    text: bytes,
    dense: Iterable[tuple[str, Sequence[float]]],
    *,
    sparse: Mapping[str, float] | None = None,
    total: float | None = None,
) -> bytes:
    """A new line as Moses writes it, with numbers that read back to the same bits.

    `RerankError` for text that would not read back: with `|||`, line ends or blanks at its ends.
    """
    if SEPARATOR in text or b"\n" in text or text != text.strip(b" "):
        raise RerankError(f"a k-best list cannot hold the text {shown(text)}")
    parts = [b"%d ||| %s |||" % (sentence, text)]
    for name, values in dense:
        parts.append(_checked(name, _NAME) + b"=")
        parts += [written(value, name) for value in values]
    for name, value in (sparse or {}).items():
        parts.append(b"%s= %s" % (_checked(name, _SPARSE_NAME), written(value, name)))
    if total is not None:
        parts.append(b"||| " + written(total, "the total"))
    return b" ".join(parts)


def _checked(name: str, pattern: re.Pattern[str]) -> bytes:
    """The name of a feature; `UsageError` if Moses cannot read it."""
    if pattern.fullmatch(name) is None:
        raise UsageError(f"expected a feature name of letters and digits, found {name!r}")
    return name.encode()
