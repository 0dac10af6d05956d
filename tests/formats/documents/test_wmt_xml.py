"""WMT XML: golden files of its traps, sets made by ElementTree, and sacrebleu's reading."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset.wmt_xml import WMTXMLDataset

from rerank.corpus.documents import Documents
from rerank.corpus.evaluation_set import EvaluationSet
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.formats.documents import table
from rerank.formats.documents.table import PLAIN
from rerank.formats.documents.wmt_xml import WmtXml
from rerank.notices import Notices

DATA = Path(__file__).parents[3].parent / "shared" / "data"
WMT23 = DATA / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
XML = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="t">
 <collection id="general">
  <doc id="d1" origlang="ru">
   <src lang="ru">
    <p><seg id="10">zehn</seg></p>
    <p><seg id="2">zwei &amp; &#228;</seg></p>
   </src>
   <ref lang="en" translator="A"><p><seg id="2">two</seg><seg id="10">ten</seg></p></ref>
   <ref lang="en" translator="B"><p><seg id="2">a pair</seg></p></ref>
   <hyp lang="en" system="X"><p><seg id="2">  two
      lines </seg><seg id="10"/></p></hyp>
   <hyp lang="en" system="Y"><p><seg id="10">10</seg><seg id="11">11</seg></p></hyp>
   <supplemental type="note"><p><seg id="1">no text</seg></p></supplemental>
  </doc>
 </collection>
 <collection id="tests">
  <doc id="d1" origlang="ru" testsuite="s"><src lang="ru"><p><seg id="1">eins</seg></p></src></doc>
 </collection>
</dataset>
"""


def read(text: str, notices: Notices | None = None) -> EvaluationSet:
    lines = text.encode().split(b"\n")
    assert WmtXml().detect(lines)
    return WmtXml().read(iter(lines), notices or Notices(), source="t.xml", choices=PLAIN)


def test_collections_references_and_systems_are_read_at_once() -> None:
    notices = Notices()
    found = read(XML, notices)
    # segments by number; the id of a second collection tells which one it is
    assert found.documents == Documents(("d1", "tests/d1"), (0, 2, 3), segments=("2", "10", "1"))
    assert found.text("source") == {"": ["zwei & ä".encode(), b"zehn", b"eins"]}
    assert found.text("reference") == {"A": [b"two", b"ten", None], "B": [b"a pair", None, None]}
    assert found.text("system") == {"X": [b"two lines", b"", None], "Y": [None, b"10", None]}
    assert notices.lines() == [
        "1 x segment that the source does not have, left out, first at t.xml"
    ]


sentences = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1), min_size=1
)


@given(st.lists(sentences, min_size=1))
def test_sets_read_back(documents: list[list[str]]) -> None:
    root = ElementTree.Element("dataset")
    for d, lines in enumerate(documents):
        doc = ElementTree.SubElement(root, "doc", id=f"d{d}")
        for tag, given_name in (("src", {}), ("hyp", {"system": "X"})):
            side = ElementTree.SubElement(doc, tag, given_name)
            for n, line in enumerate(lines, 1):
                ElementTree.SubElement(side, "seg", id=str(n)).text = line
    found = read(ElementTree.tostring(root, encoding="unicode"))
    flat = [line.encode() for lines in documents for line in lines]
    assert found.text("source") == {"": flat}
    assert found.text("system") == {"X": flat}
    assert len(found.documents) == len(documents)


BOMB = '<!DOCTYPE lolz [\n<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">\n]>\n<dataset>&b;</dataset>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"t.xml:[1-4]: .*entities are not allowed: remove the <!DOCTYPE …>"),
        ('<!DOCTYPE d SYSTEM "file:///etc/passwd">\n<dataset/>', "t.xml:1: .*entities are not al"),
        ('<dataset>\n<doc id="d">\n</dataset>', "t.xml:3: expected valid XML, .*mismatched tag"),
        ('<dataset>\n<doc id="d">&x;</doc>', "t.xml:2: expected valid XML, .*undefined entity"),
        ("<dataset>\n", "t.xml:[12]: expected valid XML, .*no element found"),
        ("<dataset>\n" + "<p>" * 60, "t.xml:2: .*found too deep a nesting"),
        ("<?xml version='1.0'?>\n<rss><dataset/></rss>", "t.xml:2: expected <dataset>.*<rss>"),
        ("<dataset>\n<doc/></dataset>", "t.xml:2: expected an id of the document, found none"),
        (
            '<dataset><doc id="d"/>\n<doc id="d"/></dataset>',
            "t.xml:2: expected each document once .*found 'd' again, which began on line 1",
        ),
        (
            '<dataset><doc id="d"><src>\n<seg id="x">a</seg></src></doc></dataset>',
            "t.xml:2: expected a number from 1 as id of a segment, found 'x'",
        ),
        (
            '<dataset><doc id="d"><src><seg id="1"/>\n<seg id="1"/></src></doc></dataset>',
            "t.xml:2: expected one segment '1' of document 'd' in source",
        ),
        ("<dataset/>", "t.xml: expected segments of documents, found none"),
    ],
)
def test_faults_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_a_segment_without_end_is_refused_before_it_fills_memory() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        yield b'<dataset><doc id="d"><src><seg id="1">'
        while True:
            taken += 1
            yield b"x" * (1 << 20)

    with pytest.raises(InputError, match=r"expected at most 16,777,216 characters in a segment"):
        WmtXml().read(endless(), Notices(), source="t.xml", choices=PLAIN)
    assert taken <= 20


def test_a_file_of_any_size_is_read_as_far_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_BYTES", 100)
    with pytest.raises(InputError, match=r"t.xml: expected a file of at most 100 bytes, unpacked"):
        read(XML)


def test_other_files_are_not_taken_for_wmt_xml() -> None:
    for line in (b"<script>", b"<datasets>", b"the <dataset", b'<refset setid="x">'):
        assert not WmtXml().detect([line])


@pytest.mark.skipif(not WMT23.is_file(), reason="the corpora are not here")
def test_wmt23_reads_as_sacrebleu_reads_it(tmp_path: Path) -> None:
    lines = list(read_lines(WMT23, Notices()))
    (tmp_path / "all.xml").write_bytes(b"\n".join(lines))
    expected = WMTXMLDataset._unwrap_wmt21_or_later(  # type: ignore[no-untyped-call]
        tmp_path / "all.xml"
    )
    found = WmtXml().read(iter(lines), Notices(), source="", choices=PLAIN)
    assert (len(found.documents), found.documents.n_lines) == (162, 1723)
    pairs = {"src": found.text("source")[""], "ref:refA": found.text("reference")["refA"]}
    for name, texts in pairs.items():
        stripped = [text.strip(" \n") for text in expected[name]]
        assert [(line or b"").decode() for line in texts] == stripped
    systems = found.text("system")
    assert len(systems) == 12
    for name, texts in systems.items():
        assert [(t or b"").decode() for t in texts] == [x.strip(" \n") for x in expected[name]]
