"""LoRA adapters of Hugging Face models, as PEFT saves them, merged into the weights.

A layer with weights W and an adapter computes x (W + s B A)ᵀ, with A: (r, in), B: (out, r) and
s = α / r (Hu et al. 2022, https://arxiv.org/abs/2106.09685, section 4.1), or s = α / √r with
`use_rslora` (Kalajdzievski 2023, https://arxiv.org/abs/2312.03732). PEFT can train more than that,
and says so in the configuration: an entry that is neither known here nor empty is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lm.causal_folder import ADAPTER, CausalFolderError, digest_of, product, read_json

WEIGHTS, PICKLE = "adapter_model.safetensors", "adapter_model.bin"
# values of plain LoRA; initial weights of other kinds, such as PiSSA's, change those of the model
PLAIN: Mapping[str, tuple[object, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "init_lora_weights": (True, False, "gaussian", "orthogonal", "eva"),
}
NUMBERS = {"r": "rank_pattern", "lora_alpha": "alpha_pattern"}  # by the ends of layers' names
UNUSED = {  # about training, or what the tensors show
    *("auto_mapping", "base_model_name_or_path", "corda_config", "eva_config", "exclude_modules"),
    *("fan_in_fan_out", "inference_mode", "layers_pattern", "layers_to_transform", "lora_dropout"),
    *("megatron_core", "peft_version", "qalora_group_size", "revision", "target_modules"),
    *("task_type", "use_rslora"),
}
MERGE = (
    "merge the adapter with merge_and_unload() of peft, write the model with save_pretrained(DIR), "
    "and give DIR without adapter="
)
MOST = 1e9  # what a rank or α may be
OTHER = "give the model that the adapter was trained on as DIR"
_LITERAL = re.compile(r"\^?[\w.-]+")  # end of a layer's name, or with ^ all of it
_NAME = re.compile(r"base_model\.model\.(.+)\.lora_[AB]\.weight")


@dataclass(frozen=True, slots=True, eq=False)
class LoraAdapter:
    """An adapter; weights: its file; digest: SHA-256 of both files; layers: of the model."""

    weights: Path
    config: Mapping[str, Any]
    digest: str
    layers: tuple[str, ...]

    def merge(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        """Add s B A to the weights of a model, in float32; CausalFolderError if it does not fit.

        tensors: of the model's files, which may be more precise than the model. O(out r in) time
        for each layer, O(out in) memory.
        """
        from safetensors import safe_open

        if getattr(model, "hf_quantizer", None) is not None:
            raise self._fault(f"a model whose weights are numbers, found packed ones; {MERGE}")
        prefix = f"{model.base_model_prefix}."
        of_files = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        with safe_open(self.weights, "pt") as file, torch.no_grad():
            for layer in self.layers:
                weight, turned = self._weight(model, layer)
                a, b = self._factors(file, layer, weight.T if turned else weight)
                alpha = float(self._number("lora_alpha", layer))
                root = math.sqrt if self.config.get("use_rslora") else float
                added = alpha / root(len(a)) * (b @ a)
                base = of_files.get(f"{layer}.weight".removeprefix(prefix), weight)
                if base.shape != weight.shape or not base.to(weight.dtype).equal(weight):
                    base = weight  # it was changed when it was read
                weight.copy_(base.float() + (added.T if turned else added))

    def _weight(self, model: nn.Module, layer: str) -> tuple[Tensor, bool]:
        """The weights of a linear layer, and whether they are (in, out), as in GPT-2."""
        from transformers.pytorch_utils import Conv1D

        module, name = dict(model.named_modules()).get(layer), _names(layer)[0]
        if module is None:
            raise self._fault(
                f"layers of {type(model).__name__}, found {name}, a layer that it does not have; "
                f"{OTHER}"
            )
        if not isinstance(module, nn.Linear | Conv1D):
            raise self._fault(f"linear layers, found {name}, of {type(module).__name__}; {MERGE}")
        parameters = model.named_parameters(remove_duplicate=False)
        shared = {other for other, weight in parameters if weight is module.weight}
        if others := sorted(shared - {f"{layer}.weight"}):
            raise self._fault(
                f"layers that share no weights, found {name}, whose weights are those of "
                f"{', '.join(others)}, too; untie them (tie_word_embeddings=False), {MERGE}"
            )
        return module.weight, isinstance(module, Conv1D)

    def _factors(self, file: Any, layer: str, like: Tensor) -> tuple[Tensor, Tensor]:
        """A (r, in) and B (out, r) of a layer, for weights `like` (out, in), in float32."""
        rank, (rows, columns) = self._number("r", layer), like.shape
        factors = []
        for name, expected in zip(_names(layer), ([rank, columns], [rows, rank]), strict=True):
            shape = file.get_slice(name).get_shape()
            if shape != expected:
                raise self._fault(
                    f"{name} of {product(expected)}, found {product(shape)}; {OTHER}, or copy the "
                    "adapter again"
                )
            tensor = file.get_tensor(name)
            if not tensor.is_floating_point() or not tensor.float().isfinite().all():
                raise self._fault(f"finite numbers, found others in {name}; copy the file again")
            factors.append(tensor.float())
        return factors[0], factors[1]

    def _number(self, name: str, layer: str) -> Any:
        """Rank or α of a layer: that of the first key that its name ends with, or of all."""
        patterns = self.config.get(NUMBERS[name]) or {}
        fits = (value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", layer))
        return next(fits, self.config[name])

    def _fault(self, expected: str) -> CausalFolderError:
        return CausalFolderError(f"{self.weights}: expected {expected}")


def read_adapter(folder: Path | None) -> LoraAdapter | None:
    """The adapter of a folder, without its tensors; CausalFolderError if it is not plain LoRA."""
    if folder is None:
        return None
    config, weights = folder / ADAPTER, folder / WEIGHTS
    for path in (config, weights):
        if not path.is_file():
            other = f"only {PICKLE}, a pickle" if (folder / PICKLE).exists() else f"no {path.name}"
            raise CausalFolderError(
                f"{folder}: expected {ADAPTER} and {WEIGHTS} of a LoRA adapter, found {other}; "
                "write it again with save_pretrained(DIR, safe_serialization=True) of peft"
            )
    stated = read_json(config)
    _check(config, stated)
    digest = hashlib.sha256(digest_of(config) + digest_of(weights)).hexdigest()
    return LoraAdapter(weights, stated, digest, _layers(weights))


def _check(path: Path, config: Mapping[str, Any]) -> None:
    """CausalFolderError for a configuration of more than plain LoRA, or without its numbers."""
    known = {*NUMBERS, *NUMBERS.values(), *UNUSED}
    for key, value in {"peft_type": None, **config}.items():
        if value not in PLAIN[key] if key in PLAIN else value and key not in known:
            raise CausalFolderError(
                f"{path}: expected plain LoRA, found {key} {json.dumps(value):.60}; {MERGE}"
            )
    for key, pattern in NUMBERS.items():
        value, patterns = config.get(key), config.get(pattern) or {}
        kinds = (int,) if key == "r" else (int, float)
        # PEFT takes regular expressions, too: a stranger's may take time without end
        if (
            not isinstance(patterns, dict)
            or not all(map(_LITERAL.fullmatch, patterns))
            or not all(type(n) in kinds and 0 < n < MOST for n in (value, *patterns.values()))
        ):
            raise CausalFolderError(
                f"{path}: expected positive numbers as {key} and in {pattern}, there by the ends "
                f"of layers' names, found {json.dumps((value, patterns)):.60}; copy the file "
                f"again, or {MERGE}"
            )


def _layers(path: Path) -> tuple[str, ...]:
    """The layers whose A and B a file has; CausalFolderError if it has anything else."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as fault:
        raise CausalFolderError(
            f"{path}: adapters need the package safetensors ({fault}); install it: "
            "pip install 'rerank-mt[hf]'"
        ) from None
    try:
        with safe_open(path, "pt") as file:
            names = {*file.offset_keys()}
    except SafetensorError as fault:
        raise CausalFolderError(
            f"{path}: expected safetensors ({fault}); copy the file again"
        ) from None
    layers = {match[1] for name in names if (match := _NAME.fullmatch(name))}
    pairs = {name for layer in layers for name in _names(layer)}
    if lost := sorted(pairs - names):
        raise CausalFolderError(f"{path}: expected {lost[0]}, found none; copy the file again")
    if names != pairs or not names:
        other = min(names - pairs, default="no tensors")
        raise CausalFolderError(
            f"{path}: expected pairs of lora_A and lora_B, found {other:.200}; {MERGE}"
        )
    return tuple(sorted(layers))


def _names(layer: str) -> tuple[str, str]:
    """The names of A and B of a layer."""
    of_layer = f"base_model.model.{layer}.lora_"
    return f"{of_layer}A.weight", f"{of_layer}B.weight"
