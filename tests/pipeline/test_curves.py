"""Learning curves as files."""

from pathlib import Path

import pytest

from lm.training.settings import Report
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline.curves import COLUMNS, LearningCurve, read_curve


def report(update: int) -> Report:
    return Report(update, update / 4, 1.5, 100.0, 4.25, 64.5, True, rate=0.1)


def rows(path: Path) -> list[dict[str, str]]:
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == list(COLUMNS)
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines]


@pytest.mark.parametrize("name", ["curve.tsv", "no/curve.tsv"])
def test_every_validation_adds_a_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    curve = LearningCurve(path)
    curve.add(report(2))
    assert len(rows(path)) == 1
    curve.add(report(4))
    first, second = rows(path)
    assert first == {
        "update": "2",
        "epoch": "0.5",
        "seconds": "1.5",
        "training_nats": "4.25",
        "valid_perplexity": "64.5",
        "rate": "0.1",
        "stage": "words",
    }
    assert second["update"] == "4"
    assert [found.name for found in path.parent.iterdir()] == ["curve.tsv"]


def test_a_new_run_replaces_the_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "curve"
    path.write_text("anything\n", encoding="utf-8")
    LearningCurve(path).add(report(2))
    assert len(rows(path)) == 1


def test_a_resumed_run_keeps_the_lines_up_to_its_state(tmp_path: Path) -> None:
    """Lines after the state are of updates that are made again."""
    path = tmp_path / "curve"
    first = LearningCurve(path)
    for update in (2, 4, 6):
        first.add(report(update))
    second = LearningCurve(path)
    second.resume(4, Notices())
    second.add(report(5))
    assert [row["update"] for row in rows(path)] == ["2", "4", "5"]


def test_a_resumed_run_without_a_file_begins_one(tmp_path: Path) -> None:
    curve = LearningCurve(tmp_path / "curve")
    curve.resume(4, Notices())
    curve.add(report(5))
    assert len(rows(tmp_path / "curve")) == 1


@pytest.mark.parametrize("content", ["", "a b\n", "\t".join(COLUMNS) + "\nx\t1\n"])
def test_another_file_is_not_extended(tmp_path: Path, content: str) -> None:
    path = tmp_path / "curve"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="curve:1: expected the learning curve"):
        LearningCurve(path).resume(4, Notices())
    assert path.read_text(encoding="utf-8") == content


def test_what_cannot_be_replaced_is_refused(tmp_path: Path) -> None:
    for path in ("-", "/dev/null", tmp_path):
        with pytest.raises(UsageError, match=r"--curve .*expected a file"):
            LearningCurve(path)


def test_a_curve_is_read_back_as_seconds_and_perplexities(tmp_path: Path) -> None:
    path = tmp_path / "curve.tsv"
    curve = LearningCurve(path)
    for update in (2, 4):
        curve.add(report(update))
    points = [(float(row["seconds"]), float(row["valid_perplexity"])) for row in rows(path)]
    assert read_curve(path, Notices()) == points


@pytest.mark.parametrize("change", ["x", "nan", "", "drop"])
def test_another_file_is_no_curve(tmp_path: Path, change: str) -> None:
    path = tmp_path / "curve.tsv"
    curve = LearningCurve(path)
    curve.add(report(2))
    header, line = path.read_text().splitlines()
    cells = line.split("\t")
    cells[COLUMNS.index("valid_perplexity")] = change
    kept = [header, "\t".join(cells)] if change != "drop" else [line]
    path.write_text("\n".join(kept) + "\n")
    number = 1 if change == "drop" else 2
    with pytest.raises(InputError, match=rf"curve.tsv:{number}: expected a learning curve"):
        read_curve(path, Notices())
