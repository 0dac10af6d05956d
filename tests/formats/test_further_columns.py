"""Columns beside text, features and total; the form is that of Moses' OutputNBest."""

import pytest

from rerank.formats import moses_grammar as grammar
from rerank.formats.further_columns import (
    OTHER,
    WORD_SCORES,
    as_moses_writes,
    further_columns,
    with_columns,
)
from rerank.notices import Notices

MARIAN = b"0 ||| a b ||| 0-0 1-1 ||| WordScores= -0.2 -0.1 ||| F0=-0.6 F1= 2 ||| -0.3"
MOSES = b"0 ||| a b  ||| LM0= -3 TM0= 1e+06 2 t_x= 1  ||| -1.5 ||| 0=0 1=1 ||| 0-0 1-1 "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (MARIAN, b"0 ||| a b ||| F0= -0.6 F1= 2 ||| -0.3 ||| 0-0 1-1"),
        (b"0 ||| a ||| F0=-0.6 ||| 1", b"0 ||| a ||| F0= -0.6 ||| 1"),
        (b"0 ||| a ||| F0=+1E+5 ||| 1", b"0 ||| a ||| F0= 1e5 ||| 1"),
        (b"0 ||| a ||| F0= -1 WordScores= -1 -2 ||| 1", b"0 ||| a ||| F0= -1 ||| 1"),
        (b"0|||a|||lm=1|||2|||0-0", b"0 ||| a ||| lm= 1 ||| 2 ||| 0-0"),
        (b"0 ||| a |||  ||| F0=1 ||| 1", b"0 ||| a ||| F0= 1 ||| 1 ||| "),
        (b"0 ||| a ||| 0-0 ||| F0=1", b"0 ||| a ||| F0= 1"),
    ],
)
def test_dialects_are_written_as_moses_writes(line: bytes, expected: bytes) -> None:
    found = as_moses_writes(line, Notices())
    assert found == expected
    assert as_moses_writes(found, Notices()) == found
    before, after = (grammar.parse(one, grammar.layout(one)) for one in (line, found))
    assert (before.dense, before.sparse, before.total) == (after.dense, after.sparse, after.total)


@pytest.mark.parametrize(
    "line",
    [
        MOSES,
        b"0 ||| a ||| LM0= 1",
        b"0 ||| a ||| 1 -2 ||| 3",
        b"0||| a  ||| lm: -3 tm: 1 2 ||| 1",
        b"0 ||| a ||| b ||| F0=1 ||| 2",
    ],
    ids=["all columns", "no total", "no labels", "old labels", "bars in the text"],
)
def test_other_lines_stay_as_they_are(line: bytes) -> None:
    assert as_moses_writes(line, Notices()) == line


def test_what_is_left_out_is_counted() -> None:
    notices = Notices()
    as_moses_writes(MARIAN, notices, source="f")
    further_columns(b"0 ||| a ||| LM0= 1 ||| 2 ||| (S x)", notices, source="f")
    assert notices.lines() == [f"1 x {WORD_SCORES}, first at f", f"1 x {OTHER}, first at f"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (MARIAN, {"alignment": "0-0 1-1", "word_scores": "-0.2 -0.1"}),
        (MOSES, {"segmentation": "0=0 1=1", "alignment": "0-0 1-1"}),
        (b"0 ||| a ||| F0= -1 WordScores= -1 -2 ||| 1", {"word_scores": "-1 -2"}),
        (b"0 ||| a ||| b ||| F0= 1 ||| 2", {}),
        (b"0 ||| a ||| F0= 1 ||| 2 ||| ", {"alignment": ""}),
    ],
    ids=["marian", "moses", "word scores among features", "bars in the text", "no point"],
)
def test_columns_have_keys(line: bytes, expected: dict[str, str]) -> None:
    assert further_columns(line, Notices()) == expected


def test_columns_are_written_after_the_total_in_the_order_of_moses() -> None:
    line = b"0 ||| a ||| F0= 1 ||| 2"
    columns = {"alignment": "0-0", "segmentation": "0=0", "word_scores": "1", "other": 3}
    assert with_columns(line, columns) == line + b" ||| 0=0 ||| 0-0"
    assert with_columns(line, {"alignment": "a ||| b", "segmentation": None}) == line
