"""Commands on a CUDA device against the CPU: `pytest -m gpu`, where there is one."""

from typing import Any

import pytest
from support.devices import DEVICE, on_device, without_tf32
from support.models import save_models
from support.world import WORDS, World

pytestmark = on_device
MODELS = ("rnnlm", "codclm", "ccdclm", "dam", "hrnnlm")
DECODE = "decode --kbest dev.kbest --docs dev.docs --weights w.json --no-cache --summary s.json"
DECODE += " --trace t.jsonl --out out"


@pytest.fixture
def lists(world: World) -> World:
    """Lists of fifteen sentences, and a model of each order."""
    without_tf32()
    world.draw()
    save_models({name: world.folder / name for name in MODELS}, WORDS, 12, 16, oov_rate=0.25)
    world.weights("w.json", {"LM0": 0.2, "TM0": [0.1, 0.1], "LM1": 1.0, "LM1oov": 0.0})
    return world


def decoded(world: World, device: str, *more: object) -> tuple[bytes, Any]:
    """The hypotheses and the summary, with near-ties counted."""
    world.ok(DECODE, "--device", device, *more)
    return world.content("out"), world.json("s.json")


@pytest.mark.parametrize("name", MODELS)
def test_choices_are_those_of_the_cpu_except_at_counted_near_ties(lists: World, name: str) -> None:
    (_, ours), (_, theirs) = (decoded(lists, d, "--lm", f"LM1={name}") for d in (DEVICE, "cpu"))
    for document, other in zip(ours["documents"], theirs["documents"], strict=True):
        assert document["score"] == pytest.approx(other["score"], abs=1e-3)
        pairs = zip(document["choices"], other["choices"], strict=True)
        differ = sum(a != b for a, b in pairs)
        assert differ == 0 or max(document["near_ties"], other["near_ties"]) > 0
        if name in ("rnnlm", "codclm"):  # other choices move the margins of unbounded models
            assert differ <= max(document["near_ties"], other["near_ties"])


def test_a_model_is_trained_and_measured_on_the_device(world: World) -> None:
    lines = (f"{WORDS[n % 12]} {WORDS[n * 5 % 12]}" + "\n" * (n % 4 == 3) for n in range(48))
    world.write("train.txt", lines)
    world.ok(
        "train-lm --train train.txt --valid train.txt --out m --model codclm --embed 6 --hidden 8"
        " --epochs 1 --device",
        DEVICE,
    )
    command = "perplexity train.txt --lm m --format json --device"
    ours, theirs = (world.ok(command, device).json["perplexity"] for device in (DEVICE, "cpu"))
    assert ours == pytest.approx(theirs, rel=1e-4)
