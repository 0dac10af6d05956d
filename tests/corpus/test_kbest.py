"""K-best lists in memory: plain lists and dictionaries are the truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.columns import SparseColumns, TextColumn, offsets_of, places_of, reversed_lists
from rerank.corpus.kbest import KBest, split_words
from rerank.corpus.labels import Label
from rerank.errors import InputError


def of_file(lists: list[list[bytes]]) -> KBest:
    """Lists of a file: lines are the texts with blanks around them, features the row numbers."""
    texts = [text for texts in lists for text in texts]
    n = len(texts)
    counts = np.array([len(texts) for texts in lists], dtype=np.int64)
    lines = TextColumn.of([b" %s " % text for text in texts])
    return KBest(
        source="dev.kbest",
        first=10,
        offsets=offsets_of(counts),
        texts=TextColumn(lines.blob, lines.spans + np.array([1, -1])),
        ranks=places_of(counts),
        labels=(Label("LM0", 2),),
        dense=np.arange(2.0 * n).reshape(n, 2),
        sparse=SparseColumns.of([{f"s_{row}": 1.0} for row in range(n)]),
        totals=np.arange(1.0 * n),
        lines=lines,
        line_numbers=np.arange(1, n + 1),
    )


def test_a_row_has_its_line_text_and_tokens() -> None:
    lists = of_file([[b"a"], [], [b"b   c", "d\u3000e\xa0f g".encode()]])
    assert (len(lists), lists.n, lists.counts.tolist()) == (3, 3, [1, 0, 2])
    assert [list(lists.rows(t)) for t in range(3)] == [[0], [], [1, 2]]
    assert lists.line(1) == b" b   c "
    assert lists.line_number(1) == 2
    assert lists.text(1) == b"b c"
    assert lists.tokens(2) == ["d\u3000e\xa0f".encode(), b"g"]


texts = st.lists(st.lists(st.sampled_from([b"a", b"b  c", b"", b"\xe3\x80\x80"]), max_size=4))


@given(texts, st.integers(1, 5))
def test_the_head_of_lists_is_their_first_sentences(lists: list[list[bytes]], n: int) -> None:
    whole, head = of_file(lists), of_file(lists).head(n)
    assert [[head.texts[row] for row in head.rows(t)] for t in range(len(head))] == lists[:n]
    rows = list(range(head.n))
    assert head.dense.tolist() == whole.dense[rows].tolist()
    assert head.ranks.tolist() == whole.ranks[rows].tolist()
    assert head.totals is not None
    assert head.totals.tolist() == rows
    assert [head.line(row) for row in rows] == [whole.line(row) for row in rows]
    assert [head.line_number(row) for row in rows] == [row + 1 for row in rows]
    assert [head.sparse.row(row) for row in rows] == [{f"s_{row}": 1.0} for row in rows]


@given(texts)
def test_reversed_lists_begin_with_the_last_sentence(lists: list[list[bytes]]) -> None:
    whole, turned = of_file(lists), of_file(lists).reversed()
    found = [[turned.texts[row] for row in turned.rows(t)] for t in range(len(turned))]
    assert found == lists[::-1]
    rows = reversed_lists(whole.counts).tolist()
    assert rows == [row for t in reversed(range(len(lists))) for row in whole.rows(t)]
    assert turned.dense.tolist() == whole.dense[rows].tolist()
    assert turned.ranks.tolist() == whole.ranks[rows].tolist()
    assert [turned.line(row) for row in range(turned.n)] == [whole.line(row) for row in rows]
    again = turned.reversed()
    assert again.offsets.tolist() == whole.offsets.tolist()
    assert again.texts.to_list() == whole.texts.to_list()


numbers = st.integers(-9, 9).map(float)
made = st.lists(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=5),
            st.fixed_dictionaries({"tm": numbers, "lm": numbers}, optional={"tag_a": numbers}),
        ),
        max_size=3,
    ),
    max_size=4,
)


@given(made)
def test_lists_made_in_memory_have_the_texts_and_features_that_were_given(
    lists: list[list[tuple[str, dict[str, float]]]],
) -> None:
    kbest = KBest.of(lists, source="talk", sparse={"tag_a"})
    candidates = [candidate for candidates in lists for candidate in candidates]
    assert kbest.counts.tolist() == list(map(len, lists))
    assert kbest.texts.to_list() == [text.strip(" ").encode() for text, _ in candidates]
    assert kbest.ranks.tolist() == [k for candidates in lists for k in range(len(candidates))]
    for row, (_, features) in enumerate(candidates):
        dense = zip([label.name for label in kbest.labels], kbest.dense[row].tolist(), strict=True)
        assert dict(dense) | kbest.sparse.row(row) == features
    assert (kbest.totals, kbest.lines, kbest.line_numbers) == (None, None, None)


def test_candidates_made_in_memory_have_no_lines() -> None:
    kbest = KBest.of([[("a", {})]])
    assert kbest.line_number(0) is None
    with pytest.raises(ValueError, match="have no lines"):
        kbest.line(0)


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (("a", {}), "expected the features tm, as the first candidate has, found .none.; give"),
        (("a", {"tm": 1, "lm": 2}), "expected the features tm, .* found tm, lm; give .* as sparse"),
        (("a", {"lm": 2}), "expected the features tm, .* found lm"),
        (
            ("a", {"tm": math.nan}),
            "expected a finite number up to 1e\\+100 for the feature 'tm', found nan",
        ),
        (
            ("a", {"tm": "1"}),
            "expected a finite number up to 1e\\+100 for the feature 'tm', found '1'",
        ),
        (
            ("a", {"tm": 1, "s_a": math.inf}),
            "expected a finite number up to 1e\\+100 for .* 's_a', found inf",
        ),
        (("a\nb", {"tm": 1}), r"expected a text of one line, found 'a\\nb'"),
    ],
)
def test_candidates_that_do_not_fit_are_refused_with_their_place(
    candidate: tuple[str, dict[str, float]], message: str
) -> None:
    lists = [[("x", {"tm": 1.0})], [], [("x", {"tm": 1.0}), candidate]]
    with pytest.raises(InputError, match=f"^talk: sentence 2, candidate 1: {message}"):
        KBest.of(lists, source="talk", sparse={"s_a"})


def test_words_are_what_ascii_spaces_separate() -> None:
    text = " a\tb  c\u3000d \xa0".encode()
    assert split_words(text) == [b"a\tb", "c\u3000d".encode(), "\xa0".encode()]
    assert split_words(b"  ") == []


def test_a_sentence_alone_is_its_list() -> None:
    lists = KBest.of([[("a", {}), ("b c", {})], [], [("d", {})]])
    assert lists.sentence(0).texts.to_list() == [b"a", b"b c"]
    assert (lists.sentence(2).texts.to_list(), lists.sentence(2).first) == ([b"d"], 2)
    assert (len(lists.sentence(1)), lists.sentence(1).n) == (1, 0)


def test_one_more_candidate_stands_last_in_each_list_that_has_any() -> None:
    lists = KBest.of([[("a", {"x": 1.0}), ("b", {"x": 2.0})], [], [("d", {"x": 3.0})]])
    more = lists.with_last([b"A", b"none", b"D e"])
    assert more.texts.to_list() == [b"a", b"b", b"A", b"d", b"D e"]
    assert more.counts.tolist() == [3, 0, 2]
    assert more.dense.tolist() == [[1.0], [2.0], [0.0], [3.0], [0.0]]
    assert more.ranks.tolist() == [0, 1, 2, 0, 1]
    assert (more.lines, more.totals, more.sparse.names) == (None, None, ())
