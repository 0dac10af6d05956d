"""Left-to-right choice of the best candidate after those already chosen.

Equation (18) of J. Eisenstein, "The Document Context Language Model" (memo, §3.2), with one
document-level hypothesis and ⊕ = max; the beam of width 1.
"""

from __future__ import annotations

import numpy as np

from decoders.batching import Extend, Steps, batchable
from decoders.problem import DocumentProblem, Path, checked


@batchable
def greedy(problem: DocumentProblem) -> Steps[Path]:
    """Path that takes the best candidate of each sentence given its choices so far.

    Serves every order; exact on order 0, no better than Viterbi on order 1, no guarantee beyond.
    O(Σ K_t) scores, one state. Ties: the first candidate of equal sums; on order 0 that is the
    rule of `decoders.problem`. Deterministic. Errors: ScoreError naming the sentence.
    """
    states, score = problem.initial(), 0.0
    choices: list[int] = []
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        sums = score + checked(scores, t, shape=(1, length))[0]
        choice = int(sums.argmax())
        score = float(sums[choice])
        choices.append(choice)
        if t + 1 < len(problem.lengths):
            states = problem.select(successors, np.zeros(1, np.intp), np.array([choice]))
    if problem.order == 0 and score == -np.inf:  # then every path scores −inf: the rule of ties
        choices = [0] * len(choices)
    return Path(tuple(choices), score)
