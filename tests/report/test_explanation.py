"""Explanations count what choices say, and show them."""

import json

import pytest

from rerank.formats.trace import Choice
from rerank.report.explanation import Explanation, sentence_text


def choice(document: str, sentence: int, chosen: str, first: str, **added: float | None) -> Choice:
    alone = {"chosen": 0, "text": first, "lead": 0.25}
    texts = {"chosen": chosen, "first": first, "runner_up": "it is not"}
    return Choice(
        document, sentence, "das", 1, 0, texts, {}, added, {"lm": 0.5, "LM0": -0.25}, 0.25, alone
    )


CHOICES = [
    choice("a", 0, "it is lit", "it was lit", lm=0.5, LM0=-0.25),
    choice("a", 1, "it is", "it is", lm=0.0, LM0=0.0),
    choice("b", 0, "she is", "she was", lm=0.25, LM0=1.0),
    choice("b", 2, "no lamp", "lamp", lm=None, LM0=0.5),
]


def test_a_run_is_counted() -> None:
    found = Explanation.of(CHOICES)
    assert (found.documents, found.sentences, found.changed, found.by_context) == (2, 4, 3, 3)
    written = found.to_dict()
    assert written["features"] == {
        "LM0": {"added_most": 2, "mean": pytest.approx(1.25 / 3)},
        "lm": {"added_most": 1, "mean": pytest.approx(0.75 / 3)},
    }
    assert written["words"] == [["was", "is", 2], ["", "no", 1]]
    assert written["shown"] == []
    json.dumps(written, allow_nan=False)
    text = found.to_text()
    assert text.startswith(
        "2 documents, 4 sentences, 3 changed (75.0%); 3 would be another without context\n"
    )
    for row in ("LM0 2 66.7% +0.417", "lm 1 33.3% +0.250", "was is 2", "(nothing) no 1"):
        assert row.split() in [line.split() for line in text.splitlines()]


def test_of_a_document_the_changed_sentences_are_shown_after_those_before() -> None:
    found = Explanation.of(CHOICES, "b")
    assert (found.documents, found.sentences, found.changed) == (1, 2, 2)
    assert found.shown == [(None, CHOICES[2]), (CHOICES[2], CHOICES[3])]
    assert found.to_text().startswith("1 documents, 2 sentences, 2 changed")
    assert sentence_text(CHOICES[2], CHOICES[3]) in found.to_text()


def test_of_a_sentence_there_is_its_text_alone() -> None:
    found = Explanation.of(CHOICES, "a", 1)
    assert found.to_text() == sentence_text(CHOICES[0], CHOICES[1]) + "\n"
    assert Explanation.of(CHOICES, "a", 7).shown == []


def test_a_sentence_has_its_texts_with_changes_marked_and_what_features_add() -> None:
    assert sentence_text(CHOICES[0], CHOICES[2]).splitlines() == [
        "document b, sentence 0",
        "  source      das",
        "  before      it is lit",
        "  first       she was",
        "  chosen      she [-was-] {+is+}",
        "  runner-up   [-she-] {+it+} is {+not+}   (-0.250)",
        "  no context  she [-is-] {+was+}   (+0.250 there)",
        "  why not the first:",
        "    total  +1.250",
        "    LM0    +1.000",
        "    lm     +0.250",
        "  why not the runner-up:",
        "    total  +0.250",
        "    lm     +0.500",
        "    LM0    -0.250",
    ]


def test_without_scores_in_context_nothing_is_said_of_contexts() -> None:
    texts = {"chosen": "it", "first": "it", "runner_up": None}
    one = Choice("a", 0, None, 0, 0, texts, {}, {"lm": 0.0}, None, None, None)
    found = Explanation.of([one])
    assert found.by_context is None
    assert found.to_text() == "1 documents, 1 sentences, 0 changed (0.0%)\n"
    assert sentence_text(None, one).splitlines()[1:] == [
        "  first       it",
        "  chosen      the same",
    ]
