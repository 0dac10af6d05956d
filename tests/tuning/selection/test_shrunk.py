"""Weights between start and tuned ones: their ends, their units, and the best single feature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pools import planted_pool

from rerank.tuning.bounds import Bounds
from rerank.tuning.objectives.goal import BLEU_GOAL
from rerank.tuning.objectives.objective import bleu_of
from rerank.tuning.pools.pool import Pool
from rerank.tuning.selection.shrunk import Anchor, best_feature

START, TUNED = np.array([0.5, -0.25, 0.0]), np.array([0.1, 0.2, 0.7])
SPREADS = np.array([2.0, 1.0, 4.0])


@pytest.mark.parametrize("settled", [True, False])
def test_the_ends_are_the_given_weights_to_the_last_bit(settled: bool) -> None:
    anchor = Anchor(START, SPREADS, settled)
    assert np.array_equal(anchor.towards(TUNED, 0), START)
    assert np.array_equal(anchor.towards(TUNED, 1), TUNED)


def test_where_scale_is_settled_the_way_is_a_straight_line() -> None:
    found = Anchor(START, SPREADS, settled=True).towards(TUNED, 0.25)
    assert found == pytest.approx(0.75 * START + 0.25 * TUNED)


@given(share=st.floats(0.05, 0.95), factor=st.floats(0.01, 100), other=st.floats(0.01, 100))
def test_where_scale_is_free_it_does_not_matter_for_the_direction(
    share: float, factor: float, other: float
) -> None:
    plain = Anchor(START, SPREADS, settled=False).towards(TUNED, share)
    scaled = Anchor(factor * START, SPREADS, settled=False).towards(other * TUNED, share)
    assert scaled == pytest.approx(plain)
    assert np.abs(plain).sum() == pytest.approx(1)


def test_the_middle_has_equal_angles_to_both_ends_in_units_of_spread() -> None:
    middle = Anchor(START, SPREADS, settled=False).towards(TUNED, 0.5) * SPREADS
    ends = [one * SPREADS for one in (START, TUNED)]
    cosines = [middle @ end / np.linalg.norm(end) for end in ends]
    assert cosines[0] == pytest.approx(cosines[1])


def test_the_mean_of_tunings_is_that_of_their_directions_where_scale_is_free() -> None:
    several = [TUNED, 10 * TUNED, START]
    free = Anchor(START, SPREADS, settled=False).mean(several)
    units = [one / np.linalg.norm(one * SPREADS) for one in several]
    assert free / np.abs(free).sum() == pytest.approx(sum(units) / np.abs(sum(units)).sum())
    settled = Anchor(START, SPREADS, settled=True).mean(several)
    assert settled == pytest.approx((11 * TUNED + START) / 3)


def test_the_best_single_feature_is_that_of_trying_all_with_both_signs() -> None:
    pool = planted_pool(4, [0.2, -3.0, 0.5], noise=0.5)
    weights, name = best_feature(pool, BLEU_GOAL, Bounds.none(3), ["a", "b", "c"])
    signed = [sign * row for row in np.eye(3) for sign in (1, -1)]
    tried = [bleu_of(pool.decode(one)) for one in signed]
    assert bleu_of(pool.decode(weights)) == max(tried)
    assert np.array_equal(weights, [0, -1, 0])
    assert name == "the feature b alone, negated"


def test_of_indicators_of_systems_the_best_system_is_taken_within_ranges() -> None:
    """Three systems, of which the second matches all four words of its reference."""
    good, bad = [4, 3, 2, 1, 4, 3, 2, 1, 4], [1, 0, 0, 0, 4, 3, 2, 1, 4]
    statistics = np.array([bad, good, bad] * 3)
    pool = Pool(np.arange(0, 10, 3), np.tile(np.eye(3), (3, 1)), statistics, np.zeros(9))
    weights, name = best_feature(pool, BLEU_GOAL, Bounds.none(3), ["S0", "S1", "S2"])
    assert (weights.tolist(), name) == ([0, 1, 0], "the feature S1 alone")
    low, high = np.full(3, -np.inf), np.array([np.inf, 0.0, np.inf])
    weights, name = best_feature(pool, BLEU_GOAL, Bounds(low, high), ["S0", "S1", "S2"])
    assert weights[1] <= 0
    assert bleu_of(pool.decode(weights)) == bleu_of(pool.decode(np.array([0.0, 1, 0])))
