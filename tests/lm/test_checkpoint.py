"""Models and training states on disk: what is written is what is read, or a named fault."""

import hashlib
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save
from support.damage import cut, empty, flip
from support.models import config_of, side_vocabularies
from torch import Tensor

from lm.checkpoint import ModelError, load_model, save_model
from lm.composition import HEADS
from lm.engine import ScoringEngine
from lm.model import Config, DocumentLM
from lm.scoring import after
from lm.trie import Candidates
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO

ABOUT = {"made by": "a test"}


def model_of(
    name: str = "ccdclm",
    words: int = 9,
    tied: bool = True,
    seed: int = 0,
    head: str | None = None,
) -> DocumentLM:
    shape = config_of(name, words + 3, 4, 5, recurrence="lstm", tied=tied, head=head)
    return DocumentLM.seeded(shape, seed)


def words_of(n: int = 9, letter: str = "é") -> Vocabulary:
    return Vocabulary(tuple(f"{letter}{i}".encode() for i in range(n)))


def same(model: DocumentLM, other: DocumentLM) -> bool:
    a, b = model.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


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


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest, as a stranger could who hands us a folder."""
    path = folder / "config.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


# What is written is what is read.


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize(
    ("name", "head"),
    [*((name, None) for name in sorted(ZOO)), *(("codclm", head) for head in sorted(HEADS))],
)
def test_a_model_read_back_is_the_model_written(
    name: str, head: str | None, tied: bool, tmp_path: Path
) -> None:
    model, vocabulary = model_of(name, tied=tied, head=head).eval(), words_of()
    save_model(tmp_path, model, vocabulary, ABOUT, side_vocabularies(model))
    saved = load_model(tmp_path)
    assert same(saved.model, model)
    assert saved.side == side_vocabularies(model)
    assert saved.model.config == model.config
    assert saved.vocabulary == vocabulary
    assert saved.about == ABOUT
    assert not saved.model.training
    request = Candidates.of([[[3, 7], [5]]]), model.context.start(1).detach()
    ours, theirs = (after(ScoringEngine.of(m), [request])[0][0] for m in (model, saved.model))
    np.testing.assert_array_equal(ours, theirs)


def test_a_folder_names_the_head_only_where_one_was_chosen(folder: Path) -> None:
    """Folders without a choice are those of earlier versions."""
    assert "head" not in json.loads((folder / "config.json").read_bytes())["config"]
    save_model(folder, model_of(head="classes"), words_of(), ABOUT)
    assert json.loads((folder / "config.json").read_bytes())["config"]["head"] == "classes"


def test_tied_weights_are_stored_once_and_are_tied_again_when_read(folder: Path) -> None:
    model = load_model(folder).model
    assert model.head.weight() is model.embedding.weight
    stored = [tensor for tensor in load_file(shard_of(folder)).values() if tensor.shape == (12, 4)]
    assert len(stored) == 1


def test_the_digest_identifies_weights_vocabulary_and_composition(tmp_path: Path) -> None:
    kept: dict[str, tuple[DocumentLM, Vocabulary]] = {
        "rnnlm": (model_of("rnnlm"), words_of()),
        "other weights": (model_of("rnnlm", seed=1), words_of()),
        "other words": (model_of("rnnlm"), words_of(letter="a")),
        "same tensors, other model": (model_of("drnnlm"), words_of()),
    }
    digests = set()
    for name, (model, vocabulary) in kept.items():
        for about in ({}, ABOUT):  # the description of a model does not enter its digest
            save_model(tmp_path / name, model, vocabulary, about)
            digests.add(load_model(tmp_path / name).digest)
    assert len(digests) == len(kept)


def test_shards_stay_below_fifteen_mebibytes_and_large_tensors_are_split(tmp_path: Path) -> None:
    model, vocabulary = DocumentLM(Config("rnnlm", 130_000, 32, 4)), words_of(130_000 - 3)
    assert model.embedding.weight.nbytes > 15 << 20
    save_model(tmp_path, model, vocabulary, ABOUT)
    sizes = [path.stat().st_size for path in tmp_path.glob("*.safetensors")]
    assert len(sizes) > 1
    assert max(sizes) <= 15 << 20
    assert same(load_model(tmp_path).model, model)


def test_a_new_model_replaces_the_old_one_and_leaves_no_file_of_it(folder: Path) -> None:
    save_model(folder, model_of(seed=1), words_of(letter="b"), {})
    assert same(load_model(folder).model, model_of(seed=1))
    assert len(list(folder.iterdir())) == 3


# Faults are reported with the file's name, and nothing is used that does not verify.


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [cut, empty, flip, Path.unlink, replace_by_folder])
@pytest.mark.parametrize("file", [shard_of, vocabulary_of], ids=["weights", "vocabulary"])
def test_a_damaged_file_is_named(
    folder: Path, file: Callable[[Path], Path], damage: Callable[[Path], None]
) -> None:
    path = file(folder)
    damage(path)
    with pytest.raises(ModelError) as fault:
        load_model(folder)
    assert str(fault.value).startswith(str(path))


@pytest.mark.parametrize("damage", [cut, empty, Path.unlink, replace_by_folder])
def test_a_damaged_manifest_is_named(folder: Path, damage: Callable[[Path], None]) -> None:
    damage(folder / "config.json")
    with pytest.raises(ModelError, match="expected"):
        load_model(folder)


@pytest.mark.parametrize("path", ["missing", "missing/deeper"])
def test_a_missing_folder_is_reported_with_the_command_that_makes_one(
    tmp_path: Path, path: str
) -> None:
    with pytest.raises(ModelError, match=r"cannot be read .*made by `rerank train-lm`"):
        load_model(tmp_path / path)


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"PK")
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(tmp_path / "model.pt")


@given(data=st.data())
@settings(max_examples=35, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_flipped_bit_is_a_fault_or_changes_nothing(folder: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    whole = path.read_bytes()
    raw = bytearray(whole)
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)
    try:
        saved = load_model(folder)
    except ModelError:
        pass
    else:
        assert path.name == "config.json"
        assert same(saved.model, model_of())
        assert saved.vocabulary == words_of()
    finally:
        path.write_bytes(whole)


def test_a_vocabulary_outside_the_folder_is_not_opened(folder: Path) -> None:
    edit(folder, lambda content: content.update(vocabulary="/../../x"))
    with pytest.raises(ModelError, match="expected a vocabulary's digest"):
        load_model(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("vocabulary", 13, "expected a vocabulary of 13, found 12"),
        ("hidden", 6, r"tensors do not fit: context.first expected \(6,\), found \(5,\)"),
        ("hidden", 60_000, "tensors do not fit"),  # and 58 GB are not asked for
        ("hidden", 10**12, "not a valid model"),
        ("hidden", -1, "not a valid model"),
        ("layers", 2, r"recurrence.bias.1 expected \(20,\), found None"),
        ("layers", 10**9, "not a valid model"),
        ("layers", "many", "not a valid model"),
        ("model", "gpt", "no model 'gpt'"),
        ("model", ["ccdclm"], "not a valid model"),
        ("tied", False, "head.output expected"),
        ("head", "classes", r"head.class_bias expected \(4,\), found None"),
        ("head", "hierarchical", "not a valid model: no head 'hierarchical' is known; there are s"),
        ("head", ["classes"], "not a valid model: head is"),
        ("colour", "blue", "not a valid model: no setting 'colour' is known"),
        ("embed", True, "not a valid model: embed is True"),
        ("embed", 4.0, "not a valid model: embed is 4.0"),
        ("tied", 1, "not a valid model: tied is 1"),
        ("recurrence", ["lstm"], "not a valid model: recurrence is"),
        ("vocabulary", 10**400, "not a valid model: a model has at most 2,147,483,647 words"),
        ("hidden", 10**400, "not a valid model"),
    ],
)
def test_a_configuration_that_does_not_fit_is_reported_with_what_does_not(
    folder: Path, field: str, value: object, message: str
) -> None:
    edit(folder, lambda content: content["config"].update({field: value}))
    with pytest.raises(ModelError, match=rf"config\.json: .*{message}"):
        load_model(folder)


@pytest.mark.parametrize("config", [None, [], "ccdclm", 10**400], ids=lambda c: type(c).__name__)
def test_a_configuration_that_is_no_object_is_refused(folder: Path, config: object) -> None:
    edit(folder, lambda content: content.update(config=config))
    with pytest.raises(ModelError, match=r"config\.json: not a valid model: found no settings"):
        load_model(folder)


def replace_weights(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Other tensors, with their digest put right in name and manifest."""
    shard_of(folder).unlink()
    raw = save(tensors)
    digest = hashlib.sha256(raw).hexdigest()
    name = f"weights-{digest[:12]}.safetensors"
    (folder / name).write_bytes(raw)
    edit(folder, lambda content: content.update(shards=[{"file": name, "sha256": digest}]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_tensors_of_another_type_are_refused(folder: Path, dtype: torch.dtype) -> None:
    tensors = load_file(shard_of(folder))
    replace_weights(folder, {**tensors, "head.bias": tensors["head.bias"].to(dtype)})
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(ModelError, match=rf"head\.bias expected \(12,\), found \(12,\) {name}"):
        load_model(folder)


def test_shards_that_are_larger_than_the_model_are_refused_unread(folder: Path) -> None:
    replace_weights(folder, {**load_file(shard_of(folder)), "more": torch.zeros(1 << 20)})
    with pytest.raises(ModelError, match=r"fit: expected shards of [0-9,]+ bytes .* found 4,1"):
        load_model(folder)


def refused_within(folder: Path, megabytes: int) -> bool:
    """Whether a process that may take so much more memory refuses a folder as not valid."""
    process = os.fork()
    if not process:
        status = Path("/proc/self/status").read_text()
        taken = int(status.partition("VmSize:")[2].split()[0]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20),) * 2)
        try:
            load_model(folder)
        except ModelError:
            os._exit(0)
        except BaseException:
            os._exit(1)
        os._exit(2)
    return os.waitpid(process, 0)[1] == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize(
    "change",
    [
        {"layers": 64, "hidden": 700},  # 2.2 GB
        {"embed": 60_000, "hidden": 60_000},  # 140 GB
        {"vocabulary": (1 << 31) - 1},
    ],
    ids=str,
)
def test_a_configuration_is_refused_before_memory_is_taken_for_it(
    folder: Path, change: dict[str, int]
) -> None:
    edit(folder, lambda content: content["config"].update(change))
    assert refused_within(folder, 256)


