"""`decode --trace`: features of choices, and margins and marginals by enumeration."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from typing import Any

import pytest
from support.definitions import definition
from support.programs import ESTIMATOR
from support.server import STUB
from support.world import TUNE, World

LISTS = [["the lamp is lit", "it burns", "it burns"], [], ["she is", "no one"], ["lamp"], ["it"]]
LISTS[-1] += ["a light", "no light", "one"]
WEIGHTS = {"LM0": 0.5, "TM0": [0.25, -0.5], "lm": 1.5, "lmoov": 2.0}
NAMES = ["LM0", "TM0_0", "TM0_1", "lm", "lmoov"]
VALUES = dict(zip(NAMES, [0.5, 0.25, -0.5, 1.5, 2.0], strict=True))
DECODE = "decode --kbest k --no-docs one --weights w.json --lm lm=lm --trace trace --out out -q"


def dense(t: int, k: int) -> dict[str, float]:
    return {"LM0": -k - t, "TM0_0": k / 8, "TM0_1": t / 4}


@pytest.fixture(params=["codclm", "drnnlm"])
def values(request: pytest.FixtureRequest, world: World) -> Any:
    """The world with a list and a model; features of a candidate after a path's earlier ones."""
    saved = world.model(request.param)
    log_p, _ = definition(saved)
    rows = [(t, k, text) for t, own in enumerate(LISTS) for k, text in enumerate(own)]
    world.write(
        "k",
        [
            f"{t} ||| {text} ||| LM0= {-k - t} TM0= {k / 8} {t / 4}{' tag_x= 2' * (k > 0)} ||| 0"
            for t, k, text in rows
        ],
    )
    world.weights("w.json", WEIGHTS, sparse={"tag_x": 0.75})
    numbers = [t for t, own in enumerate(LISTS) if own]

    def of(path: tuple[int, ...], s: int) -> dict[str, float]:
        """Of the choice at place s, and the weighted sum of all with its sparse feature."""
        texts = tuple(LISTS[t][k] for t, k in zip(numbers, path, strict=False))
        known = {word.decode() for word in saved.vocabulary.words}
        oov = sum(word not in known for word in texts[s].split())
        found = {**dense(numbers[s], path[s]), "lm": log_p(texts[: s + 1], s), "lmoov": oov}
        total = sum(VALUES[name] * value for name, value in found.items())
        return {**found, "total": total + (1.5 if path[s] else 0.0)}

    return of


def traced(world: World, options: str) -> list[dict[str, Any]]:
    world.ok(f"{DECODE} {options}")
    return [json.loads(line) for line in world.lines("trace")]


def choices(lines: list[dict[str, Any]]) -> tuple[int, ...]:
    return tuple(line["chosen"] for line in lines)


def test_a_line_holds_the_features_of_the_choice_and_what_each_adds(
    values: Any, world: World
) -> None:
    lines = traced(world, "--search greedy --kbest-out scored")
    path = choices(lines)
    assert [line["sentence"] for line in lines] == [0, 2, 3, 4]
    texts = [own[k] for own, k in zip([own for own in LISTS if own], path, strict=True)]
    assert [line["texts"]["chosen"] for line in lines] == texts
    assert [line["texts"]["first"] for line in lines] == [own[0] for own in LISTS if own]
    for s, line in enumerate(lines):
        found = values(path, s)
        total = found.pop("total")
        assert list(line["features"]) == NAMES
        assert line["features"] == pytest.approx(found, abs=1e-4)
        weighted = {name: VALUES[name] * value for name, value in found.items()}
        sparse = {"sparse": 1.5 if path[s] else 0.0}
        assert line["weighted"] == pytest.approx(weighted | sparse, abs=1e-3)
        assert line["total"] == pytest.approx(total, abs=1e-3)
        other = values((*path[:s], 0), s)
        over = {name: weighted[name] - VALUES[name] * other[name] for name in NAMES}
        assert line["over_first"] == pytest.approx(over | sparse, abs=1e-3)
        assert line["first"] == 0


def test_choices_without_context_are_those_of_sentences_alone(values: Any, world: World) -> None:
    lines = traced(world, "")
    own = world.ok(DECODE.replace("--no-docs one", "--no-docs each").replace("out -q", "alone -q"))
    assert own.exit == 0
    alone = [line for line in world.lines("alone") if line]
    for line, text in zip(traced(world, ""), alone, strict=True):
        assert line["alone"]["text"] == text
        assert (line["alone"]["lead"] > 0) == (line["alone"]["chosen"] != line["chosen"])
    assert len(lines) == len(alone)
    world.model("rnnlm")
    assert {str(line["alone"]) for line in traced(world, "")} == {"None"}  # no context at all


