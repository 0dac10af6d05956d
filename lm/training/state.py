"""The state of a training run on disk, from which it is resumed.

A training state is the model, the optimisers' moments, the contexts of the documents that are being
read and, in a run of several stages, the best weights of the present stage, in a folder beside the
model's. After any failure a folder holds either the old state or the new.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from lm.checkpoint import check_shapes, own_tensors, read_tensors, write_tensors
from lm.folders import ModelError, checked, replace
from lm.sentences import Rows
from lm.subwords import SubwordVocabulary
from lm.training.optimisers import OPTIMISERS
from lm.training.settings import Settings
from lm.training.trainer import Progress, Trainer
from lm.vocabulary import Vocabulary

_SUBWORDS = "subwords.json"
_MOST = 1 << 40  # updates, predictions and the like of a run
_BUDGETS = "minutes", "words"  # settings that a resumed run may change


def save_training(folder: Path, trainer: Trainer) -> None:
    """Write the state from which `load_training` resumes; all processes call it."""
    contexts = trainer.processes.gather_rows(trainer.contexts, trainer.streams)
    if trainer.processes.rank:
        return
    tensors = {f"model.{name}": tensor for name, tensor in own_tensors(trainer.model).items()}
    tensors |= {f"kept.{name}": tensor for name, tensor in trainer.kept.items()}
    tensors |= {_contexts_name(n): tensor for n, tensor in enumerate(contexts.tensors)}
    tensors |= {f"average.{name}": tensor for name, tensor in _averaged(trainer).items()}
    for kind, optimiser in trainer.optimisers.items():
        for index, moments in optimiser.state_dict()["state"].items():
            for name, value in moments.items():
                tensors[f"{kind}.{index}.{name}"] = torch.as_tensor(value)
    content = {"progress": asdict(trainer.progress), "run": _run(trainer)}
    write_tensors(folder / "state.json", "state", tensors, content)


def save_subwords(folder: Path, vocabularies: Mapping[str, Vocabulary]) -> None:
    """Write those of the vocabularies that are of subword units, if any, for a resumed run."""
    pieces = {
        kind: vocabulary.as_json()
        for kind, vocabulary in vocabularies.items()
        if isinstance(vocabulary, SubwordVocabulary)
    }
    if pieces:
        replace(folder / _SUBWORDS, json.dumps(pieces, ensure_ascii=False).encode() + b"\n")


def load_subwords(folder: Path) -> dict[str, Vocabulary]:
    """The vocabularies of `save_subwords`; ModelError if they are missing or altered."""
    path = folder / _SUBWORDS
    try:
        of_kinds = json.loads(path.read_bytes())
        return {kind: SubwordVocabulary.from_json(pieces) for kind, pieces in of_kinds.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ModelError(f"{path}: not the pieces of a run; train into another folder") from None


def load_training(folder: Path, trainer: Trainer) -> None:
    """Restore the state of a saved run in a trainer.

    ModelError for a state that is missing, incomplete, altered, or of a run with other settings,
    shape or text.
    """
    path = folder / "state.json"
    content, tensors = read_tensors(path)
    then = _check_run(content.get("run"), _run(trainer), path)
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    model, kept, average = (parts[part] for part in ("model", "kept", "average"))
    moments: dict[str, dict[int, dict[str, Tensor]]] = {}
    try:
        progress = checked(Progress, content["progress"])
        _check_progress(progress, len(trainer.stages))
        names = map(_contexts_name, range(len(trainer.contexts.tensors)))
        contexts = Rows.of(*(tensors[name] for name in names))
        optimisers = trainer.optimisers_of(progress.stage)
        for kind in optimisers:
            moments[kind] = {}
            for name, tensor in parts[kind].items():
                index, key = name.split(".")
                moments[kind].setdefault(int(index), {})[key] = tensor
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{path}: not a training state; train into another folder") from None
    weights = own_tensors(trainer.model)
    check_shapes(weights, model, path)
    check_shapes(_averaged(trainer), average, path)
    check_shapes({name: weights[name] for name in kept if name in weights}, kept, path)
    state_shapes = OPTIMISERS[trainer.settings.optimiser].state_shapes
    for kind, optimiser in optimisers.items():
        groups = optimiser.param_groups
        everyone = ((parameter, group) for group in groups for parameter in group["params"])
        expected = {
            f"{kind}.{index}.{name}": tensor
            for index, (parameter, group) in enumerate(everyone)
            if index in moments[kind]  # those that had a gradient
            for name, tensor in state_shapes(parameter, group).items()
        }
        check_shapes(expected, {f"{kind}.{n}": t for n, t in parts[kind].items()}, path)
    starts = trainer.model.context.start(trainer.streams)
    for n, both in enumerate(zip(starts.tensors, contexts.tensors, strict=True)):
        # contexts differ in no more than their second dimension: padding
        ours, theirs = (t[:, :0] if t.ndim > 1 else t for t in both)
        check_shapes({_contexts_name(n): ours}, {_contexts_name(n): theirs}, path)
    trainer.enter(progress.stage)
    trainer.model.load_state_dict(model, strict=False)
    if trainer.average is not None:
        trainer.average.model.load_state_dict(average, strict=False)
    for kind, optimiser in trainer.optimisers.items():
        optimiser.load_state_dict({**optimiser.state_dict(), "state": moments[kind]})
    share = trainer.processes.share(trainer.streams)
    trainer.contexts = contexts.take(share).to(trainer.device)
    trainer.kept = {name: tensor.to(trainer.device) for name, tensor in kept.items()}
    trainer.progress = progress
    if any(getattr(trainer.settings, name) != then.get(name) for name in _BUDGETS):
        trainer.reopen()


def _averaged(trainer: Trainer) -> dict[str, Tensor]:
    """Tensors of the averaged model, if there is one, without those that it shares."""
    if trainer.average is None:
        return {}
    shared = {tensor.data_ptr() for tensor in own_tensors(trainer.model).values()}
    averaged = own_tensors(trainer.average.model).items()
    return {name: tensor for name, tensor in averaged if tensor.data_ptr() not in shared}


def _check_progress(progress: Progress, stages: int) -> None:
    """ValueError for a position that no run of so many stages can have."""
    at, since = progress, progress.update - progress.first_update
    counts = at.epoch, at.position, at.predictions, at.first_update, since, at.failures, at.halvings
    times = at.first_seconds, at.reported, at.seconds - max(at.first_seconds, at.reported)
    possible = min(*counts, *times) >= 0 and max(at.update, *counts) < _MOST
    if not possible or at.stage not in range(stages):
        raise ValueError("no run has such a position")


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


def _check_run(then: object, now: dict[str, object], path: Path) -> dict[str, object]:
    """What the interrupted run was; ModelError unless it was this run, with any budget."""
    old = {**asdict(Settings()), **then} if isinstance(then, dict) else {}
    keys = [key for key in {**now, **old} if old.get(key) != now.get(key) and key not in _BUDGETS]
    if old and not keys:
        return old
    odd = [f"{key} was {old.get(key)!s:.80}, is {now.get(key)}" for key in keys]
    raise ModelError(
        f"{path}: the interrupted run was another one: {'; '.join(odd[:5])}; "
        "repeat its command, or train into another folder"
    )
