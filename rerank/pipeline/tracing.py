"""Why each sentence got its candidate: features, contributions, margins and marginals.

One JSON object a line (`--trace`), a line for each sentence that has candidates:

- `document`, `sentence` (in its document, from 0), `chosen` (index in the file's list) and `total`;
- `features` and `weighted`, the feature values of the chosen candidate after the decoded earlier
  sentences, and what each adds to the total (`sparse`: all sparse features);
- `margin`: the total minus the best other candidate's after the same earlier sentences, what
  follows left out; below 0 where the document decided against the sentence;
- `path_margin`: the score of the best path through the chosen candidate minus that of the best
  path through any other; only where scores depend on one sentence before at most;
- `marginal`, the probability of the chosen candidate, and `marginals`, of every one that was kept,
  in the order of the file; only of a search that has a posterior.

Null is what does not exist: the margin of an only candidate, or over impossible ones; a marginal
without a possible path. Scores and margins are in natural logarithms, weighted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decoders.marginals import is_chain, max_marginals
from rerank.corpus.kbest import KBest, column_names
from rerank.pipeline.choices import finite
from rerank.pipeline.searching import Searched
from rerank.scorers.features import Document

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A document's features under its path, and how clear each choice was.

    features: (n, F) of all candidates; totals: (n,); margins, path_margins: (S,) of the sentences
    with candidates, +inf where no other is possible; the latter None above order 1.
    """

    features: Array
    totals: Array
    margins: Array
    path_margins: Array | None

    @classmethod
    def of(cls, document: Document, weights: Array, choices: tuple[int, ...]) -> Traced:
        """The trace of a path under weights (F,); O(n F), on order 1 two passes over all pairs."""
        features = document.under(choices)
        totals = features @ weights + document.sparse
        lists = np.split(totals, document.offsets[1:-1]) if choices else []
        problem = document.problem(weights)
        best = max_marginals(problem) if is_chain(problem) else None
        return cls(
            features,
            totals,
            _margins(lists, choices),
            None if best is None else _margins(best, choices),
        )

    def near_ties(self, error: float) -> int:
        """Sentences whose margin is within twice the error of a document's score.

        The margin of the path where it is known, else that of the sentence.
        """
        margins = self.margins if self.path_margins is None else self.path_margins
        return int((np.abs(margins) < 2 * error).sum())


def stated_error(document: Document, weights: Array, errors: tuple[float, ...]) -> float:
    """Largest error of a path's score in nats: Σ |weight| · error, a sentence, of the scorers.

    errors: of the contextual features, in their order.
    """
    columns = list(document.space.contextual)
    of_sentence = float(np.abs(weights[columns]) @ np.array(errors)) if columns else 0.0
    return len(document.present) * of_sentence


def trace_lines(
    kbest: KBest, document: Document, weights: Array, found: Searched, traced: Traced
) -> Iterator[bytes]:
    """A line of JSON for each sentence with candidates."""
    names = column_names(document.space.labels)
    posterior = found.posterior
    rows = document.rows(found.choices).tolist()
    for s, (t, row) in enumerate(zip(document.present.tolist(), rows, strict=True)):
        values = traced.features[row].tolist()
        weighted = (traced.features[row] * weights).tolist()
        marginals = None if posterior is None or posterior.extinct else posterior.marginals[s]
        path_margins = traced.path_margins
        line = {
            "document": document.name,
            "sentence": t,
            "chosen": int(kbest.ranks[row]),
            "total": finite(traced.totals[row]),
            "features": dict(zip(names, map(finite, values), strict=True)),
            "weighted": {
                **dict(zip(names, map(finite, weighted), strict=True)),
                **({"sparse": finite(document.sparse[row])} if kbest.sparse.names else {}),
            },
            "margin": finite(traced.margins[s]),
            "path_margin": None if path_margins is None else finite(path_margins[s]),
            "marginal": None if marginals is None else float(marginals[found.choices[s]]),
            "marginals": None if marginals is None else marginals.tolist(),
        }
        yield json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _margins(lists: Sequence[Array], choices: tuple[int, ...]) -> Array:
    """The chosen candidate's score minus the best other's, of each sentence."""
    margins = np.empty(len(choices))
    for s, (scores, choice) in enumerate(zip(lists, choices, strict=True)):
        others = np.delete(scores, choice)
        best = others.max(initial=-np.inf)
        margins[s] = np.inf if best == -np.inf else scores[choice] - best
    return margins
