"""Searches that ask for scores, run on one document or on many documents in batches.

A search is a generator function under `@batchable`: it yields a request for scores (`Extend` or
`Rescore`), receives the problem's answer, and returns its result. Called, it searches a problem.
`run_batch` runs many: in each round a call per class of problem answers the requests of all
unfinished searches, so that a model scores histories of many documents in a batch. A search never
sees another document; it draws with a generator of the document, so the same in any batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np

from decoders.problem import (
    Array,
    DocumentProblem,
    Indices,
    Path,
    ScoreError,
    States,
    check_path,
    checked,
    checked_sums,
)


@dataclass(frozen=True, slots=True, eq=False)
class Extend:
    """A request for the scores of all candidates of sentence t after each history."""

    states: States
    t: int


@dataclass(frozen=True, slots=True, eq=False)
class Rescore:
    """A request for the scores along paths (N, T) from sentence t to t + horizon."""

    paths: Indices
    t: int
    horizon: int


Request: TypeAlias = Extend | Rescore
Result = TypeVar("Result")
Steps: TypeAlias = Generator[Request, Any, Result]
P = ParamSpec("P")


class batchable(Generic[P, Result]):
    """A search of a problem, made of a generator function, its attribute `steps`."""

    def __init__(self, steps: Callable[Concatenate[DocumentProblem, P], Steps[Result]]) -> None:
        self.steps = steps
        update_wrapper(self, steps)

    def __call__(self, problem: DocumentProblem, *args: P.args, **kwargs: P.kwargs) -> Result:
        """The result of the search. Errors: its own; ScoreError."""
        try:
            return run_batch([problem], [self.steps(problem, *args, **kwargs)])[0]
        except ScoreError as fault:
            fault.position = None  # there is a single document
            raise


def run_batch(
    problems: Sequence[DocumentProblem],
    searches: Sequence[Steps[Result]],
    numbers: Sequence[int] | None = None,
) -> list[Result]:
    """The result of each search; each asks the problem at the same position.

    A result equals that of the search alone, bit for bit where the scores do; histories and
    answers of all documents are in memory at once. O(1) time a step beside problems and searches.
    Errors: those of the searches, of several that in the earliest round; ScoreError with its
    `position` here, or its number where searches have `numbers`, which may be equal.
    """
    results: dict[int, Result] = {}
    answers: list[list[Any]] = [[None] for _ in searches]  # what starts a generator
    try:
        while any(answers):
            requests: list[list[tuple[DocumentProblem, Request]]] = [[] for _ in searches]
            for d, received in enumerate(answers):
                for answer in received:  # none after the end of the search
                    try:
                        requests[d].append((problems[d], searches[d].send(answer)))
                    except StopIteration as end:
                        results[d] = end.value
                    except ScoreError as fault:
                        fault.position = d
                        raise
            answers = answer_all(requests)
    except ScoreError as fault:
        if numbers is not None and fault.position is not None:
            fault.position = numbers[fault.position]
        raise
    return [results[d] for d in range(len(searches))]


def answer_all(requests: Sequence[Sequence[tuple[DocumentProblem, Request]]]) -> list[list[Any]]:
    """Answers to each owner's requests, a call per class; a ScoreError has the owner's position."""
    groups: dict[tuple[type[DocumentProblem], type[Request]], list[tuple[int, int]]] = {}
    for owner, asked in enumerate(requests):
        for n, (problem, request) in enumerate(asked):
            groups.setdefault((type(problem), type(request)), []).append((owner, n))
    answers: list[list[Any]] = [[None] * len(asked) for asked in requests]
    for (kind, _), members in groups.items():
        alike = [requests[owner][n] for owner, n in members]
        extensions = [(p, r.states, r.t) for p, r in alike if isinstance(r, Extend)]
        changes = [(p, r.paths, r.t, r.horizon) for p, r in alike if isinstance(r, Rescore)]
        scores: Sequence[Any]
        try:
            scores = kind.rescore_together(changes) if changes else kind.extend_together(extensions)
        except ScoreError as fault:
            if fault.position is not None:
                fault.position = members[fault.position][0]
            raise
        for (owner, n), answer in zip(members, scores, strict=True):
            answers[owner][n] = answer
    return answers


@batchable
def follow(problem: DocumentProblem, choices: Sequence[int]) -> Steps[Path]:
    """The path of these choices, with its score. Errors: ValueError for no path, ScoreError."""
    if not problem.causal:
        check_path(problem, choices)
        sums = yield Rescore(np.array([choices], dtype=np.intp), 0, len(choices))
        return Path(tuple(choices), float(checked_sums(sums, 0, 1)[0]))
    scores = yield from conditional_scores.steps(problem, choices)
    total = 0.0
    for choice, row in zip(choices, scores, strict=True):
        total += float(row[choice])
    return Path(tuple(choices), total)


def path_score(problem: DocumentProblem, choices: Sequence[int]) -> float:
    """Score of a path: the sum that every decoder forms, bit for bit. Errors as in `follow`."""
    return follow(problem, choices).score


@batchable
def conditional_scores(problem: DocumentProblem, choices: Sequence[int]) -> Steps[list[Array]]:
    """Scores (K_t,) of each sentence t after `choices[:t]`; O(Σ K_t). Errors as in `follow`."""
    check_path(problem, choices)
    rows: list[Array] = []
    states = problem.initial()
    for t, (choice, length) in enumerate(zip(choices, problem.lengths, strict=True)):
        scores, successors = yield Extend(states, t)
        rows.append(checked(scores, t, shape=(1, length))[0])
        if t + 1 < len(choices):
            states = problem.select(successors, np.zeros(1, np.intp), np.array([choice]))
    return rows
