"""Scorers: what gives the candidates of a document a score that its other sentences can change.

A scorer is one file here. For each of several documents it returns a `DocumentProblem`
(its own feature, given a path) and static columns beside it; `rerank.scorers.features` joins
them.
Scorers that read their scores from a file inherit from `rerank.scorers.file_scorer.FileScorer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem
from rerank.corpus.kbest import KBest
from rerank.notices import Notices


@dataclass(frozen=True, slots=True, eq=False)
class ScoredDocument:
    """A scorer's view of one document's n candidates.

    problem: natural-log scores, over the sentences that have candidates; columns: (n, C)
    features that depend on no other sentence, in the order of the scorer's `columns`; keep:
    called when the problem has been searched, where there is something to keep then.
    """

    problem: DocumentProblem
    columns: NDArray[np.float64]
    keep: Callable[[], None] = lambda: None


class Featured(Protocol):
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

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[ScoredDocument]:
        """The features of each document; its name is for messages."""
        ...


class Scorer(Featured, Protocol):
    """The same as a run has it: with a cost, an error, a digest, and something to say."""

    @property
    def error(self) -> float:
        """Largest error of the score of one sentence, in nats."""
        ...

    @property
    def digest(self) -> str:
        """Hexadecimal digits that tell what the scores come from."""
        ...

    @property
    def runs_on(self) -> str:
        """Where scores are computed: `cpu`, `cuda`, or `file` where they are only read."""
        ...

    @property
    def seconds(self) -> float:
        """Time spent on computing scores so far, that inside a search included."""
        ...

    def passes(self, k: float) -> float:
        """Exact search's cost in passes over lists of k candidates."""
        ...

    def lazily(self) -> None:
        """From now on compute what a search asks for, where that saves passes over the lists."""
        ...

    def remembers(self, kbest: KBest) -> bool:
        """Whether scores of a document's lists need not be computed, or not all of them."""
        ...

    def forgetful(self) -> Featured:
        """A twin to measure time with: it neither remembers, nor keeps, nor counts."""
        ...

    def finish(self, source: str, notices: Notices) -> None:
        """Notices and faults that need the whole run; `source` is the name of the list."""
        ...

    def report(self) -> str:
        """What was done, in a line: `codclm: 12 documents from the cache`."""
        ...
