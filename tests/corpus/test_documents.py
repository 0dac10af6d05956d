"""Document boundaries. itertools.groupby over the lines is the truth."""

from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.notices import Notices

DATA = Path(__file__).parents[2].parent / "shared" / "data"

ids = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8).filter(
    lambda name: name.strip(" \t\r") == name
)


@given(st.dictionaries(ids, st.integers(1, 4), min_size=1, max_size=6))
def test_documents_read_back_from_a_line_per_sentence(sizes: dict[str, int]) -> None:
    lines = [name.encode() for name, size in sizes.items() for _ in range(size)]
    documents = Documents.from_lines(lines)
    assert documents.ids == tuple(sizes)
    assert [stop - start for start, stop in map(documents.span, range(len(documents)))] == list(
        sizes.values()
    )
    assert documents.n_lines == len(lines)


@given(st.lists(st.sampled_from([b"a", b" a ", b"b", b"c\r", b"", b"\x00"]), max_size=8))
def test_any_lines_are_documents_or_an_input_error(lines: list[bytes]) -> None:
    names = [line.strip() for line in lines]
    runs = [name for name, _ in groupby(names)]
    if names and all(names) and len(set(runs)) == len(runs):
        assert Documents.from_lines(lines).ids == tuple(name.decode() for name in runs)
    else:
        with pytest.raises(InputError):
            Documents.from_lines(lines)


@pytest.mark.parametrize(
    "name", ["a/b", "..", "../../etc", "<script>", "=cmd()", "\x00", "x" * 5000, "a b", "#"]
)
def test_an_id_is_a_label_whatever_it_looks_like(name: str) -> None:
    assert Documents.from_lines([name.encode()]).ids == (name,)


def test_a_document_that_resumes_is_refused_with_both_places() -> None:
    with pytest.raises(InputError, match=r"dev.docs:5: .*'b', which began on line 2, continues"):
        Documents.from_lines([b"a", b"b", b"b", b"c", b"b"], source="dev.docs")


def test_an_endless_id_is_cut_in_messages() -> None:
    with pytest.raises(InputError) as caught:
        Documents.from_lines([b"x" * 5000, b"b", b"x" * 5000])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "one document id per source line, found none"),
        ([b"a", b" "], "dev.docs:2: expected a document id, found a blank line"),
    ],
)
def test_lines_without_ids_are_refused(lines: list[bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Documents.from_lines(lines, source="dev.docs")


def test_lines_may_be_documents_each_or_together() -> None:
    assert Documents.each(3) == Documents(("0", "1", "2"), (0, 1, 2, 3))
    assert Documents.one(3) == Documents(("all",), (0, 3))


@pytest.mark.parametrize(
    ("ids", "starts"),
    [((), ()), (("a",), (0,)), (("a",), (1, 2)), (("a", "b"), (0, 2, 1)), (("a", "a"), (0, 1, 2))],
)
def test_documents_that_are_none_cannot_be_made(
    ids: tuple[str, ...], starts: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="expected"):
        Documents(ids, starts)


def test_options_choose_a_file_each_line_or_all_lines(tmp_path: Path) -> None:
    file = tmp_path / "docs"
    file.write_text("a\na\nb\n")
    assert Documents.chosen(file, None, int, Notices()) == Documents(("a", "b"), (0, 2, 3))
    assert Documents.chosen(None, "each", lambda: 3, Notices()) == Documents.each(3)
    assert Documents.chosen(None, "one", lambda: 3, Notices()) == Documents.one(3)


@pytest.mark.parametrize(("docs", "no_docs"), [(None, None), ("docs", "each"), (None, "all")])
def test_no_document_information_names_three_cures(docs: str | None, no_docs: str | None) -> None:
    with pytest.raises(UsageError, match=r"--docs FILE.*--no-docs each.*--no-docs one"):
        Documents.chosen(docs, no_docs, lambda: 3, Notices())


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
def test_talks_are_documents() -> None:
    documents = Documents.from_file(DATA / "ted-zh-en" / "dev2010.docids", Notices())
    assert (len(documents), documents.n_lines) == (8, 887)


def test_lines_are_split_as_the_documents_are() -> None:
    documents = Documents(("a", "b", "c"), (0, 2, 2, 3))
    assert documents.split("xyz") == ["xy", "", "z"]


def test_many_document_ids_are_read_as_far_as_they_can_be_needed(tmp_path: Path) -> None:
    path, asked = tmp_path / "docs", list[int]()

    def most(n: int) -> int:
        asked.append(n)
        return n

    path.write_text("a\n" * 65_536, encoding="utf-8")
    assert Documents.from_file(path, Notices(), most=lambda: most(1)).n_lines == 65_536
    assert asked == []  # not so many that it matters
    path.write_text("a\n" * 70_000, encoding="utf-8")
    for n in (70_000, 70_001):
        assert Documents.from_file(path, Notices(), most=partial(most, n)).n_lines == 70_000
    with pytest.raises(InputError, match=r"docs:70000: expected at most 69,999 document ids"):
        Documents.from_file(path, Notices(), most=lambda: most(69_999))
    assert asked == [70_000, 70_001, 69_999]


def test_long_documents_are_read_in_pieces_that_end_where_they_end() -> None:
    documents = Documents(("a", "b", "c"), (0, 5, 7, 7))
    pieces = documents.in_pieces(2)
    assert pieces.starts == (0, 2, 4, 5, 7, 7)
    assert len(set(pieces.ids)) == len(pieces) == 5
