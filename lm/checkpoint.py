"""Models and training states on disk: safetensors and JSON, never pickles.

A model folder holds `config.json`, a vocabulary and weight shards (`lm.shards`). A training
state is the model, the optimiser's moments and the contexts of the documents that are being
read, in a separate folder. After any failure a folder holds either the old state or the new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from lm.model import Config, DocumentLM
from lm.rows import Rows
from lm.shards import ModelError as ModelError
from lm.shards import read_tensors, read_verified, replace, sha256, sweep, write_tensors
from lm.training import Progress, Trainer
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO, Zoo


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """A model read back: digest identifies weights, vocabulary and shape together."""

    model: DocumentLM
    vocabulary: Vocabulary
    digest: str
    about: Mapping[str, object]


def save_model(
    folder: Path, model: DocumentLM, vocabulary: Vocabulary, about: Mapping[str, object]
) -> None:
    """Write a model folder, replacing the model that is there in one rename."""
    words = json.dumps([word.decode() for word in vocabulary.words], ensure_ascii=False)
    raw = words.encode() + b"\n"
    digest = sha256(raw)
    replace(folder / _vocabulary_name(digest), raw)
    content = {"config": model.config.as_json(), "vocabulary": digest, "about": dict(about)}
    write_tensors(folder / "config.json", "weights", _own(model), content)
    sweep(folder, "vocabulary-*.json", {_vocabulary_name(digest)})


def load_model(folder: Path, device: torch.device | None = None, zoo: Zoo = ZOO) -> SavedModel:
    """The model of a folder, verified against its digests, ready to score.

    Raises ModelError for a folder that is missing, incomplete, altered, not a model written by
    `save_model`, or of a composition that is not in `zoo`.
    """
    path = folder / "config.json"
    content, state = read_tensors(path)
    vocabulary = _read_vocabulary(folder, str(content.get("vocabulary")))
    try:
        config = Config(**content["config"])
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
    except (TypeError, KeyError, ValueError) as fault:
        raise ModelError(f"{path}: not a valid model: {fault}") from None
    if len(vocabulary) != config.vocabulary:
        raise ModelError(
            f"{path}: expected a vocabulary of {config.vocabulary}, found {len(vocabulary)}; "
            "copy the whole folder again"
        )
    held = sum(tensor.numel() for tensor in state.values())
    if max(config.vocabulary * config.embed, config.hidden**2) > held:  # before memory is allocated
        raise ModelError(f"{path}: tensors do not fit: the shape needs more than {held} numbers")
    model = DocumentLM(config, zoo)
    _check_shapes(model, state, path)
    model.load_state_dict(state, strict=False)
    identity = [content["config"], content["shards"], content["vocabulary"]]
    digest = sha256(json.dumps(identity, sort_keys=True).encode())
    about = content.get("about")
    about = about if isinstance(about, dict) else {}
    return SavedModel(model.to(device).eval(), vocabulary, digest[:16], about)


def save_training(folder: Path, trainer: Trainer) -> None:
    """Write the state from which `load_training` resumes a run, bit for bit."""
    tensors = {f"model.{name}": tensor for name, tensor in _own(trainer.model).items()}
    tensors |= {_contexts_name(n): tensor for n, tensor in enumerate(trainer.contexts.tensors)}
    for index, moments in trainer.optimiser.state_dict()["state"].items():
        for name, value in moments.items():
            tensors[f"optimiser.{index}.{name}"] = torch.as_tensor(value)
    content = {"progress": asdict(trainer.progress), "run": _run(trainer)}
    write_tensors(folder / "state.json", "state", tensors, content)


def load_training(folder: Path, trainer: Trainer) -> None:
    """Restore the state of a saved run in a trainer.

    Raises ModelError for a state that is missing, incomplete, altered, or of a run with other
    settings, shape or text.
    """
    path = folder / "state.json"
    content, tensors = read_tensors(path)
    _check_run(content.get("run"), _run(trainer), path)
    moments: dict[int, dict[str, Tensor]] = {}
    try:
        progress = Progress(**content["progress"])
        held = range(len(trainer.contexts.tensors))
        contexts = Rows(tuple(tensors[_contexts_name(n)] for n in held))
        for name in [name for name in tensors if name.startswith("optimiser.")]:
            _, index, key = name.split(".")
            moments.setdefault(int(index), {})[key] = tensors[name]
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{path}: not a training state; train into another folder") from None
    model = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    _check_shapes(trainer.model, model, path)
    trainer.model.load_state_dict(model, strict=False)
    trainer.optimiser.load_state_dict({**trainer.optimiser.state_dict(), "state": moments})
    trainer.contexts = contexts.to(trainer.device)
    trainer.progress = progress


def _contexts_name(number: int) -> str:
    return f"contexts.{number}" if number else "contexts"


def _run(trainer: Trainer) -> dict[str, object]:
    """What a run must share with the one that it resumes."""
    return {
        **trainer.model.config.as_json(),
        **asdict(trainer.settings),
        "training text": trainer.train.digest(),
        "validation text": trainer.valid.digest(),
    }


def _check_run(then: object, now: dict[str, object], path: Path) -> None:
    if then == now:
        return
    old = then if isinstance(then, dict) else {}
    keys = [key for key in {**now, **old} if old.get(key) != now.get(key)]
    odd = [f"{key} was {old.get(key)}, is {now.get(key)}" for key in keys]
    raise ModelError(
        f"{path}: the interrupted run was another one: {'; '.join(odd[:5])}; "
        "repeat its command, or train into another folder"
    )


def _own(model: DocumentLM) -> dict[str, Tensor]:
    """The model's tensors, each under one name (tied weights have two)."""
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    again = names - {name for name, _ in model.named_parameters()}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in again}


def _check_shapes(model: DocumentLM, state: Mapping[str, Tensor], path: Path) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in _own(model).items()}
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    odd = [n for n in sorted(wanted.keys() | found) if wanted.get(n) != found.get(n)]
    if odd:
        shapes = [f"{n} expected {wanted.get(n)}, found {found.get(n)}" for n in odd[:5]]
        raise ModelError(f"{path}: tensors do not fit: {'; '.join(shapes)}; copy the folder again")


def _vocabulary_name(digest: str) -> str:
    return f"vocabulary-{digest[:12]}.json"


def _read_vocabulary(folder: Path, digest: str) -> Vocabulary:
    if not re.fullmatch("[0-9a-f]{64}", digest):
        config = folder / "config.json"
        raise ModelError(f"{config}: expected a vocabulary's digest, found {digest}")
    path = folder / _vocabulary_name(digest)
    raw = read_verified(path, digest)
    try:
        return Vocabulary(tuple(word.encode() for word in json.loads(raw)))
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise ModelError(f"{path}: not a vocabulary: {fault}") from None
