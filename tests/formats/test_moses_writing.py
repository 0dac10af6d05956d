"""Writing of k-best lines; reading them back (`rerank.formats.moses`) is the check."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.labels import Label
from rerank.errors import InputError, RerankError, UsageError
from rerank.formats.moses import append_features, format_line
from rerank.formats.moses_grammar import layout, parse

finite = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"[A-Za-z][0-9A-Za-z]{0,5}", fullmatch=True)
sparse_names = st.from_regex(r"[a-z][0-9a-z]{0,3}_[^\s=:|]{0,5}", fullmatch=True)
texts = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20),
    st.lists(st.sampled_from(["|||", "||", " ", "a", "LM0=", "1", "😀"]), max_size=8).map("".join),
).map(lambda text: text.strip(" ").encode())


@given(
    st.integers(0, 2**31 - 1),
    texts,
    st.dictionaries(names, st.lists(finite, min_size=1, max_size=3), min_size=1, max_size=4),
    st.dictionaries(sparse_names, finite, max_size=3),
    finite,
)
def test_a_line_reads_back_or_is_refused(
    sentence: int,
    text: bytes,
    dense: dict[str, list[float]],
    sparse: dict[str, float],
    total: float,
) -> None:
    if b"|||" in text:
        with pytest.raises(RerankError, match="cannot hold the text"):
            format_line(sentence, text, dense.items(), sparse=sparse, total=total)
        return
    line = format_line(sentence, text, dense.items(), sparse=sparse, total=total)
    found = layout(line)
    values = parse(line, found)
    assert found.labels == tuple(Label(name, len(v)) for name, v in dense.items())
    assert found.dialect == ()
    assert line[slice(*values.text)] == text
    assert values.sentence == sentence
    assert values.dense == [value for v in dense.values() for value in v]
    assert values.sparse == sparse
    assert values.total == total


@pytest.mark.parametrize("text", [b"a\nb", b" a", b"a "])
def test_text_that_would_not_read_back_is_refused(text: bytes) -> None:
    with pytest.raises(RerankError, match="cannot hold the text"):
        format_line(0, text, [("LM0", [1.0])])


@pytest.mark.parametrize("name", ["", "LM 0", "LM_0", "0LM", "LM=", "Ä", "LM0\n"])
def test_a_name_that_moses_would_not_read_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="letters and digits"):
        format_line(0, b"a", [(name, [1.0])])
    with pytest.raises(UsageError, match="letters and digits"):
        append_features(b"0 ||| a ||| LM0= 1 ||| 2", [(name, 1.0)])


@pytest.mark.parametrize(
    ("line", "total", "expected"),
    [
        pytest.param(
            b"0 ||| a  ||| LM0= 1 ||| -3",
            None,
            b"0 ||| a  ||| LM0= 1 New= -0.333333333 ||| -3",
            id="features only",
        ),
        pytest.param(
            b"0 ||| a  ||| LM0= 1  |||  -3  ||| 0-0 ||| x",
            2.0,
            b"0 ||| a  ||| LM0= 1 New= -0.333333333  |||  2  ||| 0-0 ||| x",
            id="further columns",
        ),
        pytest.param(
            b"0||| a|||lm: 1|||-3|||y",
            -1e20,
            b"0||| a|||lm: 1 New= -0.333333333|||-1e20|||y",
            id="no blanks",
        ),
        pytest.param(
            b"0 ||| a ||| LM0= 1",
            2.5,
            b"0 ||| a ||| LM0= 1 New= -0.333333333 ||| 2.5",
            id="no total so far",
        ),
        pytest.param(
            b"0 ||| a ||| LM0= 1", None, b"0 ||| a ||| LM0= 1 New= -0.333333333", id="no total"
        ),
        pytest.param(
            b"0 ||| a ||| 0-0 1-1 ||| F0=-3 ||| -3",
            2.5,
            b"0 ||| a ||| 0-0 1-1 ||| F0=-3 New= -0.333333333 ||| 2.5",
            id="Marian",
        ),
        pytest.param(
            b"0 ||| a ||| b ||| LM0= 1 ||| -3",
            2.5,
            b"0 ||| a ||| b ||| LM0= 1 New= -0.333333333 ||| 2.5",
            id="bars in the text",
        ),
        pytest.param(
            b"0 ||| a |||  ||| -3", 1.0, b"0 ||| a ||| New= -0.333333333  ||| 1", id="no features"
        ),
        pytest.param(
            b"0 ||| a ||| 1 2 ||| -3", 1.0, b"0 ||| a ||| 1 2 New= -0.333333333 ||| 1", id="unnamed"
        ),
    ],
)
def test_features_are_appended_and_other_bytes_stay(
    line: bytes, total: float | None, expected: bytes
) -> None:
    assert append_features(line, [("New", -1 / 3)], total) == expected


def test_nothing_appended_is_the_same_line() -> None:
    line = b"0||| a  ||| LM0=  1\t ||| -3 ||| 0-0 "
    assert append_features(line, []) == line


@given(st.lists(st.tuples(names.map("Z".__add__), finite), max_size=3), finite)
def test_appended_features_read_back_to_nine_digits(
    features: list[tuple[str, float]], total: float
) -> None:
    line = append_features(b"0 ||| a ||| LM0= 1 tag_a= 2 ||| -3 ||| 0-0", features, total)
    values = parse(line, layout(line))
    assert sorted(values.dense) == sorted([1.0] + [float(f"{value:.9g}") for _, value in features])
    assert values.total == float(f"{total:.9g}")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_appended(value: float) -> None:
    with pytest.raises(RerankError, match="finite number to write for New"):
        append_features(b"0 ||| a ||| LM0= 1 ||| -3", [("New", value)])
    with pytest.raises(RerankError, match="finite number to write for the total"):
        append_features(b"0 ||| a ||| LM0= 1 ||| -3", [], value)


def test_a_line_without_features_cannot_be_appended_to() -> None:
    with pytest.raises(InputError, match="feature column to append to, found 'a b c'"):
        append_features(b"a b c", [("New", 1.0)])
