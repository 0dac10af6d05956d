"""Sequential Monte Carlo: a weighted sample of paths from p(path) ∝ exp(α · score), and Ẑ.

A. Doucet, A. M. Johansen, "A tutorial on particle filtering and smoothing: fifteen years later",
2009; the memo names it in §3.2. The proposal is q(k | prefix) ∝ exp(α_t · score of k after the
prefix), over all K candidates, so that the weight of a particle does not depend on the candidate
that it draws. Tempering: the target after sentence t is exp(α_t · score of the prefix), with α_t
growing to α; the factors telescope, so that Ẑ is unbiased for the Z of α whatever the schedule.

Particles of the same prefix are a row: its weight is the sum of theirs, and it is scored once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decoders.batching import Extend, Steps, batchable, follow
from decoders.beam import backtrack
from decoders.marginals import effective_size, log_sum_exp, softmax
from decoders.problem import Array, DocumentProblem, Indices, checked
from decoders.result import Posterior, SearchResult, check_scale, ranked
from decoders.table import PARTICLES

LAG = 5  # a few dozen particles still have many different ancestors that far back

# Resampling (R. Douc, O. Cappé, E. Moulines, "Comparison of resampling schemes for particle
# filtering", 2005, https://arxiv.org/abs/cs/0507025): the numbers of offspring (M,) of particles
# with shares W (M,) that sum to 1, N · W on average, 0 for 0; they sum to N. O(M + N).

Resampling = Callable[[Array, int, np.random.Generator], Indices]


def multinomial(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """N independent draws."""
    return _counts(shares, np.sort(rng.random(n)))


def stratified(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """A draw from each of N equal parts of [0, 1): less variance than `multinomial`, always."""
    return _counts(shares, (np.arange(n) + rng.random(n)) / n)


def systematic(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """A random offset, used in each of N equal parts of [0, 1): counts are ⌊N W⌋ or ⌈N W⌉."""
    return _counts(shares, (np.arange(n) + rng.random()) / n)


def residual(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """⌊N W⌋ deterministically, the others drawn independently from the remainders."""
    certain = np.floor(n * shares).astype(np.intp)
    left = n - int(certain.sum())
    if not left:
        return certain
    rest = np.maximum(n * shares - certain, 0.0)
    return certain + multinomial(rest / rest.sum(), left, rng)


RESAMPLING: Mapping[str, Resampling] = {
    "systematic": systematic,
    "stratified": stratified,
    "residual": residual,
    "multinomial": multinomial,
}


def _counts(shares: Array, points: Array) -> Indices:
    """The number of ascending points of [0, 1) that fall into the interval of each share."""
    edges = np.cumsum(shares)
    # a cumulative sum may end below 1, and a point lie beyond it: it belongs to the last share > 0
    edges[int(np.flatnonzero(shares)[-1]) :] = np.inf
    chosen = np.searchsorted(edges, points, side="right")
    return np.bincount(chosen, minlength=shares.size)


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
class FilterRun:
    """All generations of a particle filter's run; the prefixes of the last one are paths."""

    generations: tuple[Generation, ...]
    log_normaliser: float

    def prefixes(self, t: int) -> Indices:
        """Choices (M, t + 1) of the prefixes after sentence t, O(M t)."""
        past = self.generations[: t + 1]
        rows = np.arange(past[-1].choices.size)
        return backtrack([g.parents for g in past], rows, [g.choices for g in past])

    def marginals(self, lengths: Sequence[int], lag: int) -> tuple[Array, ...]:
        """Probabilities (K_t,) of the candidates of each sentence: fixed-lag smoothing.

        Sentence t is weighted by the prefixes `lag` sentences later; the final prefixes share ever
        fewer ancestors further back. G. Kitagawa, "Monte Carlo filter and smoother for non-Gaussian
        nonlinear state space models", 1996, https://doi.org/10.2307/1390750. O(T M lag).
        """
        marginals = []
        for t, length in enumerate(lengths):
            last = min(t + lag, len(lengths) - 1)
            weights = softmax(self.generations[last].log_weights)
            rows = np.arange(weights.size)
            for s in range(last, t, -1):
                rows = self.generations[s].parents[rows]
            choices = self.generations[t].choices[rows]
            marginals.append(np.bincount(choices, weights, length).astype(np.float64))
        return tuple(marginals)


