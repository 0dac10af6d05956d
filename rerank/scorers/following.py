"""One candidate more: its score, and the context after it, for histories whose context is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices
from lm.scoring import ScoreError, ScoringEngine, after
from lm.sentences import Rows
from lm.trie import Candidates
from rerank.errors import RerankError
from rerank.scorers.histories import take

if TYPE_CHECKING:
    from rerank.scorers.acausal import AcausalProblem
    from rerank.scorers.contextual import ContextualProblem


Reading: TypeAlias = "tuple[ContextualProblem | AcausalProblem, int, Candidates, Rows]"


def read(asked: Sequence[Reading]) -> list[tuple[NDArray[np.float32], Rows]]:
    """Scores (M, K) of K candidates after M contexts, and summaries (M · K rows) of these.

    Each request: problem, sentence t for messages, candidates, contexts. One batch for each model.
    RerankError naming scorer, document and sentence.
    """
    found: dict[int, tuple[NDArray[np.float32], Rows]] = {}
    for engine in {id(problem.engine): problem.engine for problem, *_ in asked}.values():
        own = [n for n, (problem, *_) in enumerate(asked) if problem.engine is engine]
        try:
            answers = after(engine, [asked[n][2:] for n in own])
        except ScoreError as fault:
            problem, t, *_ = asked[own[fault.list or 0]]
            raise RerankError(f"{problem.label}: {located(fault, t)}") from None
        except MemoryError as fault:
            advice = "keep fewer candidates with --top, or a narrower --beam"
            raise RerankError(f"{asked[own[0]][0].label}: {fault}; {advice}") from None
        found.update(zip(own, answers, strict=True))
    return [found[n] for n in range(len(asked))]


def follow(
    asked: Sequence[tuple[ContextualProblem, int, Indices, Rows]],
) -> list[tuple[NDArray[np.float32], Rows]]:
    """Scores (M,) of candidates after M contexts, and the contexts (M rows) after them.

    Each request: problem, sentence t, choices (M,), contexts. Only these candidates are read, each
    run of equal choices together; but whole lists on a deterministic backend, as for a search.
    """
    requests: list[Reading] = []
    owners: list[tuple[int, int]] = []  # of each: its request, and the candidate's place in it
    for n, (problem, t, choices, contexts) in enumerate(asked):
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(choices)) + 1), len(choices)]):
            choice, given = int(choices[begin]), contexts.take(slice(begin, end))
            if problem.engine.backend.deterministic:
                requests.append((problem, t, problem.sentence(t), given))
                owners.append((n, choice))
            else:
                requests.append((problem, t, problem.lists.one(t, choice), given))
                owners.append((n, 0))
    scores: list[list[NDArray[np.float32]]] = [[] for _ in asked]
    summaries: list[list[Rows]] = [[] for _ in asked]
    for (n, place), (of_lists, summary) in zip(owners, read(requests), strict=True):
        scores[n].append(of_lists[:, place])
        summaries[n].append(summary.take(slice(place, None, of_lists.shape[1])))
    return [
        (np.concatenate(scores[n]), problem.advanced(t, contexts, Rows.cat(summaries[n])))
        for n, (problem, t, _, contexts) in enumerate(asked)
    ]


def advanced(
    engine: ScoringEngine, contexts: Rows, summaries: Rows, side: Rows | None = None
) -> Rows:
    """Contexts (M rows) after sentences with summaries (M rows), in which the next one is read.

    side: encoded side information of that sentence, one row, or None.
    """
    context = engine.model.context

    def following(given: Rows, summary: Rows) -> Rows:
        after = context.advance(given, summary)
        return after if side is None else context.enter(after, side.repeat_interleave(len(after)))

    return by_rows(engine, following, contexts, summaries)


def by_rows(engine: ScoringEngine, function: Callable[..., Rows], *given: Rows) -> Rows:
    """What a function makes of batches of M rows each.

    One row at a time on a deterministic backend: the bits of a row of a product may depend on how
    many rows there are, and on where in memory it lies, hence the copies that `take` makes.
    """
    with engine.backend.inference():
        if not engine.backend.deterministic:
            return function(*given)
        places = (np.array([n]) for n in range(len(given[0])))
        return Rows.cat([function(*(take(rows, place) for rows in given)) for place in places])


def located(fault: ScoreError, t: int) -> str:
    """An error with its place in the document; t counts sentences that have candidates."""
    return f"sentence {t}, candidate {fault.candidate} (counted from 0): {fault}"
