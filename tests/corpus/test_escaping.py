"""Moses' escapes, against those of sacremoses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesTokenizer
from support.lists import kbest_of_lines

from rerank.corpus.escaping import FORMS, escaped, unescaped, with_texts

plain = st.text(st.sampled_from("a&|<>'\"[];$ é"), max_size=12)


@given(plain)
def test_what_is_escaped_comes_back(text: str) -> None:
    content = text.encode()
    assert unescaped(escaped(content)) == unescaped(content)
    assert not re.search(rb"[|<>'\"\[\]]", escaped(content))
    assert escaped(escaped(content)) == escaped(content)


@given(st.text(st.sampled_from("a&|<>'\"[] é"), max_size=12))
def test_escapes_are_those_of_sacremoses(text: str) -> None:
    assert escaped(text.encode()).decode() == MosesTokenizer().escape_xml(text)


def test_an_escape_is_undone_once() -> None:
    assert unescaped(b"&amp;lt; &apos;s &bar; &nbsp;") == b"&lt; 's | &nbsp;"


@pytest.mark.parametrize("form", sorted(FORMS))
def test_lines_of_the_file_change_with_the_texts_alone(form: str) -> None:
    lines = ["0 ||| it 's &amp; a |||  A= 1 ||| 's", "0 |||  &apos;  ||| A= 2 ||| 's"]
    lines = [line.replace("||| 's", "||| 7 ||| 's") for line in lines]
    found = with_texts(kbest_of_lines(lines, 1), FORMS[form])
    texts = [text.decode() for text in found.texts.to_list()]
    assert texts == (["it &apos;s &amp; a", "&apos;"] if form == "moses" else ["it 's & a", "'"])
    assert found.lines is not None
    first, second = (line.decode() for line in found.lines.to_list())
    assert first == f"0 ||| {texts[0]} |||  A= 1 ||| 7 ||| 's"
    assert second == f"0 |||  {texts[1]}  ||| A= 2 ||| 7 ||| 's"