@batchable
def smc(
    problem: DocumentProblem,
    *,
    alpha: float,
    rng: np.random.Generator,
    particles: int = PARTICLES,
    resampling: str = "systematic",
    ess_threshold: float = 0.5,
    temper: float = 1.0,
    lag: int = LAG,
    n_best: int = 1,
) -> Steps[SearchResult]:
    """The best paths of a particle filter, its posterior, and the logarithm of an unbiased Ẑ.

    Serves every order; exact on none. The draws are the final particles with their ancestors, few
    distinct ones of early sentences where the filter resamples often; so marginals come from the
    prefixes `lag` sentences later (the smoothing lag). O(T N (K + lag)) time beside the problem,
    O(T N) memory, N = particles. A run in which all prefixes become impossible counts as Ẑ = 0 and
    gives the path of first candidates. With all scores 0 the target is uniform over the paths.
    Random: `rng`. Errors: ValueError for invalid options, ScoreError naming the sentence.
    """
    if resampling not in RESAMPLING:
        raise ValueError(
            f"no resampling is called {resampling!r}; there are {', '.join(RESAMPLING)}"
        )
    if lag < 1:
        raise ValueError(f"expected a lag of at least 1, found {lag}")
    run = yield from particle_filter.steps(
        problem,
        alpha=alpha,
        rng=rng,
        particles=particles,
        resample=RESAMPLING[resampling],
        threshold=ess_threshold,
        temper=temper,
    )
    lengths, T = tuple(problem.lengths), len(problem.lengths)
    if run.log_normaliser == -np.inf:
        first = yield from follow.steps(problem, (0,) * T)
        return SearchResult((first,), Posterior.none(lengths, exact=False))
    draws, log_weights, scores = np.zeros((1, 0), dtype=np.intp), np.zeros(1), np.zeros(1)
    if T:
        final = run.generations[-1]
        draws, log_weights, scores = run.prefixes(T - 1), final.log_weights, final.scores
    marginals = run.marginals(lengths, lag)
    posterior = Posterior(marginals, run.log_normaliser, False, draws, softmax(log_weights))
    return SearchResult(ranked(draws, scores, n_best), posterior)


@batchable
def particle_filter(
    problem: DocumentProblem,
    *,
    alpha: float,
    rng: np.random.Generator,
    particles: int = PARTICLES,
    resample: Resampling = systematic,
    threshold: float = 0.5,
    temper: float = 1.0,
) -> Steps[FilterRun]:
    """The generations of a particle filter; fewer than sentences if all particles die out.

    Particles are resampled when their effective number falls below the share `threshold`; α_t / α
    grows by equal steps from `temper` at the first sentence to 1.
    """
    check_scale(alpha)
    if particles < 1 or not 0 <= threshold <= 1 or not 0 <= temper <= 1:
        raise ValueError(
            "expected particles >= 1, a threshold and a temper from 0 to 1, found "
            f"{particles}, {threshold}, {temper}"
        )
    lengths, states = problem.lengths, problem.initial()
    # rows of the last generation that were resampled, and how often
    rows, counts = np.zeros(1, np.intp), np.array([particles])
    log_weights, scores = np.zeros(1), np.zeros(1)
    generations: list[Generation] = []
    scale = 0.0  # α_t / α
    for t, length in enumerate(lengths):
        answer, successors = yield Extend(states, t)
        new = checked(answer, t, shape=(rows.size, length))
        before = scale
        scale = temper + (1 - temper) * t / (len(lengths) - 1) if len(lengths) > 1 else 1.0
        logits = alpha * scale * new if scale else np.where(new == -np.inf, -np.inf, 0.0)
        # weights of prefixes under the new target, the candidates summed over
        log_weights = log_weights + alpha * (scale - before) * scores + log_sum_exp(logits)
        alive = np.flatnonzero(log_weights > -np.inf)
        if not alive.size:
            return FilterRun(tuple(generations), -math.inf)
        offspring = rng.multinomial(counts[alive], softmax(logits[alive]))
        parents, choices = np.nonzero(offspring)
        born = offspring[parents, choices]
        parents = alive[parents]
        log_weights = log_weights[parents] + np.log(born / counts[parents])
        scores = scores[parents] + new[parents, choices]
        generations.append(Generation(rows[parents], choices, log_weights, scores))
        rows, counts = np.arange(choices.size), born
        if t + 1 < len(lengths):
            if effective_size(log_weights, counts) < threshold * particles:
                total = log_sum_exp(log_weights)
                counts = resample(softmax(log_weights), particles, rng)
                rows = np.flatnonzero(counts)
                counts = counts[rows]
                log_weights, scores = total + np.log(counts / particles), scores[rows]
            states = problem.select(successors, parents[rows], choices[rows])
    return FilterRun(tuple(generations), float(log_sum_exp(log_weights)))
