"""Scores of pairs against a table of all pairs; line by line, and a column at a time."""

import lzma
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.formats.table import read_documents
from rerank.notices import Notices
from rerank.scorers import pair_scores
from rerank.scorers.file_scorer import ListInfo
from rerank.scorers.pair_scores import PairScores

SIZES = {"x": (0, 2, 3), "gap": (0, 0), "y y": (2, 0, 2), "é": (1,)}  # candidates of each sentence
Row = tuple[str, int, int | None, int]  # document, sentence, previous index, index
DOCUMENTS = Documents(tuple(SIZES), (0, 3, 5, 8, 9))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["line-by-line", "three-lines", "columns"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How lines are read: one by one, plain lines together in blocks of three, or in one block."""
    if request.param == "line-by-line":
        monkeypatch.setattr(PairScores, "_plain", lambda *_: False)
    elif request.param == "three-lines":
        monkeypatch.setattr(pair_scores, "BLOCK", 3)
    return str(request.param)


def rows(sizes: Mapping[str, Sequence[int]]) -> list[Row]:
    """All pairs, each with the nearest sentence before that has candidates."""
    found: list[Row] = []
    for name, counts in sizes.items():
        before = 0
        for t, size in enumerate(counts):
            if size:
                previous: Sequence[int | None] = range(before) if before else [None]
                found += [(name, t, j, k) for j, k in product(previous, range(size))]
                before = size
    return found


def value(row: Row) -> float:
    """A number of its own for each pair."""
    name, t, j, k = row
    return (len(name) * 1000 + t * 100 + (9 if j is None else j) * 10 + k) / 7


def line(row: Row, number: object = None) -> str:
    name, t, j, k = row
    own = value(row) if number is None else number
    return f"{name}\t{t}\t{'-' if j is None else j}\t{k}\t{own}"


def write(lines: Sequence[str], name: str = "pairs.tsv") -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def lists(sizes: Mapping[str, Sequence[int]] = SIZES, top: int | None = None) -> dict[str, KBest]:
    counts = [size for own in sizes.values() for size in own]
    text = [f"{t} ||| w{k} ||| A= 1 ||| 2" for t, size in enumerate(counts) for k in range(size)]
    write(text, "dev.kbest")
    starts = np.cumsum([0, *map(len, sizes.values())]).tolist()
    documents = Documents(tuple(sizes), tuple(starts))
    found = read_documents("dev.kbest", documents, Notices(), ReadingOptions(top=top))
    return {name: kbest for name, kbest in zip(sizes, found, strict=True) if kbest.n}


def scorer(
    path: str = "pairs.tsv",
    *,
    documents: Documents = DOCUMENTS,
    top: int | None = None,
    clip: float | None = None,
    notices: Notices | None = None,
) -> PairScores:
    about = ListInfo(documents, "dev.kbest", lambda: 0, top, clip)
    return PairScores("qe", Path(path), about, notices or Notices())


def matrices(found: PairScores, name: str, kbest: KBest) -> list[NDArray[np.float64]]:
    (scored,) = found.score([(name, kbest)])
    assert scored.columns.shape == (kbest.n, 0)
    return [np.asarray(scored.problem.pairwise(t)) for t in range(len(scored.problem.lengths))]


def expected(name: str, kbest: KBest) -> list[NDArray[np.float64]]:
    """The table, sentence by sentence."""
    found: list[NDArray[np.float64]] = []
    before: list[int | None] = [None]
    for t, size in enumerate(kbest.counts.tolist()):
        if size:
            own = [[value((name, t, j, k)) for k in range(size)] for j in before]
            found.append(np.array(own))
            before = list(range(size))
    return found


def assert_all(found: PairScores, top: int | None = None) -> None:
    for name, kbest in lists(top=top).items():
        for own, truth in zip(matrices(found, name, kbest), expected(name, kbest), strict=True):
            assert own.tobytes() == truth.tobytes()
    found.finish("dev.kbest", Notices())


def test_every_pair_has_its_value(reader: str) -> None:
    write(list(map(line, rows(SIZES))))
    assert_all(scorer())


@pytest.mark.parametrize("top", [1, 2, 9])
def test_pairs_that_top_leaves_out_are_passed_over(top: int, reader: str) -> None:
    write(list(map(line, rows(SIZES))))
    assert_all(scorer(top=top), top)


def test_indices_are_places_in_the_lists_of_the_file(reader: str) -> None:
    """Where the first and third of three candidates are kept, as --diverse may do."""
    sizes = {"x": (3, 3)}
    write(list(map(line, rows(sizes))))
    kbest = lists(sizes, top=2)["x"]
    object.__setattr__(kbest, "ranks", np.array([0, 2, 0, 2]))
    found = matrices(scorer(documents=Documents(("x",), (0, 2)), top=2), "x", kbest)
    assert found[0].tolist() == [[value(("x", 0, None, k)) for k in (0, 2)]]
    assert found[1].tolist() == [[value(("x", 1, j, k)) for k in (0, 2)] for j in (0, 2)]


def test_a_document_may_be_read_again(reader: str) -> None:
    write(list(map(line, rows(SIZES))))
    found = scorer()
    for _ in range(3):
        assert_all(found)
    first = lists()["x"]
    for _ in range(2):
        matrices(found, "x", first)
    assert found.documents == 3 * 3 + 2


def test_compressed_files_are_seen(reader: str) -> None:
    write(list(map(line, rows(SIZES))))
    Path("packed").write_bytes(lzma.compress(Path("pairs.tsv").read_bytes()))
    assert_all(scorer("packed"))


def test_blanks_around_columns_and_blank_lines_are_counted_or_nothing(reader: str) -> None:
    own = [line(row).replace("\t", " \t ") for row in rows(SIZES)]
    write(["", *own, " "])
    notices = Notices()
    assert_all(scorer(notices=notices))
    assert notices.lines() == ["2 x blank line, skipped, first at pairs.tsv:1"]


@settings(max_examples=25)
@given(st.data())
def test_lines_of_a_document_may_come_in_any_order_with_any_numbers(data: st.DataObject) -> None:
    sizes = data.draw(
        st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).filter(any), min_size=1)
        .map(lambda own: own[:3])
        .map(lambda own: {f"d{n}": tuple(counts) for n, counts in enumerate(own)})
    )
    truth: dict[Row, float] = {}
    text: list[str] = []
    for name, counts in sizes.items():
        for row in data.draw(st.permutations(rows({name: counts}))):
            truth[row] = data.draw(st.floats(-1e300, 1e300))
            form = data.draw(st.sampled_from(["{!r}", "{:.6g}", "{:.12f}", "{:+.3e}"]))
            number = form.format(truth[row])
            truth[row] = float(number)
            text.append(line(row, number))
    write(text)
    starts = np.cumsum([0, *map(len, sizes.values())]).tolist()
    for block in (1 << 15, 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair_scores, "BLOCK", block)
            found = scorer(documents=Documents(tuple(sizes), tuple(starts)))
            own: list[float] = []
            for name, kbest in lists(sizes).items():
                own += [x for m in matrices(found, name, kbest) for x in m.ravel().tolist()]
    assert own == [truth[row] for row in rows(sizes)]


# Faults: a line in the place of the fifth, which is (x, 2, 1, 0)

WRONG = [
    ("x\t2\t1\t0", 5, "expected 5 columns (document, sentence, previous index, index, value)"),
    ("x\t2\t1\t0\t1\t2", 5, "found 6: 'x\\t2\\t1\\t0\\t1\\t2'"),
    ("x 2 1 0 1", 5, "with a TAB between them, found 1"),
    ("q\t2\t1\t0\t1", 5, "expected a document id of the lists, found 'q'"),
    ("gap\t0\t1\t0\t1", 5, "expected all 8 pairs of document 'x' before this line, found 4 of"),
    ("x\t3\t1\t0\t1", 5, "document 'x' that has candidates, found 3; they count from 0"),
    ("x\t0\t-\t0\t1", 5, "document 'x' that has candidates, found 0; they count from 0"),
    ("x\t-1\t1\t0\t1", 5, "expected a sentence (digits 0-9), found '-1'"),
    ("x\t1\t0\t0\t1", 5, "expected '-' as previous index of sentence 1, the first of its document"),
    ("x\t2\t-\t0\t1", 5, "expected a previous index (digits 0-9), found '-'"),
    ("x\t2\t2\t0\t1", 5, "expected a previous index below 2, the candidates of sentence 1,"),
    ("x\t2\t1\t3\t1", 5, "expected an index below 3, the candidates of sentence 2, found 3"),
    ("x\t2\t1\t٠\t1", 5, "expected an index (digits 0-9), found '٠'"),
    (f"x\t2\t1\t{'9' * 30}\t1", 5, "expected an index (digits 0-9), found '999"),
    ("x\t2\t1\t0\tnan", 5, "expected a decimal number for qe, found 'nan'"),
    ("x\t2\t1\t0\t-inf", 5, "expected a finite number for qe, found '-inf'; give --clip-inf"),
    ("x\t2\t1\t0\t1e999", 5, "expected a finite number for qe, found '1e999'"),
    ("x\t2\t1\t0\t1e", 5, "expected a decimal number for qe, found '1e'"),
    ("x\t2\t1\t0\t", 5, "expected a decimal number for qe, found ''"),
    ("x\t2\t1\t0\t1_0", 5, "expected a decimal number for qe, found '1_0'"),
    ("x\t2\t0\t0\t1", 5, "expected each pair once, found this one again"),
    ("", 9, "expected all 8 pairs of document 'x' before this line, found 1 of them missing, first "
     "that of sentence 2, previous index 1, index 0"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "number", "told"), WRONG)
def test_a_wrong_line_is_told_with_its_place(
    wrong: str, number: int, told: str, reader: str
) -> None:
    text = list(map(line, rows(SIZES)))
    place = text.index(line(("x", 2, 1, 0)))
    text[place : place + 1] = []
    text[4:4] = [wrong]
    write(text)
    with pytest.raises(InputError, match=rf"pairs\.tsv:{number}: .*{re.escape(told)}"):
        assert_all(scorer())


@pytest.mark.parametrize(
    ("order", "told"),
    [
        (["y y", "x", "é"], "1: expected all 8 pairs of document 'x' before this line"),
        (["x", "é", "y y"], "9: expected all 6 pairs of document 'y y' before this line"),
        (["x", "y y"], "15: expected all 1 pairs of document 'é' before this line, found 1 of"),
        (["x", "y y", "x", "é"], "15: expected documents in the order of --docs, each in one run"),
        (["x", "y y", "é", "x"], "16: expected documents in the order of --docs, each in one run"),
        (["x", "gap", "y y", "é"], "9: expected documents that have candidates, found 'gap'"),
        (["gap", "x", "y y", "é"], "1: expected all 8 pairs of document 'x' before this line"),
        (["x", "y y", "é", "new"], "16: expected a document id of the lists, found 'new'"),
        ([], "1: expected all 8 pairs of document 'x' before this line, found 8 of them missing"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_documents_come_in_order_once_and_all_that_have_candidates(
    order: list[str], told: str, reader: str
) -> None:
    sizes = {**SIZES, "gap": (1, 0), "new": (1,)}
    write([line(row) for name in order for row in rows({name: sizes[name]})])
    with pytest.raises(InputError, match=rf"pairs\.tsv:{re.escape(told)}"):
        assert_all(scorer())


def test_lines_after_the_last_document_that_has_candidates_are_refused(reader: str) -> None:
    sizes = {"x": (1,), "gap": (0,)}
    write([line(("x", 0, None, 0)), "", line(("gap", 0, None, 0))])
    found = scorer(documents=Documents(("x", "gap"), (0, 1, 2)))
    matrices(found, "x", lists(sizes)["x"])
    with pytest.raises(InputError, match=r"pairs\.tsv:3: .*'gap', which has none"):
        found.finish("dev.kbest", Notices())


def test_infinities_are_clipped_where_that_is_asked_for(reader: str) -> None:
    text = list(map(line, rows(SIZES)))
    text[3] = line(rows(SIZES)[3], "-inf")
    text[6] = line(rows(SIZES)[6], "1e999")
    write(text)
    notices = Notices()
    found = matrices(scorer(clip=-1e4, notices=notices), "x", lists()["x"])
    flat = np.concatenate([own.ravel() for own in found])
    assert (flat[3], flat[6]) == (-1e4, 1e4)
    assert notices.lines() == ["2 x infinite number, clipped, first at pairs.tsv:4"]


def test_a_document_without_candidates_has_no_pairs() -> None:
    write([])
    write(["0 ||| w ||| A= 1 ||| 2"], "dev.kbest")
    documents = Documents(("x", "gap"), (0, 1, 2))
    gap = list(read_documents("dev.kbest", documents, Notices()))[1]
    assert matrices(scorer(documents=documents), "gap", gap) == []


@pytest.mark.parametrize("name", ["x", "y y", "é"])
def test_plain_lines_are_read_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = rows({name: SIZES[name]})
    write([line(row) for row in reversed(own)])
    monkeypatch.setattr(PairScores, "_taken", None)
    found = scorer(documents=Documents((name,), (0, len(SIZES[name]))))
    for ours, truth in zip(
        matrices(found, name, lists({name: SIZES[name]})[name]),
        expected(name, lists({name: SIZES[name]})[name]),
        strict=True,
    ):
        assert ours.tobytes() == truth.tobytes()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x", "x ", "y", "xx", "", "x\tx"]),
            st.sampled_from(["1", "0", "2", "01", "+1", "", "1\t1"]),
            st.sampled_from(["-", "0", "1", "-1", "--", ""]),
            st.sampled_from(["0", "1", "2", "3", " 0", "0" * 20, "\t0"]),
            st.sampled_from(["1.5", "-1e-3", ".5", "5.", "1_0", "nan", "1e999", "", "1\r", "e5"]),
        ).map("\t".join)
        | st.sampled_from([line(row) for row in rows({"x": (0, 2, 3)})]),
        max_size=9,
    ),
    st.sampled_from([None, 1, 2]),
)
@settings(max_examples=50)
def test_lines_read_together_give_what_they_give_one_by_one(
    text: list[str], top: int | None
) -> None:
    write([*map(line, rows({"x": (0, 2)})), *text])
    kbest = lists({"x": (0, 2, 3)}, top)["x"]
    found: list[object] = []
    for alone in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if alone:
                patch.setattr(PairScores, "_plain", lambda *_: False)
            source = scorer(documents=Documents(("x",), (0, 3)), top=top)
            try:
                own = matrices(source, "x", kbest)
                source.finish("dev.kbest", Notices())
                found.append([matrix.tolist() for matrix in own])
            except InputError as fault:
                found.append(str(fault))
    assert found[0] == found[1]
