"""`rerank tune-mert` as it is typed: what it says, what it writes, how it ends, and its help."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from rerank.cli import cli, run
from rerank.cli.tuning_options import ranges_of
from rerank.errors import UsageError
from rerank.formats.weights import read_weights
from rerank.notices import Notices

ROOT = Path(__file__).parents[2]
TUNE = (
    "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --start start.json --select none "
    "--starts 2"
)
PAIRS = "--pair-scores pairs=dev.pairs"
INI = """[input-factors]
0

[feature]
Distortion
KENLM name=LM0 path=lm.bin

# weights follow
[weight]
UnknownWordPenalty0= 1
LM0= 0.5
TM0= 0.25 0.25

[threads]
2
"""


@pytest.mark.parametrize(
    "options",
    [
        f"{PAIRS} --pools exact",
        "--objective chrf --per-document",
        f"{PAIRS} --hold-out 0.3 --replicates 2",
        "--objective m=3 --objective ter --metric m=dev.m --worst 25 --length-ratio 0.97",
        "--range LM0=0: --range TM0_1=-1:1 --shrink 0.5",
    ],
)
def test_sound_options_end_with_weights_and_one_result(
    tuning_lists: Path, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*TUNE.split(), "--out", "out.json", *options.split()]) == 0
    told = capsys.readouterr().err
    assert len(re.findall(r"^tuned BLEU \d", told, re.MULTILINE)) == 1
    assert "nan" not in told
    assert read_weights("out.json", Notices()).dense


def test_the_headline_of_cross_validation_is_bleu_of_held_out_documents(
    tuning_lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = TUNE.replace("--select none ", "").split()
    assert run([*words, "--out", "out.json"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.match(r"held-out corpus BLEU \d+\.\d\d ± \d+\.\d\d", last)
    made = json.loads(Path("out.json").read_text(encoding="utf-8"))["provenance"]
    assert made["select"] == "cv"
    chosen, tried = made["selection"]["chosen"], made["selection"]["candidates"]
    assert chosen in tried
    assert [one["share"] for one in tried][:3] == [0, 0.1, 0.2]
    assert f"held-out corpus BLEU {chosen['held_out']:.2f} ± {chosen['error']:.2f}" in last


def test_cross_validation_warns_of_constant_features_once(
    tuning_lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("dev.kbest").read_text(encoding="utf-8").replace(" LM0=", " C0= 1 LM0=")
    Path("dev.kbest").write_text(lines, encoding="utf-8")
    words = TUNE.replace("--select none ", "").split()
    assert run([*words, "--out", "out.json"]) == 0
    assert capsys.readouterr().err.count("constant feature") == 1


@pytest.mark.parametrize("name", ["pro", "expected-bleu"])
def test_other_algorithms_go_to_corpus_bleu(tuning_lists: Path, name: str) -> None:
    words = TUNE.removesuffix(" --starts 2").split()
    end = f"--algorithm {name} --replicates 2 --seed 3 --threads 2 --out out.json -q".split()
    assert run([*words, *PAIRS.split(), *end]) == 0
    made = json.loads(Path("out.json").read_text(encoding="utf-8"))["provenance"]
    assert (made["algorithm"], made["objective"]) == (name, "corpus BLEU")
    assert (made["seed"], made["threads"]) == (3, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--pools documents", "'documents' is not one of 'auto', 'sentences', 'conditional', "),
        ("--n-best 5", "No such option '?--n-best"),
        ("--directions powell", "No such option '?--directions"),
        ("--norm l2", "No such option '?--norm"),
        ("--window 3", "No such option '?--window"),
        ("--window-of min", "No such option '?--window-of"),
        ("--algorithm random", "'random' is not one of 'mert', 'pro', 'expected-bleu'"),
        ("--algorithm mira", "'mira' is not one of 'mert', 'pro', 'expected-bleu'"),
    ],
)
def test_options_of_earlier_versions_end_with_a_usage_error(
    tuning_lists: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*TUNE.split(), "--out", "out.json", *options.split()]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not Path("out.json").exists()


def test_quiet_leaves_nothing_to_say(
    tuning_lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*TUNE.split(), "--out", "out.json", "-q"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""
    assert Path("out.json").exists()


def test_weights_may_go_to_standard_output(
    tuning_lists: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run([*TUNE.split(), "--out", "-"]) == 0
    assert run([*TUNE.split(), "--out", "out.json", "-q"]) == 0
    assert capfdbinary.readouterr().out == Path("out.json").read_bytes()


def test_threads_change_no_byte_of_what_is_written(tuning_lists: Path) -> None:
    files = []
    for n in ("1", "2"):
        words = [*TUNE.split(), *PAIRS.split(), "--threads", n, "--out", "out.json", "-q"]
        assert run(words) == 0
        content = Path("out.json").read_bytes()
        files.append(content.replace(f'"threads": {n}'.encode(), b'"threads": 1'))
    assert files[0] == files[1]


def test_the_file_says_what_was_maximised_and_from_which_files(tuning_lists: Path) -> None:
    words = "--objective m=3 --objective chrf --metric m=dev.m --out out.json -q"
    assert run([*TUNE.split(), *words.split()]) == 0
    made = json.loads(Path("out.json").read_text(encoding="utf-8"))["provenance"]
    assert made["objective"].startswith("3 corpus m + 1 corpus chrF2")
    assert set(made["metrics"]) == {"m", "chrF2"}
    assert "dev.m" in [read["file"] for read in made["inputs"]]


def test_a_moses_ini_keeps_all_but_its_weights(tuning_lists: Path) -> None:
    Path("moses.ini").write_text(INI, encoding="utf-8")
    words = [*TUNE.replace("start.json", "moses.ini").split(), "--base", "moses.ini", "-q"]
    assert run([*words, "--out", "tuned.ini"]) == 0
    text = Path("tuned.ini").read_text(encoding="utf-8")
    for line in INI.splitlines():
        assert line in text or line.startswith(("LM0=", "TM0="))
    assert text.count("[weight]") == 1
    dense = read_weights("tuned.ini", Notices()).dense
    assert dense["LM0"] != (0.5,)
    assert run([*words[:-1], "--out", "tuned.json"]) == 2


def test_standard_input_may_be_the_list(
    tuning_lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = TUNE.replace("dev.kbest", "-").split()
    with open("dev.kbest") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert run([*words, "--out", "piped.json", "-q"]) == 0
    assert run([*TUNE.split(), "--out", "out.json", "-q"]) == 0
    one, two = (read_weights(name, Notices()) for name in ("piped.json", "out.json"))
    assert one.dense == two.dense


# Ranges


def parsed(*arguments: str) -> dict[str, Any]:
    """Parameters of `tune-mert` as click reads them."""
    needed = ["--kbest", "k", "--docs", "d", "--ref", "r", "--out", "o.json"]
    return cli.commands["tune-mert"].make_context("tune-mert", [*needed, *arguments]).params


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LM0=0:", ("LM0", 0.0, float("inf"))),
        ("LM0=:0", ("LM0", float("-inf"), 0.0)),
        ("TM0_1=-1:1e1", ("TM0_1", -1.0, 10.0)),
        ("a=b=-.5:.5", ("a=b", -0.5, 0.5)),
    ],
)
def test_a_range_is_a_name_and_two_ends(text: str, expected: tuple[str, float, float]) -> None:
    name, *ends = expected
    assert ranges_of(parsed("--range", text)) == {name: tuple(ends)}


@pytest.mark.parametrize("text", ["LM0", "LM0=", "LM0=1", "=0:1", "LM0=a:1", "LM0=nan:", "0:1"])
def test_a_range_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"expected .*, found|expected .*; found") as fault:
        parsed("--range", text)
    assert fault.value.message.rpartition("found ")[2].strip("'") in text


def test_a_range_begins_with_its_least_value() -> None:
    with pytest.raises(click.BadParameter, match="expected the least value first, found '1:0'"):
        parsed("--range", "LM0=1:0")


def test_two_ranges_of_a_name_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="--range LM0=…: two of one name; give one"):
        ranges_of(parsed("--range", "LM0=0:", "--range", "LM0=:1"))


# Help


def test_the_help_has_every_option_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune-mert", "--help"]) == 0
    text = capsys.readouterr().out
    command = cli.commands["tune-mert"]
    headings = re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE)
    assert sorted(headings) == sorted(command.headings.values())  # type: ignore[attr-defined]
    names = {parameter.name for parameter in command.params}
    assert set(command.headings) <= names  # type: ignore[attr-defined]
    shown = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert {parameter.opts[-1] for parameter in command.params} <= set(shown)
    parts = text.split("\n\n")
    assert max(part.count("\n  --") for part in parts) < 20


def test_the_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from rerank.cli import run; run(['tune-mert', '--help']); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'torch', 'scipy')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL)
    assert done.returncode == 0
