"""Lists of other tools: cdec, Joshua, Travatar, Nematus, fairseq.

    0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 ||| -12.6       cdec
    0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6      Joshua
    0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2                   Travatar
    0 ||| the text ||| 1.5 1.75                                              Nematus

The first three leave out features that are 0, so that the names of all features are known only at
the end of a file: it is read twice, first for the names (`prepared`). Where these are very many,
those that not every hypothesis has are sparse features. Joshua's names have
underscores, with which Moses marks sparse features: they are dense here, and read as `tmpt0` and
`lm0`; there may be a blank after `=`.

Nematus writes a cost of each model, a negative log-probability in nats, divided by the length as
Nematus was told to: it is read with its sign changed, as feature F0, F1, …, without a total. A
Moses list without labels looks the same, so that this format must be named.

fairseq-generate and fairseq-interactive write several lines of a hypothesis:

    S-3     the source
    H-3     -0.3127      tokens of a hypothesis       score: base 2, divided by length^lenpen
    D-3     -0.3127      the hypothesis, detokenised
    P-3     -0.1 -0.4 …  log2 probability of each token and of </s>

Features: `logprob`, the log-probability in nats, which is ln 2 times the sum of `P-`; and `score`,
that of `H-` in nats, normalised by length as fairseq was told to. The text is that of `D-` where
there is one. Lines of other tags, and of logging, are skipped.

Sources: decoder/decoder.cc (`DumpKBest`) of https://github.com/redpony/cdec; DerivationVisitor,
KBestExtractor.java and decoder.properties (`output-format %i ||| %s ||| %f ||| %c`) of
https://github.com/apache/incubator-retired-joshua; src/bin/travatar-runner.cc of
https://github.com/neubig/travatar; nematus/translate.py (`--n-best`) of
https://github.com/EdinburghNLP/nematus; fairseq_cli/generate.py and interactive.py of
https://github.com/facebookresearch/fairseq.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import numpy as np

from rerank.corpus.columns import KBestRows, concatenate
from rerank.errors import InputError, shown
from rerank.files.encoding import NUMBER
from rerank.formats import moses_grammar as grammar
from rerank.formats.row_builder import LineFormat, ReadOnlyFormat, RowBuilder, sentence_id
from rerank.formats.tokens import Place
from rerank.notices import Notices

_MANY = 1000  # names of features, beyond which only those of every hypothesis are dense
_MOST = 1_000_000  # names of features
_NAME = re.compile(rb"([^\s=]+)=")
_NO_SCORE = (
    "expected H-ID, score and text with TABs, found {}; if scores are left out, `sed -E "
    r"'s/^H-([0-9]+).(.*)/\1 ||| \2 |||/' FILE > NEW` makes a list of it"
)
_NOT_BEHIND = (
    "expected H-{} before its other lines, found {}; give the output in its own order or, if it is "
    "sorted, the H- lines alone: `grep ^H- FILE > NEW`"
)
_TAG = re.compile(rb"([A-Z])(?:-([0-9]+)(?:_[0-9]+)?)?\t")
_AFTER_BAR = re.compile(rb"[A-Z]-[0-9]+(?:_[0-9]+)?\t")  # behind a progress bar or a log's head
_KNOWN = frozenset(b"STHDPAIECWO")
_LN2 = math.log(2)
_SORTED = 1 << 30  # bytes of texts of a list that has to be sorted in memory
_TOO_LARGE = (
    "expected at most 1 GiB of hypotheses, which have to be sorted by sentence, found more; decode "
    "fewer sentences per file"
)
_OF_JOSHUA = re.compile(rb"(?:^|\s)(?:tm_[A-Za-z]+_[0-9]+|lm_[0-9]+)=")


class NamedFeatures(LineFormat):
    """A format `id ||| text ||| …` with features `name=value`, and further columns.

    names: of the dense features of the whole file; sparse: whether it has others.
    """

    name: str
    column = 2  # of the features
    total = 3

    def __init__(self, names: tuple[str, ...] = (), sparse: bool = False) -> None:
        self.names, self.sparse, self._known = names, sparse, frozenset(names)

    def feature_columns(self, head: Sequence[bytes]) -> list[bytes]:
        """Those of the lines that are not blank; none unless each has a total and these columns."""
        lines = [line.split(grammar.SEPARATOR) for line in head if line.strip()]
        if all(len(f) > 3 and NUMBER.fullmatch(f[self.total].strip()) for f in lines):
            return [fields[self.column] for fields in lines]
        return []

    def prepared(self, lines: Iterable[bytes], *, source: str) -> Self:
        """The format with the names of all features, in order of appearance."""
        found, n = Counter[bytes](), 0
        for number, line in enumerate(lines, 1):
            fields = line.split(grammar.SEPARATOR)
            if len(fields) > self.column:
                found.update(dict.fromkeys(_NAME.findall(fields[self.column]), 1))
                n += 1
            if len(found) > _MOST:
                raise InputError(
                    f"expected at most {_MOST:,} names of features, found more; leave out the rare "
                    "ones",
                    source=source,
                    line=number,
                )
        many = len(found) > _MANY
        dense = [name for name, count in found.items() if not many or count == n]
        dense = [] if len(dense) > _MANY else dense
        return type(self)(tuple(name.decode() for name in dense), many)

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
        names = self.names
        others = {name: value for name, value in features.items() if name not in self._known}
        if others and not self.sparse:
            other, column = next(iter(others)), self.column
            cure = f"; {grammar.features_cure(fields[column], column)}" if "=" in other else ""
            raise InputError(f"expected the features {', '.join(names)}, found {other!r}{cure}")
        if self.sparse and found.names is None:
            weights = "rerank weights W --to json --kbest LIST names the decoder's weights W so"
            renamed = (
                f" ({name} as {name}_; {weights})" for name in others if not grammar.is_sparse(name)
            )
            found.note("many-features", renamed=next(renamed, ""))
        elif not self.sparse and len(features) < len(names):
            found.note("absent-features")
        if any(map(grammar.is_numeric, fields[4:])):
            found.note("numbers-not-read")
        values = [features.get(name, 0.0) for name in names]
        sparse = {name if grammar.is_sparse(name) else f"{name}_": others[name] for name in others}
        found.add(sentence, fields[1], names, values, total=total, sparse=sparse)


class Cdec(NamedFeatures):
    """The format of cdec's k-best lists."""

    name = "cdec"
    description = "K-best lists of cdec; features that a line leaves out are 0."
    suffixes = (".kbest",)
    example = b"0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 Glue=2 ||| -12.6"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have features `name=value`, of changing names or with `_`.

        Marian's lists, which may have no blank after `=`, have the same names on every line.
        """
        names = list(map(_names, self.feature_columns(head)))
        varying = len(set(map(frozenset, names))) > 1
        return all(names) and (varying or any(b"_" in name for one in names for name in one))


class Joshua(NamedFeatures):
    """The format of Joshua's k-best lists."""

    name = "joshua"
    description = "K-best lists of Joshua; features that a line leaves out are 0."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have one of the names of Joshua's models."""
        columns = self.feature_columns(head)
        return bool(columns) and all(map(_OF_JOSHUA.search, columns))


