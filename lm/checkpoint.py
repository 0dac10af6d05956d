"""Models on disk: safetensors and JSON, never pickles.

A model folder holds `config.json`, a vocabulary, those of side information, and weight shards
(`lm.shards`). After any failure it holds either the old model or the new.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.composition import Zoo
from lm.corpus import (
    Corpus,
    characters,
    in_reading_order,
    intern,
    mirrored,
    renumber,
    spelled,
)
from lm.model import Config, DocumentLM
from lm.shards import (
    HEADER_BYTES,
    is_digest,
    read_manifest,
    read_verified,
    replace,
    sweep,
    write_tensors,
)
from lm.shards import ModelError as ModelError
from lm.side_information import KINDS, SideText
from lm.subwords import SubwordVocabulary
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO

T = TypeVar("T")
NOTHING: Mapping[str, Vocabulary] = MappingProxyType({})
_VOCABULARY = "vocabulary-{:.12}.json"  # file of a digest
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
            tokens = tokens[mirrored(offsets)]
        return tokens, offsets

    def in_reading_order(self, corpus: Corpus, *, across_documents: bool = False) -> Corpus:
        """A corpus in the order in which the model reads it; if asked, as a single document."""
        config = self.model.config
        if across_documents:
            corpus = corpus.in_stretches(1)
        return in_reading_order(
            corpus, backward=config.backward, reverse_documents=config.reverse_documents
        )

    def encode_side(self, kind: str, text: bytes) -> SideText:
        """Side information as the model reads it, of LF-ended lines: a sentence each."""
        vocabulary = self.side[kind]
        if kind not in self.model.context.spells:
            return SideText(*vocabulary.encode_lines(text))
        # `equals` has a sentence in every line but those that close documents
        interned = intern((b" " + line for line in text.split(b"\n")[:-1]), "equals")
        words, corpus = spelled(*interned, vocabulary)
        return renumber(corpus, words, vocabulary)

    def words_of_source(self, text: bytes) -> tuple[list[bytes], Callable[[bytes], bool]]:
        """Words of sources, or characters if it knows only these; and whether it knows a word."""
        vocabulary = self.side["source"]
        words = text.split()
        if vocabulary.of_characters:
            words = [character for word in words for character in characters(word)]
        return words, vocabulary.knows

    def reading_order(self, sentence: Sequence[int]) -> list[int]:
        """The words of a sentence in the order of the model, or back in the usual order."""
        return list(reversed(sentence)) if self.model.config.backward else list(sentence)


def save_model(
    folder: Path,
    model: DocumentLM,
    vocabulary: Vocabulary,
    about: Mapping[str, object],
    side: Mapping[str, Vocabulary] = NOTHING,
) -> None:
    """Write a model folder, replacing the model that is there by a rename."""
    digest = write_vocabulary(folder, vocabulary)
    content = {"config": model.config.as_json(), "vocabulary": digest, "about": dict(about)}
    beside = {kind: write_vocabulary(folder, words) for kind, words in side.items()}
    if beside:
        content["side"] = beside
    write_tensors(folder / "config.json", "weights", own_tensors(model), content)
    kept = {_VOCABULARY.format(digest) for digest in (digest, *beside.values())}
    sweep(folder, "vocabulary-*.json", kept)


def load_model(folder: Path, device: torch.device | None = None, zoo: Zoo = ZOO) -> SavedModel:
    """The model of a folder, verified against its digests, ready to score.

    ModelError for a folder that is missing, incomplete, altered, not written by `save_model`, or of
    a composition that is not in `zoo`.
    """
    path = folder / "config.json"
    manifest = read_manifest(path)
    content = manifest.content
    try:
        config = checked(Config, content["config"])
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
        shape = own_tensors(DocumentLM.without_memory(config, zoo))
    except (TypeError, KeyError, ValueError) as fault:
        raise ModelError(f"{path}: not a valid model: {fault}") from None
    held = manifest.file_bytes()
    needed = sum(tensor.nbytes for tensor in shape.values())
    headers = len(manifest.shards) * HEADER_BYTES
    if held > needed + headers:  # before any of them is read
        raise ModelError(
            f"{path}: tensors do not fit: expected shards of {needed:,} bytes and their headers, "
            f"found {held:,}; copy the folder again"
        )
    vocabulary = read_vocabulary(path, content.get("vocabulary"), config.vocabulary, held // 4)
    digests = content.get("side", {})
    named = digests if isinstance(digests, dict) else {}
    sizes = {kind: getattr(config, size) for kind, size in KINDS.items()}
    side = {
        kind: read_vocabulary(path, named.get(kind), size, held // 4)
        for kind, size in sizes.items()
        if size is not None
    }
    state = manifest.tensors()
    check_shapes(shape, state, path)
    model = DocumentLM(config, zoo)
    model.load_state_dict(state, strict=False)
    identity = [content["config"], content["shards"], content["vocabulary"]]
    identity += [digests] if side else []
    digest = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    about = content.get("about")
    about = about if isinstance(about, dict) else {}
    return SavedModel(model.to(device).eval(), vocabulary, digest[:16], about, side)


def own_tensors(model: DocumentLM) -> dict[str, Tensor]:
    """The model's tensors, each under a single name (tied weights have two)."""
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    again = names - {name for name, _ in model.named_parameters()}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in again}