@pytest.mark.parametrize(
    "search", ["greedy", "viterbi", "beam", "mbr --alpha 9", "ffbs --alpha 99"]
)
def test_copies_of_a_text_are_neither_runners_up_nor_changes(search: str, world: World) -> None:
    """As of samples of an LLM, of which several are equal; some differ in their blanks alone."""
    rows = [(0, "it is lit", -3), (0, "it burns", -1), (0, "it  burns", -1), (0, "it burns", -1.5)]
    rows += [(1, "she is", -2), (1, "she is", -1), (2, "a", -1), (2, "no", -1.25)]
    world.write("k", [f"{t} ||| {text} ||| LM0= {score} ||| 0" for t, text, score in rows])
    world.weights("w.json", {"LM0": 1})
    command = f"decode --kbest k --no-docs one --weights w.json --search {search} --trace trace"
    told = world.ok(f"{command} --summary s.json --out out").err
    lines = [json.loads(line) for line in world.lines("trace")]
    assert [one["chosen"] for one in lines] == [1, int("mbr" not in search), 0]
    assert [one["runner_up"] for one in lines] == [0, None, 1]
    assert [one["texts"]["runner_up"] for one in lines] == ["it is lit", None, "no"]
    assert [one["over_runner_up"] for one in lines] == [{"LM0": 2}, None, {"LM0": 0.25}]
    for name in ("margin", "path_margin"):
        assert [one[name] for one in lines] == [2, None, 0.25]
    assert "3 sentences, 1 changed (33.3%)" in told
    assert (world.json("s.json")["changed"], world.json("s.json")["near_ties"]) == (1, 0)
    assert "3 sentences, 1 changed (33.3%)" in world.ok("explain trace").out


def test_two_texts_of_equal_scores_are_a_near_tie_where_scores_may_err(world: World) -> None:
    """The words `x` and `y` are unknown; without a model the rule of ties decides."""
    world.write("k", [f"0 ||| it {x} ||| LM0= 0 ||| 0" for x in "xy"])
    world.model("codclm")
    world.weights("w.json", {"LM0": 1, "lm": 1, "lmoov": 0})
    world.ok(f"{DECODE} --summary out.json")
    (document,) = world.json("out.json")["documents"]
    assert document["near_ties"] == 1
    world.weights("w.json", {"LM0": 1})
    world.ok("decode --kbest k --no-docs one --weights w.json --summary out.json --out out")
    (document,) = world.json("out.json")["documents"]
    assert document["near_ties"] == 0


def test_a_trace_states_of_scorers_what_weights_do_and_reports_show_it(world: World) -> None:
    """Of an LLM with a prompt behind a server, of a program, and of the utility of a search."""
    world.write("qe.py", ESTIMATOR)
    world.write("p", "{{ source }} =\n")
    qe = f"command:{sys.executable} -IS qe.py"
    given = f"--source dev.src --lm g=openai:{STUB.url()},model=toy,prompt=p --scorer 'q={qe}'"
    world.ok(f"{TUNE} {given}")
    made = world.json("tuned.json")["provenance"]
    assert made["models"]["g"]["prompt_digest"] == sha256(b"{{ source }} =\n").hexdigest()
    assert (made["scorers"]["q"]["program"], made["scorers"]["q"]["version"]) == ("toy", "1")
    others = {name: [1.0] * len(own) for name, own in world.json("tuned.json")["weights"].items()}
    world.weights("w.json", others, provenance=made)  # those of weight 0 would not be computed
    decode = "decode --kbest dev.kbest --docs dev.docs --weights w.json --out out --trace t"
    world.ok(f"{decode} {given} '--search=mbr:utility={qe}'")
    lines = [json.loads(line) for line in world.lines("t")]
    program = {"program": "toy", "version": "1"}
    for line in lines:
        assert (line["models"], line["scorers"]) == (made["models"], made["scorers"])
        assert [one.items() >= program.items() for one in line["programs"]] == [True]
    found = world.ok("explain t")
    for name, fact in (("g", "model toy"), ("q", "version 1"), ("utility", "program toy")):
        assert any(line.startswith(f"{name} ") and fact in line for line in found.lines)
    assert made["models"]["g"]["prompt_digest"][:8] in found.out
    stated = world.ok("explain t --format json").json["scorers"]
    assert stated["g"] == made["models"]["g"]
    page = "report --trace t --docs dev.docs --ref dev.ref --out r.html"
    world.ok(page)
    assert "prompt p, prompt_digest" in world.text("r.html")
