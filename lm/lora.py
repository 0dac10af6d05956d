"""LoRA adapters of Hugging Face models, as PEFT saves them, merged into the weights.

A layer with weights W and an adapter computes x (W + s B A)ᵀ, with A: (r, in), B: (out, r) and
s = α / r (Hu et al. 2022, https://arxiv.org/abs/2106.09685, section 4.1), or s = α / √r with
`use_rslora` (Kalajdzievski 2023, https://arxiv.org/abs/2312.03732). PEFT can train more than
that, and says so in the adapter's configuration: an entry that is not known here, and is not empty,
is refused. Weights are read from safetensors, never from pickles.
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

from lm.causal_folder import ADAPTER, CausalFolderError, product, read_json

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
    """An adapter that was read.

    weights: its file; digest: SHA-256 of its configuration and its weights; layers: names of the
    model's layers that it changes.
    """

    weights: Path
    config: Mapping[str, Any]
    digest: str
    layers: tuple[str, ...]

    def merge(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        """Add s B A to the weights of a model, in float32; CausalFolderError if it does not fit.

        tensors: of the model's files, by name; they may be more precise than the model. O(out r in)
        time for each layer, O(out in) memory.
        """
        from safetensors import safe_open

        if getattr(model, "hf_quantizer", None) is not None:
            raise self._fault(f"a model whose weights are numbers, found packed ones; {MERGE}")
        prefix = f"{model.base_model_prefix}."
        of_files = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        with safe_open(self.weights, "pt") as file, torch.no_grad():
            for layer in self.layers:
                weight, turned = self._weight(model, layer)
                b, a = self._factors(file, layer, weight.T if turned else weight)
                added = self._scale(layer, a) * (b @ a)
                base = of_files.get(f"{layer}.weight".removeprefix(prefix), weight)
                if base.shape != weight.shape or not base.to(weight.dtype).equal(weight):
                    base = weight  # it was changed when it was read
                weight.copy_(base.float() + (added.T if turned else added))

    def _weight(self, model: nn.Module, layer: str) -> tuple[Tensor, bool]:
        """The weights of a linear layer, and whether they are (in, out), as in GPT-2."""
        from transformers.pytorch_utils import Conv1D

        own, found = type(model).__name__, dict(model.named_modules()).get(layer)
        if found is None:
            raise self._fault(
                f"layers of {own}, found {_names(layer)[0]}, a layer that it does not have; {OTHER}"
            )
        if not isinstance(found, nn.Linear | Conv1D):
            kind = type(found).__name__
            raise self._fault(f"linear layers, found {_names(layer)[0]}, of {kind}; {MERGE}")
        every = model.named_parameters(remove_duplicate=False)
        names = [name for name, one in every if one is found.weight]
        if len(names) > 1:
            raise self._fault(
                f"layers with weights of their own, found {_names(layer)[0]}, whose weights are "
                f"those of {', '.join(sorted({*names} - {f'{layer}.weight'}))}, too; untie them "
                f"(tie_word_embeddings=False), {MERGE}"
            )
        return found.weight, isinstance(found, Conv1D)

    def _factors(self, file: Any, layer: str, like: Tensor) -> tuple[Tensor, Tensor]:
        """B (out, r) and A (r, in) of a layer, for weights `like` (out, in), in float32."""
        rank, (rows, columns) = self._number("r", layer), like.shape
        found = []
        for name, shape in zip(_names(layer), ([rank, columns], [rows, rank]), strict=True):
            own = file.get_slice(name).get_shape()
            if own != shape:
                raise self._fault(
                    f"{name} of {product(shape)}, found {product(own)}; {OTHER}, or copy the "
                    "adapter again"
                )
            tensor = file.get_tensor(name)
            if not tensor.is_floating_point() or not tensor.float().isfinite().all():
                raise self._fault(f"finite numbers, found others in {name}; copy the file again")
            found.append(tensor.float())
        return found[1], found[0]

    def _scale(self, layer: str, a: Tensor) -> float:
        """The factor s of a layer."""
        alpha = float(self._number("lora_alpha", layer))
        return alpha / (math.sqrt(len(a)) if self.config.get("use_rslora") else len(a))

    def _number(self, name: str, layer: str) -> Any:
        """Rank or α of a layer: that of the first key that its name ends with, or of all."""
        patterns = self.config.get(NUMBERS[name]) or {}
        own = (value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", layer))
        return next(own, self.config[name])

    def _fault(self, expected: str) -> CausalFolderError:
        return CausalFolderError(f"{self.weights}: expected {expected}")


def read_adapter(folder: Path | None) -> LoraAdapter | None:
    """The adapter of a folder, without its tensors; CausalFolderError if it is not plain LoRA."""
    if folder is None:
        return None
    config, weights = folder / ADAPTER, folder / WEIGHTS
    for path in (config, weights):
        if not path.is_file():
            found = f"only {PICKLE}, a pickle" if (folder / PICKLE).exists() else f"no {path.name}"
            raise CausalFolderError(
                f"{folder}: expected {ADAPTER} and {WEIGHTS} of a LoRA adapter, found {found}; "
                "write it again with save_pretrained(DIR, safe_serialization=True) of peft"
            )
    stated = read_json(config)
    _check(config, stated)
    layers = _layers(weights)
    whole = hashlib.sha256()
    for path in (config, weights):
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return LoraAdapter(weights, stated, whole.hexdigest(), layers)


def _check(path: Path, config: Mapping[str, Any]) -> None:
    """CausalFolderError for a configuration of more than plain LoRA, or without its numbers."""
    known = {*NUMBERS, *NUMBERS.values(), *UNUSED}
    for key, value in {"peft_type": None, **config}.items():
        if value not in PLAIN[key] if key in PLAIN else value and key not in known:
            raise CausalFolderError(
                f"{path}: expected plain LoRA, found {key} {json.dumps(value):.60}; {MERGE}"
            )
    for key, pattern in NUMBERS.items():
        given = config.get(key), config.get(pattern) or {}
        if not _is_sound(*given, whole=key == "r"):
            raise CausalFolderError(
                f"{path}: expected positive numbers as {key} and in {pattern}, there by the ends "
                f"of layers' names, found {json.dumps(given):.60}; copy the file again, or {MERGE}"
            )


def _is_sound(number: Any, patterns: Any, *, whole: bool) -> bool:
    """Whether a number and those of layers are positive, and the layers given by their names.

    PEFT takes regular expressions, too: a stranger's may take time without end.
    """
    if not isinstance(patterns, dict) or not all(map(_LITERAL.fullmatch, patterns)):
        return False
    kinds = (int,) if whole else (int, float)
    return all(type(one) in kinds and 0 < one < MOST for one in (number, *patterns.values()))


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
    layers = {found[1] for name in names if (found := _NAME.fullmatch(name))}
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
