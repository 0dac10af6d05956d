"""Sequential Monte Carlo: a weighted sample of paths from p(path) ∝ exp(α · score), and Ẑ.

A. Doucet, A. M. Johansen, "A tutorial on particle filtering and smoothing: fifteen years later",
2009; the memo names it in §3.2. The proposal is the best that looks one sentence ahead,
q(k | prefix) ∝ exp(α_t · score of k after the prefix), over all K candidates, so that the weight
of a particle does not depend on the candidate that it draws. Tempering: the target after sentence
t is exp(α_t · score of the prefix), with α_t growing to α at the last sentence; the factors
telescope, so that Ẑ estimates the Z of α without bias whatever the schedule.

Particles of one prefix are one row: its weight is the sum of theirs, and it is scored once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decoders.lockstep import Steps, alone, along
from decoders.numerics import effective_size, log_sum_exp, shares
from decoders.posterior import Posterior, check_scale, ranked
from decoders.problem import DocumentProblem, Indices, checked
from decoders.requests import Extend
from decoders.resampling import RESAMPLING, Resampling, systematic
from decoders.result import SearchResult

Array = NDArray[np.float64]
LAG = 5  # particles of a few dozen still have many ancestors so far back


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """The M prefixes after sentence t, before they are resampled.

    parents: (M,) rows of the generation before; choices: (M,) of sentence t; log_weights: (M,) of
    all particles of a prefix, not normalised; scores: (M,) sums along the prefixes.
    """

    parents: Indices
    choices: Indices
    log_weights: Array
    scores: Array


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """The generations of a run, of which only the last prefixes are paths."""

    generations: tuple[Generation, ...]
    log_normaliser: float

    def prefixes(self, t: int) -> Indices:
        """Choices (M, t + 1) of the prefixes after sentence t, O(M t)."""
        rows = np.arange(self.generations[t].choices.size)
        prefixes = np.empty((rows.size, t + 1), dtype=np.intp)
        for s in range(t, -1, -1):
            prefixes[:, s] = self.generations[s].choices[rows]
            rows = self.generations[s].parents[rows]
        return prefixes

    def marginals(self, lengths: Sequence[int], lag: int) -> tuple[Array, ...]:
        """Probabilities (K_t,) of the candidates of each sentence, by the prefixes `lag` later.

        The final prefixes would be the better judges, if they did not have ever fewer ancestors
        the further one goes back. G. Kitagawa, "Monte Carlo filter and smoother for non-Gaussian
        nonlinear state space models", 1996, https://doi.org/10.2307/1390750. O(T M lag).
        """
        found = []
        for t, length in enumerate(lengths):
            judges = self.generations[min(t + lag, len(lengths) - 1)]
            rows = np.arange(judges.choices.size)
            for s in range(min(t + lag, len(lengths) - 1), t, -1):
                rows = self.generations[s].parents[rows]
            weights = shares(judges.log_weights)
            choices = self.generations[t].choices[rows]
            found.append(np.bincount(choices, weights, length).astype(np.float64))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Particles:
    """How a particle filter runs.

    n: particles; threshold: they are resampled when their effective number falls below this share
    of n; temper: α_t / α at the first sentence, from where it grows by equal steps to 1.
    """

    n: int = 64
    threshold: float = 0.5
    temper: float = 1.0
    resampling: Resampling = systematic

    def __post_init__(self) -> None:
        if self.n < 1 or not 0 <= self.threshold <= 1 or not 0 <= self.temper <= 1:
            raise ValueError(
                "expected particles >= 1, a threshold and a temper from 0 to 1, found "
                f"{self.n}, {self.threshold}, {self.temper}"
            )

    def scale(self, t: int, sentences: int) -> float:
        """α_t / α."""
        return 1.0 if sentences == 1 else self.temper + (1 - self.temper) * t / (sentences - 1)


def smc(
    problem: DocumentProblem,
    *,
    alpha: float,
    rng: np.random.Generator,
    particles: int = 64,
    resampling: str = "systematic",
    ess_threshold: float = 0.5,
    temper: float = 1.0,
    lag: int = LAG,
    n_best: int = 1,
) -> SearchResult:
    """The best paths of a particle filter, its posterior, and the logarithm of an unbiased Ẑ.

    Serves every order; exact on none. The draws are the final particles with their ancestors:
    early sentences have few of them where the filter resamples often, so marginals are told by the
    prefixes `lag` sentences later. O(T N (K + lag)) time beside the problem's own, O(T N) memory,
    N = particles. A run that dies out (all its prefixes impossible) counts as Ẑ = 0 and gives the
    path of first candidates. Random: `rng`. Errors: ValueError for options that are none,
    ScoreError naming the sentence.
    """
    found = smc_steps(
        problem,
        alpha=alpha,
        rng=rng,
        particles=particles,
        resampling=resampling,
        ess_threshold=ess_threshold,
        temper=temper,
        lag=lag,
        n_best=n_best,
    )
    return alone(problem, found)


def smc_steps(
    problem: DocumentProblem,
    *,
    alpha: float,
    rng: np.random.Generator,
    particles: int = 64,
    resampling: str = "systematic",
    ess_threshold: float = 0.5,
    temper: float = 1.0,
    lag: int = LAG,
    n_best: int = 1,
) -> Steps[SearchResult]:
    """The search of `smc`, a step for each sentence (`decoders.lockstep`)."""
    if resampling not in RESAMPLING:
        raise ValueError(
            f"no resampling is called {resampling!r}; there are {', '.join(RESAMPLING)}"
        )
    how = Particles(particles, ess_threshold, temper, RESAMPLING[resampling])
    if lag < 1:
        raise ValueError(f"expected a lag of at least 1, found {lag}")
    filtered = yield from filter_steps(problem, alpha=alpha, rng=rng, how=how)
    lengths, T = tuple(problem.lengths), len(problem.lengths)
    if filtered.log_normaliser == -np.inf:
        first = yield from along(problem, (0,) * T)
        return SearchResult((first,), Posterior.none(lengths, exact=False))
    if not T:
        draws, last = np.zeros((1, 0), dtype=np.intp), (np.zeros(1), np.zeros(1))
    else:
        final = filtered.generations[-1]
        draws, last = filtered.prefixes(T - 1), (final.log_weights, final.scores)
    marginals = filtered.marginals(lengths, lag)
    posterior = Posterior(marginals, filtered.log_normaliser, False, draws, shares(last[0]))
    return SearchResult(ranked(draws, last[1], n_best), posterior)


def filter_steps(
    problem: DocumentProblem, *, alpha: float, rng: np.random.Generator, how: Particles
) -> Steps[Filtered]:
    """A particle filter's generations, a step for each sentence; fewer where it dies out."""
    check_scale(alpha)
    lengths, states = problem.lengths, problem.initial()
    rows, counts = np.zeros(1, np.intp), np.array([how.n])  # what goes on of the generation before
    log_weights, scores = np.zeros(1), np.zeros(1)
    generations: list[Generation] = []
    for t, length in enumerate(lengths):
        answer, successors = yield Extend(states, t)
        new = checked(answer, t, shape=(rows.size, length))
        scale, before = how.scale(t, len(lengths)), how.scale(t - 1, len(lengths)) if t else 0.0
        logits = alpha * scale * new if scale else np.where(new == -np.inf, -np.inf, 0.0)
        # weights of prefixes under the new target, the candidates summed over
        log_weights = log_weights + alpha * (scale - before) * scores + log_sum_exp(logits)
        alive = np.flatnonzero(log_weights > -np.inf)
        if not alive.size:
            return Filtered(tuple(generations), -math.inf)
        offspring = rng.multinomial(counts[alive], shares(logits[alive]))
        parents, choices = np.nonzero(offspring)
        born = offspring[parents, choices]
        parents = alive[parents]
        log_weights = log_weights[parents] + np.log(born / counts[parents])
        scores = scores[parents] + new[parents, choices]
        generations.append(Generation(rows[parents], choices, log_weights, scores))
        rows, counts = np.arange(choices.size), born
        if t + 1 < len(lengths):
            if effective_size(log_weights, counts) < how.threshold * how.n:
                total = log_sum_exp(log_weights)
                counts = how.resampling(shares(log_weights), how.n, rng)
                rows = np.flatnonzero(counts)
                counts = counts[rows]
                log_weights, scores = total + np.log(counts / how.n), scores[rows]
            states = problem.select(successors, parents[rows], choices[rows])
    return Filtered(tuple(generations), float(log_sum_exp(log_weights)))
