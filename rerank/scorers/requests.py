"""Histories of many documents to be scored: each once, and all in one batch for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rerank.scorers.following import read
from rerank.scorers.histories import Histories, Key, ScoredHistories, take

if TYPE_CHECKING:
    from lm.sentences import Rows
    from rerank.scorers.contextual import ContextualProblem


@dataclass(slots=True, eq=False)
class _Request:
    """Histories before sentence t of a problem that are to be scored, each score key once.

    rows: number of each score key among them; keys: theirs; contexts: theirs, in pieces; summary:
    what the context takes from the candidates after them, once they are scored.
    """

    problem: ContextualProblem
    t: int
    rows: dict[bytes, int] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    contexts: list[Rows] = field(default_factory=list)
    summary: Rows | None = None

    def add(self, histories: Histories) -> None:
        """Ask for the scores after those histories that are not in the table."""
        new: dict[bytes, int] = {}
        for n, key in enumerate(self.problem.score_keys(histories)):
            if key not in self.rows and not self.problem.has_scores(self.t, key):
                new.setdefault(key, n)
        if new:
            for key in new:
                self.rows[key] = len(self.rows)
            self.keys += [histories.keys[n] for n in new.values()]
            self.contexts.append(self.problem.contexts(histories, np.array([*new.values()])))

    def answer(self, histories: Histories) -> ScoredHistories:
        """Scored histories; equal ones share a context, those of equal scores need not."""
        if self.summary is None:
            return ScoredHistories(histories, np.full(len(histories.keys), -1))
        scored = np.array([self.rows.get(k, -1) for k in self.problem.score_keys(histories)])
        pairs = zip(scored.tolist(), histories.keys, strict=True)
        equal = np.array([row >= 0 and self.keys[row] == key for row, key in pairs])
        lacking = np.flatnonzero(equal & ~histories.known)
        if lacking.size:
            histories.enter(lacking, take(self.contexts[0], scored[lacking]))
        return ScoredHistories(histories, scored, self.summary)


def scored_together(asked: Sequence[tuple[ContextualProblem, Histories]]) -> list[ScoredHistories]:
    """All histories that are not in a table scored and entered, those of one score key once."""
    requests: dict[tuple[int, int], _Request] = {}
    owners = []
    for problem, histories in asked:
        own = requests.setdefault((id(problem), histories.t), _Request(problem, histories.t))
        own.add(histories)
        owners.append(own)
    work = [own for own in requests.values() if own.rows]
    for own in work:
        own.contexts = [own.contexts[0].cat(own.contexts)]
    answers = read(
        [(own.problem, own.t, own.problem.sentence(own.t), own.contexts[0]) for own in work]
    )
    for own, (scores, own.summary) in zip(work, answers, strict=True):
        own.problem.enter(own.t, list(own.rows), scores)
    return [own.answer(histories) for own, (_, histories) in zip(owners, asked, strict=True)]
