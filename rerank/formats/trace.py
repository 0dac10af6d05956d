"""Traces of choices, as `decode --trace` writes them (`rerank.commands.trace`), read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath
from rerank.notices import Notices


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a trace: a sentence, its choice, and what spoke for it."""

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
    def of(cls, line: dict[str, Any]) -> Self:
        """A line of a trace; KeyError or TypeError for something else."""
        texts = {name: line["texts"][name] for name in ("chosen", "first", "runner_up")}
        others = {name: line[name] for name in cls.__slots__ if name not in ("texts", "systems")}
        found = cls(**others, texts=texts, systems=line.get("systems"))
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


def read_trace(path: FilePath, name: str, notices: Notices) -> Iterator[Choice]:
    """The lines of a trace, one at a time; InputError, with the file's name, for another line."""
    for number, line in enumerate(read_lines(path, notices), 1):
        try:
            yield Choice.of(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            shown = line.decode(errors="replace")
            raise InputError(
                f"expected a line of a trace, found {shown!r:.60}; write it with "
                "rerank decode --trace FILE of this version",
                source=name,
                line=number,
            ) from None
