"""Sections of an objective, against scoring the pool at points of a dense grid."""

from __future__ import annotations

import numpy as np
import pytest

from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import CorpusMetric, DocumentMean, Objective
from rerank.tuning.pools.pool import Pool
from rerank.tuning.surface import Section, sections


def pool(seed: int) -> Pool:
    """Eight lists in three documents, two features that vary and one that does not."""
    rng = np.random.default_rng(seed)
    n, size = 80, 10
    totals = rng.integers(5, 9, size=n)[:, None] - np.arange(4)
    matches = np.minimum.accumulate(rng.integers(1, totals + 1), axis=1)
    statistics = np.hstack([matches, totals, np.full((n, 1), 7)])
    features = np.hstack([rng.standard_normal((n, 2)), np.ones((n, 1))])
    documents = np.array([0, 0, 1, 1, 1, 2, 2, 0])
    return Pool(np.arange(0, n + 1, size), features, statistics, np.zeros(n), documents)


@pytest.mark.parametrize("objective", [CorpusMetric(), DocumentMean()])
@pytest.mark.parametrize("seed", range(3))
def test_a_section_has_the_value_of_every_point(seed: int, objective: Objective) -> None:
    data, weights = pool(seed), np.array([0.4, -0.2, 3.0])
    found = sections(data, weights, objective)
    assert [section.feature for section in found] == [0, 1]
    for section in found:
        assert section.weight == weights[section.feature]
        for weight in np.linspace(-3, 3, 61):
            moved = weights.copy()
            moved[section.feature] = weight
            sums = data.sums(data.choices(data.scores(moved)))
            place = np.searchsorted(section.left, weight, side="right") - 1
            assert section.values[place] == pytest.approx(objective.value(sums), abs=1e-9)


def test_the_flat_range_is_where_nothing_more_than_near_is_lost() -> None:
    left = np.array([-np.inf, -2.0, -1.0, 0.5, 1.5, 4.0])
    section = Section(0, 1.0, left, np.array([9.0, 10.0, 9.95, 10.0, 9.97, 9.0]))
    assert section.flat(0.1) == (-2.0, 4.0)
    assert section.flat(0.04) == (0.5, 4.0)
    assert section.flat(2.0) == (-np.inf, np.inf)


def test_values_here_are_those_of_the_weights() -> None:
    data, weights = pool(5), np.array([1.0, 0.5, 0.0])
    for section in sections(data, weights, CorpusMetric()):
        low, high = section.flat(0.0)
        assert low <= section.weight <= high
        at = section.values[np.searchsorted(section.left, section.weight, side="right") - 1]
        assert at == Optimum.at(data, weights).bleu
