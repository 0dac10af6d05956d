"""The accuracy over pairs by hand, as text and JSON."""

import json

import numpy as np
import pytest

from rerank.report.coherence import CoherenceReport, ModelFacts, PermutedDocument
from rerank.report.ordering import OrderingReport

FIRST, SECOND = ModelFacts("first.lm", "abc", None, 0.125), ModelFacts("second.lm", "def", 1, 0.0)


def report(n: int = 12, *, left_out: int = 0) -> OrderingReport:
    """First: 3 of 4 pairs right of each document, and one tie; second: 1 of 4.

    One document has a pair more, which the second model has right and the first wrong.
    """
    first = [np.array([1.0, 0.5, 1.0, 0.5]) for _ in range(n)]
    second = [np.array([0.0, 0.0, 1.0, 0.0]) for _ in range(n)]
    first[0], second[0] = np.append(first[0], 0.0), np.append(second[0], 1.0)
    documents = [PermutedDocument(d, 4, len(first[d])) for d in range(n)]
    found = CoherenceReport.of(
        {SECOND: second, FIRST: first}, documents, left_out=left_out, permutations=5, seed=1
    )
    return OrderingReport(found)


def test_the_accuracy_is_that_of_pairs_and_ties_are_a_half() -> None:
    content = json.loads(json.dumps(report(left_out=3).to_dict(), allow_nan=False))
    second, first = content["models"]
    assert (content["pairs"], content["permutations"], content["left_out"]) == (49, 5, 3)
    assert (first["lm"], first["order"], first["oov"], first["ties"]) == (
        "first.lm",
        None,
        0.125,
        24,
    )
    assert first["accuracy"] == pytest.approx(36 / 49)
    assert second["accuracy"] == pytest.approx(13 / 49)
    assert second["right"] == [2.0, *[1.0] * 11]
    assert first["low"] <= first["accuracy"] <= first["high"]
    assert content["documents"][0] == {"document": 0, "sentences": 4, "permutations": 5}
    (comparison,) = content["comparisons"]
    assert (comparison["higher"], comparison["lower"]) == ("first.lm", "second.lm")
    assert comparison["difference"] == pytest.approx(23 / 49)
    assert comparison["p"] == pytest.approx(2 / 2**12)  # all twelve documents on one side
    assert set(comparison) == {"higher", "lower", "difference", "p"}  # no measure over sets


def test_the_model_with_the_higher_accuracy_is_first_whatever_the_sets_say() -> None:
    """Over sets a document of few pairs counts as one of many; over pairs it does not."""
    few, many = np.array([1.0]), np.array([0.0, 0.0, 0.0])
    documents = [PermutedDocument(d, 4, 1 if d < 6 else 3) for d in range(12)]
    sets_first = [few if d < 7 else many for d in range(12)]
    sets_first[6] = np.array([1.0, 1.0, 1.0])
    pairs_first = [np.array([0.0]) if d < 6 else np.array([1.0, 1.0, 0.0]) for d in range(12)]
    found = CoherenceReport.of(
        {FIRST: sets_first, SECOND: pairs_first}, documents, left_out=0, permutations=3, seed=1
    )
    assert found.comparisons[0].higher == "first.lm"
    (comparison,) = json.loads(json.dumps(OrderingReport(found).to_dict()))["comparisons"]
    assert comparison["higher"] == "second.lm"
    assert comparison["difference"] == pytest.approx((12 - 9) / 24)


def test_text_has_a_table_of_models_and_one_of_pairs_of_models() -> None:
    models, comparisons, notes = report(left_out=2).to_text().split("\n\n")
    assert models.splitlines()[0].split() == ["model", "right", "accuracy", "ties"]
    assert models.splitlines()[2].split()[:5] == ["second.lm", "13", "of", "49", "26.53"]
    assert comparisons.splitlines()[2].split() == ["first.lm", "second.lm", "46.94", "0.00049"]
    assert notes.startswith(
        "49 pairs of 12 documents\n11 of these have fewer than 5 permutations\n"
    )
    assert "left out: 2 without" in notes
    assert notes.endswith("p: two-sided sign-flip test over documents\n")


def test_too_few_documents_have_no_test() -> None:
    content = report(9).to_dict()
    assert content["comparisons"][0]["p"] is None  # type: ignore[index]
    assert "no p documents: it needs 10 documents\n" in report(9).to_text()
