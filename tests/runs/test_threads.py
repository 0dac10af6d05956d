"""Threads, cores and devices: what is asked for, what processes of one machine share."""

import os
import shutil
from collections.abc import Iterator
from glob import glob

import pytest
import torch
from support.metal import Metal
from support.runs import decoding, taken
from support.texts import TRAIN, with_texts
from support.world import World

OF_FOUR = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"}
SCORE = "score --kbest dev.kbest --docs dev.docs --out out --lm lm=codclm --no-cache -q"


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("head", [None, "classes"])
@pytest.mark.parametrize("model", ["rnnlm", "codclm", "ccdclm", "dam", "dclm", "hrnnlm"])
def test_deterministic_outputs_do_not_depend_on_threads_or_order(
    model: str, head: str | None, drawn: World
) -> None:
    # products of this size differ with their rows
    drawn.model(model, model, embed=32, hidden=64, head=head)
    drawn.ok(decoding(model, "--deterministic --no-cache --threads 1"))
    expected = taken(drawn)
    drawn.ok(decoding(model, "--deterministic --no-cache --threads 3"))
    assert taken(drawn) == expected
    lines, ids = drawn.lines("dev.kbest"), drawn.lines("dev.docs")
    order = sorted(range(len(ids)), key=lambda t: (-ord(ids[t]), t))  # of documents, reversed
    place = {t: n for n, t in enumerate(order)}
    rows = [(place[int(line.split(" ||| ")[0])], line.partition(" ||| ")[2]) for line in lines]
    drawn.write("dev.kbest", [f"{n} ||| {rest}" for n, rest in sorted(rows, key=lambda x: x[0])])
    drawn.write("dev.docs", [ids[t] for t in order])
    drawn.ok(decoding(model, "--deterministic --no-cache"))
    turned = taken(drawn)
    assert sorted(bare(turned)) == sorted(bare(expected))
    own, other = (found["out.txt"].split(b"\n") for found in (expected, turned))
    assert [other[place[t]] for t in range(len(ids))] == own[:-1]


def bare(outputs: dict[str, bytes]) -> list[bytes]:
    """Lines of the list, without the number of the sentence."""
    return [line.partition(b" ||| ")[2] for line in outputs["out.kbest"].splitlines()]


@pytest.mark.parametrize(
    ("cores", "variables", "options", "expected"),
    [
        (2, {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}, "--threads 3", 3),
        (2, {"OMP_NUM_THREADS": "1"}, "", 1),  # as torchrun sets it
        (13, {"OMP_NUM_THREADS": "1"}, "--threads 2", 2),
        (13, {"OMP_NUM_THREADS": "5"}, "", 4),  # by the user: threads stay as they are
    ],
)
def test_processes_of_one_machine_share_its_cores(
    cores: int,
    variables: dict[str, str],
    options: str,
    expected: int,
    drawn: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.set_num_threads(4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(cores)})
    drawn.ok(f"{SCORE} --device cpu {options}", **OF_FOUR | variables)
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize(
    ("name", "devices", "told"),
    [
        ("cuda:2", 2, "--device cuda:2: there are 2 CUDA devices here, counted from 0"),
        ("gpu", 2, "--device gpu: expected auto, cpu, cuda, cuda:N or mps"),
        ("mps", 0, "--device mps: Metal is not usable here; use --device cpu"),
        ("cpu:1", 2, "--device cpu:1: expected auto, cpu, cuda, cuda:N or mps"),
    ],
)
def test_a_device_that_there_is_not_is_refused(
    name: str, devices: int, told: str, drawn: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: devices > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    assert told in drawn.refused(SCORE, "--device", name)


@pytest.fixture
def mac(drawn: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world of drawn models on a machine with Metal."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    return drawn


@pytest.mark.parametrize(
    ("model", "head"),
    [("rnnlm", "classes"), ("codclm", "softmax"), ("ccdclm", "self-normalised")],
)
def test_metal_gives_the_scores_and_choices_of_the_cpu(model: str, head: str, mac: World) -> None:
    mac.model(model, model, head=head)
    mac.write("text", ["a lamp burns", "it lights", "", "nobody comes"])
    text = f"perplexity --lm {model} text --format json --per-document"
    expected = mac.ok(f"{text} --device cpu").json
    mac.ok(decoding(model, "--no-cache --device cpu"))
    outputs = taken(mac)
    with Metal():
        assert mac.ok(f"{text} --device mps").json == expected
        mac.ok(decoding(model, "--no-cache --device mps"))
    assert taken(mac) == outputs


@pytest.mark.parametrize("options", ["--model codclm", "--model ccdclm --objective nce"])
def test_metal_trains_the_model_of_the_cpu(
    options: str, mac: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the random numbers of the CPU."""
    with_texts(mac, 4, 2)
    mac.ok(f"{TRAIN} {options} --device cpu -q")
    weights = "lm/weights-*.safetensors"  # * is a digest of them
    expected = glob(weights)
    shutil.rmtree("lm")
    generator = torch.Generator
    monkeypatch.setattr(torch, "Generator", lambda device=None: generator())
    with Metal():
        mac.ok(f"{TRAIN} {options} --device mps -q")
    assert glob(weights) == expected != []


def test_what_metal_cannot_do_is_one_line_with_a_cure(
    mac: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Metal(missing="aten::exp_"):
        run = mac.run(f"{SCORE} --device mps")
    assert (run.exit, run.err) == (
        1,
        "rerank: --device mps: The operator 'aten::exp_' is not currently implemented for the MPS "
        "device; use --device cpu\n",
    )
    for name, value in OF_FOUR.items():
        monkeypatch.setenv(name, value)
    run = mac.run(f"{SCORE} --device mps")
    told = "rerank: --device mps: torchrun's processes cannot share it; use --device cpu"
    assert (run.exit, told in run.err) == (2, True), run.err


@pytest.mark.parametrize(("fast", "dtype"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_bfloat16_where_the_hardware_multiplies_it_faster(
    fast: bool, dtype: str, drawn: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: fast)
    with_texts(drawn, 4, 2)
    command = TRAIN.replace("--precision float32", "--precision auto")
    drawn.ok(f"{command} --model rnnlm -q")
    assert drawn.json("lm/config.json")["about"]["settings"]["precision"] == dtype
