"""Records of runs, which commands write and read back: traces, summaries, learning curves.

A trace has a line for every choice of `rerank decode`, a summary the figures of all documents; a
learning curve has a line for every validation of a training run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict

import msgspec

from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import Place, read_json, writable
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.training.trainer import Validation

SCHEMA = 1  # of traces and summaries; records of the first versions of traces have none
FIRST = "first candidates"
COLUMNS = ("update", "epoch", "seconds", "training_nats", "valid_perplexity", "rate", "stage")
_SUMMARY_BYTES = 256 << 20
_HEADER = "\t".join(COLUMNS).encode()


@dataclass(frozen=True, slots=True)
class Choice:
    """What is read of a record of a trace: a sentence, its choice, and what spoke for it.

    run: of the first record, version, command and inputs of the decoding.
    """

    document: str
    sentence: int
    source: str | None
    chosen: int
    first: int
    texts: Mapping[str, str | None]
    weighted: Mapping[str, float | None]
    over_first: Mapping[str, float | None]
    over_runner_up: Mapping[str, float | None] | None
    margin: float | None
    alone: Mapping[str, Any] | None
    systems: Sequence[str] | None = None
    outputs: Mapping[str, str] | None = None
    first_engine: str | None = None
    agreements: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    terms: Sequence[tuple[str, str, bool]] = ()
    defects: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[Mapping[str, str]] = ()
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scorers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    programs: Sequence[Mapping[str, Any]] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stated(self) -> dict[str, Mapping[str, Any]]:
        """What the trace states of each model, scorer and program of a utility, by its name."""
        of_search = {f"utility {n}" if n else "utility": p for n, p in enumerate(self.programs)}
        return {**self.models, **self.scorers, **of_search}

    def engines(self, text: str | None) -> list[str]:
        """Names of the systems whose output a text is."""
        return [name for name, output in (self.outputs or {}).items() if output == text]

    @property
    def changed(self) -> bool:
        """Whether the text of the choice is not that of the first candidate."""
        return self.texts["chosen"] != self.texts["first"]

    @property
    def by_context(self) -> bool:
        """Whether the text of the choice would be another without context."""
        return self.alone is not None and self.alone["text"] != self.texts["chosen"]

    @property
    def missed(self) -> list[tuple[str, str]]:
        """Terms of a glossary that the choice misses, and their translations."""
        return [(term, translation) for term, translation, kept in self.terms if not kept]

    def __post_init__(self) -> None:
        """KeyError or ValueError for a record without some of the texts and numbers."""
        if None in (self.texts["chosen"], self.texts["first"]) or "runner_up" not in self.texts:
            raise ValueError("expected a text")
        if self.alone is not None:
            msgspec.convert((self.alone["text"], self.alone["lead"]), tuple[str, float | None])

    @classmethod
    def of(cls, record: object) -> Self:
        """The choice of a record; KeyError or ValueError for something else."""
        return msgspec.convert(record, cls)


def first_named(engine: str | None) -> str:
    """What first candidates are called: `A, the first engine`, where lists are of engines."""
    return FIRST if engine is None else f"{engine}, the first engine"


def is_trace(path: FilePath) -> bool:
    """Whether the first line of a file is that of a trace, as far as its keys tell."""
    with suppress(ValueError, RecursionError):
        record = read_json(next(read_lines(path, Notices()), b""), writable)
        return isinstance(record, dict) and {"document", "sentence", "texts"} <= {*record}
    return False


def to_line(record: Mapping[str, Any]) -> bytes:
    """The line of a trace that a record of it is."""
    content = {"schema": SCHEMA, **record}
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read_trace(path: FilePath, name: str, notices: Notices) -> Iterator[Choice]:
    """The lines of a trace, one at a time; InputError, with the file's name, for another line."""
    place = Place(name, notices)
    for line in place.numbered(read_lines(path, notices)):
        try:
            record = read_json(line, writable)
            _check_schema(record, name, place.line)
            yield Choice.of(record)
        except (ValueError, KeyError, RecursionError):
            shown = line.decode(errors="replace")
            raise place.fault(
                f"expected a line of a trace, found {shown!r:.60}; write it with "
                "rerank decode --trace FILE of this version"
            ) from None


def _check_schema(record: object, name: str, line: int | None = None) -> None:
    """InputError for a record of another schema than is read here."""
    schema = record.get("schema", SCHEMA) if isinstance(record, dict) else SCHEMA
    if schema != SCHEMA:
        message = f"found schema {schema!r:.20}; this version reads {SCHEMA}, try a newer one"
        raise InputError(message, source=name, line=line)


class _Figures(TypedDict):
    """What a report takes from a summary of all documents, and of one."""

    score: float | None
    baseline_score: float | None
    gap: float | None
    exact: bool


class _OfDocument(_Figures):
    id: str


class _Summary(_Figures):
    signature: str
    best: str
    near_ties: int | None
    documents: list[_OfDocument]


def read_summary(path: str | Path, documents: Collection[str], notices: Notices) -> dict[str, Any]:
    """A summary of these documents; InputError for something else, or for other documents."""
    lines = read_lines(path, notices, max_bytes=_SUMMARY_BYTES)
    content, reason = b"\n".join(lines), "found something else"
    try:
        msgspec.json.decode(content, type=_Summary)  # before other content takes its memory
        record = read_json(content, writable)
        _check_schema(record, display(path))
        summary = msgspec.convert(record, _Summary)
        others = [d["id"] for d in summary["documents"] if d["id"] not in documents]
        if not others:
            return dict(record)
        reason = f"found a document {others[0]!r}"
    except (ValueError, RecursionError):
        pass
    raise InputError(
        f"expected a summary of the same documents, {reason}; write it with rerank decode "
        "--summary FILE",
        source=display(path),
    )


class LearningCurve:
    """Tab-separated figures of the validations so far; each replaces the whole file at once.

    training_nats: per token, `</s>` included, since the line before; rate: learning rate; stage:
    part of the training, whose loss the two figures are.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.lines: list[bytes] = []
        if str(path) == "-" or (Path(path).exists() and not Path(path).is_file()):
            raise UsageError(
                f"--curve {path}: expected a file, which every validation replaces; name one"
            )

    def resume(self, update: int, notices: Notices) -> None:
        """Keep the lines of an existing file up to an update, from which a run goes on."""
        if not Path(self.path).exists():
            return
        header, *lines = [*read_lines(self.path, notices)] or [b""]
        try:
            if header != _HEADER:
                raise ValueError
            self.lines = [line for line in lines if int(line.partition(b"\t")[0]) <= update]
        except ValueError:
            raise InputError(
                "expected the learning curve of the interrupted run; name another file",
                source=display(self.path),
                line=1,
            ) from None

    def add(self, report: Validation) -> None:
        """Write the file with one more line."""
        values = (getattr(report, name) for name in COLUMNS)
        columns = (f"{value:.7g}" if isinstance(value, float) else str(value) for value in values)
        self.lines.append("\t".join(columns).encode())
        with atomic(self.path) as file:
            file.write(b"\n".join([_HEADER, *self.lines, b""]))
