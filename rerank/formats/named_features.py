"""Lists in columns of which a line leaves out features that are 0: cdec, Joshua, Travatar.

The names of all features are known only at the end of a file; it is therefore read twice, first
for the names (`prepared`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rerank.corpus.kbest import KBestRows
from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat, sentence_id
from rerank.formats.json_objects import BLANK
from rerank.formats.tokens import NUMBER, Number, shown
from rerank.notices import Notices

ABSENT = "hypothesis without some of the features, read as 0"
_MANY = 10_000  # names of features, beyond which they are no dense ones
_NAME = re.compile(rb"([^\s=]+)=")


class NamedFeatures(ReadOnlyFormat):
    """A format `id ||| text ||| …` with features `name=value`; names: those of the whole file."""

    name: str
    column: int  # of the features
    total: int

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self.names = names

    def prepared(self, lines: Iterable[bytes], *, source: str) -> NamedFeatures:
        """The format with the names of all features, in order of appearance."""
        found: dict[bytes, None] = {}
        for number, line in enumerate(lines, 1):
            fields = line.split(grammar.SEPARATOR)
            if len(fields) > self.column:
                found.update(dict.fromkeys(_NAME.findall(fields[self.column])))
            if len(found) > _MANY:
                raise InputError(
                    f"expected at most {_MANY:,} names of features, found more",
                    source=source,
                    line=number,
                )
        return type(self)(tuple(name.decode() for name in found))

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file; a feature that a line leaves out is 0."""
        found = Hypotheses(notices, source, clip)
        names = self.names
        for number, line in enumerate(lines, 1):
            found.at(number)
            if not line.strip():
                notices.add(BLANK, source=source, line=number)
                continue
            try:
                sentence, text, features, total = self._parsed(line, found.number)
            except InputError as fault:
                notices.refuse(found.fault(str(fault)))
                continue
            names = tuple(features) if names is None else names
            unknown = [name for name in features if name not in names]
            if unknown:
                notices.refuse(
                    found.fault(f"expected the features {', '.join(names)}, found {unknown[0]!r}")
                )
                continue
            if len(features) < len(names):
                notices.add(ABSENT, source=source, line=number)
            values = [features.get(name, 0.0) for name in names]
            found.add(sentence, text, names, values, total=total)
            if found.full:
                yield found.rows()
        if len(found):
            yield found.rows()

    def _parsed(
        self, line: bytes, number: Number
    ) -> tuple[int, bytes, dict[str, float], float | None]:
        """Sentence, text, features and total of a line."""
        fields = line.split(grammar.SEPARATOR)
        if len(fields) <= self.column:
            raise InputError(
                f"expected at least {self.column + 1} columns of {self.name}, found {shown(line)}"
            )
        features: dict[str, float] = {}
        for value in grammar.feature_values(fields[self.column]):
            if value.name in features:
                raise InputError(f"expected one value of {value.name}, found two")
            features[value.name] = number(value.number, value.name)
        total = None
        if self.total < len(fields):
            total = number(fields[self.total].strip(), "the total")
        return sentence_id(fields[0].strip()), fields[1].strip(), features, total


def columns_of(head: Sequence[bytes]) -> list[list[bytes]]:
    """Columns of the lines that are not blank."""
    return [line.split(grammar.SEPARATOR) for line in head if line.strip()]


def names_of(field: bytes) -> list[bytes]:
    """Names of a column of `name=value`; none if it has anything else."""
    found = [token.rpartition(b"=") for token in field.split()]
    if all(name and NUMBER.fullmatch(value) for name, _, value in found):
        return [name for name, _, _ in found]
    return []


def is_number(field: bytes) -> bool:
    """Whether a column is a number."""
    return NUMBER.fullmatch(field.strip()) is not None
