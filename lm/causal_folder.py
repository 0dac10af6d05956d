"""Folders of models of Hugging Face: what they must hold, and how they are opened.

Only regular files whose names stand in the folder itself are read, of weights only safetensors; no
code from it is run, and nothing is looked up on the network. The tensors of the files must be those
of the model: `transformers` would draw missing ones at random, and leave out others. Links to
regular files are followed, as in the cache of Hugging Face. The package `transformers` (extra `hf`)
is imported when a folder is opened.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

UNLIMITED = 1 << 30  # positions of a model that states no number of them
NOTHING = -1  # in place of the token that texts begin with: their first token is not predicted
OTHERS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.gguf")  # pickles, which may run code, and GGUF
# weights, tokenizer, shape
DIGESTED = ("*.safetensors", "*.json", "*.model", "*.spm", "*.txt", "*.jinja")
CONFIG, INDEX, WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
ADAPTER = "adapter_config.json"
# keys of JSON files that name files, which transformers then opens
NAMING = {CONFIG: "configuration_files", "tokenizer_config.json": "fast_tokenizer_files"}
MOST_JSON = 1 << 28  # bytes of a configuration or an index
PACKED = 16  # weights that a number of quantised weights may hold
_CONSTANT = re.compile(r".*\.attn\.masked_bias")  # in old folders of GPT-2, a constant of its code
_LAYERS = re.compile(r"(n|num)_(\w+_)?layers?|(en|de)coder_layers")  # keys of numbers of layers
Shapes: TypeAlias = Mapping[str, Sequence[int]]


class CausalFolderError(ValueError):
    """A folder that is not a usable model, or a missing package; the message says what to do."""


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of models: its name in messages, its class of `transformers`, what it cannot do.

    mark: before folders of this kind in `--lm NAME=…`.
    """

    name: str
    auto: str
    lack: str
    mark: str


CAUSAL = FolderKind(
    "causal language model", "AutoModelForCausalLM", "predicts no next words", "hf:"
)
SEQ2SEQ = FolderKind(
    "sequence-to-sequence model", "AutoModelForSeq2SeqLM", "translates nothing", "seq2seq:"
)


class Adapter(Protocol):
    """A change of a model's weights (`lm.lora`)."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that it depends on."""

    def merge(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        """Change the weights of a model that was read from these tensors."""


@dataclass(frozen=True, slots=True, eq=False)
class CausalModel:
    """A causal language model that was read back.

    model: of transformers, in evaluation mode; digest: SHA-256 of its files, and of an adapter's;
    positions: most tokens of a text with its context; begin: id of the token that texts begin with,
    or `NOTHING`.
    """

    model: Any
    tokenizer: Any
    digest: str
    positions: int
    begin: int

    def encode(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        """Ids of the tokens of texts; what looks like a special token is text, unless `special`."""
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=not special, verbose=False
        )["input_ids"]
        return found


def open_causal_model(
    folder: Path,
    device: torch.device | str = "cpu",
    dtype: str = "float32",
    adapter: Adapter | None = None,
) -> CausalModel:
    """The causal language model of a folder; CausalFolderError if there is none.

    dtype: `float32` or `bfloat16`, of weights and of all that is computed; `tf32` has float32.
    adapter: merged into the weights, before these are rounded to the dtype.
    """
    tokenizer, model = open_folder(folder, CAUSAL, dtype, adapter)
    begin = tokenizer.bos_token_id
    begin = tokenizer.eos_token_id if begin is None else begin
    begin = NOTHING if begin is None else begin
    words = {*tokenizer.get_vocab().values()} - {*tokenizer.all_special_ids} | {begin}
    check_tokenizer(folder, tokenizer, model, words)
    config = model.config.get_text_config()  # tokens that have positions and may be attended to
    positions = positions_of(config, "max_position_embeddings", "sliding_window")
    digest = folder_digest(folder, adapter)
    return CausalModel(model.to(device).eval(), tokenizer, digest, positions, begin)


def open_folder(
    folder: Path, kind: FolderKind, dtype: str, adapter: Adapter | None
) -> tuple[Any, Any]:
    """The tokenizer and the model of a folder, of a kind, with an adapter if there is one.

    CausalFolderError if there is no such model, or the adapter is that of another one.
    """
    files = _weight_files(folder, kind)
    try:
        import transformers
        from transformers.utils import logging
    except ImportError as fault:
        raise CausalFolderError(
            f"{folder}: Hugging Face models need the package transformers ({fault}); install it: "
            "pip install 'rerank-mt[hf]'"
        ) from None
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safe)
        kept = torch.bfloat16 if dtype == "bfloat16" else torch.float32
        return tokenizer, _loaded(folder, files, kept, kind, adapter)
    except CausalFolderError:
        raise
    except ImportError as fault:
        reason = " ".join(str(fault).split())
        package, cure = "a package", ""
        if "sentencepiece" in reason.lower():  # of Marian, such as OPUS-MT
            package, cure = "the package sentencepiece", ": pip install sentencepiece"
        raise CausalFolderError(
            f"{folder}: this {kind.name} needs {package}, which is not installed "
            f"({reason:.100}); install it{cure}"
        ) from None
    except Exception as fault:  # of any kind: transformers documents none
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise CausalFolderError(
            f"{folder}: transformers {transformers.__version__} cannot load it as a {kind.name}: "
            f"{reason:.300}; give a folder written by save_pretrained, with its tokenizer"
        ) from None


