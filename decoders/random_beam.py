"""Beam search that keeps a random sample: Gumbel noise on the extensions, then the best `width`.

The memo's randomised beam (J. Eisenstein, "The Document Context Language Model", §3.2). The top K
of log-probabilities with Gumbel noise are K draws without replacement: W. Kool, H. van Hoof,
M. Welling, "Stochastic beams and where to find them", 2019, https://arxiv.org/abs/1903.06059. For
whole paths that takes the probability of each prefix, all its futures summed, which backward
messages give on order 0 and 1. Elsewhere a prefix is taken by its own score: a heuristic that
explores, and no sampler of paths.
"""

from __future__ import annotations

import numpy as np

from decoders.batching import Extend, Steps, batchable
from decoders.beam import backtrack, top_positions
from decoders.marginals import backward, is_chain
from decoders.numerics import log_sum_exp
from decoders.posterior import check_scale, ranked
from decoders.problem import Array, DocumentProblem, Indices, Path, checked


@batchable
def random_beam(
    problem: DocumentProblem,
    *,
    width: int,
    alpha: float,
    rng: np.random.Generator,
    n_best: int = 1,
) -> Steps[list[Path]]:
    """The best of `width` paths drawn by a beam with Gumbel noise at scale α.

    On order 0 and 1 the hypotheses kept are drawn without replacement from p(path) ∝
    exp(α · score), else by a heuristic. Serves every order; exact only where `width` covers all
    paths. O(T B K) time beside the problem's own, O(T B) memory, B = width; on order 1
    O(Σ K_{t-1} K_t) for the messages. Random: `rng`. Errors: ValueError unless 1 <= n_best <= width
    and α > 0, ScoreError naming the sentence.
    """
    if not 1 <= n_best <= width:
        raise ValueError(f"expected 1 <= n_best <= width, found n_best {n_best}, width {width}")
    choices, scores = yield from draw_paths.steps(problem, width=width, alpha=alpha, rng=rng)
    return list(ranked(choices, scores, n_best))


@batchable
def draw_paths(
    problem: DocumentProblem, *, width: int, alpha: float, rng: np.random.Generator
) -> Steps[tuple[Indices, Array]]:
    """The paths drawn (N, T) in falling order of their noisy scores, and their scores (N,)."""
    check_scale(alpha)
    noise = PathNoise(problem, alpha, rng) if is_chain(problem) else PrefixNoise(alpha, rng)
    states, totals = problem.initial(), np.zeros(1)
    parents_at: list[Indices] = []  # (N,) of each sentence
    choices_at: list[Indices] = []  # (N,)
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        extensions = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        noisy = noise.add(extensions, t)
        kept = top_positions(noisy.ravel(), width)
        noise.kept = noisy.ravel()[kept]
        parents, choices = np.divmod(kept, length)
        totals = extensions[parents, choices]
        parents_at.append(parents)
        choices_at.append(choices)
        if t + 1 < len(problem.lengths):
            states = problem.select(successors, parents, choices)
    order = np.argsort(-noise.kept, kind="stable")
    return backtrack(parents_at, order, choices_at), totals[order]


class PrefixNoise:
    """New Gumbel noise at every sentence, on α times the score of the prefix.

    kept: (N,) noisy scores of the prefixes that the beam holds.
    """

    def __init__(self, alpha: float, rng: np.random.Generator) -> None:
        self._alpha, self._rng = alpha, rng
        self.kept = np.zeros(1)

    def add(self, extensions: Array, t: int) -> Array:
        """Noisy scores (N, K_t) of prefixes with the sums `extensions: (N, K_t)`."""
        return self._alpha * extensions + self._rng.gumbel(size=extensions.shape)


class PathNoise(PrefixNoise):
    """Noise on the log-probability of the prefix, summed over its futures (Kool et al., §3.2).

    The noisy score of a prefix is the largest one of its futures; so the noisy scores of its
    extensions are drawn under the condition that their maximum is that of the prefix.
    """

    def __init__(self, problem: DocumentProblem, alpha: float, rng: np.random.Generator) -> None:
        super().__init__(alpha, rng)
        self._futures = backward(problem, log_sum_exp, alpha)

    def add(self, extensions: Array, t: int) -> Array:
        """Noisy log-probabilities (N, K_t)."""
        noisy = super().add(extensions, t) + self._futures[t]
        top = noisy.max(axis=1, keepdims=True)
        parent = self.kept[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Kool et al., appendix B: −log(exp(−G) − exp(−top) + exp(−noisy)), G the parent's
            v = parent - noisy + np.log1p(-np.exp(noisy - top))
            conditioned = parent - np.maximum(0, v) - np.log1p(np.exp(-np.abs(v)))
        # the best extension has the noisy score of its parent; impossible ones stay impossible
        conditioned = np.where(noisy == top, parent, conditioned)
        return np.where(noisy == -np.inf, -np.inf, conditioned)
