"""Sweeps over a path: a block of sentences is chosen anew while all others stay fixed.

Iterated conditional modes: J. Besag, "On the statistical analysis of dirty pictures", 1986,
https://doi.org/10.1111/j.2517-6161.1986.tb01412.x. Gibbs sampling: S. Geman, D. Geman, 1984,
https://doi.org/10.1109/TPAMI.1984.4767596. Only `rescore` is needed, so this also searches
models whose sentences depend on later ones, or on a tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from decoders.batching import Rescore, Steps, batchable, follow, run_batch
from decoders.beam import beam
from decoders.marginals import draw
from decoders.problem import DocumentProblem, Indices, Path, ScoreError, checked_sums
from decoders.result import check_scale
from decoders.reversal import reversed_fault, reversed_problem

MAX_ROUNDS = 100
MAX_MOVES = 10**5  # combinations of candidates of one block


@batchable
def sweeps(
    problem: DocumentProblem,
    *,
    rng: np.random.Generator,
    start: Sequence[int] | None = None,
    width: int = 8,
    block: int = 1,
    horizon: int | None = None,
    gibbs: int = 0,
    alpha: float | None = None,
) -> Steps[Path]:
    """A path that no change of one block improves, judged within the horizon.

    From `start`, or from the path that a beam of `width` finds (the first candidates, where
    sentences depend on later ones; `decode` gives a better start), `gibbs` random sweeps at scale
    α; then, from the best path so far and from the last path drawn, sweeps that take the best of
    each block until the path stays the same (at most 100). Blocks of `block` neighbouring sentences
    begin at every sentence; a change is judged by the scores of its sentences and of the `horizon`
    sentences after them, or before them where these depend on later sentences (default: the order,
    2 if unbounded). Returns the best of the start and the paths at the ends of sweeps, scored over
    the whole document. Serves every order, exact on 0. Where the horizon reaches the order (or the
    end, without `causal` the beginning too) a sweep never lowers the score.
    O(T K^block (block + horizon)) rescorings a sweep. Ties: a path stays as it is. Random with
    `gibbs`: `rng`. Errors: ValueError for invalid options or a start that is not a path, ScoreError
    naming the sentence.
    """
    if block < 1 or gibbs < 0 or (horizon is not None and horizon < 0):
        raise ValueError(
            f"expected a block of at least 1 sentence, and gibbs and horizon of at least 0, found "
            f"{block}, {gibbs}, {horizon}"
        )
    if gibbs:
        if alpha is None:
            raise ValueError("Gibbs sweeps need a scale alpha")
        check_scale(alpha)
    reach = horizon if horizon is not None else 2 if problem.order is None else problem.order
    if start is None and problem.causal:
        start = (yield from beam.steps(problem, width=width))[0].choices
    best = yield from follow.steps(problem, [0] * len(problem.lengths) if start is None else start)
    path = np.array(best.choices, dtype=np.intp)
    for _ in range(gibbs):
        path = yield from sweep.steps(problem, path, block=block, reach=reach, alpha=alpha, rng=rng)
        best = _better(best, (yield from follow.steps(problem, path.tolist())))
    last = path
    for path in (np.array(best.choices, dtype=np.intp), last)[: 1 + bool(gibbs)]:
        for _ in range(MAX_ROUNDS):
            before = path
            path = yield from sweep.steps(problem, path, block=block, reach=reach)
            if np.array_equal(path, before):
                break
            best = _better(best, (yield from follow.steps(problem, path.tolist())))
    return best


def _better(path: Path, other: Path) -> Path:
    """The path of higher score, the first of equal paths."""
    return other if other.score > path.score else path


@batchable
def sweep(
    problem: DocumentProblem,
    path: Indices,
    *,
    block: int,
    reach: int,
    alpha: float | None = None,
    rng: np.random.Generator | None = None,
) -> Steps[Indices]:
    """The path (T,) after one sweep: each block takes its best candidates, or draws with α."""
    for t in range(max(1, len(path) - block + 1) if len(path) else 0):
        lengths = problem.lengths[t : t + block]
        if math.prod(lengths) > MAX_MOVES:
            raise ValueError(
                f"blocks of {block} sentences have {math.prod(lengths):,} combinations of "
                f"candidates, more than {MAX_MOVES:,}; take smaller blocks"
            )
        combinations = np.indices(lengths).reshape(len(lengths), -1).T
        if len(combinations) == 1:
            continue
        paths = np.tile(path, (len(combinations), 1))
        paths[:, t : t + block] = combinations
        answer = yield Rescore(paths, t, len(lengths) - 1 + reach)
        sums = checked_sums(answer, t, len(paths))
        if alpha is not None and rng is not None:
            path = paths[int(draw(alpha * sums[None], rng)[0])]
            continue
        here = int(np.flatnonzero((combinations == path[t : t + block]).all(axis=1))[0])
        chosen = int(sums.argmax())
        path = paths[chosen if sums[chosen] > sums[here] else here]
    return path


# Where sweeps begin in documents whose sentences depend on earlier and on later ones

Choices = tuple[int, ...]


def best_starts(problems: Mapping[int, DocumentProblem], width: int) -> dict[int, Choices]:
    """The best path of each problem among those decoded in one direction, by all of its scores.

    A beam of `width` decodes the scores that depend on earlier sentences only, another, from the
    last sentence on, those that depend on later sentences only; the path of first candidates is the
    third. Of equal paths the first. O(T width K) scores in either direction. Errors: ScoreError
    with the number of the problem as its `position`.
    """
    forward = _decoded(problems, width)
    mirrored = {d: reversed_problem(problem) for d, problem in problems.items()}
    try:
        backward = _decoded(mirrored, width)
    except ScoreError as fault:
        raise reversed_fault(fault, len(problems[fault.position or 0].lengths)) from None
    paths = [*forward, *((d, choices[::-1]) for d, choices in backward)]
    paths += [(d, (0,) * len(problem.lengths)) for d, problem in problems.items()]
    numbers = [d for d, _ in paths]
    searches = [follow.steps(problems[d], choices) for d, choices in paths]
    scored = run_batch([problems[d] for d in numbers], searches, numbers)
    best: dict[int, Path] = {}
    for d, path in zip(numbers, scored, strict=True):
        best[d] = _better(best.get(d, path), path)
    return {d: path.choices for d, path in best.items()}


def _decoded(problems: Mapping[int, DocumentProblem], width: int) -> list[tuple[int, Choices]]:
    """The path that a beam finds by the causal scores of each problem that has any."""
    causal = {d: problem.causal_part() for d, problem in problems.items()}
    parts = {d: part for d, part in causal.items() if part is not None}
    searches = [beam.steps(part, width=width) for part in parts.values()]
    paths = run_batch([*parts.values()], searches, [*parts])
    return [(d, best.choices) for d, (best, *_) in zip(parts, paths, strict=True)]
