"""Folders of models as they are opened: the configuration, the vocabularies, what identifies them.

None of this needs torch: the tensors are read when something is first computed with the model
(`lm.checkpoint`), so that scores which are in a cache cost no more than these files. A folder may
come from a stranger: only regular files are read, none beyond its limit, and no value has another
type than was written.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from lm.composition import Config, Facts, Zoo
from lm.side_information import KINDS, SideText
from lm.subwords import SubwordVocabulary
from lm.vocabulary import Vocabulary, characters

if TYPE_CHECKING:
    from lm.corpus import Corpus
    from lm.model import DocumentLM

FORMAT = 1
_MANIFEST_BYTES = 1 << 20
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a named pipe is not waited for
_SHARD_NAME = re.compile(r"(weights|state)-[0-9a-f]{12}\.safetensors")
T = TypeVar("T")
VOCABULARY = "vocabulary-{:.12}.json"  # file of a digest
_VOCABULARY_BYTES = 16 << 20  # and 256 a word, far more than words have in the mean


class ModelError(Exception):
    """An invalid model folder; the message names file, expectation, finding and cure."""


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


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model folder: digest identifies weights, vocabularies and shape together.

    side: vocabulary of each kind of side information that the model needs; stated: facts of the
    model as the folder states them, None in folders of before rerank 0.2.0; read: reads the
    tensors, when the model is first asked for, and raises ModelError for those that are not valid.
    """

    manifest: Manifest
    config: Config
    vocabulary: Vocabulary
    digest: str
    about: Mapping[str, object]
    side: Mapping[str, Vocabulary]
    stated: Facts | None
    read: Callable[[SavedModel], DocumentLM]

    @cached_property
    def model(self) -> DocumentLM:
        """The model, ready to score."""
        return self.read(self)

    @cached_property
    def facts(self) -> Facts:
        """What the composition decides, without the tensors if the folder states it."""
        return self.stated or self.model.facts

    def encode_lines(self, text: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids (N,) of the words of LF-ended lines as the model reads them, and lines' offsets."""
        tokens, offsets = self.vocabulary.encode_lines(text)
        if self.config.backward:
            from lm.corpus import mirrored

            tokens = tokens[mirrored(offsets)]
        return tokens, offsets

    def in_reading_order(self, corpus: Corpus, *, across_documents: bool = False) -> Corpus:
        """A corpus in the order in which the model reads it; if asked, as a single document."""
        from lm.corpus import in_reading_order

        backward, reverse_documents = self.config.backward, self.config.reverse_documents
        if across_documents:
            corpus = corpus.in_stretches(1)
        return in_reading_order(corpus, backward=backward, reverse_documents=reverse_documents)

    def encode_side(self, kind: str, text: bytes) -> SideText:
        """Side information as the model reads it, of LF-ended lines: a sentence each."""
        from lm.corpus import intern, renumber, spelled

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
        return list(reversed(sentence)) if self.config.backward else list(sentence)


def open_folder(folder: Path, zoo: Zoo, read: Callable[[SavedModel], DocumentLM]) -> SavedModel:
    """The model of a folder, whose tensors `read` reads later.

    ModelError for a folder that is missing, incomplete, not written by `lm.checkpoint.save_model`,
    or of a composition that is not in `zoo`.
    """
    path = folder / "config.json"
    manifest = read_manifest(path)
    content = manifest.content
    try:
        stated = content["config"]
        # from when there were hashed trigrams, too
        if isinstance(stated, dict) and stated.get("hash_order") == 2:
            stated = {name: value for name, value in stated.items() if name != "hash_order"}
        config = checked(Config, stated)
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
        facts = Facts.of_json(content["facts"]) if "facts" in content else None
    except (TypeError, KeyError, ValueError) as fault:
        raise ModelError(f"{path}: not a valid model: {fault}") from None
    held = manifest.file_bytes()
    vocabulary = read_vocabulary(path, content.get("vocabulary"), config.vocabulary, held // 4)
    digests = content.get("side", {})
    named = digests if isinstance(digests, dict) else {}
    sizes = {kind: getattr(config, size) for kind, size in KINDS.items()}
    side = {
        kind: read_vocabulary(path, named.get(kind), size, held // 4)
        for kind, size in sizes.items()
        if size is not None
    }
    identity = [content["config"], content["shards"], content["vocabulary"]]
    identity += [digests] if side else []
    identity += [content["facts"]] if facts else []
    digest = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    about = content.get("about")
    about = about if isinstance(about, dict) else {}
    return SavedModel(manifest, config, vocabulary, digest[:16], about, side, facts, read)


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
    replace(folder / VOCABULARY.format(digest), raw)
    return digest


def read_vocabulary(manifest: Path, digest: object, size: int, numbers: int) -> Vocabulary:
    """The vocabulary of `size` words, the special ones included, of a model of so many numbers.

    ModelError if it is not in the folder of the manifest, or has another digest.
    """
    if not is_digest(digest):
        raise ModelError(f"{manifest}: expected a vocabulary's digest, found {digest!r:.80}")
    path = manifest.with_name(VOCABULARY.format(digest))
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


# Files


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


def sweep(folder: Path, pattern: str, kept: set[str]) -> None:
    """Remove the files of a pattern that are not kept, and what killed writers of them left."""
    for old in [*folder.glob(pattern), *folder.glob(f".{pattern}.*.tmp")]:
        if old.name not in kept:
            old.unlink(missing_ok=True)
