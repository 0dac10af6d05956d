"""Test sets of documents and permutations: their moments in closed form, and the z-test."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from rerank.metrics.discrimination import accuracies_of_sets, z_test


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


OUTCOMES = [np.array([1.0, 0, 1, 0.5]), np.array([0.0]), np.array([1.0, 1.0]), np.array([0.5, 0.0])]


def test_mean_and_deviation_over_sets_are_those_of_independent_draws() -> None:
    """A draw has mean m = mean over documents of their means, and variance E[x²] − m².

    Tolerances: 4 standard errors with 40,000 sets.
    """
    found = accuracies_of_sets([OUTCOMES], rng=rng(), sets=40_000)[0]
    mean = np.mean([own.mean() for own in OUTCOMES])
    square = np.mean([(own**2).mean() for own in OUTCOMES])
    sd = math.sqrt((square - mean**2) / len(OUTCOMES))
    assert found.mean() == pytest.approx(mean, abs=4 * sd / 200)
    assert found.std() == pytest.approx(sd, rel=4 / math.sqrt(2 * 40_000))


def test_sets_of_one_document_with_one_permutation_have_its_outcome() -> None:
    found = accuracies_of_sets([[np.array([1.0])], [np.array([0.5])]], rng=rng(), sets=3)
    assert found.tolist() == [[1.0] * 3, [0.5] * 3]


def test_models_are_measured_on_the_same_sets() -> None:
    better = [np.minimum(own + 0.25, 1.0) for own in OUTCOMES]
    found = accuracies_of_sets([OUTCOMES, OUTCOMES, better], rng=rng(), sets=200)
    assert found.shape == (3, 200)
    assert (found[0] == found[1]).all()
    assert (found[0] <= found[2]).all()


def test_z_is_the_difference_over_its_standard_error() -> None:
    """Samples of four: means 0.5 and 0.3, variances 0.04 / 3 and 0.08 / 3."""
    higher, lower = np.array([0.4, 0.6, 0.4, 0.6]), np.array([0.1, 0.3, 0.5, 0.3])
    z = 0.2 / math.sqrt((0.04 / 3 + 0.08 / 3) / 4)
    found = z_test(higher, lower)
    assert found is not None
    assert found == pytest.approx((z, norm.sf(z)))
    assert z_test(lower, higher) == pytest.approx((-z, norm.sf(-z)))


def test_z_of_the_published_moments() -> None:
    """Ji et al. 2016, table 3, CCDCLM and HRNNLM: 43.2 by the formula (36.55 is printed)."""
    pattern = np.tile([-1.0, 1.0], 500) * math.sqrt(999 / 1000)
    found = z_test(83.26 + 3.77 * pattern, 75.32 + 4.42 * pattern)
    assert found is not None
    assert found[0] == pytest.approx(43.2, abs=0.05)
    assert found[1] == 0.0


def test_samples_without_spread_have_no_z() -> None:
    assert z_test(np.ones(5), np.zeros(5)) is None
