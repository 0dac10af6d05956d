"""Reference files: lines in, lines out, and what is worth a notice or an error."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.references import (
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