def check_tokenizer(folder: Path, tokenizer: Any, model: Any, words: Iterable[int]) -> None:
    """CausalFolderError for a tokenizer of another model, or of none; words: ids of its tokens."""
    rows = model.get_input_embeddings().weight.shape[0]
    if (highest := max(words)) >= rows:
        raise CausalFolderError(
            f"{folder}: the tokenizer has tokens up to number {highest:,}, the model knows "
            f"{rows:,}: they are not of one model; copy the tokenizer from the model's own folder"
        )
    if not tokenizer("a", add_special_tokens=False)["input_ids"]:
        raise CausalFolderError(
            f"{folder}: expected a tokenizer, found one that knows no letter; copy tokenizer.json "
            "or its vocabulary from the model's own folder"
        )


def positions_of(config: Any, *names: str) -> int:
    """Most tokens of a text, by the configuration's entries of these names."""
    limits = (getattr(config, name, None) for name in names)
    return min([UNLIMITED, *(n for n in limits if isinstance(n, int) and n > 0)])


# Files


def check_regular_files(folder: Path) -> None:
    """CausalFolderError unless there is a folder, all of whose files are regular ones."""
    if not folder.is_dir():
        raise CausalFolderError(
            f"{folder}: expected a folder written by save_pretrained, found "
            f"{'a file' if folder.exists() else 'none'}; models are not downloaded: give the path "
            "of a folder on this machine"
        )
    for path in sorted({*folder.iterdir(), *folder.glob("*chat_template*/*")}):
        if not path.is_file() and not (path.is_dir() and not _digested(path)):
            raise CausalFolderError(
                f"{path}: expected a regular file, as every file of a model must be, found "
                f"{'a folder' if path.is_dir() else 'a pipe, a device or a broken link'}; remove it"
            )
    for name, key in NAMING.items():
        if (folder / name).is_file():
            _check_names(folder / name, read_json(folder / name).get(key) or ())


def _weight_files(folder: Path, kind: FolderKind) -> list[Path]:
    """The files of weights of a folder that holds what a model needs, and needs no code."""
    check_regular_files(folder)
    if (folder / ADAPTER).is_file():
        raise CausalFolderError(
            f"{folder}: expected a whole model, found an adapter ({ADAPTER}); give the folder of "
            f"its model before it, as {kind.mark}DIR,adapter={folder}"
        )
    if not (folder / CONFIG).is_file():
        cure = f"a model made by train-lm is given without {kind.mark}"
        if marian := sorted(path.name for path in folder.glob("*.npz")):
            cure = f"convert {marian[0]} of Marian with transformers' convert_marian_to_pytorch.py"
        raise CausalFolderError(
            f"{folder}: expected config.json of a Hugging Face model, found none; {cure}"
        )
    if not any(folder.glob("*.safetensors")):
        others = sorted(path.name for suffix in OTHERS for path in folder.glob(suffix))
        found = f"only {others[0]}" if others else "none"
        raise CausalFolderError(
            f"{folder}: expected weights in *.safetensors, found {found}; write the model again "
            "with model.save_pretrained(DIR, safe_serialization=True)"
        )
    if "auto_map" in read_json(folder / CONFIG):
        raise CausalFolderError(
            f"{folder}: this model comes with code of its own (auto_map in config.json), which is "
            "never run; give a model of an architecture that is in transformers"
        )
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise CausalFolderError(
            f"{folder}: expected {WEIGHTS}, or {INDEX} that names the files of its parts, found "
            "neither; write it again with model.save_pretrained(DIR); a model made by train-lm is "
            f"given without {kind.mark}"
        )
    parts = read_json(folder / INDEX).get("weight_map")
    if not isinstance(parts, dict) or not parts:
        raise CausalFolderError(
            f"{folder / INDEX}: expected a weight_map, found none; copy it again"
        )
    names = sorted(map(str, {*map(str, parts.values())}))
    _check_names(folder / INDEX, names)
    for name in names:
        if not name.endswith(".safetensors") or not (folder / name).is_file():
            raise CausalFolderError(
                f"{folder / INDEX}: expected files in safetensors beside it, found the name of "
                f"{name!r:.80}, which is none; copy the model again, with all its parts"
            )
    return [folder / name for name in names]


