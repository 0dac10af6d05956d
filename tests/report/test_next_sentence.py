"""Accuracies of choices by hand, differences over documents, and the report."""

import json
from itertools import product

import numpy as np
import pytest

from rerank.metrics.accuracy import wilson_interval
from rerank.report.coherence import ModelFacts
from rerank.report.next_sentence import (
    NextSentenceReport,
    SelectionAccuracy,
    SelectionModel,
)

ONE = np.array([1.0, 0, 1, 0.5, 1, 1, 1, 0, 1, 1, 0.25, 1])
OTHER = np.array([0.0, 0, 1, 0.5, 0, 1, 0, 0, 1, 0, 0.25, 0])
DOCUMENTS = np.array([7, 7, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11])


def report(*, exact: bool = True) -> NextSentenceReport:
    outcomes = {"one.lm": ONE, "other.lm": OTHER}
    models = [
        SelectionModel(
            ModelFacts(lm, "abc", 1, 0.25),
            exact,
            {score: SelectionAccuracy.of(own) for score in ("normalised", "log_p", "pmi")},
        )
        for lm, own in outcomes.items()
    ]
    compared = NextSentenceReport.compared(outcomes, DOCUMENTS, 1)
    return NextSentenceReport(tuple(models), compared, 3, 4, 3, "separate", 5, 1)


def test_a_tie_counts_as_the_chance_to_be_right() -> None:
    found = SelectionAccuracy.of(ONE)
    assert (found.accuracy, found.ties) == (8.75 / 12, 2)
    assert (found.low, found.high) == wilson_interval(8.75, 12)


def test_models_are_compared_over_documents() -> None:
    """All swaps of the eleven documents, by hand: two passages are of one document."""
    (found,) = report().comparisons
    assert found.difference == pytest.approx((8.75 - 3.75) / 12)
    gains = np.bincount(DOCUMENTS, ONE - OTHER)
    gains = gains[np.unique(DOCUMENTS)]
    signs = np.array([*product((1, -1), repeat=11)])
    assert found.p == pytest.approx(np.mean(abs(signs @ gains) >= gains.sum()))
    (few,) = NextSentenceReport.compared({"a": ONE, "b": OTHER}, DOCUMENTS % 5, 1)
    assert few.p is None


def test_text_has_accuracies_by_score_and_differences() -> None:
    models, comparisons, notes = report().to_text().split("\n\n")
    assert models.splitlines()[2].split()[:2] == ["one.lm", "72.9"]
    assert comparisons.splitlines()[2].split()[:3] == ["one.lm", "other.lm", "41.7"]
    assert notes.startswith(
        "3 blocks of 4 passages, 3 sentences and the next one each; 5 passages left out; "
        "chance: 25.0\n"
    )
    assert "not normalised" not in notes
    odd = report(exact=False).to_text()
    assert odd.endswith("scores of one.lm, other.lm are not normalised\n")


def test_json_has_all_figures() -> None:
    content = json.loads(json.dumps(report().to_dict(), allow_nan=False))
    assert (content["chance"], content["blocks"], content["candidates"]) == (0.25, 3, "separate")
    assert (content["block"], content["context"], content["left_out"]) == (4, 3, 5)
    one, other = content["models"]
    assert (one["lm"], one["order"], one["normalised"]) == ("one.lm", 1, True)
    assert other["accuracies"]["pmi"]["accuracy"] == 3.75 / 12
    assert content["comparisons"][0]["first"] == "one.lm"
