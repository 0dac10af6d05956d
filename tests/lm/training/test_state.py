"""The state of a training run is read back as it was, and refused if it is of another run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.damage import cut, empty, flip
from torch import Tensor

from lm.checkpoint import ModelError, load_model, save_model
from lm.corpus import encode
from lm.model import Config, DocumentLM
from lm.shards import read_tensors, write_tensors
from lm.training.state import load_training, save_training
from lm.training.trainer import Settings, Trainer
from lm.vocabulary import Vocabulary

SETTINGS = Settings(epochs=1, streams=2, segment=2, negatives=0)


def trainer_of(
    weights: int = 0, text: bytes = b"a b\nb c\n\nc\n\nb a\n\na", **changes: Any
) -> Trainer:
    vocabulary = Vocabulary((b"a", b"b", b"c"))
    train, valid = encode(text.split(b"\n"), vocabulary), encode([b"a c"], vocabulary)
    model = DocumentLM.seeded(Config("ccdclm", len(vocabulary), 4, 5, "lstm", tied=True), weights)
    return Trainer(model, train, valid, settings=replace(SETTINGS, **changes))


def state_of(trainer: Trainer) -> dict[str, Tensor]:
    moments = trainer.optimiser.state_dict()["state"]
    flat = {f"{i}.{name}": tensor for i in moments for name, tensor in moments[i].items()}
    contexts = {f"contexts.{n}": tensor for n, tensor in enumerate(trainer.contexts.tensors)}
    return {**trainer.model.state_dict(), **flat, **contexts}


@pytest.mark.parametrize("updates", [0, 1, 2], ids="after {} updates".format)
def test_a_training_state_read_back_is_the_state_written(updates: int, tmp_path: Path) -> None:
    trainer = trainer_of()
    for _ in zip(range(updates), trainer.run(), strict=False):
        pass
    save_training(tmp_path, trainer)
    other = trainer_of(weights=1)
    load_training(tmp_path, other)
    ours, theirs = state_of(trainer), state_of(other)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert other.progress == trainer.progress


def test_a_state_names_the_head_only_where_one_was_chosen(tmp_path: Path) -> None:
    """States without a choice are those of earlier versions."""
    save_training(tmp_path, trainer_of())
    assert "head" not in json.loads((tmp_path / "state.json").read_bytes())["run"]


def test_a_state_may_be_saved_before_the_first_validation(tmp_path: Path) -> None:
    trainer = trainer_of(validations=1)
    assert next(trainer.run()) is None
    save_training(tmp_path, trainer)
    other = trainer_of(validations=1)
    load_training(tmp_path, other)
    assert other.progress.best is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 0.5}, "dropout was 0.1, is 0.5"),
        ({"seed": 2}, "seed was 1, is 2"),
        ({"text": b"a b\nb b\n\nc\n\nb a\n\na"}, "training text was"),
    ],
    ids=["dropout", "seed", "text"],
)
def test_the_state_of_another_run_is_refused_and_the_difference_named(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save_training(tmp_path, trainer_of())
    other = trainer_of(**changes)
    before = {name: tensor.clone() for name, tensor in state_of(other).items()}
    with pytest.raises(ModelError, match=message):
        load_training(tmp_path, other)
    assert all(torch.equal(before[name], tensor) for name, tensor in state_of(other).items())


NEWER = ["optimiser", "schedule", "segments", "levels", "patience", "accumulate", "initialisation"]
NEWER += ["locked_dropout", "word_dropout", "weight_dropout", "context_noise", "averaging"]
NEWER += ["auxiliary_weight"]


def test_a_state_of_before_there_was_a_setting_is_resumed_with_its_default(tmp_path: Path) -> None:
    trainer = trainer_of()
    next(trainer.run())
    save_training(tmp_path, trainer)
    path = tmp_path / "state.json"
    content = json.loads(path.read_bytes())
    for name in NEWER:
        del content["run"][name]
    for name in ("stage", "first_update", "first_seconds", "failures", "halvings", "epoch_nats"):
        del content["progress"][name]
    path.write_text(json.dumps(content))
    other = trainer_of(weights=1)
    load_training(tmp_path, other)
    assert other.progress == trainer.progress
    with pytest.raises(ModelError, match="schedule was annealed, is constant"):
        load_training(tmp_path, trainer_of(schedule="constant"))


def test_a_state_of_a_stage_that_the_run_has_not_is_refused(tmp_path: Path) -> None:
    save_training(tmp_path, trainer_of())
    edit_state(tmp_path, lambda progress, _: progress.update(stage=1))
    with pytest.raises(ModelError, match="not a training state"):
        load_training(tmp_path, trainer_of())


@pytest.mark.parametrize("damage", [cut, empty, flip, Path.unlink])
def test_a_damaged_state_is_refused_and_named(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    save_training(tmp_path, trainer_of())
    (path,) = tmp_path.glob("*.safetensors")
    damage(path)
    with pytest.raises(ModelError) as fault:
        load_training(tmp_path, trainer_of())
    assert str(fault.value).startswith(str(path))


@pytest.mark.parametrize("field", ["progress", "run", "shards", "format"])
def test_a_state_that_lacks_something_is_refused(field: str, tmp_path: Path) -> None:
    save_training(tmp_path, trainer_of())
    path = tmp_path / "state.json"
    content = json.loads(path.read_bytes())
    del content[field]
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"state\.json"):
        load_training(tmp_path, trainer_of())


def edit_state(folder: Path, change: Callable[[dict[str, Any], dict[str, Tensor]], object]) -> None:
    """Change progress and tensors of a training state, whose digests are put right."""
    path = folder / "state.json"
    content, tensors = read_tensors(path)
    change(content["progress"], tensors)
    write_tensors(path, "state", tensors, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda progress, _: progress.update(update=True), "not a training state"),
        (lambda progress, _: progress.update(finished=0), "not a training state"),
        (lambda progress, _: progress.update(best="none"), "not a training state"),
        (lambda _, tensors: tensors.update({"model.head.bias": torch.zeros(5)}), "head.bias"),
        (lambda _, tensors: tensors.update(contexts=torch.zeros(7, 5)), "contexts expected"),
        (lambda _, tensors: tensors.update({"kept.x": torch.zeros(5)}), "x expected None"),
        (lambda _, tensors: tensors.update(contexts=tensors["contexts"].long()), "int64"),
        (lambda _, tensors: tensors.update({"optimiser.0.step": torch.zeros(2)}), "0.step"),
        (lambda _, tensors: tensors.pop("optimiser.0.exp_avg"), "0.exp_avg expected .* None"),
        (lambda _, tensors: tensors.update({"optimiser.x": torch.zeros(2)}), "not a training"),
        (lambda _, tensors: tensors.update({"optimiser.99.step": torch.zeros(())}), "99.step"),
    ],
)
def test_a_state_whose_values_have_another_type_or_shape_is_refused(
    change: Callable[[dict[str, Any], dict[str, Tensor]], object], message: str, tmp_path: Path
) -> None:
    trainer = trainer_of()
    next(trainer.run())
    save_training(tmp_path, trainer)
    edit_state(tmp_path, change)
    with pytest.raises(ModelError, match=rf"state\.json: .*{message}"):
        load_training(tmp_path, trainer_of())


def test_a_model_is_no_training_state_and_a_state_no_model(tmp_path: Path) -> None:
    trainer = trainer_of()
    save_model(tmp_path / "m", trainer.model, Vocabulary((b"a", b"b", b"c")), {})
    (tmp_path / "m" / "config.json").rename(tmp_path / "m" / "state.json")
    with pytest.raises(ModelError, match=r"state\.json"):
        load_training(tmp_path / "m", trainer)
    save_training(tmp_path / "s", trainer)
    (tmp_path / "s" / "state.json").rename(tmp_path / "s" / "config.json")
    with pytest.raises(ModelError, match=r"config\.json"):
        load_model(tmp_path / "s")
