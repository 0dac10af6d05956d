"""Models and training states on disk: safetensors and JSON, never pickles.

A model folder holds `config.json`, a vocabulary, those of side information, and weight shards
(`lm.shards`). A training
state is the model, the optimisers' moments, the contexts of the documents that are being read
and, in a run of several stages, the best weights of the present one, in a separate folder. After
any failure a folder holds either the old state or the new.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from lm.corpus import Corpus, encode
from lm.direction import in_reading_order, reversed_words
from lm.model import Config, DocumentLM
from lm.rows import Rows
from lm.shards import ModelError as ModelError
from lm.shards import (
    is_digest,
    read_manifest,
    read_tensors,
    read_verified,
    replace,
    sha256,
    sweep,
    write_tensors,
)
from lm.side_information import KINDS, SideText
from lm.training.optimisers import OPTIMISERS
from lm.training.settings import Progress, Settings
from lm.training.trainer import Trainer
from lm.vocabulary import SPECIAL, Vocabulary
from lm.zoo import ZOO, Zoo

T = TypeVar("T")
NOTHING: Mapping[str, Vocabulary] = MappingProxyType({})
_VOCABULARY_BYTES = 16 << 20  # and 256 a word, far more than words have in the mean


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """A model read back: digest identifies weights, vocabularies and shape together.

    side: vocabulary of each kind of side information that the model needs.
    """

    model: DocumentLM
    vocabulary: Vocabulary
    digest: str
    about: Mapping[str, object]
    side: Mapping[str, Vocabulary] = field(default_factory=dict)

    def encode_lines(self, text: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids (N,) of the words of LF-ended lines as the model reads them, and lines' offsets."""
        tokens, offsets = self.vocabulary.encode_lines(text)
        if self.model.config.backward:
            tokens = reversed_words(tokens, offsets)
        return tokens, offsets

    def encode(
        self, lines: Iterable[bytes], documents: str = "blank", *, across_documents: bool = False
    ) -> Corpus:
        """The corpus of a text as the model reads it; documents: of `lm.corpus.DOCUMENTS`.

        across_documents: whether the whole text is one document.
        """
        corpus = encode(lines, self.vocabulary, documents)
        return self.in_reading_order(corpus, across_documents=across_documents)

    def in_reading_order(self, corpus: Corpus, *, across_documents: bool = False) -> Corpus:
        """A corpus in the order in which the model reads it; across_documents: as for `encode`."""
        config = self.model.config
        if across_documents:
            corpus = corpus.in_stretches(1)
        return in_reading_order(
            corpus, backward=config.backward, reverse_documents=config.reverse_documents
        )

    def encode_side(self, kind: str, text: bytes) -> SideText:
        """Side information as the model reads it, of LF-ended lines: a sentence each."""
        return SideText(*self.side[kind].encode_lines(text))

    def reading_order(self, sentence: Sequence[int]) -> list[int]:
        """The words of a sentence as the model reads them; or from that order to the usual one."""
        return list(reversed(sentence)) if self.model.config.backward else list(sentence)

    def sentence_order(self, document: Sequence[T]) -> list[T]:
        """Sentences of a document as the model reads them; or from that order to the usual one."""
        turned = self.model.config.reverse_documents
        return list(reversed(document)) if turned else list(document)


def save_model(
    folder: Path,
    model: DocumentLM,
    vocabulary: Vocabulary,
    about: Mapping[str, object],
    side: Mapping[str, Vocabulary] = NOTHING,
) -> None:
    """Write a model folder, replacing the model that is there in one rename.

    side: vocabulary of each kind of side information that the model needs.
    """
    digest = _write_vocabulary(folder, vocabulary)
    content = {"config": model.config.as_json(), "vocabulary": digest, "about": dict(about)}
    beside = {kind: _write_vocabulary(folder, words) for kind, words in side.items()}
    if beside:
        content["side"] = beside
    write_tensors(folder / "config.json", "weights", _own(model), content)
    kept = {_vocabulary_name(digest) for digest in (digest, *beside.values())}
    sweep(folder, "vocabulary-*.json", kept)


