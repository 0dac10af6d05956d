"""Estimate of the time that a run takes, measured on its first sentences."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.notices import Notices
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.progress import duration
from rerank.pipeline.run_loop import run_loop
from rerank.pipeline.searching import Search
from rerank.pipeline.sources import DocumentSource, Printer
from rerank.scorers.features import FeatureSpace

SAMPLE = 10  # sentences that the estimate is measured on


def estimate(source: KBestSource, search: Search | None, announce: Printer) -> None:
    """Announce how long the run will take, or that its scores are in the cache.

    search: None for a run that only scores the path of first candidates.
    """
    with source.watch.lap("estimate"):
        found = source.first_with_candidates()
        if found is None:
            return
        name, kbest = found
        counts = f"{len(source.documents):,} documents, {source.documents.n_lines:,} sentences"
        models = ", ".join(scorer.name for scorer in source.scorers)
        known = models and all(scorer.remembers(kbest) for scorer in source.scorers)
        if known and source.order is not None:
            announce(f"{counts}; scores of the first document by {models} need not be computed")
            return
        words = _decode_head(source, name, kbest, search)  # once to warm up
        began = time.monotonic()
        _decode_head(source, name, kbest, search)
        taken = time.monotonic() - began
        survey = source.file.survey
        seconds = taken * survey.words / max(1, words)
        announce(
            f"{counts}, {survey.candidates:,} candidates, {survey.words:,} words; about "
            f"{duration(seconds)}" + (f" with {models}" if models else "")
        )


def _decode_head(source: KBestSource, name: str, kbest: KBest, search: Search | None) -> int:
    """Decode a document's first sentences, or score them; returns the number of their words."""
    head = kbest.head(SAMPLE)
    scorers = [scorer.forgetful() for scorer in source.scorers]
    sample = DocumentSource([(name, head)], scorers, Notices(), origins=source.origins)
    if search is not None and not search.options.scale:
        search = search.at(1.0)
    for batch in run_loop(sample, _contextual_only, search, keep=False):
        for document in batch.documents if search is None else ():
            document.under(document.first())
    return sum(len(head.tokens(row)) for row in range(head.n))


def _contextual_only(space: FeatureSpace) -> NDArray[np.float64]:
    """Weight 1 for each contextual feature, 0 for the others."""
    weights = np.zeros(space.width)
    weights[list(space.contextual)] = 1.0
    return weights
