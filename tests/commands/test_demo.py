"""`rerank demo` on the beginning of its example, and the example itself."""

import gzip
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from support.world import ROOT, World

FOLDER = Path(str(files("rerank") / "example"))
DATA = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".gz", ".ini"))
ROWS = ["1-best of the lists", "+ rnnlm", "+ codclm", "+ codclm, shuffled"]


@cache
def lines(name: str, folder: Path = FOLDER) -> list[str]:
    content = (folder / name).read_bytes()
    text = gzip.decompress(content) if name.endswith(".gz") else content
    return text.decode().split("\n")[:-1]


def cut(name: str, folder: Path, keep: Callable[[int, str], bool]) -> None:
    """The lines of a file of the example that are to be kept."""
    kept = "".join(f"{x}\n" for n, x in enumerate(lines(name)) if keep(n, x)).encode()
    (folder / name).write_bytes(gzip.compress(kept) if name.endswith(".gz") else kept)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    """A demo of little text, whose models have learnt little: its folder, commands, and text."""
    small, world = (tmp_path_factory.mktemp(name) for name in ("small", "world"))
    for name, documents in (("tune", 2), ("test", 3)):
        ids = lines(f"{name}.docids.gz")
        end = ids.index([*dict.fromkeys(ids)][documents])
        for kind in ("docids", "ref"):
            cut(f"{name}.{kind}.gz", small, lambda n, x, end=end: n < end)  # type: ignore[misc]
        cut(f"{name}.nbest.gz", small, lambda n, x, end=end: int(x.split()[0]) < end)  # type: ignore[misc]
    cut("lm.train.txt.gz", small, lambda n, x: n < 150)
    cut("lm.valid.txt.gz", small, lambda n, x: n < 50)
    cut("weights.ini", small, lambda n, x: True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        patch.setenv("RERANK_CACHE", str(world / "cache"))
        patch.setattr("rerank.example.EMBEDDED.folder", small)
        done = World(world).ok("demo --out demo --seed 3")
    return world / "demo", done.err.splitlines(), done.out


def test_its_rows_are_of_models_and_a_control(shown: tuple[Path, list[str], str]) -> None:
    folder, _, text = shown
    report = json.loads((folder / "report.json").read_bytes())
    systems = report["systems"]
    assert [system["name"] for system in systems] == ROWS
    assert [model["name"] for model in report["models"]] == ["rnnlm", "codclm"]
    assert report["seed"] == 3
    assert all(system["bleu"] <= report["oracle"]["bleu"] for system in systems)
    rows = reversed(lines("test.nbest.gz", folder / "data"))
    first = dict(x.split(" ||| ")[:2] for x in rows)
    assert (folder / "test.1-best.txt").read_text().splitlines() == [*first.values()][::-1]
    bleu = [system["bleu"] for system in systems]
    assert all(name in text for name in ROWS)
    assert f"gains {bleu[2] - bleu[0]:.2f} BLEU over the 1-best and {bleu[2] - bleu[1]:.2f}" in text
    assert f"it gains {bleu[3] - bleu[0]:.2f} and {bleu[3] - bleu[1]:.2f}" in text


def test_its_steps_are_commands_of_the_shell_and_give_what_it_shows(
    shown: tuple[Path, list[str], str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, told, _ = shown
    commands = [shlex.split(line) for line in told if line.startswith("rerank ")]
    model = ["train-lm", "tune-mert", "decode"]
    names = ["decode", *model, *model, "decode", "evaluate", "report"]
    assert [command[1] for command in commands] == names
    monkeypatch.chdir(folder.parent)
    result = world.ok([*commands[-2][1:], "--format", "json"]).json["systems"]
    expected = json.loads((folder / "report.json").read_bytes())["systems"]
    for one, other in zip(result, expected, strict=True):
        assert {**one, "name": ""} == {**other, "name": ""}


def test_it_ends_with_changed_sentences_and_a_page(shown: tuple[Path, list[str], str]) -> None:
    folder, _, text = shown
    assert text.endswith("\nreport: demo/report.html\n")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    examples = json.loads((folder / "report.json").read_bytes())["examples"]
    assert 1 <= len(examples) <= 3
    assert len({example["document"] for example in examples}) == len(examples)
    chosen = (folder / "test.codclm.txt").read_text().splitlines()
    ids = lines("test.docids.gz", folder / "data")
    for one in examples:
        texts, t = one["texts"], ids.index(one["document"]) + one["sentence"]
        assert texts["chosen"] == chosen[t] != texts["first"]
        told = f"\n{one['document']}, sentence {one['sentence']}\n  before      {chosen[t - 1]}"
        assert told in text


def test_shuffling_moves_sentences_within_documents(shown: tuple[Path, list[str], str]) -> None:
    folder = shown[0]
    ids = lines("test.docids.gz", folder / "data")
    before, after = lines("test.ref.gz", folder / "data"), lines("test.ref.gz", folder / "shuffled")
    assert before != after
    result = []
    for one in ("data", "shuffled"):
        lists: list[list[str]] = [[] for _ in ids]
        for x in lines("test.nbest.gz", folder / one):
            lists[int(x.split()[0])].append(x.partition(" |||")[2])
        result.append(lists)
    for name in dict.fromkeys(ids):
        own = [t for t, one in enumerate(ids) if one == name]
        assert sorted(before[t] for t in own) == sorted(after[t] for t in own)
        assert sorted(result[0][t] for t in own) == sorted(result[1][t] for t in own)
    assert result[1][1] == result[0][before.index(after[1])]
    assert (folder / "test.shuffled.codclm.in-order.txt").exists()


def test_without_a_folder_nothing_is_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lists are broken, so that it ends early."""
    shutil.copytree(FOLDER, world.folder / "broken", ignore=shutil.ignore_patterns("*.py"))
    world.write("broken/test.nbest.gz", gzip.compress(b"0\n"))
    monkeypatch.setattr("rerank.example.EMBEDDED.folder", world.folder / "broken")
    (world.folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(world.folder / "temporary"))
    run = world.run("demo")
    keeps, command, *_ = run.err.splitlines()
    assert run.exit == 3
    assert keeps == "# rerank demo --out demo keeps the files of these commands"
    assert command.startswith("rerank decode --kbest demo/data/test.nbest.gz --docs demo/data/")
    assert not [*(world.folder / "temporary").iterdir()]


@pytest.mark.slow
def test_documents_are_worth_what_the_example_promises(world: World) -> None:
    result = world.ok("demo --format json").json
    first, sentence, document, shuffled = (system["bleu"] for system in result["systems"])
    assert document > first + 5
    assert document > sentence + 3
    assert shuffled < sentence + 1
    assert sentence > first
    assert result["page"] is None  # it is removed with the other files


# The example
def test_the_recipe_makes_the_embedded_example_again(tmp_path: Path) -> None:
    """Content, not compressed bytes: these differ from one zlib to another."""
    recipe = ROOT / "recipes" / "toy" / "generate.py"
    subprocess.run([sys.executable, str(recipe), str(tmp_path), "--seed", "1"], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == DATA
    for name in DATA:
        assert lines(name, tmp_path) == lines(name)


def test_the_example_is_small_and_holds_neither_time_nor_name() -> None:
    assert sum((FOLDER / name).stat().st_size for name in DATA) < 400_000
    headers = {(FOLDER / name).read_bytes()[:8] for name in DATA if name.endswith(".gz")}
    assert headers == {gzip.compress(b"", mtime=0)[:3] + bytes(5)}
    others = {path.name for path in FOLDER.iterdir()} - {"__init__.py", "__pycache__"}
    assert others == {*DATA}
