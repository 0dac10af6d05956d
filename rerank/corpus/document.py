"""A document in memory: the candidates of each sentence as texts with features.

This is what users of the Python interface build and what a scorer receives, whether the lists
were read from a file or made in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rerank.corpus.kbest import KBest

Candidate: TypeAlias = tuple[str, Mapping[str, float]]
"""Text of a hypothesis, and its features by name."""


@dataclass(frozen=True, eq=False)
class Document:
    """The k-best lists of a document; a sentence without candidates has an empty list.

    >>> Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})], []]).texts
    [['the cat', 'a cat'], []]
    """

    id: str
    sentences: Sequence[Sequence[Candidate]]

    @classmethod
    def of(cls, name: str, kbest: KBest) -> Document:
        """The lists of a file; a label with several values is the features `TM0_0`, `TM0_1`."""
        import numpy as np

        from rerank.corpus.labels import column_names

        names, sparse = column_names(kbest.labels), kbest.sparse
        features = [dict(zip(names, row, strict=True)) for row in kbest.dense.tolist()]
        for row in np.flatnonzero(np.diff(sparse.indptr)).tolist():
            for i in range(*sparse.indptr[row : row + 2].tolist()):
                features[row][sparse.names[sparse.indices[i]]] = float(sparse.values[i])
        lists = map(kbest.rows, range(len(kbest)))
        return cls(name, [[(kbest.text(r).decode(), features[r]) for r in rows] for rows in lists])

    @cached_property
    def texts(self) -> list[list[str]]:
        """Texts of the candidates of each sentence."""
        return [[text for text, _ in candidates] for candidates in self.sentences]
