"""What `rerank decode` writes beside translations, read back: traces of choices, the summary."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.json_objects import read_json
from rerank.notices import Notices

_FIGURES = ("score", "baseline_score", "gap")  # of a summary


@dataclass(frozen=True, slots=True)
class Choice:
    """What is read of a record of a trace: a sentence, its choice, and what spoke for it."""

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

    @property
    def changed(self) -> bool:
        """Whether the text of the choice is not that of the first candidate."""
        return self.texts["chosen"] != self.texts["first"]

    @property
    def by_context(self) -> bool:
        """Whether the text of the choice would be another without context."""
        return self.alone is not None and self.alone["text"] != self.texts["chosen"]

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """The choice of a record; KeyError or TypeError for something else."""
        texts = {name: record["texts"][name] for name in ("chosen", "first", "runner_up")}
        others = {name: record[name] for name in cls.__slots__ if name not in ("texts", "systems")}
        found = cls(**others, texts=texts, systems=record.get("systems"))
        numbers = [
            *found.weighted.values(),
            *found.over_first.values(),
            found.margin,
            *(found.over_runner_up or {}).values(),
        ]
        strings = [found.document, texts["chosen"], texts["first"], *(found.systems or ())]
        if found.alone is not None:
            strings.append(found.alone["text"])
            numbers.append(found.alone["lead"])
        if not all(isinstance(text, str) for text in strings):
            raise TypeError("expected a text")
        if not all(value is None or isinstance(value, int | float) for value in numbers):
            raise TypeError("expected a number")
        if not isinstance(found.sentence, int) or not isinstance(found.chosen, int):
            raise TypeError("expected a whole number")
        return found


def to_line(record: Mapping[str, Any]) -> bytes:
    """The line of a trace that a record of it is."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read_trace(path: FilePath, name: str, notices: Notices) -> Iterator[Choice]:
    """The lines of a trace, one at a time; InputError, with the file's name, for another line."""
    for number, line in enumerate(read_lines(path, notices), 1):
        try:
            yield Choice.of(read_json(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            shown = line.decode(errors="replace")
            raise InputError(
                f"expected a line of a trace, found {shown!r:.60}; write it with "
                "rerank decode --trace FILE of this version",
                source=name,
                line=number,
            ) from None


def read_summary(path: str | Path, documents: Collection[str], notices: Notices) -> dict[str, Any]:
    """A summary of these documents; InputError for something else, or for other documents."""
    content = b"\n".join(read_lines(path, notices))
    try:
        found = read_json(content)
        _check(found, set(documents))
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        reason = fault.args[0] if isinstance(fault, _OtherDocument) else "found something else"
        raise InputError(
            f"expected a summary of the same documents, {reason}; write it with rerank decode "
            "--summary FILE",
            source=display(path),
        ) from None
    return dict(found)


class _OtherDocument(ValueError):
    """A document that the summary has, and the command does not."""


def _check(found: Any, documents: set[str]) -> None:
    """A fault if a summary has not what a report takes from it."""
    for one in [found, *found["documents"]]:
        for name in _FIGURES:
            if one[name] is not None and not isinstance(one[name], int | float):
                raise TypeError(name)
        if not isinstance(one["exact"], bool):
            raise TypeError("exact")
    if not isinstance(found["signature"], str) or not isinstance(found["best"], str):
        raise TypeError("signature")
    if not isinstance(found["near_ties"], int | None):
        raise TypeError("near_ties")
    for one in found["documents"]:
        if one["id"] not in documents:
            raise _OtherDocument(f"found a document {one['id']!r}")
