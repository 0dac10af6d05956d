"""JSON of strangers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.errors import InputError
from rerank.formats.json_objects import first_key, read_object, read_objects
from rerank.notices import Notices

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_objects_are_those_of_json(found: dict[str, object]) -> None:
    assert read_object(json.dumps(found).encode()) == found


def result(content: bytes) -> object:
    """The object, or the message of an error."""
    try:
        return read_object(content, source="f", line=3)
    except InputError as fault:
        return str(fault)


@given(st.binary(max_size=20))
def test_whatever_else_comes_is_refused_with_its_line(content: bytes) -> None:
    found = result(content)
    assert isinstance(found, str) or found == json.loads(content)
    assert not isinstance(found, str) or found.startswith("f:")


def test_a_fault_in_an_object_of_several_lines_has_its_own_line() -> None:
    with pytest.raises(InputError, match=r"^f:3: "):
        read_object(b'{"a": 1,\n"b": 2,\n"c": }', source="f", line=1)


def test_blank_lines_are_skipped_and_counted() -> None:
    notices = Notices()
    assert list(read_objects([b"{}", b" ", b"{}"], notices, source="f")) == [(1, {}), (3, {})]
    assert notices.lines() == ["1 x blank line, skipped, first at f:2"]


def test_the_first_of_several_keys_is_found() -> None:
    assert first_key({"b": 1, "c": 2}, ("a", "c", "b")) == "c"
    assert first_key({}, ("a",)) is None


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ('{"a": 1', "is cut off"),
        ('{"a": 1} {"b": 1}', "jq -c . FILE"),
        ("{'a': 1}", "double quotes"),
        ('{"a": x}', "correct the line"),
    ],
)
def test_a_line_that_is_no_json_has_a_cure(text: str, cure: str) -> None:
    with pytest.raises(InputError, match=f"column .*; .*{cure}"):
        read_object(text.encode(), source="f", line=1)
