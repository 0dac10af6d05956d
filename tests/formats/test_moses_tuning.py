"""Files of Moses' extractor: the grammar, and every way in which a file can be wrong.

The files are made up, in the spelling of mert/FeatureArray.cpp, FeatureStats.cpp and
ScoreArray.cpp of mosesdecoder: six digits, a blank after every number and after the last name.
"""

import re
from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metrics import bleu_statistics

from rerank.corpus.labels import Label
from rerank.errors import InputError
from rerank.formats.moses_tuning import (
    ExtractorBlock,
    feature_blocks,
    labels_of,
    statistics_blocks,
)
from rerank.notices import Notices

FEATURES = """\
FEATURES_TXT_BEGIN_0 4 2 3 LM0_0 TM0_0 TM0_1 
-38.1204 -4.25 1e-05 
-37 -5 2 tag_np=2 tag_=x=-0.5 
FEATURES_TXT_END_0
FEATURES_TXT_BEGIN_0 2 1 3 LM0_0 TM0_0 TM0_1 
-7 0 -1.5e+06 
FEATURES_TXT_END_0
"""
SCORES = """\
SCORES_TXT_BEGIN_0 4 2 9 BLEU
3 4 2 3 1 2 0 1 4 
2 3 1 2 0 1 0 0 4 
SCORES_TXT_END_0
SCORES_TXT_BEGIN_0 2 1 9 BLEU
0 0 0 0 0 0 0 0 6 
SCORES_TXT_END_0
"""


def features(text: str, notices: Notices | None = None) -> list[ExtractorBlock]:
    lines = text.encode().splitlines()
    return list(feature_blocks(lines, notices or Notices(), source="f.dat"))


def statistics(text: str) -> list[ExtractorBlock]:
    return list(statistics_blocks(text.encode().splitlines(), Notices(), source="s.dat"))


def test_blocks_of_features_are_read() -> None:
    notices = Notices()
    first, second = features(FEATURES, notices)
    assert (first.line, first.sentence, second.line, second.sentence) == (1, 4, 5, 2)
    assert first.labels == second.labels == (Label("LM0", 1), Label("TM0", 2))
    assert first.values.tolist() == [[-38.1204, -4.25, 1e-5], [-37, -5, 2]]
    assert second.values.tolist() == [[-7, 0, -1.5e6]]
    assert first.sparse == {1: {"tag_np": 2.0, "tag_=x": -0.5}}
    assert second.sparse == {}
    assert notices.lines() == ["1 x line with sparse features (labels with '_'), first at f.dat:3"]


def test_statistics_come_in_our_order_of_columns() -> None:
    """Theirs is c1 t1 … c4 t4 reflen, written by BleuScorer::prepareStats as of len * 2 - 2."""
    first, second = statistics(SCORES)
    assert (first.line, first.sentence, second.line, second.sentence) == (1, 4, 5, 2)
    truth = bleu_statistics(["the lamp is off", "the lamp it"], ["the lamp is lit"])
    assert first.values.tolist() == truth.tolist()
    assert second.values.tolist() == [[0, 0, 0, 0, 0, 0, 0, 0, 6]]


def test_sparse_features_may_stand_anywhere() -> None:
    """FeatureStats::set of mert/FeatureStats.cpp takes the values one by one."""
    text = FEATURES.replace(
        "-37 -5 2 tag_np=2 tag_=x=-0.5 ", "a_b=1 -37 tag_=x=-0.5 -5\tt_\u00e9=2 2"
    )
    first, _ = features(text)
    assert first.values.tolist() == [[-38.1204, -4.25, 1e-5], [-37, -5, 2]]
    assert first.sparse == {1: {"a_b": 1.0, "tag_=x": -0.5, "t_\u00e9": 2.0}}


def test_blank_lines_between_blocks_are_counted() -> None:
    notices = Notices()
    assert len(features("\n" + FEATURES + "\n\n", notices)) == 2
    assert "3 x blank line, skipped, first at f.dat:1" in notices.lines()


