"""`rerank explain` of traces written by hand, and of decodings."""

import json
from typing import Any

import pytest
from support.world import Folders, World

LISTS = "--kbest dev.kbest --docs dev.docs --weights lm.json --device cpu --threads 1"


def choice(
    document: str, sentence: int, chosen: str, first: str, alone: str | None = None, **added: float
) -> dict[str, Any]:
    """A line of a trace; alone: the text without context, that of the first if not given."""
    text = first if alone is None else alone
    return {
        **{"document": document, "sentence": sentence, "source": "das", "chosen": 1, "first": 0},
        "texts": {"chosen": chosen, "first": first, "runner_up": "it is not"},
        **{"weighted": {}, "over_first": {"lm": None, **added}},
        "over_runner_up": {"lm": 0.5, "LM0": -0.25},
        **{"margin": 0.25, "alone": {"chosen": 0, "text": text, "lead": 0.25}},
    }


CHOICES = [
    choice("a", 0, "it is lit", "it was lit", lm=0.5, LM0=-0.25),
    choice("a", 1, "it is", "it is", lm=0.0, LM0=0.0),
    choice("b", 0, "she is", "she was", lm=0.25, LM0=1.0),
    choice("b", 2, "no lamp", "lamp", LM0=0.5),
]

SHE = """\
document b, sentence 0
  source      das
  first       she was
  chosen      she [-was-] {+is+}
  runner-up   [-she-] {+it+} is {+not+}   (-0.250)
  no context  she [-is-] {+was+}   (+0.250 there)
  why not the first:
    total  +1.250
    LM0    +1.000
    lm     +0.250
  why not the runner-up:
    total  +0.250
    lm     +0.500
    LM0    -0.250
"""


def test_a_sentence_has_its_texts_with_changes_marked_and_features(world: World) -> None:
    world.write("t", map(json.dumps, CHOICES))
    assert world.ok("explain t b:0").out == SHE
    after = world.ok("explain t a:1").out
    assert "  before      it is lit\n  first       it is\n  chosen      the same\n" in after
    assert "  no context  the same choice\n" in after
    both = world.ok("explain t b")
    assert both.out.startswith("1 documents, 2 sentences, 2 changed (100.0%)")
    assert SHE in both.out
    assert "  before      she is\n  first       lamp\n" in both.out
    shown = world.ok("explain t b --format json").json["shown"]
    assert [one["sentence"] for one in shown] == [0, 2]


def test_without_scores_in_context_nothing_is_said_of_contexts(world: World) -> None:
    one = choice("a", 0, "it", "it", lm=0.0)
    one |= dict.fromkeys(("source", "margin", "over_runner_up", "alone")) | {"systems": ["A", "B"]}
    one["texts"] |= {"runner_up": None}
    world.write("t", [json.dumps(one)])
    assert world.ok("explain t --format json").json["by_context"] is None
    head, table, legend = world.ok("explain t a").out.split("\n\n")
    assert head == "1 documents, 1 sentences, 0 changed (0.0%)"
    assert table.splitlines()[0].split() == ["document", "A", "B"]
    assert table.splitlines()[2:] == ["a             1    1"]
    assert legend == "chosen segments of each engine; equal texts count for each of their engines\n"
    expected = (
        "document a, sentence 0\n  first       it\n  chosen      the same\n  systems     A, B\n"
    )
    assert world.ok("explain t a:0").out == expected


def test_documents_stand_in_the_order_of_their_numbers(world: World) -> None:
    names = ["d10", "e", "d2", "3", "d2.10", "d2.9", "d" + "0" * 5000]
    world.write("t", [json.dumps({**choice(n, 0, "a", "b"), "systems": ["A"]}) for n in names])
    table = world.ok("explain t").out.partition("document ")[2].splitlines()[2:]
    rows = [line.split()[0] for line in table if line.endswith(" 1")]
    assert rows == ["3", names[-1], "d2", "d2.9", "d2.10", "d10", "e"]


def test_a_place_is_a_document_before_it_is_a_sentence_of_one(world: World) -> None:
    names = ["a", "b:7", "b"]
    lines = [json.dumps(choice(n, s, f"{n}", "x", LM0=1.0)) for n in names for s in (0, 12)]
    world.write("t", lines)
    for place, name, sentences in (
        ("a", "a", [0, 12]),
        ("b:7", "b:7", [0, 12]),
        ("b:12", "b", [12]),
        ("b:7:0", "b:7", [0]),
    ):
        shown = world.ok(f"explain t {place} --format json").json["shown"]
        expected = [(name, s) for s in sentences]
        assert [(one["document"], one["sentence"]) for one in shown] == expected


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [
        ("the lamp is lit", "a very lamp burns", "[-the-] {+a very+} lamp [-is lit-] {+burns+}"),
        ("it is", "it", "it [-is-]"),
        ("it", "it is", "it {+is+}"),
        ("a b c", "c a b", "{+c+} a b [-c-]"),
    ],
)
def test_changes_are_runs_of_words(world: World, before: str, after: str, marked: str) -> None:
    world.write("t", [json.dumps(choice("a", 0, after, before, LM0=1.0))])
    assert f"  chosen      {marked}\n" in world.ok("explain t a:0").out


def test_counts_are_those_of_the_output_of_a_decoding(world: World, model_folders: Folders) -> None:
    world.draw()
    world.weights("lm.json", {"LM0": 0.125, "TM0": [0.0, 0.0], "lm": 4.0, "lmoov": -0.5})
    command = f"decode {LISTS} --lm lm={model_folders['codclm']} --out out --trace t"
    first = world.lines("out") if world.ok(f"{command} --top 1") else []
    world.ok(command)
    assert world.ok("explain t x:1").out.startswith("document x, sentence 1\n  before ")
    result = world.ok("explain t --format json").json
    changed = [t for t, (a, b) in enumerate(zip(first, world.lines("out"), strict=True)) if a != b]
    assert result["changed"] == len(changed) > 0
    assert sum(feature["added_most"] for feature in result["features"].values()) == len(changed)
    assert result["documents"] == 4  # the fifth has no candidates
