"""Tensors of models on disk: safetensors, never pickles.

A model folder holds `config.json`, a vocabulary, those of side information (`lm.folders`), and
weights: shards of at most 15 MiB, which `config.json` lists. Names contain a digest, and the list
is renamed into place last: after any failure a folder holds either the old model or the new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lm.composition import Zoo
from lm.folders import (
    FORMAT,
    VOCABULARY,
    Manifest,
    ModelError,
    SavedModel,
    open_folder,
    read_manifest,
    read_verified,
    replace,
    sweep,
    write_vocabulary,
)
from lm.model import DocumentLM
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO

SHARD_BYTES = 15 << 20
_LARGEST_SHARD_BYTES = 4 * SHARD_BYTES  # a row of a tensor is never split
HEADER_BYTES = 8 + (1 << 20)  # of a shard, at most, with the number of these that goes before
NOTHING: Mapping[str, Vocabulary] = MappingProxyType({})


def write_tensors(
    manifest: Path, stem: str, tensors: Mapping[str, Tensor], content: Mapping[str, object]
) -> None:
    """Write shards `<stem>-<digest>.safetensors`, then the manifest beside them.

    content: further entries of the manifest. Older shards of this stem are removed.
    """
    shards: list[dict[str, str]] = []
    for group in _groups(tensors):
        raw = save({name: tensor.detach().cpu().contiguous() for name, tensor in group.items()})
        digest = sha256(raw).hexdigest()
        name = f"{stem}-{digest[:12]}.safetensors"
        replace(manifest.with_name(name), raw)
        shards.append({"file": name, "sha256": digest})
    whole = {"format": FORMAT, **content, "shards": shards}
    replace(manifest, json.dumps(whole, indent=1, allow_nan=False).encode() + b"\n")
    sweep(manifest.parent, f"{stem}-*.safetensors", {shard["file"] for shard in shards})
    sweep(manifest.parent, manifest.name, {manifest.name})


def _groups(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Tensors in groups below `SHARD_BYTES`; larger ones are split by rows (`name#0`, …)."""
    groups: list[dict[str, Tensor]] = [{}]
    room = SHARD_BYTES - (1 << 16)
    filled = 0
    for name, tensor in tensors.items():
        rows = max(1, room * len(tensor) // max(1, tensor.nbytes)) if tensor.ndim else 1
        parts = torch.split(tensor, rows) if tensor.nbytes > room else (tensor,)
        for number, part in enumerate(parts):
            if filled + part.nbytes > room:
                groups.append({})
                filled = 0
            groups[-1][f"{name}#{number}" if len(parts) > 1 else name] = part
            filled += part.nbytes
    return groups


def tensors_of(manifest: Manifest) -> dict[str, Tensor]:
    """The tensors of a manifest's shards, verified; ModelError names the file at fault."""
    tensors: dict[str, Tensor] = {}
    for name, digest in manifest.shards:
        path = manifest.path.with_name(name)
        data = read_verified(path, digest, _LARGEST_SHARD_BYTES)
        try:
            _check_header(data)
            tensors.update(load(data))
        except (SafetensorError, ValueError, KeyError, RecursionError) as fault:
            raise ModelError(f"{path}: not a safetensors file: {fault}") from None
    try:
        return _joined(tensors)
    except (ValueError, RuntimeError) as fault:
        raise ModelError(f"{manifest.path}: shards do not fit together: {fault}") from None


def read_tensors(manifest: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The manifest's content and its tensors, verified; ModelError names the file at fault."""
    held = read_manifest(manifest)
    return held.content, tensors_of(held)


def _check_header(data: bytes) -> None:
    """ValueError for a header that is too large, or that names a tensor twice."""

    def unique(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name stands twice in the header")

    size = int.from_bytes(data[:8], "little")
    if 8 + size > HEADER_BYTES:
        raise ValueError("the header is too large")
    json.loads(data[8 : 8 + size], object_pairs_hook=unique)


def _joined(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors with the parts `name#0`, `name#1`, … put together again."""
    parts: dict[str, list[tuple[int, Tensor]]] = {}
    for name, tensor in tensors.items():
        stem, _, number = name.partition("#")
        parts.setdefault(stem, []).append((int(number or 0), tensor))
    ordered = {stem: [t for _, t in sorted(p, key=lambda x: x[0])] for stem, p in parts.items()}
    return {stem: t[0] if len(t) == 1 else torch.cat(t) for stem, t in ordered.items()}


def save_model(
    folder: Path,
    model: DocumentLM,
    vocabulary: Vocabulary,
    about: Mapping[str, object],
    side: Mapping[str, Vocabulary] = NOTHING,
) -> None:
    """Write a model folder, replacing the model that is there by a rename."""
    digest = write_vocabulary(folder, vocabulary)
    content: dict[str, object] = {"config": model.config.as_json(), "facts": asdict(model.facts)}
    content |= {"vocabulary": digest, "about": dict(about)}
    beside = {kind: write_vocabulary(folder, words) for kind, words in side.items()}
    if beside:
        content["side"] = beside
    write_tensors(folder / "config.json", "weights", own_tensors(model), content)
    kept = {VOCABULARY.format(digest) for digest in (digest, *beside.values())}
    sweep(folder, "vocabulary-*.json", kept)


def load_model(folder: Path, device: torch.device | None = None, zoo: Zoo = ZOO) -> SavedModel:
    """The model of a folder, verified against its digests, ready to score; else ModelError."""
    saved = open_folder(folder, zoo, partial(read_model, device=device, zoo=zoo))
    _ = saved.model
    return saved


def read_model(saved: SavedModel, device: torch.device | None, zoo: Zoo) -> DocumentLM:
    """The model of an opened folder, ready to score.

    ModelError for tensors that are missing, altered, or not those of its configuration, and for
    facts that are not the model's.
    """
    manifest, config = saved.manifest, saved.config
    path = manifest.path
    try:
        shape = own_tensors(DocumentLM.without_memory(config, zoo))
    except (TypeError, KeyError, ValueError) as fault:
        raise ModelError(f"{path}: not a valid model: {fault}") from None
    held = manifest.file_bytes()
    needed = sum(tensor.nbytes for tensor in shape.values())
    headers = len(manifest.shards) * HEADER_BYTES
    if held > needed + headers:  # before any of them is read
        raise ModelError(
            f"{path}: tensors do not fit: expected shards of {needed:,} bytes and their headers, "
            f"found {held:,}; copy the folder again"
        )
    state = tensors_of(manifest)
    check_shapes(shape, state, path)
    model = DocumentLM(config, zoo)
    if saved.stated not in (None, model.facts):
        raise ModelError(
            f"{path}: not a valid model: its facts are not those of {config.model}; train it again"
        )
    model.load_state_dict(state, strict=False)
    return model.to(device).eval()


def own_tensors(model: DocumentLM) -> dict[str, Tensor]:
    """The model's tensors, each under a single name (tied weights have two)."""
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    again = names - {name for name, _ in model.named_parameters()}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in again}


def check_shapes(expected: Mapping[str, Tensor], state: Mapping[str, Tensor], path: Path) -> None:
    """ModelError unless the tensors have these names, shapes and types."""
    wanted, held = ({n: _shape(t) for n, t in named.items()} for named in (expected, state))
    odd = [n for n in sorted(wanted.keys() | held) if wanted.get(n) != held.get(n)]
    if odd:
        shapes = [f"{n} expected {wanted.get(n)}, found {held.get(n)}" for n in odd[:5]]
        raise ModelError(f"{path}: tensors do not fit: {'; '.join(shapes)}; copy the folder again")


def _shape(tensor: Tensor) -> str:
    """Shape of a tensor, with its type unless that is float32."""
    usual = tensor.dtype == torch.float32
    return str(tuple(tensor.shape)) + ("" if usual else f" {tensor.dtype}".replace("torch.", ""))
