"""The grammar of k-best lines, on made-up lines in the style of each tool (see its source code)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.labels import Label
from rerank.errors import InputError
from rerank.formats.moses_grammar import BAR_IN_TEXT, NO_TOTAL, SPARSE, ParsedLine, layout, parse

MOSES = b"7 ||| a b  ||| d0= 0 -1.5 LM0= -38.1 ||| -3.25"


def read(line: bytes, first: bytes = MOSES) -> ParsedLine:
    return parse(line, layout(first))


def text(line: bytes, first: bytes = MOSES) -> bytes:
    start, stop = read(line, first).text
    return line[start:stop]


def test_a_line_is_id_text_features_and_total() -> None:
    assert layout(MOSES).labels == (Label("d0", 2), Label("LM0", 1))
    assert layout(MOSES).dialect == ()
    assert read(MOSES) == ParsedLine(7, (6, 9), [0.0, -1.5, -38.1], {}, -3.25, ())
    assert text(MOSES) == b"a b"


@pytest.mark.parametrize(
    ("line", "labels", "values", "dialect"),
    [
        pytest.param(
            b"0 ||| a ||| d: 0 -3 lm: -41 -40 w: -9 ||| -14",
            [("d", 2), ("lm", 2), ("w", 1)],
            [0, -3, -41, -40, -9],
            "old Moses labels",
            id="old labels",
        ),
        pytest.param(
            b"0||| a  ||| lm= -41 w= -9 ||| -14",
            [("lm", 1), ("w", 1)],
            [-41, -9],
            "without blanks",
            id="no blank after the id, as in the extractor's tests",
        ),
        pytest.param(
            b"0 ||| a ||| 1 2 -3 ||| -14",
            [("F0", 1), ("F1", 1), ("F2", 1)],
            [1, 2, -3],
            "without labels",
            id="no labels",
        ),
        pytest.param(
            b"0 ||| a ||| F0=-1.5 F1=2 ||| -14",
            [("F0", 1), ("F1", 1)],
            [-1.5, 2],
            "no blank between label",
            id="Marian without score breakdown",
        ),
        pytest.param(
            b"0 ||| a ||| F0= -1.5 WordScores= -1 -.5 ||| -14",
            [("F0", 1)],
            [-1.5],
            "word scores",
            id="older Marian",
        ),
        pytest.param(b"0 ||| a ||| LM0= 1", [("LM0", 1)], [1], NO_TOTAL, id="no total"),
        pytest.param(
            b"0 ||| a ||| LM0= 1 TM0= 2 LM0= 3 ||| 1",
            [("LM0", 2), ("TM0", 1)],
            [1, 3, 2],
            None,
            id="a label that comes again",
        ),
        pytest.param(
            b"0 ||| a ||| LM0= 1 x_y= 4 2 ||| 1",
            [("LM0", 2)],
            [1, 2],
            None,
            id="a dense value after a sparse one",
        ),
        pytest.param(b"0 ||| a |||  ||| -14", [], [], None, id="no features"),
        pytest.param(
            b"0 ||| a ||| 0-0 1-1 ||| WordScores= -1 -2 ||| F0= -3 ||| -3",
            [("F0", 1)],
            [-3],
            None,
            id="Marian's columns between text and features",
        ),
        pytest.param(
            b"0 ||| a ||| LM0= 1 ||| -3 ||| 0-1=0-2 ||| 0-0 1-1  ||| tree= 1",
            [("LM0", 1)],
            [1],
            None,
            id="further columns",
        ),
        pytest.param(
            b"0 ||| a |||  4gram= 1 \xc3\xa4= 2 ||| -3",
            [("4gram", 1), ("ä", 1)],
            [1, 2],
            None,
            id="other names",
        ),
    ],
)
def test_a_dialect_is_read_and_named(
    line: bytes, labels: list[tuple[str, int]], values: list[float], dialect: str | None
) -> None:
    first = layout(line)
    assert first.labels == tuple(Label(*label) for label in labels)
    assert [kind for kind in first.dialect if dialect and dialect in kind] == list(first.dialect)
    assert bool(first.dialect) == bool(dialect)
    assert parse(line, first).dense == values
    assert text(line, line) == b"a"


def test_labels_may_come_in_another_order() -> None:
    assert read(b"8 ||| a ||| LM0= 3 d0= 1 2 ||| 0").dense == [1, 2, 3]


def test_sparse_features_are_apart_and_may_be_absent() -> None:
    line = read(b"8 ||| a ||| d0= 1 2 tag_a=b= 5 LM0= 3 tag_:=.5 ||| 0")
    assert line.dense == [1, 2, 3]
    assert line.sparse == {"tag_a=b": 5, "tag_:": 0.5}
    assert line.oddities == (SPARSE,)


def test_a_missing_total_is_an_oddity() -> None:
    line = read(b"8 ||| a ||| d0= 1 2 LM0= 3")
    assert line.total is None
    assert line.oddities == (NO_TOTAL,)


def test_bars_in_the_text_are_kept_where_only_one_reading_fits() -> None:
    line = b"8 ||| a ||| b |||| c ||| d0= 1 2 LM0= 3 ||| 0"
    assert text(line) == b"a ||| b |||| c"
    assert read(line).oddities == (BAR_IN_TEXT,)


def test_an_extra_column_may_come_or_go() -> None:
    line = read(b"8 ||| a ||| d0= 1 2 LM0= 3 ||| 0 ||| 0-0")
    assert (line.total, line.oddities) == (0, ())


@pytest.mark.parametrize("field", [b"", b" ", b"    "])
def test_an_empty_hypothesis_has_no_text(field: bytes) -> None:
    assert text(b"8 |||" + field + b"||| d0= 1 2 LM0= 3 ||| 0") == b""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a b c", "expected 'id .* found 1 column: 'a b c'"),
        (b"0 ||| a b c", "found 2 columns"),
        (b"0 ||| a ||| junk", "as Moses and Marian write it, found 3 columns"),
        (b"0 ||| a ||| b ||| LM0= 1 ||| -1", "expected features or an alignment, found ' b '"),
        (b"0 ||| a ||| -1 ||| LM0=1 TM0=2", "expected features or an alignment"),
        (b"0 ||| a ||| LM0= TM0= 1 ||| -1", "expected a number after 'LM0='"),
        (b"0 ||| a ||| LM0= 1 x_y= ||| -1", "expected a number after 'x_y='"),
        (b"0 ||| a ||| LM0= 1 = 2 ||| -1", "expected a feature name before '='"),
        (b"0 ||| a ||| LM0= 1 \xff= 2 ||| -1", r"feature name before '=', found '\\\\xff'"),
    ],
)
def test_what_is_no_such_list_is_refused(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        layout(line)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1_000 ||| a ||| d0= 1 2 LM0= 3 ||| 0", "expected a sentence id .* found '1_000'"),
        ("١ ||| a ||| d0= 1 2 LM0= 3 ||| 0".encode(), "sentence id"),
        ("１ ||| a ||| d0= 1 2 LM0= 3 ||| 0".encode(), "sentence id"),
        (b"-1 ||| a ||| d0= 1 2 LM0= 3 ||| 0", "found '-1'"),
        (b" ||| a ||| d0= 1 2 LM0= 3 ||| 0", "found ''"),
        (b"2147483648 ||| a ||| d0= 1 2 LM0= 3 ||| 0", r"below 2\^31"),
        (b"9" * 5000 + b" ||| a ||| d0= 1 2 LM0= 3 ||| 0", r"below 2\^31"),
        (b"8 ||| a ||| d0= 1 nan LM0= 3 ||| 0", "decimal number for d0, found 'nan'"),
        (b"8 ||| a ||| d0= 1 2 LM0= -inf ||| 0", "finite number for LM0, found '-inf'"),
        (b"8 ||| a ||| d0= 1 1e400 LM0= 3 ||| 0", "finite number for d0"),
        (b"8 ||| a ||| d0= 1 2 LM0= 3 ||| nan", "number for the total, found 'nan'"),
        (b"8 ||| a ||| d0= 1 1,5 LM0= 3 ||| 0", "number for d0, found '1,5'"),
        (b"8 ||| a ||| d0= 1 LM0= 3 ||| 0", "expected 3 .* first line, found 2: d0 has 1 instead"),
        (b"8 ||| a ||| d0= 1 2 ||| 0", "LM0 has 0 instead of 1"),
        (b"8 ||| a ||| d0= 1 2 LM0= 3 TM0= 1 ||| 0", "found 4: TM0 has 1 instead of 0"),
        (b"8 ||| a ||| d0= 1 2 LM0= 3 x_y= 1 x_y= 1 ||| 0", "sparse feature x_y, found two"),
        (b"8 ||| a ||| d0= 1 2 LM0= 3 ||| 1 ||| d0= 1 2 LM0= 3 ||| 0", "expected 4 columns"),
        (b"8 ||| a", "expected 4 columns as on the first line, found 2"),
    ],
)
def test_a_line_that_does_not_fit_is_refused(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(line)


def test_leading_zeros_of_an_id_do_not_count() -> None:
    assert read(b"0" * 5000 + b"12 ||| a ||| d0= 1 2 LM0= 3 ||| 0").sentence == 12


pieces = st.sampled_from(
    [b"|||", b" ||| ", b"|", b" ", b"LM0=", b"LM0= 1", b"x_y= 2", b"d: 3", b"0", b"-1.5", b"1e400"]
) | st.sampled_from([b"nan", b"0-0", b"WordScores= 1", b"=", b":", b"\t", b"\0", b"\xff", b"a"])
noise = st.lists(pieces, max_size=14).map(b"".join) | st.binary(max_size=40)


@settings(max_examples=50)
@given(noise, noise)
def test_any_bytes_are_a_line_or_an_input_error(first: bytes, second: bytes) -> None:
    try:
        common = layout(first)
        line = parse(second, common)
    except InputError:
        return
    assert len(line.dense) == sum(label.width for label in common.labels)
    start, stop = line.text
    assert 0 <= start <= stop <= len(second)
    assert second[start:stop].strip(b" ") == second[start:stop]
