"""When rounds of tuning end, and which of them is kept: the rule of the manual, written again."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rerank.tuning.rounds import DecodedWeights, Round, tune_in_rounds

SUMS = np.ones((1, 9), np.int64)


def tuned(values: Iterable[float]) -> tuple[Round, str]:
    """Rounds of these values, the first of them that of the start; each moves a weight by 1."""
    remaining = enumerate(values)
    lists: Any = SimpleNamespace(
        contextual=[0], after=lambda path: None, choose=lambda weights: None, sums=lambda path: SUMS
    )

    def optimise(*_: Any) -> Any:
        return SimpleNamespace(weights=np.array(next(remaining), float))

    start = DecodedWeights(optimise().weights, SUMS, None)
    return tune_in_rounds(lists, start, optimise, 2, settled=True, value=lambda sums, w: w[1])


def expected(values: Sequence[float]) -> tuple[int, str]:
    best = 0
    for number, value in enumerate(values[:16]):
        best = number if value > values[best] else best
        if number - best == 2:
            return best, "2 rounds without gain"
    return best, "15 rounds"


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]) | st.floats(0, 9), min_size=16, max_size=16))
def test_the_first_best_round_is_kept_and_two_without_gain_end_it(values: list[float]) -> None:
    best, reason = tuned(values)
    assert (best.number, reason) == expected(values)


def test_rounds_that_always_gain_end_after_fifteen() -> None:
    values = iter(range(99))
    best, reason = tuned(values)
    assert (reason, best.number, next(values)) == ("15 rounds", 15, 16)
