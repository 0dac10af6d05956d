"""LoRA adapters behind folders of models: scores, caches, weights files, candidates."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import causal, lora, seq2seq
from support.world import DECODE, TUNE, World

TEXTS = ["the lamp is lit", "it gives light", "no sea"]
SCORE = "score --kbest l --no-docs one --cache cached --lm g=hf:base,sentences=0"


@pytest.fixture
def adapted(world: World) -> World:
    causal.save(world.folder / "base", "gpt2")
    lora.save(world.folder / "lora", lora.GPT2)
    lora.save(world.folder / "of" / "news, one", lora.GPT2, seed=1)
    return world


def scores(world: World, options: str = "") -> list[float]:
    lines = world.ok(f"{SCORE}{options}").out.splitlines()
    return [float(re.findall(r"g= (\S+)", line)[0]) for line in lines]


def test_scores_are_of_the_adapter_that_is_given_and_caches_are_not_mixed(adapted: World) -> None:
    from lm.causal import open_causal_model

    def truth(folder: str | None) -> list[float]:
        model = open_causal_model(adapted.folder / "base")
        if folder is not None:
            own = lora.hooked(model.model, adapted.folder / folder, dict.fromkeys(lora.GPT2, 8 / 3))
            model = replace(model, load=lambda: own)
        return [causal.obvious(model, [0], model.encode([f"{text}\n"])[0]) for text in TEXTS]

    adapted.write("l", [f"0 ||| {text} ||| A= -1 ||| -1" for text in TEXTS])
    expected = {
        "": truth(None),
        ",adapter=lora": truth("lora"),
        r",adapter='of/news\, one/'": truth("of/news, one"),
    }
    for _ in range(2):
        for option, one in expected.items():
            assert scores(adapted, option) == pytest.approx(one, abs=1e-4)
    assert len({tuple(one) for one in expected.values()}) == 3


def test_weights_name_the_adapter_and_know_another_one(adapted: World) -> None:
    adapted.ok(f"{TUNE} --select none --lm g=hf:base,sentences=1,adapter={adapted.folder / 'lora'}")
    found: Any = adapted.json("tuned.json")["provenance"]["models"]["g"]
    assert found["folder"] == "hf:base,sentences=1,adapter=lora"
    run = DECODE.replace("w.ini", "tuned.json") + " --lm g=hf:base,sentences=1"
    warning = "weights tuned with another model, or other options of it, as g"
    assert warning not in adapted.ok(f"{run},adapter=lora").err
    for other in ("", r",adapter='of/news\, one'"):
        assert warning in adapted.ok(run + other).err


def test_candidates_are_those_of_a_model_that_was_merged_before(world: World) -> None:
    """As `merge_and_unload()` of PEFT and `save_pretrained` make one."""
    import torch
    from safetensors.torch import load_file

    transformers = pytest.importorskip("transformers")
    seq2seq.save(world.folder / "mt", "marian")
    adapter = lora.save(world.folder / "lora", lora.MARIAN)
    tensors = load_file(adapter / "adapter_model.safetensors")
    own = transformers.AutoModelForSeq2SeqLM.from_pretrained(world.folder / "mt")
    with torch.no_grad():
        for layer in lora.MARIAN:
            a, b = (tensors[lora.name(layer, one)] for one in "AB")
            own.get_submodule(layer).weight += 8 / 3 * (b @ a)
    shutil.copytree(world.folder / "mt", world.folder / "merged")
    own.save_pretrained(world.folder / "merged")
    world.write("src", TEXTS)
    run = "candidates --source src --no-docs one --n-best 3 --longest 6"
    models = {"plain": "mt", "own": "mt,adapter=lora", "truth": "merged"}
    for out, model in models.items():
        world.ok(f"{run} --model seq2seq:{model} --out {out}.jsonl")
    result = {out: [json.loads(line) for line in world.lines(f"{out}.jsonl")] for out in models}
    assert result["own"] == result["truth"] != result["plain"]


def test_no_output_is_written_into_the_folder_of_an_adapter(adapted: World) -> None:
    out = Path("lora") / "adapter_config.json"
    decode = DECODE.replace("--out -", f"--out {out}")
    refused = adapted.refused(f"{decode} --default-weight 0 --lm g=hf:base,adapter=lora")
    assert f"output {out} is also the input {out}; name another file" in refused
