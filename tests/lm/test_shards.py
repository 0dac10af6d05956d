"""Tensors on disk: any set of them survives, and nothing is believed that does not verify."""

import hashlib
import json
import os
import pickle
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from torch import Tensor

from lm import shards
from lm.shards import ModelError, read_tensors, replace, write_tensors

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int64]
TENSORS = {"a": torch.arange(6.0).reshape(3, 2), "b": torch.tensor(2.5), "c": torch.zeros(4, 0)}
lenient = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(
        torch.equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a
    )


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "list.json"
    write_tensors(path, "weights", TENSORS, {"note": 1})
    return path


def shard_of(manifest: Path) -> Path:
    (shard,) = manifest.parent.glob("*.safetensors")
    return shard


def edit(manifest: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest, as a stranger could who hands us a folder."""
    content = json.loads(manifest.read_bytes())
    change(content)
    manifest.write_text(json.dumps(content))


def replace_shard(manifest: Path, raw: bytes) -> None:
    """A shard of other bytes, with its digest put right in name and manifest."""
    digest = hashlib.sha256(raw).hexdigest()
    shard_of(manifest).unlink()
    name = f"weights-{digest[:12]}.safetensors"
    (manifest.parent / name).write_bytes(raw)
    edit(manifest, lambda content: content.update(shards=[{"file": name, "sha256": digest}]))


def test_what_is_written_is_what_is_read(manifest: Path) -> None:
    content, tensors = read_tensors(manifest)
    assert same(tensors, TENSORS)
    assert content["note"] == 1


@given(
    shapes=st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=6),
    room=st.integers(40, 2000),
    data=st.data(),
)
@lenient
def test_any_tensors_in_shards_of_any_size_are_put_together_again(
    shapes: list[list[int]], room: int, data: st.DataObject, tmp_path: Path
) -> None:
    generator = torch.Generator().manual_seed(room)
    tensors = {
        f"t.{i}": torch.randn(shape, generator=generator).to(data.draw(st.sampled_from(DTYPES)))
        for i, shape in enumerate(shapes)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SHARD_BYTES", (1 << 16) + room)  # 64 KiB are kept for the header
        write_tensors(tmp_path / "list.json", "weights", tensors, {})
    sizes = [path.stat().st_size for path in tmp_path.glob("*.safetensors")]
    row = max((t.nbytes // len(t) for t in tensors.values() if t.ndim and len(t)), default=0)
    assert max(sizes) <= (1 << 16) + max(room, row)
    assert same(read_tensors(tmp_path / "list.json")[1], tensors)


def test_tensors_are_read_as_the_rows_that_they_were_split_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than ten parts: `x#10` comes after `x#9`, not after `x#1`."""
    monkeypatch.setattr(shards, "SHARD_BYTES", (1 << 16) + 8)
    tensors = {"x": torch.arange(46.0).reshape(23, 2)}
    write_tensors(tmp_path / "list.json", "weights", tensors, {})
    assert len(list(tmp_path.glob("*.safetensors"))) == 23
    assert same(read_tensors(tmp_path / "list.json")[1], tensors)


def test_shards_of_older_tensors_are_removed_and_other_files_are_not(manifest: Path) -> None:
    (manifest.parent / "state-0.safetensors").touch()
    write_tensors(manifest, "weights", {"a": torch.ones(1)}, {})
    assert len(list(manifest.parent.iterdir())) == 3
    assert same(read_tensors(manifest)[1], {"a": torch.ones(1)})


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_under_the_name_of_safetensors_is_refused_and_not_run(manifest: Path) -> None:
    exploded = manifest.parent / "exploded"
    replace_shard(manifest, pickle.dumps(Bomb(exploded)))
    with pytest.raises(ModelError, match="not a safetensors file"):
        read_tensors(manifest)
    assert not exploded.exists()


def header(text: str, body: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode() + body


ENTRY = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
ODD = ENTRY.replace("F32", "F4")
MALFORMED = {
    "empty": b"",
    "giant header": struct.pack("<Q", 1 << 60) + b"{}",
    "repeated name": header(f'{{"a":{ENTRY},"a":{ENTRY}}}', bytes(4)),
    "lying shape": header(f'{{"a":{ENTRY.replace("[1]", "[9]")}}}', bytes(4)),
    "unknown type": header(f'{{"a":{ODD}}}', bytes(4)),
    "nesting": header('{"a":' * 90_000, b""),
    "odd part": header(f'{{"x#y":{ENTRY}}}', bytes(4)),
    "unequal parts": save({"x#0": torch.zeros(2, 3), "x#1": torch.zeros(2, 4)}),
    "trailing bytes": save({"x": torch.zeros(2)}) + b"more",
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_tensors_are_refused_though_their_digest_is_right(
    manifest: Path, raw: bytes
) -> None:
    replace_shard(manifest, raw)
    with pytest.raises(ModelError, match=r"\.safetensors: not a safetensors|do not fit together"):
        read_tensors(manifest)


@given(raw=st.binary(max_size=60))
@lenient
def test_no_bytes_end_in_another_fault(manifest: Path, raw: bytes) -> None:
    replace_shard(manifest, raw)
    with pytest.raises(ModelError):
        read_tensors(manifest)
    manifest.write_bytes(raw)
    with pytest.raises(ModelError):
        read_tensors(manifest)
    write_tensors(manifest, "weights", TENSORS, {})


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/hosts", "..", "", "a/../b", "a\0b", "weights-0.safetensors/../../secret"],
)
def test_shards_outside_the_folder_are_not_opened(manifest: Path, name: str) -> None:
    (manifest.parents[1] / "secret").write_bytes(shard_of(manifest).read_bytes())
    edit(manifest, lambda content: content["shards"][0].update(file=name))
    with pytest.raises(ModelError, match="not the name of a shard"):
        read_tensors(manifest)


def test_a_fault_in_the_json_of_the_manifest_has_its_line(manifest: Path) -> None:
    manifest.write_text('{\n "format": 1\n "shards": []\n}\n')
    message = rf"{re.escape(str(manifest))}:3: expected JSON: .*; copy the whole folder again"
    with pytest.raises(ModelError, match=message):
        read_tensors(manifest)


def test_a_newer_format_asks_for_a_newer_program(manifest: Path) -> None:
    edit(manifest, lambda content: (content.update(format=2), content.pop("shards")))
    with pytest.raises(ModelError, match="format 2 needs a newer rerank"):
        read_tensors(manifest)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    replace(path, b"old")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"):
        replace(path, b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old")]


def test_a_process_with_the_number_of_one_that_was_killed_writes_and_sweeps(
    manifest: Path,
) -> None:
    """In a container that starts again, processes have the numbers of before."""
    shard = shard_of(manifest).name
    left = [
        f".{name}.{os.getpid()}{digits}.tmp"
        for name in (shard, manifest.name)
        for digits in ("", ".0123abcd")
    ]
    others = [".notes.tmp", f".other.json.{os.getpid()}.0123abcd.tmp"]
    for name in [*left, *others]:
        (manifest.parent / name).touch()
    write_tensors(manifest, "weights", TENSORS, {})
    assert same(read_tensors(manifest)[1], TENSORS)
    assert {p.name for p in manifest.parent.iterdir()} == {shard, manifest.name, *others}


# Folders of strangers


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 32)


@pytest.mark.parametrize("other", [pipe, endless, sparse, Path.mkdir], ids=lambda f: f.__name__)
@pytest.mark.parametrize("which", ["manifest", "shard"])
def test_what_is_no_regular_file_or_too_large_is_refused_unread(
    manifest: Path, which: str, other: Callable[[Path], None]
) -> None:
    path = manifest if which == "manifest" else shard_of(manifest)
    path.unlink()
    other(path)
    with pytest.raises(ModelError, match=r"regular file|at most [0-9,]+ bytes|a directory") as f:
        read_tensors(manifest)
    assert str(f.value).startswith(str(path))


def test_a_link_to_a_regular_file_is_read(manifest: Path) -> None:
    shard = shard_of(manifest)
    shard.rename(manifest.parents[1] / "elsewhere")
    shard.symlink_to(manifest.parents[1] / "elsewhere")
    assert same(read_tensors(manifest)[1], TENSORS)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "1"},
        {"format": True},
        {"format": 0},
        {"format": 1.0},
        {"format": 10**400},
        {"shards": {"file": "weights-0", "sha256": ""}},
        {"shards": [["weights-0", ""]]},
        {"shards": [{"file": 1, "sha256": "0" * 64}]},
        {"shards": [{"file": "weights-0123456789ab.safetensors", "sha256": None}]},
        {"shards": [{"file": "weights-0123456789ab.safetensors", "sha256": "0" * 63}]},
        {"shards": [{"file": "weights-0123456789ab.safetensors", "sha256": "0" * 64}] * 2},
    ],
    ids=str,
)
def test_values_of_a_manifest_have_the_types_that_are_written(
    manifest: Path, change: dict[str, object]
) -> None:
    edit(manifest, lambda content: content.update(change))
    with pytest.raises(ModelError, match=r"list\.json: (expected|format 1000|a shard is listed)"):
        read_tensors(manifest)


def test_a_header_that_would_take_much_memory_is_refused(manifest: Path) -> None:
    entry = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    many = ",".join(f'"{n}":{entry}' for n in range(20_000))
    replace_shard(manifest, header(f"{{{many}}}", b""))
    with pytest.raises(ModelError, match="the header is too large"):
        read_tensors(manifest)
