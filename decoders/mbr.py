"""Minimum Bayes risk: the candidates of highest expected utility, i.e. agreement with the others.

S. Kumar, W. Byrne, "Minimum Bayes-risk decoding for statistical machine translation", 2004,
https://aclanthology.org/N04-1022. The utility of a document is the sum over its sentences, so that
only the marginals of each sentence matter: exact on order 0 and 1, of a particle filter elsewhere.

How flat the posterior must be is not a matter of likelihood. The default scale α gives α · score
the standard deviation `SPREAD` within a list, whatever the factor of the weights.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from decoders.batching import Steps, batchable, conditional_scores, follow
from decoders.marginals import is_chain, marginals
from decoders.problem import Array, DocumentProblem
from decoders.result import Posterior, SearchResult
from decoders.smc import LAG, smc
from decoders.table import PARTICLES, SPREAD

NEAR = 1e-10


class Utility(Protocol):
    """The utility of a candidate if candidates are the reference with some probabilities."""

    def expected(self, t: int, marginals: Array) -> Array:
        """Expected utility (K_t,) of each candidate of sentence t under marginals (K_t,)."""
        ...

    def words(self, t: int) -> Array:
        """Number of words (K_t,) of each candidate of sentence t."""
        ...


@batchable
def mbr(
    problem: DocumentProblem,
    *,
    utility: Utility | None,
    alpha: float | None = None,
    rng: np.random.Generator,
    spread: float = SPREAD,
    word_reward: float = 0.0,
    particles: int = PARTICLES,
    lag: int = LAG,
) -> Steps[SearchResult]:
    """The path of highest expected utility under p(path) ∝ exp(α · score), and the posterior.

    alpha: None for `spread` ÷ `standard_deviation(problem)`; word_reward: added to the utility for
    each word of a candidate, in its unit. Serves every order; exact, for this objective, on order 0
    and 1. With all scores 0 the path is the consensus of the lists. O(Σ K_{t-1} K_t) time on order
    0 and 1, else that of `smc`, beside the utility. Ties: as in `best`. Without a possible path the
    first candidates. Random above order 1: `rng`. Errors: ValueError without a utility and for an
    invalid scale, spread or reward, ScoreError naming the sentence.
    """
    if utility is None:
        raise ValueError("mbr needs a utility")
    if not (0 < spread < np.inf and np.isfinite(word_reward)):
        raise ValueError(
            f"expected a finite spread above 0 and a finite word reward, found {spread} and "
            f"{word_reward}"
        )
    if alpha is None:
        deviation = yield from standard_deviation.steps(problem)
        alpha = min(spread / deviation, 1e300) if deviation > 0 else 1.0
    posterior = yield from posterior_of.steps(
        problem, alpha=alpha, rng=rng, particles=particles, lag=lag
    )
    choices = [0] * len(posterior.marginals)
    if not posterior.extinct:
        for t, row in enumerate(posterior.marginals):
            choices[t] = int(best(utility, t, row, word_reward))
    path = yield from follow.steps(problem, choices)
    return SearchResult((path,), posterior)


def best(utility: Utility, t: int, marginals: Array, word_reward: float = 0.0) -> NDArray[np.intp]:
    """Candidate of sentence t with the highest expected utility, the lower of equal candidates.

    Utilities that differ by no more than rounding, `NEAR` of the highest, are equal: the documents
    beside it must not decide. marginals: (K_t,), or (A, K_t) for the candidates (A,) under A
    distributions.
    """
    gains = utility.expected(t, marginals)
    if word_reward:
        gains = gains + word_reward * utility.words(t)
    top = gains.max(axis=-1, keepdims=True)
    return np.asarray((gains >= top - NEAR * abs(top)).argmax(axis=-1))


@batchable
def standard_deviation(problem: DocumentProblem) -> Steps[float]:
    """Standard deviation of the scores within a list, the root mean square over all lists.

    The scores are those after the path of first candidates; lists with fewer than two possible
    candidates are left out; 0 without any list. Errors: ScoreError. O(Σ K_t) scores.
    """
    rows = yield from conditional_scores.steps(problem, (0,) * len(problem.lengths))
    lists = [row[row > -np.inf] for row in rows]
    lists = [row - row.max() for row in lists if len(row) > 1]
    largest = max((-row.min() for row in lists), default=0.0)
    if not 0 < largest < np.inf:
        return 0.0
    return float(largest * np.sqrt(np.mean([np.var(row / largest) for row in lists])))


@batchable
def posterior_of(
    problem: DocumentProblem,
    *,
    alpha: float,
    rng: np.random.Generator,
    particles: int = PARTICLES,
    lag: int = LAG,
) -> Steps[Posterior]:
    """The posterior p(path) ∝ exp(α · score): exact on order 0 and 1, else that of `smc`."""
    if is_chain(problem):
        probabilities, log_z = marginals(problem, alpha)
        none = np.zeros((0, len(problem.lengths)), dtype=np.intp)
        return Posterior(probabilities, log_z, True, none, np.zeros(0))
    sampled = yield from smc.steps(problem, alpha=alpha, rng=rng, particles=particles, lag=lag)
    if sampled.posterior is None:
        raise TypeError("a particle filter has a posterior")
    return sampled.posterior
