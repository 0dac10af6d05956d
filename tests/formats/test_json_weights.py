"""Weights in JSON: a fault is reported with the line on which it stands, counted by hand."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.errors import InputError
from rerank.formats.json_weights import _values, read_json

GOOD = """{
 "schema": 1,
 "weights": {
  "LM0": [
   0.5
  ],
  "TM: {0}": [
   0.25,
   1
  ]
 },
 "sparse": {"a_b": 1.5},
 "alpha": null,
 "provenance": {"note": ["x:", {"LM0": 1}]}
}
"""


FOUND = "expected JSON weights, found "
SCHEMA = "'schema'; add \"schema\": 1"
NUMBERS = "weights are finite numbers up to 1e+100"
FORMS = (
    'write names and numbers, {"LM0": 0.5, "TM0": [0.2, 0.3]}, or '
    '{"schema": 1, "weights": {"LM0": 0.5}}'
)


def test_sound_weights_are_read() -> None:
    dense, sparse, alpha, made, spread, names = read_json(GOOD.encode())
    assert dense == {"LM0": (0.5,), "TM: {0}": (0.25, 1.0)}
    assert (sparse, alpha, spread, names) == ({"a_b": 1.5}, None, None, {})
    assert made == {"note": ["x:", {"LM0": 1}]}
    assert read_json(b'{"LM0": 1, "TM0": [2, 3]}')[0] == {"LM0": (1.0,), "TM0": (2.0, 3.0)}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("0.25", "true", 8, "found 'TM: {0}': True; weights are finite numbers up to 1e+100"),
        ("  1\n", "  1e999\n", 9, "found 'TM: {0}': inf; weights"),
        ("  1\n", "  1e200\n", 9, "found 'TM: {0}': 1e+200; weights"),
        ("0.5", "NaN", 5, "found NaN"),
        ("0.5", "-Infinity", 5, "found -Infinity"),
        ("0.5", "9" * 5000, 5, "found a number of 5000 digits"),
        ("0.5", "[" * 90_000 + "]" * 90_000, 5, "found too deep a nesting"),
        ('"TM: {0}"', '"LM0"', 7, "found the key 'LM0' twice in one object"),
        ('"TM: {0}"', '"\\udc00"', 7, "found half a surrogate pair in the key '\\udc00'"),
        ('"schema": 1', '"schema": 2', 2, "found schema 2; this version reads 1, try a newer one"),
        ("1.5", '"x"', 12, "found 'a_b': 'x'; weights"),
        ("null", "-1", 13, "found alpha -1; alpha must be positive, or null"),
        ("null", "[]", 13, "found 'alpha': []; weights"),
        ('"alpha"', '"alhpa"', 13, "found the key 'alhpa'; did you mean 'alpha'?"),
        ('{"a_b": 1.5}', "[1]", 12, "found no object at 'sparse'"),
        ('{"a_b": 1.5}', '{}, "decoder_names": []', 12, "found no object at 'decoder_names'"),
        ('{"a_b": 1.5}', '{}, "decoder_names": {"a": 1}', 12, "found 'a': 1; the name of a feat"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_fault_has_the_line_of_the_value(old: str, new: str, line: int, message: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(InputError) as fault:
        read_json(GOOD.replace(old, new).encode(), source="w.json")
    assert str(fault.value).startswith(f"w.json:{line}: expected JSON weights, {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", f"w.json:1: expected JSON weights, found none; {FORMS}"),
        ('{\n"weights": {"LM0": [1]}}', f"w.json:2: {FOUND}'weights' without {SCHEMA}"),
        ('{"alpha": 1,\n"sparse": {}}', f"w.json:2: {FOUND}'sparse' without {SCHEMA}"),
        ('{"LM0": 1,\n"TM0": {"a": 2}}', f"w.json:2: {FOUND}'TM0': {{'a': 2}}; "),
        ('{"LM0": 1,\n"TM0": null}', f"w.json:2: {FOUND}'TM0': None; {NUMBERS}; {FORMS}"),
        ('{"LM0": 1,\n"TM0": []}', f"w.json:2: {FOUND}no number for 'TM0'; {FORMS}"),
        ('{"LM0": 1,\n"TM0": [1,\n"x"]}', "w.json:3: expected JSON weights, found 'TM0': 'x'"),
        ('{"LM0": 1\n"TM0": 2}', "w.json:2: expected JSON: Expecting ',' delimiter"),
    ],
)
def test_other_files_have_lines_too(content: str, message: str) -> None:
    with pytest.raises(InputError) as fault:
        read_json(content.encode(), source="w.json")
    assert str(fault.value).startswith(message)


def test_a_schema_mends_an_object_that_lacks_it() -> None:
    assert read_json(b'{"schema": 1, "weights": {"LM0": [1]}}')[0] == {"LM0": (1.0,)}
    assert read_json(b'{"weights": 1}')[0] == {"weights": (1.0,)}


words = st.text(st.sampled_from('a"\\\n:,{}[] é'), max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(words, json_values, max_size=3), st.sampled_from([None, 0, 1]))
def test_every_value_is_found_at_its_place(content: dict[str, object], indent: int | None) -> None:
    """Its first token is that which json writes for it, on the line where it writes it."""
    text = json.dumps(content, indent=indent)
    for place, token, line in _values(text):
        value: object = content
        for key in place:
            value = value[key]  # type: ignore[index]
        assert json.dumps(value)[: len(token)] == token
        assert token in text.splitlines()[line - 1]


def test_the_file_that_is_written_is_scanned_whole() -> None:
    assert [place for place, _, _ in _values(GOOD)][-3:] == [
        ("provenance", "note", 0),
        ("provenance", "note", 1),
        ("provenance", "note", 1, "LM0"),
    ]
