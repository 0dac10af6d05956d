"""Outputs of several systems: which files give them, in which form, and what is refused."""

import os
from pathlib import Path

import pytest

from rerank.corpus.documents import Documents
from rerank.corpus.systems import documents_of_systems, read_outputs
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS

DOCUMENTS = Documents(("d1", "d2"), (0, 2, 3))
XML = """<dataset>
<doc id="d1"><src><seg id="1">i</seg><seg id="2">ii</seg></src>
<hyp system="X-1"><seg id="1">1</seg><seg id="2">2</seg></hyp>
<hyp system="X/1"><seg id="2">II</seg></hyp></doc>
<doc id="d2"><src><seg id="1">iii</seg></src>
<hyp system="X-1"><seg id="1">3</seg></hyp><hyp system="X/1"><seg id="1">III</seg></hyp></doc>
</dataset>"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two plain texts, one of them without a last line end, and XML."""
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("one\n  two  words \n\n")
    Path("b").write_text("uno\ndos\ntres")
    Path("t.xml").write_text(XML)
    return tmp_path


def test_plain_texts_are_read_a_document_at_a_time_with_single_blanks() -> None:
    found = read_outputs([("A", "a"), ("B", "b")], DOCUMENTS, Notices())
    assert (found.names, found.texts) == (("A", "B"), ("a", "b"))
    documents = found.read(Notices())
    assert next(documents) == [[b"one", b"uno"], [b"two words", b"dos"]]
    assert list(documents) == [[[b"", b"tres"]]]


def test_all_systems_of_xml_are_read_and_a_missing_segment_is_no_output() -> None:
    notices = Notices()
    found = read_outputs([("A", "a"), (ALL_SYSTEMS, "t.xml")], DOCUMENTS, notices)
    assert found.names == ("A", "X-1", "X/1")
    assert list(found.read(Notices())) == [
        [[b"one", b"1", None], [b"two words", b"2", b"II"]],
        [[b"", b"3", b"III"]],
    ]
    kind = "segment without translation, for which the system has no candidate"
    assert notices.lines() == [f"1 x {kind}, first at t.xml#X/1"]


def test_one_system_of_xml_is_chosen_by_name() -> None:
    given = [("A", "t.xml#X/1"), (ALL_SYSTEMS, "t.xml#X-1")]
    found = read_outputs(given, DOCUMENTS, Notices())
    assert found.names == ("A", "X-1")
    assert next(found.read(Notices())) == [[None, b"1"], [b"II", b"2"]]


def test_labels_are_of_letters_and_digits_and_all_different() -> None:
    found = read_outputs([(ALL_SYSTEMS, "t.xml"), ("é 4", "a")], DOCUMENTS, Notices())
    assert found.labels == ("sysX1", "sysX12", "sys4")


def test_documents_are_those_of_the_first_file_that_states_any() -> None:
    found = documents_of_systems([("A", "a"), (ALL_SYSTEMS, "t.xml")], Notices())
    assert found == Documents(("d1", "d2"), (0, 2, 3), segments=("1", "2", "1"))
    assert documents_of_systems([("A", "a"), ("B", "b")], Notices()) is None


def test_lines_of_documents_that_alternate_are_put_in_order() -> None:
    documents = Documents.from_lines([b"x", b"y", b"x"], interleaved=True)
    found = read_outputs([("A", "a"), ("B", "b")], documents, Notices())
    assert list(found.read(Notices())) == [
        [[b"one", b"uno"], [b"", b"tres"]],
        [[b"two words", b"dos"]],
    ]


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ([("A", "a")], UsageError, "expected two systems or more, found A; there is nothing"),
        ([("A", "a"), ("A", "b")], UsageError, "two systems are named 'A'; give one of them"),
        ([("X-1", "a"), (ALL_SYSTEMS, "t.xml")], UsageError, "two systems are named 'X-1'"),
        ([("A", "a"), ("B", "short")], InputError, "short: expected 3 lines .* found 2"),
        ([("A", "a"), ("B", "none")], UsageError, "none"),
        ([("A", "a"), ("B", "t.xml")], UsageError, "expected one system, found 2; give t.xml#X-1"),
        ([("A", "a"), (ALL_SYSTEMS, "b")], InputError, "b: expected outputs .* give NAME=FILE"),
        ([("A", "a"), (ALL_SYSTEMS, "none")], UsageError, "none"),
        ([("A", "a"), ("B", "t.xml#Z")], InputError, "expected the system 'Z', found"),
    ],
    ids=["one", "twice", "as-xml", "short", "missing", "several", "plain", "gone", "unknown"],
)
def test_faults_are_refused_with_a_cure(
    given: list[tuple[str, str]], kind: type[Exception], message: str
) -> None:
    Path("short").write_text("uno\ndos\n")
    with pytest.raises(kind, match=message):
        read_outputs(given, DOCUMENTS, Notices())


def test_a_system_without_any_output_of_a_document_is_refused() -> None:
    Path("t.xml").write_text(XML.replace('<hyp system="X/1"><seg id="2">II</seg></hyp>', ""))
    os.utime("t.xml", (1, 1))
    told = "t.xml#X/1: expected outputs for all documents, found none for 'd1'; leave the system"
    with pytest.raises(InputError, match=told):
        read_outputs([(ALL_SYSTEMS, "t.xml")], DOCUMENTS, Notices())
