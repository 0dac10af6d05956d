"""Means of values from files: a truth of plain sums, and the tables that show them."""

import csv
import itertools
import statistics
from io import StringIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.evaluations import DOCUMENTS, N, evaluated

from rerank.metrics.line_scores import LineScores
from rerank.report.evaluation import Evaluation
from rerank.report.evaluation_tables import score_lines
from rerank.report.line_scores import with_scores

_, _, PLAIN = evaluated()


def scored(*values: list[float], name: str = "comet") -> Evaluation:
    """The evaluation with values of its two systems."""
    read = [LineScores(np.array(own), f"file:{i}") for i, own in enumerate(values)]
    return with_scores(PLAIN, DOCUMENTS, {name: read})


numbers = st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=N, max_size=N)


@settings(max_examples=15, deadline=None)
@given(numbers, numbers)
def test_the_mean_is_that_of_all_lines_and_p_counts_signs_of_the_documents_sums(
    base: list[float], ours: list[float]
) -> None:
    first, second = (system.scores["comet"] for system in scored(base, ours).systems)
    assert (first.score, second.score) == (statistics.fmean(base), statistics.fmean(ours))
    assert (first.signature, second.signature) == ("file:0", "file:1")
    assert (first.difference, first.p_value) == (None, None)
    assert second.difference == second.score - first.score
    gains = [sum(ours[d : d + 3]) - sum(base[d : d + 3]) for d in range(0, N, 3)]
    as_far = sum(
        abs(sum(s * g for s, g in zip(signs, gains, strict=True))) >= abs(sum(gains))
        for signs in itertools.product((-1, 1), repeat=len(gains))
    )
    assert second.p_value == as_far / 2 ** len(gains)


def test_the_interval_is_that_of_resampled_documents() -> None:
    values = np.random.default_rng(5).normal(size=N)
    (found, _) = (system.scores["comet"] for system in scored(*[values.tolist()] * 2).systems)
    drawn = np.random.default_rng(PLAIN.seed).integers(12, size=(1000, 12))
    means = [values.reshape(12, 3)[picks].mean() for picks in drawn]
    assert found.interval == pytest.approx(np.percentile(means, [2.5, 97.5]), rel=1e-12)


def test_a_constant_gain_is_as_sure_as_can_be() -> None:
    found = scored([0.1] * N, [0.3] * N).systems[1].scores["comet"]
    assert found.p_value == 2 / 2**12
    assert found.difference_interval == pytest.approx((0.2, 0.2))


def test_tables_have_four_digits_and_the_other_figures_stay_as_they_are() -> None:
    found = scored([0.81234] * N, [0.823456] * N)
    text = found.to_text()
    assert "\ncomet     system.1  0.8235  0.8235 … 0.8235  +0.0111" in text
    assert "\ncomet: mean of all lines, of values of another tool\n" in text
    assert text.startswith(PLAIN.to_text().partition("\n\nBLEU: ")[0])
    assert score_lines(found, 4).endswith("\t0.8235\n")
    (row,) = (row for row in found.to_markdown().splitlines() if "system.1" in row)
    assert row.split("|")[-4].strip() == "0.8235"
    rows = list(csv.DictReader(StringIO(found.to_tsv()), delimiter="\t"))
    assert float(rows[1]["comet_gain"]) == found.systems[1].scores["comet"].difference
    assert rows[0]["comet_gain"] == ""


def test_the_order_of_equal_gains_does_not_matter() -> None:
    """0.1 + 0.2 and 0.3 differ in the last bit; patterns with such sums are equally far."""
    gains = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    values = [value for gain in gains for value in (gain, 0.0, 0.0)]
    tenths = [value for gain in gains for value in (round(10 * gain), 0, 0)]
    floats, whole = (
        scored([0.0] * N, list(own)).systems[1].scores["comet"].p_value for own in (values, tenths)
    )
    assert floats == whole
