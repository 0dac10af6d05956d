"""`ablate` against decodings of lists in which the contexts are the only candidates."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.files import read, write, write_weights

from rerank.cli import run
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, Search, ablate, decode
from rerank.pipeline.ablation import DECODED, EMPTIED, FIRST, OTHER, REFERENCE, RETUNED
from rerank.report.ablation import Ablation
from rerank.report.evaluation import evaluate

WEIGHTS = {"LM0": [0.125], "TM0": [0.0, 0.0], "lm": [4.0], "lmoov": [-0.5]}
SEARCH = Search("beam").listing(1)
MODELS = ("ccdclm", "drnnlm")


@pytest.fixture(autouse=True)
def here(tuning_lists: Path) -> None:
    write_weights("w.json", WEIGHTS)
    write_weights("null.json", {**WEIGHTS, "lm": [0.25]})


def lists(folder: Path, kbest: str = "dev.kbest", **options: object) -> Lists:
    given = {"docs": "dev.docs", **options}
    return Lists(kbest, lms=(("lm", folder),), **given)  # type: ignore[arg-type]


def decoded(folder: Path, weights: str = "w.json", **options: object) -> list[str]:
    decode(lists(folder, **options), weights, "out.txt", notices=Notices())  # type: ignore[arg-type]
    return read("out.txt")


def chosen_after(folder: Path, contexts: list[str], only: str = "") -> list[str]:
    """The choice of each sentence by a decoding in which those before have one candidate each.

    only: a document, the other sentences are empty.
    """
    documents, lines = read("dev.docs"), read("dev.kbest")
    found = []
    for t, name in enumerate(documents):
        own = [line for line in lines if line.startswith(f"{t} |||")]
        with_lists = {int(line.split(" ", 1)[0]) for line in lines}
        before = [
            f"{s} ||| {contexts[s]} ||| LM0= 0 TM0= 0 0 ||| 0"
            for s in range(t)
            if documents[s] == name and s in with_lists
        ]
        if not own or only not in ("", name):
            found.append("")
            continue
        write("one.kbest", [*before, *own])
        write("one.docs", documents[: t + 1])
        found.append(decoded(folder, kbest="one.kbest", docs="one.docs")[t])
    return found


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The texts of each kind of context that an ablation evaluates."""
    texts: dict[str, list[str]] = {}

    def kept(documents, targets, systems, **options):  # type: ignore[no-untyped-def]
        texts.update({one.name: [line.decode() for line in one.lines] for one in systems})
        return evaluate(documents, targets, systems, **options)

    monkeypatch.setattr("rerank.pipeline.ablation.judge", kept)
    return texts


@pytest.mark.parametrize("name", MODELS)
def test_choices_are_those_of_decodings_in_these_contexts(
    name: str, model_folders: Mapping[str, Path], seen: dict[str, list[str]]
) -> None:
    folder = model_folders[name]
    found = ablate(
        lists(folder), ["dev.ref"], "w.json", null_weights="null.json", notices=Notices()
    )
    assert isinstance(found, Ablation)
    assert list(seen) == [EMPTIED, OTHER, DECODED, REFERENCE, RETUNED, FIRST]
    own = decoded(folder)
    assert seen[DECODED] == own
    assert seen[EMPTIED] == decoded(folder, docs=None, no_docs="each")
    assert seen[RETUNED] == decoded(folder, "null.json", docs=None, no_docs="each")
    assert seen[FIRST] == decoded(folder, top=1)
    assert seen[REFERENCE] == chosen_after(folder, read("dev.ref"))
    for kind, texts in seen.items():
        assert found.changed[kind] == sum(a != b for a, b in zip(texts, own, strict=True))
    contexts_matter = any(found.changed[kind] for kind in (EMPTIED, OTHER, REFERENCE))
    assert contexts_matter or name != "drnnlm"
    # the document y has the contexts of another one, whichever that is
    documents = read("dev.docs")
    spans: dict[str, list[int]] = {}
    for t, document in enumerate(documents):
        spans.setdefault(document, []).append(t)
    possible = []
    for other in spans.keys() - {"y"}:
        texts = list(own)
        for t in spans["y"]:
            texts[t] = own[spans[other][(t - spans["y"][0]) % len(spans[other])]]
        after = chosen_after(folder, texts, only="y")
        possible.append([after[t] for t in spans["y"]])
    assert [seen[OTHER][t] for t in spans["y"]] in possible


def test_a_single_document_has_no_other_one(
    model_folders: Mapping[str, Path], seen: dict[str, list[str]]
) -> None:
    one = lists(model_folders["codclm"], docs=None, no_docs="one")
    ablate(one, ["dev.ref"], "w.json", notices=Notices())
    assert list(seen) == [EMPTIED, DECODED, REFERENCE, FIRST]


def test_scorers_without_context_are_refused(model_folders: Mapping[str, Path]) -> None:
    with pytest.raises(UsageError, match="no scorer here depends on other sentences"):
        ablate(lists(model_folders["rnnlm"]), ["dev.ref"], "w.json", notices=Notices())


def test_the_command_prints_a_row_for_each_kind_of_context(
    model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ablate", "--kbest", "dev.kbest", "--docs", "dev.docs", "--ref", "dev.ref"]
    command += ["--lm", f"lm={model_folders['drnnlm']}", "--weights", "w.json", "--quiet"]
    assert run(command) == 0
    text = capsys.readouterr().out
    assert [line.split("  ")[0] for line in text.splitlines()[3:8]] == [
        *(EMPTIED, OTHER, DECODED, REFERENCE, FIRST)
    ]
    assert "as decoded 0;" in text
    assert run([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [system["changed"] for system in found["systems"]][2] == 0
    assert found["schema"] == 1
    assert np.isfinite([system["bleu"] for system in found["systems"]]).all()
    for form in ("tsv", "latex", "markdown"):
        assert run([*command, "--format", form]) == 0
        assert REFERENCE in capsys.readouterr().out
