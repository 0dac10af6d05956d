"""Rounds of tuning: weights from a pool, decoded, until further rounds do not gain.

Where features depend on context, no pool holds all that decoding could choose. The BLEU predicted
by the pool and the BLEU of the decoded path then differ, and only the second one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, corpus_bleu, length_ratio
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool

MOST_ROUNDS = 15

TunePool: TypeAlias = Callable[[Pool, NDArray[np.float64]], Optimum]
"""Finds better weights (F,) for a pool than the given ones."""


def bleu_counts(sums: Sums) -> NDArray[np.int64]:
    """The nine statistics of BLEU (9,), summed over documents."""
    counts = np.atleast_2d(sums)[:, :WIDTH].sum(axis=0)
    return np.asarray(counts, dtype=np.int64)


def describe_bleu(what: str, sums: Sums) -> str:
    """BLEU and length ratio of decoded documents, for people."""
    counts = bleu_counts(sums)
    return f"{what} BLEU {corpus_bleu(counts):.2f}, length ratio {length_ratio(counts):.3f}"


@dataclass(frozen=True, slots=True, eq=False)
class DecodedWeights:
    """Weights (F,) and the summed statistics (D, W) of what they decode to.

    predicted: the optimum on the pool that gave the weights; None for the start weights
    """

    weights: NDArray[np.float64]
    statistics: Sums
    predicted: Optimum | None = None

    @property
    def bleu(self) -> float:
        """BLEU of the decoded path, 0..100."""
        return float(corpus_bleu(bleu_counts(self.statistics)))


Value: TypeAlias = Callable[[DecodedWeights], float]
"""The value that is maximised."""


Rounds: TypeAlias = Generator[DecodedWeights, None, str]
"""The weights of one round after another, those of the start first; returns why it ends."""


class Pools(Protocol):
    """A kind of pool, and how one follows another."""

    @property
    def patience(self) -> int:
        """How many rounds in a row may end without a gain."""
        ...

    def rounds(self, start: NDArray[np.float64]) -> Rounds:
        """The start weights (F,), then the weights of each round, all decoded."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A round with its number and value; round 0 is decoding with the start weights."""

    number: int
    result: DecodedWeights
    value: float

    def to_text(self) -> str:
        """One line for people."""
        predicted = self.result.predicted
        parts = [describe_bleu("decoded", self.result.statistics)]
        if predicted is not None:
            parts.insert(0, f"predicted BLEU {predicted.bleu:.2f}")
        if self.result.bleu != self.value:
            before = "" if predicted is None else f"predicted {predicted.value:.3f}, "
            parts.append(f"objective {before}decoded {self.value:.3f}")
        return f"round {self.number}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, eq=False)
class BestRound:
    """The round with the best value, the first of equal ones, and why the rounds ended."""

    best: Round
    reason: str


def tune_in_rounds(
    pools: Pools,
    start: NDArray[np.float64],
    *,
    fixed: bool,
    value: Value,
    report: Callable[[Round], None] = lambda done: None,
) -> BestRound:
    """The best of the rounds from start weights (F,).

    fixed: whether a part of the scores is not tuned; without it all-zero weights are not a tuning
    result. report: called with each round, 0 first. The rounds end when `pools` has no further
    one, when `patience` rounds in a row have not raised the value, and after 15 rounds.
    """
    rounds = pools.rounds(start)
    result = next(rounds)
    best = last = Round(0, result, value(result))
    report(last)
    while last.number < MOST_ROUNDS:
        try:
            result = next(rounds)
        except StopIteration as end:
            return BestRound(best, end.value)
        last = Round(last.number + 1, result, value(result))
        report(last)
        valid, best_valid = (fixed or bool(one.result.weights.any()) for one in (last, best))
        if valid and (last.value > best.value or (last.result.bleu > 0 and not best_valid)):
            best = last
        if last.number - best.number >= pools.patience:
            rounds_text = "a round" if pools.patience == 1 else f"{pools.patience} rounds"
            return BestRound(best, f"{rounds_text} without gain")
    return BestRound(best, f"{MOST_ROUNDS} rounds")
