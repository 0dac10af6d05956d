"""What a search asks of a problem, and many requests answered in few calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from decoders.problem import DocumentProblem, Indices, ScoreError, States


@dataclass(frozen=True, slots=True, eq=False)
class Extend:
    """Scores of all candidates of sentence t after each history; answered as `extend` does."""

    states: States
    t: int


@dataclass(frozen=True, slots=True, eq=False)
class Rescore:
    """Scores along paths (N, T) from sentence t to t + horizon; answered as `rescore` does."""

    paths: Indices
    t: int
    horizon: int


Request: TypeAlias = Extend | Rescore


def answered(
    requests: Sequence[tuple[DocumentProblem, Request]], owners: Sequence[int]
) -> list[Any]:
    """Answers to requests to problems of any class: one call for each class and kind of request.

    `owners[n]` is the position, in the caller's batch, of the problem behind request n; a
    ScoreError leaves with that as its `problem`.
    """
    groups: dict[tuple[type[DocumentProblem], type[Request]], list[int]] = {}
    for n, (problem, request) in enumerate(requests):
        groups.setdefault((type(problem), type(request)), []).append(n)
    answers: dict[int, Any] = {}
    for (kind, _), members in groups.items():
        try:
            found = _asked(kind, [requests[n] for n in members])
        except ScoreError as fault:
            if fault.problem is not None:
                fault.problem = owners[members[fault.problem]]
            raise
        answers.update(zip(members, found, strict=True))
    return [answers[n] for n in range(len(requests))]


def _asked(
    kind: type[DocumentProblem], requests: Sequence[tuple[DocumentProblem, Request]]
) -> Sequence[Any]:
    """Answers to requests of one kind to problems of one class."""
    extensions = [(p, r.states, r.t) for p, r in requests if isinstance(r, Extend)]
    if extensions:
        return kind.extend_together(extensions)
    moves = [(p, r.paths, r.t, r.horizon) for p, r in requests if isinstance(r, Rescore)]
    return kind.rescore_together(moves)
