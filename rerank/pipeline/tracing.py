"""Why each sentence got its candidate: features, totals, margins, and totals without context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from decoders.marginals import is_chain, max_marginals
from decoders.result import SearchResult
from rerank.corpus.kbest import KBest
from rerank.scorers import FeatureSource
from rerank.scorers.features import DocumentFeatures
from rerank.scorers.fixed_contexts import have_contexts, without_context, without_null

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Features (n, F) and totals (n,) of a document's candidates under the path found.

    result: the search's, with margins and near-ties; alone: totals (n,) without context, None
    where no score depends on other sentences, one has no value without them, as of --pair-scores,
    or they were not asked for.
    """

    features: Array
    totals: Array
    result: SearchResult
    alone: Array | None = None

    @classmethod
    def of(
        cls,
        document: DocumentFeatures,
        weights: Array,
        result: SearchResult,
        errors: tuple[float, ...],
    ) -> Trace:
        """The trace under weights (F,); O(n F), on order 1 two passes over all pairs.

        errors: of the contextual features, in their order.
        """
        choices = result.choices
        with np.errstate(over="ignore"):  # sums below −1.8e308 are −inf
            features = document.under(choices)
            totals = features @ weights + document.sparse
            lists = np.split(totals, document.offsets[1:-1]) if choices else []
            problem = document.problem(weights)
            best = max_marginals(problem) if is_chain(problem) else None
        path_margins = None if best is None else _margins(best, choices)
        result = replace(result, margins=_margins(lists, choices), path_margins=path_margins)
        # the score of a document may be wrong by this much, and so may that of any other path
        error = stated_error(document, weights, errors)
        near = sum(abs(margin) < 2 * error for margin in result.clearest_margins or ())
        return cls(features, totals, replace(result, near_ties=near))

    def with_totals_alone(
        self,
        document: DocumentFeatures,
        weights: Array,
        scorers: Sequence[FeatureSource],
        kbest: KBest,
    ) -> Trace:
        """With the totals that candidates have in no context; a pass over the lists."""
        if not have_contexts(scorers) or without_null(scorers):
            return self
        found = without_context(document, scorers, kbest)
        with np.errstate(over="ignore"):
            return replace(self, alone=found @ weights + document.sparse)


def stated_error(document: DocumentFeatures, weights: Array, errors: tuple[float, ...]) -> float:
    """Largest error of a path's score in nats: Σ |weight| · error of a sentence, times S."""
    columns = list(document.space.contextual)
    of_sentence = float(np.abs(weights[columns]) @ np.array(errors)) if columns else 0.0
    return len(document.present) * of_sentence


def _margins(lists: Sequence[Array], choices: tuple[int, ...]) -> tuple[float, ...]:
    """Score of the chosen candidate minus that of the best other, +inf without a possible one."""
    margins = []
    for scores, choice in zip(lists, choices, strict=True):
        best = np.delete(scores, choice).max(initial=-np.inf)
        margins.append(math.inf if best == -np.inf else float(scores[choice] - best))
    return tuple(margins)
