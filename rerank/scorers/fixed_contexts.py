"""Features of a document's candidates in contexts that no path through its lists has.

A context is the target sentences that a score depends on. Scorers of order 0 have none: their
features stay what they are. One pass over the lists for each other scorer, or none from a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from decoders.reversal import own_scores
from rerank.corpus.kbest import KBest
from rerank.scorers import FeatureSource
from rerank.scorers.features import DocumentFeatures

Array = NDArray[np.float64]


def have_contexts(scorers: Sequence[FeatureSource]) -> bool:
    """Whether any score depends on other sentences."""
    return any(scorer.order != 0 for scorer in scorers)


def without_null(scorers: Sequence[FeatureSource]) -> list[str]:
    """Names of the scorers that depend on other sentences and have no scores without them."""
    return [scorer.name for scorer in scorers if scorer.order != 0 and not scorer.contextless]


def without_context(
    document: DocumentFeatures, scorers: Sequence[FeatureSource], kbest: KBest
) -> Array:
    """Features (n, F) with each sentence as if it were the whole document."""
    return _scored(document, scorers, lambda one: one.without_context(document.name, kbest))


def after_texts(
    document: DocumentFeatures,
    scorers: Sequence[FeatureSource],
    kbest: KBest,
    texts: Sequence[bytes],
) -> Array:
    """Features (n, F) with given texts (T,) in place of the document's other sentences.

    Each text becomes one more candidate of its sentence, and the path of these is the context.
    Scorers of order 1 score one sentence after all candidates of the one before, unless they do so
    `lazily`.
    """
    lists, path = kbest.with_last(texts), kbest.counts[kbest.counts > 0].tolist()
    return _scored(document, scorers, partial(_under, path, document.name, lists))


def _under(
    path: Sequence[int], name: str, lists: KBest, scorer: FeatureSource
) -> NDArray[np.floating]:
    """Scores (n,) of all candidates but the last of each list, whose path is their context."""
    (scored,) = scorer.score([(name, lists)])
    return np.concatenate([own[:-1] for own in own_scores(scored.problem, path)])


def _scored(
    document: DocumentFeatures,
    scorers: Sequence[FeatureSource],
    score: Callable[[FeatureSource], NDArray[np.floating]],
) -> Array:
    """Features (n, F), contextual columns of scorers that are not of order 0 by `score`."""
    found = document.static.copy()
    columns = zip(document.space.contextual, document.problems, scorers, strict=True)
    for column, problem, scorer in columns:
        if scorer.order != 0:
            found[:, column] = score(scorer)
        else:
            found[:, column] = np.concatenate(own_scores(problem, document.first()))
    return found
