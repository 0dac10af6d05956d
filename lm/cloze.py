"""A missing word of a sentence, from the words on both sides of it and the sentences before.

Eq. 12 of Wang & Cho 2015, arXiv:1511.03729, §4.5: p(q_k | q_<k, q_>k, D). As they propose, an
unchanged language model scores the query completed with each possible answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lm.engine import ScoringEngine
from lm.rows import Rows
from lm.scoring import after
from lm.trie import Candidates

Ids = Sequence[int]


def answer_log_probs(
    engine: ScoringEngine, document: Sequence[Ids], query: tuple[Ids, Ids], answers: Ids
) -> NDArray[np.float64]:
    """Log-probabilities (A,) of answers to be the missing word of a query, in nats.

    They are normalised over the answers. document: sentences of ids before the query; query: ids
    before and after the missing word; answers: A ids, each once.
    O(A · (words after + 1) · (H² + V R)) time, as the paper warns. Errors: ScoreError, MemoryError.
    """
    left, right = (list(ids) for ids in query)
    context = _context_after(engine, document)
    words = len(left) + 1 + len(right)
    at_once = max(1, engine.backend.tokens(engine.model.config.hidden) // words)
    parts = [answers[i : i + at_once] for i in range(0, len(answers), at_once)]
    lists = [Candidates.of([[[*left, answer, *right] for answer in part]]) for part in parts]
    scores = [s[0] for s, _ in after(engine, [(own, context) for own in lists])]
    joint = np.concatenate([np.zeros(0), *scores])
    return joint - float(np.logaddexp.reduce(joint))


def _context_after(engine: ScoringEngine, document: Sequence[Ids]) -> Rows:
    """The context after a document's sentences."""
    context = engine.model.context.start(1).detach()
    for sentence in document:
        ((_, summary),) = after(engine, [(Candidates.of([[sentence]]), context)])
        with engine.backend.inference():
            context = engine.model.context.advance(context, summary)
    return context
