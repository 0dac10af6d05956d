"""Accuracies by hand, and the report as text, JSON and TSV."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from rerank.metrics.accuracy import wilson_interval
from rerank.report.contrastive import (
    Accuracy,
    ContrastiveReport,
    GroupAccuracy,
    ModelAccuracy,
)

OUTCOMES = {
    "context": np.array([1.0, 1, 1, 0.5, 1, 0, 1, 1]),
    "null": np.array([0.0, 1, 0, 0, 0, 0.5, 1, 0.5]),
    "other": np.array([1.0, 1, 1, 0.5, 1, 0, 1, 1]),
}


def report(normalised: bool = True) -> ContrastiveReport:
    groups = (
        GroupAccuracy.of("all", OUTCOMES),
        GroupAccuracy.of("phenomenon=a\tb", {c: found[:4] for c, found in OUTCOMES.items()}),
    )
    model = ModelAccuracy("codclm.lm", "abc", 1, normalised, 0.125, groups)
    return ContrastiveReport((model,), 8, 1)


def test_ties_count_a_half() -> None:
    found = Accuracy.of(OUTCOMES["context"])
    assert (found.accuracy, found.ties) == (6.5 / 8, 1)
    assert (found.low, found.high) == wilson_interval(6.5, 8)


def test_context_is_compared_with_each_other_condition_over_items() -> None:
    """Better than null in items 0, 2, 3, 4, 7, worse in 5; as good as other everywhere."""
    found = GroupAccuracy.of("all", OUTCOMES)
    assert found.p == {"null": pytest.approx(binomtest(5, 6).pvalue), "other": 1.0}
    assert (found.items, [*found.accuracies]) == (8, ["context", "null", "other"])


def test_the_table_has_a_row_for_each_group_in_per_cent() -> None:
    lines = report().to_text().splitlines()
    assert lines[0].split() == [
        *("model", "group", "items", "context", "null", "other", "p", "null", "p", "other")
    ]
    low, high = (100 * end for end in wilson_interval(6.5, 8))
    assert f"81.2 [{low:.1f}, {high:.1f}]" in lines[2]
    assert lines[2].split()[-2:] == ["0.22", "1"]
    assert lines[3].split()[:2] == ["codclm.lm", r"phenomenon=a\tb"]
    assert "not normalised" not in report().to_text()
    assert report(normalised=False).to_text().endswith("scores of codclm.lm are not normalised\n")


def test_a_condition_that_was_left_out_has_no_column() -> None:
    kept = {c: OUTCOMES[c] for c in ("context", "null")}
    model = ModelAccuracy("m", "abc", None, True, 0.0, (GroupAccuracy.of("all", kept),))
    text = ContrastiveReport((model,), 8, 1).to_text()
    assert text.splitlines()[0].split() == [
        "model",
        "group",
        "items",
        "context",
        "null",
        "p",
        "null",
    ]


def test_json_and_tsv_have_the_same_figures() -> None:
    found = json.loads(json.dumps(report().to_dict(), allow_nan=False))
    assert (found["schema"], found["items"], found["seed"]) == (1, 8, 1)
    (model,) = found["models"]
    assert (model["lm"], model["order"], model["oov"], model["normalised"]) == (
        *("codclm.lm", 1, 0.125, True),
    )
    header, *lines = (line.split("\t") for line in report().to_tsv().splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    assert len(rows) == 6
    for row, (group, condition) in zip(
        rows, ((g, c) for g in model["groups"] for c in g["accuracies"]), strict=True
    ):
        figures = group["accuracies"][condition]
        assert (row["condition"], row["items"]) == (condition, str(group["items"]))
        assert {name: float(row[name]) for name in figures} == figures
        assert row["p"] == str(group["p"].get(condition, ""))
    assert rows[3]["group"] == r"phenomenon=a\tb"
