"""Alignment columns of Moses and Marian, read from lines."""

import pytest
from support.lists import kbest_of_lines

from rerank.errors import InputError
from rerank.scorers.alignments import translations

SOURCE = b"le petit chat dort".split()


def pairs(columns: str, text: str = "the small cat sleeps") -> list[tuple[str, str]] | None:
    kbest = kbest_of_lines([f"0 ||| {text} ||| LM0= 0 ||| -1.5{columns}"], 1)
    found = translations(kbest, 0, SOURCE)
    return None if found is None else [(a.decode(), b.decode()) for a, b in found]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            " ||| 0-0 1-1 2-2 2-1",
            [("le", "the"), ("petit", "small"), ("chat", "small cat")],
        ),
        (" ||| 0-1=0-1 2-3=2-3", [("le petit", "the small"), ("chat dort", "cat sleeps")]),
        (" ||| 3=0 ||| 0-0", [("le", "the")]),  # words where there are both
        ("", None),
        (" ||| ", None),
        (" ||| -1.5 ||| 7", None),
    ],
)
def test_words_and_phrases_are_paired(columns: str, expected: object) -> None:
    assert pairs(columns) == expected


def test_marians_alignments_stand_before_the_features() -> None:
    kbest = kbest_of_lines(["0 ||| the cat ||| 0-0 2-1 ||| F0= -1 ||| -1"], 1)
    assert translations(kbest, 0, SOURCE) == [(b"le", b"the"), (b"chat", b"cat")]


@pytest.mark.parametrize("column", ["4-0", "0-4", "0-4=0", "0=2-4", "9=0"])
def test_positions_outside_the_sentences_are_refused(column: str) -> None:
    with pytest.raises(InputError, match=r"dev\.kbest:1: .* 4 words and a hypothesis of 4"):
        pairs(f" ||| {column}")
