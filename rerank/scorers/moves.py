"""Changes inside a path under a model with context: the scores of the sentences that follow.

The first changed sentence is scored as a whole list, which is cached. After it only the
candidates on the paths are scored, each once for all the contexts in which it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices, check_path
from lm.scoring import after
from rerank.scorers.contextual import ContextualProblem, advanced, attributed
from rerank.scorers.histories import Histories

if TYPE_CHECKING:
    from lm.rows import Rows
    from lm.trie import Candidates

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
        """Distinct pairs of history and candidate of sentence t: their parents and choices (B,).

        Last the pair (N,) of each path.
        """
        chosen = self.paths[:, self.t]
        if (self.nodes == self.nodes[0]).all() and (chosen == chosen[0]).all():
            return self.nodes[:1], chosen[:1], np.zeros_like(chosen)
        k = self.problem.lengths[self.t]
        pairs, of_path = np.unique(self.nodes * k + chosen, return_inverse=True)
        parents, choices = np.divmod(pairs, k)
        return parents, choices, of_path

    def advance(self, histories: Histories, of_path: Indices) -> None:
        """Go to the next sentence, each path with the history of its pair."""
        self.histories, self.nodes = histories, of_path
        self.t += 1


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """A request for some of the pairs of a move, and the candidate's place in the answer."""

    move: _Move
    pairs: Indices
    request: tuple[Candidates, Rows]
    place: int


def rescored(requests: Sequence[tuple[ContextualProblem, Indices, int, int]]) -> list[Sums]:
    """Sums (N,) of each request (problem, paths, t, horizon): `DocumentProblem.rescore`.

    All requests advance together, a sentence at a time. O(t) for the histories before t, whose
    contexts the problem remembers; then a list for each distinct history, and a candidate for
    each distinct history of every further sentence.
    """
    moves = [_begun(*request) for request in requests]
    open_moves = [move for move in moves if move.t <= move.last]
    if open_moves:
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
    answers = ContextualProblem.extend_together(
        [(one.problem, one.histories, one.t) for one in moves]
    )
    for move, (scores, successors) in zip(moves, answers, strict=True):
        move.totals += scores[move.nodes, move.paths[:, move.t]]
        parents, choices, of_path = move.branches()
        move.advance(move.problem.select(successors, parents, choices), of_path)


def _candidates(moves: Sequence[_Move]) -> None:
    """Score a further sentence of moves: candidates on their paths, after each distinct history."""
    import torch

    asked = [question for move in moves for question in _questions(move)]
    engines = {id(one.move.problem.engine): one.move.problem.engine for one in asked}
    for engine in engines.values():
        own = [one for one in asked if one.move.problem.engine is engine]
        with attributed([(one.move.problem, one.move.t) for one in own]):
            answers = after(engine, [one.request for one in own])
        found = zip(own, answers, strict=True)
        for move, mine in [(move, [*group]) for move, group in groupby(found, _asker)]:
            parents, choices, of_path = move.branches()
            order = np.argsort(np.concatenate([one.pairs for one, _ in mine]))
            scores = np.concatenate([scores[:, one.place] for one, (scores, _) in mine])[order]
            move.totals += scores[of_path]
            histories = move.problem.followed(move.histories, parents, choices)
            before = [one.request[1] for one, _ in mine]
            summaries = [
                summary.take(slice(one.place, None, one.request[0].counts[0]))
                for one, (_, summary) in mine
            ]
            ordered = torch.from_numpy(order).to(before[0].device)
            contexts = before[0].cat(before).take(ordered)
            following = advanced(engine, contexts, before[0].cat(summaries).take(ordered))
            histories.enter(np.arange(len(parents)), following)
            move.advance(histories, of_path)


def _asker(found: tuple[_Question, object]) -> _Move:
    """The move that a question belongs to."""
    return found[0].move


def _questions(move: _Move) -> Iterator[_Question]:
    """One for each candidate on the paths, in all its contexts."""
    import torch

    parents, choices, _ = move.branches()
    contexts = move.problem.contexts(move.histories)
    for choice in np.unique(choices).tolist():
        pairs = np.flatnonzero(choices == choice)
        own = contexts.take(torch.from_numpy(parents[pairs]).to(contexts.device))
        request, place = move.problem.alone(move.t, choice, own)
        yield _Question(move, pairs, request, place)
