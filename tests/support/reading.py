"""Lists in formats other than Moses', read from lines of a test."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rerank.corpus.rows import KBestRows, concatenate
from rerank.notices import Notices


class Reader(Protocol):
    """What reads lines: a format."""

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]: ...


def rows_of(
    known: Reader, text: str, *, clip: float | None = None, notices: Notices | None = None
) -> KBestRows:
    """The rows of a file `f` of this text."""
    lines = text.encode().splitlines()
    found = known.read(lines, notices or Notices(), source="f", clip=clip)
    return concatenate(list(found))


def features(rows: KBestRows) -> dict[str, list[float]]:
    """Columns of dense features by label; of several values, those of all rows in turn."""
    found: dict[str, list[float]] = {}
    start = 0
    for label in rows.labels:
        found[label.name] = rows.dense[:, start : start + label.width].ravel().tolist()
        start += label.width
    return found


def texts(rows: KBestRows) -> Sequence[str]:
    """The hypotheses."""
    return [text.decode() for text in rows.texts.to_list()]
