"""`export`: documents as files."""

from pathlib import Path

import pytest
from support.files import read, write

from rerank.cli import run
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import export

DOCS = ["../a", "../a", "b c", "b c", "b c"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("docs", DOCS)
    write("ours", [f"line {t}" for t in range(5)])
    write("ref", [f"réf {t}" for t in range(5)])


def test_each_document_is_a_file_of_each_text() -> None:
    export([("ours", "ours"), ("ref", "ref")], "out", "docs", notices=Notices())
    assert read("out/ours/0001.txt") == ["line 0", "line 1"]
    assert read("out/ref/0002.txt") == ["réf 2", "réf 3", "réf 4"]
    assert read("out/documents.tsv") == ["1\t../a\t2", "2\tb c\t3"]
    found = sorted(str(path) for path in Path("out").rglob("*") if path.is_file())
    assert len(found) == 5
    assert sorted(path.name for path in Path().iterdir()) == ["docs", "ours", "out", "ref"]


def test_documents_are_given_by_their_sizes() -> None:
    write("sizes", ["2", "3"])
    command = "export ours=ours --out out -q --docs"
    assert run([*command.split(), "sizes", "--docs-format", "sizes"]) == 0
    assert read("out/ours/0002.txt") == ["line 2", "line 3", "line 4"]


def test_a_fault_leaves_nothing() -> None:
    write("short", ["one"])
    with pytest.raises(InputError, match="short"):
        export([("ours", "ours"), ("short", "short")], "out", "docs", notices=Notices())
    assert sorted(path.name for path in Path().iterdir()) == ["docs", "ours", "ref", "short"]


@pytest.mark.parametrize("name", ["../x", "a/b", ".", "", "a b"])
def test_names_that_are_no_names_of_folders_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="choose another NAME"):
        export([(name, "ours")], "out", "docs", notices=Notices())


def test_a_folder_in_use_and_a_name_given_twice_are_refused() -> None:
    Path("out").mkdir()
    export([("ours", "ours")], "out", "docs", notices=Notices())  # an empty folder is fine
    with pytest.raises(UsageError, match="new or empty folder"):
        export([("ours", "ours")], "out", "docs", notices=Notices())
    with pytest.raises(UsageError, match="the NAME of two files"):
        export([("ours", "ours"), ("ours", "ref")], "new", "docs", notices=Notices())


def test_the_command_says_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--docs", "docs", "--out", "out", "ours=ours", "ref=ref"]) == 0
    assert "2 documents of 2 texts written to out" in capsys.readouterr().err
    assert run(["export", "--docs", "docs", "--out", "new", "ours"]) == 2
    assert "expected NAME=FILE" in capsys.readouterr().err
