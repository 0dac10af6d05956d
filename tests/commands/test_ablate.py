"""`rerank ablate`: rows are scores of decodings in which the contexts are the only candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.tuned import LISTS, bleu
from support.world import World

KINDS = ("no context", "another document", "as decoded", "references", "first candidates")
ABLATE = f"ablate {LISTS} --ref dev.ref --weights w.json -q"


@pytest.fixture
def drawn(world: World) -> World:
    world.draw(5, "xxxyyvzz", (1, 5))
    weights = {"LM0": 0.125, "TM0": [0.0, 0.0], "lm": 4.0, "lmoov": -0.5}
    world.weights("w.json", weights)
    world.weights("null.json", {**weights, "lm": 0.25})
    return world


def decoded(
    world: World, lm: str, *more: object, kbest: str = "dev.kbest", docs: str = "--docs dev.docs"
) -> list[str]:
    return world.ok(f"decode --kbest {kbest} {docs} --lm lm={lm} --out - -q", *more).lines


def chosen_after(world: World, lm: str, contexts: Sequence[str], only: str = "") -> list[str]:
    """The choice of each sentence where those before it have one candidate each.

    only: a document; the other sentences are empty.
    """
    documents, lines = world.lines("dev.docs"), world.lines("dev.kbest")
    with_lists = {int(line.split(" ", 1)[0]) for line in lines}
    found = []
    for t, name in enumerate(documents):
        own = [line for line in lines if line.startswith(f"{t} |||")]
        if not own or only not in ("", name):
            found.append("")
            continue
        before = [s for s in range(t) if documents[s] == name and s in with_lists]
        rows = [f"{s} ||| {contexts[s]} ||| LM0= 0 TM0= 0 0 ||| 0" for s in before]
        world.write("one.kbest", [*rows, *own])
        world.write("one.docs", documents[: t + 1])
        more = ("--weights", "w.json")
        found.append(decoded(world, lm, *more, kbest="one.kbest", docs="--docs one.docs")[t])
    return found


def rows(world: World, lm: str, *more: object) -> dict[str, Any]:
    found = world.ok(ABLATE, "--lm", f"lm={lm}", "--format", "json", *more).json
    return {system["name"]: system for system in found["systems"]}


@pytest.mark.parametrize("name", ["ccdclm", "drnnlm"])
def test_rows_are_the_scores_of_decodings_in_these_contexts(
    drawn: World, model_folders: Mapping[str, Path], name: str
) -> None:
    lm, refs, documents = str(model_folders[name]), drawn.lines("dev.ref"), drawn.lines("dev.docs")
    found = rows(drawn, lm, "--null-weights", "null.json")
    each = {"docs": "--no-docs each"}
    own = decoded(drawn, lm, "--weights", "w.json")
    outputs = {
        "as decoded": own,
        "no context": decoded(drawn, lm, "--weights", "w.json", **each),
        "no context, own weights": decoded(drawn, lm, "--weights", "null.json", **each),
        "first candidates": decoded(drawn, lm, "--weights", "w.json", "--top", 1),
        "references": chosen_after(drawn, lm, refs),
    }
    assert {*found} == {*outputs, "another document"}
    for kind, output in outputs.items():
        assert found[kind]["bleu"] == pytest.approx(bleu(output, refs).score, rel=1e-12), kind
        changed = sum(a != b for a, b in zip(output, own, strict=True))
        assert found[kind]["changed"] == changed, kind
    # each document has the contexts of another one, whichever that is
    spans = {
        d: [t for t, one in enumerate(documents) if one == d] for d in dict.fromkeys(documents)
    }
    possible: dict[str, set[int]] = {}
    for d in ("y", "z"):
        possible[d] = set()
        for other in spans.keys() - {d}:
            texts = list(own)
            for n, t in enumerate(spans[d]):
                texts[t] = own[spans[other][n % len(spans[other])]]
            after = chosen_after(drawn, lm, texts, only=d)
            possible[d].add(sum(after[t] != own[t] for t in spans[d]))
    rest = len(documents) - sum(len(spans[d]) for d in possible)
    least, most = (sum(f(own) for own in possible.values()) for f in (min, max))
    assert least <= found["another document"]["changed"] <= most + rest


def test_a_single_document_has_no_other_one(
    drawn: World, model_folders: Mapping[str, Path]
) -> None:
    command = ABLATE.replace("--docs dev.docs", "--no-docs one")
    found = drawn.ok(command, "--lm", f"lm={model_folders['codclm']}", "--format", "json").json
    names = [system["name"] for system in found["systems"]]
    assert names == [kind for kind in KINDS if kind != "another document"]


def test_every_form_has_a_row_for_each_kind_of_context(
    drawn: World, model_folders: Mapping[str, Path]
) -> None:
    lm = f"lm={model_folders['drnnlm']}"
    lines = drawn.ok(ABLATE, "--lm", lm).lines
    assert [line.split("  ")[0] for line in lines[3:8]] == [*KINDS]
    assert "as decoded 0;" in "\n".join(lines)
    for form in ("tsv", "latex", "markdown"):
        text = drawn.ok(ABLATE, "--lm", lm, "--format", form).out
        assert all(kind in text for kind in KINDS)
