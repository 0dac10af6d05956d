"""Rounds of tuning: weights from a pool, decoded, until further rounds do not gain.

Where features depend on context, no pool holds all that decoding could choose. The BLEU predicted
by the pool and the BLEU of the decoded path then differ, and only the second one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import Sums, bleu_of, length_of
from rerank.tuning.pools.pool import Pool

MOST_ROUNDS = 15

TunePool: TypeAlias = Callable[[Pool, NDArray[np.float64]], Optimum]
"""Finds better weights (F,) for a pool than the given ones."""


def describe_bleu(what: str, sums: Sums) -> str:
    """BLEU and length ratio of decoded documents, for people."""
    return f"{what} BLEU {bleu_of(sums):.2f}, length ratio {length_of(sums):.3f}"


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
        return bleu_of(self.statistics)


Value: TypeAlias = Callable[[Sums, NDArray[np.float64]], float]
"""The value of summed statistics (D, W), at weights (F,), that is maximised."""

Rounds: TypeAlias = Generator[DecodedWeights, None, str]
"""The start weights, then the weights of each round, all decoded; returns why it ends."""


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


class BestRound(NamedTuple):
    """The round with the best value, the first of equal ones, and why the rounds ended."""

    best: Round
    reason: str


def tune_in_rounds(
    rounds: Rounds,
    patience: int,
    *,
    fixed: bool,
    value: Value,
    report: Callable[[Round], None] = lambda done: None,
) -> BestRound:
    """The best of the rounds; they end after `patience` in a row that do not gain, and after 15.

    fixed: whether a part of the scores is not tuned; without it all-zero weights are not a tuning
    result. report: called with each round, 0 first.
    """
    best: Round | None = None
    for number in range(MOST_ROUNDS + 1):
        try:
            result = next(rounds)
        except StopIteration as end:
            reason = end.value
            break
        last = Round(number, result, value(result.statistics, result.weights))
        report(last)
        best = best or last
        valid, best_valid = (fixed or bool(one.result.weights.any()) for one in (last, best))
        if valid and (last.value > best.value or (last.result.bleu > 0 and not best_valid)):
            best = last
        if number - best.number >= patience:
            reason = f"{patience} rounds without gain"
            break
    else:
        reason = f"{MOST_ROUNDS} rounds"
    if best is None:
        raise ValueError("expected the start weights, found no round")
    return BestRound(best, reason)