def _digested(path: Path) -> bool:
    return any(path.match(suffix) for suffix in DIGESTED)


def read_json(path: Path) -> dict[str, Any]:
    """The object of a JSON file, of bounded size."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MOST_JSON))
    except (ValueError, RecursionError) as fault:
        raise CausalFolderError(f"{path}: expected JSON ({fault}); copy the file again") from None
    if not isinstance(found, dict):
        raise CausalFolderError(
            f"{path}: expected an object of JSON, found a {type(found).__name__}; copy it again"
        )
    return found


def _check_names(path: Path, names: Iterable[object]) -> None:
    """CausalFolderError for a name that leads out of the folder, beyond what is digested."""
    for name in names:
        if not isinstance(name, str) or name != Path(name).name:
            raise CausalFolderError(
                f"{path}: expected names of files beside it, found {name!r:.80}; put the file "
                "there, and name it without a folder"
            )


def folder_digest(folder: Path, adapter: Adapter | None) -> str:
    """SHA-256 of the names and contents of all files that scores may depend on."""
    whole = hashlib.sha256()
    for path in sorted({path for suffix in DIGESTED for path in folder.glob(suffix)}):
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.name}\0{own}\n".encode())
    if adapter is not None:
        whole.update(f"adapter\0{adapter.digest}\n".encode())
    return whole.hexdigest()


# Tensors


def _loaded(
    folder: Path,
    files: Sequence[Path],
    dtype: torch.dtype,
    kind: FolderKind,
    adapter: Adapter | None,
) -> Any:
    """The model of a folder, with each of its tensors from the files and none left over.

    The configuration is compared with the headers of the files before memory is taken, on the meta
    device: a small folder may ask for any amount.
    """
    import transformers
    from safetensors import safe_open

    stated = read_json(folder / CONFIG)
    with ExitStack() as opened:
        parts = [opened.enter_context(safe_open(path, "pt")) for path in files]
        place = _places(folder, files, parts)
        held = {name: part.get_slice(name).get_shape() for name, part in place.items()}
        _check_layers(folder, stated, len(held))
        config = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        _check_kind(folder, config, kind)
        with torch.device("meta"):
            model = getattr(transformers, kind.auto).from_config(config)
        own, named = type(model), stated.get("architectures") or [type(model).__name__]
        named = [str(one) for one in (named if isinstance(named, list) else [named])]
        if own.__name__.casefold() not in map(str.casefold, named):
            raise CausalFolderError(
                f"{folder}: expected a {kind.name}, {own.__name__}, found "
                f"{', '.join(named):.80} (architectures in config.json), which {kind.lack}; give "
                f"the folder of the {kind.name}"
            )
        made = [re.compile(one) for one in model._keys_to_ignore_on_load_missing or ()]  # by code
        needed = sum(
            tensor.numel()
            for name, tensor in model.named_parameters()
            if not any(one.search(name) for one in made)
        )
        there = sum(map(math.prod, held.values()))
        if needed > there * (PACKED if "quantization_config" in stated else 1):
            _refuse(folder, own.__name__, *_differences(model, held))
        tensors = {name: part.get_tensor(name) for name, part in place.items()}
        loaded, found = own.from_pretrained(
            None,
            config=config,
            state_dict=tensors,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    wrong = [f"{name} ({product(a)} for {product(b)})" for name, a, b in found["mismatched_keys"]]
    unused = [name for name in found["unexpected_keys"] if not _CONSTANT.fullmatch(name)]
    if getattr(loaded, "hf_quantizer", None) is None:  # whole numbers need their scale
        prefix = f"{loaded.base_model_prefix}."
        weights = {
            name.removeprefix(prefix) for name, _ in loaded.named_parameters(remove_duplicate=False)
        }
        wrong += [
            f"{name} ({str(tensor.dtype).removeprefix('torch.')} for {str(dtype)[6:]})"
            for name, tensor in tensors.items()
            if (name.removeprefix(prefix) in weights or name.endswith("weight"))
            and name not in unused
            and (tensor.dtype.itemsize < 2 or not tensor.dtype.is_floating_point)
        ]
    if found["missing_keys"] or unused or wrong:
        _refuse(folder, own.__name__, found["missing_keys"], unused, wrong)
    if adapter is not None:
        adapter.merge(loaded, tensors)
    return loaded


def _check_kind(folder: Path, config: Any, kind: FolderKind) -> None:
    """CausalFolderError for a model of the other kind."""
    found = SEQ2SEQ if getattr(config, "is_encoder_decoder", False) else CAUSAL
    if found is not kind:
        raise CausalFolderError(
            f"{folder}: expected a {kind.name}, found {config.model_type}, a {found.name}; give it "
            f"as --lm NAME={found.mark}{folder}"
        )


def _places(folder: Path, files: Sequence[Path], parts: Sequence[Any]) -> dict[str, Any]:
    """The part that holds each tensor; CausalFolderError if that is not the one of the index."""
    held = [(name, n) for n, part in enumerate(parts) for name in part.offset_keys()]
    found = dict(held)
    stated = {} if files == [folder / WEIGHTS] else read_json(folder / INDEX)["weight_map"]
    lost = [name for name, file in stated.items() if files[found.get(name, 0)].name != file]
    lost += [name for name in found if name not in stated and stated]
    if lost or len(found) < len(held):
        twice = sorted({name for name, n in held if found[name] != n})
        raise CausalFolderError(
            f"{folder / INDEX}: expected each tensor in the file that it names, and in no other, "
            f"found {[*lost, *twice][0]} elsewhere; copy the model again, with all its parts"
        )
    return {name: parts[n] for name, n in held}


def _check_layers(folder: Path, stated: Mapping[str, Any], n_tensors: int) -> None:
    """CausalFolderError for more layers than there are tensors: each layer takes time to build."""
    for part in (stated, *(own for own in stated.values() if isinstance(own, dict))):
        for key, value in part.items():
            if _LAYERS.fullmatch(key) and isinstance(value, int) and value > n_tensors:
                raise CausalFolderError(
                    f"{folder}: expected tensors of {value:,} layers ({key} in config.json), found "
                    f"{n_tensors:,} tensors; copy the model again"
                )


def _differences(model: Any, held: Shapes) -> tuple[list[str], list[str], list[str]]:
    """Names of tensors that are missing, left over, or of another shape, as far as they are equal.

    Tensors that the model shares are there if one of them is. The name of the base model may stand
    before a name or not.
    """
    prefix = f"{model.base_model_prefix}."
    bare = {name.removeprefix(prefix): list(shape) for name, shape in held.items()}
    shared: dict[int, list[str]] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        shared.setdefault(id(tensor), []).append(name)
    shapes = {
        name.removeprefix(prefix): list(tensor.shape) for name, tensor in model.state_dict().items()
    }
    missing = [
        names[0]
        for names in shared.values()
        if not any(name.removeprefix(prefix) in bare for name in names)
    ]
    unused = [name for name in held if name.removeprefix(prefix) not in shapes]
    wrong = [
        f"{name} ({product(own)} for {product(shapes[name])})"
        for name, own in bare.items()
        if own != shapes.get(name, own)
    ]
    return missing, unused, wrong


def product(shape: Sequence[int]) -> str:
    """A shape in messages."""
    return " × ".join(map(str, shape))


def _refuse(
    folder: Path,
    kind: str,
    missing: Iterable[str],
    unused: Iterable[str],
    wrong: Iterable[str] = (),
) -> None:
    """CausalFolderError with the first names of tensors that are amiss."""
    lists = {
        "without": sorted(missing),
        "with more, which it does not use:": sorted(unused),
        "with others than its configuration states:": sorted(wrong),
    }
    found = "; ".join(
        f"{what} {', '.join(names[:3])}{f' and {len(names) - 3:,} more' * (len(names) > 3)}"
        for what, names in lists.items()
        if names
    )
    raise CausalFolderError(
        f"{folder}: expected the tensors of {kind} in its files, found them "
        f"{found or 'smaller than config.json states'}; give the folder of a "
        "model, complete, as its save_pretrained writes it"
    )
