"""Search problems, and what is known of them by enumeration of all paths."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from decoders.arrays import HistoryTable, Pairwise, Unary, WeightedSum
from decoders.laws import DYADIC, ExactMatch, random_problem
from decoders.problem import Array, Chain, DocumentProblem, Indices
from decoders.result import Posterior
from decoders.viterbi import exhaustive

__all__ = ["DYADIC", "ExactMatch", "random_problem"]

LENGTHS = st.lists(st.integers(1, 4), max_size=5)
SOME_LENGTHS = st.lists(st.integers(1, 4), min_size=1, max_size=5)
SEEDS = st.integers(0, 2**32 - 1)
ORDERS = st.sampled_from([0, 1, 2, None])
CHI2_999 = {2: 13.82, 3: 16.27, 6: 22.46, 11: 31.26, 17: 40.79}  # degrees of freedom: quantile
Values: TypeAlias = Sequence[float] | None
Build: TypeAlias = Callable[[Sequence[int], int, Values], DocumentProblem]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# Problems of every kind, drawn: of given lengths, from a seed, normal scores or of given values
def unary(lengths: Sequence[int], seed: int, values: Values = None) -> Unary:
    return Unary(random_problem(0, lengths, rng(seed), values).tables)


def pairs(lengths: Sequence[int], seed: int, values: Values = None) -> Pairwise:
    tables = random_problem(1, lengths, rng(seed), values).tables
    return Pairwise([np.atleast_2d(table) for table in tables])


def second(lengths: Sequence[int], seed: int, values: Values = None) -> HistoryTable:
    return random_problem(2, lengths, rng(seed), values)


def unbounded(lengths: Sequence[int], seed: int, values: Values = None) -> HistoryTable:
    return random_problem(None, lengths, rng(seed), values)


def mixed(lengths: Sequence[int], seed: int, values: Values = None) -> WeightedSum:
    """Of order 1, with a part of weight 0 of a higher order."""
    own = (0.5, unary(lengths, seed, values)), (0.0, unbounded(lengths, seed, values))
    return WeightedSum([*own, (2.0, pairs(lengths, seed + 1, values))])


def mixed_third(lengths: Sequence[int], seed: int, values: Values = None) -> WeightedSum:
    third = random_problem(3, lengths, rng(seed + 2), values)
    return WeightedSum([(1.0, pairs(lengths, seed, values)), (0.5, third)])


def nested(lengths: Sequence[int], seed: int, values: Values = None) -> WeightedSum:
    own = (0.25, mixed(lengths, seed, values)), (1.0, unbounded(lengths, seed, values))
    return WeightedSum(own)


FINITE: list[Build] = [unary, pairs, mixed, second, mixed_third]
BUILDS: list[Build] = [*FINITE, unbounded, nested]


class BothSides(Chain):
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


class Untouchable(Chain):
    """Scores that must not be asked for."""

    lengths = (2, 3)
    order = 1

    def pairwise(self, t: int) -> Array:
        raise AssertionError("evaluated")


# What enumeration says
def all_paths(problem: DocumentProblem) -> dict[tuple[int, ...], float]:
    """The score of every path, best first."""
    return {path.choices: path.score for path in exhaustive(problem, n_best=10**5)}


def normaliser(problem: DocumentProblem, alpha: float) -> float:
    """Z."""
    return math.fsum(math.exp(alpha * score) for score in all_paths(problem).values())


def probabilities(problem: DocumentProblem, alpha: float) -> dict[tuple[int, ...], float]:
    """Probability of each possible path."""
    z = normaliser(problem, alpha)
    shares = {path: math.exp(alpha * score) / z for path, score in all_paths(problem).items()}
    return {path: share for path, share in shares.items() if share}


def shares_of_candidates(
    shares: Mapping[tuple[int, ...], float], lengths: Sequence[int]
) -> list[Array]:
    """Marginals (K_t,) of each sentence."""
    result = [np.zeros(k) for k in lengths]
    for path, share in shares.items():
        for row, choice in zip(result, path, strict=True):
            row[choice] += share
    return result


def chi2(draws: Iterable[Sequence[int]], expected: Mapping[tuple[int, ...], float]) -> float:
    """Σ (observed − expected)² / expected; infinite if something impossible was drawn."""
    counts = Counter(map(tuple, draws))
    if counts.keys() - expected.keys():
        return math.inf
    n = counts.total()
    return sum((counts[one] - n * p) ** 2 / (n * p) for one, p in expected.items())


def posterior_of(found: Any) -> Posterior:
    assert isinstance(found.posterior, Posterior)
    return found.posterior
