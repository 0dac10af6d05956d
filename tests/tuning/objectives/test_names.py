"""Metrics found in the names of objectives: of all that there are, as they name themselves."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.metrics.bleu import corpus_bleu
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.names import metrics_of
from rerank.tuning.objectives.objective import (
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    MetricColumns,
    Objective,
    ObjectiveSum,
    WorstDocuments,
)
from rerank.tuning.objectives.shrinkage import Shrinkage

METRICS = st.sampled_from(["BLEU", "chrF2", "TER", "comet", "wmt22-comet-da", "my metric", "a_b.c"])
KINDS: list[Callable[[MetricColumns], Objective]] = [
    CorpusMetric,
    DocumentMean,
    lambda columns: WorstDocuments(0.255, columns),
]


@st.composite
def objectives(draw: st.DrawFn) -> tuple[list[str], str]:
    """Names of metrics, and the name of a goal that maximises them."""
    names = draw(st.lists(METRICS, min_size=1, max_size=2, unique=True))
    kind = draw(st.sampled_from(KINDS))
    parts = [kind(MetricColumns(name, 0, 9, corpus_bleu)) for name in names]
    found: Objective = parts[0]
    if len(parts) > 1 or draw(st.booleans()):
        weights = draw(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=2))
        found = ObjectiveSum(tuple(zip(weights, parts, strict=False)))
    if draw(st.booleans()):
        found = LengthPenalty(found, 0.98, 5)
    shrinkage = Shrinkage(np.ones(2), np.ones(2), 1.0) if draw(st.booleans()) else None
    return names, SearchGoal(found, shrinkage).name


@given(objectives())
def test_the_metrics_of_every_objective_are_found_in_its_name(
    objective: tuple[list[str], str],
) -> None:
    names, name = objective
    assert metrics_of(name) == names


@pytest.mark.parametrize("name", ["", "BLEU", "length", "corpus ", "decorpus BLEU"])
def test_other_names_have_no_metric(name: str) -> None:
    assert metrics_of(name) == []
