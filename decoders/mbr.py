"""Minimum Bayes risk: the candidates that agree best with the others, weighed by probability.

S. Kumar, W. Byrne, "Minimum Bayes-risk decoding for statistical machine translation", 2004,
https://aclanthology.org/N04-1022. The utility is one of expected counts, so that of a document is
the sum over its sentences, and p(path) counts through the marginals of each sentence only: exact
ones on order 0 and 1, those of a particle filter's prefixes elsewhere.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from decoders.lockstep import Steps, alone, along
from decoders.marginals import marginals, serves
from decoders.posterior import Posterior
from decoders.problem import DocumentProblem
from decoders.result import SearchResult
from decoders.smc import LAG, smc_steps

Array = NDArray[np.float64]


class Utility(Protocol):
    """What a candidate is worth where another, or each with a probability, would be right."""

    def expected(self, t: int, marginals: Array) -> Array:
        """Expected utility (K_t,) of each candidate of sentence t under marginals (K_t,)."""
        ...


def mbr(
    problem: DocumentProblem,
    *,
    utility: Utility,
    alpha: float,
    rng: np.random.Generator,
    particles: int = 64,
    lag: int = LAG,
) -> SearchResult:
    """The path of highest expected utility under p(path) ∝ exp(α · score), and the posterior.

    Serves every order; exact, for its own objective, on order 0 and 1 – its path is not the one of
    highest score. O(Σ K_{t-1} K_t) time on these, else that of `smc`, beside the utility's own.
    Ties: the lower candidate. Without a possible path the first candidates. Random above order 1:
    `rng`. Errors: ScoreError naming the sentence.
    """
    steps = mbr_steps(problem, utility=utility, alpha=alpha, rng=rng, particles=particles, lag=lag)
    return alone(problem, steps)


def mbr_steps(
    problem: DocumentProblem,
    *,
    utility: Utility | None,
    alpha: float,
    rng: np.random.Generator,
    particles: int = 64,
    lag: int = LAG,
) -> Steps[SearchResult]:
    """The search of `mbr`, a step for each sentence above order 1."""
    if utility is None:
        raise ValueError("mbr needs a utility")
    lengths = tuple(problem.lengths)
    if serves(problem):
        probabilities, log_z = marginals(problem, alpha)
        none = np.zeros((0, len(lengths)), dtype=np.intp)
        posterior = Posterior(probabilities, log_z, True, none, np.zeros(0))
    else:
        found = yield from smc_steps(problem, alpha=alpha, rng=rng, particles=particles, lag=lag)
        if found.posterior is None:
            raise TypeError("a particle filter has a posterior")
        posterior = found.posterior
    choices = [0] * len(lengths)
    if not posterior.extinct:
        for t, row in enumerate(posterior.marginals):
            choices[t] = int(utility.expected(t, row).argmax())
    path = yield from along(problem, choices)
    return SearchResult((path,), posterior)
