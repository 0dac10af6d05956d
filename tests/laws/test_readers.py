"""Compiled readers of k-best lists: what they give is what Python gives, bit for bit.

Machine code reads Moses lists that are long, or all once it is loaded; lines that it, or msgspec,
does not take are read by the general reader. `split` and `float` are the truth for common lines.
"""

import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.world import Outcome, World

from rerank.formats.token_kernel import read_numbers

KERNEL = "rerank.formats.moses_kernel"
COMMANDS = {"moses": "--to jsonl --no-docs one", "jsonl": "--to moses --no-docs one"}
in_world = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=15,
)


def read(world: World, name: str, lines: Sequence[bytes], *, compiled: bool = True) -> Outcome:
    """The list in the other format, with all numbers, or a refusal; and the warnings."""
    world.write("list", b"".join(line + b"\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        if compiled:
            import_module(KERNEL)
        else:
            patch.delitem(sys.modules, KERNEL, raising=False)
            patch.setattr(msgspec.json, "decode", partial(msgspec.convert, type=int))
        run = world.run(f"convert --kbest list --kbest-format {name} {COMMANDS[name]}")
        assert compiled or KERNEL not in sys.modules  # no compiler for a short list
    out = run.stdout
    if name == "jsonl":  # Python reads the whole number -0 of JSON as 0
        out = re.sub(rb"(?<= )-0(\.0)?(?= |\n)", b"0", out)
    return Outcome(run.exit, out, b"".join(sorted(run.stderr.splitlines(keepends=True))))


def both(world: World, name: str, lines: Sequence[bytes]) -> Outcome:
    """What the compiled reader gives, which must be what the general one gives."""
    result = read(world, name, lines)
    assert result == read(world, name, lines, compiled=False)
    return result


def candidates(found: Outcome) -> list[tuple[int, dict[str, Any]]]:
    """Sentence and candidate row by row; whole numbers keep their sign."""
    rows = (json.loads(line, parse_int=float) for line in found.lines)
    return [(int(row["id"]), candidate) for row in rows for candidate in row["candidates"]]


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


def left_to_python(world: World, lines: Sequence[bytes], patch: pytest.MonkeyPatch) -> int:
    """How many lines the compiled reader leaves to the grammar in Python."""
    kernel, left = import_module(KERNEL), list[int]()
    read_common = kernel.read_common

    def counted(rows: object, layout: object, done: Any) -> object:
        sparse = read_common(rows, layout, done)
        left.append(int((~done).sum()))
        return sparse

    with patch.context() as context:
        context.setattr(kernel, "read_common", counted)
        assert read(world, "moses", lines).exit == 0
    return sum(left)


@pytest.mark.parametrize("line", COMMON)
def test_lines_of_the_common_shape_are_read_by_machine_code(
    line: bytes, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert left_to_python(world, [FIRST, line], monkeypatch) == 0
    _, result = candidates(both(world, "moses", [FIRST, line]))
    common = re.fullmatch(rb" *([0-9]+) *\|\|\|(.*?)\|\|\|.*\|\|\| *(\S+) *", line)
    assert common is not None
    pairs = re.findall(r"(\S*_\S*)= (\S+?)(?=[ |])", line.decode())
    features = {**result[1]["features"], **result[1].get("sparse", {})}
    assert features == {"A": 1, "B": [2, 3], "C": 4, **{n: float(value) for n, value in pairs}}
    assert result[0] == int(common[1])
    assert (result[1]["text"], result[1]["score"]) == (common[2].strip().decode(), float(common[3]))


@pytest.mark.parametrize("line", DIALECTS)
def test_dialects_have_a_shape(line: bytes, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_to_python(world, [line] * 3, monkeypatch) == 0
    both(world, "moses", [line] * 3)


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_as_the_grammar_reads_or_refuses_them(line: bytes, world: World) -> None:
    both(world, "moses", [FIRST, line, b"13" + FIRST[1:]])


usual = st.builds(
    b"%d ||| %s ||| A= %d B= %d %d C= %d ||| %d".__mod__,
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([b"", b"a", b"b c ", "é".encode()]),
        *[st.integers(-9, 9)] * 5,
    ),
)
names = st.text("ab_é=|", min_size=1, max_size=3).filter("|||".__ne__).map("_{}".format)
sparse = st.builds(
    lambda line, values: line.replace(
        b" B=", "".join(f" {name}= {value}" for name, value in values.items()).encode() + b" B="
    ),
    usual,
    st.dictionaries(names, st.integers(-99, 99), max_size=4),
)
pieces = st.sampled_from([b"|||", b" ||| ", b"|", b" ", b"A=", b" B= 2 3", b"C=4", b"x_y= 2", b"3"])
pieces |= st.sampled_from([b"-1.5e2", b"nan", b"0-0 1-1", b"=", b":", b"\t", b"1" * 20])
damaged = st.builds(
    lambda cut, parts, rest: FIRST[:cut] + b" ".join(parts) + (FIRST[cut:] if rest else b""),
    st.integers(0, len(FIRST)),
    st.lists(pieces, max_size=3),
    st.booleans(),
)
no_total = usual.map(lambda line: line.rpartition(b" ||| ")[0])
lists = st.lists(usual | sparse | sparse | no_total | st.sampled_from([b"", b" "]), max_size=30)


@in_world
@given(lines=lists.map(lambda lines: [b"", FIRST, *lines]))
def test_compiled_and_general_reader_agree_on_any_list(lines: list[bytes], world: World) -> None:
    result = candidates(both(world, "moses", lines))
    columns = [line.decode().split("|||") for line in lines if line.strip()]
    kept = [(int(number), text.strip()) for number, text, *_ in columns]
    assert [(t, one["text"]) for t, one in result] == sorted(kept, key=lambda row: row[0])


def test_chunks_of_a_long_list_are_joined(world: World) -> None:
    """More than a megabyte, whose lines are of other shapes here and there."""
    odd = {0: " x_y= 1", 1: "", 2: " "}
    lines = [
        f"{t} ||| w{t} {'x' * 90} ||| A= {t / 7!r}{odd.get(t % 97, ' ')} ||| {-t}\n{' ' * (t % 3)}"
        for t in range(12_000)
    ]
    result = candidates(read(world, "moses", "".join(lines).encode().split(b"\n")))
    expected = [(t, {"A": t / 7}, -t) for t in range(12_000)]
    assert [(t, one["features"], one["score"]) for t, one in result] == expected


@settings(in_world, max_examples=50)
@given(lines=st.lists(damaged, max_size=3))
def test_damaged_lines_are_refused_alike(lines: list[bytes], world: World) -> None:
    both(world, "moses", [FIRST, *lines])


printed = (
    st.floats(-1e100, 1e100).map("{:.6g}".format)
    | st.floats(-1e100, 1e100).map(repr)
    | st.decimals(-(10**6), 10**6, places=6).map(lambda d: f"{d.normalize():f}")
    | st.from_regex(r"[+-]?[0-9]{1,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,2})?", fullmatch=True)
).filter(lambda text: abs(float(text)) <= 1e100)


@in_world
@given(tokens=st.lists(printed, min_size=1, max_size=10))
@example(tokens=["-0", "9007199254740992", "1e22", "1.5E3", "+2", "5.", ".5"])
@example(tokens=["9007199254740993", "1e23", "0.1e-22", "123456789012345678901", "-1e-400"])
def test_numbers_have_the_bits_of_python(tokens: list[str], world: World) -> None:
    lines = [f"0 ||| a ||| A= {one} ||| {one}".encode() for one in ["1", *tokens]]
    for (_, one), token in zip(candidates(both(world, "moses", lines))[1:], tokens, strict=True):
        assert repr(one["features"]["A"]) == repr(one["score"]) == repr(float(token))


def test_random_decimals_have_bits_of_python(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    mantissas = rng.uniform(-1, 1, 10_000) * 10 ** rng.uniform(0, 18, 10_000)
    exponents = rng.integers(-30, 30, 10_000)
    tokens = [
        f"{m:.{-e}f}"[:19] if e < 0 else f"{m:.0f}e{e}"
        for m, e in zip(mantissas, exponents, strict=True)
    ]
    lines = [f"{t} ||| a ||| A= {token}".encode() for t, token in enumerate(tokens)]
    result = candidates(read(world, "moses", lines))
    assert [repr(one["features"]["A"]) for _, one in result] == [repr(float(x)) for x in tokens]
    assert left_to_python(world, lines, monkeypatch) < 12_000  # it is read twice
    plain = [f"0 ||| a ||| A= {value:.6g}".encode() for value in rng.uniform(-999, 999, 1000)]
    assert left_to_python(world, plain, monkeypatch) == 0


# JSON lines
texts = st.text(st.sampled_from('ab "\\\\/é😀\t\n,{}[]:\x01'), max_size=6)
numbers = st.integers(-5, 5) | st.floats(-1e90, 1e90) | st.sampled_from([1e-300, 0.1, -0.0, 1e22])


@st.composite
def sentences(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Objects of candidates of the same keys, but for some of a sentence."""
    odd: dict[str, Any] = draw(st.sampled_from([{}, {}, {"more": 1}, {"sparse": {"a_b": 2}}]))
    result = []
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
        result.append({**head, "candidates": candidates})
    return result


@in_world
@given(
    found=sentences(),
    ascii_only=st.booleans(),
    separators=st.sampled_from([(", ", ": "), (",", ":")]),
)
def test_both_readers_of_json_lines_give_the_same_rows(
    found: list[dict[str, Any]], ascii_only: bool, separators: tuple[str, str], world: World
) -> None:
    lines = [json.dumps(s, ensure_ascii=ascii_only, separators=separators).encode() for s in found]
    run = both(world, "jsonl", lines)
    own = [candidate for sentence in found for candidate in sentence["candidates"]]
    if run.exit == 0:
        for row, one in zip(run.lines, own, strict=True):
            features, total = row.split("|||")[2:4]
            values = [float(token) for token in features.split() if token[-1] != "="]
            assert values[:3] == [one["features"]["lp"], *one["features"]["TM0"]]
            assert float(total) == one["score"]


ONE = b'{"id": 3, "candidates": [{"text": "a b", "score": -1.5, "features": {"lp": 1}}], "y": 2}'


@settings(in_world, max_examples=50)
@given(place=st.integers(0, len(ONE) - 1), byte=st.sampled_from(b'\t"\\\\{}[]:,. -+e01x\x00'))
@example(place=ONE.index(b"1.5"), byte=ord("0"))
@example(place=ONE.index(b".5"), byte=ord("e"))
@example(place=ONE.index(b"a b"), byte=ord("\\"))
@example(place=ONE.index(b"a b"), byte=ord("\t"))
def test_both_readers_of_json_lines_find_faults(place: int, byte: int, world: World) -> None:
    changed = bytearray(ONE)
    changed[place] = byte
    both(world, "jsonl", [ONE, bytes(changed), ONE.replace(b"3", b"4")])


@pytest.mark.parametrize(
    "written",
    ["01", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "1-2", "0x1", "1_0", "1e400", "-1E-2",
     "1.25e+3", "-0", "0.5", "12345678901234567890.5", "1" * 500, "nan", "NaN", "1.5.2", "--1"],
)  # fmt: skip
def test_numbers_of_json_lines_are_those_of_json(written: str, world: World) -> None:
    for old, new in ((b"-1.5", b"%s"), (b": 1}", b": %s}")):
        result = both(world, "jsonl", [ONE, ONE.replace(old, new % written.encode())])
        try:
            value = json.loads(written, parse_constant=lambda _: 1e400)
        except ValueError:
            value = 1e400
        assert bool(result.exit) == (abs(value) > 1e100)


def test_features_of_another_order_are_not_mixed_up(world: World) -> None:
    turned = b'{"candidates": [{"text": "a", "features": {"y": 2, "x": 1}}]}'
    first = b'{"candidates": [{"text": "a", "features": {"x": 3, "y": 4}}]}'
    for lines in ([first, turned, turned, first], [b"", b'{"candidates": []}', turned, first, b""]):
        both(world, "jsonl", lines)


@pytest.mark.parametrize(
    "line",
    [
        b'{"candidates": ["a"]} {}',
        b'{"candidates": [{"text": "a", "score": 1, "features": []}]}',
        b'{"\\ud800x": 1, "candidates": ["a"]}',
        b'{"candidates": [{"text": "a", "more": ["\\udc00"]}]}',
    ],
)
def test_a_fault_on_the_first_line_is_reported_there(line: bytes, world: World) -> None:
    result = both(world, "jsonl", [line])
    assert result.err.startswith("rerank: list:1: expected ")


# Lines of numbers of Moses' extractor
values = st.floats(allow_nan=False, allow_infinity=False).map("{:.6g}".format)
odd = st.sampled_from(["nan", "inf", "x=1", "", "1e", "1_0", "1,5", "--1", "0x1", "1\t2"])


@given(
    st.lists(st.lists(values | odd, max_size=4), max_size=6),
    st.sampled_from([" ", "  "]),
    st.booleans(),
)
def test_lines_of_numbers_are_as_floats(rows: list[list[str]], blank: str, trailing: bool) -> None:
    lines = [(blank.join(row) + blank * trailing).encode() for row in rows]
    result, others = read_numbers(lines, 2)
    assert result.shape == (len(rows), 2)
    for n in {*range(len(lines))} - {*others}:
        tokens = [float(token) for token in lines[n].split(b" ") if token]
        assert result[n].tobytes() == np.array(tokens).tobytes()


@pytest.mark.parametrize(
    "line", [b"1 2 3", b"1", b"1 x", b"nan 1", b"1 2=3", b"1 2x", b"", b"1e400 1", b"1 0_1"]
)
def test_other_lines_of_numbers_are_left_and_what_moses_prints_is_taken(line: bytes) -> None:
    result, others = read_numbers([b"-0.5 -1.23457e-05 ", line, b"0 1e+06"], 2)
    assert others == [1]
    assert result[[0, 2]].tolist() == [[-0.5, -1.23457e-05], [0, 1e6]]