def load_model(folder: Path, device: torch.device | None = None, zoo: Zoo = ZOO) -> SavedModel:
    """The model of a folder, verified against its digests, ready to score.

    Raises ModelError for a folder that is missing, incomplete, altered, not a model written by
    `save_model`, or of a composition that is not in `zoo`.
    """
    path = folder / "config.json"
    manifest = read_manifest(path)
    content = manifest.content
    try:
        config = _checked(Config, content["config"])
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
        shape = _own(DocumentLM.without_memory(config, zoo))
    except (TypeError, KeyError, ValueError) as fault:
        raise ModelError(f"{path}: not a valid model: {fault}") from None
    held = manifest.file_bytes()
    needed = sum(tensor.nbytes for tensor in shape.values())
    if held > needed + manifest.header_bytes:  # before any of them is read
        raise ModelError(
            f"{path}: tensors do not fit: expected shards of {needed:,} bytes and their headers, "
            f"found {held:,}; copy the folder again"
        )
    vocabulary = _read_vocabulary(folder, content.get("vocabulary"), config.vocabulary, held // 4)
    digests = content.get("side", {})
    sizes = {kind: getattr(config, size) for kind, size in KINDS.items()}
    side = {
        kind: _read_vocabulary(folder, _entry(digests, kind), size, held // 4)
        for kind, size in sizes.items()
        if size is not None
    }
    state = manifest.tensors()
    _check_shapes(shape, state, path)
    model = DocumentLM(config, zoo)
    model.load_state_dict(state, strict=False)
    identity = [content["config"], content["shards"], content["vocabulary"]]
    identity += [digests] if side else []
    digest = sha256(json.dumps(identity, sort_keys=True).encode())
    about = content.get("about")
    about = about if isinstance(about, dict) else {}
    return SavedModel(model.to(device).eval(), vocabulary, digest[:16], about, side)


def save_training(folder: Path, trainer: Trainer) -> None:
    """Write the state from which `load_training` resumes a run, bit for bit.

    All processes of a run call it, and the first one writes.
    """
    contexts = trainer.processes.gather_rows(trainer.contexts, trainer.streams)
    if trainer.processes.rank:
        return
    tensors = {f"model.{name}": tensor for name, tensor in _own(trainer.model).items()}
    tensors |= {f"kept.{name}": tensor for name, tensor in trainer.kept.items()}
    tensors |= {_contexts_name(n): tensor for n, tensor in enumerate(contexts.tensors)}
    if trainer.average is not None:
        averaged = _own(trainer.average.model).items()
        tensors |= {f"average.{name}": tensor for name, tensor in averaged}
    for kind, optimiser in _named_optimisers(trainer.optimiser, trainer.sparse_optimiser):
        for index, moments in optimiser.state_dict()["state"].items():
            for name, value in moments.items():
                tensors[f"{kind}.{index}.{name}"] = torch.as_tensor(value)
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
    moments: dict[str, dict[int, dict[str, Tensor]]] = {}
    try:
        progress = _checked(Progress, content["progress"])
        if progress.stage not in range(len(trainer.stages)):
            raise ValueError(f"no stage {progress.stage} is known")
        held = range(len(trainer.contexts.tensors))
        contexts = Rows(tuple(tensors[_contexts_name(n)] for n in held))
        optimisers = _named_optimisers(*trainer.optimisers_of(progress.stage))
        for kind, _ in optimisers:
            own_moments = moments.setdefault(kind, {})
            for name, tensor in _named(tensors, f"{kind}.").items():
                _, index, key = name.split(".")
                own_moments.setdefault(int(index), {})[key] = tensor
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{path}: not a training state; train into another folder") from None
    model, kept, average = (
        {name.removeprefix(prefix): tensor for name, tensor in _named(tensors, prefix).items()}
        for prefix in ("model.", "kept.", "average.")
    )
    own = _own(trainer.model)
    _check_shapes(own, model, path)
    _check_shapes({} if trainer.average is None else own, average, path)
    _check_shapes({name: own[name] for name in kept if name in own}, kept, path)
    for kind, optimiser in optimisers:
        expected = _moments(kind, optimiser, trainer.settings, moments[kind])
        _check_shapes(expected, _named(tensors, f"{kind}."), path)
    _check_contexts(contexts, trainer.model.context.start(trainer.streams), path)
    trainer.enter(progress.stage)
    trainer.model.load_state_dict(model, strict=False)
    if trainer.average is not None:
        trainer.average.model.load_state_dict(average, strict=False)
    for kind, optimiser in _named_optimisers(trainer.optimiser, trainer.sparse_optimiser):
        optimiser.load_state_dict({**optimiser.state_dict(), "state": moments[kind]})
    share = trainer.processes.share(trainer.streams)
    trainer.contexts = contexts.take(share).to(trainer.device)
    trainer.kept = {name: tensor.to(trainer.device) for name, tensor in kept.items()}
    trainer.progress = progress


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _named_optimisers(own: Optimizer, sparse: Optimizer | None) -> list[tuple[str, Optimizer]]:
    """The optimisers of a stage under their names on disk."""
    return [("optimiser", own), *([] if sparse is None else [("sparse", sparse)])]


def _moments(
    kind: str, optimiser: Optimizer, settings: Settings, found: Collection[int]
) -> dict[str, Tensor]:
    """Tensors of the shapes that an optimiser's state has, under their names on disk.

    found: indices of the parameters that have a state: those that had a gradient.
    """
    row, groups = OPTIMISERS[settings.optimiser], optimiser.param_groups
    everyone = ((parameter, group) for group in groups for parameter in group["params"])
    return {
        f"{kind}.{index}.{name}": tensor
        for index, (parameter, group) in enumerate(everyone)
        if index in found
        for name, tensor in row.state_shapes(parameter, group).items()
    }


def _check_contexts(found: Rows, expected: Rows, path: Path) -> None:
    """ModelError unless contexts differ in no more than their second dimension: padding."""
    for n, both in enumerate(zip(expected.tensors, found.tensors, strict=True)):
        ours, theirs = (t[:, :0] if t.ndim > 1 else t for t in both)
        _check_shapes({_contexts_name(n): ours}, {_contexts_name(n): theirs}, path)


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
    """ModelError unless the runs are one; a run of before a setting was made had its default."""
    if then == now:
        return
    old = {**asdict(Settings()), **then} if isinstance(then, dict) else {}
    if old == now:
        return
    keys = [key for key in {**now, **old} if old.get(key) != now.get(key)]
    odd = [f"{key} was {old.get(key)!s:.80}, is {now.get(key)}" for key in keys]
    raise ModelError(
        f"{path}: the interrupted run was another one: {'; '.join(odd[:5])}; "
        "repeat its command, or train into another folder"
    )


def _own(model: DocumentLM) -> dict[str, Tensor]:
    """The model's tensors, each under one name (tied weights have two)."""
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    again = names - {name for name, _ in model.named_parameters()}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in again}


def _check_shapes(expected: Mapping[str, Tensor], state: Mapping[str, Tensor], path: Path) -> None:
    """ModelError unless the tensors have these names, shapes and types."""
    wanted, found = ({n: _shape(t) for n, t in held.items()} for held in (expected, state))
    odd = [n for n in sorted(wanted.keys() | found) if wanted.get(n) != found.get(n)]
    if odd:
        shapes = [f"{n} expected {wanted.get(n)}, found {found.get(n)}" for n in odd[:5]]
        raise ModelError(f"{path}: tensors do not fit: {'; '.join(shapes)}; copy the folder again")


def _shape(tensor: Tensor) -> str:
    """Shape of a tensor, with its type unless that is the usual one."""
    usual = tensor.dtype == torch.float32
    return str(tuple(tensor.shape)) + ("" if usual else f" {tensor.dtype}".replace("torch.", ""))


def _checked(record: type[T], values: Any) -> T:
    """A dataclass of JSON values; TypeError for one of another type, ValueError for infinity."""
    if not isinstance(values, dict):
        raise TypeError(f"found no settings, but {values!r:.80}")
    hints = get_type_hints(record)
    for name, value in values.items():
        if name not in hints:
            raise TypeError(f"no setting {name!r:.80} is known")
        if type(value) not in (get_args(hints[name]) or (hints[name],)):
            raise TypeError(f"{name} is {value!r:.80}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} is {value}")
    return record(**values)


def _vocabulary_name(digest: str) -> str:
    return f"vocabulary-{digest[:12]}.json"


def _write_vocabulary(folder: Path, vocabulary: Vocabulary) -> str:
    """Write a vocabulary under its digest."""
    words = json.dumps([word.decode() for word in vocabulary.words], ensure_ascii=False)
    raw = words.encode() + b"\n"
    digest = sha256(raw)
    replace(folder / _vocabulary_name(digest), raw)
    return digest


def _entry(found: object, name: str) -> object:
    """An entry of a JSON object; None where there is no object or no such entry."""
    return found.get(name) if isinstance(found, dict) else None


def _read_vocabulary(folder: Path, digest: object, size: int, numbers: int) -> Vocabulary:
    """The vocabulary of `size` words, the special ones included, of a model of so many numbers."""
    config = folder / "config.json"
    if not isinstance(digest, str) or not is_digest(digest):
        raise ModelError(f"{config}: expected a vocabulary's digest, found {digest!r:.80}")
    path = folder / _vocabulary_name(digest)
    raw = read_verified(path, digest, _VOCABULARY_BYTES + 256 * min(size, numbers))
    try:
        words = json.loads(raw)
        if not isinstance(words, list):
            raise TypeError("expected a list of words")
        found = len(words) + len(SPECIAL)
        if found != size:
            raise ModelError(
                f"{config}: expected a vocabulary of {size}, found {found}; "
                "copy the whole folder again"
            )
        return Vocabulary(tuple(word.encode() for word in words))
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise ModelError(f"{path}: not a vocabulary: {fault}") from None
