"""The memo's models of relations and other sentences through the command line: search, faults."""

import json
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from support.files import read, write, write_weights
from support.models import entered, save_models
from support.words import WORDS

from lm.checkpoint import SavedModel, load_model
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.evaluation import sentence_level_nats
from lm.scoring import after
from lm.side_information import SentenceNumbers, information_of
from lm.tiny_models import read_by_words
from lm.trie import Candidates
from rerank.cli import run

SEARCHES = {"dclm-projection-decoupled": "viterbi"}
SEARCHES |= {name: "beam --beam 64" for name in ("dclm-projection", "dclm-recurrence")}
SEARCHES |= {name: "viterbi" for name in ("dclm-right", "dclm-rst")}
LISTS = [["the lamp", "lamp the", "it"], ["it", "the lamp"], [], ["no one", "a lamp is lit"]]
FILES = {
    "relations": ["0", "4", "unheard", "2"],
    "source": ["0 1", "2 2 unheard", "4", "1 0"],
    "parents": ["2", "4", "1", "3"],  # sentence 3 of four has no candidates
}
AMONG_PRESENT = SentenceNumbers.of(np.array([1, 2, -1]))
TRAIN = "train-lm --train train.txt --valid valid.txt --embed 6 --hidden 8 --streams 2 -q"
RELATIONS = "--relations train.relations --valid-relations valid.relations"
DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --lm lm=lm -q"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists and weights, and a text whose first words relations tell."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, size in (("train", 60), ("valid", 6)):
        labels = rng.choice(["same", "other"], (size, 3))
        write(f"{name}.relations", [line for own in labels for line in ("none", *own, "")])
        text = [["so it is", *(f"{label} it is" for label in own), ""] for own in labels]
        write(f"{name}.txt", [line for own in text for line in own])
    write(
        "dev.kbest", [f"{t} ||| {k} ||| LM0= 0 ||| 0" for t, own in enumerate(LISTS) for k in own]
    )
    for kind, lines in FILES.items():
        write(f"dev.{kind}", lines)
    write_weights("w.json", {"LM0": 0, "lm": 1, "lmoov": 0})
    return tmp_path


