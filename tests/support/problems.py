"""Search problems, and what is known of them, for the tests of decoders and of what uses them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from hypothesis import strategies as st

from decoders.arrays import Chain, HistoryTable, Pairwise, Unary
from decoders.exhaustive import exhaustive
from decoders.laws import DYADIC, ExactMatch, random_problem
from decoders.posterior import Posterior
from decoders.problem import Array, DocumentProblem, Indices

__all__ = ["DYADIC", "ExactMatch", "random_problem"]

LENGTHS = st.lists(st.integers(1, 4), max_size=5)
SOME_LENGTHS = st.lists(st.integers(1, 4), min_size=1, max_size=5)
SEEDS = st.integers(0, 2**32 - 1)
ORDERS = st.sampled_from([0, 1, 2, None])
CHI2_999 = {2: 13.82, 3: 16.27, 6: 22.46, 11: 31.26, 17: 40.79}  # degrees of freedom: quantile


class HasPosterior(Protocol):
    @property
    def posterior(self) -> Posterior | None: ...


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def frozen(values: object, dtype: type[np.floating] = np.float64) -> Array:
    """An array that raises when written to."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


UNARY = Unary([frozen([1, 2]), frozen([0.5, 0.25, 0])])
PAIRWISE = Pairwise([frozen([[0, 1]]), frozen([[1, 2, 3], [4, 5, -np.inf]])])
TABLE = HistoryTable(
    [frozen([1, 2]), frozen([[1, 2, 3], [4, 5, 6]])]
)  # as UNARY: 2 and 3 candidates


def random_unary(lengths: Sequence[int], seed: int, values: Sequence[float] | None = None) -> Unary:
    return Unary(random_problem(0, lengths, rng(seed), values).tables)


def random_pairwise(
    lengths: Sequence[int], seed: int, values: Sequence[float] | None = None
) -> Pairwise:
    tables = random_problem(1, lengths, rng(seed), values).tables
    return Pairwise([np.atleast_2d(table) for table in tables])


class RightToLeft(Chain):
    """`scores[t]`, and `gain` more where the next sentence takes the same candidate."""

    lengths: tuple[int, ...] = ()
    order = None
    causal = False

    def __init__(self, scores: Sequence[Array], gain: float) -> None:
        self.scores, self.gain = scores, gain
        self.lengths = tuple(map(len, scores))

    def pairwise(self, t: int) -> Array:
        raise AssertionError("sentence t depends on sentence t + 1")

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        total = np.zeros(len(paths))
        for s in range(max(0, t - 1), min(t + horizon + 1, len(self.lengths))):
            total += self.scores[s][paths[:, s]]
            if s + 1 < len(self.lengths):
                total += self.gain * (paths[:, s] == paths[:, s + 1])
        return total


def normaliser(problem: DocumentProblem, alpha: float) -> float:
    """Z, from a list of all paths."""
    return math.fsum(math.exp(alpha * p.score) for p in exhaustive(problem, n_best=10**5))


def probabilities(problem: DocumentProblem, alpha: float) -> dict[tuple[int, ...], float]:
    """Probability of each possible path, from a list of all paths."""
    z = normaliser(problem, alpha)
    paths = exhaustive(problem, n_best=10**5)
    shares = {path.choices: math.exp(alpha * path.score) / z for path in paths}
    return {path: share for path, share in shares.items() if share}


def chi2(draws: Iterable[Sequence[int]], expected: Mapping[tuple[int, ...], float]) -> float:
    """Σ (observed − expected)² / expected; infinite if something impossible was drawn."""
    counts = Counter(map(tuple, draws))
    if counts.keys() - expected.keys():
        return math.inf
    n = counts.total()
    return sum((counts[one] - n * p) ** 2 / (n * p) for one, p in expected.items())


def posterior_of(found: HasPosterior) -> Posterior:
    assert found.posterior is not None
    return found.posterior
