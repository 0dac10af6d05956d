"""Models that read documents from the last sentence to the first, through the command line.

The truth is scalar: every path scored sentence by sentence, each given those that the model reads
before it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from support.files import read, write, write_weights
from support.models import save_models
from support.words import WORDS

from lm.checkpoint import SavedModel, load_model
from lm.tiny_models import last_score
from rerank import Document, Reranker
from rerank.cli import run

LISTS = {  # a sentence of each without candidates
    "x": [["the lamp is lit", "it burns", "a lamp"], [], ["she is no one", "it burns", ""], ["no"]],
    "y": [["one", "the one"], ["it is", "no light", "unheard"], ["lamp", "it gives light"]],
}
LISTS["y"].append(["the lamp is", "she gives", "one burns"])
MODELS = ("codclm", "ccdclm")
FORWARD, TURNED = "forward", "reversed"
WEIGHTS = {"LM0": 0.25, "f": 1.0, "foov": 0.0, "b": 1.5, "boov": -0.5}
DECODE = ["decode", "--kbest", "dev.kbest", "--docs", "dev.docs", "--out", "out.txt", "--no-cache"]


def static(t: int, k: int) -> float:
    """LM0 of a line."""
    return -((3 * t + 5 * k) % 7) / 4


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], Path]:
    """A model of each name and direction; no two have the same weights."""
    names = {
        (way, name): tmp_path_factory.mktemp(way) / name
        for way, name in product((FORWARD, TURNED), MODELS)
    }
    for way, order in ((FORWARD, MODELS), (TURNED, MODELS[::-1])):
        of_way = {name: names[way, name] for name in order}
        turned = {"reverse_documents": True} if way == TURNED else {}
        save_models(of_way, WORDS, 6, 8, oov_rate=0.25, **turned)
    return names


@pytest.fixture(scope="module")
def saved(folders: Mapping[tuple[str, str], Path]) -> Mapping[tuple[str, str], SavedModel]:
    return {key: load_model(folder) for key, folder in folders.items()}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_lists("dev", LISTS)
    return tmp_path


def write_lists(
    name: str, lists: Mapping[str, Sequence[Sequence[str]]], *, turned: bool = False
) -> None:
    """Lists and document ids; `turned` if LM0 is that of the reversed documents."""
    lines, documents, first = list[str](), list[str](), 0
    for document, own in lists.items():
        for t, texts in enumerate(own):
            place = first + (len(own) - 1 - t if turned else t)
            lines += [
                f"{first + t} ||| {text} ||| LM0= {static(place, k)} ||| 0"
                for k, text in enumerate(texts)
            ]
        documents += [document] * len(own)
        first += len(own)
    write(f"{name}.kbest", lines)
    write(f"{name}.docs", documents)


@cache
def log_p(model: SavedModel, *texts: str) -> float:
    """Log p of the last of some sentences after the others, in the order in which they are read."""
    return last_score(model.model, [model.vocabulary.encode(t.encode().split()) for t in texts])


def read_in_order(lm: SavedModel, texts: Sequence[str]) -> list[float]:
    """Log p of each sentence of a text, each given those that the model reads before it."""
    if lm.model.config.reverse_documents:
        return [log_p(lm, *texts[t:][::-1]) for t in range(len(texts))]
    return [log_p(lm, *texts[: t + 1]) for t in range(len(texts))]


def score_of(name: str, path: Sequence[int], lms: Mapping[str, SavedModel]) -> float:
    """The weighted sum of all features along a path of a document."""
    first = 0 if name == "x" else len(LISTS["x"])
    filled = [t for t, own in enumerate(LISTS[name]) if own]
    texts = [LISTS[name][t][k] for t, k in zip(filled, path, strict=True)]
    total = sum(WEIGHTS["LM0"] * static(first + t, k) for t, k in zip(filled, path, strict=True))
    for feature, lm in lms.items():
        total += WEIGHTS[feature] * sum(read_in_order(lm, texts))
        oov = sum(word.encode() not in lm.vocabulary.ids for one in texts for word in one.split())
        total += WEIGHTS[f"{feature}oov"] * oov
    return total


def every_score(name: str, lms: Mapping[str, SavedModel]) -> dict[tuple[int, ...], float]:
    """The score of each path of a document."""
    sizes = [range(len(own)) for own in LISTS[name] if own]
    return {path: score_of(name, path, lms) for path in product(*sizes)}


def weights_for(lms: Sequence[str]) -> None:
    names = ["LM0", *(f"{name}{end}" for name in lms for end in ("", "oov"))]
    write_weights("w.json", {name: [WEIGHTS[name]] for name in names})


def decode(lms: Mapping[str, Path], *options: str) -> dict[str, Any]:
    """The summary, with the documents by id."""
    weights_for([*lms])
    given = [word for name, folder in lms.items() for word in ("--lm", f"{name}={folder}")]
    command = [*DECODE, *given, "--weights", "w.json", "--summary", "out.json", *options]
    assert run(command) == 0
    summary: dict[str, Any] = json.loads(Path("out.json").read_text(encoding="utf-8"))
    return {**summary, **{document["id"]: document for document in summary["documents"]}}


def chosen(document: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(choice for choice in document["choices"] if choice is not None)


# Order 1


@pytest.mark.parametrize("features", ["b", "fb"], ids=["reversed", "both"])
@pytest.mark.parametrize("search", ["auto", "exhaustive"])
def test_order_1_is_exact_in_either_direction_and_in_both(
    features: str,
    search: str,
    folders: Mapping[tuple[str, str], Path],
    saved: Mapping[tuple[str, str], SavedModel],
    capsys: pytest.CaptureFixture[str],
) -> None:
    keys = {name: (FORWARD if name == "f" else TURNED, "codclm") for name in features}
    lms = {name: saved[key] for name, key in keys.items()}
    found = decode({name: folders[key] for name, key in keys.items()}, "--search", search)
    for name in LISTS:
        truth = every_score(name, lms)
        best = max(truth, key=lambda path: truth[path])
        assert sorted(truth.values())[-2] < truth[best] - 1e-3  # no tie decides
        assert (chosen(found[name]), found[name]["exact"]) == (best, True)
        assert found[name]["score"] == pytest.approx(truth[best], abs=1e-3)
        assert found[name]["direction"] == "forward"  # of the search: a chain has none
    assert "|dir:" not in found["signature"]
    assert "documents read from the last sentence to the first" in capsys.readouterr().err


# Unbounded order


def test_a_reversed_model_alone_searches_as_a_forward_one_in_the_reversed_document(
    folders: Mapping[tuple[str, str], Path],
    saved: Mapping[tuple[str, str], SavedModel],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lm = {"b": folders[TURNED, "ccdclm"]}
    twin = tmp_path / "twin"  # the model of a forward reader with these weights
    save_models({"ccdclm": twin}, WORDS, 6, 8, oov_rate=0.25)
    pairs = (saved[TURNED, "ccdclm"], load_model(twin))
    assert len({str([*one.model.state_dict().values()]) for one in pairs}) == 1
    for options in (["--beam", "2"], ["--beam", "1000"], ["--search", "greedy"]):
        found = decode(lm, *options)
        write_lists("dev", {name: own[::-1] for name, own in LISTS.items()}, turned=True)
        truth = decode({"b": twin}, *options)
        write_lists("dev", LISTS)
        for name in LISTS:
            ours, theirs = found[name], truth[name]
            assert ours["choices"] == theirs["choices"][::-1]
            assert ours["score"] == pytest.approx(theirs["score"], abs=1e-6)
            assert ours["exact"] == theirs["exact"] == ("1000" in options)
            assert (ours["direction"], theirs["direction"]) == ("reversed", "forward")
        assert "|dir:reversed|" in found["signature"]
        assert "|dir:" not in truth["signature"]
    told = capsys.readouterr().err
    assert "documents are searched from the last sentence to the first, as the models" in told
    for name in LISTS:
        scores = every_score(name, {"b": saved[TURNED, "ccdclm"]})
        best = decode(lm, "--beam", "1000")[name]
        assert best["score"] == pytest.approx(max(scores.values()), abs=1e-3)


@pytest.mark.parametrize("chains", ["f", "b"])
def test_a_chain_of_either_direction_joins_the_search_of_an_unbounded_model(
    chains: str,
    folders: Mapping[tuple[str, str], Path],
    saved: Mapping[tuple[str, str], SavedModel],
) -> None:
    kinds = {"f": "codclm", "b": "ccdclm"} if chains == "f" else {"f": "ccdclm", "b": "codclm"}
    keys = {name: (FORWARD if name == "f" else TURNED, kinds[name]) for name in "fb"}
    found = decode({name: folders[key] for name, key in keys.items()}, "--beam", "1000")
    for name in LISTS:
        truth = every_score(name, {name: saved[key] for name, key in keys.items()})
        assert (found[name]["exact"], found[name]["search"]) == (True, "beam")
        assert found[name]["direction"] == ("reversed" if chains == "f" else "forward")
        assert chosen(found[name]) == max(truth, key=lambda path: truth[path])


def test_sweeps_search_the_sum_of_both_unbounded_directions(
    folders: Mapping[tuple[str, str], Path],
    saved: Mapping[tuple[str, str], SavedModel],
    capsys: pytest.CaptureFixture[str],
) -> None:
    keys = {"f": (FORWARD, "ccdclm"), "b": (TURNED, "ccdclm")}
    lms = {name: folders[key] for name, key in keys.items()}
    models = {name: saved[key] for name, key in keys.items()}
    found = decode(lms)
    assert "|dir:both|" in found["signature"]
    told = capsys.readouterr()
    assert "models read documents in both directions: sweeps from the better of the" in told.err
    assert "search sweeps, of models in both directions, not exact" in " ".join(
        (told.out + told.err).split()
    )
    one_way = [decode({name: lms[name]}, "--beam", "8") for name in "fb"]
    whole = decode(lms, "--search", "sweeps", "--block", "4")  # all sentences at once
    for name in LISTS:
        truth = every_score(name, models)
        assert (found[name]["direction"], found[name]["exact"]) == ("both", False)
        assert found[name]["score"] == pytest.approx(truth[chosen(found[name])], abs=1e-3)
        starts = [truth[chosen(one[name])] for one in one_way]
        assert found[name]["score"] >= max(starts) - 1e-3
        assert chosen(whole[name]) == max(truth, key=lambda path: truth[path])
    names = ["--lm", f"f={lms['f']}", "--lm", f"b={lms['b']}", "--weights", "w.json"]
    assert run([*DECODE, *names, "--search", "beam"]) == 2
    told_again = " ".join(capsys.readouterr().err.split())
    assert "--search beam: beam does not serve scores that depend on later sentences" in told_again
    assert "decoders that fit: sweeps, which search the sum" in told_again


# Features, weights, the interface of Python


def lines_scored(*options: str) -> Iterator[dict[str, float]]:
    """The features of each line that `score` writes."""
    assert run(["score", "--kbest", "dev.kbest", "--docs", "dev.docs", "--out", "s", *options]) == 0
    for line in read("s"):
        yield {name: float(value) for name, value in re.findall(r"(\w+)= (\S+)", line)}


@pytest.mark.parametrize("kind", MODELS)
def test_features_are_given_the_first_candidates_of_later_sentences(
    kind: str,
    folders: Mapping[tuple[str, str], Path],
    saved: Mapping[tuple[str, str], SavedModel],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beside forward ones, which are given those of earlier sentences; of both orders."""
    options = ["--lm", f"f={folders[FORWARD, kind]}", "--lm", f"b={folders[TURNED, kind]}"]
    cold = list(lines_scored(*options))
    rows = iter(cold)
    for lists in LISTS.values():
        filled = [own for own in lists if own]
        for t, own in enumerate(filled):
            before = [one[0] for one in filled[:t]]
            after = [one[0] for one in filled[t + 1 :]][::-1]
            for text in own:
                row = next(rows)
                assert row["f"] == pytest.approx(
                    log_p(saved[FORWARD, kind], *before, text), abs=1e-3
                )
                assert row["b"] == pytest.approx(log_p(saved[TURNED, kind], *after, text), abs=1e-3)
    told = capsys.readouterr().err
    assert "b: after the first candidates of later sentences, since its model reads" in told
    assert list(lines_scored(*options)) == cold
    told = capsys.readouterr().err
    assert "f: 2 documents from the cache" in told
    assert "b: 2 documents from the cache; documents read from the last sentence" in told
    split = list(lines_scored(*options, "--pmi", "b"))
    assert [row["bpmi"] + row["bnull"] for row in split] == pytest.approx([r["b"] for r in cold])
    last = [i for i, line in enumerate(read("s")) if line.startswith(("3 ", "7 "))]
    assert all(split[i]["bpmi"] == 0 for i in last)  # as documents end there


