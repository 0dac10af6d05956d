"""The file of `decode --trace`: one JSON object a line, a line for each sentence with candidates.

- `document`, `sentence` (in its document, from 0), `source` (if side information has it);
- `chosen`, `first`, `runner_up`: index in the file's list of the choice, of the first candidate,
  and of the best other candidate in the same context; `texts`: what they say;
- `total`, `features` and `weighted`: of the chosen candidate in the context of the decoded other
  sentences, feature values and what each adds to the total (`sparse`: all sparse features);
- `over_first`, `over_runner_up`: what each feature adds to the choice less what it adds to these;
- `margin`: the total minus that of the best other candidate after the same earlier sentences
  (before the same later ones, for scorers that read documents from the last sentence); what it
  changes in other sentences does not count, so that it can be below 0;
- `path_margin`: the score of the best path through the chosen candidate minus that of the best
  path through any other; only where scores depend on one sentence before at most;
- `alone`: the choice without context, `chosen` and `text`, and its `lead`, how much larger its
  total is there than that of the decoded choice; only where scores depend on other sentences, and
  exist without them, too: not with --pair-scores;
- `systems`: names of those whose output the choice is; only of lists made by `--systems`;
- `marginal`, the probability of the chosen candidate, and `marginals`, of every one that was kept,
  in the order of the file; only of a search that has a posterior.

Null stands for values that do not exist: the margin over no other possible candidate, a marginal
without a possible path. Scores and margins are in natural logarithms, weighted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.marginals import is_chain, max_marginals
from decoders.result import SearchResult
from rerank.corpus.columns import column_names
from rerank.corpus.kbest import KBest
from rerank.pipeline.results import finite
from rerank.scorers import FeatureSource
from rerank.scorers.features import DocumentFeatures, have_contexts, without_context, without_null

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


NO_SYSTEMS: Mapping[str, str] = MappingProxyType({})


def trace_lines(
    kbest: KBest,
    document: DocumentFeatures,
    weights: Array,
    trace: Trace,
    systems: Mapping[str, str] = NO_SYSTEMS,
) -> Iterator[bytes]:
    """A line of JSON for each sentence with candidates.

    systems: name of each system by the label of its indicator feature.
    """
    columns = list(zip(column_names(document.space.labels), trace.features.T, strict=True))
    indicators = [(systems[label], values) for label, values in columns if label in systems]
    rows = document.rows(trace.result.choices).tolist()
    for row, choice in zip(rows, _choices(kbest, document, weights, trace), strict=True):
        if systems:
            choice["systems"] = [name for name, values in indicators if values[row]]
        yield json.dumps(choice, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _choices(
    kbest: KBest, document: DocumentFeatures, weights: Array, trace: Trace
) -> Iterator[dict[str, Any]]:
    """The object of each line."""
    names, found = column_names(document.space.labels), trace.result
    posterior, path_margins, margins = found.posterior, found.path_margins, found.margins or ()
    weighted = trace.features * weights
    if kbest.sparse.names:
        weighted, added = np.column_stack([weighted, document.sparse]), (*names, "sparse")
    else:
        added = (*names,)
    sources = kbest.side.get("source")
    rows = document.rows(found.choices).tolist()
    for s, (t, row) in enumerate(zip(document.present.tolist(), rows, strict=True)):
        first, stop = document.offsets[s : s + 2].tolist()
        others = np.delete(np.arange(first, stop), row - first)
        other = int(others[trace.totals[others].argmax()]) if others.size else None
        marginals = None if posterior is None or posterior.extinct else posterior.marginals[s]
        own = trace.features[row].tolist()
        yield {
            "document": document.name,
            "sentence": t,
            "source": None if sources is None else sources[t].decode(),
            "chosen": int(kbest.ranks[row]),
            "first": int(kbest.ranks[first]),
            "runner_up": None if other is None else int(kbest.ranks[other]),
            "texts": {
                "chosen": _text(kbest, row),
                "first": _text(kbest, first),
                "runner_up": None if other is None else _text(kbest, other),
            },
            "total": finite(trace.totals[row]),
            "features": dict(zip(names, map(finite, own), strict=True)),
            "weighted": _named(added, weighted[row]),
            "over_first": _named(added, _difference(weighted, row, first)),
            "over_runner_up": (
                None if other is None else _named(added, _difference(weighted, row, other))
            ),
            "margin": finite(margins[s]),
            "path_margin": None if path_margins is None else finite(path_margins[s]),
            "alone": _alone(kbest, trace.alone, row, first, stop),
            "marginal": None if marginals is None else float(marginals[found.choices[s]]),
            "marginals": None if marginals is None else marginals.tolist(),
        }


def _text(kbest: KBest, row: int) -> str:
    return kbest.text(row).decode()


def _difference(weighted: Array, row: int, other: int) -> Array:
    """What each feature adds to a candidate less what it adds to another; −inf − −inf is 0."""
    found = np.zeros(weighted.shape[1])
    np.subtract(weighted[row], weighted[other], out=found, where=weighted[row] != weighted[other])
    return found


def _named(names: Sequence[str], values: Array) -> dict[str, float | None]:
    return dict(zip(names, map(finite, values.tolist()), strict=True))


def _alone(
    kbest: KBest, totals: Array | None, row: int, first: int, stop: int
) -> dict[str, object] | None:
    """The choice of a sentence by totals without context: the decoded one if none is better."""
    if totals is None:
        return None
    best = first + int(totals[first:stop].argmax())
    if totals[best] == totals[row]:
        best = row
    lead = 0.0 if best == row else finite(float(totals[best] - totals[row]))
    return {"chosen": int(kbest.ranks[best]), "text": _text(kbest, best), "lead": lead}
