"""The laws of scorers, as one function that the test of a new scorer calls.

def test_my_scorer_keeps_the_laws() -> None:
    check_scorer(MyScorer(), DOCUMENTS)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.laws import LawError as LawError
from rerank.corpus.kbest import Document
from rerank.errors import RerankError
from rerank.scorers import PlainScorer, Scorer
from rerank.scorers.plugin import PluginScorer

_PATHS = 8  # of each document


def check_scorer(
    scorer: Scorer | PlainScorer, documents: Sequence[Document], *, tolerance: float = 0.0
) -> None:
    """LawError for a scorer whose scores cannot be relied on.

    Scores have the right shapes and are numbers or -inf; they do not depend on documents scored
    before; scores of a sentence after a path do not depend on later sentences, nor on those more
    than `order` before it. Differences up to `tolerance` count as equal. Eight paths are drawn with
    a fixed seed: a document of T sentences is scored 8 (T + 1) + 1 times.

    documents: some of more than `order` + 1 sentences with several different candidates, and one
    with a sentence that has no candidates.
    """
    source, rng = PluginScorer("scorer", scorer), np.random.default_rng(1)
    scores = [_scores(source, document, [-1] * len(document.sentences)) for document in documents]
    for document, expected in zip(reversed(documents), reversed(scores), strict=True):
        sizes = np.array([max(len(candidates), 1) for candidates in document.sentences], np.int64)
        path, others = sizes - 1, np.zeros_like(sizes)  # then drawn
        for n in range(_PATHS):
            along = _scores(source, document, path)
            if n == 0:
                _compare(expected, along, "other documents", document, tolerance)
            for s, t in enumerate(document.present):
                first = 0 if source.order is None else max(0, s - source.order)
                kept = document.present[first : s + 1]
                changed = _scores(source, _reduced(document, kept, others), path)
                what = f"sentences other than {', '.join(map(str, kept))}"
                _compare(along[s : s + 1], changed[s : s + 1], what, document, tolerance, t)
            path, others = rng.integers(sizes), rng.integers(sizes)


def _scores(
    source: PluginScorer, document: Document, path: Sequence[int] | NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Scores of each sentence that has candidates, after a path with a candidate of each (T,)."""
    try:
        problem = source.document_problem(document)
        states, along = problem.initial(), []
        for s, (t, k) in enumerate(zip(document.present, problem.lengths, strict=True)):
            scores, successors = problem.extend(states, s)
            along.append(np.asarray(scores[0], dtype=np.float64))
            states = problem.select(successors, np.array([0]), np.array([path[t] % k]))
        return along
    except RerankError as fault:
        raise LawError(str(fault)) from fault


def _reduced(document: Document, kept: Sequence[int], others: NDArray[np.int64]) -> Document:
    """A document whose sentences keep one candidate, of index others (T,), but for those `kept`."""

    def reduced(lists: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        return [
            items if t in kept else items[others[t] : others[t] + 1]
            for t, items in enumerate(lists)
        ]

    return Document(
        document.id,
        reduced(document.sentences),
        side=document.side,
        systems=document.systems,
        totals=None if document.totals is None else reduced(document.totals),
    )


def _compare(
    expected: Sequence[NDArray[np.float64]],
    found: Sequence[NDArray[np.float64]],
    what: str,
    document: Document,
    tolerance: float,
    sentence: int | None = None,
) -> None:
    for ours, theirs in zip(expected, found, strict=True):
        if not np.allclose(ours, theirs, rtol=0.0, atol=tolerance):
            where = "" if sentence is None else f" of sentence {sentence} (counted from 0)"
            raise LawError(
                f"document {document.id!r}: expected scores{where} that do not depend on {what}, "
                f"found {ours} and {theirs}"
            )
