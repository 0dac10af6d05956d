"""Classes of words in an evaluation: sums over sentences, p over documents, and their table."""

import csv
import itertools
import json
from io import StringIO

import pytest
from support.evaluations import DOCUMENTS, N, encoded, evaluated

from rerank.metrics.bleu import Bleu
from rerank.metrics.word_classes import ListedWords
from rerank.report.evaluation import Evaluation
from rerank.report.word_classes import with_word_classes

CLASSES = [ListedWords("ab", frozenset("ab")), ListedWords("never", frozenset({"z"}))]
REFERENCES, SYSTEMS, PLAIN = evaluated()


def with_classes() -> Evaluation:
    targets = [[line.encode()] for line in REFERENCES[0]]
    texts = [encoded(f"system.{i}", lines) for i, lines in enumerate(SYSTEMS)]
    return with_word_classes(PLAIN, DOCUMENTS, targets, texts, classes=CLASSES, split=Bleu().split)


def row(hypothesis: str, reference: str) -> list[int]:
    """Matches and counts of the words a and b, from their definition."""
    ours, theirs = ([text.split().count(word) for word in "ab"] for text in (hypothesis, reference))
    return [sum(map(min, ours, theirs)), sum(ours), sum(theirs)]


def f1(rows: list[list[int]]) -> float:
    matches, ours, theirs = (sum(column) for column in zip(*rows, strict=True))
    return float(200 * matches / (ours + theirs))


def test_scores_are_of_the_sums_and_p_is_that_of_all_swaps_of_documents() -> None:
    both = [[row(h, r) for h, r in zip(text, REFERENCES[0], strict=True)] for text in SYSTEMS]
    first, second = (system.word_classes["ab"] for system in with_classes().systems)
    for rows, found in zip(both, (first, second), strict=True):
        matches, ours, theirs = (sum(column) for column in zip(*rows, strict=True))
        assert (found.words, found.reference_words) == (ours, theirs)
        assert found.precision == pytest.approx(100 * matches / ours)
        assert found.recall == pytest.approx(100 * matches / theirs)
        assert found.f1.score == pytest.approx(f1(rows), rel=1e-12)
    base, ours_by_document = (
        [[sum(c) for c in zip(*rows[d : d + 3], strict=True)] for d in range(0, N, 3)]
        for rows in both
    )
    observed = abs(f1(ours_by_document) - f1(base))
    as_far = 0
    for swaps in itertools.product((False, True), repeat=12):
        pairs = zip(swaps, base, ours_by_document, strict=True)
        ours, theirs = zip(*((b, o) if swap else (o, b) for swap, b, o in pairs), strict=True)
        as_far += abs(f1([*ours]) - f1([*theirs])) >= observed * (1 - 1e-12)
    assert second.f1.p_value == as_far / 2**12
    assert second.f1.difference == second.f1.score - first.f1.score


def test_a_class_without_words_in_the_references_is_left_out_by_name() -> None:
    found = with_classes()
    assert found.absent_word_classes == ("never",)
    assert all(list(system.word_classes) == ["ab"] for system in found.systems)
    assert "\nwithout a word in the references, and left out: never\n" in found.to_text()


def test_the_classes_are_a_table_of_their_own_and_columns_of_the_tsv() -> None:
    found = with_classes()
    own = found.systems[1].word_classes["ab"]
    (line,) = (
        line for line in found.to_text().splitlines() if line.startswith("ab       system.1")
    )
    assert line.split()[2] == f"{own.words:,}/{own.reference_words:,}"
    shown = [f"{own.precision:.2f}", f"{own.recall:.2f}", f"{own.f1.score:.2f}"]
    assert line.split()[3:6] == shown
    assert line.split()[9] == f"{own.f1.difference:+.2f}"
    assert found.to_text().startswith(PLAIN.to_text().partition("\n\nBLEU: ")[0])
    _, second = found.to_markdown().split("\n\n")
    assert second.splitlines()[0].split("|")[3].strip() == "number/in references"
    rows = list(csv.DictReader(StringIO(found.to_tsv()), delimiter="\t"))
    assert float(rows[1]["ab_f1"]) == own.f1.score
    loaded = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert loaded["systems"][1]["word_classes"]["ab"]["f1"]["score"] == own.f1.score
    assert loaded["absent_word_classes"] == ["never"]


def test_an_output_without_a_word_of_the_class_has_no_precision() -> None:
    texts = [encoded("a", ["c"] * N), encoded("b", REFERENCES[0])]
    targets = [[line.encode()] for line in REFERENCES[0]]
    found = with_word_classes(PLAIN, DOCUMENTS, targets, texts, classes=CLASSES, split=Bleu().split)
    none, full = (system.word_classes["ab"] for system in found.systems)
    assert (none.precision, none.recall, none.f1.score) == (None, 0, 0)
    assert (full.precision, full.recall, full.f1.score) == (100, 100, 100)
    assert found.to_text()
