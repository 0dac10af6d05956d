"""Lists of other decoders in columns with `|||` between them: cdec, Joshua, Travatar, Nematus.

    0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 ||| -12.6       cdec
    0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6      Joshua
    0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2                   Travatar
    0 ||| the text ||| 1.5 1.75                                              Nematus

The first three leave out features that are 0, so that the names of all features are known only at
the end of a file: it is read twice, first for the names (`prepared`). Joshua's names have
underscores, with which Moses marks sparse features: they are dense here, and read as `tmpt0` and
`lm0`; there may be a blank after `=`.

Nematus writes a cost of each model, a negative log-probability in nats, divided by the length as
Nematus was told to: it is read with its sign changed, as feature F0, F1, …, without a total. A
Moses list without labels looks the same, so that this format must be named.

Sources: decoder/decoder.cc (`DumpKBest`) of https://github.com/redpony/cdec; DerivationVisitor,
KBestExtractor.java and decoder.properties (`output-format %i ||| %s ||| %f ||| %c`) of
https://github.com/apache/incubator-retired-joshua; src/bin/travatar-runner.cc of
https://github.com/neubig/travatar; nematus/translate.py (`--n-best`) of
https://github.com/EdinburghNLP/nematus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Self

from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.row_builder import LineFormat, RowBuilder, sentence_id
from rerank.formats.tokens import NUMBER, shown

ABSENT = "hypothesis without some of the features, read as 0"
_MANY = 10_000  # names of features, beyond which they are no dense ones
_NAME = re.compile(rb"([^\s=]+)=")
_OF_JOSHUA = re.compile(rb"(?:^|\s)(?:tm_[A-Za-z]+_[0-9]+|lm_[0-9]+)=")


class NamedFeatures(LineFormat):
    """A format `id ||| text ||| …` with features `name=value`; names: those of the whole file."""

    name: str
    column: int  # of the features
    total: int

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self.names = names

    def prepared(self, lines: Iterable[bytes], *, source: str) -> Self:
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

    def add(self, found: RowBuilder, line: bytes) -> None:
        """Add the hypothesis of a line; a feature that it leaves out is 0."""
        fields = line.split(grammar.SEPARATOR)
        if len(fields) <= self.column:
            raise InputError(
                f"expected at least {self.column + 1} columns of {self.name}, found {shown(line)}"
            )
        features: dict[str, float] = {}
        for value in grammar.feature_values(fields[self.column]):
            if value.name in features:
                raise InputError(f"expected one value of {value.name}, found two")
            features[value.name] = found.number(value.number, value.name)
        total = None
        if self.total < len(fields):
            total = found.number(fields[self.total].strip(), "the total")
        sentence = sentence_id(fields[0].strip())
        names = found.names if self.names is None else self.names
        names = tuple(features) if names is None else names
        unknown = [name for name in features if name not in names]
        if unknown:
            raise InputError(f"expected the features {', '.join(names)}, found {unknown[0]!r}")
        if len(features) < len(names):
            found.note(ABSENT)
        values = [features.get(name, 0.0) for name in names]
        found.add(sentence, fields[1].strip(), names, values, total=total)


class Cdec(NamedFeatures):
    """The format of cdec's k-best lists."""

    name = "cdec"
    description = "K-best lists of cdec; features that a line leaves out are 0."
    suffixes = (".kbest",)
    example = b"0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 Glue=2 ||| -12.6"
    column = 2
    total = 3

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have features `name=value`, of changing names or with `_`.

        Marian's lists, which may have no blank after `=`, have the same names on every line.
        """
        columns = _columns(head)
        if not all(len(one) == 4 and _is_number(one[3]) for one in columns):
            return False
        names = [_names(one[2]) for one in columns]
        varying = len(set(map(frozenset, names))) > 1
        return all(names) and (varying or any(b"_" in name for one in names for name in one))


class Joshua(NamedFeatures):
    """The format of Joshua's k-best lists."""

    name = "joshua"
    description = "K-best lists of Joshua; features that a line leaves out are 0."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6"
    column = 2
    total = 3

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have one of the names of Joshua's models."""
        return all(
            len(one) == 4 and _is_number(one[3]) and _OF_JOSHUA.search(one[2])
            for one in _columns(head)
        )


class Travatar(NamedFeatures):
    """The format of Travatar's k-best lists."""

    name = "travatar"
    description = "K-best lists of Travatar, with the total before the features."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2"
    column = 3
    total = 2

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have a number before features `name=value`."""
        return all(
            len(one) >= 4 and _is_number(one[2]) and _names(one[3]) for one in _columns(head)
        )


class Nematus(LineFormat):
    """The format of Nematus' n-best lists."""

    name = "nematus"
    description = "N-best lists of Nematus: costs without labels, read with their sign changed."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| 1.5 1.75"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never: a Moses list without labels looks the same."""
        return False

    def add(self, found: RowBuilder, line: bytes) -> None:
        """Add the hypothesis of a line; its text may hold `|||`, costs may not."""
        fields = line.split(grammar.SEPARATOR)
        if len(fields) < 3:
            raise InputError(f"expected 'id ||| text ||| cost cost', found {shown(line)}")
        sentence, *texts, costs = fields
        values = [0.0 - found.number(token, "a cost") for token in costs.split()]
        if not values:
            raise InputError(f"expected costs in the last column, found none in {shown(line)}")
        names = tuple(f"F{i}" for i in range(len(values)))
        text = grammar.SEPARATOR.join(texts).strip()
        found.add(sentence_id(sentence.strip()), text, names, values)


def _columns(head: Sequence[bytes]) -> list[list[bytes]]:
    """Columns of the lines that are not blank."""
    return [line.split(grammar.SEPARATOR) for line in head if line.strip()]


def _names(field: bytes) -> list[bytes]:
    """Names of a column of `name=value`; none if it has anything else."""
    found = [token.rpartition(b"=") for token in field.split()]
    if all(name and NUMBER.fullmatch(value) for name, _, value in found):
        return [name for name, _, _ in found]
    return []


def _is_number(field: bytes) -> bool:
    """Whether a column is a number."""
    return NUMBER.fullmatch(field.strip()) is not None
