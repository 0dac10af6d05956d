"""Many documents searched together, so that each round is one batch of histories to score.

A decoder that extends histories is written once, as a generator of steps: it yields the histories
and the sentence that it wants scored, receives the answer of `DocumentProblem.extend`, and returns
its paths. Who drives it decides who is scored beside it: `alone` asks one problem, `together` asks
those of all documents whose search is under way. A decoder never sees another document. A decoder
that draws takes a `numpy.random.Generator` of its own for each document, and so draws the same in
any company.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

import numpy as np

from decoders.problem import (
    Answer,
    DocumentProblem,
    Path,
    Request,
    ScoreError,
    States,
    check_path,
    checked,
    extended,
)

Steps: TypeAlias = Generator[tuple[States, int], Answer, list[Path]]


def alone(problem: DocumentProblem, steps: Steps) -> list[Path]:
    """Paths found by one search.

    O(1) time a step beside the problem's own and the search's. Errors: those of both.
    """
    answer: Answer | None = None
    while True:
        try:
            states, t = next(steps) if answer is None else steps.send(answer)
        except StopIteration as end:
            paths: list[Path] = end.value
            return paths
        answer = problem.extend(states, t)


def together(problems: Sequence[DocumentProblem], searches: Sequence[Steps]) -> list[list[Path]]:
    """Paths found by each search, which asks the problem at its own position.

    In each round the requests of all unfinished searches are answered by one `extend_together`
    of each class of problems. The paths are those of `alone`, bit for bit where the scores are;
    histories and answers of all documents are in memory at once. Errors: those of `alone`, of
    several the one met in the earliest round; a ScoreError with `problem`, the position here.
    """
    found: dict[int, list[Path]] = {}
    answers: dict[int, Answer | None] = dict.fromkeys(range(len(searches)))
    while answers:
        requests: dict[int, Request] = {}
        for d, answer in answers.items():
            steps = searches[d]
            try:
                states, t = next(steps) if answer is None else steps.send(answer)
            except StopIteration as end:
                found[d] = end.value
            except ScoreError as fault:
                fault.problem = d
                raise
            else:
                requests[d] = problems[d], states, t
        answered = extended(list(requests.values()), list(requests))
        answers = dict(zip(requests, answered, strict=True))
    return [found[d] for d in range(len(searches))]


def along(problem: DocumentProblem, choices: Sequence[int]) -> Steps:
    """Steps along one given path, for its score.

    Errors: ValueError when `choices` is no path of the problem, ScoreError.
    """
    check_path(problem, choices)
    states, score = problem.initial(), 0.0
    for t, (choice, length) in enumerate(zip(choices, problem.lengths, strict=True)):
        scores, successors = yield states, t
        score += float(checked(scores, t, shape=(1, length))[0, choice])
        if t + 1 < len(choices):
            states = problem.select(successors, np.zeros(1, np.intp), np.array([choice]))
    return [Path(tuple(choices), score)]


def path_score(problem: DocumentProblem, choices: Sequence[int]) -> float:
    """Score of one path: the sum every decoder forms, bit for bit.

    Errors: ValueError when `choices` is no path of the problem, ScoreError.
    """
    return alone(problem, along(problem, choices))[0].score
