"""Bytes of a shard: arrays as safetensors, then the SHA-256 of schema, group, name and these.

A shard may come from anybody: unless every byte is as expected, it counts as damaged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SCHEMA = "rerank score cache 1"  # a new number makes older shards misses
_DIGEST_BYTES = 32
_DTYPES = {
    name: np.dtype(code)
    for name, code in (
        ("F64", "<f8"),
        ("F32", "<f4"),
        ("I64", "<i8"),
        ("I32", "<i4"),
        ("I16", "<i2"),
        ("I8", "i1"),
        ("U8", "u1"),
    )
}
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def packed(group: str, name: str, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The shard of arrays of any shape, of the types in `_DTYPES`."""
    from safetensors.numpy import save

    # safetensors writes the memory of a strided array, not its elements
    payload: bytes = save({key: np.asarray(a, order="C") for key, a in arrays.items()})
    return payload + _digest(group, name, payload)


def unpacked(group: str, name: str, data: bytes) -> dict[str, NDArray[Any]] | None:
    """The arrays of a shard, as read-only views of it; None if it is damaged or foreign."""
    payload = memoryview(data)[:-_DIGEST_BYTES]
    if data[-_DIGEST_BYTES:] != _digest(group, name, payload):
        return None
    try:
        return _arrays(payload)
    except _MALFORMED:
        return None


def _digest(group: str, name: str, payload: bytes | memoryview) -> bytes:
    sha256 = hashlib.sha256(f"{_SCHEMA}\n{group}\n{name}\n".encode())
    sha256.update(payload)
    return sha256.digest()


def _arrays(payload: memoryview) -> dict[str, NDArray[Any]]:
    """Arrays in safetensors bytes, as views; an exception of `_MALFORMED` if these are invalid.

    safetensors' own reader would copy them.
    """
    start = end = 8 + int.from_bytes(payload[:8], "little")
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in json.loads(str(payload[8:start], "utf-8")).items():
        shape, dtype = tuple(entry["shape"]), _DTYPES[entry["dtype"]]
        array: NDArray[Any] = np.ndarray(shape, dtype, payload, end)
        begin, end = end - start, end + array.nbytes
        if entry["data_offsets"] != [begin, end - start] or not array.flags.aligned:
            raise ValueError
        arrays[name] = array
    if end != len(payload):
        raise ValueError
    return arrays
