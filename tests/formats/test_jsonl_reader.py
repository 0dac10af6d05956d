"""Readers of JSON lines: the compiled one against the general one."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rerank.corpus.rows import KBestRows, concatenate
from rerank.errors import InputError
from rerank.formats import jsonl_reader
from rerank.formats.jsonl import JsonLines
from rerank.notices import Notices

texts = st.text(st.sampled_from('ab "\\\\/é😀\t\n,{}[]:\x01'), max_size=6)
numbers = st.integers(-5, 5) | st.floats(-1e90, 1e90) | st.sampled_from([1e-300, 0.1, -0.0, 1e22])


@st.composite
def sentences(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Objects of candidates of the same keys, but for some of a sentence."""
    odd: dict[str, Any] = draw(st.sampled_from([{}, {}, {"more": 1}, {"sparse": {"a_b": 2}}]))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        head = draw(st.dictionaries(st.sampled_from(["document", "source", "x"]), texts))
        candidates: list[dict[str, Any]] = [
            {
                **(odd if draw(st.integers(0, 9)) == 0 else {}),
                "text": draw(texts),
                "score": draw(numbers),
                "features": {"lp": draw(numbers), "TM0": [draw(numbers), draw(numbers)]},
            }
            for _ in range(draw(st.integers(0, 3)))
        ]
        found.append({**head, "candidates": candidates})
    return found


def read(lines: Sequence[bytes], compiled: bool) -> KBestRows | str:
    """The rows, or the message of an error."""
    with pytest.MonkeyPatch.context() as patch:
        if compiled:
            patch.setattr(jsonl_reader, "_KERNEL_BYTES", 0)
        else:
            patch.delitem(sys.modules, jsonl_reader._KERNEL, raising=False)
        try:
            found = list(JsonLines().read(lines, Notices(), source="f", clip=None))
        except InputError as fault:
            return str(fault)
    return concatenate(found) if found else "nothing"


def sparse_rows(rows: KBestRows) -> list[dict[str, float]]:
    """The sparse features of each row."""
    return [rows.sparse.row(row) for row in range(len(rows))]


def check_equal(lines: Sequence[bytes]) -> None:
    """Both readers give the same."""
    general, compiled = read(lines, False), read(lines, True)
    if isinstance(general, str) or isinstance(compiled, str):
        assert general == compiled
        return
    assert general.labels == compiled.labels
    assert sparse_rows(general) == sparse_rows(compiled)
    for name in ("sentences", "line_numbers", "file_lines", "dense", "totals"):
        expected, found = getattr(general, name), getattr(compiled, name)
        assert np.array_equal(expected, found, equal_nan=name == "totals"), name
    assert general.texts.to_list() == compiled.texts.to_list()
    assert general.lines.to_list() == compiled.lines.to_list()


@given(sentences(), st.booleans(), st.sampled_from([(", ", ": "), (",", ":")]))
def test_both_readers_give_the_same_rows(
    found: list[dict[str, Any]], ascii_only: bool, separators: tuple[str, str]
) -> None:
    check_equal(
        [json.dumps(s, ensure_ascii=ascii_only, separators=separators).encode() for s in found]
    )


ONE = b'{"id": 3, "candidates": [{"text": "a b", "score": -1.5, "features": {"lp": 1}}], "y": 2}'


@given(st.integers(0, len(ONE) - 1), st.sampled_from(b'\t"\\\\{}[]:,. -+e01x\x00\xc3'))
@example(place=ONE.index(b"1.5"), byte=ord("0"))
@example(place=ONE.index(b".5"), byte=ord("e"))
def test_both_readers_find_the_same_faults(place: int, byte: int) -> None:
    changed = bytearray(ONE)
    changed[place] = byte
    check_equal([ONE, bytes(changed), ONE.replace(b"3", b"4")])


@pytest.mark.parametrize(
    "written",
    ["01", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "1-2", "0x1", "1_0", "1e400", "-1E-2",
     "1.25e+3", "-0", "0.5", "12345678901234567890.5", "1" * 500, "nan", "NaN", "1.5.2", "--1"],
)  # fmt: skip
def test_numbers_are_those_of_json(written: str) -> None:
    check_equal([ONE, ONE.replace(b"-1.5", written.encode())])
    check_equal([ONE, ONE.replace(b": 1}", b": %s}" % written.encode())])


def test_features_of_another_order_are_not_mixed_up() -> None:
    turned = '{"candidates": [{"text": "a", "features": {"y": 2, "x": 1}}]}'
    first = '{"candidates": [{"text": "a", "features": {"x": 3, "y": 4}}]}'
    check_equal([line.encode() for line in (first, turned, turned, first)])
    check_equal([b"", b'{"candidates": []}', turned.encode(), first.encode(), b""])


@pytest.mark.parametrize(
    "line",
    [
        b'{"candidates": ["a"]} {}',
        b'{"candidates": [{"text": "a", "score": 1, "features": []}]}',
        b'{"\\ud800x": 1, "candidates": ["a"]}',
        b'{"candidates": [{"text": "a", "more": ["\\udc00"]}]}',
    ],
)
def test_a_fault_on_the_first_line_is_reported_there(line: bytes) -> None:
    import rerank.formats.jsonl_kernel  # noqa: F401 - so that short lists are compiled, too

    with pytest.raises(InputError, match=r"^f:1: expected "):
        list(JsonLines().read([line], Notices(), source="f", clip=None))