@pytest.mark.parametrize(("kind", "pools"), [("codclm", "exact"), ("ccdclm", "auto")])
def test_weights_are_tuned_with_both_directions(
    kind: str, pools: str, tuning_lists: Path, folders: Mapping[tuple[str, str], Path]
) -> None:
    lms = ["--lm", f"f={folders[FORWARD, kind]}", "--lm", f"b={folders[TURNED, kind]}"]
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs", *lms, "--top", "2"]
    files = ["--ref", "dev.ref", "--start", "start.json", "--out", "w.json", "--select", "none"]
    assert run(["tune-mert", *lists, *files, "--pools", pools, "--quiet"]) == 0
    found = json.loads(Path("w.json").read_text(encoding="utf-8"))
    assert set(found["weights"]) == {"LM0", "TM0", "f", "foov", "b", "boov"}
    models = found["provenance"]["models"]
    assert models["f"]["digest"] != models["b"]["digest"]
    out = ["--weights", "w.json", "--out", "out.txt", "--trace", "trace", "--summary", "s.json"]
    assert run(["decode", *lists, *out, "--kbest-out", "k", "--quiet"]) == 0
    assert run(["score", *lists, "--weights", "w.json", "--out", "scored", "--quiet"]) == 0
    (bleu,) = [found["provenance"]["bleu"]]
    assert bleu > 0


