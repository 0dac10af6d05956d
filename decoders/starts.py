"""Where sweeps begin in documents whose sentences depend on earlier and on later ones."""

from __future__ import annotations

from collections.abc import Mapping

from decoders.batching import Steps, follow, run_batch
from decoders.beam import beam
from decoders.problem import DocumentProblem, Path, ScoreError
from decoders.reversal import reversed_fault, reversed_problem

Choices = tuple[int, ...]
Found = list[tuple[int, Path]]  # paths, each with the number of its problem


def best_starts(problems: Mapping[int, DocumentProblem], width: int) -> dict[int, Choices]:
    """The best path of each problem among those decoded in one direction, by all of its scores.

    A beam of `width` decodes the scores that depend on earlier sentences only, another one, from
    the last sentence on, those that depend on later sentences only; the path of first candidates is
    the third. Of equal ones the first. O(T width K) scores in either direction. Errors: ScoreError
    with `problem`, the number of the problem.
    """
    forward = _decoded({d: one.causal_part() for d, one in problems.items()}, width)
    turned = {d: reversed_problem(one) for d, one in problems.items()}
    try:
        other = _decoded({d: one.causal_part() for d, one in turned.items()}, width)
    except ScoreError as fault:
        raise reversed_fault(fault, len(problems[fault.problem or 0].lengths)) from None
    paths = [
        *((d, path.choices) for d, path in forward),
        *((d, path.choices[::-1]) for d, path in other),
        *((d, (0,) * len(one.lengths)) for d, one in problems.items()),
    ]
    best: dict[int, Path] = {}
    searches = [(d, problems[d], follow.steps(problems[d], choices)) for d, choices in paths]
    for d, path in _run(searches):
        if d not in best or path.score > best[d].score:
            best[d] = path
    return {d: path.choices for d, path in best.items()}


def _decoded(parts: Mapping[int, DocumentProblem | None], width: int) -> Found:
    """The path that a beam finds in each part that there is."""
    return _run([(d, part, _first(part, width)) for d, part in parts.items() if part is not None])


def _first(problem: DocumentProblem, width: int) -> Steps[Path]:
    """The best path in a beam."""
    path, *_ = yield from beam.steps(problem, width=width)
    return path


def _run(searches: list[tuple[int, DocumentProblem, Steps[Path]]]) -> Found:
    """The path that each search finds in its problem."""
    try:
        found = run_batch([one for _, one, _ in searches], [steps for *_, steps in searches])
    except ScoreError as fault:
        fault.problem = searches[fault.problem or 0][0]
        raise
    return [(d, path) for (d, *_), path in zip(searches, found, strict=True)]
