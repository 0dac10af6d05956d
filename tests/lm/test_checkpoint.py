"""Models and tensors on disk: what is written is what is read, or a fault that names the file."""

import hashlib
import json
import os
import pickle
import struct
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from support.damage import cut
from support.models import config_of, side_vocabularies
from torch import Tensor

from lm import checkpoint
from lm.checkpoint import load_model, read_tensors, save_model, write_tensors
from lm.composition import HEADS
from lm.corpus import Corpus
from lm.folders import ModelError
from lm.model import DocumentLM
from lm.scoring import ScoringEngine, after
from lm.training.settings import Settings
from lm.training.state import load_training, save_training
from lm.training.trainer import Trainer
from lm.trie import Candidates
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO

ABOUT = {"made by": "a test"}
DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int64]
lenient = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def model_of(name: str = "ccdclm", words: int = 9, seed: int = 0, **shape: Any) -> DocumentLM:
    shape = {"recurrence": "lstm", "tied": True, **shape}
    return DocumentLM.seeded(config_of(name, words + 3, 4, 5, **shape), seed)


def words_of(n: int = 9, letter: str = "é") -> Vocabulary:
    return Vocabulary(tuple(f"{letter}{i}".encode() for i in range(n)))


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    alike = (torch.equal(a[n], b[n]) and a[n].dtype == b[n].dtype for n in a)
    return a.keys() == b.keys() and all(alike)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "m", model_of(), words_of(), ABOUT)
    return tmp_path / "m"


def shard_of(folder: Path) -> Path:
    (shard,) = folder.glob("*.safetensors")
    return shard


def vocabulary_of(folder: Path) -> Path:
    (file,) = folder.glob("vocabulary*.json")
    return file


