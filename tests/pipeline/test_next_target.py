"""The model that is given the next target sentence, through the command line.

The truth is `perplexity` of every path's text, or the sentences of a document as training reads it.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files import read, write, write_weights
from support.models import save_models, scores_of_sentences
from support.words import WORDS

import rerank
from lm.checkpoint import load_model
from rerank.cli import run

LISTS = [  # of one document; sentence 2 has no candidates
    ["the lamp", "lamp the", "it"],
    ["it", "the lamp"],
    [],
    ["no one", "a lamp is lit"],
    ["light", "it burns", "no light the"],
]
FILLED = [own for own in LISTS if own]
PATHS = list(product(*(range(len(own)) for own in FILLED)))
NAME = "dclm-right-target"
TRAIN = "train-lm --train train.txt --valid valid.txt --embed 6 --hidden 8 --streams 2 --epochs 12"
DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --lm lm=lm -q"
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "input": {"fusion": "input", "encoder": "bag"},
    "backward": {"backward": True, "recurrence": "gru"},
    "reversed": {"reverse_documents": True},
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists and weights, and a text whose words the next sentence tells."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, size in (("train", 60), ("valid", 6)):
        colours = rng.choice(["red", "blue"], size)
        write(f"{name}.txt", [line for c in colours for line in (f"it is {c}", f"so {c}", "")])
    lines = [
        f"{t} ||| {text} ||| LM0= {static(t, k)} ||| 0"
        for t, own in enumerate(LISTS)
        for k, text in enumerate(own)
    ]
    write("dev.kbest", lines)
    return tmp_path


def static(t: int, k: int) -> float:
    """LM0 of a line."""
    return -((3 * t + 5 * k) % 7) / 4


def made(shape: str = "plain") -> None:
    """A model with chance weights, and weights of its feature and LM0."""
    save_models({NAME: Path("lm")}, WORDS, 6, 8, oov_rate=0.0, **SHAPES[shape])
    write_weights("w.json", {"LM0": [1.0], "lm": [1.0], "lmoov": [0.0]})


def fault_of(command: str, capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """The last line of a command's messages, which ends with an error."""
    capsys.readouterr()
    assert run(command.split()) == code
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    return line


def measured(capsys: pytest.CaptureFixture[str], text: str = "text") -> dict[str, float]:
    """The figures of a text, as JSON."""
    assert run(["perplexity", "--lm", "lm", text, "--format", "json", "-q"]) == 0
    found: dict[str, float] = json.loads(capsys.readouterr().out)
    return found


def every_score(
    capsys: pytest.CaptureFixture[str],
) -> dict[float, dict[tuple[int, ...], float]]:
    """The score of each path under some weights of LM0; the model's by `perplexity` of its text."""
    present = [t for t, own in enumerate(LISTS) if own]
    found: dict[float, dict[tuple[int, ...], float]] = {weight: {} for weight in (0.0, 1.0, 4.0)}
    for path in PATHS:
        write("text", [own[k] for own, k in zip(FILLED, path, strict=True)])
        nats = measured(capsys)["nats"]
        lm0 = sum(static(t, k) for t, k in zip(present, path, strict=True))
        for weight, scores_of_paths in found.items():
            scores_of_paths[path] = weight * lm0 - nats
    return found


