"""`topics`: topics learned, and labels written."""

import json
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from support.runs import replaced_everywhere
from support.world import World

from lm.checkpoint import load_model

THINGS = (["lamp", "light", "oil", "wick", "flame"], ["boat", "oar", "sail", "mast", "keel"])
LEARN = "topics learn text --topics-number 2 --out model -q"
LABEL = "topics label --model model"


@pytest.fixture(autouse=True)
def texts(world: World) -> None:
    """`text`: documents of one of two topics."""
    rng = np.random.default_rng(4)

    def sentence(topic: int) -> str:
        return " ".join(["the", *rng.choice(THINGS[topic], 5).tolist()])

    world.write("text", [x for n in range(40) for x in (*(sentence(n % 2) for _ in range(4)), "")])


@pytest.fixture(params=["kmeans", "lda"])
def kind(request: pytest.FixtureRequest) -> str:
    """A learner of topics."""
    pytest.importorskip("sklearn")
    return str(request.param)


def test_topics_are_learned_shown_and_written_beside_texts(kind: str, world: World) -> None:
    none, *result = world.ok(f"{LEARN} --topic-model {kind} --format json").json["topics"]
    assert none == {"label": "0", "sentences": 0, "words": []}
    assert [one["sentences"] for one in result] == [80, 80]
    own = sorted(sorted({*one["words"]} - {"the"}) for one in result)
    assert own == sorted(map(sorted, THINGS))
    of = {word: one["label"] for one in result for word in one["words"]}
    world.write("new", ["the lamp", "wick", "", "", "oar the sail", "what"])
    world.ok(f"{LABEL} new --out labels -q")
    assert world.lines("labels") == [of["lamp"], of["wick"], "", "", of["oar"], "0"]
    world.write("new", ["the lamp", "", "oar the sail", "<p>", "wick"])
    lamp, boat = of["lamp"], of["oar"]
    assert world.ok(f"{LABEL} new --documents paragraphs").lines == [lamp, "", boat, "<p>", lamp]
    world.write("docs", [*"aabbb"])
    assert world.ok(f"{LABEL} new --docs docs").lines == [lamp, "0", boat, "0", lamp]
    world.write("docs", [*"aabb"])
    refused = world.run(f"{LABEL} new --docs docs").err
    assert "new: expected 4 lines, one for each line of docs, found 5; " in refused
    assert "oar" in world.ok(LEARN.replace("--out model -q", "--out again")).out


def test_topics_of_more_words_than_dimensions_are_learned(world: World) -> None:
    """A hundred dimensions of a semantic analysis hold two topics of 80 words each."""
    pytest.importorskip("sklearn")
    rng, words = np.random.default_rng(3), [[f"{a}{n}" for n in range(80)] for a in "xy"]
    documents = [" ".join(rng.choice(words[n % 2], 10)) for n in range(200)]
    world.write("text", [line for document in documents for line in (document, "")])
    world.ok(f"{LEARN} --topic-model kmeans")
    labels = world.ok(f"{LABEL} text").lines
    assert {*labels} == {"1", "2", ""}
    assert labels == labels[:4] * 100


def test_learning_again_gives_the_same_files(kind: str, world: World) -> None:
    for out in ("model", "again"):
        world.ok(LEARN.replace("--out model", f"--out {out} --topic-model {kind}"))
    result = world.files()
    folders = [{result[x] for x in result if x.startswith(f"{out}/")} for out in ("model", "again")]
    assert folders[0] == folders[1]
    content = world.json("model/topics.json")
    for change, message in (
        ({"topics": 3}, "expected weights of 3 topics and 14 words, found 2 and 14"),
        ({"words": None}, "expected weights of 2 topics and None words, found 2 and 14"),
        ({"vocabulary": "x"}, "expected a vocabulary's digest, found 'x'"),
        ({"shards": []}, "found other tensors; learn it again"),
    ):
        world.write("model/topics.json", json.dumps(content | change))
        assert message in world.refused(f"{LABEL} text", exit=3)


def test_a_model_with_topics_is_trained_and_keeps_them(kind: str, world: World) -> None:
    options = "--model clstm-prevsent-sentseg --topics-number 2 --embed 4 --hidden 6 --epochs 1"
    world.ok(f"train-lm --train text --valid text {options} --topic-model {kind} --out lm -q")
    saved = load_model(world.folder / "lm")
    topics: Any = saved.model.context.topics
    assert topics.terms.shape == (len(saved.vocabulary), 3)
    assert saved.model.config.topics_number == 2
    of = topics.terms[[saved.vocabulary.ids[own[0].encode()] for own in THINGS], 1:].argmax(dim=1)
    assert sorted(of.tolist()) == [0, 1]  # a lamp and a boat are of different topics
    result = world.ok("perplexity --lm lm text --format json -q").json
    assert result["perplexity"] == pytest.approx(saved.about["valid_perplexity"], rel=1e-6)


@pytest.mark.parametrize("command", [LEARN, "train-lm --train text --valid text --out model"])
def test_an_extra_is_named(command: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    command += " --model clstm-prevsent --epochs 1" * ("train-lm" in command)
    world.run(command.replace("--out model", "--out first"))  # imports what is to be replaced
    without = lambda name: None if name == "sklearn" else find_spec(name)  # noqa: E731
    replaced_everywhere(monkeypatch, find_spec, without)
    assert "pip install 'rerank-mt[topics]'" in world.refused(command)
