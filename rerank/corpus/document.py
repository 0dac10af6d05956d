"""A document in memory: the candidates of each sentence as texts with features.

This is what users of the Python interface build and what a scorer receives, whether the lists
were read from a file or made in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rerank.corpus.kbest import KBest

Candidate: TypeAlias = tuple[str, Mapping[str, float]]
"""Text of a hypothesis, and its features by name."""


@dataclass(frozen=True, eq=False)
class Document:
    """The k-best lists of a document; a sentence without candidates has an empty list.

    side: side information for language models that need it, such as `{"source": [...]}`: a text
    for each sentence, as in a line of the file of `rerank decode --source`.

    >>> Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})], []]).texts
    [['the cat', 'a cat'], []]
    """

    id: str
    sentences: Sequence[Sequence[Candidate]]
    kbest: KBest | None = field(default=None, repr=False)
    """The lists as they were read from a file."""
    side: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(cls, name: str, kbest: KBest) -> Document:
        """The lists of a file; texts are decoded now, features are read when they are used."""
        return cls(
            name,
            [
                [(kbest.text(row).decode(), _RowFeatures(kbest, row)) for row in kbest.rows(t)]
                for t in range(len(kbest.counts))
            ],
            kbest,
            side={kind: [line.decode() for line in own] for kind, own in kbest.side.items()},
        )

    @cached_property
    def texts(self) -> list[list[str]]:
        """Texts of the candidates of each sentence."""
        return [[text for text, _ in candidates] for candidates in self.sentences]

    @cached_property
    def present(self) -> list[int]:
        """Numbers of the sentences that have candidates."""
        return [t for t, candidates in enumerate(self.sentences) if candidates]


class _RowFeatures(Mapping[str, float]):
    """Features of one row of k-best lists by name: `TM0_0`, `TM0_1` of a label with two values."""

    __slots__ = ("_kbest", "_row")

    def __init__(self, kbest: KBest, row: int) -> None:
        self._kbest, self._row = kbest, row

    def _values(self) -> dict[str, float]:
        from rerank.corpus.labels import column_names

        kbest, row = self._kbest, self._row
        values = dict(zip(column_names(kbest.labels), kbest.dense[row].tolist(), strict=True))
        return values | kbest.sparse.row(row)

    def __getitem__(self, name: str) -> float:
        return self._values()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())
