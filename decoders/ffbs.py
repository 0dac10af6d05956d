"""Forward filtering, backward sampling: whole paths drawn from p(path) ∝ exp(α · score).

J. Eisenstein, "The Document Context Language Model" (memo), §3.2. On order 0 and 1 the filter sums
over all candidates, and draws are independent and exact: C. K. Carter, R. Kohn, "On Gibbs sampling
for state space models", 1994, https://doi.org/10.1093/biomet/81.3.541. On other orders a particle
filter replaces the sum, and a prefix is weighted by the scores that it gives to the next `lag`
sentences of the path drawn so far, so that draws are approximate: F. Lindsten, M. I. Jordan, T. B.
Schön, "Particle Gibbs with ancestor sampling", 2014 (truncation of the backward weights),
https://jmlr.org/papers/v15/lindsten14a.html.
"""

from __future__ import annotations

import numpy as np

from decoders.batching import Rescore, Steps, batchable, follow
from decoders.marginals import draw, forward, is_chain, log_sum_exp, marginals
from decoders.problem import Array, DocumentProblem, Indices, checked, checked_sums
from decoders.result import Posterior, SearchResult, ranked
from decoders.smc import FilterRun, particle_filter
from decoders.table import PARTICLES

MAX_CHOICES = 1 << 22  # of the paths rescored at once: 32 MB


@batchable
def ffbs(
    problem: DocumentProblem,
    *,
    alpha: float,
    rng: np.random.Generator,
    samples: int = 64,
    particles: int = PARTICLES,
    lag: int | None = None,
    n_best: int = 1,
) -> Steps[SearchResult]:
    """Paths drawn from p(path) ∝ exp(α · score), the best of them first.

    Order 0 and 1: exact draws and marginals, O(Σ K_{t-1} K_t + T M K) time, O(Σ K_t + T M) memory,
    M = samples. Above order 1 marginals are those of the draws, log Ẑ that of the filter: O(T N K)
    and at most T M N rescorings of `lag` sentences (default: the order, 2 if unbounded), written
    out as paths: O(T² M N) beside the problem. A lag shorter than the dependence draws from another
    distribution, however many particles there are. With all scores 0 the target is uniform over the
    paths. Without a possible path the result is the path of first candidates. Random: `rng`.
    Errors: ValueError for invalid options, ScoreError naming the sentence.
    """
    if samples < 1 or (lag is not None and lag < 1):
        raise ValueError(f"expected samples and a lag of at least 1, found {samples}, {lag}")
    reach = lag or problem.order or 2
    lengths = tuple(problem.lengths)
    if is_chain(problem):
        probabilities, log_z = marginals(problem, alpha)
        if log_z > -np.inf:
            draws, scores = _exact_draws(problem, alpha, rng, samples)
            weights = np.full(samples, 1 / samples)
            posterior = Posterior(probabilities, log_z, True, draws, weights)
            return SearchResult(ranked(draws, scores, n_best), posterior)
    else:
        run = yield from particle_filter.steps(problem, alpha=alpha, rng=rng, particles=particles)
        log_z = run.log_normaliser
        if log_z > -np.inf:
            draws = yield from _particle_draws(run, len(lengths), alpha, rng, samples, reach)
            scores = yield Rescore(draws, 0, len(lengths))
            scores = checked_sums(scores, 0, samples)
            paths = []
            for path in ranked(draws, scores, n_best):  # scored as every decoder scores them
                paths.append((yield from follow.steps(problem, path.choices)))
            paths.sort(key=lambda path: -path.score)
            weights = np.full(samples, 1 / samples)
            probabilities = tuple(
                np.bincount(draws[:, t], weights, k).astype(np.float64)
                for t, k in enumerate(lengths)
            )
            posterior = Posterior(probabilities, log_z, False, draws, weights)
            return SearchResult(tuple(paths), posterior)
    first = yield from follow.steps(problem, (0,) * len(lengths))
    return SearchResult((first,), Posterior.none(lengths, exact=is_chain(problem)))


def _exact_draws(
    problem: DocumentProblem, alpha: float, rng: np.random.Generator, samples: int
) -> tuple[Indices, Array]:
    """Independent paths (M, T), and their scores (M,)."""
    filtered = forward(problem, log_sum_exp, alpha)
    lengths = problem.lengths
    draws = np.zeros((samples, len(lengths)), dtype=np.intp)
    values = np.zeros((len(lengths), samples))
    logs = np.tile(filtered[-1], (samples, 1)) if filtered else np.zeros((samples, 1))
    later = np.zeros((1, samples))
    for t in reversed(range(len(lengths))):
        draws[:, t] = draw(logs, rng)
        shape = (lengths[t - 1] if t else 1, lengths[t])
        columns = checked(problem.pairwise(t), t, shape=shape)[:, draws[:, t]]  # (K_{t-1}, M)
        if t:
            logs = filtered[t - 1] + alpha * columns.T
        values[t] = columns[0]  # of sentence 0; of the others once the choice before is known
        if t + 1 < len(lengths):
            values[t + 1] = later[draws[:, t], np.arange(samples)]
        later = columns
    totals = np.zeros(samples)
    for row in values:  # from the first sentence to the last, which fixes the bits
        totals += row
    return draws, totals


def _particle_draws(
    run: FilterRun, sentences: int, alpha: float, rng: np.random.Generator, samples: int, lag: int
) -> Steps[Indices]:
    """Paths (M, T) drawn backwards through the generations of a filter.

    Draws that agree in the `lag` sentences after t share their backward weights.
    """
    draws = np.zeros((samples, sentences), dtype=np.intp)
    for t in reversed(range(sentences)):
        generation = run.generations[t]
        logs = np.tile(generation.log_weights, (samples, 1))
        if t + 1 < sentences:
            behind = draws[:, t + 1 : t + 1 + lag]
            distinct, which = np.unique(behind, axis=0, return_inverse=True)
            prefixes = run.prefixes(t)
            futures = np.empty((len(distinct), len(prefixes)))
            at_once = max(1, MAX_CHOICES // (len(prefixes) * sentences))
            for begin in range(0, len(distinct), at_once):
                block = distinct[begin : begin + at_once]
                paths = np.zeros((len(block), len(prefixes), sentences), dtype=np.intp)
                paths[:, :, : t + 1] = prefixes
                paths[:, :, t + 1 : t + 1 + lag] = block[:, None]
                sums = yield Rescore(paths.reshape(-1, sentences), t + 1, lag - 1)
                sums = checked_sums(sums, t + 1, len(block) * len(prefixes))
                futures[begin : begin + at_once] = sums.reshape(len(block), len(prefixes))
            logs = logs + alpha * futures[which.reshape(-1)]
        draws[:, t] = generation.choices[draw(logs, rng)]
    return draws
