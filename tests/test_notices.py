"""Notices: each kind once, with its count and its first place; an error under strict."""

import pytest

from rerank.errors import InputError
from rerank.notices import Notices


def test_a_kind_is_reported_once_with_its_count_and_first_place() -> None:
    notices = Notices()
    notices.add("CRLF line ends", source="dev.kbest", line=7)
    notices.add("empty documents", source="dev.docs")
    notices.add("CRLF line ends", source="dev.kbest", line=3, count=11)
    assert notices.lines() == [
        "12 x CRLF line ends, first at dev.kbest:7",
        "1 x empty documents, first at dev.docs",
    ]
    assert [notice.kind for notice in notices] == ["CRLF line ends", "empty documents"]


def test_a_kind_without_a_place_is_reported_without_one() -> None:
    notices = Notices()
    notices.add("nothing to rerank")
    assert notices.lines() == ["1 x nothing to rerank"]


def test_a_kind_about_many_names_is_one_line_with_the_first_of_them() -> None:
    notices = Notices()
    notices.add("constant feature", names=["a", "b"])
    notices.add("constant feature", names=["b", *"cdefg"], source="dev.kbest")
    notices.add("feature without weight", names=["a"], source="w.ini")
    assert notices.lines() == [
        "7 x constant feature: a, b, c, d, e, …",
        "1 x feature without weight: a, first at w.ini",
    ]
    with pytest.raises(InputError, match=r"^constant feature: a, b \(an error under --strict\)$"):
        Notices(strict=True).add("constant feature", names=["a", "b"])


def test_nothing_odd_gives_nothing_to_say() -> None:
    notices = Notices()
    assert not [*notices, *notices.lines()]


def test_the_first_of_them_is_an_error_under_strict() -> None:
    with pytest.raises(
        InputError, match=r"^dev\.kbest:7: CRLF line ends \(an error under --strict\)$"
    ):
        Notices(strict=True).add("CRLF line ends", source="dev.kbest", line=7, count=2)
