"""Tensors on disk: safetensors in shards of at most 15 MiB, listed by a JSON manifest.

The names of shards contain their digest, and the manifest, which lists them with their
SHA-256, is renamed into place last: a failure leaves either the old tensors or the new ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

FORMAT = 1
SHARD_BYTES = 15 << 20


class ModelError(Exception):
    """An invalid model folder; the message names file, expectation, finding and cure."""


def write_tensors(
    manifest: Path, stem: str, tensors: Mapping[str, Tensor], content: Mapping[str, object]
) -> None:
    """Write shards `<stem>-<digest>.safetensors`, then the manifest beside them.

    content: further entries of the manifest. Older shards of this stem are removed.
    """
    shards: list[dict[str, str]] = []
    for group in _groups(tensors):
        raw = save({name: tensor.detach().cpu().contiguous() for name, tensor in group.items()})
        digest = sha256(raw)
        name = f"{stem}-{digest[:12]}.safetensors"
        replace(manifest.with_name(name), raw)
        shards.append({"file": name, "sha256": digest})
    whole = {"format": FORMAT, **content, "shards": shards}
    replace(manifest, json.dumps(whole, indent=1, allow_nan=False).encode() + b"\n")
    sweep(manifest.parent, f"{stem}-*.safetensors", {shard["file"] for shard in shards})


def sweep(folder: Path, pattern: str, kept: set[str]) -> None:
    """Remove the files of a pattern that are not kept."""
    for old in folder.glob(pattern):
        if old.name not in kept:
            old.unlink(missing_ok=True)


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


def read_tensors(manifest: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The manifest's content and its tensors, verified; ModelError names the file at fault."""
    raw = _read(manifest)
    try:
        content = json.loads(raw)
        version = int(content["format"])
        if version > FORMAT:
            raise ModelError(f"{manifest}: format {version} needs a newer rerank")
        shards = [(str(shard["file"]), str(shard["sha256"])) for shard in content["shards"]]
    except json.JSONDecodeError as fault:
        cure = "copy the whole folder again"
        raise ModelError(f"{manifest}:{fault.lineno}: expected JSON: {fault.msg}; {cure}") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        expected = "expected the JSON of a model folder made by `rerank train-lm`"
        raise ModelError(f"{manifest}: {expected}") from None
    tensors: dict[str, Tensor] = {}
    for name, digest in shards:
        if not re.fullmatch(r"(weights|state)-[0-9a-f]{12}\.safetensors", name):
            raise ModelError(f"{manifest}: {name!r} is not the name of a shard")
        path = manifest.with_name(name)
        data = read_verified(path, digest)
        try:
            tensors.update(load(data))
            _refuse_repeated_names(data)
        except (SafetensorError, ValueError, KeyError) as fault:
            raise ModelError(f"{path}: not a safetensors file: {fault}") from None
    try:
        return content, _joined(tensors)
    except (ValueError, RuntimeError) as fault:
        raise ModelError(f"{manifest}: shards do not fit together: {fault}") from None


def _refuse_repeated_names(data: bytes) -> None:
    """ValueError if a header names a tensor twice."""

    def unique(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name stands twice in the header")

    size = int.from_bytes(data[:8], "little")
    json.loads(data[8 : 8 + size], object_pairs_hook=unique)


def _joined(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors with the parts `name#0`, `name#1`, … put together again."""
    parts: dict[str, list[tuple[int, Tensor]]] = {}
    for name, tensor in tensors.items():
        stem, _, number = name.partition("#")
        parts.setdefault(stem, []).append((int(number or 0), tensor))
    ordered = {stem: [t for _, t in sorted(p, key=lambda x: x[0])] for stem, p in parts.items()}
    return {stem: t[0] if len(t) == 1 else torch.cat(t) for stem, t in ordered.items()}


def sha256(raw: bytes) -> str:
    """Digest in hexadecimal."""
    return hashlib.sha256(raw).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise ModelError(
            f"{path}: cannot be read ({fault.strerror}); "
            "expected a folder made by `rerank train-lm`"
        ) from None


def read_verified(path: Path, digest: str) -> bytes:
    """Bytes of a file; ModelError if it cannot be read or its digest is another."""
    raw = _read(path)
    found = sha256(raw)
    if found != digest:
        raise ModelError(
            f"{path}: digest differs: expected {digest[:12]}…, found {found[:12]}…; "
            "the file was truncated or altered, copy it again"
        )
    return raw


def replace(path: Path, raw: bytes) -> None:
    """Write to a temporary file, then rename it; on any failure the old file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
