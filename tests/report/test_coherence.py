"""Accuracies of pairs and of test sets by hand, and the report as text and JSON."""

import json
from itertools import product

import numpy as np
import pytest

from rerank.report.coherence import CoherenceReport, ModelFacts, PermutedDocument

GOOD, POOR = ModelFacts("good.lm", "abc", None, 0.125), ModelFacts("poor.lm", "def", 1, 0.0)


def report(n: int = 12, *, left_out: int = 0) -> CoherenceReport:
    """Good: right everywhere but for a tie in each third document; poor: right in half."""
    good = [np.array([1.0, 1.0, 0.5 if d % 3 == 0 else 1.0]) for d in range(n)]
    poor = [np.array([1.0, 0.0, float(d % 2)]) for d in range(n)]
    documents = [PermutedDocument(d, 4, 3) for d in range(n)]
    return CoherenceReport.of(
        {POOR: poor, GOOD: good}, documents, left_out=left_out, permutations=3, seed=1
    )


def test_accuracy_is_the_share_of_pairs_and_ties_count_a_half() -> None:
    found = report()
    poor, good = found.models
    assert found.pairs == 36
    assert good.accuracy == pytest.approx(34 / 36)
    assert good.ties == 4
    assert (poor.accuracy, poor.ties) == (0.5, 0)
    assert good.right[:3] == (2.5, 3.0, 3.0)
    assert good.low < good.accuracy <= good.high
    assert good.sets_mean == pytest.approx(34 / 36, abs=0.01)  # SD 0.05 / √1000


def test_p_is_the_share_of_swaps_of_documents_with_so_large_a_difference() -> None:
    """All 2¹⁰ swaps, by hand."""
    found = report(10)
    (comparison,) = found.comparisons
    assert (comparison.higher, comparison.lower) == ("good.lm", "poor.lm")
    assert comparison.difference == pytest.approx(found.models[1].accuracy - 0.5)
    gains = [g - p for g, p in zip(found.models[1].right, found.models[0].right, strict=True)]
    signs = np.array([*product((1, -1), repeat=10)])
    truth = np.mean(abs(signs @ gains) >= sum(gains))
    assert comparison.p_documents == pytest.approx(truth)
    assert comparison.z is not None
    assert comparison.z > 10


def test_documents_with_more_permutations_have_more_pairs() -> None:
    outcomes = {GOOD: [np.array([1.0]), np.array([0.0, 0.0, 0.0])]}
    documents = [PermutedDocument(0, 2, 1), PermutedDocument(3, 9, 3)]
    found = CoherenceReport.of(outcomes, documents, left_out=2, permutations=3, seed=1)
    assert found.models[0].accuracy == 0.25
    assert found.models[0].sets_mean == pytest.approx(0.5, abs=0.05)
    text = found.to_text()
    assert "4 pairs of 2 documents\n1 of these have fewer than 3 permutations\n" in text
    assert "left out: 2 without a permutation that has another text\n" in text
    assert "z" not in text.split("\n\n")[0].split()


def test_text_has_a_table_of_models_and_one_of_pairs_of_models() -> None:
    models, comparisons, notes = report().to_text().split("\n\n")
    assert models.splitlines()[0].split() == ["model", "accuracy", "ties", "sets"]
    assert models.splitlines()[2].split()[:2] == ["poor.lm", "50.00"]
    row = comparisons.splitlines()[2].split()
    assert row[:3] == ["good.lm", "poor.lm", "44.44"]
    assert float(row[3]) == pytest.approx(report().comparisons[0].p_documents, rel=0.05)
    assert notes.startswith("36 pairs of 12 documents\naccuracy: ")


def test_too_few_documents_have_no_test_over_documents() -> None:
    found = report(9)
    assert found.comparisons[0].p_documents is None
    assert "no p documents: it needs 10 documents\n" in found.to_text()


def test_json_has_all_figures() -> None:
    found = report(9, left_out=1)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {name: content[name] for name in ("pairs", "permutations", "sets", "left_out")} == {
        "pairs": 27,
        "permutations": 3,
        "sets": 1000,
        "left_out": 1,
    }
    assert content["documents"][1] == {"document": 1, "sentences": 4, "permutations": 3}
    poor, good = content["models"]
    assert (good["lm"], good["order"], good["oov"]) == ("good.lm", None, 0.125)
    assert good["accuracy"] == found.models[1].accuracy
    assert poor["right"] == [1.0, 2.0] * 4 + [1.0]
    assert content["comparisons"][0]["p_documents"] is None
