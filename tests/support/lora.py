"""LoRA adapters in the form of PEFT, and models that compute them beside their layers, by hooks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# as PEFT 0.21 writes it, entries of other kinds of adapters left out
CONFIG: dict[str, object] = {
    "auto_mapping": None,
    "base_model_name_or_path": "/nowhere/base",
    "bias": "none",
    "fan_in_fan_out": False,
    "inference_mode": True,
    "init_lora_weights": True,
    "loftq_config": {},
    "lora_alpha": 8,
    "lora_dropout": 0.1,
    "megatron_core": "megatron.core",
    "modules_to_save": None,
    "peft_type": "LORA",
    "r": 3,
    "target_modules": ["up_proj"],
    "task_type": "CAUSAL_LM",
    "use_dora": False,
    "use_rslora": False,
}
LLAMA = {  # layers: rows (out) and columns (in) of W
    "model.layers.0.self_attn.q_proj": (16, 16),
    "model.layers.1.self_attn.v_proj": (8, 16),
    "model.layers.1.mlp.down_proj": (16, 24),
    "lm_head": (280, 16),
}
GPT2 = {
    "transformer.h.0.attn.c_attn": (48, 16),
    "transformer.h.1.mlp.c_fc": (64, 16),
    "transformer.h.1.mlp.c_proj": (16, 64),
}
MARIAN = {
    "model.encoder.layers.0.self_attn.q_proj": (16, 16),
    "model.decoder.layers.1.encoder_attn.v_proj": (16, 16),
    "model.decoder.layers.0.fc1": (24, 16),
}


def name(layer: str, factor: str) -> str:
    """The name of a tensor of an adapter."""
    return f"base_model.model.{layer}.lora_{factor}.weight"


def factors(
    layers: Mapping[str, tuple[int, int]], ranks: Mapping[str, int], seed: int = 0
) -> dict[str, Any]:
    """Random tensors of an adapter, of rank 3 or that of a layer."""
    import torch

    drawn, result = torch.Generator().manual_seed(seed), {}
    for layer, (rows, columns) in layers.items():
        r = ranks.get(layer, 3)
        result[name(layer, "A")] = 0.3 * torch.randn(r, columns, generator=drawn)
        result[name(layer, "B")] = 0.3 * torch.randn(rows, r, generator=drawn)
    return result


def save(
    folder: Path,
    layers: Mapping[str, tuple[int, int]],
    ranks: Mapping[str, int] | None = None,
    seed: int = 0,
    **config: Any,
) -> Path:
    """The folder of a new adapter."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}, indent=2))
    save_file(factors(layers, ranks or {}, seed), folder / "adapter_model.safetensors")
    return folder


def hooked(model: Any, folder: Path, scales: Mapping[str, float]) -> Any:
    """A model of transformers that adds s B A x to what its layers return, in float64.

    scales: s of each layer.
    """
    import torch
    from safetensors.torch import load_file

    tensors = load_file(folder / "adapter_model.safetensors")

    def branch(layer: str, s: float) -> Any:
        a, b = (tensors[name(layer, one)].double() for one in "AB")
        return lambda module, given, out: out + s * (given[0] @ a.T) @ b.T

    exact = model.to(torch.float64)
    for layer, s in scales.items():
        exact.get_submodule(layer).register_forward_hook(branch(layer, s))
    return exact
