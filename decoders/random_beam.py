"""Beam search whose survivors are drawn: Gumbel noise on the extensions, then the best `width`.

The memo's randomised beam (J. Eisenstein, "The Document Context Language Model", §3.2). The top K
of log-probabilities with Gumbel noise are K draws without replacement: W. Kool, H. van Hoof,
M. Welling, "Stochastic beams and where to find them", 2019, https://arxiv.org/abs/1903.06059. For
whole paths that takes the probability of each prefix, all its futures summed, which backward
messages give on order 0 and 1. Elsewhere a prefix is taken by its own score: a heuristic that
explores, and no sampler of paths.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from decoders.beam import read_back, survivors
from decoders.lockstep import Steps, alone
from decoders.marginals import backward, serves
from decoders.numerics import log_sum_exp
from decoders.posterior import check_scale, ranked
from decoders.problem import DocumentProblem, Indices, Path, checked
from decoders.requests import Extend

Array = NDArray[np.float64]


def random_beam(
    problem: DocumentProblem,
    *,
    width: int,
    alpha: float,
    rng: np.random.Generator,
    n_best: int = 1,
) -> list[Path]:
    """The best of `width` paths drawn by a beam with Gumbel noise at scale α.

    On order 0 and 1 the survivors are drawn without replacement from p(path) ∝ exp(α · score),
    else by a heuristic. Serves every order; exact only where `width` covers all paths. O(T B K)
    time beside the problem's own, O(T B) memory, B = width; on order 1 O(Σ K_{t-1} K_t) for the
    messages. Random: `rng`. Errors: ValueError unless 1 <= n_best <= width and α > 0, ScoreError
    naming the sentence.
    """
    steps = random_beam_steps(problem, width=width, alpha=alpha, rng=rng, n_best=n_best)
    return alone(problem, steps)


def random_beam_steps(
    problem: DocumentProblem,
    *,
    width: int,
    alpha: float,
    rng: np.random.Generator,
    n_best: int = 1,
) -> Steps[list[Path]]:
    """The search of `random_beam`, a step for each sentence."""
    if not 1 <= n_best <= width:
        raise ValueError(f"expected 1 <= n_best <= width, found n_best {n_best}, width {width}")
    choices, scores = yield from drawn_steps(problem, width=width, alpha=alpha, rng=rng)
    return list(ranked(choices, scores, n_best))


def drawn_steps(
    problem: DocumentProblem, *, width: int, alpha: float, rng: np.random.Generator
) -> Steps[tuple[Indices, Array]]:
    """The paths drawn (N, T) in the order of their noisy scores, and their scores (N,)."""
    check_scale(alpha)
    noise = Conditioned(problem, alpha, rng) if serves(problem) else Fresh(alpha, rng)
    states, totals = problem.initial(), np.zeros(1)
    history: list[tuple[Indices, Indices]] = []  # of each sentence: parents (N,), choices (N,)
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        extensions = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        keys = noise.keys(extensions, t)
        kept = survivors(keys.ravel(), width)
        parents, choices = np.divmod(kept, length)
        noise.keep(keys, kept)
        totals = extensions[parents, choices]
        history.append((parents, choices))
        if t + 1 < len(problem.lengths):
            states = problem.select(successors, parents, choices)
    order = noise.order(totals.size)
    return read_back(history, order), totals[order]


class Noise(Protocol):
    """How extensions (N, K_t) are disturbed before the best are kept."""

    def keys(self, extensions: Array, t: int) -> Array:
        """Noisy scores (N, K_t) of prefixes with these sums."""
        ...

    def keep(self, keys: Array, kept: Indices) -> None:
        """Take note of the prefixes that are held now, positions of `keys.ravel()`."""
        ...

    def order(self, n: int) -> Indices:
        """The n prefixes held, in falling order of their noisy scores."""
        ...


class Fresh:
    """New noise at every sentence on α times the score of the prefix."""

    def __init__(self, alpha: float, rng: np.random.Generator) -> None:
        self._alpha, self._rng = alpha, rng
        self._held = np.zeros(1)

    def keys(self, extensions: Array, t: int) -> Array:
        """Noisy scores (N, K_t)."""
        return self._alpha * extensions + self._rng.gumbel(size=extensions.shape)

    def keep(self, keys: Array, kept: Indices) -> None:
        """Those of the prefixes kept."""
        self._held = keys.ravel()[kept]

    def order(self, n: int) -> Indices:
        """Falling order of the latest noisy scores."""
        return np.argsort(-self._held[:n], kind="stable")


class Conditioned(Fresh):
    """Noise on the log-probability of the prefix, its futures summed (Kool et al., §3.2).

    Of all futures of a prefix the best has that noisy score; so those of its extensions are drawn
    under the condition that their maximum is it.
    """

    def __init__(self, problem: DocumentProblem, alpha: float, rng: np.random.Generator) -> None:
        super().__init__(alpha, rng)
        self._futures = backward(problem, log_sum_exp, alpha)

    def keys(self, extensions: Array, t: int) -> Array:
        """Noisy log-probabilities (N, K_t)."""
        noisy = super().keys(extensions, t) + self._futures[t]
        top = noisy.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Kool et al., appendix B: −log(exp(−G) − exp(−top) + exp(−noisy)), G the parent's
            v = self._held[:, None] - noisy + np.log1p(-np.exp(noisy - top))
            keys = self._held[:, None] - np.maximum(0, v) - np.log1p(np.exp(-np.abs(v)))
        # the best takes its parent's; what is impossible stays so
        keys = np.where(noisy == top, self._held[:, None], keys)
        return np.where(noisy == -np.inf, -np.inf, keys)
