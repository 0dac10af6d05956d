"""Compiled readers of k-best lists: what they give is what Python gives, bit for bit.

A list is read by machine code if it is long or the code is loaded already; lines that the code
does not take are read by the general reader. `split` and `float` are the truth for common lines.
"""

import json
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rerank import RerankError
from rerank.formats.number_kernel import read_numbers
from rerank.notices import Notices
from rerank.registry import FORMATS

KERNELS = {"moses": "rerank.formats.moses_line_kernel", "jsonl": "rerank.formats.jsonl_kernel"}
ZERO = {"moses": -0.0, "jsonl": 0.0}  # Python reads the whole number -0 of JSON as 0
Rows = list[tuple[Any, ...]]


def read(name: str, lines: Sequence[bytes], *, compiled: bool) -> tuple[Rows | str, list[str]]:
    """All columns row by row, or the message of a refusal; and the warnings."""
    notices, found = Notices(), Rows()
    with pytest.MonkeyPatch.context() as patch:
        if compiled:
            import_module(KERNELS[name])
        else:
            patch.delitem(sys.modules, KERNELS[name], raising=False)
        try:
            for piece in FORMATS[name]().read(lines, notices, source="f", clip=None):
                numbers = piece.line_numbers, piece.file_lines, piece.sentences
                labels = [(label.name, label.width) for label in piece.labels]
                dense, totals = (column + ZERO[name] for column in (piece.dense, piece.totals))
                for row in range(len(piece)):
                    values = dense[row].tobytes(), totals[row].tobytes()
                    places = [int(column[row]) for column in numbers]
                    sparse = list(piece.sparse.row(row).items())
                    texts = piece.lines[row], piece.texts[row]
                    found.append((*places, *texts, labels, *values, sparse))
        except RerankError as fault:
            return str(fault), sorted(notices.lines())
        assert compiled or KERNELS[name] not in sys.modules  # no compiler for a short list
    return found, sorted(notices.lines())