def check_shapes(expected: Mapping[str, Tensor], state: Mapping[str, Tensor], path: Path) -> None:
    """ModelError unless the tensors have these names, shapes and types."""
    wanted, held = ({n: _shape(t) for n, t in named.items()} for named in (expected, state))
    odd = [n for n in sorted(wanted.keys() | held) if wanted.get(n) != held.get(n)]
    if odd:
        shapes = [f"{n} expected {wanted.get(n)}, found {held.get(n)}" for n in odd[:5]]
        raise ModelError(f"{path}: tensors do not fit: {'; '.join(shapes)}; copy the folder again")


def _shape(tensor: Tensor) -> str:
    """Shape of a tensor, with its type unless that is float32."""
    usual = tensor.dtype == torch.float32
    return str(tuple(tensor.shape)) + ("" if usual else f" {tensor.dtype}".replace("torch.", ""))


def checked(record: type[T], values: Any) -> T:
    """A dataclass of JSON values; TypeError for a value of another type, ValueError for inf."""
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


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> str:
    """Write a vocabulary under its digest, which a manifest in the same folder names."""
    words = json.dumps(vocabulary.as_json(), ensure_ascii=False)
    raw = words.encode() + b"\n"
    digest = sha256(raw).hexdigest()
    replace(folder / _VOCABULARY.format(digest), raw)
    return digest


def read_vocabulary(manifest: Path, digest: object, size: int, numbers: int) -> Vocabulary:
    """The vocabulary of `size` words, the special ones included, of a model of so many numbers.

    ModelError if it is not in the folder of the manifest, or has another digest.
    """
    if not is_digest(digest):
        raise ModelError(f"{manifest}: expected a vocabulary's digest, found {digest!r:.80}")
    path = manifest.with_name(_VOCABULARY.format(digest))
    raw = read_verified(path, digest, _VOCABULARY_BYTES + 256 * min(size, numbers))
    try:
        words = json.loads(raw)
        if isinstance(words, dict):
            vocabulary: Vocabulary = SubwordVocabulary.from_json(words)
        elif isinstance(words, list):
            vocabulary = Vocabulary(tuple(word.encode() for word in words))
        else:
            raise TypeError("expected a list of words, or pieces of words")
        if len(vocabulary) != size:
            raise ModelError(
                f"{manifest}: expected a vocabulary of {size}, found {len(vocabulary)}; "
                "copy the whole folder again"
            )
        return vocabulary
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as fault:
        raise ModelError(f"{path}: not a vocabulary: {fault}") from None
