"""Texts of the sentences of a run, from plain files and from files of several texts."""

from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from rerank.corpus.documents import Documents
from rerank.corpus.references import read_references, read_with_documents
from rerank.corpus.translations import documents_in, files_of, read_systems, read_translation
from rerank.errors import InputError, UsageError
from rerank.notices import Notices

XML = """<dataset>
<doc id="d1">
<src><seg id="1">eins</seg><seg id="2">zwei</seg></src>
<ref translator="A"><seg id="1">one</seg><seg id="2">two</seg></ref>
<ref translator="B"><seg id="1">uno</seg><seg id="2">dos</seg></ref>
<hyp system="X"><seg id="2">2</seg><seg id="1">1</seg></hyp>
<hyp system="Y"><seg id="1">I</seg></hyp>
</doc>
<doc id="d2">
<src><seg id="1">drei</seg></src>
<ref translator="A"><seg id="1">three</seg></ref>
<hyp system="X"><seg id="1">3</seg></hyp>
</doc>
</dataset>
"""
SGML = '<refset refid="r">\n<doc docid="{}"><seg id="1">{}</seg></doc>\n'


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    (tmp_path / "t.xml").write_text(XML)
    return tmp_path / "t.xml"


def test_the_systems_of_a_file_are_had_with_its_documents(xml: Path) -> None:
    """What makes lists of several systems (`--systems`) calls."""
    documents, systems = read_systems(xml, None, Notices())
    assert documents == Documents(("d1", "d2"), (0, 2, 3), segments=("1", "2", "1"))
    assert {name: text.lines for name, text in systems.items()} == {
        "X": [b"1", b"2", b"3"],
        "Y": [b"I", None, None],
    }
    assert systems["Y"].name == f"{xml}#Y"
    chosen = Documents(("d2", "d1"), (0, 1, 3))
    target, systems = read_systems(f"{xml}#X", chosen, Notices())
    assert (target, systems["X"].lines) == (chosen, [b"3", b"1", b"2"])


def test_a_plain_text_has_no_systems(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("x\n")
    with pytest.raises(InputError, match=r"t: expected outputs of systems .*give NAME=FILE for ea"):
        read_systems(tmp_path / "t", None, Notices())


def test_documents_and_references_come_from_one_file(xml: Path) -> None:
    documents, found = read_with_documents(None, None, [f"{xml}#A"], Notices())
    assert documents == documents_in(xml, Notices())
    assert found == [[b"one"], [b"two"], [b"three"]]
    with pytest.raises(UsageError, match=r"--no-docs one: .* says what the documents are"):
        read_with_documents(None, "one", [f"{xml}#A"], Notices())


def test_a_reference_that_lacks_a_sentence_is_refused_or_the_sentence_is_left_out(
    xml: Path,
) -> None:
    message = r"t.xml#B: expected a reference of each of 3 sentences, found none of 1, the first is"
    with pytest.raises(InputError, match=f"{message} segment 1 of document 'd2'; .*--drop-unref"):
        read_with_documents(None, None, [xml], Notices(), drop=False)
    with pytest.raises(InputError, match=f"{message} .* with FILE#NAME$"):
        read_with_documents(None, None, [xml], Notices())  # of commands without the option
    notices = Notices()
    documents, found = read_with_documents(None, None, [xml], notices, drop=True)
    assert documents == Documents(("d1",), (0, 2), (0, 1), 3, ("1", "2"))
    assert found == [[b"one", b"uno"], [b"two", b"dos"]]
    assert notices.lines() == [
        f"1 x sentence without reference, left out (--drop-unreferenced), first at {xml}#B"
    ]
    (xml.parent / "hyp").write_text("x\ny\nz\n")
    assert read_translation(xml.parent / "hyp", documents, Notices()) == [b"x", b"y"]
    assert read_translation(f"{xml}#X", documents, Notices()) == [b"1", b"2"]


def test_sgml_is_matched_by_name_not_by_order(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text("a\nb\n")
    (tmp_path / "ref").write_text(SGML.format("b", "second") + SGML.format("a", "first"))
    found = read_with_documents(tmp_path / "docs", None, [tmp_path / "ref"], Notices())
    assert found == (Documents(("a", "b"), (0, 1, 2)), [[b"first"], [b"second"]])


def test_a_text_parted_as_its_documents_loses_the_blank_lines(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("it is\nlit .\n\nshe left .\n")
    documents, found = read_with_documents(text, None, [text], Notices())
    assert documents == Documents(("1", "2"), (0, 2, 3))
    assert found == [[b"it is"], [b"lit ."], [b"she left ."]]
    text.write_text("it is\n\nlit .\nshe left .\n")
    with pytest.raises(InputError, match="expected 3 lines as the source has, found 4"):
        read_translation(text, documents, Notices())


def test_lines_of_interleaved_documents_are_put_together(tmp_path: Path) -> None:
    documents = Documents.from_lines([b"a", b"b", b"a"], interleaved=True)
    (tmp_path / "text").write_text("1\n2\n3\n")
    assert read_translation(tmp_path / "text", documents, Notices()) == [b"1", b"3", b"2"]
    assert read_references([tmp_path / "text"], documents, Notices()) == [[b"1"], [b"3"], [b"2"]]


def test_one_of_several_texts_must_be_named(xml: Path) -> None:
    documents = documents_in(xml, Notices())
    with pytest.raises(UsageError, match=r"expected one system, found 2; give .*#X, .*#Y"):
        read_translation(xml, documents, Notices())
    (xml.parent / "text").write_text("x\n")
    with pytest.raises(UsageError, match=r"text#Z: #Z chooses a text of WMT XML.*is a plain text"):
        read_translation(f"{xml.parent}/text#Z", 1, Notices())
    assert read_translation(xml, documents, Notices(), role="source") == [b"eins", b"zwei", b"drei"]


def test_a_file_may_have_a_number_sign_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "a#b").write_text("x\n")
    assert read_translation(tmp_path / "a#b", 1, Notices()) == [b"x"]
    (tmp_path / "a#c.xml").write_text(XML)
    assert read_translation(f"{tmp_path}/a#c.xml#X", 3, Notices()) == [b"1", b"2", b"3"]


def test_a_set_of_other_documents_is_refused(xml: Path) -> None:
    other = Documents(("x",), (0, 3), segments=("1", "2", "3"))
    with pytest.raises(InputError, match=r"t.xml#X: expected segments of these documents, found n"):
        read_translation(f"{xml}#X", other, Notices())


def test_a_test_set_of_sacrebleu_is_no_translation() -> None:
    with pytest.raises(UsageError, match="expected a translation, found a test set; give a file"):
        read_translation("sacrebleu:wmt23/ru-en", None, Notices())


def test_files_that_are_read_are_those_without_names_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DATASETS["wmt23"], "_outdir", str(tmp_path))
    for field in ("src", "docid", "ref-refA", "ref-refB"):
        (tmp_path / f"wmt23.ru-en.{field}").write_text("x\n")
    start = f"{tmp_path}/wmt23.ru-en."
    test_set = "sacrebleu:wmt23/ru-en"
    assert files_of(["a.xml#x", "b"], "system") == ["a.xml", "b"]
    assert files_of([test_set], "source") == [f"{start}src"]
    assert files_of([test_set], "documents") == [f"{start}docid"]
    assert files_of([test_set], "reference") == [f"{start}ref-refA", f"{start}ref-refB"]
    assert files_of([f"{test_set}#refB"], "reference") == [f"{start}ref-refB"]
