"""Scorers: features of candidates that may depend on the document's other sentences.

Whoever writes a scorer writes a `Scorer`: its order and one function. A run holds a
`FeatureSource` for every scorer: language models (`language_model`), scores in files
(`score_files`), and `plugin`, which wraps caching, timing, estimates, reports and checks around
any `Scorer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from decoders.arrays import Pairwise, Unary
from decoders.problem import DocumentProblem
from decoders.reversal import own_scores
from rerank.corpus.kbest import Document, KBest
from rerank.notices import Notices

Scores: TypeAlias = Sequence[ArrayLike] | DocumentProblem
"""What a scorer returns for a document of T sentences, K_t candidates of sentence t.

Order 0: T arrays (K_t,). Order 1: T matrices (K_{t-1}, K_t), the first (1, K_0); the sentence
before is the nearest earlier one that has candidates, and a sentence without candidates has an
empty array. Any order: a `DocumentProblem` over the sentences that have candidates. Larger is
better; −inf is a score, NaN and +inf are faults.
"""

Named: TypeAlias = tuple[str, KBest]  # a document's name, for messages, and its lists
PlainScorer: TypeAlias = Callable[[Document], Sequence[ArrayLike]]
"""A scorer of order 0 as a function."""


class Scorer(Protocol):
    """What the author of a scorer writes; see `rerank.scorers.plugin` for optional attributes."""

    @property
    def order(self) -> int | None:
        """Number of earlier sentences that a score depends on; None if unbounded."""
        ...

    def score(self, document: Document) -> Scores:
        """Scores of all candidates of a document."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ScoredDocument:
    """Scores of one document's n candidates by one source of features.

    problem: scores over the sentences that have candidates; columns: (n, C) static features, in
    the order of the source's `columns`; keep: writes to the cache what a search has computed.
    """

    problem: DocumentProblem
    columns: NDArray[np.float64]
    keep: Callable[[], None] = lambda: None


class FeatureSource(ABC):
    """One contextual feature of a run, called `name`, and static features `columns` beside it.

    side_information: kinds that it needs of every sentence (`rerank.formats.side_information`);
    order: number of earlier sentences that the contextual feature depends on, None if unbounded;
    error: largest error of the score of one sentence, in nats; runs_on: where scores are computed,
    `cpu`, `cuda`, or `file` if they are only read; given_later: whether the contextual feature
    depends on later sentences in place of earlier ones; causal: whether it depends on those of one
    side only; contextless: whether it has scores without context; kept: whether its scores go to
    the score cache, if there is one. Members other than `score` have defaults for scores that cost
    nothing.
    """

    columns: Sequence[str] = ()
    side_information: Sequence[str] = ()
    order: int | None = 0
    error: float = 0.0
    runs_on: str = "cpu"
    given_later: bool = False
    causal: bool = True
    contextless: bool = True
    kept: bool = False

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def digest(self) -> str:
        """Hexadecimal digest of what the scores come from."""
        return ""

    @property
    def seconds(self) -> float:
        """Time spent on computing scores so far, including time inside searches."""
        return 0.0

    @abstractmethod
    def score(self, documents: Sequence[Named]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""

    def without_context(self, name: str, kbest: KBest) -> NDArray[np.floating]:
        """Scores (n,) of a document's candidates, each as if its sentence were all of it.

        Not for sources of order 0, whose scores need no context, nor for those that are not
        `contextless`.
        """
        alone = [(name, kbest.sentence(int(t))) for t in np.flatnonzero(kbest.counts)]
        return np.concatenate([own_scores(one.problem, (0,))[0] for one in self.score(alone)])

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over lists of k candidates."""
        return 1.0

    def lazily(self) -> None:
        """Score only after the histories that a search reaches, if that saves passes."""
        return None

    def remembers(self, kbest: KBest) -> bool:
        """Whether some scores of these lists are in the cache."""
        return False

    def forgetful(self) -> FeatureSource:
        """A copy for measuring time, which neither uses the cache nor counts."""
        return ZeroScores(self.name, self.columns, self.order)

    def finish(self, source: str, notices: Notices) -> None:
        """Add warnings that need the whole run; `source` is the name of the list."""
        return None

    def report(self) -> str:
        """What was done, in a line: `codclm: 12 documents from the cache`."""
        return f"{self.name}: nothing to report"

    def details(self) -> str:
        """Counters of the scoring engine, in a line; '' if there are none."""
        return ""


class ProblemSource(FeatureSource):
    """A source that scores documents one by one, without static features of its own."""

    @abstractmethod
    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Scores of one document's candidates; the name is for messages."""

    def score(self, documents: Sequence[Named]) -> list[ScoredDocument]:
        """Features of each document (name, lists); its static columns are 0."""
        return [
            ScoredDocument(self.problem(name, kbest), np.zeros((kbest.n, len(self.columns))))
            for name, kbest in documents
        ]


class ZeroScores(ProblemSource):
    """The score 0 for every candidate, as a problem of order 1 for sources of order 1, else 0."""

    def __init__(self, name: str, columns: Sequence[str], order: int | None) -> None:
        super().__init__(name)
        self.columns, self.order = columns, order

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Zeros of the shape of scores."""
        counts = kbest.counts[kbest.counts > 0].tolist()
        if self.order != 1:
            return Unary([np.zeros(k) for k in counts])
        before = [1, *counts[:-1]]
        return Pairwise([np.zeros(shape) for shape in zip(before, counts, strict=True)])
