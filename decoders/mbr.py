"""Minimum Bayes risk: the candidates of highest expected utility, i.e. agreement with the others.

S. Kumar, W. Byrne, "Minimum Bayes-risk decoding for statistical machine translation", 2004,
https://aclanthology.org/N04-1022. The utility of a document is the sum over its sentences, so
that only the marginals of each sentence matter: exact ones on order 0 and 1, those of a particle
filter with fixed-lag smoothing elsewhere.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from decoders.batching import Steps, batchable, follow
from decoders.marginals import is_chain, marginals
from decoders.posterior import Posterior
from decoders.problem import Array, DocumentProblem
from decoders.result import SearchResult
from decoders.smc import LAG, smc


class Utility(Protocol):
    """The utility of a candidate if another one, or each with a probability, is the reference."""

    def expected(self, t: int, marginals: Array) -> Array:
        """Expected utility (K_t,) of each candidate of sentence t under marginals (K_t,)."""
        ...


@batchable
def mbr(
    problem: DocumentProblem,
    *,
    utility: Utility | None,
    alpha: float,
    rng: np.random.Generator,
    particles: int = 64,
    lag: int = LAG,
) -> Steps[SearchResult]:
    """The path of highest expected utility under p(path) ∝ exp(α · score), and the posterior.

    Serves every order; exact, for its own objective, on order 0 and 1 – its path is not the one of
    highest score. With all scores 0 candidates have equal probability, and the path is the
    consensus of the lists. O(Σ K_{t-1} K_t) time on order 0 and 1, else that of `smc`, beside the
    utility's own. Ties: the lower candidate. Without a possible path the first candidates. Random
    above order 1: `rng`. Errors: ValueError without a utility, ScoreError naming the sentence.
    """
    if utility is None:
        raise ValueError("mbr needs a utility")
    lengths = tuple(problem.lengths)
    if is_chain(problem):
        probabilities, log_z = marginals(problem, alpha)
        none = np.zeros((0, len(lengths)), dtype=np.intp)
        posterior = Posterior(probabilities, log_z, True, none, np.zeros(0))
    else:
        found = yield from smc.steps(problem, alpha=alpha, rng=rng, particles=particles, lag=lag)
        if found.posterior is None:
            raise TypeError("a particle filter has a posterior")
        posterior = found.posterior
    choices = [0] * len(lengths)
    if not posterior.extinct:
        for t, row in enumerate(posterior.marginals):
            choices[t] = int(utility.expected(t, row).argmax())
    path = yield from follow.steps(problem, choices)
    return SearchResult((path,), posterior)
