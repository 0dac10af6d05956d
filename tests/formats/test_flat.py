"""Flat text with its scores in a file beside."""

import pytest
from support.reading import features, rows_of, texts

from rerank.errors import InputError, UsageError
from rerank.formats.flat import Flat
from rerank.notices import Notices

TEXT = "a\nb\nc ||| d\n\n"
SCORES = [b"1\t-2", b"3 -4", b"5 -6", b""]


def flat(k: int = 2, scores: list[bytes] | None = None) -> Flat:
    return Flat().configured(k, SCORES if scores is None else scores, "s")


def test_k_lines_are_a_sentence_and_blank_ones_fill_up() -> None:
    notices = Notices()
    rows = rows_of(flat(), TEXT, notices=notices)
    assert texts(rows) == ["a", "b", "c ||| d"]
    assert rows.sentences.tolist() == [0, 0, 1]
    assert features(rows) == {"F0": [1, 3, 5], "F1": [-2, -4, -6]}
    assert notices.lines() == ["1 x blank line that fills up a list, skipped, first at f:4"]


def test_an_empty_hypothesis_with_scores_is_one() -> None:
    assert texts(rows_of(flat(scores=[*SCORES[:3], b"7 8"]), TEXT)) == ["a", "b", "c ||| d", ""]


def test_scores_are_optional() -> None:
    rows = rows_of(Flat().configured(2, None, ""), "a\nb\n")
    assert (texts(rows), rows.labels) == (["a", "b"], ())


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (flat(3), "^f:4: expected 3 lines for each sentence, found 4 lines, 1 of the last"),
        (flat(scores=SCORES[:3]), "^s:3: expected a line of scores .*found 3 lines and more in f"),
        (flat(scores=[*SCORES, b"1"]), "^s:4: .*found 4 lines and more in s"),
        (flat(scores=[b"1 x", *SCORES[1:]]), "^s:1: expected a decimal number"),
        (flat(scores=[b"1", *SCORES[1:]]), "^f:2: expected 1 feature values"),
    ],
    ids=["k", "fewer", "more", "number", "columns"],
)
def test_faults_are_said_with_their_line(known: Flat, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(known, TEXT)


def test_k_is_needed() -> None:
    with pytest.raises(UsageError, match="--kbest-format flat: expected flat:K"):
        Flat().configured(None, None, "")
