"""Spelling of characters: escapes of Moses and Unicode forms on one side only."""

import pytest

from rerank.corpus.spelling import Spelling, note_differences, note_spelling
from rerank.notices import Notices


@pytest.mark.parametrize("escape", [b"&apos;", b"&quot;", b"&amp;", b"&lt;", b"&#124;", b"&#91;"])
def test_escapes_on_one_side_only_are_named_with_the_cure(escape: bytes) -> None:
    plain, escaped = [b"it 's", b"& ;"], [b"a", b"it " + escape + b" s " + escape]
    for hypotheses, references, side in (
        (escaped, plain, "hypotheses"),
        (plain, escaped, "references"),
    ):
        notices = Notices()
        note_differences(hypotheses, references, notices, source="dev.kbest")
        (text,) = notices.lines()
        assert f"1 x mixed escaping: {side} contain {escape.decode()} and similar" in text
        assert f"unescape the {side} with Moses' deescape-special-chars.perl" in text


@pytest.mark.parametrize("line", [b"it 's", b"it &apos;s", b"&nbsp;"])
def test_escapes_on_both_sides_or_none_are_fine(line: bytes) -> None:
    notices = Notices()
    note_differences([line, b"a"], [b"b", line], notices)
    assert notices.lines() == []


@pytest.mark.parametrize(
    ("hypotheses", "references", "sides"),
    [
        ([b"it &apos;s", b"&quot;"], [b"it 's", b"&quot;"], ["hypotheses"]),
        ([b"it 's", b"&quot;"], [b"it &apos;s", b"&quot;"], ["references"]),
        ([b"it &apos;s '"], [b"it 's &quot;"], ["hypotheses"]),
        ([b"it &apos;s", b"a & b"], [b"it 's", b"a &amp; b"], ["hypotheses", "references"]),
        ([b"it &apos;s", b"&quot;"], [b"a", b"&quot;"], []),
        ([b"&amp; &apos;"], [b"&apos; &lt;"], []),
        ([b"&apos; '"], [b"' &apos;"], []),
    ],
)
def test_a_character_that_only_one_side_escapes_is_named_where_both_have_escapes(
    hypotheses: list[bytes], references: list[bytes], sides: list[str]
) -> None:
    notices = Notices()
    note_differences(hypotheses, references, notices)
    assert [text.split()[4] for text in notices.lines()] == sides


def test_lines_that_share_their_escapes_are_not_counted() -> None:
    notices = Notices()
    escaped = [b"&quot;", b"&quot; &apos;", b"&apos;", b"a"]
    note_differences(escaped, [b"it 's", b"&quot;"], notices, source="out")
    (text,) = notices.lines()
    assert text.startswith("2 x mixed escaping: hypotheses contain &apos; and similar")
    assert text.endswith("first at out:2")


DECOMPOSED, COMPOSED = "cafe\u0301".encode(), "café".encode()


def test_the_place_is_the_first_hypothesis_at_fault() -> None:
    for numbers, line in ((None, 2), ([7, 9, 11], 9)):
        notices = Notices()
        hypotheses = [b"a", b"&amp; " + DECOMPOSED, b"&lt;"]
        note_differences(hypotheses, [COMPOSED], notices, source="dev.kbest", numbers=numbers)
        assert [notice.first for notice in notices] == [f"dev.kbest:{line}"] * 2
        assert [notice.count for notice in notices] == [2, 1]


def test_characters_decomposed_on_one_side_only_are_named_with_the_cure() -> None:
    for hypotheses, references, side in (
        ([b"a", DECOMPOSED], [COMPOSED, b"b"], "hypotheses"),
        ([b"a", COMPOSED], [DECOMPOSED, b"b"], "references"),
    ):
        notices = Notices()
        note_differences(hypotheses, references, notices, source="dev.kbest")
        (text,) = notices.lines()
        assert f"1 x {side} in Unicode form NFD" in text
        assert "; give --normalize nfc" in text


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        ([COMPOSED], [COMPOSED]),
        ([DECOMPOSED], [b"a", COMPOSED, DECOMPOSED]),
        ([DECOMPOSED], [b"a"]),
    ],
)
def test_characters_composed_alike_or_on_one_side_only_are_fine(
    hypotheses: list[bytes], references: list[bytes]
) -> None:
    notices = Notices()
    note_differences(hypotheses, references, notices)
    assert notices.lines() == []


def test_a_difference_far_down_in_the_references_needs_no_line_of_the_hypotheses() -> None:
    notices = Notices()
    references = [b"a", b"b", b"c", b"d &amp; e"]
    note_differences([b"a"], references, notices, source="dev.kbest", numbers=[7])
    (line,) = notices.lines()
    assert line.startswith("1 x mixed escaping: references contain &amp; and similar")
    assert line.endswith("first at dev.kbest")


def test_lines_count_however_they_are_divided() -> None:
    lines = [b"it &apos;s", b"&quot; it &apos;s", b"a", b"&apos;", DECOMPOSED]
    notices, found, expected = Notices(), Spelling(), Spelling()
    for number, line in enumerate(lines, 7):
        found.add([line], [number])
    expected.add([b"it 's", COMPOSED])
    note_spelling(found, expected, notices, source="dev.kbest", of_lists=True)
    escapes, form = notices
    assert (escapes.count, escapes.first) == (3, "dev.kbest:7")
    assert escapes.kind.endswith("or write the list with: rerank convert --escape none")
    assert (form.count, form.first) == (1, "dev.kbest:11")