def fault_of(command: str, capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """The last line of a command's messages, which ends with an error."""
    capsys.readouterr()
    assert run(command.split()) == code
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", ["dclm-projection", "dclm-projection-decoupled"])
def test_a_model_learns_from_relations_what_only_they_tell(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels are chance: without them, a perplexity of 2^(3/16) = 1.14."""
    train = f"{TRAIN} {RELATIONS} --model {name} --encoder bag --epochs 12 --learning-rate 0.05"
    assert run([*train.split(), "--out", "lm"]) == 0
    figures = "perplexity --lm lm valid.txt -q --format json --relations valid.relations"
    assert run(figures.split()) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] < 1.08


def side_corpus(saved: SavedModel) -> Corpus:
    """A document of the sentences with candidates, with their side information."""
    found = {}
    for kind in saved.side:
        lines = [line for line, own in zip(FILES[kind], LISTS, strict=True) if own]
        found[kind] = saved.encode_side(kind, "".join(f"{line}\n" for line in lines).encode())
    found["parents"] = AMONG_PRESENT
    n = sum(map(bool, LISTS))
    return Corpus(np.zeros(0, np.int32), np.zeros(n + 1, np.int64), np.array([0, n]), found)


@torch.no_grad()
def score_of(saved: SavedModel, texts: tuple[str, ...]) -> float:
    """Score of the last of texts, word by word, given side information and those before."""
    model, context, corpus = saved.model, saved.model.context.start(1), side_corpus(saved)
    words: list[int] = []
    for t, text in enumerate(texts):
        if t:
            summary = model.context.summary(read_by_words(model, words, context))
            context = model.context.advance(context, summary)
        context = entered(model, corpus, context, t)
        words = saved.vocabulary.encode(text.encode().split())
    ((scores, _),) = after(ScoringEngine.of(model), [(Candidates.of([[words]]), context)])
    return float(scores[0, 0])


@pytest.mark.parametrize("search", ["own", "exhaustive"])
@pytest.mark.parametrize("name", SEARCHES)
def test_the_best_path_is_that_of_enumeration(name: str, search: str) -> None:
    """Sentence 2 has no candidates: neither its side information nor its place counts."""
    save_models({name: Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    saved = load_model(Path("lm"))
    score = cache(lambda *texts: score_of(saved, texts))
    lists = [own for own in LISTS if own]
    totals = {
        path: sum(score(*path[: t + 1]) for t in range(len(path))) for path in product(*lists)
    }
    best = max(totals, key=lambda path: totals[path])
    kinds = information_of(saved.model.context)
    files = " ".join(f"--{kind} dev.{kind}" for kind in kinds)
    chosen = SEARCHES[name] if search == "own" else search
    decode = f"{DECODE} {files} --search {chosen} --summary summary.json --out out"
    assert run(decode.split()) == 0
    assert [line for line in read("out") if line] == list(best)
    found = json.loads(Path("summary.json").read_bytes())
    assert found["score"] == pytest.approx(totals[best], abs=1e-3)


def test_relations_as_a_task_are_learned_and_needed_in_training_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """First words tell the relation. A model that knew nothing of it would have log 2 nats."""
    train = f"{TRAIN} --relations train.relations --epochs 12 --learning-rate 0.05 --encoder bag"
    train = f"{train} --model dclm-auxiliary"
    nats = {}
    for weight in ("0.001", "3"):
        assert run(f"{train} --auxiliary-weight {weight} --out lm{weight}".split()) == 0
        nats[weight] = relation_nats(load_model(Path(f"lm{weight}")))
    assert nats["3"] < 0.5 * min(np.log(2), nats["0.001"])
    assert run(["perplexity", "--lm", "lm3", "valid.txt", "-q", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] < 1.5
    train = f"{train} --relation-classifier mlp --epochs 1 --out mlp"
    assert run(train.split()) == 0
    assert load_model(Path("mlp")).model.config.relation_classifier == "mlp"
    save_models({"dclm-auxiliary": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    assert run(f"{DECODE} --search exhaustive --out out".split()) == 0
    assert read("out")[2] == ""


@torch.no_grad()
def relation_nats(saved: SavedModel) -> float:
    """Mean −log p of the relations of the validation text, three a document."""
    text = saved.encode(line.encode() for line in read("valid.txt"))
    labels = "".join(f"{line}\n" for line in read("valid.relations") if line)
    text = replace(text, side={"relations": saved.encode_side("relations", labels.encode())})
    return sentence_level_nats(saved.model, text) * len(text.tokens) / (3 * text.n_documents)


def test_the_next_source_sentence_tells_what_it_tells(capsys: pytest.CaptureFixture[str]) -> None:
    """The source of a sentence tells the first word of the one before."""
    for name in ("train", "valid"):
        relations = read(f"{name}.relations")
        blank = [one == "" for one in relations]
        before = zip(blank, ["", *relations], strict=False)
        write(f"{name}.source", ["" if ends else f"das {one}" for ends, one in before])
    sources = "--source train.source --valid-source valid.source"
    train = f"{TRAIN} {sources} --encoder bag --epochs 12 --learning-rate 0.05 --out"
    found = {}
    for name in ("dclm-bilingual", "dclm-right"):
        assert run(f"{train} {name} --model {name}".split()) == 0
        command = f"perplexity --lm {name} valid.txt -q --format json --source valid.source"
        capsys.readouterr()
        assert run(command.split()) == 0
        found[name] = json.loads(capsys.readouterr().out)["perplexity"]
    assert found["dclm-right"] < 1.1 < found["dclm-bilingual"]


@pytest.mark.parametrize("number", ["5", "1", "-1", "x", "1 2", ""])
def test_parents_are_numbers_of_other_sentences(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save_models({"dclm-rst": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    files = "--source dev.source --parents dev.parents"
    write("dev.parents", [number, "0", "0", "0"])
    fault = fault_of(f"{DECODE} {files} --out out", capsys, 3)
    assert "dev.parents:1: expected the number of another sentence of the document, from 1" in fault
    if not number:
        return  # it would end a document
    write("text", ["the lamp", "it", "", "", "it", "it", "it", "it"])
    write("text.source", ["a", "a", "", "", "a", "a", "a", "a"])
    figures = "perplexity --lm lm text -q --source text.source --parents text.parents"
    write("text.parents", ["2", "0", "", "", "4", "1", "1", "2"])
    assert run(figures.split()) == 0
    write("text.parents", ["2", "0", "", "", number, "1", "1", "2"])
    fault = fault_of(figures, capsys, 3)
    assert "text.parents:5: expected the number of another sentence of the document" in fault
    assert fault.endswith("this is sentence 1")


def test_options_of_the_task_are_refused_where_they_have_no_use(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train = f"{TRAIN} --model dclm-auxiliary --out new"
    assert "--relations: dclm-auxiliary needs the discourse" in fault_of(train, capsys)
    fault = fault_of(f"{train} {RELATIONS}", capsys)
    assert "--valid-relations: no model here needs" in fault
    train = f"{train} --relations train.relations"
    fault = fault_of(f"{train} --levels two-step", capsys)
    assert "--levels two-step: dclm-auxiliary predicts words and relations from one" in fault
    plain = f"{TRAIN} --model dclm --out new"
    fault = fault_of(f"{plain} --auxiliary-weight 2", capsys)
    assert "--auxiliary-weight 2: dclm is trained by the loss of the words alone" in fault
    fault = fault_of(f"{plain} --relation-classifier mlp", capsys)
    assert "'dclm' has no classifier of discourse relations, found 'mlp'; leave" in fault
    two_step = f"{TRAIN} --model hrnnlm --levels two-step --auxiliary-weight 2 --out new"
    assert "with --levels two-step the losses are not added" in fault_of(two_step, capsys)
    assert not Path("new").exists()


def test_relations_are_one_label_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    save_models({"dclm-projection": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    write("dev.relations", ["0", "4 2", "1", "2"])
    fault = fault_of(f"{DECODE} --relations dev.relations --out out", capsys, 3)
    assert "dev.relations:2: expected one label, found 2 words" in fault
    write("valid.relations", [*read("valid.relations")[:-2], "same same", ""])
    train = f"{TRAIN} {RELATIONS} --model dclm-projection --out new"
    fault = fault_of(train, capsys, 3)
    assert "valid.relations: expected one label for each sentence, found 2 words" in fault
    assert "--relations: lm needs the discourse relation" in fault_of(
        "perplexity --lm lm valid.txt", capsys
    )
