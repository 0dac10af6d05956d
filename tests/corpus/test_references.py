"""Reference files: lines in, lines out, and what is worth a notice or an error."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.references import (
    note_differences,
    note_identity,
    read_references,
    read_with_documents,
)
from rerank.corpus.translations import check_length, read_translation
from rerank.errors import InputError, UsageError
from rerank.notices import Notices

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def test_each_sentence_has_a_reference_of_each_file(tmp_path: Path) -> None:
    for name, content in (("r0", "a\nb c"), ("r1", "d\ne\n")):
        (tmp_path / name).write_text(content)
    found = read_references([tmp_path / "r0", tmp_path / "r1"], 2, Notices())
    assert found == [[b"a", b"d"], [b"b c", b"e"]]


@given(st.lists(st.binary(max_size=5), max_size=5), st.integers(0, 6))
def test_any_other_number_of_lines_is_an_input_error(lines: list[bytes], n: int) -> None:
    if n == len(lines):
        check_length(lines, n, source="ref")
    else:
        with pytest.raises(InputError, match=f"expected {n} lines .* found {len(lines)}"):
            check_length(lines, n, source="ref")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"a", b"b", b""], "2 lines as the source has, found 3; 1 blank line more .*, remove it"),
        ([b"a", b"b", b"", b" "], "found 4; 2 blank lines more at the end, remove them"),
        ([b"a"], "found 1; line i must translate line i of the source"),
        ([b"a", b"b", b"c"], "found 3; line i must translate line i"),
        ([b"a", b"b", b"c", b""], "found 4; line i must translate line i"),
    ],
)
def test_a_wrong_number_of_lines_says_what_is_extra(lines: list[bytes], message: str) -> None:
    with pytest.raises(InputError, match=f"ref: expected .*{message}"):
        check_length(lines, 2, source="ref")


def test_without_a_number_of_lines_the_first_file_sets_it(tmp_path: Path) -> None:
    for name, content in (("r0", "a\nb\n"), ("r1", "c\n")):
        (tmp_path / name).write_text(content)
    assert read_references([tmp_path / "r0"], None, Notices()) == [[b"a"], [b"b"]]
    with pytest.raises(InputError, match=r"r1: expected 2 lines as .*r0 has, found 1"):
        read_references([tmp_path / "r0", tmp_path / "r1"], None, Notices())


def test_the_document_file_or_else_the_first_reference_says_how_many_sentences_there_are(
    tmp_path: Path,
) -> None:
    docs, ref = tmp_path / "docs", tmp_path / "ref"
    docs.write_text("one\none\ntwo\n")
    ref.write_text("a\nb\nc\n")
    documents, references = read_with_documents(docs, None, [ref], Notices())
    assert (documents.starts, references) == ((0, 2, 3), [[b"a"], [b"b"], [b"c"]])
    assert read_with_documents(None, "each", [ref], Notices())[0].starts == (0, 1, 2, 3)
    for file, no_docs in ((docs, "each"), (None, None)):
        with pytest.raises(UsageError, match="--no-docs one"):
            read_with_documents(file, no_docs, [ref], Notices())
    ref.write_text("a\n")
    with pytest.raises(InputError, match=r"ref: expected 3 lines as .*docs has, found 1"):
        read_with_documents(docs, None, [ref], Notices())


def test_no_file_is_no_reference() -> None:
    with pytest.raises(UsageError, match="expected a reference file"):
        read_references([], 0, Notices())


def test_blank_and_missing_translations_are_counted(tmp_path: Path) -> None:
    notices = Notices()
    lines = [b"a", b" ", b"NO TRANSLATION AVAILABLE", b"", b"NO BEST TRANSLATION "]
    (tmp_path / "ref").write_bytes(b"\n".join(lines) + b"\n")
    assert read_references([tmp_path / "ref"], 5, notices) == [[line] for line in lines]
    assert notices.lines() == [
        f"2 x blank reference, first at {tmp_path / 'ref'}:2",
        f"2 x reference that only says there is no translation, first at {tmp_path / 'ref'}:3",
    ]


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


def test_references_that_differ_in_escaping_are_named(tmp_path: Path) -> None:
    for name, content in (("a", "x\nit &apos;s\n&quot;\n"), ("b", "x\nit 's\ny\n")):
        (tmp_path / name).write_text(content)
    notices = Notices()
    read_references([tmp_path / "b", tmp_path / "a"], 3, notices)
    (text,) = notices.lines()
    assert text.startswith("2 x mixed escaping: this reference contains &apos; and similar")
    assert text.endswith(f"first at {tmp_path / 'a'}:2")
    for both in (["a", "a"], ["b", "b"], ["a"]):
        notices = Notices()
        read_references([tmp_path / name for name in both], 3, notices)
        assert notices.lines() == []


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
        assert f"convert the {side} with: uconv -x any-nfc" in text


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


def test_hypotheses_that_are_a_reference_are_named() -> None:
    notices = Notices()
    note_identity([b"a", b"b"], [[b"x", b"a"], [b"b", b"b"]], notices, source="out")
    assert notices.lines() == ["1 x hypotheses identical to reference 2, first at out"]


@pytest.mark.parametrize("hypotheses", [[b"a"], [b"a", b"c"], []])
def test_other_hypotheses_are_fine(hypotheses: list[bytes]) -> None:
    notices = Notices()
    note_identity(hypotheses, [[b"a"], [b"b"]], notices)
    assert notices.lines() == []


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
def test_three_references_of_a_real_set() -> None:
    paths = [DATA / "tvsub-zh-en" / f"test3ref.en.{r}" for r in range(3)]
    found = read_references(paths, 1154, Notices())
    assert {len(sentence) for sentence in found} == {3}


@pytest.mark.parametrize(
    ("surplus", "message"),
    [
        (b"", None),
        (b"\n", "found 4; 1 blank line more at the end, remove it"),
        (b"a\n" * 999, "found 1002; line i must"),
        (b"\n" * 1000, "found 1003 or more; 1000 blank lines more"),
        (b"a\n" * 99_999, "found 1003 or more; line i must"),
    ],
    ids=["none", "one", "999", "1000", "many"],
)
def test_of_a_translation_that_is_too_long_little_is_read(
    surplus: bytes, message: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "ref"
    path.write_bytes(b"x\n" * 3 + surplus)
    if message is None:
        assert read_translation(path, 3, Notices()) == [b"x"] * 3
        return
    with pytest.raises(InputError, match=f"ref: expected 3 lines as the source has, {message}"):
        read_translation(path, 3, Notices())


def test_a_difference_far_down_in_the_references_needs_no_line_of_the_hypotheses() -> None:
    notices = Notices()
    references = [b"a", b"b", b"c", b"d &amp; e"]
    note_differences([b"a"], references, notices, source="dev.kbest", numbers=[7])
    (line,) = notices.lines()
    assert line.startswith("1 x mixed escaping: references contain &amp; and similar")
    assert line.endswith("first at dev.kbest")
