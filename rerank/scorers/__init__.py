"""Scorers: what gives the candidates of a document a score that its other sentences can change.

A scorer is one file here. For each of several documents it returns a `DocumentProblem`
(its own feature, given a path) and static columns beside it; `rerank.features` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem
from rerank.kbest import KBest


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A scorer's view of one document's n candidates.

    problem: natural-log scores, over the sentences that have candidates; columns: (n, C)
    features that depend on no other sentence, in the order of the scorer's `columns`; keep:
    called when the problem has been searched, where there is something to keep then.
    """

    problem: DocumentProblem
    columns: NDArray[np.float64]
    keep: Callable[[], None] = lambda: None


class Scorer(Protocol):
    """A source of one contextual feature, called `name`, and of static `columns`."""

    @property
    def name(self) -> str:
        """Label of the contextual feature."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Labels of the static features."""
        ...

    @property
    def order(self) -> int | None:
        """Earlier sentences that the contextual feature depends on; None where unbounded."""
        ...

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[Scored]:
        """The features of each document; its name is for messages."""
        ...
