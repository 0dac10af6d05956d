"""Rounds of tuning: better weights by a pool, what they decode to, and again until it pays no more.

Where features depend on context, or lists hold whole documents, no pool holds all that decoding
could choose. BLEU predicted by the pool and BLEU of the decoded path differ, and only the second
is real. What pools there are, and how one follows another, is what `Pools` leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, corpus_bleu, length_ratio
from rerank.tuning.ascent import Optimum
from rerank.tuning.objectives import Sums
from rerank.tuning.pool import Pool

MOST_ROUNDS = 15

Find: TypeAlias = Callable[[Pool, NDArray[np.float64]], Optimum]
"""A tuner: better weights (F,) for a pool than those given, and what they choose from it."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Weights (F,) that a round came to, and the summed statistics (D, W) of what they decode to.

    predicted: the optimum on the pool, None where no pool was asked; there: statistics (D, W) of
    decoding at that optimum, where the round came to other weights; new_paths: how many paths of
    documents the round has added to the pool, None where it holds none.
    """

    weights: NDArray[np.float64]
    statistics: Sums
    predicted: Optimum | None = None
    there: Sums | None = None
    new_paths: int | None = None

    @property
    def bleu(self) -> float:
        """BLEU of the decoded path, 0..100."""
        return _bleu(self.statistics)


Value: TypeAlias = Callable[[Step], float]
"""What tuning maximises, of decoded documents."""


def bleu(step: Step) -> float:
    """Corpus BLEU of a step."""
    return step.bleu


def total(sums: Sums) -> NDArray[np.int64]:
    """The nine statistics of BLEU (9,), summed over documents."""
    counts = np.atleast_2d(sums)[:, :WIDTH].sum(axis=0)
    return np.asarray(counts, dtype=np.int64)


def _bleu(sums: Sums) -> float:
    return float(corpus_bleu(total(sums)))


Steps: TypeAlias = Generator[Step, None, str]
"""Steps of rounds: first the start weights, decoded; what it returns is why there is no more."""


class Pools(Protocol):
    """A kind of pool, and how one follows another."""

    @property
    def patience(self) -> int:
        """Rounds running that may end without a gain when decoded."""
        ...

    def steps(self, start: NDArray[np.float64]) -> Steps:
        """One step for each round, from start weights (F,); each is decoded before it is told."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A step with its number and value; round 0 is decoding with the start weights."""

    number: int
    step: Step
    value: float

    @property
    def bleu(self) -> float:
        """BLEU of the decoded path, 0..100."""
        return self.step.bleu

    def to_text(self) -> str:
        """One line for people."""
        step, parts = self.step, []
        if step.predicted is not None:
            parts.append(f"predicted BLEU {step.predicted.bleu:.2f}")
        if step.there is not None:
            parts.append(f"there {_bleu(step.there):.2f}")
        ratio = float(length_ratio(total(step.statistics)))
        parts.append(f"decoded BLEU {step.bleu:.2f}, length ratio {ratio:.3f}")
        if step.bleu != self.value:
            foretold = "" if step.predicted is None else f"predicted {step.predicted.value:.3f}, "
            parts.append(f"objective {foretold}{self.value:.3f}")
        if step.new_paths is not None:
            parts.append(f"{step.new_paths:,} new paths")
        return f"round {self.number}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """The round with the best value, of equal ones the first, and why there were no more."""

    best: Round
    reason: str


def tune_in_rounds(
    pools: Pools,
    start: NDArray[np.float64],
    *,
    fixed: bool,
    report: Callable[[Round], None],
    value: Value = bleu,
    smoothed: bool = False,
) -> Ended:
    """The best of the rounds from start weights (F,); `report` sees each of them, 0 first.

    fixed: whether scores have a part that is not tuned. Without it a start of zeros is no result.
    smoothed: whether the tuner looks at more than the value of points. Then what it finds may have
    less of it than the start, which is a result only where nothing else is.
    Stops when `pools` have no further round, when `patience` rounds running do not raise the value
    of what is decoded, or after 15 rounds.
    """
    steps = pools.steps(start)
    step = next(steps)
    best = last = Round(0, step, value(step))
    report(last)
    while last.number < MOST_ROUNDS:
        try:
            step = next(steps)
        except StopIteration as end:
            return Ended(best, end.value)
        last = Round(last.number + 1, step, value(step))
        report(last)
        # zeros choose, but say nothing; nor does BLEU 0
        says, said = (fixed or bool(one.step.weights.any()) for one in (last, best))
        said = said and not (smoothed and best.number == 0)
        if says and (last.value > best.value or (last.bleu > 0 and not said)):
            best = last
        if last.number - best.number >= pools.patience:
            rounds = "a round" if pools.patience == 1 else f"{pools.patience} rounds"
            return Ended(best, f"{rounds} without gain")
    return Ended(best, f"{MOST_ROUNDS} rounds")