def manifest_of(folder: Path) -> Path:
    return folder / "config.json"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest, as a stranger could who hands us a folder."""
    content = json.loads(manifest_of(folder).read_bytes())
    change(content)
    manifest_of(folder).write_text(json.dumps(content))


def replace_shard(folder: Path, raw: bytes) -> None:
    """A shard of other bytes, with its digest put right in name and manifest."""
    digest = hashlib.sha256(raw).hexdigest()
    shard_of(folder).unlink()
    name = f"weights-{digest[:12]}.safetensors"
    (folder / name).write_bytes(raw)
    edit(folder, lambda content: content.update(shards=[{"file": name, "sha256": digest}]))


# What is written is what is read
@pytest.mark.parametrize(
    ("name", "head"), [*((n, None) for n in sorted(ZOO)), *(("codclm", head) for head in HEADS)]
)
def test_models_are_read_as_written(name: str, head: str | None, tmp_path: Path) -> None:
    model = model_of(name, tied=head != "classes", head=head).eval()
    save_model(tmp_path, model, words_of(), ABOUT, side_vocabularies(model))
    saved = load_model(tmp_path)
    assert same(saved.model.state_dict(), model.state_dict())
    assert (saved.model.config, saved.vocabulary, saved.about) == (model.config, words_of(), ABOUT)
    assert saved.side == side_vocabularies(model)
    assert not saved.model.training
    named = "head" in json.loads(manifest_of(tmp_path).read_bytes())["config"]
    assert named == (head is not None)
    request = Candidates.of([[[3, 7], [5]]]), model.context.start(1).detach()
    ours, theirs = (after(ScoringEngine.of(m), [request])[0][0] for m in (model, saved.model))
    np.testing.assert_array_equal(ours, theirs)


def test_the_digest_identifies_weights_vocabulary_and_composition_alone(tmp_path: Path) -> None:
    digests, seen = set[str](), words_of()
    for n, (model, words) in enumerate(
        (
            (model_of("rnnlm"), seen),
            (model_of("rnnlm", seed=1), seen),
            (model_of("rnnlm"), words_of(letter="a")),
            (model_of("drnnlm"), seen),
        )
    ):
        for about in ({}, ABOUT):
            save_model(tmp_path / str(n), model, words, about)
            digests.add(load_model(tmp_path / str(n)).digest)
    assert len(digests) == 4


@given(
    shapes=st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=6),
    room=st.integers(40, 2000),
    data=st.data(),
)
@lenient
def test_any_tensors_in_shards_of_any_size_are_put_together_again(
    shapes: list[list[int]], room: int, data: st.DataObject, tmp_path: Path
) -> None:
    """Large ones are split into rows, more than ten parts included; old shards are removed."""
    generator = torch.Generator().manual_seed(room)
    tensors: dict[str, Tensor] = {"x": torch.arange(460.0).reshape(230, 2)}
    for i, shape in enumerate(shapes):
        drawn = torch.randn(shape, generator=generator)
        tensors[f"t.{i}"] = drawn.to(data.draw(st.sampled_from(DTYPES)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "SHARD_BYTES", (1 << 16) + room)  # 64 KiB are kept for the header
        write_tensors(tmp_path / "list.json", "weights", tensors, {"note": 1})
    row = max((t.nbytes // len(t) for t in tensors.values() if t.ndim and len(t)), default=0)
    sizes = [path.stat().st_size for path in tmp_path.glob("*.safetensors")]
    assert max(sizes) <= (1 << 16) + max(room, row)
    content, result = read_tensors(tmp_path / "list.json")
    assert same(result, tensors)
    assert content["note"] == 1
    assert len(sizes) == len(content["shards"])


# Faults are reported with the file's name, and nothing is used that does not verify
def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 32)


IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "sparse": sparse,
}


@pytest.mark.parametrize("file", [shard_of, vocabulary_of, manifest_of])
@pytest.mark.parametrize("there", ["half", *IN_ITS_PLACE])
def test_a_damaged_file_is_named_and_what_is_no_regular_file_is_not_read(
    folder: Path, file: Callable[[Path], Path], there: str
) -> None:
    path = file(folder)
    if there == "half":
        cut(path)
    else:
        path.unlink()
        IN_ITS_PLACE[there](path)
    with pytest.raises(ModelError) as fault:
        load_model(folder)
    assert str(path) in str(fault.value) or (there == "sparse" and "shards of" in str(fault.value))


@given(data=st.data())
@lenient
def test_any_flipped_bit_is_a_fault_or_changes_nothing(folder: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    whole = path.read_bytes()
    raw = bytearray(whole)
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)
    try:
        saved = load_model(folder)
        assert path.name == "config.json"
        assert same(saved.model.state_dict(), model_of().state_dict())
        assert saved.vocabulary == words_of()
    except ModelError:
        pass
    finally:
        path.write_bytes(whole)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def header(text: str, body: bytes = b"") -> bytes:
    return struct.pack("<Q", len(text)) + text.encode() + body


ENTRY = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
NONE = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
MALFORMED: dict[str, Callable[[Path], bytes]] = {
    "a pickle": lambda folder: pickle.dumps(Bomb(folder / "exploded")),
    "giant header": lambda _: struct.pack("<Q", 1 << 60) + b"{}",
    "repeated name": lambda _: header(f'{{"a":{ENTRY},"a":{ENTRY}}}', bytes(4)),
    "lying shape": lambda _: header(f'{{"a":{ENTRY.replace("[1]", "[9]")}}}', bytes(4)),
    "nesting": lambda _: header('{"a":' * 90_000),
    "odd part": lambda _: header(f'{{"x#y":{ENTRY}}}', bytes(4)),
    "unequal parts": lambda _: save({"x#0": torch.zeros(2, 3), "x#1": torch.zeros(2, 4)}),
    "trailing bytes": lambda _: save({"x": torch.zeros(2)}) + b"more",
    "many": lambda _: header("{" + ",".join(f'"{n}":{NONE}' for n in range(20_000)) + "}"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_tensors_are_refused_though_their_digest_is_right(
    folder: Path, kind: str
) -> None:
    replace_shard(folder, MALFORMED[kind](folder))
    with pytest.raises(
        ModelError, match=r"not a safetensors|do not fit together|header is too large"
    ):
        read_tensors(manifest_of(folder))
    assert not (folder / "exploded").exists()


SHARD = {"file": "weights-0123456789ab.safetensors", "sha256": "0" * 64}
CONFIG = [  # field of the configuration, value, message
    ("vocabulary", 13, "expected a vocabulary of 13, found 12"),
    ("hidden", 6, r"tensors do not fit: context.first expected \(6,\), found \(5,\)"),
    ("hidden", 60_000, "tensors do not fit"),  # and 58 GB are not asked for
    ("layers", 2, r"recurrence.bias.1 expected \(20,\), found None"),
    ("model", "gpt", "no model 'gpt'"),
    ("tied", 1, "not a valid model: tied is 1"),
    ("head", ["classes"], "not a valid model: head is"),
    ("colour", "blue", "not a valid model: no setting 'colour' is known"),
    ("embed", 4.0, "not a valid model: embed is 4.0"),
]
FACTS = asdict(model_of().facts)
FOREIGN = ("../secret", "/etc/hosts", "", "a\0b", "weights-0.safetensors/../../x")
MANIFEST: dict[str, list[dict[str, Any]]] = {  # values, by message
    "not a valid model: found no settings": [{"config": None}],
    "expected a vocabulary's digest": [{"vocabulary": "/../../x"}],
    "expected|format 1000": [{"format": v} for v in ("1", True, 0, 10**400)],
    "format 2 needs a newer rerank": [{"format": 2}],
    "expected": [{"shards": {"file": "w"}}, {"shards": [{**SHARD, "sha256": "0" * 63}]},
        *({"shards": [{**SHARD, name: 0}]} for name in SHARD)],
    "a shard is listed": [{"shards": [SHARD] * 2}],
    "found no facts": [{"facts": x} for x in ({}, FACTS | {"causal": 1}, FACTS | {"order": ""})],
    "its facts are not those of ccdclm": [{"facts": {**FACTS, "order": 0}}],
    "not the name of a shard": [{"shards": [{**SHARD, "file": v}]} for v in FOREIGN],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"config": {field: value}}, message) for field, value, message in CONFIG),
        *((change, message) for message, changes in MANIFEST.items() for change in changes),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_manifest_that_does_not_fit_is_reported_with_what_does_not(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    def changed(content: dict[str, Any]) -> None:
        own = change.get("config")
        content |= {**change, "config": content["config"] | own} if own else change

    edit(folder, changed)
    with pytest.raises(ModelError, match=rf"config\.json: .*({message})"):
        load_model(folder)


@pytest.mark.parametrize("words", [["a", "a"], {"a": 1}, [1], "\ud800"])
def test_vocabularies_that_are_none_are_refused(folder: Path, words: object) -> None:
    raw = json.dumps(words).encode()
    digest = hashlib.sha256(raw).hexdigest()
    (folder / f"vocabulary-{digest[:12]}.json").write_bytes(raw)
    edit(folder, lambda content: content.update(vocabulary=digest))
    with pytest.raises(ModelError, match=r"vocabulary-.*: not a vocabulary|expected a vocabulary"):
        load_model(folder)


# Training states
def trainer_of() -> Trainer:
    text, model = Corpus.of([[[3, 4], [4, 5]], [[5]], [[4, 3]], [[3]]]), model_of("ccdclm", 3)
    settings = Settings(epochs=1, streams=2, segment=2, negatives=0)
    return Trainer(model, text, Corpus.of([[[3, 5]]]), settings=settings)


Change = Callable[[dict[str, Any], dict[str, Tensor]], object]
STATES: list[tuple[Change, str]] = [
    (lambda c, _: c.pop("progress"), ""),
    (lambda c, _: c["progress"].update(update=True), "not a training state"),
    *((lambda c, _, fault=fault: c["progress"].update(fault), "not a training state")
        for fault in ({"stage": 1}, {"update": -1}, {"position": -3}, {"seconds": -0.5},
        {"reported": 1e9}, {"epoch": 10**30})),
    (lambda _, t: t.update({"model.head.bias": torch.zeros(5)}), "head.bias"),
    (lambda _, t: t.update(contexts=torch.zeros(7, 5)), "contexts expected"),
    (lambda _, t: t.update(contexts=t["contexts"].long()), "int64"),
    (lambda _, t: t.update({"optimiser.0.step": torch.zeros(2)}), "0.step"),
    (lambda _, t: t.pop("optimiser.0.exp_avg"), "0.exp_avg expected .* None"),
    (lambda _, t: t.update({"optimiser.x": torch.zeros(2)}), "not a training"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), STATES)
def test_a_state_of_another_shape_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    """Its digests are right."""
    trainer, path = trainer_of(), tmp_path / "state.json"
    next(trainer.run())
    save_training(tmp_path, trainer)
    content, tensors = read_tensors(path)
    change(content, tensors)
    write_tensors(path, "state", tensors, content)
    with pytest.raises(ModelError, match=rf"state\.json: .*{message}"):
        load_training(tmp_path, trainer_of())
