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


def check_scorer(
    scorer: Scorer | PlainScorer, documents: Sequence[Document], *, tolerance: float = 0.0
) -> None:
    """LawError for a scorer whose scores cannot be relied on.

    Scores have the right shapes and are numbers or -inf; they do not depend on documents scored
    before; scores of a sentence after a path do not depend on later sentences, nor on those more
    than `order` before it. Differences up to `tolerance` count as equal.

    documents: some of three or more sentences with several different candidates, and one with a
    sentence that has no candidates.
    """
    source = PluginScorer("scorer", scorer)
    scores = [_scores(source, document) for document in documents]
    for document, expected in zip(reversed(documents), reversed(scores), strict=True):
        _compare(expected, _scores(source, document), "other documents", document, tolerance)
        for s, t in enumerate(document.present):
            kept = document.present[0 if source.order is None else max(0, s - source.order) : s + 1]
            changed = _scores(source, _reduced(document, kept))
            what = f"sentences other than {', '.join(map(str, kept))}"
            _compare(expected[s : s + 1], changed[s : s + 1], what, document, tolerance, t)


def _scores(source: PluginScorer, document: Document) -> list[NDArray[np.float64]]:
    """Scores of each sentence that has candidates, after a path that takes the last candidates."""
    try:
        problem = source.document_problem(document)
        states, along = problem.initial(), []
        for t, k in enumerate(problem.lengths):
            scores, successors = problem.extend(states, t)
            along.append(np.asarray(scores[0], dtype=np.float64))
            states = problem.select(successors, np.array([0]), np.array([k - 1]))
        return along
    except RerankError as fault:
        raise LawError(str(fault)) from fault


def _reduced(document: Document, kept: Sequence[int]) -> Document:
    """A document whose sentences keep only their first candidate, apart from those `kept`."""

    def reduced(lists: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        return [items if t in kept else items[:1] for t, items in enumerate(lists)]

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