class Travatar(NamedFeatures):
    """The format of Travatar's k-best lists."""

    name = "travatar"
    description = "K-best lists of Travatar, with the total before the features."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2"
    column = 3
    total = 2

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have a number before features `name=value`, or before none."""
        columns = self.feature_columns(head)
        return bool(columns) and all(_names(column) or not column.strip() for column in columns)


class Nematus(LineFormat):
    """The format of Nematus' n-best lists."""

    name = "nematus"
    description = "N-best lists of Nematus: costs without labels, read with their sign changed."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| 1.5 1.75"

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


def _names(field: bytes) -> list[bytes]:
    """Names of a column of `name=value`; none if it has anything else."""
    found = [token.rpartition(b"=") for token in field.split()]
    if all(name and NUMBER.fullmatch(value) for name, _, value in found):
        return [name for name, _, _ in found]
    return []


@dataclass(slots=True)
class _Hypothesis:
    """A hypothesis of which more lines may come."""

    sentence: int
    line: int
    text: bytes
    score: float
    log_prob: float | None = None
    tags: bytes = b""  # of its further lines

    def take(self, kind: bytes, rest: bytes, found: RowBuilder, line: bytes) -> None:
        """Take the text or the tokens of its `D-` or `P-` line; InputError for a second one."""
        if kind in self.tags:
            raise InputError(
                f"expected one {kind.decode()}- line after H-{self.sentence}, found {shown(line)}, "
                "too; is an H- line missing before it?"
            )
        self.tags += kind
        first, _, text = rest.partition(b"\t")
        if kind == b"D":
            self.text = text
        else:
            values = [found.number(token, "a token") for token in first.split()]
            self.log_prob = found.finite(math.fsum(values) * _LN2, "logprob")


