"""`perplexity`: sums of the definition over a text, and what is said of them."""

import math
from typing import Any

import pytest
from support.definitions import definition
from support.texts import documents_of
from support.world import World

from lm.vocabulary import UNKNOWN

TEXT = ["the lamp is lit", "a lamp burns", "", "no glow", "it is <unk> lamp", "lamp", "", "she is"]
SIDE = {
    "source": ["0 1", "2", "", "4 4", "1 unheard", "0", "", "3"],
    "relations": ["0", "4", "", "unheard", "2", "1", "", "0"],
    "topics": ["3", "1", "", "2", "2", "1", "", "0"],
    "parents": ["2", "1", "", "3", "0", "1", "", "0"],
}
MODELS: dict[str, tuple[str, dict[str, Any], str, float, str]] = {
    "order-0": ("rnnlm", {}, "", 0.0, ""),
    "unbounded": ("ccdclm", {}, "", 0.0, ""),
    "document-cache": ("ccdclm", {}, "--document-cache 0.2", 0.2, ""),
    "document-cache-of-hashed": ("hrnnlm-lin", {}, "--document-cache 0.4", 0.4, ""),
    "backward": ("codclm", {"backward": True}, "", 0.0, ""),
    "reversed": ("ccdclm", {"reverse_documents": True}, "", 0.0, ""),
    "next-sentence": ("dclm-right-target", {}, "", 0.0, ""),
    "source": ("dclm-bilingual-decoupled", {}, "", 0.0, "source"),
    "source-words": ("attention", {}, "", 0.0, "source"),
    "source-words-and-words-before": ("attention-gated", {}, "", 0.0, "source"),
    "topics": ("clstm-given-topic-carried", {}, "", 0.0, "topics"),
    "relations": ("dclm-recurrence", {}, "", 0.0, "relations"),
    "parents": ("dclm-rst", {}, "", 0.0, "source parents"),
}


@pytest.fixture
def text(world: World) -> World:
    """The world with a text of three documents and files beside it."""
    world.write("text", TEXT)
    for kind, lines in SIDE.items():
        world.write(f"text.{kind}", lines)
    return world


def measured(world: World, options: str = "", text: str = "text") -> Any:
    return world.ok(f"perplexity --lm lm {text} --format json --device cpu {options}").json


@pytest.mark.parametrize("name", MODELS)
def test_figures_are_sums_of_the_definition_over_words_and_ends(name: str, text: World) -> None:
    model, shape, options, share, kinds = MODELS[name]
    saved = text.model(model, **shape)
    side = "".join(f" --{kind} text.{kind}" for kind in kinds.split())
    result = measured(text, f"{options} --per-document {side}")
    documents = documents_of(TEXT)
    beside = {kind: documents_of(SIDE[kind]) for kind in kinds.split()}
    beside |= {"parents": [["1", "0"], ["2", "-1", "0"], ["-1"]]} if "parents" in beside else {}
    nats = []
    for n, own in enumerate(documents):
        log_p, _ = definition(saved, {kind: lines[n] for kind, lines in beside.items()}, share)
        nats.append(-sum(log_p(tuple(own), t) for t in range(len(own))))
    words = [[saved.vocabulary.encode(line.encode().split()) for line in own] for own in documents]
    tokens = [sum(map(len, own)) for own in words]
    oov = sum(word == UNKNOWN for own in words for line in own for word in line)
    assert result["nats"] == pytest.approx(sum(nats), rel=1e-5)
    assert (result["sentences"], result["tokens"], result["oov"]) == (6, 16, oov)
    key = "pseudo_perplexity" if name == "next-sentence" else "perplexity"
    assert result[key] == pytest.approx(math.exp(sum(nats) / (16 + 6)), rel=1e-5)
    assert [document["tokens"] for document in result["documents"]] == tokens
    assert [document["nats"] for document in result["documents"]] == pytest.approx(nats, rel=1e-5)


def test_bags_of_words_are_measured_per_word_and_not_as_perplexity(text: World) -> None:
    saved = text.model("rnnslm")
    own = [tuple(one) for one in documents_of(TEXT)]
    for share, options in ((0.0, ""), (0.2, "--document-cache 0.2")):
        result = measured(text, options)
        log_p, _ = definition(saved, share=share)
        nats = -sum(log_p(one, t) for one in own for t in range(len(one)))
        assert result["nats_per_word_of_a_bag"] == pytest.approx(nats / 16, rel=1e-4)
        assert "perplexity" not in result
    said = text.ok("perplexity --lm lm text").out
    assert "nats per word of a bag of words" in said
    assert "not comparable with perplexities of other models" in said


@pytest.mark.parametrize(("model", "shape", "options", "said"), [
    ("rnnlm", {"head": "self-normalised"}, "", "scores of this model are not normalised: "),
    ("dclm-recurrence", {}, "--relations text.relations",
        "given --relations: not a perplexity"),
])  # fmt: skip
def test_what_makes_figures_no_perplexity_is_said(
    model: str, shape: dict[str, Any], options: str, said: str, text: World
) -> None:
    text.model(model, **shape)
    assert said in text.ok(f"perplexity --lm lm text {options}").out


def test_contexts_end_with_documents_unless_they_may_cross_them(text: World) -> None:
    text.write("one", [line for line in TEXT if line])
    for name, crosses in (("codclm", True), ("rnnlm", False)):
        text.model(name)
        parted, across = measured(text)["nats"], measured(text, "--across-documents")["nats"]
        assert (parted != pytest.approx(across, rel=1e-6)) == crosses
        assert measured(text, text="one")["nats"] == pytest.approx(across, rel=1e-6)


def test_paragraphs_and_lines_of_equals_signs_part_documents(text: World) -> None:
    text.model("ccdclm")
    plain = measured(text)
    text.write("ji", [line or "= =" for line in TEXT] + ["="])
    text.write("paragraphs", [line or "<p>" for line in TEXT])
    assert measured(text, "--documents equals", "ji") == plain
    assert measured(text, "--documents paragraphs", "paragraphs") == plain
    text.write("ji", "the lamp\n\nit is\n=\n\n")
    run = text.ok("perplexity --lm lm ji --documents equals --format json")
    assert (run.json["sentences"], run.json["tokens"]) == (4, 4)
    assert "2 x blank line read as a sentence without words, as --documents equals" in run.err


def test_last_words_are_read_and_counted_twice_where_that_is_asked_for(world: World) -> None:
    world.model("ccdclm")
    world.write("once", ["the lamp", "it is lit"])
    world.write("twice", ["the lamp lamp", "it is lit lit"])
    result = measured(world, "--duplicate-last-word", "once")
    assert result == {**measured(world, "", "twice"), "duplicate_last_word": True}
