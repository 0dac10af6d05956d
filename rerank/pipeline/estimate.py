"""What the work ahead will take, measured on the first sentences and said before it begins."""

from __future__ import annotations

import time

import numpy as np

from rerank.corpus.kbest import KBest
from rerank.pipeline.lists import Announce, Opened
from rerank.pipeline.searching import Search, searched
from rerank.scorers.features import prepare

SAMPLE = 10  # sentences that the estimate is measured on


def estimate(opened: Opened, how: Search, announce: Announce) -> float:
    """Seconds of the work ahead, said through `announce`; 0 where its scores are in the cache."""
    with opened.watch.lap("estimate"):
        found = opened.first_with_candidates()
        return 0.0 if found is None else _estimated(opened, *found, how=how, announce=announce)


def _estimated(opened: Opened, name: str, kbest: KBest, how: Search, announce: Announce) -> float:
    """The estimate from the first document that has candidates."""
    counts = f"{len(opened.documents):,} documents, {opened.documents.n_lines:,} sentences"
    models = ", ".join(scorer.name for scorer in opened.scorers)
    known = opened.scorers and all(scorer.remembers(kbest) for scorer in opened.scorers)
    if known and None not in [scorer.order for scorer in opened.scorers]:
        announce(f"{counts}; scores of the first document by {models} need not be computed")
        return 0.0
    words = _sample(opened, name, kbest, how)  # once to warm up
    began = time.monotonic()
    _sample(opened, name, kbest, how)
    taken = time.monotonic() - began
    survey = opened.survey
    seconds = taken * survey.words / max(1, words)
    announce(
        f"{counts}, {survey.candidates:,} candidates, {survey.words:,} words; "
        f"about {_told(seconds)}" + (f" with {models}" if models else "")
    )
    return seconds


def _sample(opened: Opened, name: str, kbest: KBest, how: Search) -> int:
    """Words of a document's first sentences, once they are decoded."""
    head = kbest.head(SAMPLE)
    scorers = [scorer.forgetful() for scorer in opened.scorers]
    (document,) = prepare([(name, head)], scorers, opened.space(head, total=False), {})
    weights = np.zeros(document.space.width)
    weights[list(document.space.contextual)] = 1.0
    searched([document], weights, how if how.options.scale else how.at(1.0), [head])
    return sum(len(head.tokens(row)) for row in range(head.n))


def _told(seconds: float) -> str:
    """A length of time in the unit that fits it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
