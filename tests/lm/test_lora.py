"""LoRA adapters merged into weights against layers that compute them beside these, in float64."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import causal, lora, seq2seq

from lm.backend import Backend
from lm.causal import CausalContext, CausalEngine, CausalModel, open_causal_model, trees_of
from lm.causal_folder import CausalFolderError, read_adapter
from lm.seq2seq import SourceAndTarget, TranslationEngine, open_translation_model
from lm.trie import Candidates

DOWN, QUERY, HEAD = "model.layers.1.mlp.down_proj", "model.layers.0.self_attn.q_proj", "lm_head"
ADAPTERS: dict[str, tuple[str, Any, dict[str, int], dict[str, Any], dict[str, float]]] = {
    # model, layers, ranks, configuration, scales
    "llama": ("llama", lora.LLAMA, {}, {}, dict.fromkeys(lora.LLAMA, 8 / 3)),
    "patterns": (
        "llama",
        lora.LLAMA,
        {DOWN: 2, QUERY: 5},
        {
            "rank_pattern": {"down_proj": 2, f"^{QUERY}": 5, "proj": 9},
            "alpha_pattern": {"lm_head": 1.5, "oj": 7},  # keys are whole parts of names
            "use_rslora": True,
        },
        {
            **{one: 8 / math.sqrt(3) for one in lora.LLAMA},
            DOWN: 8 / math.sqrt(2),
            QUERY: 8 / math.sqrt(5),
            HEAD: 1.5 / math.sqrt(3),
        },
    ),
    "gpt2": ("gpt2", lora.GPT2, {}, {"fan_in_fan_out": True}, dict.fromkeys(lora.GPT2, 8 / 3)),
    "gpt2-unsaid": ("gpt2", lora.GPT2, {}, {"r": 3}, dict.fromkeys(lora.GPT2, 8 / 3)),
}


def made(folder: Path, name: str) -> tuple[Path, Path]:
    """The folders of a model and of an adapter of `ADAPTERS`."""
    kind, layers, ranks, config, _ = ADAPTERS[name]
    model = causal.save(folder / "base", kind)
    return model, lora.save(folder / "lora", layers, ranks, **config)


def opened(folder: Path, adapter: Path, dtype: str = "float32") -> CausalModel:
    return open_causal_model(folder, dtype=dtype, adapter=read_adapter(adapter))


@pytest.mark.parametrize("name", ADAPTERS)
def test_scores_are_those_of_layers_with_the_adapter_beside_them(name: str, tmp_path: Path) -> None:
    folder, adapter = made(tmp_path, name)
    engine = CausalEngine(opened(folder, adapter), Backend())
    engine.check()
    context, lists = CausalContext((0, 44, 45)), [[40, 41, 42], [40, 50], [60, 61, 62, 63], [7]]
    (result,) = engine.scores([(context, trees_of(Candidates.of([lists])))])
    plain = open_causal_model(folder)
    base = [causal.obvious(plain, context.ids, of_list) for of_list in lists]
    hooked = lora.hooked(plain.model, adapter, ADAPTERS[name][-1])
    truth = replace(plain, load=lambda: hooked)
    expected = [causal.obvious(truth, context.ids, of_list) for of_list in lists]
    np.testing.assert_allclose(result, expected, atol=1e-4)
    assert np.abs(np.subtract(expected, base)).min() > 0.01


def test_a_sequence_to_sequence_model_takes_one_too(tmp_path: Path) -> None:
    folder = seq2seq.save(tmp_path / "base", "marian")
    adapter = lora.save(tmp_path / "lora", lora.MARIAN, task_type="SEQ_2_SEQ_LM")
    model = open_translation_model(folder, adapter=read_adapter(adapter))
    plain = open_translation_model(folder)
    assert model.digest != plain.digest
    (source,) = model.encode(["the lamp is lit"])
    labels = model.encode(["it gives light", "no sea"], target=True)
    pairs = [
        SourceAndTarget(model.source.around([source]), model.target.around([x])) for x in labels
    ]
    (result,) = TranslationEngine(model, Backend()).scores([pairs])
    exact = lora.hooked(plain.model, adapter, dict.fromkeys(lora.MARIAN, 8 / 3))
    for score, pair in zip(result, pairs, strict=True):
        ids, own = torch.tensor([pair.source]), torch.tensor([pair.target])
        with torch.no_grad():
            loss = float(exact(input_ids=ids, labels=own).loss)
        assert score == pytest.approx(-loss * len(pair.target), abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_weights_are_rounded_once_after_the_sum(name: str, tmp_path: Path) -> None:
    """In bfloat16 the sum of float32 weights and the adapter, not of weights rounded before."""
    folder, adapter = made(tmp_path, name)
    half = opened(folder, adapter, "bfloat16").model.state_dict()
    for key, weights in opened(folder, adapter).model.state_dict().items():
        assert half[key].dtype == torch.bfloat16
        assert torch.equal(half[key], weights.bfloat16()), key


def test_the_digest_is_of_the_model_and_of_the_adapter(tmp_path: Path) -> None:
    folder = causal.save(tmp_path / "base", "llama")
    plain = open_causal_model(folder).digest
    adapters = [
        lora.save(tmp_path / "a", lora.LLAMA),
        lora.save(tmp_path / "b", lora.LLAMA, seed=1),
        lora.save(tmp_path / "c", lora.LLAMA, lora_alpha=9),
    ]
    digests = [opened(folder, adapter).digest for adapter in adapters]
    assert len({plain, *digests}) == 4
    (tmp_path / "a" / "README.md").write_text("trained on a Monday")
    assert opened(folder, (tmp_path / "a").rename(tmp_path / "d")).digest == digests[0]
    for changed in (adapters[1], folder):  # what the digest is of is what is read later
        model = opened(folder, adapters[1])
        (changed / "more.json").write_text("{}")
        with pytest.raises(CausalFolderError, match="were changed meanwhile; run it again"):
            _ = model.model


def config(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: lora.save(folder, lora.LLAMA, **changes)


def tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        from safetensors.torch import load, save

        path = lora.save(folder, lora.LLAMA) / "adapter_model.safetensors"
        result = load(path.read_bytes())
        change(result)
        path.write_bytes(save(result))

    return edit


def pickled(folder: Path) -> None:
    (lora.save(folder, lora.LLAMA) / "adapter_model.safetensors").rename(
        folder / "adapter_model.bin"
    )


A, B = lora.name(QUERY, "A"), lora.name(QUERY, "B")
OTHER = "give the model that the adapter was trained on as DIR"
MERGE = r"; merge the adapter with merge_and_unload\(\) of peft, .* and give DIR without adapter="
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "none": (lambda folder: None, "lora: expected adapter_config.json and .*, found no adapter_co"),
    "pickle": (pickled, "found only adapter_model.bin, a pickle; write it again with save_pretr"),
    "no-json": (lambda folder: (config()(folder), (folder / "adapter_config.json").write_text("{")),
        "adapter_config.json: expected JSON"),
    "no-safetensors": (lambda folder: (config()(folder),
        (folder / "adapter_model.safetensors").write_text("{")),
        r"adapter_model.safetensors: expected safetensors \(.*\); copy the file again"),
    "kind": (config(peft_type="IA3"), f'expected plain LoRA, found peft_type "IA3"{MERGE}'),
    "dora": (config(use_dora=True), f"found use_dora true{MERGE}"),
    "bias": (config(bias="lora_only"), f'found bias "lora_only"{MERGE}'),
    "modules": (config(modules_to_save=["lm_head"]), f'modules_to_save \\["lm_head"\\]{MERGE}'),
    "tokens": (config(trainable_token_indices=[1]), f"trainable_token_indices \\[1\\]{MERGE}"),
    "layers": (config(layer_replication=[[0, 1]]), f"layer_replication .*{MERGE}"),
    "pissa": (config(init_lora_weights="pissa"), f'init_lora_weights "pissa"{MERGE}'),
    "unknown": (config(use_more={"a": 1}), f"found use_more .*{MERGE}"),
    "rank": (config(r=2.5),
        r"positive numbers as r and in rank_pattern, .*, found \[2.5, {}\]; copy"),
    "no-alpha": (config(lora_alpha=None), "positive numbers as lora_alpha .*, found .null, {}"),
    **{f"expression{n}": (config(alpha_pattern={expression: 1}),
        f"numbers as lora_alpha and in alpha_pattern, there by the ends of .* or {MERGE[2:]}",)
        for n, expression in enumerate(("(", "((.)*)*!", "q_proj|v_proj", ".*", ""))},
    "patterns": (config(rank_pattern=[2]),
        r"in rank_pattern, .*, found \[3, \[2\]\]; copy the file"),
    "pair": (tensors(lambda found: found.pop(B)), f"{B}, found none; copy the file again"),
    "more": (tensors(lambda found: found.update({"base_model.model.lm_head.weight": found[A] + 1})),
        f"expected pairs of lora_A and lora_B, found base_model.model.lm_head.weight{MERGE}"),
    "empty": (tensors(lambda found: found.clear()), "expected pairs .*, found no tensors"),
    "layer": (lambda folder: lora.save(folder, lora.GPT2),
        "adapter_model.safetensors: expected layers of LlamaForCausalLM, found "
        f"{lora.name('transformer.h.0.attn.c_attn', 'A')}, a layer that it does not have; {OTHER}"),
    "embedding": (lambda folder: lora.save(folder, {"model.embed_tokens": (16, 280)}),
        f"expected linear layers, found .*embed_tokens.lora_A.weight, of Embedding{MERGE}"),
    "shape": (lambda folder: lora.save(folder, {QUERY: (16, 20)}),
        f"safetensors: expected {A} of 3 × 16, found 3 × 20; {OTHER}, or copy the adapter again"),
    "other-rank": (lambda folder: lora.save(folder, {QUERY: (16, 16)}, {QUERY: 4}),
        f"expected {A} of 3 × 16, found 4 × 16; {OTHER}"),
    "nan": (tensors(lambda found: found[B].fill_(math.nan)), f"finite numbers, found .* in {B}"),
    "whole": (tensors(lambda found: found.update({A: found[A].to(torch.int8)})),
        f"finite numbers, found others in {A}; copy"),
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return causal.save(tmp_path_factory.mktemp("base"), "llama")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_adapter_is_refused_in_a_line(name: str, base: Path, tmp_path: Path) -> None:
    make, message = REFUSED[name]
    (tmp_path / "lora").mkdir()
    make(tmp_path / "lora")
    with pytest.raises(CausalFolderError, match=message) as fault:
        _ = opened(base, tmp_path / "lora").model
    assert "\n" not in str(fault.value)
    assert str(fault.value).startswith(str(tmp_path / "lora"))


def test_shared_weights_are_not_changed_for_one_of_their_layers(tmp_path: Path) -> None:
    folder = causal.save(tmp_path / "base", "gpt2")
    adapter = lora.save(tmp_path / "lora", {"lm_head": (280, 16)})
    with pytest.raises(CausalFolderError, match=r"are those of transformer.wte.weight, too; untie"):
        _ = opened(folder, adapter).model


def test_packed_weights_are_not_changed(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    adapter = read_adapter(lora.save(tmp_path / "lora", lora.LLAMA))
    model = causal.model("llama", 280)
    model.hf_quantizer = object()
    with pytest.raises(CausalFolderError, match="whose weights are numbers, found packed ones; me"):
        adapter.merge(model, {})  # type: ignore[union-attr]
