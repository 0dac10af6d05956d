"""Models with side information through the command line: training, scores, exact search, faults."""

import json
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from support.files import read, write, write_weights
from support.models import save_models
from support.words import WORDS

import rerank
from lm.checkpoint import SavedModel, load_model
from lm.engine import ScoringEngine
from lm.rows import Rows
from lm.scoring import after
from lm.tiny_models import read_by_words
from lm.trie import Candidates
from rerank.cli import run
from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline.side_information import given_lines

BILINGUAL = ["dclm-bilingual", "dclm-bilingual-decoupled"]
LISTS = [["the lamp", "lamp the", "it"], ["it", "the lamp"], [], ["no one", "a lamp is lit"]]
SOURCES = ["0 1", "2 2 unheard", "4", "1 0"]
COLOURS = {"rot": "red", "blau": "blue"}
TRAIN = "train-lm --train train.txt --valid valid.txt --embed 6 --hidden 8 --streams 2 -q"
SOURCE = ["--source", "train.src", "--valid-source", "valid.src"]
DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --lm lm=lm -q"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a text whose last words only the source tells, lists and weights."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, size in (("train", 60), ("valid", 6)):
        colours = rng.choice(list(COLOURS), (size, 3))
        source = [[f"das ist {c}" for c in own] for own in colours]
        target = [[f"it is {COLOURS[c]}" for c in own] for own in colours]
        write(f"{name}.src", [line for own in source for line in (*own, "")])
        write(f"{name}.txt", [line for own in target for line in (*own, "")])
    lines = [f"{t} ||| {k} ||| LM0= 0 ||| 0" for t, own in enumerate(LISTS) for k in own]
    write("dev.kbest", lines)
    write("dev.src", SOURCES)
    write_weights("w.json", {"LM0": 0, "lm": 1, "lmoov": 0})
    return tmp_path


