"""`rerank diversity` on files: whose figures they are, in three forms."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rerank.cli import run
from rerank.corpus.diversity import Diversity, farthest_first
from rerank.corpus.diversity import diversity as measure
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline import Lists, diversity, evaluate

LISTS = {
    0: ["a b c", "a b d", "a b c", "x y"],
    1: [],
    2: ["a"],
    3: ["", "e f  g", "e f"],
}
FIGURES = {t: measure([text.split() for text in texts]) for t, texts in LISTS.items() if texts}


@pytest.fixture
def kbest(tmp_path: Path) -> Path:
    lines = [f"{t} ||| {text} ||| A= 1 ||| 1" for t, texts in LISTS.items() for text in texts]
    path = tmp_path / "dev.kbest"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_each_list_that_has_candidates_has_its_figures(kbest: Path) -> None:
    notices = Notices()
    found = diversity(Lists(kbest), notices=notices)
    assert found.lists == FIGURES
    assert found.lists[2] == Diversity(1, 1, None, None)
    assert "without hypotheses (ids 1)" in "\n".join(notices.lines())


def test_means_are_of_the_lists_that_have_the_figure(kbest: Path) -> None:
    report = diversity(Lists(kbest), notices=Notices()).to_dict()
    assert (report["candidates"], report["distinct"]) == (8, 7)
    first, last = FIGURES[0], FIGURES[3]
    assert first.distance is not None
    assert last.distance is not None
    assert report["mean"] == {
        "candidates": 8 / 3,
        "distinct": 7 / 3,
        "distance": pytest.approx((first.distance + last.distance) / 2),
        "relative": pytest.approx(((first.relative or 0) + (last.relative or 0)) / 2),
    }


def test_ids_are_those_of_the_file(kbest: Path) -> None:
    lines = [f"{int(line[0]) + 1}{line[1:]}" for line in kbest.read_text().splitlines(True)]
    kbest.write_text("".join(lines))
    assert list(diversity(Lists(kbest, first_id=1), notices=Notices()).lists) == [1, 3, 4]


def test_ids_may_fall_within_documents_that_are_named(kbest: Path, tmp_path: Path) -> None:
    lines = kbest.read_text().splitlines(True)
    kbest.write_text("".join(lines[4:] + lines[:4]))
    with pytest.raises(InputError, match=r"found 0 .interleaved ids.; sort"):
        diversity(Lists(kbest), notices=Notices())
    docs = tmp_path / "dev.docs"
    docs.write_text("x\nx\nx\nx\n")
    found = diversity(Lists(kbest, docs), notices=Notices())
    assert found.lists == FIGURES


def test_the_figures_are_of_the_candidates_that_are_kept(kbest: Path) -> None:
    for diverse in (False, True):
        found = diversity(Lists(kbest, top=2, diverse=diverse), notices=Notices())
        for t, one in found.lists.items():
            words = [text.split() for text in LISTS[t]]
            kept = farthest_first(words, 2).tolist() if diverse else [0, 1]
            assert one == measure([words[rank] for rank in kept if rank < len(words)])


def test_an_oracle_is_of_the_candidates_that_are_kept(kbest: Path, tmp_path: Path) -> None:
    for name, lines in {"ref": "x y\n\n\n\n", "base": "a\n\n\n\n", "docs": "x\nx\nx\nx\n"}.items():
        (tmp_path / name).write_text(lines)
    lengths = []
    for diverse in (False, True):
        report = evaluate(
            tmp_path / "docs",
            [tmp_path / "ref"],
            [tmp_path / "base"],
            kbest=Lists(kbest, top=2, diverse=diverse),
            notices=Notices(),
        )
        assert report.oracle is not None
        lengths.append(report.oracle.length_ratio)
    assert lengths[0] != lengths[1]  # the fourth candidate, which is the reference, is kept or not


def test_a_table_has_a_line_per_list_and_nothing_for_what_is_not_there(
    kbest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diversity", "--kbest", str(kbest), "--format", "tsv", "-q"]) == 0
    names, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert names == ["id", "candidates", "distinct", "distance", "relative"]
    assert rows == [
        [str(t), *("" if value is None else str(value) for value in values)]
        for t, one in FIGURES.items()
        for values in [(one.candidates, one.distinct, one.distance, one.relative)]
    ]


def test_json_and_text_are_the_report(kbest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = diversity(Lists(kbest, top=2, diverse=True), notices=Notices())
    command = ["diversity", "--kbest", str(kbest), "--top", "2", "--diverse", "-q"]
    assert run([*command, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected.to_dict()
    assert run(command) == 0
    text = capsys.readouterr().out
    assert text == expected.to_text()
    assert "3 lists, 5 candidates, 5 distinct\n" in text


def test_the_spread_is_of_figures_that_some_list_has(kbest: Path) -> None:
    rows = diversity(Lists(kbest), notices=Notices()).to_text().splitlines()[2:8]
    by_name = {row.split()[0]: row.split()[1:] for row in rows}
    assert list(by_name) == ["mean", "least", "10%", "50%", "90%", "most"]
    assert by_name["least"][:2] == ["1.0", "1.0"]
    assert by_name["50%"][:2] == ["3.0", "3.0"]
    assert by_name["most"][:2] == ["4.0", "3.0"]
    distances = [one.distance for one in FIGURES.values() if one.distance is not None]
    assert by_name["least"][2] == f"{min(distances):.2f}"
    assert by_name["most"][2] == f"{max(distances):.2f}"


def test_a_list_without_pairs_has_no_distance_to_tell(kbest: Path) -> None:
    found = diversity(Lists(kbest, top=1), notices=Notices())
    assert found.mean("distance") is None
    assert "mean" in found.to_text()


def test_diversity_needs_no_torch(kbest: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from rerank.cli import run\n"
        "sys.exit(run(['diversity', '--kbest', sys.argv[1], '-q']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(kbest)], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
