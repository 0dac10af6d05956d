"""Every command that reads a list reads it from standard input, too, and writes the same."""

import json
import random
import sys
from pathlib import Path

import pytest
from support.files import write, write_weights

from rerank.cli import run

WORDS = ("the", "a", "lamp", "old", "light", "burns", "near")
COMMANDS = {
    "first": "",
    "convert --to moses": "",
    "convert --to jsonl": "",
    "convert --to first": "",
    "convert --to documents --docs docs": "",
    "decode --docs docs --weights w.json": "",
    "score --docs docs --scores lm=scores": "",
    "tune-mert --docs docs --ref ref --select none": ".json",
    "tune-mbr --docs docs --ref ref --weights w.json": ".json",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    texts = [[" ".join(rng.choices(WORDS, k=5)) for _ in range(4)] for _ in range(6)]
    lines = [
        f"{t} ||| {text} ||| LM0= {-rng.random():.3f} TM0= {-rng.random():.3f} ||| 0"
        for t, own in enumerate(texts)
        for text in own
    ]
    write("list", lines)
    write("docs", ["x"] * 3 + ["y"] * 3)
    write("ref", [rng.choice(own) for own in texts])
    write("scores", [str(-n % 5) for n in range(len(lines))])
    write_weights("w.json", {"LM0": [1.0], "TM0": [0.5]})


def piped(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> int:
    with open("list") as file:
        monkeypatch.setattr(sys, "stdin", file)
        return run(words)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_piped_list_gives_the_bytes_of_a_file(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix = COMMANDS[command]
    words = command.split()
    for name, kbest in (("file", "list"), ("pipe", "-")):
        own = [*words, "--kbest", kbest, "--out", f"{name}{suffix}"]
        assert (run(own) if kbest == "list" else piped(monkeypatch, own)) == 0
    file, pipe = (Path(f"{name}{suffix}").read_bytes() for name in ("file", "pipe"))
    if suffix:  # a weights file, which also says what it was made of
        tuned, again = (json.loads(content) for content in (file, pipe))
        assert tuned["weights"] == again["weights"]
        assert tuned.get("alpha") == again.get("alpha")
    else:
        assert file
        assert pipe == file


@pytest.mark.parametrize(
    "command", ["check --docs docs --ref ref", "check", "diversity --docs docs"]
)
def test_a_piped_list_is_reported_as_a_file_is(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for kbest in ("list", "-"):
        words = [*command.split(), "--kbest", kbest]
        assert (run(words) if kbest == "list" else piped(monkeypatch, words)) == 0
        shown.append(capsys.readouterr().out.replace("<stdin>", "list"))
    assert shown[0] == shown[1]
