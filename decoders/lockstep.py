"""Many documents searched together, so that each round is one batch of histories to score.

A decoder that asks for scores is written once, as a generator of steps: it yields a request
(`decoders.requests`), receives the answer, and returns what it found. Who drives it decides who is
scored beside it: `alone` asks one problem, `together` asks those of all documents whose search is
under way. A decoder never sees another document. A decoder that draws takes a
`numpy.random.Generator` of its own for each document, and so draws the same in any company.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem, Path, ScoreError, check_path, checked, checked_sums
from decoders.requests import Extend, Request, Rescore, answered

Found = TypeVar("Found")
Steps: TypeAlias = Generator[Request, Any, Found]


def alone(problem: DocumentProblem, steps: Steps[Found]) -> Found:
    """What one search finds.

    O(1) time a step beside the problem's own and the search's. Errors: those of both.
    """
    try:
        return together([problem], [steps])[0]
    except ScoreError as fault:
        fault.problem = None  # there is one only
        raise


def together(problems: Sequence[DocumentProblem], searches: Sequence[Steps[Found]]) -> list[Found]:
    """What each search finds, which asks the problem at its own position.

    In each round the requests of all unfinished searches are answered by one call of each class of
    problems. What is found is what `alone` finds, bit for bit where the scores are; histories and
    answers of all documents are in memory at once. Errors: those of `alone`, of several the one
    met in the earliest round; a ScoreError with `problem`, the position here.
    """
    found: dict[int, Found] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
    while answers:
        requests: dict[int, tuple[DocumentProblem, Request]] = {}
        for d, answer in answers.items():
            try:
                requests[d] = problems[d], searches[d].send(answer)
            except StopIteration as end:
                found[d] = end.value
            except ScoreError as fault:
                fault.problem = d
                raise
        answers = dict(
            zip(requests, answered(list(requests.values()), list(requests)), strict=True)
        )
    return [found[d] for d in range(len(searches))]


def along(problem: DocumentProblem, choices: Sequence[int]) -> Steps[Path]:
    """Steps along one given path, for its score.

    Errors: ValueError when `choices` is no path of the problem, ScoreError.
    """
    if not problem.causal:
        check_path(problem, choices)
        sums = yield Rescore(np.array([choices], dtype=np.intp), 0, len(choices))
        return Path(tuple(choices), float(checked_sums(sums, 0, 1)[0]))
    scores = yield from _seen(problem, choices)
    total = 0.0
    for choice, row in zip(choices, scores, strict=True):
        total += float(row[choice])
    return Path(tuple(choices), total)


def path_score(problem: DocumentProblem, choices: Sequence[int]) -> float:
    """Score of one path: the sum every decoder forms, bit for bit.

    Errors: ValueError when `choices` is no path of the problem, ScoreError.
    """
    return alone(problem, along(problem, choices)).score


def forced(problem: DocumentProblem, choices: Sequence[int]) -> list[NDArray[np.float64]]:
    """Scores (K_t,) of all candidates of each sentence t after the path `choices[:t]`.

    O(Σ K_t) scores. Errors: ValueError when `choices` is no path of the problem, ScoreError.
    """
    return alone(problem, _seen(problem, choices))


def _seen(problem: DocumentProblem, choices: Sequence[int]) -> Steps[list[NDArray[np.float64]]]:
    """Scores (K_t,) of each sentence after the path."""
    check_path(problem, choices)
    seen: list[NDArray[np.float64]] = []
    states = problem.initial()
    for t, (choice, length) in enumerate(zip(choices, problem.lengths, strict=True)):
        scores, successors = yield Extend(states, t)
        seen.append(checked(scores, t, shape=(1, length))[0])
        if t + 1 < len(choices):
            states = problem.select(successors, np.zeros(1, np.intp), np.array([choice]))
    return seen