def both(name: str, lines: Sequence[bytes], chunk: int = 1 << 20) -> Rows | str:
    """What the compiled reader gives, which must be what the general one gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rerank.formats.moses._CHUNK", chunk)  # bytes that are read together
        found = read(name, lines, compiled=True)
    assert found == read(name, lines, compiled=False)
    return found[0]


# Moses

FIRST = b"0 ||| a ||| A= 1 B= 2 3 C= 4 ||| -5"
COMMON = [
    b"12 ||| a b  ||| A= 1 B= 2 3 C= 4 ||| -5",
    b"12|||a b|||A= 1 B= 2 3 C= 4|||-5",
    b" 012 |||  |||  A=1  B= 2  3 C=4  |||  -5 ",
    b"12 ||||x| |||A= 1 B= 2 3 C= 4 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1 ||| -5",
    b"12 ||| a ||| _= 1 A= 1 x_y= 2 x_z= 3 B= 2 3 \xe4\xb8\x80_= 1 C= 4 |_|= 5||| -5",
]
OTHERS = [
    *(b"", b"   ", b"12", b"12 ||| a", b"12 ||| a ||| A= 1 B= 2 3 C= 4"),
    *(b"12 ||| a ||| A= 1 B= 2 3 C= 4 |||" + end for end in (b"", b" -5 |||", b" -5 x", b" nan")),
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y=1 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y: 1 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1 2 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1 x_z= 3 x_y= 2 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1|x ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_\t= 1 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 \xff_= 1 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 x_y= 1 3 C= 4 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 C= 4 x= 1 ||| -5",
    b"12 ||| a ||| C= 4 A= 1 B= 2 3 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 3 4 ||| -5",
    b"12 ||| a ||| A= 1 B= 2-3 C= 4 ||| -5",
    b"12 ||| a ||| A= 1 B= 2 nan C= 4 ||| -5",
    b"12 ||| a ||| b ||| A= 1 B= 2 3 C= 4 ||| -5",
    *(b"%s ||| a ||| A= 1 B= 2 3 C= 4 ||| -5" % i for i in (b"1_2", b"1234567890", b"2147483648")),
]
DIALECTS = [
    b"0 ||| a ||| 0-0 1-1 ||| F0=-1 F1=-2 ||| -3",
    b"0 ||| a ||| 1 2 3 ||| -3",
    b"0 ||| a ||| A= 1 B= 2 A= 3",
    b"0 ||| a ||| A= 1 ||| -3 ||| 0-0 ||| x= 1 | y",
    b"0||| a ||| d: 1 2 lm: 3 ||| 4",
    b"0 ||| a |||  ||| 4",
    b"0 ||| a |||",
]


def parsed(lines: Sequence[bytes], patch: pytest.MonkeyPatch) -> int:
    """How many lines the compiled reader leaves to the grammar in Python."""
    grammar, calls = import_module("rerank.formats.moses_grammar"), list[bytes]()
    parse = grammar.parse

    def counted(line: bytes, *others: object) -> object:
        calls.append(line)
        return parse(line, *others)

    with patch.context() as context:
        context.setattr(grammar, "parse", counted)
        read("moses", lines, compiled=True)
    return len(calls)


@pytest.mark.parametrize("line", COMMON)
def test_lines_of_the_common_shape_are_read_by_machine_code(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parsed([FIRST, line, FIRST], monkeypatch) == 0
    rows = both("moses", [FIRST, line, FIRST])
    common = re.fullmatch(rb" *([0-9]+) *\|\|\|(.*?)\|\|\|.*\|\|\| *(\S+) *", line)
    assert common is not None
    pairs = re.findall(rb"(\S*_\S*)= (\S+?)(?=[ |])", line)
    assert rows[1][2:] == (
        int(common[1]),
        line,
        common[2].strip(b" "),
        [("A", 1), ("B", 2), ("C", 1)],
        np.array([1, 2, 3, 4], float).tobytes(),
        np.float64(common[3]).tobytes(),
        [(name.decode(), float(value)) for name, value in pairs],
    )


@pytest.mark.parametrize("line", DIALECTS)
def test_every_dialect_has_its_common_shape(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed([line] * 3, monkeypatch) == 0
    both("moses", [line] * 3)


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_as_the_grammar_reads_or_refuses_them(line: bytes) -> None:
    both("moses", [FIRST, line, FIRST])


usual = st.builds(
    b"%d ||| %s ||| A= %d B= %d %d C= %d ||| %d".__mod__,
    st.tuples(
        st.integers(0, 9), st.sampled_from([b"", b"a", b"b c ", b"\xff"]), *[st.integers(-9, 9)] * 5
    ),
)
names = st.text("ab_é=|", min_size=1, max_size=3).map(lambda name: f"_{name}")
sparse = st.builds(
    lambda line, values: line.replace(
        b" B=", "".join(f" {name}= {value}" for name, value in values.items()).encode() + b" B="
    ),
    usual,
    st.dictionaries(names, st.integers(-99, 99), max_size=4),
)
pieces = st.sampled_from([b"|||", b" ||| ", b"|", b" ", b"A=", b" B= 2 3", b"C=4", b"x_y= 2", b"3"])
pieces |= st.sampled_from([b"-1.5e2", b"nan", b"0-0 1-1", b"=", b":", b"\t", b"\xff", b"1" * 20])
damaged = st.builds(
    lambda cut, parts, rest: FIRST[:cut] + b" ".join(parts) + (FIRST[cut:] if rest else b""),
    st.integers(0, len(FIRST)),
    st.lists(pieces, max_size=3),
    st.booleans(),
)
no_total = usual.map(lambda line: line.rpartition(b" ||| ")[0])
lists = st.lists(usual | sparse | sparse | no_total | st.sampled_from([b"", b" "]), max_size=30)


@pytest.mark.parametrize("chunk", [1, 100, 1 << 20])
@given(lists.map(lambda lines: [b"", FIRST, *lines]))
def test_compiled_and_general_reader_agree_whatever_a_chunk_holds(
    chunk: int, lines: list[bytes]
) -> None:
    found = both("moses", lines, chunk)
    assert not isinstance(found, str)
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    assert [(row[0], row[3]) for row in found] == kept


@settings(max_examples=100)
@given(st.lists(damaged, max_size=3))
def test_damaged_lines_are_refused_alike(lines: list[bytes]) -> None:
    both("moses", [FIRST, *lines])


printed = (
    st.floats(-1e100, 1e100).map("{:.6g}".format)
    | st.floats(-1e100, 1e100).map(repr)
    | st.decimals(-(10**6), 10**6, places=6).map(lambda d: f"{d.normalize():f}")
    | st.from_regex(r"[+-]?[0-9]{1,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,2})?", fullmatch=True)
).filter(lambda text: abs(float(text)) <= 1e100)


@given(st.lists(printed, min_size=1, max_size=10))
@example(["-0", "9007199254740992", "1e22", "1.5E3", "+2", "5.", ".5"])
@example(["9007199254740993", "1e23", "0.1e-22", "123456789012345678901", "-1e-400"])
def test_numbers_have_the_bits_of_python(tokens: list[str]) -> None:
    lines = [b"0 ||| a ||| A= %s ||| %s" % (one.encode(), one.encode()) for one in tokens]
    for row, token in zip(
        both("moses", [b"0 ||| a ||| A= 1 ||| 1", *lines])[1:], tokens, strict=True
    ):
        assert row[6:8] == (np.float64(token).tobytes(),) * 2


def test_ten_thousand_random_decimals_have_the_bits_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    mantissas = rng.uniform(-1, 1, 10_000) * 10 ** rng.uniform(0, 18, 10_000)
    exponents = rng.integers(-30, 30, 10_000)
    tokens = [
        f"{m:.{-e}f}"[:19] if e < 0 else f"{m:.0f}e{e}"
        for m, e in zip(mantissas, exponents, strict=True)
    ]
    lines = [f"0 ||| a ||| A= {token}".encode() for token in tokens]
    rows, _ = read("moses", lines, compiled=True)
    assert [row[6] for row in rows] == [np.float64(token).tobytes() for token in tokens]
    assert parsed(lines, monkeypatch) < 6_000
    plain = [f"0 ||| a ||| A= {value:.6g}".encode() for value in rng.uniform(-999, 999, 1000)]
    assert parsed(plain, monkeypatch) == 0


# JSON lines

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


@given(sentences(), st.booleans(), st.sampled_from([(", ", ": "), (",", ":")]))
def test_both_readers_of_json_lines_give_the_same_rows(
    found: list[dict[str, Any]], ascii_only: bool, separators: tuple[str, str]
) -> None:
    lines = [json.dumps(s, ensure_ascii=ascii_only, separators=separators).encode() for s in found]
    rows = both("jsonl", lines)
    candidates = [one for sentence in found for one in sentence["candidates"]]
    if not isinstance(rows, str):
        for row, one in zip(rows, candidates, strict=True):
            values = [one["features"]["lp"], *one["features"]["TM0"]]
            assert row[6] == (np.array(values, float) + 0.0).tobytes()
            assert row[7] == (np.float64(one["score"]) + 0.0).tobytes()


ONE = b'{"id": 3, "candidates": [{"text": "a b", "score": -1.5, "features": {"lp": 1}}], "y": 2}'


@settings(max_examples=60)
@given(st.integers(0, len(ONE) - 1), st.sampled_from(b'\t"\\\\{}[]:,. -+e01x\x00'))
@example(place=ONE.index(b"1.5"), byte=ord("0"))
@example(place=ONE.index(b".5"), byte=ord("e"))
@example(place=ONE.index(b"a b"), byte=ord("\\"))
def test_both_readers_of_json_lines_find_the_same_faults(place: int, byte: int) -> None:
    changed = bytearray(ONE)
    changed[place] = byte
    both("jsonl", [ONE, bytes(changed), ONE.replace(b"3", b"4")])


@pytest.mark.parametrize(
    "written",
    ["01", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "1-2", "0x1", "1_0", "1e400", "-1E-2",
     "1.25e+3", "-0", "0.5", "12345678901234567890.5", "1" * 500, "nan", "NaN", "1.5.2", "--1"],
)  # fmt: skip
def test_numbers_of_json_lines_are_those_of_json(written: str) -> None:
    for old, new in ((b"-1.5", b"%s"), (b": 1}", b": %s}")):
        found = both("jsonl", [ONE, ONE.replace(old, new % written.encode())])
        try:
            value = json.loads(written, parse_constant=lambda _: 1e400)
        except ValueError:
            value = 1e400
        assert isinstance(found, str) == (abs(value) > 1e100)


def test_features_of_another_order_are_not_mixed_up() -> None:
    turned = b'{"candidates": [{"text": "a", "features": {"y": 2, "x": 1}}]}'
    first = b'{"candidates": [{"text": "a", "features": {"x": 3, "y": 4}}]}'
    for lines in ([first, turned, turned, first], [b"", b'{"candidates": []}', turned, first, b""]):
        both("jsonl", lines)


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
    found = both("jsonl", [line])
    assert isinstance(found, str)
    assert found.startswith("f:1: expected ")


@pytest.mark.parametrize(
    ("candidate", "general"),
    [
        ('{"text": "a", "score": -1.5}', 2),
        ('{"text": "b \\" c", "score": 2, "features": {"x": 1, "y": [1, 2]}}', 2),
        ('{"text": "a", "score": -1.5, "more": 1}', 50),
    ],
)
def test_lines_of_one_form_are_read_by_machine_code(
    candidate: str, general: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python decodes the first of them alone, which names the features."""
    reader, calls = import_module("rerank.formats.jsonl_reader"), list[bytes]()
    decode = reader.read_object

    def counted(content: bytes, **place: Any) -> object:
        calls.append(content)
        return decode(content, **place)

    monkeypatch.setattr(reader, "_KERNEL_BYTES", 0)
    monkeypatch.setattr(reader, "read_object", counted)
    read("jsonl", [f'{{"candidates": [{candidate}, {candidate}]}}'.encode()] * 50, compiled=True)
    assert sum(b"text" in content for content in calls) in (general, general + 1)