class Fairseq(ReadOnlyFormat):
    """The format of fairseq's output."""

    name = "fairseq"
    description = (
        "Output of fairseq-generate and fairseq-interactive; scores of base 2 are read in nats."
    )
    suffixes = (".out", ".gen")
    example = b"H-0\t-0.25\tthe text\nP-0\t-0.5 -0.25 -0.125"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a line of a hypothesis, or two of a source, are among the first ones."""
        tags = [found[1] for line in map(_without_bar, head) if (found := _TAG.match(line))]
        return b"H" in tags or sum(tag in (b"S", b"W", b"O") for tag in tags) >= 2

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses by sentence id, each sentence's in the order of the file."""
        chunks = super().read(lines, notices, source=source, clip=clip)
        return by_sentence(chunks, notices, source)

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses in the order of the file."""
        last: _Hypothesis | None = None
        broken = False  # whether the current hypothesis has an error
        sources = dict[bytes, bytes]()  # by id
        counted = -1  # sentence of lines without ids, of old versions of fairseq-interactive
        for line in found.numbered(map(_without_bar, lines)):
            tag = _TAG.match(line)
            if tag is None or tag[1][0] not in _KNOWN:
                if line.strip():
                    found.note("no-output-of-fairseq")
                continue
            kind, rest = tag[1], line[tag.end() :]
            if kind == b"S" and tag[2]:
                _note_again(found, tag[2], sources, rest)
            if kind in b"SO" and not tag[2]:
                counted += 1
            if kind not in b"HDP":
                continue
            if kind == b"H" and last is not None:
                number = found.line
                _add(found, last)
                found.line = number
            try:
                sentence = sentence_id(tag[2]) if tag[2] else max(counted, 0)
                if kind == b"H":
                    score_text, mark, text = rest.partition(b"\t")
                    if not mark:
                        raise InputError(_NO_SCORE.format(shown(line)))
                    score = found.number(score_text, "the score") * _LN2
                    last, broken = _Hypothesis(sentence, found.line, text, score), False
                elif not broken:
                    if last is None or last.sentence != sentence:
                        raise InputError(_NOT_BEHIND.format(sentence, shown(line)))
                    last.take(kind, rest, found, line)
            except InputError as fault:
                found.refuse(fault)
                last, broken = None, True
            yield
        if last is not None:
            _add(found, last)

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """(sentence, its document, its source) of each sentence; documents are not known."""
        place = Place(source, notices)
        for line in place.numbered(map(_without_bar, lines)):
            tag = _TAG.match(line)
            if tag and tag[1] in (b"S", b"H") and tag[2]:
                try:
                    sentence = sentence_id(tag[2])
                except InputError as fault:
                    raise place.fault(str(fault)) from None
                yield sentence, None, line[tag.end() :] if tag[1] == b"S" else None

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of a source, which may have no hypotheses; -1 if there is none."""
        last = counted = -1
        for line in map(_without_bar, lines):
            tag = _TAG.match(line)
            if tag is None or tag[1] not in (b"S", b"O"):
                continue
            counted += tag[2] is None
            with suppress(InputError):
                last = max(last, counted if tag[2] is None else sentence_id(tag[2]))
        return last


def _without_bar(line: bytes) -> bytes:
    """A line without the progress bar, or the head of a log's line, that is before its tag."""
    if b"\r" in line and _TAG.match(line):
        return line.partition(b"\r")[0]  # a bar behind it
    behind = None if _TAG.match(line) else _AFTER_BAR.search(line)
    return line if behind is None else line[behind.start() :]


def _note_again(found: RowBuilder, number: bytes, sources: dict[bytes, bytes], text: bytes) -> None:
    """Note a source whose id comes again; refuse another one with this id. Adds it to the known."""
    if sources.get(number) == text:
        found.note("source-again")
    elif sources.setdefault(number, text) != text:
        what = f"expected one source of S-{number.decode()}, found another one than above"
        found.refuse(found.fault(f"{what}; give each run of fairseq a file of its own"))


def _add(found: RowBuilder, one: _Hypothesis) -> None:
    """Add a hypothesis all of whose lines are read; all or none have lines of their tokens."""
    found.line = one.line
    names = ("score",) if one.log_prob is None else ("logprob", "score")
    if found.names not in (None, names):
        some, there = ("no", "one") if one.log_prob is not None else ("a", "none")
        what = f"expected {some} P- line as for the first hypothesis, found {there}"
        found.refuse(found.fault(f"{what}; is the output cut off?"))
        return
    if one.log_prob is None:
        found.note("no-token-scores")
    values = [one.score] if one.log_prob is None else [one.log_prob, one.score]
    found.add(one.sentence, one.text, names, values, total=one.score)


def by_sentence(chunks: Iterable[KBestRows], notices: Notices, source: str) -> Iterator[KBestRows]:
    """The rows sorted by sentence id.

    All of them are in memory, at most 1 GiB of texts: `InputError` for more.
    """
    pieces: list[KBestRows] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk.lines.blob)
        if size > _SORTED:
            raise InputError(_TOO_LARGE, source=source, line=int(chunk.file_lines[-1]))
    if not pieces:
        return
    ids = np.concatenate([piece.sentences for piece in pieces])
    falls = np.flatnonzero(np.diff(ids) < 0)
    if not len(falls):
        yield from pieces
        return
    rows = concatenate(pieces)
    line = int(rows.file_lines[falls[0] + 1])
    notices.add("order-of-batches", source=source, line=line)
    yield rows.take(np.argsort(ids, kind="stable"))