blocks = st.lists(
    st.tuples(
        st.integers(0, 99),
        st.lists(
            st.tuples(
                st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
                st.dictionaries(
                    st.from_regex(r"[a-z]{1,3}_[a-z=]{0,3}", fullmatch=True),
                    st.floats(allow_nan=False, allow_infinity=False),
                    max_size=2,
                ),
            ),
            max_size=5,
        ),
    ),
    min_size=1,
    max_size=5,
)


def written(rows: Iterable[tuple[list[float], dict[str, float]]]) -> str:
    """Lines of hypotheses, with numbers that read back to the same bits."""
    return "".join(
        " ".join([*map(repr, dense), *(f"{name}={value!r}" for name, value in sparse.items())])
        + " \n"
        for dense, sparse in rows
    )


@given(blocks)
def test_what_is_written_is_read(
    content: list[tuple[int, list[tuple[list[float], dict[str, float]]]]],
) -> None:
    text = "".join(
        f"FEATURES_TXT_BEGIN_0 {sentence} {len(rows)} 3 A_0 A_1 B_0 \n"
        f"{written(rows)}FEATURES_TXT_END_0\n"
        for sentence, rows in content
    )
    found = features(text)
    assert [(b.sentence, b.n) for b in found] == [(s, len(rows)) for s, rows in content]
    for block, (_, rows) in zip(found, content, strict=True):
        assert block.values.tobytes() == np.array([dense for dense, _ in rows]).tobytes()
        assert block.sparse == {n: sparse for n, (_, sparse) in enumerate(rows) if sparse}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FEATURES_TXT_BEGIN_0 4", "SCORES_TXT_BEGIN_0 4", "f.dat:1: expected 'FEATURES_TXT_BEGIN"),
        ("FEATURES_TXT_BEGIN_0 4", "FEATURES_BIN_BEGIN_0 4", "f.dat:1: expected text, found the b"),
        ("BEGIN_0 4 2", "BEGIN_0 4 -2", "f.dat:1: expected 'FEATURES_TXT_BEGIN_0 <sentence> <hyp"),
        ("BEGIN_0 4 2", "BEGIN_0 x 2", "f.dat:1: .*, found 'FEATURES_TXT_BEGIN_0 x"),
        ("4 2 3 LM0_0", "4 2 4 LM0_0", "f.dat:1: expected 4 names of features, found 3"),
        ("4 2 3 LM0_0", "4 3 3 LM0_0", "f.dat:4: expected 3 hypotheses of sentence 4 .* found 2"),
        ("4 2 3 LM0_0", "4 1 3 LM0_0", "f.dat:3: expected FEATURES_TXT_END_0 after 1 hypotheses"),
        ("-37 -5 2 ", "-37 -5 ", "f.dat:3: expected 3 feature values .*, found 2"),
        ("-37 -5 2 ", "-37 -5 2 1 ", "f.dat:3: expected 3 feature values .*, found 4"),
        ("-37 -5 2 ", "-37 nan 2 ", "f.dat:3: expected a finite decimal number for value 2, .*nan"),
        ("-37 -5 2 ", "-37 -5 -inf ", "f.dat:3: .* for value 3, found '-inf'; correct"),
        ("-37 -5 2 ", "-37 -5 1e999 ", "f.dat:3: expected a finite .*found '1e999'"),
        ("tag_np=2", "tag_np=x", "f.dat:3: expected a finite decimal number for tag_np, found 'x'"),
        (
            "tag_=x=",
            "tag_np=",
            "f.dat:3: expected a sparse feature once, name=value, found 'tag_np",
        ),
        ("tag_=x=", "=", "f.dat:3: expected a sparse feature once"),
        ("2 1 3 LM0_0", "2 1 3 LM1_0", "f.dat:5: .*first block, 3 with 'LM0_0' at place 1, found"),
        ("LM0_0 TM0_0 TM0_1", "LM0_0 TM0_1 TM0_0", "f.dat:1: expected TM0_0 among the names"),
        ("LM0_0 TM0_0 TM0_1", "LM0_0 LM0_0 TM0_0", "f.dat:1: expected LM0_1 .* found 'LM0_0'"),
        ("LM0_0 TM0_0 TM0_1", "TM0_0 LM0_0 TM0_1", "f.dat:1: expected the values of TM0 side by"),
        ("-1.5e+06 \nFEATURES_TXT_END_0\n", "", "f.dat:6: expected 3 feature values .*, found 2"),
        ("FEATURES_TXT_END_0\nFEATURES", "\nFEATURES", "f.dat:4: expected FEATURES_TXT_END_0"),
    ],
)
def test_what_is_no_file_of_features_is_refused(old: str, new: str, message: str) -> None:
    assert old in FEATURES
    with pytest.raises(InputError) as caught:
        features(FEATURES.replace(old, new, 1))
    assert re.match(message, str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("9 BLEU", "9 PER", "s.dat:1: expected 9 statistics of BLEU, found 9 of 'PER'; run"),
        ("9 BLEU", "17 BLEU", "s.dat:1: expected 9 statistics of BLEU, found 17 of 'BLEU'"),
        ("9 BLEU", "9", "s.dat:1: expected 'SCORES_TXT_BEGIN_0 <sentence> .* BLEU'"),
        ("2 3 1 2 0 1 0 0 4", "2 3 1 2 0 1 0 0", "s.dat:3: expected 9 statistics .*, found 8"),
        ("2 3 1 2 0 1 0 0 4", "2 3 1 2 0 1 0 0 4.5", "s.dat:3: expected whole numbers c1 t1"),
        ("2 3 1 2 0 1 0 0 4", "2 3 1 2 0 1 0 0 -4", "s.dat:3: expected whole numbers c1 t1"),
        ("3 4 2 3 1 2 0 1 4", "3 2 1 0 4 3 2 1 4", "s.dat:2: expected whole numbers c1 t1"),
        ("2 3 1 2 0 1 0 0 4", "2 3 1 2 0 1 0 0 4 a=1", "s.dat:3: expected statistics, found"),
        ("2 3 1 2 0 1 0 0 4", "2 3 nan 2 0 1 0 0 4", "s.dat:3: expected a finite decimal"),
    ],
)
def test_what_are_no_statistics_of_bleu_is_refused(old: str, new: str, message: str) -> None:
    assert old in SCORES
    with pytest.raises(InputError) as caught:
        statistics(SCORES.replace(old, new, 1))
    assert re.match(message, str(caught.value))


