"""NIST SGML: golden files of its traps, and sets that html.escape made."""

from collections.abc import Mapping
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.corpus.evaluation_set import EvaluationSet
from rerank.errors import InputError
from rerank.formats.documents.sgml import Sgml
from rerank.formats.documents.table import PLAIN
from rerank.notices import Notices

SOURCE = """<srcset setid="t" srclang="zh">
<DOC genre="news" docid="d1">
<hl>
<seg id=1> eins </seg>
</hl>
<p>
<SEG id='2'>
 zwei
 Teile
</SEG>
</p>
</DOC>
<doc docid="d2"><seg id="1">AT&T, R&amp;D &lt; &#124;</seg></doc>
</srcset>
"""
REFERENCES = """<refset setid="t" srclang="zh" trglang="en">
<doc sysid="r1" docid="d2"><seg id="1">AT&T rose</seg></doc>
<doc sysid="r1" docid="d1"><seg id="2">two parts</seg><seg id="1">one</seg></doc>
<doc docid="d1" sysid="r2"><seg id="1">uno</seg><seg id="2">dos partes</seg></doc>
<doc docid="d2" sysid="r2"><seg id="1">AT&T subio</seg></doc>
</refset>
"""
SYSTEM = """<mteval><tstset setid="t" trglang="en" sysid="moses">
<doc docid="d1"><seg id="1">NO BEST TRANSLATION</seg></doc>
</tstset></mteval>
"""


def read(text: str, notices: Notices | None = None) -> EvaluationSet:
    lines = text.encode().split(b"\n")
    assert Sgml().detect(lines)
    return Sgml().read(iter(lines), notices or Notices(), source="t.sgm", choices=PLAIN)


def test_a_source_has_its_documents_in_order_with_their_texts() -> None:
    found = read(SOURCE)
    assert found.documents == Documents(("d1", "d2"), (0, 2, 3), segments=("1", "2", "1"))
    # `&amp;` is decoded once, Moses' `&#124;` and a bare & stay
    assert found.text("source") == {"": [b"eins", b"zwei Teile", b"AT&T, R&D < &#124;"]}


def test_documents_of_one_id_with_several_sysids_are_several_references() -> None:
    found = read(REFERENCES)
    assert found.documents.ids == ("d2", "d1")
    assert found.text("reference") == {
        "r1": [b"AT&T rose", b"two parts", b"one"],
        "r2": [b"AT&T subio", b"dos partes", b"uno"],
    }


def test_several_sets_are_several_references_by_refid() -> None:
    one = '<refset refid="{0}">\n<doc docid="d" sysid="ref"><seg id="1">{0}</seg></doc></refset>\n'
    found = read(one.format("x") + one.format("y"))
    assert found.text("reference") == {"x": [b"x"], "y": [b"y"]}


def test_no_best_translation_is_an_empty_one() -> None:
    notices = Notices()
    assert read(SYSTEM, notices).text("system") == {"moses": [b""]}
    assert notices.lines() == [
        "1 x NO BEST TRANSLATION, read as an empty translation, first at t.sgm:2"
    ]


ids = st.text("abc-/.", min_size=1, max_size=6)
segments = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=8), min_size=1
)


@given(st.dictionaries(ids, segments, min_size=1))
def test_sets_read_back(documents: Mapping[str, list[str]]) -> None:
    text = '<refset refid="r">\n'
    for name, lines in documents.items():
        text += f'<doc docid="{name}">\n'
        for n, line in enumerate(lines, 1):
            text += f'<seg id="{n}"> {escape(line, quote=False)} </seg>\n'
        text += "</doc>\n"
    found = read(text + "</refset>")
    assert found.documents.ids == tuple(documents)
    flat = [line.encode() for lines in documents.values() for line in lines]
    assert found.text("reference") == {"r": flat}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<refset>\n<doc docid="d">\n<seg id="1">a</seg>\n<seg id="1">b</seg></doc>',
            r"t.sgm:4: expected one segment '1' of document 'd' in reference \(unnamed\), found tw",
        ),
        ('<refset>\n<doc docid="d">\n<seg id="1">a\n', "t.sgm:3: expected </seg> .*end of the fil"),
        ('<refset>\n<doc docid="d">\n<seg id="1">a\n<seg id="2">', "t.sgm:3: expected </seg> befo"),
        ('<refset>\n<doc docid="d">\n<seg id="1">a\n</doc>', "t.sgm:3: expected </seg> before"),
        ('<refset>\n<seg id="1">a</seg>', 't.sgm:2: expected <doc docid="…"> before'),
        ('<refset>\n<doc docid="d">a</seg>', "t.sgm:2: expected <seg> before"),
        ('<refset>\n<doc sysid="d">\n<seg>a</seg>', "t.sgm:2: expected a docid of the document"),
        ("<refset>\n", "t.sgm: expected segments of documents, found none"),
    ],
)
def test_faults_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(text)


def test_other_files_are_not_taken_for_sgml() -> None:
    for line in (b"<script>", b"the <seg> tag", b"<doc>", b'<dataset id="x">', b"docid"):
        assert not Sgml().detect([line])


def test_hostile_runs_of_letters_and_blanks_are_read_in_linear_time() -> None:
    """A million of each; patterns that try each of their positions would take hours."""
    blanks, letters = " " * 1_000_000, "x" * 1_000_000
    text = f'<refset {letters}>\n<doc docid="d"><seg id="1">a{blanks}b</seg></doc>'
    assert read(text).text("reference") == {"": [f"a{blanks}b".encode()]}
