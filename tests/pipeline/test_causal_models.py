"""`--lm NAME=hf:DIR` in commands: features, weights files, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from support import causal
from support.files import write, write_weights

from lm.causal.folder import open_causal_model
from rerank.cli import run

LISTS = [["the lamp is lit", "it"], ["it gives light", "he"], ["she is old", "no sea"]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    causal.save(Path("gpt"))
    lines = [
        f"{t} ||| {text} ||| TM0= {-k} ||| 0"
        for t, own in enumerate(LISTS)
        for k, text in enumerate(own)
    ]
    write("dev.kbest", lines)
    write("dev.docs", ["x", "x", "y"])
    write_weights("w.json", {"TM0": [0.25], "gpt": [1.0]})
    return tmp_path


FILES = "--kbest dev.kbest --docs dev.docs --device cpu --no-cache"


def test_score_appends_log_p_given_the_document_so_far(here: Path) -> None:
    assert run(f"score {FILES} --lm gpt=hf:gpt --out scored".split()) == 0
    lines = Path("scored").read_text().splitlines()
    found = [float(line.split("gpt= ")[1].split()[0]) for line in lines]
    model = open_causal_model(Path("gpt"))
    expected = []
    for t, own in enumerate(LISTS):
        context = [0, *model.encode([LISTS[0][0] + "\n"])[0]] if t == 1 else [0]
        sentences = model.encode([f"{text}\n" for text in own])
        expected += [causal.obvious(model, context, one) for one in sentences]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("window", "search"),
    [("", "beam"), (",sentences=1", "viterbi"), (",sentences=2", "viterbi"), ("", "sweeps")],
)
def test_decode_searches_with_the_window_that_is_asked_for(
    here: Path, window: str, search: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"decode {FILES} --lm gpt=hf:gpt{window} --weights w.json --out o --search {search}"
    assert run(command.split()) == 0
    assert len(Path("o").read_text().splitlines()) == 3
    assert "tokens scored in" in capsys.readouterr().err


def test_exact_search_without_a_window_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"decode {FILES} --lm gpt=hf:gpt --weights w.json --out o --search viterbi"
    assert run(command.split()) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_pmi_form_has_two_features(here: Path) -> None:
    assert run(f"score {FILES} --lm gpt=hf:gpt,sentences=1 --pmi gpt --out scored".split()) == 0
    first = Path("scored").read_text().splitlines()[0]
    assert "gptpmi= 0 gptnull= -" in first


def test_weights_files_name_the_folder_and_the_window(here: Path) -> None:
    write("dev.ref", ["the lamp is lit", "it gives light", "she is old"])
    command = f"tune-mert {FILES} --ref dev.ref --lm gpt=hf:gpt,sentences=1 --out tuned.json"
    assert run(command.split()) == 0
    models = json.loads(Path("tuned.json").read_text())
    text = json.dumps(models)
    assert '"folder": "hf:gpt,sentences=1"' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--lm gpt=hf:none", "none: expected a folder written by save_pretrained, found none"),
        ("--lm gpt=hf:gpt,sentences=x", "found sentences=x"),
        ("--lm gpt=hf:gpt,sentences=0 --pmi gpt", "give a window of a sentence or more"),
        ("--lm gpt=hf:gpt --document-cache gpt", "give --scorer NAME=document-cache beside it"),
        ("--lm gpt=hf:gemma", "scores a prefix tree otherwise"),
    ],
)
def test_what_is_not_possible_is_refused_in_a_line(
    here: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "gemma" in options:
        causal.save(Path("gemma"), "gemma2")
    assert run(f"score {FILES} {options} --out scored".split()) in (2, 3)
    lines = capsys.readouterr().err.splitlines()
    assert message in lines[-1]
    assert not Path("scored").exists()


def test_commands_for_our_own_models_say_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("text", ["the lamp is lit"])
    assert run(["perplexity", "text", "--lm", "hf:gpt"]) == 2
    assert "this command takes models made by train-lm" in capsys.readouterr().err