def test_a_file_may_end_nowhere_but_between_blocks() -> None:
    lines = FEATURES.splitlines()
    for n in range(len(lines)):
        if n == 4:
            assert len(features("\n".join(lines[:n]))) == 1
            continue
        with pytest.raises(InputError, match=r"found the end of the file|found no line") as caught:
            features("\n".join(lines[:n]))
        assert str(caught.value).startswith(f"f.dat:{n}: " if n else "f.dat: ")


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from(
            [*FEATURES.splitlines(), *SCORES.splitlines(), "", " ", "a=", "=1", "_0", "\u00e9"]
        ),
        max_size=8,
    )
)
def test_any_lines_are_blocks_or_an_input_error(lines: list[str]) -> None:
    for read in (features, statistics):
        with suppress(InputError):
            blocks = read("\n".join(lines))
            assert len(blocks) == sum("BEGIN" in line for line in lines)


def test_names_of_extractor_are_labels() -> None:
    names = b"LM0_0 TM0_0 TM0_1 my_own_0 Bleu".split()
    assert labels_of(names) == (
        Label("LM0", 1),
        Label("TM0", 2),
        Label("my_own", 1),
        Label("Bleu", 1),
    )


def test_features_without_labels_are_called_as_in_lists() -> None:
    """InitFeatureMap of mert/Data.cpp writes an empty label and the number of the value."""
    assert labels_of([b"_0", b"_1"]) == (Label("F0", 1), Label("F1", 1))
