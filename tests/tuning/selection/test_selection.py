"""The choice between shares: its standard errors by a closed form, and its rule by its words."""

from statistics import median_low

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t, ttest_1samp
from support.objectives import Mean

from rerank.tuning.selection.selection import EVEN, SURE, Candidate, Selection, choose
from rerank.tuning.selection.shrunk import Anchor

SHARES = (0.0, 0.1, 0.3, 0.6, 1.0)


def chosen(table: NDArray[np.float64], confidence: float = EVEN) -> Selection:
    """The selection for values (C, U) of candidates and units."""
    statistics = np.zeros((*table.shape, 9))
    statistics[:, :, 0] = table
    anchor = Anchor(np.ones(2), np.ones(2), settled=False)
    candidates = [Candidate(share, own) for share, own in zip(SHARES, statistics, strict=True)]
    return choose(
        candidates,
        Mean(),
        anchor=anchor,
        tuned=np.ones(2),
        unit="documents",
        n_folds=5,
        confidence=confidence,
    )


@pytest.mark.parametrize("units", [2, 4, 50])
@pytest.mark.parametrize("confidence", [0.8, SURE])
def test_a_confidence_asks_for_a_gain_that_a_t_test_finds(units: int, confidence: float) -> None:
    """The test is scipy's, of the gains of single documents; below and above its bound."""
    noise = np.random.default_rng(units).standard_normal(units)
    noise -= noise.mean()
    bound = t.ppf(confidence, units - 1) * standard_error(noise)
    for factor, share in ((0.99, 0.0), (1.01, 0.3)):
        table = np.zeros((5, units))
        table[2] = noise + factor * bound
        test = ttest_1samp(table[2], 0.0, alternative="greater")
        assert (test.pvalue < 1 - confidence) == (share > 0)
        assert chosen(table, confidence).chosen.candidate.share == share


def standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


@given(st.integers(0, 2**32 - 1), st.integers(4, 40))
def test_standard_errors_of_means_are_those_of_the_textbook(seed: int, units: int) -> None:
    table = np.random.default_rng(seed).standard_normal((5, units))
    for row, one in zip(table, chosen(table).compared, strict=True):
        assert one.error == pytest.approx(standard_error(row))
        assert one.difference == pytest.approx((row - table[0]).mean(), abs=1e-12)
        assert one.difference_error == pytest.approx(standard_error(row - table[0]), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(4, 20))
def test_the_share_is_the_median_of_those_that_are_good_enough(seed: int, units: int) -> None:
    table = np.random.default_rng(seed).standard_normal((5, units)).round(2)
    means = table.mean(axis=1)
    best = int(means.argmax())
    good = [
        share
        for share, row, mean in zip(SHARES, table, means, strict=True)
        if mean > means[0] and mean >= means[best] - standard_error(table[best] - row)
    ]
    found = chosen(table)
    assert found.chosen.candidate.share == (median_low(good) if good else 0.0)
    assert found.kept == (best == 0)


def test_where_nothing_is_better_the_start_weights_are_kept_and_that_is_said() -> None:
    table = -np.arange(5.0)[:, None] + np.zeros((5, 6))
    found = chosen(table)
    assert found.kept
    assert found.weights(np.array([3.0, 4.0])).tolist() == [1, 1]
    assert "these are kept" in found.to_text()
    assert found.table()[1].endswith("← chosen")


def test_a_clear_gain_far_from_the_start_is_taken() -> None:
    table = np.array([0.0, 0.1, 0.2, 0.3, 5.0])[:, None] + np.zeros((5, 8))
    found = chosen(table)
    assert found.chosen.candidate.share == 1
    assert found.weights(np.array([3.0, 4.0])).tolist() == [3, 4]
    made = found.to_dict()
    assert (made["folds"], made["start"]) == (5, "start weights")
    assert made["held_out"] == {"unit": "documents", "number": 8}
    assert "difference +5.00 ± 0.00" in found.to_text()


def test_the_jackknife_of_many_units_is_that_of_groups_of_them() -> None:
    """Fifty groups of ten units: the error is that of the mean of the group means."""
    values = np.random.default_rng(3).standard_normal(500)
    found = chosen(np.tile(values, (5, 1))).compared[0].error
    groups = np.array([values[g::50].mean() for g in range(50)])
    assert found == pytest.approx(standard_error(groups), rel=1e-6)