# Lines of numbers of Moses' extractor

values = st.floats(allow_nan=False, allow_infinity=False).map("{:.6g}".format)
odd = st.sampled_from(["nan", "inf", "x=1", "", "1e", "1_0", "1,5", "--1", "0x1", "1\t2"])


@given(
    st.lists(st.lists(values | odd, max_size=4), max_size=6),
    st.sampled_from([" ", "  "]),
    st.booleans(),
)
def test_lines_of_numbers_that_are_taken_are_those_of_float(
    rows: list[list[str]], blank: str, trailing: bool
) -> None:
    lines = [(blank.join(row) + blank * trailing).encode() for row in rows]
    found, others = read_numbers(lines, 2)
    assert found.shape == (len(rows), 2)
    for n in {*range(len(lines))} - {*others}:
        tokens = [float(token) for token in lines[n].split(b" ") if token]
        assert found[n].tobytes() == np.array(tokens).tobytes()


@pytest.mark.parametrize(
    "line", [b"1 2 3", b"1", b"1 x", b"nan 1", b"1 2=3", b"1 2x", b"", b"1e400 1", b"1 0_1"]
)
def test_other_lines_of_numbers_are_left_and_what_moses_prints_is_taken(line: bytes) -> None:
    found, others = read_numbers([b"-0.5 -1.23457e-05 ", line, b"0 1e+06"], 2)
    assert others == [1]
    assert found[[0, 2]].tolist() == [[-0.5, -1.23457e-05], [0, 1e6]]
