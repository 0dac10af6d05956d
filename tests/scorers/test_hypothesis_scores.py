"""Scores of lines against the lines written out, in any order of reading."""

import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files import write

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.formats.table import read_documents
from rerank.notices import Notices
from rerank.scorers.file_scorer import ListInfo
from rerank.scorers.hypothesis_scores import HypothesisScores

IDS = (0, 0, 0, 1, 3, 3, 4)  # sentence of each line; documents x = 0-1, y = 2, z = 3-4
VALUES = (0.5, -1.25, 3.0, 1e-3, -0.0, 17.0, 0.1)
DOCUMENTS = Documents(("x", "y", "z"), (0, 2, 3, 5))
LISTS = {"x": [[0.5, -1.25, 3.0], [1e-3]], "z": [[-0.0, 17.0], [0.1]]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", [f"{t} ||| w{n} ||| A= 1 ||| 2" for n, t in enumerate(IDS)])
    write("dev.scores", list(map(str, VALUES)))


def lists(top: int | None = None) -> dict[str, KBest]:
    found = read_documents("dev.kbest", DOCUMENTS, Notices(), ReadingOptions(top=top))
    return dict(zip(DOCUMENTS.ids, found, strict=True))


def scorer(
    path: str = "dev.scores",
    *,
    last_line: int = len(IDS),
    clip: float | None = None,
    notices: Notices | None = None,
    documents: Documents = DOCUMENTS,
) -> HypothesisScores:
    given = ListInfo(documents, "dev.kbest", lambda: last_line, clip_inf=clip)
    return HypothesisScores("qe", Path(path), given, notices or Notices())


def read(found: HypothesisScores, name: str, kbest: KBest) -> list[list[float]]:
    ((problem, columns),) = ((s.problem, s.columns) for s in found.score([(name, kbest)]))
    assert columns.shape == (kbest.n, 0)
    assert problem.order == 0
    return [problem.unary(t).tolist() for t in range(len(problem.lengths))]


def test_every_line_of_the_list_has_the_number_of_its_line() -> None:
    found = scorer()
    for name, kbest in lists().items():
        assert read(found, name, kbest) == LISTS.get(name, [])


@pytest.mark.parametrize("order", ["xz", "zx", "xxzz", "xzxz"])
def test_documents_may_be_read_again_and_in_another_order(order: str) -> None:
    found, kbest = scorer(), lists()
    for name in order:
        assert read(found, name, kbest[name]) == LISTS[name]


def test_lists_that_were_cut_have_the_numbers_of_what_was_kept() -> None:
    found = scorer()
    kept = {name: read(found, name, kbest) for name, kbest in lists(top=1).items() if kbest.n}
    assert kept == {name: [own[:1] for own in full] for name, full in LISTS.items()}


def test_ids_in_any_order_within_a_document_keep_their_numbers() -> None:
    write("dev.kbest", [f"{t} ||| w ||| A= 1 ||| 2" for t in (1, 0, 1, 0)])
    write("dev.scores", ["1", "2", "3", "4"])
    assert read(scorer(last_line=4), "x", lists()["x"]) == [[2, 4], [1, 3]]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_compressed_files_are_seen(pack: Callable[[bytes], bytes]) -> None:
    Path("packed").write_bytes(pack(Path("dev.scores").read_bytes()))
    found, kbest = scorer("packed"), lists()
    assert read(found, "z", kbest["z"]) == LISTS["z"]


def test_blank_lines_at_the_end_count_on_neither_side() -> None:
    write("dev.scores", [*map(str, VALUES), "", " "])
    assert read(scorer(), "z", lists()["z"]) == LISTS["z"]


@pytest.mark.parametrize("n", [0, 5, 8])
def test_a_file_of_another_length_is_refused_before_any_work(n: int) -> None:
    write("dev.scores", ["1"] * n)
    line = min(n, 7) + 1
    told = f"dev.scores:{line}: expected 7 lines as dev.kbest has, found {n}; write one number"
    with pytest.raises(InputError, match=re.escape(told)):
        scorer()


@pytest.mark.parametrize("token", ["", "nan", "inf", "-inf", "1,5", "1_0", "0.1 0.2", "١", "1e999"])
def test_what_is_no_finite_number_is_refused_with_its_line(token: str) -> None:
    write("dev.scores", ["1", token, *["1"] * 5])
    with pytest.raises(InputError, match=r"dev\.scores:2: expected a (decimal|finite) number"):
        read(scorer(), "x", lists()["x"])


def test_infinities_are_clipped_where_that_is_asked_for_and_counted_once() -> None:
    write("dev.scores", ["1", "-inf", "inf", *["1"] * 4])
    notices = Notices()
    found, kbest = scorer(clip=1e4, notices=notices), lists()["x"]
    for _ in range(2):
        assert read(found, "x", kbest) == [[1.0, -1e4, 1e4], [1.0]]
    assert notices.lines() == ["2 x infinite number, clipped, first at dev.scores:2"]


def test_oddities_of_the_text_are_told_once() -> None:
    Path("dev.scores").write_bytes(b"".join(b"1\r\n" for _ in IDS))
    notices = Notices()
    found, kbest = scorer(notices=notices), lists()["x"]
    for _ in range(3):
        read(found, "x", kbest)
    assert notices.lines() == ["7 x CRLF line ends, read as LF, first at dev.scores:1"]


def test_numbers_have_the_bits_of_python() -> None:
    rng = np.random.default_rng(2)
    values = rng.standard_normal(len(IDS)) * 10.0 ** rng.integers(-20, 20, len(IDS))
    write("dev.scores", [repr(float(value)) for value in values])
    found = scorer()
    own = [x for name, k in lists().items() for scores in read(found, name, k) for x in scores]
    assert own == values.tolist()


@pytest.fixture
def n_lines_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lines have been read of all files of scores."""
    found = [0]

    def counted(*given: Any, **options: Any) -> Iterator[bytes]:
        for line in read_lines(*given, **options):
            found[0] += 1
            yield line

    monkeypatch.setattr("rerank.scorers.hypothesis_scores.read_lines", counted)
    return found


D, PASSES = 20, 2  # documents with two sentences of one candidate each, and readings of all
CLIPPED = 7  # line with an infinite number


def apart(case: str) -> tuple[Documents, list[KBest]]:
    """Documents whose lines alternate in all files, or in the list alone, where readers sort it."""
    ids = [b"%d" % (n % D) for n in range(2 * D)]
    documents = Documents.from_lines(ids, interleaved=True)
    write("dev.kbest", [f"{n} ||| w ||| A= 1 ||| 2" for n in range(2 * D)])
    if case == "files":
        return documents, list(read_documents("dev.kbest", documents, Notices()))
    in_order = Documents(documents.ids, documents.starts)
    found = read_documents("dev.kbest", in_order, Notices())
    moved = (replace(k, line_numbers=np.array([d + 1, d + 1 + D])) for d, k in enumerate(found))
    return in_order, list(moved)


@pytest.mark.parametrize("case", ["files", "list"])
def test_a_file_is_read_once_where_the_lines_of_documents_stand_apart(
    case: str, n_lines_read: list[int]
) -> None:
    documents, found = apart(case)
    values = [str(n) for n in range(1, 2 * D + 1)]
    values[CLIPPED - 1] = "-inf"
    write("dev.scores", [*values, "", " "])
    notices = Notices()
    own = scorer(last_line=2 * D, clip=50, notices=notices, documents=documents)
    expected = [[d + 1.0, d + 1.0 + D] for d in range(D)]
    expected[CLIPPED - 1][0] = -50.0
    for _ in range(PASSES):
        read_values = [own.values(kbest).tolist() for kbest in found]
        assert read_values == expected
    own.finish("dev.kbest", notices)
    assert notices.lines() == [f"1 x infinite number, clipped, first at dev.scores:{CLIPPED}"]
    assert n_lines_read[0] <= 3 * (2 * D + 2)  # to count them, and twice at most


def test_lines_that_stand_apart_are_refused_with_their_number() -> None:
    documents, found = apart("files")
    write("dev.scores", ["1"] * (2 * D - 1) + ["nan"])
    own = scorer(last_line=2 * D, documents=documents)
    for kbest in found[:-1]:
        assert own.values(kbest).tolist() == [1, 1]
    with pytest.raises(InputError, match=rf"dev\.scores:{2 * D}: expected a decimal number"):
        own.values(found[-1])