@pytest.mark.parametrize("words", [["a", "a"], ["a", ""], ["<s>"], {"a": 1}, [1], "\ud800", 7])
def test_vocabularies_that_are_none_are_refused(folder: Path, words: object) -> None:
    raw = json.dumps(words).encode()
    digest = hashlib.sha256(raw).hexdigest()
    (folder / f"vocabulary-{digest[:12]}.json").write_bytes(raw)
    edit(folder, lambda content: content.update(vocabulary=digest))
    with pytest.raises(ModelError, match=r"vocabulary-.*: not a vocabulary|expected a vocabulary"):
        load_model(folder)


# Replacement is all or nothing.


def failing(call: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The call, but for one time: a full disk, an unplugged one."""
    calls = 0

    def once(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(28, "No space left on device")
        return call(*arguments)

    return once


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("at", [1, 2, 3], ids=["vocabulary", "shard", "manifest"])
def test_a_write_that_fails_anywhere_leaves_the_old_model_readable(
    folder: Path, at: int, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, words = model_of("codclm", 7, seed=1), words_of(7)
    with monkeypatch.context() as patch:
        # of each file its own bytes are synced, then its folder
        nth = 2 * at - 1 if call == "fsync" else at
        patch.setattr(os, call, failing(getattr(os, call), nth))
        with pytest.raises(OSError, match="No space"):
            save_model(folder, new, words, {})
    saved = load_model(folder)
    assert same(saved.model, model_of())
    assert saved.vocabulary == words_of()
    assert not list(folder.glob(".*"))
    save_model(folder, new, words, {})
    assert same(load_model(folder).model, new)
    assert len(list(folder.iterdir())) == 3
