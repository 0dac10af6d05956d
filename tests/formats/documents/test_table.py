"""The table of document formats: recognition by content, and what the user says of a file."""

import gzip
import os
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.formats.documents.docids import Docids
from rerank.formats.documents.table import DocumentFile, read_documents, read_texts
from rerank.notices import Notices

XML = b'<dataset>\n<doc id="d"><src>\n<seg id="1">\xc2\xa0a</seg></src></doc></dataset>\n'


class Numbered(Docids):
    """Ids `name_1`, `name_2`, … as another package might read them."""

    name = "numbered"

    def detect(self, head: list[bytes]) -> bool:  # type: ignore[override]
        return all(line.rpartition(b"_")[2].isdigit() for line in head)


@pytest.mark.parametrize(
    ("content", "ids", "starts"),
    [
        (b"a\na\nb\n", ("a", "b"), (0, 2, 3)),
        (b"3\n3\n4\n", ("3", "4"), (0, 2, 3)),  # numbers alone are ids
        (b"a 2\nb 1\n", ("a", "b"), (0, 2, 3)),
        (b"a 0 2\nb 2 3\n", ("a", "b"), (0, 2, 3)),
        (b"it is\nlit .\n\nshe left .\n", ("1", "2"), (0, 2, 3)),
        (b"it is\nlit .\n=\nshe left .\n", ("1", "2"), (0, 2, 3)),
        (b'{"doc": "a"}\n{"doc": "a"}\n{"doc": "b"}\n', ("a", "b"), (0, 2, 3)),
        (b"<script>\n<script>\n=cmd()\n", ("<script>", "=cmd()"), (0, 2, 3)),
    ],
)
def test_a_format_is_recognised_by_content(
    content: bytes, ids: tuple[str, ...], starts: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "docs.gz"
    path.write_bytes(gzip.compress(content))
    assert read_documents(path, Notices()).documents == Documents(ids, starts)


def test_a_format_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "docs"
    path.write_text("3\n1\n")
    chosen = DocumentFile(path, "sizes")
    assert Documents.from_file(chosen, Notices()) == Documents(("1", "2"), (0, 3, 4))
    assert (os.fspath(chosen), str(chosen)) == (str(path), str(path))
    with pytest.raises(UsageError, match="no document format 'size'; did you mean sizes"):
        read_documents(DocumentFile(path, "size"), Notices())
    with pytest.raises(UsageError, match="--docs-field 1: the format sizes has no fields"):
        read_documents(DocumentFile(path, "sizes", "1"), Notices())


def test_another_package_brings_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point(EntryPoint):
        def load(self) -> object:
            return Numbered

    point = Point("numbered", "somebody:Numbered", "rerank.document_formats")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    (tmp_path / "docs").write_text("a_1\na_2\n")
    assert read_documents(tmp_path / "docs", Notices()).documents.ids == ("a_1", "a_2")
    assert read_documents(DocumentFile(tmp_path / "docs", "numbered"), Notices())


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_of_nothing_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "docs").write_bytes(content)
    with pytest.raises(InputError, match=r"docs(:1)?: expected (one|a) document id"):
        read_documents(tmp_path / "docs", Notices())


@pytest.mark.parametrize("content", [b"a\0b\n", b"<dataset>\n\0", b"\xff\xfea\0"])
def test_bytes_that_are_no_text_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "docs").write_bytes(content)
    with pytest.raises(InputError, match=r"docs:\d: expected"):
        read_documents(tmp_path / "docs", Notices())


def test_a_file_that_is_read_again_warns_once_in_a_run_and_in_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(XML)
    for _ in range(2):
        notices = Notices()
        first, second = (read_texts(path, notices) for _ in range(2))
        assert first is second
        assert notices.lines() == [
            "1 x no-break space U+00A0, kept; words are split on ASCII space only, first at "
            f"{path}:3"
        ]
    path.write_bytes(XML.replace(b'"d"', b'"longer"'))
    found = read_texts(path, Notices())
    assert found is not None
    assert found.documents.ids == ("longer",)


@pytest.mark.parametrize(
    "content", [b"a text\n", b"<b> bold\n", b"{ a brace\n", b'{"a": 1}\n', b""]
)
def test_a_plain_text_has_no_texts_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    assert read_texts(tmp_path / "text", Notices()) is None


def test_standard_input_is_a_plain_text() -> None:
    assert read_texts("-", Notices()) is None