def test_the_spread_is_chosen_on_what_minimum_bayes_risk_decodes(
    folders: Mapping[tuple[str, str], Path],
    tuning_lists: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs", "--lm", f"b={folders[TURNED, 'ccdclm']}"]
    write_weights("w.json", {"LM0": [0.5], "TM0": [0.25, 0.25], "b": [1.0], "boov": [0.0]})
    given = [*lists, "--weights", "w.json", "--particles", "16"]
    assert run(["tune-mbr", *given, "--ref", "dev.ref", "--out", "spread.json"]) == 0
    listed = re.search(r"by spread: (.*)", capsys.readouterr().err)
    assert listed is not None
    scores = dict(re.findall(r"([\d.]+): ([\d.]+)", listed[1]))
    for spread in ("0.5", "2.8"):
        out = ["--search", "mbr", "--spread", spread, "--out", "out.txt", "--quiet"]
        assert run(["decode", *given, *out]) == 0
        bleu = sacrebleu.corpus_bleu(read("out.txt"), [read("dev.ref")], tokenize="none")
        assert f"{bleu.score:.2f}" == scores[spread]


def test_the_python_interface_reads_documents_as_the_shell_does(
    folders: Mapping[tuple[str, str], Path], saved: Mapping[tuple[str, str], SavedModel]
) -> None:
    talk = Document("talk", [[(text, {"LM0": 0.0}) for text in own] for own in LISTS["y"]])
    lms = {"f": folders[FORWARD, "ccdclm"], "b": folders[TURNED, "ccdclm"]}
    weights = dict.fromkeys(("f", "b"), 1.0) | dict.fromkeys(("LM0", "foov", "boov"), 0.0)
    (result,) = Reranker(weights, lm=lms, no_cache=True).decode([talk])
    truth = sum(sum(read_in_order(saved[way, "ccdclm"], result.texts)) for way in (FORWARD, TURNED))
    assert result.score == pytest.approx(truth, abs=1e-3)
    assert result.search.direction == "both"


# Training, and commands that only read or write text


TEXT = ["c c c c c c b b b a", "a b c d", "b d d", "", "d c a c b", "c"]  # no two counts are equal
SHAPE = ["--embed", "4", "--hidden", "4", "--epochs", "1", "--quiet"]


def documents_reversed(lines: Sequence[str]) -> list[str]:
    documents = "\n".join(lines).split("\n\n")
    return "\n\n".join("\n".join(one.split("\n")[::-1]) for one in documents).split("\n")


@pytest.mark.parametrize(("model", "across"), [("codclm", False), ("ccdclm", True)])
def test_training_and_perplexity_are_those_of_the_reversed_text(
    model: str, across: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Across documents, of the whole text from its end; the folder says how it is read."""
    write("forth", TEXT)
    write("back", TEXT[::-1] if across else documents_reversed(TEXT))
    options = ["--across-documents"] if across else []
    results = {}
    for out, file, more in (("turned", "back", []), ("lm", "forth", ["--reverse-documents"])):
        data = ["--train", file, "--valid", file, "--model", model, *options]
        assert run(["train-lm", *data, "--out", out, *SHAPE, "--streams", "1", *more]) == 0
        assert run(["perplexity", "--lm", out, file, "--format", "json", *options]) == 0
        results[out] = json.loads(capsys.readouterr().out)
    assert load_model(Path("lm")).model.config.reverse_documents
    if not across:  # whose stretches are others
        assert results["turned"] == results["lm"]
        assert run(["perplexity", "--lm", "lm", "forth", "--per-document", "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)["documents"]
        assert [row["tokens"] for row in rows] == [17, 6]
    assert run(["perplexity", "--lm", "lm", "back", "--format", "json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["nats"] != results["lm"]["nats"]
    truth = load_model(Path("lm"))
    whole = [[*filter(None, TEXT)]] if across else [TEXT[:3], TEXT[4:]]
    nats = -sum(sum(read_in_order(truth, own)) for own in whole)
    assert results["lm"]["nats"] == pytest.approx(nats, rel=1e-5)


def test_the_announcement_says_how_documents_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    write("text", TEXT)
    data = ["--train", "text", "--valid", "text", "--out", "lm", "--reverse-documents"]
    shape = [word for word in SHAPE if word != "--quiet"]
    assert run(["train-lm", "--model", "codclm", "--backward", *data, *shape]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "codclm from right to left, documents from the last sentence: " in told


def test_a_model_without_context_has_no_use_for_the_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("text", TEXT)
    data = ["--train", "text", "--valid", "text", "--out", "lm", "--reverse-documents"]
    assert run(["train-lm", "--model", "rnnlm", *data, *SHAPE]) == 2
    assert "--reverse-documents: rnnlm reads no context" in capsys.readouterr().err
    assert not Path("lm").exists()


def test_drawn_documents_end_where_the_start_begins(
    folders: Mapping[tuple[str, str], Path], tmp_path: Path
) -> None:
    twin = tmp_path / "twin"  # a forward reader with the weights of the reversed model
    save_models({"ccdclm": twin}, WORDS, 6, 8, oov_rate=0.25)
    write("end", ["the lamp is lit", "it burns"])
    write("turned", ["it burns", "the lamp is lit"])
    command = ["sample", "--documents", "2", "--sentences", "4", "--longest", "6", "--quiet"]
    ours = ["--lm", str(folders[TURNED, "ccdclm"]), "--out", "ours", "--start", "end"]
    theirs = ["--lm", str(twin), "--out", "theirs", "--start", "turned"]
    assert run([*command, *ours]) == 0
    assert run([*command, *theirs]) == 0
    assert read("ours") == documents_reversed(read("theirs")) != read("theirs")


def test_texts_without_later_sentences_are_refused_with_the_model(
    folders: Mapping[tuple[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(folders[TURNED, "codclm"])
    write("queries", ["the lamp", "it ___"])
    item = {"context": ["the lamp"], "right": "it burns", "wrong": ["it gives"]}
    write("items", [json.dumps(item)] * 2)
    for command in (["cloze"], ["lm-eval", "contrastive"]):
        text = "queries" if command == ["cloze"] else "items"
        assert run([*command, "--lm", folder, text]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "this model reads documents from the last sentence to the first, and here no" in told
        assert "give a model trained without --reverse-documents" in told
