"""When rounds of tuning end, and which of them is kept: the rule of the manual, written again."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rerank.tuning.rounds import DecodedWeights, Rounds, tune_in_rounds


def rounds_of(values: Iterator[float]) -> Rounds:
    """Rounds of these values, the first of them that of the start."""
    for value in values:
        yield DecodedWeights(np.array([1.0, value]), np.ones((1, 9), np.int64), None)
    return "no more"


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]) | st.floats(0, 9), min_size=1, max_size=20))
def test_the_first_best_round_is_kept_and_two_without_gain_end_it(values: list[float]) -> None:
    best, reason = 0, "15 rounds" if len(values) > 15 else "no more"
    for number, value in enumerate(values[:16]):
        best = number if value > values[best] else best
        if number - best == 2:
            reason = "2 rounds without gain"
            break
    found = tune_in_rounds(rounds_of(iter(values)), 2, fixed=False, value=lambda sums, w: w[1])
    assert (found.best.number, found.reason) == (best, reason)


def test_rounds_that_always_gain_end_after_fifteen() -> None:
    values = iter(range(99))
    found = tune_in_rounds(rounds_of(values), 2, fixed=False, value=lambda sums, w: w[1])
    assert (found.reason, found.best.number, next(values)) == ("15 rounds", 15, 16)
