"""PMI form, document cache and backward models on the command line, from lists to weights.

The truth is scalar: every candidate of every path scored alone, null context and cache included.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from support.files import write, write_weights

from lm.checkpoint import SavedModel, load_model
from lm.tiny_models import context_after, read_by_words
from lm.vocabulary import END, UNKNOWN
from rerank import Document, Reranker
from rerank.cli import cli, run
from rerank.errors import UsageError
from rerank.pipeline import ModelOptions
from rerank.pipeline.models import check_names

LISTS = {
    "x": [
        ["the lamp is lit", "it burns", "a lamp"],
        ["she is no one", "it burns", ""],
        ["no", "a a"],
    ],
    "y": [["one", "the one"], ["it is", "no light", "unheard"], ["lamp", "it gives light"]],
}
WEIGHTS = {"LM0": 0.25, "lmpmi": 1.5, "lmnull": 0.5, "lmoov": -0.5}


def static(t: int, k: int) -> float:
    """LM0 of a line."""
    return -((3 * t + 5 * k) % 7) / 4


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sentences = [own for lists in LISTS.values() for own in lists]
    write(
        "dev.kbest",
        [
            f"{t} ||| {text} ||| LM0= {static(t, k)} ||| 0"
            for t, own in enumerate(sentences)
            for k, text in enumerate(own)
        ],
    )
    write("dev.docs", [name for name, lists in LISTS.items() for _ in lists])
    write_weights("w.json", {name: [weight] for name, weight in WEIGHTS.items()})
    return tmp_path


@torch.no_grad()
def log_p(saved: SavedModel, before: Sequence[str], text: str, share: float | None = None) -> float:
    """Log p of a sentence after others, its words one by one, mixed with a cache of weight λ."""
    backward = saved.model.config.backward

    def ids(one: str) -> list[int]:
        found = saved.vocabulary.encode(one.encode().split())
        return found[::-1] if backward else found

    model, words = saved.model, ids(text)
    context = context_after(model, [ids(one) for one in before])
    features = model.features(read_by_words(model, words, context), context)
    plain = (-model.head.nll(features, torch.tensor([*words, END]))).tolist()
    counts = Counter(w for one in before for w in ids(one) if w != UNKNOWN)
    n = sum(counts.values())
    if share is None or not n:
        return float(sum(plain))
    pairs = zip(plain, [*words, END], strict=True)
    return sum(math.log((1 - share) * math.exp(p) + share * counts[w] / n) for p, w in pairs)


def score_of(saved: SavedModel, name: str, path: Sequence[int], share: float | None) -> float:
    """The weighted sum of all features along a path of a document."""
    first = 0 if name == "x" else len(LISTS["x"])
    texts = [own[k] for own, k in zip(LISTS[name], path, strict=True)]
    total = 0.0
    for t, (text, k) in enumerate(zip(texts, path, strict=True)):
        null = log_p(saved, [], text)
        pmi = log_p(saved, texts[:t], text, share) - null
        oov = sum(word.encode() not in saved.vocabulary.ids for word in text.split())
        total += WEIGHTS["LM0"] * static(first + t, k) + WEIGHTS["lmpmi"] * pmi
        total += WEIGHTS["lmnull"] * null + WEIGHTS["lmoov"] * oov
    return total


def decode(*options: str) -> dict[str, Any]:
    """The documents of the summary, by id."""
    command = ["decode", "--kbest", "dev.kbest", "--docs", "dev.docs", "--weights", "w.json"]
    assert run([*command, "--out", "out.txt", "--summary", "out.json", *options]) == 0
    summary = json.loads(Path("out.json").read_text(encoding="utf-8"))
    return {document["id"]: document for document in summary["documents"]}


@pytest.mark.parametrize(
    ("model", "share", "search"),
    [
        ("codclm", None, ["--search", "viterbi"]),  # of order 1, as without the option
        ("hrnnlm", None, ["--search", "beam", "--beam", "1000"]),
        ("rnnlm", 0.2, ["--search", "beam", "--beam", "1000"]),
    ],
)
def test_exact_search_with_the_pmi_form_finds_the_best_of_all_paths(
    here: Path,
    model_folders: Mapping[str, Path],
    saved: Mapping[str, SavedModel],
    model: str,
    share: float | None,
    search: Sequence[str],
) -> None:
    cache = [] if share is None else ["--document-cache", f"lm={share}"]
    found = decode("--lm", f"lm={model_folders[model]}", "--pmi", "lm", *cache, *search)
    for name, lists in LISTS.items():
        truth = {
            path: score_of(saved[model], name, path, share)
            for path in product(*(range(len(own)) for own in lists))
        }
        best = max(truth, key=lambda path: truth[path])
        assert tuple(found[name]["choices"]) == best
        assert found[name]["score"] == pytest.approx(truth[best], abs=1e-3)
        assert found[name]["exact"]
        assert sorted(truth.values())[-2] < truth[best] - 1e-3  # no tie decides


def scored(*options: str) -> list[dict[str, float]]:
    """The features of each line that `score` writes."""
    assert run(["score", "--kbest", "dev.kbest", "--docs", "dev.docs", "--out", "s", *options]) == 0
    return [
        {name: float(value) for name, value in re.findall(r"(\w+)= (\S+)", line)}
        for line in Path("s").read_text(encoding="utf-8").splitlines()
    ]


def test_features_of_each_option_stand_in_the_list(
    here: Path, model_folders: Mapping[str, Path], saved: Mapping[str, SavedModel]
) -> None:
    """After the first candidates."""
    folder = model_folders["codclm"]
    options = ["--lm", f"a={folder}", "--lm", f"b={folder}", "--lm", f"c={folder}"]
    options += ["--pmi", "b", "--document-cache", "c", "--scorer", "used=document-cache:0.25"]
    rows = iter(scored(*options))
    names = ["LM0", "a", "aoov", "bpmi", "bnull", "boov", "c", "coov", "used"]
    for lists in LISTS.values():
        for t, own in enumerate(lists):
            before = [first[0] for first in lists[:t]]
            for text in own:
                row = next(rows)
                assert list(row) == names
                plain, null = log_p(saved["codclm"], before, text), log_p(saved["codclm"], [], text)
                mixed = log_p(saved["codclm"], before, text, 0.1)
                assert row["a"] == pytest.approx(plain, abs=3e-4)
                assert row["bpmi"] == pytest.approx(plain - null, abs=6e-4)
                assert row["bnull"] == pytest.approx(null, abs=3e-4)
                assert row["c"] == pytest.approx(mixed, abs=3e-4)
                assert t > 0 or (row["bpmi"], row["used"]) == (0, 0)


def test_no_two_forms_share_scores_and_none_computes_anything_again(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folders["ccdclm"]
    forms: list[list[str]] = [
        [],
        ["--pmi", "a"],
        *(["--document-cache", f"a={s}"] for s in (0.1, 0.3)),
    ]
    cold = [scored("--lm", f"a={folder}", *form) for form in forms]
    assert len({json.dumps([row.get("a", row.get("apmi")) for row in rows]) for rows in cold}) == 4
    capsys.readouterr()
    for form, rows in zip(forms, cold, strict=True):
        assert scored("--lm", f"a={folder}", *form) == rows
        assert "\na: 2 documents from the cache\n" in capsys.readouterr().err


def test_a_backward_model_needs_no_option_once_it_is_trained(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ["c c c c c c b b b a", "a b c d", "", "d c a c b", "c"]  # no two counts are equal
    write("forth", text)
    write("back", [" ".join(reversed(line.split())) for line in text])
    shape = ["--model", "codclm", "--embed", "4", "--hidden", "4", "--epochs", "2", "--quiet"]
    results = {}
    for out, file, options in (("turned", "back", []), ("backward", "forth", ["--backward"])):
        data = ["--train", file, "--valid", file]
        assert run(["train-lm", *data, "--out", out, *shape, *options]) == 0
        assert run(["perplexity", "--lm", out, file, "--format", "json"]) == 0
        results[out] = json.loads(capsys.readouterr().out)
    assert results["turned"] == results["backward"]  # of a model trained on the reversed text
    saved = load_model(Path("backward"))
    write("dev.kbest", ["0 ||| a b ||| LM0= 0 ||| 0", "1 ||| c d b ||| LM0= 0 ||| 0"])
    write("dev.docs", ["x", "x"])
    first, second = scored("--lm", "b=backward")
    assert first["b"] == pytest.approx(log_p(saved, [], "a b"), abs=1e-4)
    assert second["b"] == pytest.approx(log_p(saved, ["a b"], "c d b"), abs=1e-4)


def test_perplexity_takes_a_document_cache(
    here: Path,
    model_folders: Mapping[str, Path],
    saved: Mapping[str, SavedModel],
    capsys: pytest.CaptureFixture[str],
) -> None:
    documents = [["the lamp is lit", "a lamp burns"], ["no lamp", "it is no lamp", "lamp"]]
    write("text", [line for document in documents for line in [*document, ""]][:-1])
    command = ["perplexity", "--lm", str(model_folders["ccdclm"]), "text", "--format", "json"]
    assert run([*command, "--document-cache", "0.2"]) == 0
    total = sum(
        log_p(saved["ccdclm"], document[:t], line, 0.2)
        for document in documents
        for t, line in enumerate(document)
    )
    assert json.loads(capsys.readouterr().out)["nats"] == pytest.approx(-total, rel=1e-5)
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["nats"] != pytest.approx(-total, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pmi", "other"], "--pmi other: expected the NAME of an --lm NAME=DIR (lm)"),
        (["--document-cache", "other=0.1"], "--document-cache other: expected the NAME of an --lm"),
        (["--pmi", "lm", "--pmi", "lm"], "--pmi lm: given twice"),
        (["--document-cache", "lm", "--document-cache", "lm=0.2"], "--document-cache lm: given tw"),
        (["--document-cache", "lm=0"], "0.0 is not in the range 0<x<1"),
        (["--document-cache", "lm=1"], "1.0 is not in the range 0<x<1"),
        (["--document-cache", "lm=x"], "expected a finite decimal number, found 'x'"),
        (["--pmi", "lm"], "is a model without context, whose PMI is always 0; leave the option"),
        (["--pmi", "lm", "--lm", "lmpmi=DIR"], "--lm lmpmi=DIR: the name is taken by another --lm"),
        (["--scorer", "used=document-cache:2"], "expected a weight of the document cache above 0"),
    ],
)
def test_faults_are_usage_errors_before_any_work(
    here: Path,
    model_folders: Mapping[str, Path],
    capsys: pytest.CaptureFixture[str],
    options: Sequence[str],
    message: str,
) -> None:
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs", "--lm", f"lm={model_folders['rnnlm']}"]
    assert run(["decode", *lists, "--weights", "w.json", "--out", "out.txt", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("out.txt").exists()


def test_a_label_of_the_list_is_not_taken_by_the_pmi_form(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("dev.kbest").read_text(encoding="utf-8").splitlines()
    write("dev.kbest", [line.replace("LM0=", "lmnull=") for line in lines])
    lm = ["--lm", f"lm={model_folders['codclm']}", "--pmi", "lm"]
    assert run(["score", "--kbest", "dev.kbest", "--docs", "dev.docs", *lm, "--out", "s"]) == 2
    assert "--pmi lm: dev.kbest already has a feature 'lmnull'" in capsys.readouterr().err


def test_tuned_weights_say_what_was_made_of_the_models(
    tuning_lists: Path, model_folders: Mapping[str, Path]
) -> None:
    folder = model_folders["codclm"]
    lms = ["--lm", f"lm={folder}", "--pmi", "lm", "--lm", f"mix={folder}"]
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs", *lms, "--document-cache", "mix=0.2"]
    files = ["--ref", "dev.ref", "--start", "start.json", "--out", "w.json"]
    assert run(["tune-mert", *lists, *files, "--quiet"]) == 0
    found = json.loads(Path("w.json").read_text(encoding="utf-8"))
    names = {"LM0", "TM0", "lmpmi", "lmnull", "lmoov", "mix", "mixoov"}
    assert set(found["weights"]) == names
    models = found["provenance"]["models"]
    assert [models[name]["folder"] for name in ("lm", "mix")] == [folder.name] * 2
    assert (models["lm"]["pmi"], models["mix"]["document_cache"]) == (True, 0.2)
    assert models["lm"]["digest"] != models["mix"]["digest"]
    assert run(["decode", *lists, "--weights", "w.json", "--out", "out.txt", "--quiet"]) == 0


def test_the_python_interface_takes_the_same_options(
    model_folders: Mapping[str, Path], saved: Mapping[str, SavedModel]
) -> None:
    talk = Document("talk", [[(text, {"LM0": 0.0}) for text in own] for own in LISTS["x"]])
    weights = {"LM0": 0.0, "lmpmi": 1.0, "lmnull": 0.0, "lmoov": 0.0}
    lm = {"lm": model_folders["codclm"]}
    (result,) = Reranker(weights, lm=lm, pmi=["lm"], document_cache={"lm": 0.2}).decode([talk])
    model, texts = saved["codclm"], result.texts
    truth = [
        log_p(model, texts[:t], text, 0.2) - log_p(model, [], text) for t, text in enumerate(texts)
    ]
    assert result.score == pytest.approx(sum(truth), abs=1e-3)
    for options in ({"pmi": ["other"]}, {"document_cache": {"lm": 1.5}}):
        with pytest.raises(UsageError, match=r"--pmi other: exp|--document-cache lm=1.5: expected"):
            Reranker(weights, lm=lm, **options)


def test_names_of_split_features_are_taken() -> None:
    both = {"lm": [("lm", "a")], "scorer": [("lmpmi", "b")]}
    check_names(both)
    with pytest.raises(UsageError, match="--scorer lmpmi=b: the name is taken by another --lm"):
        check_names(both, ModelOptions(pmi=("lm",)).pmi)


@pytest.mark.parametrize("command", ["decode", "score", "tune-mert", "tune-mbr"])
def test_every_command_that_takes_models_takes_their_options(command: str) -> None:
    names = {name for param in cli.commands[command].params for name in param.opts}
    assert {"--lm", "--pmi", "--document-cache"} <= names