def fault_of(command: str, capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """The last line of a command's messages, which ends with an error."""
    capsys.readouterr()
    assert run(command.split()) == code
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", BILINGUAL)
def test_a_model_learns_from_the_source_what_only_the_source_tells(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Colours are chance: without the source, a perplexity of 2 for one of four predictions."""
    train = [*TRAIN.split(), "--epochs", "8", "--learning-rate", "0.05", *SOURCE]
    assert run([*train, "--model", name, "--encoder", "bag", "--out", "lm"]) == 0
    figures = "perplexity --lm lm valid.txt -q --format json --source valid.src"
    assert run(figures.split()) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] < 1.1
    write("c.kbest", [f"0 ||| it is {c} ||| LM0= 0 ||| 0" for c in ("red", "blue")])
    decode = "decode --kbest c.kbest --no-docs one --weights w.json --lm lm=lm -q --source c.src"
    for word, colour in COLOURS.items():  # the cache tells sources apart
        write("c.src", [f"das ist {word}"])
        assert run([*decode.split(), "--out", "out"]) == 0
        assert read("out") == [f"it is {colour}"]


def test_a_model_learns_from_given_topics_what_only_these_tell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As above: the label of each sentence is the last word of its source."""
    for name in ("train", "valid"):
        write(f"{name}.topics", [line.split()[-1] if line else "" for line in read(f"{name}.src")])
    train = [*TRAIN.split(), "--epochs", "8", "--learning-rate", "0.05", "--out", "lm"]
    given = ["--topics", "train.topics", "--valid-topics", "valid.topics"]
    assert run([*train, "--model", "clstm-given-topic", *given]) == 0
    figures = "perplexity --lm lm valid.txt -q --format json"
    assert run([*figures.split(), "--topics", "valid.topics"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] < 1.1
    assert fault_of(figures, capsys) == (
        "rerank: --topics: lm needs the topic, or another discrete feature, of each "
        "sentence; give --topics FILE"
    )
    write("c.kbest", [f"0 ||| it is {c} ||| LM0= 0 ||| 0" for c in ("red", "blue")])
    decode = "decode --kbest c.kbest --no-docs one --weights w.json --lm lm=lm -q --topics c.topics"
    for word, colour in COLOURS.items():
        write("c.topics", [word])
        assert run([*decode.split(), "--out", "out"]) == 0
        assert read("out") == [f"it is {colour}"]
    write("c.topics", ["two words"])
    assert "c.topics:1: expected one label, found 2 words" in fault_of(
        f"{decode} --out o", capsys, 3
    )


@torch.no_grad()
def score_of(saved: SavedModel, texts: tuple[str, ...]) -> float:
    """Score of the last of texts, word by word, given their sources and those before."""
    model, context = saved.model, saved.model.context.start(1)
    sources = [line for line, own in zip(SOURCES, LISTS, strict=True) if own]
    for t, text in enumerate(texts):
        ids = torch.tensor([saved.side["source"].encode(sources[t].encode().split())])
        context = model.context.enter(context, model.context.encoded(Rows.of(ids + 1)))
        words = saved.vocabulary.encode(text.encode().split())
        if t < len(texts) - 1:
            summary = model.context.summary(read_by_words(model, words, context))
            context = model.context.advance(context, summary)
    ((scores, _),) = after(ScoringEngine.of(model), [(Candidates.of([[words]]), context)])
    return float(scores[0, 0])


@pytest.mark.parametrize("search", ["auto", "exhaustive", "beam"])
@pytest.mark.parametrize("name", BILINGUAL)
def test_the_best_path_is_that_of_enumeration(name: str, search: str) -> None:
    """Sentence 2 has no candidates: neither its source nor its place counts."""
    save_models({name: Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    saved = load_model(Path("lm"))
    score = cache(lambda *texts: score_of(saved, texts))
    lists = [own for own in LISTS if own]
    totals = {
        path: sum(score(*path[: t + 1]) for t in range(len(path))) for path in product(*lists)
    }
    best = max(totals, key=lambda path: totals[path])
    summary = ["--summary", "summary.json", "--out", "out"]
    decode = [*DECODE.split(), "--source", "dev.src", "--search", search, *summary]
    options = ["--beam", "64"] if search == "beam" else []
    assert run([*decode, *options]) == 0
    assert [line for line in read("out") if line] == list(best)
    found = json.loads(Path("summary.json").read_bytes())
    assert found["score"] == pytest.approx(totals[best], abs=1e-3)


def test_pmi_is_what_the_target_context_adds_given_the_source() -> None:
    save_models({"dclm-bilingual-decoupled": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    saved = load_model(Path("lm"))
    command = "score --kbest dev.kbest --no-docs one --lm lm=lm --pmi lm --source dev.src -q"
    assert run([*command.split(), "--out", "scored"]) == 0
    rows = [line.split(" ||| ") for line in read("scored")]
    nulls = [float(row[2].split("lmnull= ")[1].split()[0]) for row in rows if row[0] == "0"]
    assert nulls == pytest.approx([score_of(saved, (text,)) for text in LISTS[0]], abs=1e-4)


def test_files_are_asked_for_and_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Before any work."""
    save_models({"dclm-bilingual": Path("lm"), "rnnlm": Path("plain")}, WORDS, 6, 8, oov_rate=0.0)
    train = f"{TRAIN} --model dclm-bilingual --out new"
    cure = "the source sentences; give --source FILE"
    assert fault_of(train, capsys).endswith(f"--source: dclm-bilingual needs {cure}")
    fault = fault_of(f"{train} --source train.src", capsys)
    assert "--valid-source: dclm-bilingual needs" in fault
    fault = fault_of(f"{TRAIN} --model rnnlm --out new {' '.join(SOURCE)}", capsys)
    assert "--source: no model here needs the source sentences; leave it out" in fault
    assert fault_of(DECODE, capsys).endswith(f"--source: --lm lm needs {cure}")
    plain = DECODE.replace("lm=lm", "lm=plain")
    assert "no model here needs" in fault_of(f"{plain} --source dev.src", capsys)
    assert "lm needs the source" in fault_of("perplexity --lm lm valid.txt", capsys)
    fault = fault_of("sample --lm lm --out drawn", capsys)
    assert fault.endswith("which rerank sample does not read; choose another model")
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (SOURCES[:3], "expected 4 lines, one for each source line, found 3"),
        ([*SOURCES, "more", "more"], "expected 4 lines, one for each source line, found 6"),
    ],
)
def test_a_file_beside_lists_has_a_line_for_each_source_line(
    lines: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save_models({"dclm-bilingual": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    write("dev.src", lines)
    found = fault_of(f"{DECODE} --source dev.src --out out", capsys, 3)
    assert f"dev.src: {fault}" in found
    assert not Path("out").exists()


def test_a_file_beside_a_text_has_its_documents(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in Path("train.src").read_text().split("\n")[:-1]]
    write("train.src", [*lines[:2], *lines[3:]])  # a sentence of the first document is missing
    train = f"{TRAIN} --model dclm-bilingual --out new {' '.join(SOURCE)}"
    fault = fault_of(train, capsys, 3)
    assert "train.src: expected 180 sentences in 60 documents as in train.txt, found 179" in fault
    assert fault.endswith("; document 1 has 2 sentences, not 3")


def test_an_interrupted_training_goes_on_with_its_side_information_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train = f"{TRAIN} --model dclm-bilingual --out lm --epochs 1 {' '.join(SOURCE)}"
    assert run(train.split()) == 0
    lines = read("train.src")
    write("train.src", [*lines[3:], *lines[:3]])
    fault = fault_of(f"{train} --resume", capsys, 3)
    assert "the interrupted run was another one: training text was" in fault


def documents(side: dict[str, list[str]] | None = None) -> list[rerank.Document]:
    candidates = [[(text, {"LM0": 0.0}) for text in own] for own in LISTS]
    return [rerank.Document("one", candidates, side=side or {})]


@pytest.mark.parametrize("name", BILINGUAL)
def test_documents_in_memory_have_the_scores_of_files(name: str) -> None:
    save_models({name: Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    weights = {"LM0": 0.0, "lm": 1.0, "lmoov": 0.0}
    reranker = rerank.Reranker(weights, lm={"lm": "lm"}, no_cache=True)
    (own,) = reranker.decode(documents({"source": SOURCES}))
    lists = rerank.read("dev.kbest", no_docs="one", side={"source": "dev.src"})
    with pytest.warns(rerank.RerankWarning, match="source line without hypotheses"):
        (read_back,) = reranker.decode(lists)
    assert run([*DECODE.split(), "--source", "dev.src", "--out", "out"]) == 0
    assert list(own.texts) == list(read_back.texts) == read("out")
    assert own.score == pytest.approx(read_back.score)


def test_documents_in_memory_without_side_information_are_told_how_to_have_it() -> None:
    save_models({"dclm-bilingual": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    weights = {"LM0": 0.0, "lm": 1.0, "lmoov": 0.0}
    reranker = rerank.Reranker(weights, lm={"lm": "lm"}, no_cache=True)
    cure = r"one: expected the source sentences, .* as side=\{'source': \.\.\.\}"
    with pytest.raises(InputError, match=cure):
        reranker.decode(documents())
    with pytest.raises(InputError, match=r"one: expected 4 texts of side information 'source'"):
        reranker.decode(documents({"source": SOURCES[:2]}))


def test_numbers_of_sentences_are_not_read_from_the_last_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("parents", ["0" if line else "" for line in read("train.src")])
    files = "--parents parents --valid-parents parents"
    train = f"{TRAIN} --model dclm-rst --out new {' '.join(SOURCE)} {files} --reverse-documents"
    fault = fault_of(train, capsys)
    assert "dclm-rst needs --parents, whose numbers count sentences from the first one" in fault


def test_the_sources_of_a_list_are_read_where_no_file_is_given() -> None:
    """The scores are those with the file."""
    save_models({"dclm-bilingual": Path("lm")}, WORDS, 6, 8, oov_rate=0.0)
    lines = [
        {"source": source, "candidates": [{"text": text, "features": {"LM0": 0}} for text in own]}
        for source, own in zip(SOURCES, LISTS, strict=True)
    ]
    write("dev.jsonl", [json.dumps(line) for line in lines])
    given = "score --no-docs one --lm lm=lm --no-cache -q"
    assert run([*given.split(), "--kbest", "dev.jsonl", "--out", "own"]) == 0
    words = [*given.split(), "--kbest", "dev.kbest", "--source", "dev.src", "--out", "file"]
    assert run(words) == 0
    own = [json.loads(line)["candidates"] for line in read("own")]
    expected = [float(line.split("lm= ")[1].split()[0]) for line in read("file")]
    found = [one["features"]["lm"] for of_sentence in own for one in of_sentence]
    assert found == pytest.approx(expected, rel=1e-7)
    changed = [{**line, "source": "2"} for line in lines]
    write("dev.jsonl", [json.dumps(line) for line in changed])
    assert run([*given.split(), "--kbest", "dev.jsonl", "--out", "other"]) == 0
    assert read("other") != read("own")


def test_a_source_is_read_from_what_also_says_the_documents(tmp_path: Path) -> None:
    documents = Documents(("1", "2"), (0, 2, 3))
    expected = [[b"it is", b"lit ."], [b"she left ."]]
    xml = (
        '<dataset>\n<doc id="2"><src><seg id="1">she left .</seg></src></doc>\n<doc id="1"><src>'
        '<seg id="1">it is</seg><seg id="2">lit .</seg></src></doc></dataset>'
    )
    for text in ("it is\nlit .\nshe left .\n", "it is\nlit .\n\nshe left .\n", xml):
        (tmp_path / "text").write_text(text)
        found = given_lines(tmp_path / "text", "text", "source", documents, Notices())
        assert list(found) == expected


@pytest.mark.parametrize("kind", ["source", "topics"])
def test_lines_beside_interleaved_documents_are_in_the_order_of_their_sentences(
    kind: str, tmp_path: Path
) -> None:
    documents = Documents(("a", "b"), (0, 2, 3), (0, 2, 1), 3)
    (tmp_path / "beside").write_text("first\nsecond\nthird\n")
    found = given_lines(tmp_path / "beside", "beside", kind, documents, Notices())
    assert list(found) == [[b"first", b"third"], [b"second"]]
    (tmp_path / "beside").write_text("first\nsecond\n")
    with pytest.raises(InputError, match="expected 3 lines"):
        list(given_lines(tmp_path / "beside", "beside", kind, documents, Notices()))


def test_a_fault_beside_interleaved_documents_has_the_line_of_the_file(tmp_path: Path) -> None:
    documents = Documents(("a", "b"), (0, 2, 3), (0, 2, 1), 3)
    (tmp_path / "beside").write_text("one\ntwo\nthree words\n")
    with pytest.raises(InputError, match=r"^beside:3: expected one label"):
        list(given_lines(tmp_path / "beside", "beside", "topics", documents, Notices()))
