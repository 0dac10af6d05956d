"""Changes inside a path under a model with context: the scores of the sentences that follow.

The first changed sentence is scored as a whole list, which is cached. After it only the
candidates on the paths are scored, each once for all the contexts in which it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices, check_path
from rerank.scorers.following import follow
from rerank.scorers.histories import Histories, take

if TYPE_CHECKING:
    from rerank.scorers.contextual import ContextualProblem

Sums = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class _Move:
    """Paths (N, T) of a problem, followed up to sentence t.

    histories: M distinct ones before sentence t; nodes: (N,) which of them each path has; totals:
    (N,) scores so far; last: the last sentence that counts.
    """

    problem: ContextualProblem
    paths: Indices
    t: int
    last: int
    histories: Histories
    nodes: Indices
    totals: Sums

    def branches(self) -> tuple[Indices, Indices, Indices]:
        """Distinct pairs of candidate of sentence t and history: their parents and choices (B,).

        In the order of the candidates. Last the pair (N,) of each path.
        """
        chosen = self.paths[:, self.t]
        if (self.nodes == self.nodes[0]).all() and (chosen == chosen[0]).all():
            return self.nodes[:1], chosen[:1], np.zeros_like(chosen)
        n = len(self.histories.keys)
        pairs, of_path = np.unique(chosen * n + self.nodes, return_inverse=True)
        choices, parents = np.divmod(pairs, n)
        return parents, choices, of_path

    def advance(self, histories: Histories, of_path: Indices) -> None:
        """Go to the next sentence, each path with the history of its pair."""
        self.histories, self.nodes = histories, of_path
        self.t += 1


def rescored(requests: Sequence[tuple[ContextualProblem, Indices, int, int]]) -> list[Sums]:
    """Sums (N,) of each request (problem, paths, t, horizon): `DocumentProblem.rescore`.

    All requests advance together, a sentence at a time. O(t) for the histories before t, whose
    contexts the problem remembers; then a list for each distinct history, and a candidate for
    each distinct history of every further sentence.
    """
    moves = [_begun(*request) for request in requests]
    if open_moves := [move for move in moves if move.t <= move.last]:
        _lists(open_moves)
    while open_moves := [move for move in moves if move.t <= move.last]:
        _candidates(open_moves)
    return [move.totals for move in moves]


def _begun(problem: ContextualProblem, paths: Indices, t: int, horizon: int) -> _Move:
    """A move at its first sentence, with the contexts of its histories computed."""
    check_path(problem, paths.max(axis=0).tolist())
    last = min(t + horizon, len(problem.lengths) - 1)
    nodes = np.zeros(len(paths), dtype=np.intp)
    move = _Move(problem, paths, 0, last, problem.initial(), nodes, np.zeros(len(paths)))
    passed = [move.histories]
    while move.t < t:
        parents, choices, of_path = move.branches()
        move.advance(problem.followed(move.histories, parents, choices), of_path)
        passed.append(move.histories)
    if move.t <= last:
        problem.contexts(move.histories)
        for histories in passed:  # with contexts computed on the way, too
            problem.note(histories)
    return move


def _lists(moves: Sequence[_Move]) -> None:
    """Score the first sentence of moves: whole lists, after each distinct history."""
    kind = type(moves[0].problem)
    answers = kind.extend_together([(one.problem, one.histories, one.t) for one in moves])
    for move, (scores, successors) in zip(moves, answers, strict=True):
        move.totals += scores[move.nodes, move.paths[:, move.t]]
        parents, choices, of_path = move.branches()
        move.advance(move.problem.select(successors, parents, choices), of_path)


def _candidates(moves: Sequence[_Move]) -> None:
    """Score a further sentence of moves: candidates on their paths, after each distinct history."""
    branches = [move.branches() for move in moves]
    found = follow(
        [
            (one.problem, one.t, choices, take(one.problem.contexts(one.histories), parents))
            for one, (parents, choices, _) in zip(moves, branches, strict=True)
        ]
    )
    for move, (parents, choices, of_path), (scores, contexts) in zip(
        moves, branches, found, strict=True
    ):
        move.totals += scores[of_path]
        histories = move.problem.followed(move.histories, parents, choices)
        histories.enter(np.arange(len(parents)), contexts)
        move.advance(histories, of_path)