def decoded(*options: str) -> tuple[tuple[int, ...], dict[str, object]]:
    """The path that is decoded, and the summary of the document."""
    command = [*DECODE.split(), "--out", "out", "--summary", "out.json", *options]
    assert run(command) == 0
    (document,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["documents"]
    return tuple(k for k in document["choices"] if k is not None), document


def neighbours(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The paths that differ in one sentence."""
    for t, own in enumerate(FILLED):
        for k in range(len(own)):
            if k != path[t]:
                yield (*path[:t], k, *path[t + 1 :])


@pytest.mark.parametrize("shape", SHAPES)
def test_sweeps_end_in_a_path_that_no_change_of_one_sentence_improves(
    shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And, where a block has all sentences, in the best path of all; scores are those of texts."""
    made(shape)
    for weight, truth in every_score(capsys).items():
        write_weights("w.json", {"LM0": [weight], "lm": [1.0], "lmoov": [0.0]})
        best = max(truth, key=lambda path: truth[path])
        for options in ([], ["--gibbs", "3", "--alpha", "0.5"]):
            path, document = decoded("--horizon", "9", *options)
            assert document["search"] == "sweeps"
            assert (document["direction"], document["exact"]) == ("both", False)
            assert document["score"] == pytest.approx(truth[path], abs=1e-3)
            assert truth[path] >= truth[0, 0, 0, 0]
            assert all(truth[other] <= truth[path] + 1e-3 for other in neighbours(path))
        whole, document = decoded("--block", "4")
        assert whole == best
        assert document["score"] == pytest.approx(truth[best], abs=1e-3)


def test_a_zero_weight_leaves_the_search_to_the_other_features() -> None:
    made()
    write_weights("w.json", {"LM0": [1.0], "lm": [0.0], "lmoov": [0.0]})
    path, _ = decoded()
    present = [t for t, own in enumerate(LISTS) if own]
    rows = [[static(t, k) for k in range(len(LISTS[t]))] for t in present]
    assert list(path) == [row.index(max(row)) for row in rows]


@pytest.mark.parametrize("search", ["beam", "viterbi", "greedy", "exhaustive", "mbr", "smc"])
def test_other_decoders_are_refused_in_a_line_that_names_sweeps(
    search: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made()
    told = fault_of(f"{DECODE} --out out --search {search}", capsys)
    assert f"--search {search}: {search} does not serve" in told
    assert "decoders that fit: sweeps, which search models that are given the next" in told
    assert not Path("out").exists()


def test_the_search_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    made()
    assert run([*DECODE.split()[:-1], "--out", "out"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "search: sweeps of width 8, not exact for a problem of unbounded order" in told


@cache
def scores(texts: tuple[str, ...], folder: str) -> list[float]:
    return scores_of_sentences(load_model(Path(folder)), texts)


@pytest.mark.parametrize("shape", ["plain", "reversed"])
@pytest.mark.parametrize("path", ["first", "decoded"])
def test_features_are_given_the_sentences_of_the_path_on_both_sides(
    shape: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(shape)
    choices = [0, 0, 0, 0] if path == "first" else list(decoded()[0])
    given = [] if path == "first" else ["--weights", "w.json"]
    lists = ["--kbest", "dev.kbest", "--no-docs", "one", "--lm", "lm=lm"]
    assert run(["score", *lists, "--out", "scored", *given]) == 0
    told = " ".join(capsys.readouterr().err.split())
    kind = "first candidates" if path == "first" else "decoded path"
    assert f"lm: given the {kind} of both sides, since its model reads the next sentence" in told
    found = iter([float(re.findall(r" lm= (\S+)", line)[0]) for line in read("scored")])
    for t, own in enumerate(FILLED):
        for k in range(len(own)):
            texts = [one[c] for one, c in zip(FILLED, choices, strict=True)]
            texts[t] = own[k]
            order = slice(None, None, -1 if shape == "reversed" else 1)
            row = scores(tuple(texts[order]), str(tmp_path / "lm"))[order][t]
            assert next(found) == pytest.approx(row, abs=1e-3)


def test_a_trace_and_a_list_with_features_are_written_beside() -> None:
    made()
    path, _ = decoded("--trace", "trace", "--kbest-out", "k")
    lines = [json.loads(line) for line in read("trace")]
    assert [line["chosen"] for line in lines] == list(path)
    assert all(line["marginal"] is None and line["path_margin"] is None for line in lines)


def test_the_python_interface_decodes_by_sweeps() -> None:
    made()
    path, document = decoded()
    talk = rerank.Document(
        "talk",
        [
            [(text, {"LM0": static(t, k)}) for k, text in enumerate(own)]
            for t, own in enumerate(LISTS)
        ],
    )
    weights = {"LM0": 1.0, "lm": 1.0, "lmoov": 0.0}
    (result,) = rerank.Reranker(weights, lm={"lm": "lm"}, no_cache=True).decode([talk])
    assert tuple(k for k in result.choices if k is not None) == path
    assert result.score == pytest.approx(document["score"], abs=1e-3)


@pytest.mark.parametrize("shape", ["plain", "reversed"])
def test_weights_are_tuned_on_features_given_paths(shape: str, tuning_lists: Path) -> None:
    made(shape)
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs", "--lm", "lm=lm", "--top", "2"]
    files = ["--ref", "dev.ref", "--start", "start.json", "--out", "tuned.json"]
    start = {"LM0": [0.5], "TM0": [0.25, 0.25], "lm": [0.1], "lmoov": [0.0]}
    write_weights("start.json", start)
    assert run(["tune-mert", *lists, *files, "--select", "none", "--quiet"]) == 0
    found = json.loads(Path("tuned.json").read_text(encoding="utf-8"))
    assert set(found["weights"]) == {"LM0", "TM0", "lm", "lmoov"}
    assert found["provenance"]["bleu"] > 0
    assert run(["decode", *lists, "--weights", "tuned.json", "--out", "out", "--quiet"]) == 0


def test_a_trained_model_learns_what_only_the_next_sentence_tells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Colours are chance, and said twice: 2^(1/7) = 1.10 is the least of a model of the past."""
    options = "--encoder bag --learning-rate 0.05 --out lm --recurrence lstm"
    assert run([*f"{TRAIN} {options} --model {NAME}".split()]) == 0
    told = capsys.readouterr().err
    assert "order unbounded, given the next sentence, too; 60 documents" in " ".join(told.split())
    assert "valid pseudo-perplexity" in told
    found = measured(capsys, "valid.txt")
    assert found["pseudo_likelihood"] is True
    assert found["pseudo_perplexity"] < 1.05
    assert not found.keys() & {"perplexity", "nats_per_token"}
    assert run(["perplexity", "--lm", "lm", "valid.txt", "--per-document"]) == 0
    text = capsys.readouterr().out
    assert "pseudo-perplexity" in text
    assert text.splitlines()[-1].startswith("each sentence is given the next one, too: a pseudo-")
    lists = ["it is red", "it is blue"], ["so red", "so blue"]
    lines = [f"{t} ||| {k} ||| LM0= 0 ||| 0" for t, own in enumerate(lists) for k in own]
    write("dev.kbest", lines)
    write_weights("w.json", {"LM0": [0.0], "lm": [1.0], "lmoov": [0.0]})
    path, _ = decoded()
    assert path[0] == path[1]  # one colour


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"{DECODE} --out out --pmi lm", "--pmi lm: lm is a model that is given the next sentence"),
        ("sample --lm lm --out out", "lm: the model is given the next sentence, which rerank sam"),
        ("cloze --lm lm text", "lm: the model is given the next sentence, which rerank cloze"),
        (
            "lm-eval contrastive --lm lm items",
            "lm: the model is given the next sentence, which rerank lm-eval contrastive does not",
        ),
        (
            f"{TRAIN} --model {NAME} --out other --source text",
            "--source: no model here needs the source sentences",
        ),
    ],
    ids=["pmi", "sample", "cloze", "contrastive", "source"],
)
def test_what_has_no_next_sentence_is_refused(
    command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made()
    write("text", ["the ___"])
    item = {"context": ["the lamp"], "right": "it burns", "wrong": ["it gives"]}
    write("items", [json.dumps(item)] * 2)
    assert told in fault_of(command, capsys)
    assert not Path("out").exists()
