"""The loop of `recipes/estimators`: export, score outside, feed back."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.files import write, write_weights

from rerank.cli import run

RECIPE = Path(__file__).parents[2] / "recipes" / "estimators"
LISTS = [["the bank", "a bank"], ["it is", "the bank is", "no"], ["he goes"]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{t} ||| {x} ||| TM0= 0 ||| 0" for t, own in enumerate(LISTS) for x in own]
    write("dev.kbest", lines)
    write("dev.docs", ["x", "x", "y"])
    write("dev.src", ["die bank", "sie ist", "er geht"])
    write_weights("w.json", {"TM0": [1.0], "qe": [0.5], "pair": [1.0]})
    return tmp_path


def script(name: str, *arguments: str, text: str | None = None) -> str:
    command = [sys.executable, str(RECIPE / name), *arguments]
    environment = {"PYTHONPATH": str(RECIPE.parents[1])}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


def test_numbers_of_an_estimator_come_back_as_features(here: Path) -> None:
    files = ["--kbest", "dev.kbest", "--docs", "dev.docs", "--source", "dev.src"]
    script("export.py", *files, "--out", "work")
    sentences = Path("work/sentences.tsv").read_text()
    assert sentences.splitlines()[:2] == ["die bank\tthe bank", "die bank\ta bank"]
    rows = [line.split("\t") for line in Path("work/pairs.tsv").read_text().splitlines()]
    assert len(rows) == 2 + 2 * 3 + 1
    assert rows[3] == ["x", "1", "0", "1", "die bank", "sie ist", "the bank", "the bank is"]
    assert rows[-1][:4] == ["y", "0", "-", "0"]
    Path("qe.txt").write_text(script("standin.py", text=sentences))
    texts = "".join("\t".join(row[4:]) + "\n" for row in rows)
    numbers = script("standin.py", text=texts).splitlines()
    keys = ["\t".join(row[:4]) for row in rows]
    write("pairs.txt", [f"{key}\t{n}" for key, n in zip(keys, numbers, strict=True)])
    command = (
        "decode --kbest dev.kbest --docs dev.docs --weights w.json --out o --search viterbi "
        "--scores qe=qe.txt --pair-scores pair=pairs.txt"
    )
    assert run(command.split()) == 0
    # after "the bank" two of three words are known, which outweighs half of a third too long
    assert Path("o").read_text() == "the bank\nthe bank is\nhe goes\n"
