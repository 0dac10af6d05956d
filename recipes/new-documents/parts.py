"""Parts of test sets: more tuning sets, of few documents, and what is left of a set to test on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rerank.commands.lists import Lists
from rerank.files.lines import read_lines
from rerank.notices import Notices

REST = "the rest"


class Part(NamedTuple):
    """Documents of a set to tune on, from and up to, and the names of the sets to test on."""

    name: str
    first: int
    end: int
    tests: tuple[str, ...]


PARTS = (
    Part("dev2010", 0, 8, ("tst2010", "test", "test3ref")),
    Part("tst2010", 0, 6, ("dev2010", "test3ref", REST)),
    Part("tst2010", 6, 11, ("dev2010", "test3ref", REST)),
    Part("tune", 0, 4, (REST, "test", "tst2010")),
    Part("tune", 4, 8, (REST, "test", "tst2010")),
    Part("test", 0, 4, (REST, "tune", "dev2010")),
    Part("test", 8, 12, (REST, "tune", "dev2010")),
    Part("tune", 0, 12, ("test", "test3ref", "tst2010")),
)


def split(
    lists: Lists, references: Sequence[Path], part: Part, stem: Path
) -> list[tuple[Lists, tuple[Path, ...]]]:
    """The documents of a part and the others, as files; the second may be empty."""
    documents = [line.decode() for line in _lines(Path(str(lists.docs)))]
    order = list(dict.fromkeys(documents))
    own = {*order[part.first : part.end]}
    halves = []
    for kind, inside in (("own", True), ("rest", False)):
        kept = [t for t, name in enumerate(documents) if (name in own) == inside]
        number = {b"%d" % t: b"%d" % n for n, t in enumerate(kept)}
        nbest, docs, *texts = (
            Path(f"{stem}.{kind}.{name}")
            for name in ("nbest", "docids", *(path.name for path in references))
        )
        columns = (line.split(b" ", 1) for line in _lines(Path(str(lists.kbest))))
        _write(nbest, [number[old] + b" " + rest for old, rest in columns if old in number])
        for source, path in zip((Path(str(lists.docs)), *references), (docs, *texts), strict=True):
            lines = _lines(source)
            _write(path, [lines[t] for t in kept])
        halves.append((Lists(nbest, docs), tuple(texts)))
    return halves


def _lines(path: Path) -> list[bytes]:
    return list(read_lines(path, Notices()))


def _write(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
