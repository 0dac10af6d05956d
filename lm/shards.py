"""Tensors on disk: safetensors in shards of at most 15 MiB, listed by a JSON manifest.

The names of shards contain their digest, and the manifest, which lists them with their
SHA-256, is renamed into place last: a failure leaves either the old tensors or the new ones.

A folder may come from a stranger: only regular files are read, none beyond its limit, and no
value of the manifest has another type than was written.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeGuard

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

FORMAT = 1
SHARD_BYTES = 15 << 20
_MANIFEST_BYTES = 1 << 20
_LARGEST_SHARD_BYTES = 4 * SHARD_BYTES  # a row of a tensor is never split
HEADER_BYTES = 8 + (1 << 20)  # of a shard, at most, with the number of these that goes before
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a named pipe is not waited for
_SHARD_NAME = re.compile(r"(weights|state)-[0-9a-f]{12}\.safetensors")


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
        digest = sha256(raw).hexdigest()
        name = f"{stem}-{digest[:12]}.safetensors"
        replace(manifest.with_name(name), raw)
        shards.append({"file": name, "sha256": digest})
    whole = {"format": FORMAT, **content, "shards": shards}
    replace(manifest, json.dumps(whole, indent=1, allow_nan=False).encode() + b"\n")
    sweep(manifest.parent, f"{stem}-*.safetensors", {shard["file"] for shard in shards})
    sweep(manifest.parent, manifest.name, {manifest.name})


def sweep(folder: Path, pattern: str, kept: set[str]) -> None:
    """Remove the files of a pattern that are not kept, and what killed writers of them left."""
    for old in [*folder.glob(pattern), *folder.glob(f".{pattern}.*.tmp")]:
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


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest read back: its content, and name and SHA-256 of each shard."""

    path: Path
    content: dict[str, Any]
    shards: tuple[tuple[str, str], ...]

    def file_bytes(self) -> int:
        """Bytes of all shards, their headers included; ModelError for what is not a file."""
        total = 0
        for name, _ in self.shards:
            path = self.path.with_name(name)
            with _readable(path):
                total += _regular_bytes(path, os.stat(path))
        return total

    def tensors(self) -> dict[str, Tensor]:
        """The tensors, verified; ModelError names the file at fault."""
        tensors: dict[str, Tensor] = {}
        for name, digest in self.shards:
            path = self.path.with_name(name)
            data = read_verified(path, digest, _LARGEST_SHARD_BYTES)
            try:
                _check_header(data)
                tensors.update(load(data))
            except (SafetensorError, ValueError, KeyError, RecursionError) as fault:
                raise ModelError(f"{path}: not a safetensors file: {fault}") from None
        try:
            return _joined(tensors)
        except (ValueError, RuntimeError) as fault:
            raise ModelError(f"{self.path}: shards do not fit together: {fault}") from None


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file; ModelError if `write_tensors` cannot have written it."""
    raw = read_file(path, _MANIFEST_BYTES)
    try:
        content = json.loads(raw)
        version = content["format"]
        if type(version) is not int or version < 1:
            raise TypeError
        if version > FORMAT:
            raise ModelError(f"{path}: format {version} needs a newer rerank")
        shards = tuple((shard["file"], shard["sha256"]) for shard in content["shards"])
        if not all(isinstance(text, str) for shard in shards for text in shard):
            raise TypeError
    except json.JSONDecodeError as fault:
        cure = "copy the whole folder again"
        raise ModelError(f"{path}:{fault.lineno}: expected JSON: {fault.msg}; {cure}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        expected = "expected the JSON of a model folder made by `rerank train-lm`"
        raise ModelError(f"{path}: {expected}") from None
    for name, digest in shards:
        if not _SHARD_NAME.fullmatch(name):
            raise ModelError(f"{path}: {name[:80]!r} is not the name of a shard")
        if not is_digest(digest):
            raise ModelError(f"{path}: expected the SHA-256 of {name}, found {digest[:80]!r}")
    if len(dict(shards)) < len(shards):
        raise ModelError(f"{path}: a shard is listed twice")
    return Manifest(path, content, shards)


def read_tensors(manifest: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The manifest's content and its tensors, verified; ModelError names the file at fault."""
    held = read_manifest(manifest)
    return held.content, held.tensors()


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


def is_digest(text: object) -> TypeGuard[str]:
    """Whether a value is a SHA-256 in hexadecimal."""
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def read_file(path: Path, limit: int) -> bytes:
    """Bytes of a regular file; ModelError if it is none, or has more than `limit` bytes."""
    with (
        _readable(path),
        open(path, "rb", opener=lambda path, flags: os.open(path, flags | _AT_ONCE)) as file,
    ):
        size = _regular_bytes(path, os.fstat(file.fileno()))
        if size > limit:
            raise ModelError(
                f"{path}: expected at most {limit:,} bytes, found {size:,}; "
                "copy the whole folder again"
            )
        return file.read(size)


def _regular_bytes(path: Path, status: os.stat_result) -> int:
    """Size of a regular file; ModelError for the status of a pipe or a device."""
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(
            f"{path}: expected a regular file, found a folder, a pipe or a device; "
            "copy the whole folder again"
        )
    return status.st_size


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """ModelError in place of the system's, for a file that cannot be read."""
    try:
        yield
    except OSError as fault:
        raise ModelError(
            f"{path}: cannot be read ({fault.strerror}); expected a folder made by `rerank "
            "train-lm`"
        ) from None


def read_verified(path: Path, digest: str, limit: int) -> bytes:
    """`read_file` of a file with this digest; ModelError if its digest is another."""
    raw = read_file(path, limit)
    actual = sha256(raw).hexdigest()
    if actual != digest:
        raise ModelError(
            f"{path}: digest differs: expected {digest[:12]}…, found {actual[:12]}…; "
            "the file was truncated or altered, copy it again"
        )
    return raw


def _sync_folder(folder: Path) -> None:
    """Have a power failure not undo a rename, where the system can sync folders."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, raw: bytes) -> None:
    """Write to a temporary file, then rename it; on any failure the old file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # a process that was killed in a container may have had the same number
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
