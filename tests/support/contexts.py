"""Log-probabilities of candidates in given contexts, computed candidate by candidate."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lm.checkpoint import SavedModel
from lm.engine import ScoringEngine
from lm.rows import Rows
from lm.scoring import after
from lm.trie import Candidates


def one_by_one(
    saved: SavedModel, lists: Sequence[Sequence[str]], texts: Sequence[str]
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Scores (K_t,) of each list after the texts of the sentences before, and without context."""
    model, engine = saved.model, ScoringEngine.of(saved.model)

    def score(text: str, context: Rows) -> tuple[float, Rows]:
        words = saved.vocabulary.encode(text.encode().split())
        ((scores, summary),) = after(engine, [(Candidates.of([[words]]), context)])
        return float(scores[0, 0]), summary

    start = context = model.context.start(1)
    given, null = [], []
    for candidates, text in zip(lists, texts, strict=True):
        given.append(np.array([score(one, context)[0] for one in candidates]))
        null.append(np.array([score(one, start)[0] for one in candidates]))
        _, summary = score(text, context)
        context = model.context.advance(context, summary).detach()
    return given, null
