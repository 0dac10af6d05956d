"""A document language model as a scorer: `NAME`, its log-probability, and `NAMEoov`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem, Pairwise, Unary
from lm.checkpoint import Saved
from lm.scoring import Candidates, ScoreError, Scorer, after, all_pairs, independent
from lm.vocabulary import UNKNOWN
from rerank.errors import RerankError
from rerank.kbest import KBest
from rerank.scorers import Scored

if TYPE_CHECKING:
    from torch import Tensor


class LanguageModel:
    """The scorer of one model folder.

    Order 0: every candidate once. Order 1 with output-added context: all K×K pairs at
    once, 4 · K² bytes a sentence. Unbounded: candidates after each of the states that a
    decoder keeps.
    """

    def __init__(self, name: str, saved: Saved) -> None:
        self.name = name
        self.columns = (f"{name}oov",)
        self.saved = saved
        self.oov = self.words = 0
        self._scorer = Scorer.of(saved.model)

    @property
    def order(self) -> int | None:
        """The model's order."""
        return self.saved.model.order

    def score(self, document: KBest, name: str) -> Scored:
        """The model's problem on a document, and the (n, 1) out-of-vocabulary counts."""
        encode = self.saved.vocabulary.encode
        ids = [encode(document.tokens(row)) for row in range(document.n)]
        oov = np.array([sentence.count(UNKNOWN) for sentence in ids], dtype=np.float64)
        self.oov += int(oov.sum())
        self.words += sum(map(len, ids))
        bounds = [document.rows(t) for t in np.flatnonzero(document.counts).tolist()]
        lists = [ids[rows.start : rows.stop] for rows in bounds]
        with _blamed(self.name, name):
            problem = self._problem(lists, name)
        return Scored(problem, oov[:, None])

    def _problem(self, lists: Sequence[Candidates], name: str) -> DocumentProblem:
        if self.order == 0:
            return Unary(independent(self._scorer, lists))
        if self.order == 1:
            return Pairwise(all_pairs(self._scorer, lists))
        return Contextual(self._scorer, lists, self.name, name)


@dataclass(frozen=True, slots=True, eq=False)
class Contextual(DocumentProblem):
    """Log-probabilities under a model of unbounded order; a state is a context (N, C)."""

    scorer: Scorer
    lists: Sequence[Candidates]
    label: str
    document: str
    order: None = None
    lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(map(len, self.lists)))

    def initial(self) -> Tensor:
        """The start context."""
        start: Tensor = self.scorer.model.context.start(1).detach()
        return start

    def extend(self, states: Tensor, t: int) -> tuple[NDArray[np.float64], Any]:
        """Scores (N, K_t) after each context; O(N · trie nodes) steps of the recurrence."""
        with _blamed(self.label, self.document):
            scores, summaries = after(self.scorer, self.lists[t], states)
        return scores, (states, summaries)

    def select(self, successors: Any, parents: NDArray[np.intp], choices: NDArray[np.intp]) -> Any:
        """The contexts after the chosen candidates."""
        import torch

        states, summaries = successors
        rows, columns = (
            torch.from_numpy(np.asarray(x)).to(states.device) for x in (parents, choices)
        )
        with torch.no_grad():
            return self.scorer.model.context.advance(states[rows], summaries[rows, columns])


@contextmanager
def _blamed(label: str, document: str) -> Iterator[None]:
    """A fault in the scores, told with the scorer's and the document's name."""
    try:
        yield
    except ScoreError as fault:
        raise RerankError(f"scorer {label!r}, document {document!r}: {fault}") from None
