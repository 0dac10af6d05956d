"""Models of the last n sentences through the command line: training, scores, exact search."""

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.files import read, write, write_weights
from support.models import save_models
from support.words import WORDS

from lm.checkpoint import load_model
from lm.tiny_models import last_score
from rerank.cli import run
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline import Recipe, perplexity, train_lm

LISTS = [
    ["the lamp", "lamp the", "it"],
    ["it", "the lamp", "is the lamp"],
    ["no one", "a lamp is lit", "it burns"],
    ["the lamp burns", "one", "it is"],
]
TRAIN = "train-lm --train train.txt --valid valid.txt --embed 6 --hidden 8 --streams 2 -q --epochs"
DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --lm lm=lm -q --no-cache"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with texts in which documents keep to a thing, lists and weights."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, size in (("train.txt", 24), ("valid.txt", 4)):
        things = rng.choice(["lamp", "light", "one"], size)
        text = [
            [f"the {thing} is lit", "it burns", f"a {thing} gives {thing}", ""] for thing in things
        ]
        write(name, [line for document in text for line in document])
    write(
        "dev.kbest", [f"{t} ||| {k} ||| LM0= 0 ||| 0" for t, own in enumerate(LISTS) for k in own]
    )
    write_weights("w.json", {"LM0": 0, "lm": 1, "lmoov": 0})
    return tmp_path


@pytest.mark.parametrize("name", ["rlm-bow-ef-1", "rlm-seqbow-lf-2", "rlm-seqbow-att-lf-3"])
def test_a_model_is_trained_and_used_by_its_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*TRAIN.split(), "1", "--model", name, "--out", "lm"]) == 0
    assert load_model(Path("lm")).model.config.model == name
    assert run(["perplexity", "--lm", "lm", "valid.txt", "-q", "--format", "json"]) == 0
    assert 1 < json.loads(capsys.readouterr().out)["perplexity"] < 20
    lists = ["--kbest", "dev.kbest", "--no-docs", "one"]
    assert run(["score", *lists, "--lm", "lm=lm", "-q"]) == 0
    scored = capsys.readouterr().out.splitlines()
    assert len(scored) == sum(map(len, LISTS))
    assert all("lm= -" in line for line in scored)
    assert run([*DECODE.split(), "--search", "auto", "--out", "out"]) == 0
    assert len(read("out")) == len(LISTS)


def best_path(folder: Path) -> tuple[list[str], float]:
    """The best of all paths, each sentence scored after all before it."""
    saved = load_model(folder)

    @cache
    def score(*texts: str) -> float:
        words = [saved.vocabulary.encode(text.encode().split()) for text in texts]
        return last_score(saved.model, words)

    totals = {
        path: sum(score(*path[: t + 1]) for t in range(len(path))) for path in product(*LISTS)
    }
    best = max(totals, key=lambda path: totals[path])
    assert sorted(totals.values())[-2] < totals[best] - 1e-3  # no tie decides
    return [*best], totals[best]


def decoded(search: str) -> tuple[list[str], float, bool]:
    """Chosen texts, their score, and whether they are said to be the best."""
    command = [*DECODE.split(), "--search", *search.split(), "--out", "out"]
    command += ["--summary", "summary.json"]
    assert run(command) == 0
    (document,) = json.loads(Path("summary.json").read_text(encoding="utf-8"))["documents"]
    return read("out"), document["score"], document["exact"]


@pytest.mark.parametrize("model", ["rlm-bow-lf-2", "dclm-two-sentence"])
def test_exact_search_over_pairs_of_sentences_finds_the_best_of_all_paths(model: str) -> None:
    assert run([*TRAIN.split(), "4", "--model", model, "--out", "lm"]) == 0
    texts, total = best_path(Path("lm"))
    for search in ("viterbi", "exhaustive", "auto"):
        found, score, exact = decoded(search)
        assert (found, exact) == (texts, True)
        assert score == pytest.approx(total, abs=1e-3)


@pytest.mark.parametrize(
    "name", ["rlm-seqbow-lf-1", "rlm-seqbow-att-lf-2", "dclm-decoupled", "dclm-two-sentence"]
)
def test_exact_search_finds_the_best_path_where_contexts_matter(name: str) -> None:
    save_models({name: Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    texts, total = best_path(Path("lm"))
    found, score, exact = decoded("viterbi")
    assert (found, exact) == (texts, True)
    assert score == pytest.approx(total, abs=1e-3)
    narrow = decoded("beam --beam 1")[1]
    assert narrow <= total + 1e-3


def test_late_fusion_in_an_unsuited_recurrence_is_refused_before_the_text_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = "--train missing --valid missing --out lm --recurrence gru"
    for model in ("rlm-bow-lf-2", "rlm-bow-ef-2 --fusion gate"):
        assert run(["train-lm", *files.split(), "--model", *model.split()]) == 2
        told = capsys.readouterr().err
        assert "late fusion expects a recurrence with a memory cell and an output gate" in told
        assert "found GRU; choose lstm or cifg" in told


@pytest.mark.parametrize(
    "options",
    [
        "rlm-bow-ef-2 --recurrence gru",
        "rlm-bow-ef-1 --fusion gate",
        "rlm-seqbow-att-lf-2 --attention 3",
        "ccdclm --fusion gate",
    ],
)
def test_cells_fusions_and_attention_are_chosen_by_options(options: str) -> None:
    assert run([*TRAIN.split(), "1", "--out", "lm", "--model", *options.split()]) == 0
    load_model(Path("lm"))


# Training text


def trained(out: str = "lm", train: str = "train.txt", **options: Any) -> list[str]:
    """What `train_lm` announces of one epoch."""
    recipe = Recipe("rlm-bow-ef-1", embed=6, hidden=8, epochs=1, streams=2, device="cpu", **options)
    said: list[str] = []
    train_lm(recipe, train, "valid.txt", Path(out), notices=Notices(), announce=said.append)
    return said


def test_longer_sentences_give_training_their_words_and_nothing_else() -> None:
    """The vocabulary is that of the whole text."""
    said, *_ = trained(longest=3)
    assert "24 documents, 48 words" in said  # it burns
    saved = load_model(Path("lm"))
    assert saved.about["longest"] == 3
    assert b"gives" in saved.vocabulary.words
    weights = saved.model.state_dict()
    write("longer.txt", [line.replace("gives", "takes") for line in read("train.txt")])
    trained("other", longest=3, train="longer.txt")
    others = load_model(Path("other")).model.state_dict()
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_a_training_text_of_longer_sentences_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--longest 1: all sentences .* choose a larger number"):
        trained(longest=1)
    assert not Path("lm").exists()


def test_contexts_cross_the_ends_of_documents_where_asked_for() -> None:
    said, *_ = trained(across_documents=True)
    assert "8 stretches, " in said
    one, other = (
        perplexity(
            Path("lm"), "valid.txt", notices=Notices(), device="cpu", across_documents=across
        )
        for across in (False, True)
    )
    assert (one.sentences, one.tokens) == (other.sentences, other.tokens)
    assert one.nats != pytest.approx(other.nats, rel=1e-6)
    write("joined.txt", [line for line in read("valid.txt") if line])
    joined = perplexity(Path("lm"), "joined.txt", notices=Notices(), device="cpu")
    assert joined.nats == pytest.approx(other.nats, rel=1e-6)
    about = load_model(Path("lm")).about
    assert about["valid_perplexity"] == pytest.approx(other.perplexity, rel=1e-6)
    assert about["across_documents"] is True
