"""Scores of lines against the lines written out, in any order of reading."""

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
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


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def lists(top: int | None = None) -> dict[str, KBest]:
    found = read_documents("dev.kbest", DOCUMENTS, Notices(), ReadingOptions(top=top))
    return dict(zip(DOCUMENTS.ids, found, strict=True))


def scorer(
    path: str = "dev.scores",
    *,
    last_line: int = len(IDS),
    clip: float | None = None,
    notices: Notices | None = None,
) -> HypothesisScores:
    given = ListInfo(DOCUMENTS, "dev.kbest", lambda: last_line, clip_inf=clip)
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
