"""Reading lists by document: grouping in plain Python is the truth, and real lists are tried."""

import gzip
import lzma
import weakref
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.diversity import farthest_first
from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions, documents_of
from rerank.corpus.kbest import KBest
from rerank.corpus.labels import Label
from rerank.errors import InputError
from rerank.files import arrays
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.formats import moses
from rerank.formats.moses import read_rows
from rerank.formats.table import read_documents
from rerank.notices import Notices

DATA = Path(__file__).parents[2].parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")


def line(sentence: int, text: str = "a", value: float = 1) -> bytes:
    return f"{sentence} ||| {text} ||| A= {value} ||| 0".encode()


def read(
    lines: list[bytes],
    documents: Documents,
    notices: Notices | None = None,
    options: dict[str, Any] | None = None,
) -> list[KBest]:
    notices = notices or Notices()
    chosen = ReadingOptions(**(options or {}))
    chunks = read_rows(lines, notices, source="dev.kbest")
    return list(documents_of(chunks, documents, notices, chosen, source="dev.kbest"))


def lists(kbest: KBest) -> list[list[int | None]]:
    """Line numbers of the candidates of each sentence."""
    return [[kbest.line_number(row) for row in kbest.rows(t)] for t in range(len(kbest))]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Documents, list[int]]:
    """Documents, and ids in an order in which none of them comes back."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any))
    starts = np.cumsum([0, *sizes]).tolist()
    ids: list[int] = []
    for start, stop in pairwise(starts):
        if stop > start:
            ids += draw(st.lists(st.integers(start, stop - 1), max_size=8))
    return Documents(tuple(map(str, range(len(sizes)))), tuple(starts)), ids


@pytest.mark.parametrize("chunk", [1, 60, 1 << 20])
@given(corpora(), st.integers(1, 9) | st.none())
def test_each_document_has_its_lists_in_the_order_of_the_file(
    chunk: int, corpus: tuple[Documents, list[int]], top: int | None
) -> None:
    documents, ids = corpus
    lines = [line(i, f"w{row}", row) for row, i in enumerate(ids)]
    if not lines:
        return
    notices = Notices()
    options = {} if top is None else {"top": top}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moses, "_CHUNK", chunk)
        found = read(lines, documents, notices, options)
    assert len(found) == len(documents)
    for d, kbest in enumerate(found):
        start, stop = documents.span(d)
        expected = [[n for n, i in enumerate(ids, 1) if i == t][:top] for t in range(start, stop)]
        assert lists(kbest) == expected
        assert kbest.first == start
        assert kbest.labels == (Label("A", 1),)
        for row, number in enumerate(n for numbers in expected for n in numbers):
            assert kbest.line(row) == lines[number - 1]
            assert kbest.text(row) == f"w{number - 1}".encode()
            assert kbest.dense[row].tolist() == [number - 1]
    kept = [i for n, i in enumerate(ids) if top is None or ids[:n].count(i) < top]
    counted = {notice.kind.split(" (")[0]: notice.count for notice in notices}
    assert counted.get("interleaved ids, grouped by sentence", 0) == sum(
        a > b for a, b in pairwise(kept)
    )
    missing = documents.n_lines - len(set(ids))
    assert counted.get("source line without hypotheses", 0) == missing


def test_holes_are_named() -> None:
    notices = Notices()
    read([line(2), line(2)], Documents.one(9), notices)
    assert notices.lines() == [
        "1 x duplicate hypothesis, kept, first at dev.kbest:2",
        "8 x source line without hypotheses (ids 0, 1, 3, 4, 5, …), first at dev.kbest",
    ]


@pytest.mark.parametrize(
    ("documents", "sizes"),
    [
        (Documents.from_lines([b"2", b"3", b"1"], may_be_sizes=True), True),
        (Documents.from_lines([b"2", b"2", b"3"], may_be_sizes=True), True),
        (Documents.from_lines([b"2", b"3", b"1"]), False),
        (Documents.from_lines([b"a2", b"3", b"1"], may_be_sizes=True), False),
        (Documents.each(3), False),
    ],
)
def test_ids_that_are_numbers_may_be_sizes(documents: Documents, sizes: bool) -> None:
    with pytest.raises(InputError) as fault:
        read([line(0), line(3)], documents)
    assert str(fault.value).endswith("--docs-format sizes") is sizes


def test_a_list_of_more_sentences_than_documents_is_not_taken_for_one_that_begins_at_one() -> None:
    """Its first sentence has no hypotheses."""
    sizes = Documents.from_lines([b"4", b"5"], may_be_sizes=True)
    with pytest.raises(InputError, match="--docs-format sizes"):
        read([line(sentence) for sentence in range(1, 9)], sizes)


def test_ids_may_begin_at_one() -> None:
    (kbest,) = read([line(1), line(2)], Documents.one(2), options={"first_id": 1})
    assert (kbest.first, lists(kbest)) == (0, [[1], [2]])


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ([0, 1, 3], {}, "dev.kbest:3: expected ids of 3 source lines, found id 3, which needs 4"),
        ([0, 3], {}, "is it the list of another source"),
        ([1, 2, 3], {}, "dev.kbest:3: .*ids look 1-based; use --first-id 1"),
        ([1, 0], {"first_id": 1}, "dev.kbest:2: expected ids from 1 on, found 0"),
        ([1, 4], {"first_id": 1}, "expected ids of 3 source lines, found id 4, which needs 4"),
        (
            [0, 2, 1],
            {},
            r"dev.kbest:3: .* found 1 .interleaved ids.; .* sort -s -t'\|' -k1,1n",
        ),
        ([0, 2, 0, 2], {}, "dev.kbest:3: "),
        ([0, 0, 0, 1], {"max_k": 2}, "dev.kbest:3: expected at most 2 hypotheses.*of sentence 0"),
        ([], {}, "dev.kbest: expected a k-best list, found no hypotheses"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_ids_that_do_not_fit_the_documents_are_refused(
    chunk: int,
    ids: list[int],
    options: dict[str, int],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moses, "_CHUNK", chunk)
    with pytest.raises(InputError, match=message):
        read([line(i) for i in ids], Documents(("x", "y"), (0, 2, 3)), options=options)


def test_a_list_of_blank_lines_has_no_hypotheses() -> None:
    with pytest.raises(InputError, match="found no hypotheses"):
        read([b"", b" "], Documents.one(1))


def test_a_long_list_is_cut_before_its_length_is_judged() -> None:
    (kbest,) = read([line(0)] * 5, Documents.one(1), options={"top": 2, "max_k": 2})
    assert lists(kbest) == [[1, 2]]


@pytest.mark.parametrize("chunk", [1, 60, 1 << 20])
@given(corpora(), st.integers(1, 5), st.data())
def test_diverse_candidates_are_chosen_from_the_whole_list(
    chunk: int, corpus: tuple[Documents, list[int]], top: int, data: st.DataObject
) -> None:
    documents, ids = corpus
    some = st.lists(st.sampled_from("abc"), max_size=3).map(" ".join)
    texts = data.draw(st.lists(some, min_size=len(ids), max_size=len(ids)))
    if not ids:
        return
    lines = [line(i, text) for i, text in zip(ids, texts, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moses, "_CHUNK", chunk)
        whole = read(lines, documents)
        found = read(lines, documents, options={"top": top, "diverse": True})
    for all_of_it, kept in zip(whole, found, strict=True):
        assert kept.counts.tolist() == np.minimum(all_of_it.counts, top).tolist()
        for t in range(len(kept)):
            words = [all_of_it.tokens(row) for row in all_of_it.rows(t)]
            chosen = farthest_first(words, top).tolist() if words else []
            assert kept.ranks[kept.rows(t)].tolist() == chosen
            assert [kept.tokens(row) for row in kept.rows(t)] == [words[c] for c in chosen]
            assert lists(kept)[t] == [lists(all_of_it)[t][c] for c in chosen]


def test_ranks_are_places_in_the_lists_of_the_file() -> None:
    ids = [1, 0, 1, 1, 0]
    for options, expected in [({}, [0, 1, 0, 1, 2]), ({"top": 2}, [0, 1, 0, 1])]:
        (kbest,) = read([line(i) for i in ids], Documents.one(2), options=options)
        assert kbest.ranks.tolist() == expected


def test_diverse_candidates_without_a_number_are_all() -> None:
    (kbest,) = read([line(0)] * 5, Documents.one(1), options={"diverse": True})
    assert kbest.ranks.tolist() == [0, 1, 2, 3, 4]


def test_the_length_of_a_list_that_is_read_whole_is_judged() -> None:
    options = {"top": 2, "max_k": 4, "diverse": True}
    assert read([line(0)] * 4, Documents.one(1), options=options)[0].n == 2
    with pytest.raises(InputError, match=r"dev.kbest:5: expected at most 4 hypotheses"):
        read([line(0)] * 5, Documents.one(1), options=options)


def test_candidates_that_are_not_kept_are_neither_noticed_nor_held() -> None:
    notices = Notices()
    texts = ["a b", "a b", "c d e", "", "c d"]
    options = {"top": 2, "diverse": True}
    (kbest,) = read([line(0, text) for text in texts], Documents.one(1), notices, options)
    assert kbest.lines is not None
    assert kbest.lines.blob == line(0, "a b") + b"\n" + line(0, "c d e")
    assert notices.lines() == []


def test_signs_of_language_models_that_are_spelled_out_are_counted() -> None:
    texts = ["a <s>", "<unk>", "<s>a", "a </s> <pad>", "&lt;s&gt;"]
    notices = Notices()
    read([line(0, text) for text in texts], Documents.one(1), notices)
    (told,) = notices.lines()
    assert told.startswith("3 x hypothesis that contains <s>")
    assert told.endswith("first at dev.kbest:1")


def test_empty_and_repeated_hypotheses_are_counted() -> None:
    notices = Notices()
    texts = ["a", "b", "a", "", "", "a"]
    read([line(0, text) for text in texts] + [line(1, "a")], Documents.each(2), notices)
    assert notices.lines() == [
        "2 x empty hypothesis, first at dev.kbest:4",
        "3 x duplicate hypothesis, kept, first at dev.kbest:3",
    ]


def test_one_hypothesis_per_sentence_is_nothing_to_rerank() -> None:
    notices = Notices()
    read([line(0), line(1)], Documents.one(2), notices)
    assert notices.lines() == [
        "1 x list with one hypothesis per sentence, so there is nothing to rerank, "
        "first at dev.kbest"
    ]


def test_totals_are_there_if_every_line_of_the_document_has_one() -> None:
    bare = line(1).removesuffix(b" ||| 0")
    whole, cut = read([line(0), line(1), bare], Documents.each(2))
    assert whole.totals is not None
    assert whole.totals.tolist() == [0]
    assert cut.totals is None


def test_sparse_features_follow_their_rows() -> None:
    sparse = line(0).replace(b" A=", b" x_y= 2 x_z= 3 A=")
    (kbest,) = read([line(1), sparse, line(0)], Documents.one(2))
    assert lists(kbest) == [[2, 3], [1]]
    assert kbest.sparse.names == ("x_y", "x_z")
    assert kbest.sparse.dot({"x_z": 10}).tolist() == [30, 0, 0]


def test_a_document_is_let_go_before_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moses, "_CHUNK", 1000)
    alive: list[weakref.ref[np.ndarray]] = []
    chunks = read_rows([line(i) for i in range(4) for _ in range(300)], Notices())
    for kbest in documents_of(chunks, Documents.each(4), Notices()):
        alive.append(weakref.ref(kbest.dense))
        del kbest
        assert [reference() for reference in alive] == [None] * len(alive)
    assert len(alive) == 4


def test_compressed_lists_are_read(tmp_path: Path) -> None:
    content = b"\n".join([line(0), line(0, "b"), line(1)]) + b"\n"
    for name, data in (
        ("a", content),
        ("b.gz", gzip.compress(content)),
        ("c.xz", lzma.compress(content)),
    ):
        (tmp_path / name).write_bytes(data)
        (kbest,) = read_documents(tmp_path / name, Documents.one(2), Notices())
        assert lists(kbest) == [[1, 2], [3]]


pieces = st.sampled_from([b"|||", b" ||| ", b"A= 1", b"0", b"1", b"-1", b"a", b"\n", b"nan"])
files = st.one_of(
    st.lists(pieces, max_size=30).map(b"".join),
    st.lists(st.integers(0, 3).map(line), max_size=6).map(b"\n".join),
    st.binary(max_size=50),
)


@settings(max_examples=50)
@given(files)
def test_any_file_is_a_list_or_an_input_error(content: bytes) -> None:
    try:
        found = read(content.split(b"\n"), Documents(("x", "y"), (0, 1, 3)))
    except InputError:
        return
    assert [len(kbest) for kbest in found] == [1, 2]


def truth(path: Path) -> Iterator[tuple[int, bytes, list[float], float]]:
    """Id, text, numbers and total of each line, by the shortest way."""
    with gzip.open(path) as file:
        for content in file:
            number, text, features, total = content.split(b"|||")
            values = [float(t) for t in features.split() if t[-1:] not in b":="]
            yield int(number), b" ".join(text.split()), values, float(total)


FIXTURES = [
    *(f"fixtures/moses-extractor.{i}.nbest.gz" for i in range(1, 6)),
    *(f"fixtures/moses-mert-iteration{i}.nbest.gz" for i in range(1, 8)),
    "fixtures/moses-oldstyle-europarl.nbest.gz",
]


@needs_data
@pytest.mark.parametrize("name", FIXTURES)
def test_old_lists_are_read_as_split_and_float_read_them(name: str) -> None:
    expected = list(truth(DATA / name))
    n = expected[-1][0] + 1
    notices = Notices()
    found = list(read_documents(DATA / name, Documents.each(n), notices))
    ids = [kbest.first for kbest in found for _ in range(kbest.n)]
    assert ids == [number for number, _, _, _ in expected]
    texts = [kbest.text(row) for kbest in found for row in range(kbest.n)]
    assert texts == [text for _, text, _, _ in expected]
    dense = np.concatenate([kbest.dense for kbest in found])
    assert dense.tolist() == [values for _, _, values, _ in expected]
    totals = np.concatenate([kbest.totals for kbest in found if kbest.totals is not None])
    assert totals.tolist() == [total for _, _, _, total in expected]
    kinds = "\n".join(notices.lines())
    assert ("without blanks" in kinds) == ("extractor" in name or "europarl" in name)
    assert ("old Moses labels" in kinds) == ("extractor" not in name)


@needs_data
def test_a_list_of_today_is_read_as_split_and_float_read_it() -> None:
    notices = Notices()
    documents = Documents.from_file(DATA / "ted-zh-en" / "dev2010.docids", notices)
    path = DATA / "ted-zh-en" / "dev2010.nbest.gz"
    expected = truth(path)
    for d, kbest in enumerate(read_documents(path, documents, notices)):
        assert (kbest.first, kbest.first + len(kbest)) == documents.span(d)
        assert kbest.totals is not None
        for row, line in enumerate(islice(expected, kbest.n if d < 2 else 0)):
            number, text, values, total = line
            assert row in kbest.rows(number - kbest.first)
            assert (kbest.text(row), kbest.dense[row].tolist()) == (text, values)
            assert kbest.totals[row] == total
    assert notices.lines() == []


@needs_data
def test_text_without_columns_is_no_list() -> None:
    with gzip.open(DATA / "fixtures" / "portage-hansard.100best.gz") as file:
        content = file.read().split(b"\n")
    with pytest.raises(InputError, match=r"dev.kbest:1: .* found 1 column"):
        read(content, Documents.each(100))


@given(corpora(), st.integers(1, 9) | st.none())
def test_documents_without_room_in_memory_are_read_into_files(
    corpus: tuple[Documents, list[int]], top: int | None
) -> None:
    documents, ids = corpus
    lines = [line(i, f"w{row} <s>"[: 2 + 4 * (row % 2)], row) for row, i in enumerate(ids)]
    if not lines:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moses, "_CHUNK", 60)
        patch.setattr(arrays, "SMALL", 1)
        found, notices = [], []
        for store in (IN_MEMORY, ArrayStore(0)):
            said = Notices()
            rows = read_rows(lines, said, source="dev.kbest")
            options = ReadingOptions(top=top)
            read_in = documents_of(rows, documents, said, options, source="dev.kbest", store=store)
            found.append([columns_in(kbest) for kbest in read_in])
            notices.append(said.lines())
    assert found[0] == found[1]
    assert notices[0] == notices[1]


def columns_in(kbest: KBest) -> tuple[object, ...]:
    """All that lists have."""
    assert kbest.lines is not None
    texts = kbest.texts.to_list(), kbest.lines.to_list(), lists(kbest)
    return *texts, kbest.dense.tolist(), kbest.ranks.tolist(), kbest.offsets.tolist()


@given(st.data())
def test_documents_whose_lines_stand_apart_get_the_rows_of_their_lines(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
    documents = Documents.from_lines([name.encode() for name in names], interleaved=True)
    kept = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    if any(kept):
        documents = documents.selected(kept)
    ids = data.draw(st.permutations([t for t in range(len(names)) for _ in range(2)]))
    if not documents.interleaved:
        ids = sorted(ids)
    found = read([line(t) for t in ids], documents)
    truth = [
        [
            [n for n, t in enumerate(ids, 1) if t == documents.line(sentence)]
            for sentence in range(*documents.span(d))
        ]
        for d in range(len(documents))
    ]
    assert list(map(lists, found)) == truth
    assert [kbest.first for kbest in found] == list(documents.starts[:-1])


def test_the_ids_of_lines_without_hypotheses_are_those_of_the_file() -> None:
    documents = Documents(("a", "b"), (0, 2, 4), (0, 2, 1, 3), 4)
    notices = Notices()
    read([line(0), line(3), line(2)], documents, notices)
    assert any("(ids 1)" in one for one in notices.lines())
