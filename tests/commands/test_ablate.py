"""`rerank ablate`: rows are scores of decodings in which the contexts are the only candidates."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from support.tuned import LISTS, bleu
from support.world import Folders, World

KINDS = ("no context", "another document", "as decoded", "references", "first candidates")
ABLATE = f"ablate {LISTS} --ref dev.ref --weights w.json -q"


@pytest.fixture
def drawn(world: World) -> World:
    """Candidates are the words of the reference in other orders, so that contexts decide."""
    world.draw(5, "xxxxyyyyvzzz", (1, 8))
    rng, refs = np.random.default_rng(2), world.lines("dev.ref")
    orders = {
        f"{t} ||| {' '.join(rng.permutation(ref.split()))} ||| LM0= 0 TM0= 0 0 ||| 0": None
        for t, ref in enumerate(refs)
        for _ in range(0 if t in (1, 8) else 12)
    }
    world.write("dev.kbest", orders)
    world.weights("w.json", {"LM0": 0.125, "TM0": [0.0, 0.0], "lm": 20.0, "lmoov": -0.5})
    return world


def decoded(
    world: World, lm: str, *more: object, kbest: str = "dev.kbest", docs: str = "--docs dev.docs"
) -> list[str]:
    return world.ok(f"decode --kbest {kbest} {docs} --lm lm={lm} --out - -q", *more).lines


def chosen_after(world: World, lm: str, contexts: Mapping[int, Sequence[str]]) -> list[str]:
    """The choice of each sentence where those before it have one candidate each.

    contexts: texts of the sentences before, of each sentence with candidates. Each sentence is a
    document with its context.
    """
    lines, result = world.lines("dev.kbest"), [""] * len(world.lines("dev.docs"))
    rows, docs, places = list[str](), list[str](), dict[int, int]()
    for t, before in contexts.items():
        for text in before:
            rows.append(f"{len(docs)} ||| {text} ||| LM0= 0 TM0= 0 0 ||| 0")
            docs.append(f"d{t}")
        rows += [f"{len(docs)} {one.split(' ', 1)[1]}" for one in lines if one.startswith(f"{t} ")]
        places[t] = len(docs)
        docs.append(f"d{t}")
    world.write("one.kbest", rows)
    world.write("one.docs", docs)
    output = decoded(world, lm, "--weights", "w.json", kbest="one.kbest", docs="--docs one.docs")
    for t, place in places.items():
        result[t] = output[place]
    return result


def rows(world: World, lm: str, *more: object) -> dict[str, Any]:
    result = world.ok(ABLATE, "--lm", f"lm={lm}", "--format", "json", *more).json
    return {system["name"]: system for system in result["systems"]}


def test_rows_are_scores_in_these_contexts(drawn: World, model_folders: Folders) -> None:
    lm, refs, docs = str(model_folders["ccdclm"]), drawn.lines("dev.ref"), drawn.lines("dev.docs")
    result = rows(drawn, lm)
    each = {"docs": "--no-docs each"}
    own = decoded(drawn, lm, "--weights", "w.json")
    filled = sorted({int(line.split(" ", 1)[0]) for line in drawn.lines("dev.kbest")})
    before = {t: [s for s in filled if s < t and docs[s] == docs[t]] for t in filled}
    outputs = {
        "as decoded": own,
        "no context": decoded(drawn, lm, "--weights", "w.json", **each),
        "first candidates": decoded(drawn, lm, "--weights", "w.json", "--top", 1),
        "references": chosen_after(drawn, lm, {t: [refs[s] for s in before[t]] for t in filled}),
    }
    assert {*result} == {*outputs, "another document"}

    def values(output: Sequence[str]) -> tuple[float, int]:
        changed = sum(a != b for a, b in zip(output, own, strict=True))
        return round(bleu(output, refs).score, 9), changed

    def row(kind: str) -> tuple[float, int]:
        return round(result[kind]["bleu"], 9), result[kind]["changed"]

    for kind, output in outputs.items():
        assert row(kind) == values(output), kind
    # each document has the contexts of another one, around again; all are in one cycle
    spans = {d: [t for t, one in enumerate(docs) if one == d] for d in dict.fromkeys(docs)}
    after = dict[tuple[str, str], list[str]]()
    for shift in range(1, len(spans)):
        others = dict(zip(spans, [*spans][shift:] + [*spans][:shift], strict=True))
        contexts = {
            t: [
                own[spans[others[docs[t]]][(s - spans[docs[t]][0]) % len(spans[others[docs[t]]])]]
                for s in before[t]
            ]
            for t in filled
        }
        output = chosen_after(drawn, lm, contexts)
        after |= {(d, others[d]): [output[t] for t in spans[d]] for d in spans}
    possible = set()
    for first, *rest in permutations(spans):
        cycle = dict(zip((first, *rest), (*rest, first), strict=True))
        possible.add(values([line for d in spans for line in after[d, cycle[d]]]))
    assert row("another document") in possible


def test_a_single_document_has_no_other(drawn: World, model_folders: Folders) -> None:
    command = ABLATE.replace("--docs dev.docs", "--no-docs one")
    result = drawn.ok(command, "--lm", f"lm={model_folders['codclm']}", "--format", "json").json
    names = [system["name"] for system in result["systems"]]
    assert names == [kind for kind in KINDS if kind != "another document"]


def test_a_verdict_says_what_models_are_worth(drawn: World, model_folders: Folders) -> None:
    command = f"{ABLATE} --lm lm={model_folders['codclm']}"
    assert "contributes nothing" not in drawn.ok(command).out
    drawn.weights("w.json", {"LM0": 1.0, "TM0": [0.0, 0.0], "lm": 1e-9, "lmoov": 0.0})
    candidates = drawn.lines("dev.kbest")
    drawn.write("dev.kbest", [x.replace("LM0= 0", f"LM0= {-i}") for i, x in enumerate(candidates)])
    line = (
        "your language model lm contributes nothing (weight 1e-09): without it 0 of 10 choices "
        "would be others"
    )
    *_, context, model = drawn.ok(command).lines
    assert context.startswith("verdict: as decoded against no context: no difference")
    assert model == f"verdict: {line}"
    assert drawn.ok(f"{command} --format json").json["idle"] == line
    tuned = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --start w.json --out o.json"
    told = drawn.ok(f"{tuned} --lm lm={model_folders['codclm']} --features TM0").err.splitlines()
    made = drawn.json("o.json")["provenance"]["verdict"]
    assert f"verdict: {made}" in told
    assert made.startswith(f"{line}; ")
    drawn.ok(f"decode {LISTS} --lm lm={model_folders['codclm']} --weights o.json --trace t --out o")
    report = "report --trace t --docs dev.docs --ref dev.ref --weights o.json -m bleu"
    assert drawn.ok(f"{report} --format json").json["evaluation"]["idle"] == line
    assert line in drawn.ok(report).out
