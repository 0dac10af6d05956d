"""Why each sentence got its candidate: features, contributions, margins and marginals.

One JSON object a line (`--trace`), a line for each sentence that has candidates:

- `document`, `sentence` (in its document, from 0), `chosen` (index in the file's list) and `total`;
- `features` and `weighted`, the feature values of the chosen candidate after the decoded earlier
  sentences, and what each adds to the total (`sparse`: all sparse features);
- `margin`: the total minus that of the best other candidate after the same earlier sentences
  (before the same later ones, for scorers that read documents from the last sentence); what it
  changes in other sentences does not count, so that it can be below 0;
- `path_margin`: the score of the best path through the chosen candidate minus that of the best
  path through any other; only where scores depend on one sentence before at most;
- `marginal`, the probability of the chosen candidate, and `marginals`, of every one that was kept,
  in the order of the file; only of a search that has a posterior.

Null stands for values that do not exist: the margin over no other possible candidate, a marginal
without a possible path. Scores and margins are in natural logarithms, weighted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from decoders.marginals import is_chain, max_marginals
from decoders.result import SearchResult
from rerank.corpus.kbest import KBest
from rerank.corpus.labels import column_names
from rerank.pipeline.results import finite
from rerank.scorers.features import DocumentFeatures

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Features (n, F) and totals (n,) of a document's candidates under the path found.

    result: the search's, with margins and near-ties.
    """

    features: Array
    totals: Array
    result: SearchResult

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


def stated_error(document: DocumentFeatures, weights: Array, errors: tuple[float, ...]) -> float:
    """Largest error of a path's score in nats: Σ |weight| · error of a sentence, times S."""
    columns = list(document.space.contextual)
    of_sentence = float(np.abs(weights[columns]) @ np.array(errors)) if columns else 0.0
    return len(document.present) * of_sentence


def trace_lines(
    kbest: KBest, document: DocumentFeatures, weights: Array, trace: Trace
) -> Iterator[bytes]:
    """A line of JSON for each sentence with candidates."""
    names, found = column_names(document.space.labels), trace.result
    posterior, path_margins, margins = found.posterior, found.path_margins, found.margins or ()
    rows = document.rows(found.choices).tolist()
    for s, (t, row) in enumerate(zip(document.present.tolist(), rows, strict=True)):
        values = trace.features[row].tolist()
        weighted = (trace.features[row] * weights).tolist()
        marginals = None if posterior is None or posterior.extinct else posterior.marginals[s]
        line = {
            "document": document.name,
            "sentence": t,
            "chosen": int(kbest.ranks[row]),
            "total": finite(trace.totals[row]),
            "features": dict(zip(names, map(finite, values), strict=True)),
            "weighted": {
                **dict(zip(names, map(finite, weighted), strict=True)),
                **({"sparse": finite(document.sparse[row])} if kbest.sparse.names else {}),
            },
            "margin": finite(margins[s]),
            "path_margin": None if path_margins is None else finite(path_margins[s]),
            "marginal": None if marginals is None else float(marginals[found.choices[s]]),
            "marginals": None if marginals is None else marginals.tolist(),
        }
        yield json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _margins(lists: Sequence[Array], choices: tuple[int, ...]) -> tuple[float, ...]:
    """Score of the chosen candidate minus that of the best other, +inf without a possible one."""
    margins = []
    for scores, choice in zip(lists, choices, strict=True):
        best = np.delete(scores, choice).max(initial=-np.inf)
        margins.append(math.inf if best == -np.inf else float(scores[choice] - best))
    return tuple(margins)
