"""Folders of models of Hugging Face: what they must hold, and how they are opened.

Only regular files (or links to them) in the folder itself are read, of weights only safetensors; no
code from it is run, and nothing is looked up on the network. The tensors of the files must be those
of the model: `transformers` would draw missing ones at random, and leave out others.

LoRA adapters, as PEFT saves them, are merged into the weights. A layer with weights W and an
adapter computes x (W + s B A)ᵀ, with A: (r, in), B: (out, r) and s = α / r (Hu et al. 2022,
https://arxiv.org/abs/2106.09685, section 4.1), or s = α / √r with `use_rslora` (Kalajdzievski 2023,
https://arxiv.org/abs/2312.03732). PEFT can train more than that, and says so in the configuration:
an entry that is neither known here nor empty is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

UNLIMITED = 1 << 30  # positions of a model that states no number of them
SAFE = {"local_files_only": True, "trust_remote_code": False}  # of transformers
OTHERS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.gguf")  # pickles, which may run code, and GGUF
# weights, tokenizer, shape
DIGESTED = ("*.safetensors", "*.json", "*.model", "*.spm", "*.txt", "*.jinja")
CONFIG, INDEX, WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
ADAPTER = "adapter_config.json"
# keys of JSON files that name files, which transformers then opens
NAMING = {CONFIG: "configuration_files", "tokenizer_config.json": "fast_tokenizer_files"}
MOST_JSON = 1 << 28  # bytes of a configuration or an index
PACKED = 16  # weights that a number of quantised weights may hold
MOST_ABSENT = 2  # weights of a configuration for each of the files, for `transformers` to load it
_CONSTANT = re.compile(r".*\.attn\.masked_bias")  # in old folders of GPT-2, a constant of its code
_LAYERS = re.compile(r"(n|num)_(\w+_)?layers?|(en|de)coder_layers")  # keys of numbers of layers
ADAPTER_WEIGHTS, PICKLE = "adapter_model.safetensors", "adapter_model.bin"
# values of plain LoRA; initial weights of other kinds, such as PiSSA's, change those of the model
PLAIN_LORA: Mapping[str, tuple[object, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "init_lora_weights": (True, False, "gaussian", "orthogonal", "eva"),
}
LORA_NUMBERS = {"r": "rank_pattern", "lora_alpha": "alpha_pattern"}  # by the ends of layers' names
LORA_UNUSED = {  # about training, or what the tensors show
    *("auto_mapping", "base_model_name_or_path", "corda_config", "eva_config", "exclude_modules"),
    *("fan_in_fan_out", "inference_mode", "layers_pattern", "layers_to_transform", "lora_dropout"),
    *("megatron_core", "peft_version", "qalora_group_size", "revision", "target_modules"),
    *("task_type", "use_rslora"),
}
MERGE = (
    "merge the adapter with merge_and_unload() of peft, write the model with save_pretrained(DIR), "
    "and give DIR without adapter="
)
MOST_ALPHA = 1e9  # what a rank or α may be
RIGHT_MODEL = "give the model that the adapter was trained on as DIR"
_LITERAL = re.compile(r"\^?[\w.-]+")  # end of a layer's name, or with ^ all of it
_FACTOR = re.compile(r"base_model\.model\.(.+)\.lora_[AB]\.weight")


class CausalFolderError(ValueError):
    """A folder that is not a usable model, or a missing package; the message says what to do."""


class FolderKind(NamedTuple):
    """A kind of models: name, class of `transformers`, what it lacks, its mark before folders."""

    name: str
    auto: str
    lack: str
    mark: str


CAUSAL = FolderKind("causal language model", "AutoModelForCausalLM", "predicts no words", "hf:")
SEQ2SEQ = FolderKind(
    "sequence-to-sequence model", "AutoModelForSeq2SeqLM", "translates nothing", "seq2seq:"
)


class OpenedFolder(NamedTuple):
    """Tokenizer and outline, the model without memory; load: makes the model, reading the tensors.

    load raises CausalFolderError for tensors or an adapter that do not fit.
    """

    tokenizer: Any
    outline: Any
    load: Callable[[], Any]


def open_folder(
    folder: Path,
    kind: FolderKind,
    device: torch.device | str,
    dtype: str,
    adapter: LoraAdapter | None,
) -> OpenedFolder:
    """A folder whose files are those of a model; else CausalFolderError. No tensors are read."""
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
    before = _states(folder, adapter)
    with _faults_of_transformers(folder, kind):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **SAFE)
        outline = _outline(folder, files, kind)

    @cache
    def load() -> Any:
        if _states(folder, adapter) != before:
            raise CausalFolderError(
                f"{folder}: its files, or its adapter's, were changed meanwhile; run it again"
            )
        with _faults_of_transformers(folder, kind):
            kept = torch.bfloat16 if dtype == "bfloat16" else torch.float32
            return _loaded(folder, files, kept, outline, adapter).to(device).eval()

    return OpenedFolder(tokenizer, outline, load)


@contextmanager
def _faults_of_transformers(folder: Path, kind: FolderKind) -> Iterator[None]:
    """CausalFolderError for whatever the package raises."""
    import transformers

    try:
        yield
    except CausalFolderError:
        raise
    except ImportError as fault:
        reason = " ".join(str(fault).split())
        of_marian = "sentencepiece" in reason.lower()  # such as OPUS-MT
        package = "pip install sentencepiece" if of_marian else "install it"
        raise CausalFolderError(
            f"{folder}: this {kind.name} needs a package that is missing ({reason:.100}); {package}"
        ) from None
    except Exception as fault:  # of any kind: transformers documents none
        raise CausalFolderError(
            f"{folder}: transformers {transformers.__version__} cannot load it as a {kind.name}: "
            f"{reason_of(fault)}; give a folder written by save_pretrained, with its tokenizer"
        ) from None


def reason_of(fault: Exception) -> str:
    """The class and message of an error of a package, in a line."""
    return f"{' '.join(f'{type(fault).__name__}: {fault}'.split()):.300}"


def check_tokenizer(folder: Path, tokenizer: Any, model: Any, words: Iterable[int]) -> int:
    """Rows of the embeddings; CausalFolderError for a tokenizer of another model, or of none.

    words: ids of its tokens.
    """
    rows: int = model.get_input_embeddings().weight.shape[0]
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
    return rows


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
        ignored = path.is_dir() and not any(map(path.match, DIGESTED))
        if not path.is_file() and not ignored:
            other = "a folder" if path.is_dir() else "a pipe, a device or a broken link"
            raise CausalFolderError(f"{path}: expected a regular file, found {other}; remove it")
    for name, key in NAMING.items():
        if (folder / name).is_file():
            _check_names(folder / name, read_json(folder / name).get(key) or ())


def _weight_files(folder: Path, kind: FolderKind) -> list[Path]:
    """The files of weights of a folder that holds what a model needs, and needs no code."""
    check_regular_files(folder)
    if (folder / ADAPTER).is_file():
        raise CausalFolderError(
            f"{folder}: expected a whole model, found an adapter ({ADAPTER}); give it behind the "
            f"folder of its model: {kind.mark}DIR,adapter={folder}"
        )
    if not (folder / CONFIG).is_file():
        cure = f"a model made by train-lm is given without {kind.mark}"
        if marian := sorted(path.name for path in folder.glob("*.npz")):
            cure = f"convert {marian[0]} of Marian with transformers' convert_marian_to_pytorch.py"
        raise CausalFolderError(
            f"{folder}: expected config.json of a Hugging Face model, found none; {cure}"
        )
    if not (folder / WEIGHTS).is_file() and not (folder / INDEX).is_file():
        others = sorted(path.name for suffix in OTHERS for path in folder.glob(suffix))
        instead = f"only {others[0]}" if others else "none"
        raise CausalFolderError(
            f"{folder}: expected {WEIGHTS} or {INDEX}, found {instead}; write the model again "
            "with model.save_pretrained(DIR, safe_serialization=True); a model made by "
            f"train-lm is given without {kind.mark}"
        )
    if "auto_map" in read_json(folder / CONFIG):
        raise CausalFolderError(
            f"{folder}: this model comes with code of its own (auto_map in config.json), which is "
            "never run; give a model of an architecture that is in transformers"
        )
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    parts = read_json(folder / INDEX).get("weight_map")
    if not isinstance(parts, dict) or not parts:
        raise CausalFolderError(
            f"{folder / INDEX}: expected a weight_map, found none; copy it again"
        )
    names = sorted({*map(str, parts.values())})
    _check_names(folder / INDEX, names)
    for name in names:
        if not name.endswith(".safetensors") or not (folder / name).is_file():
            raise CausalFolderError(
                f"{folder / INDEX}: expected names of files in safetensors, found {name!r:.80}, "
                "which is none; copy the model again, with all its parts"
            )
    return [folder / name for name in names]


def read_json(path: Path) -> dict[str, Any]:
    """The object of a JSON file, of bounded size."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(MOST_JSON))
    except (ValueError, RecursionError) as fault:
        raise CausalFolderError(f"{path}: expected JSON ({fault}); copy the file again") from None
    if not isinstance(content, dict):
        raise CausalFolderError(
            f"{path}: expected an object of JSON, found a {type(content).__name__}; copy it again"
        )
    return content


def _check_names(path: Path, names: Iterable[object]) -> None:
    """CausalFolderError for a name that leads out of the folder, beyond what is digested."""
    for name in names:
        if not isinstance(name, str) or name != Path(name).name:
            raise CausalFolderError(
                f"{path}: expected names of files beside it, found {name!r:.80}; put the file "
                "there, and name it without a folder"
            )


def folder_digest(folder: Path, adapter: LoraAdapter | None) -> str:
    """SHA-256 of the names and contents of all files that scores may depend on."""
    whole = hashlib.sha256()
    paths = sorted({path for suffix in DIGESTED for path in folder.glob(suffix)})
    with ThreadPoolExecutor() as threads:  # weights are several files, of gigabytes
        for path, digest in zip(paths, threads.map(digest_of, paths), strict=True):
            whole.update(f"{path.name}\0{digest.hex()}\n".encode())
    if adapter is not None:
        whole.update(f"adapter\0{adapter.digest}\n".encode())
    return whole.hexdigest()


def _states(folder: Path, adapter: LoraAdapter | None) -> list[tuple[str, int, int]]:
    """Name, size and time of the last change of what is in a folder, and in that of an adapter."""
    folders = [folder] if adapter is None else [folder, adapter.weights.parent]
    paths = [path for each in folders for path in sorted(each.iterdir())]
    return [(path.name, (s := path.stat()).st_size, s.st_mtime_ns) for path in paths]


def digest_of(path: Path) -> bytes:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


# Tensors


def _outline(folder: Path, files: Sequence[Path], kind: FolderKind) -> Any:
    """The model of a folder on the meta device, where tensors have no memory.

    A small folder may ask for any amount of memory: the configuration is compared with the headers
    of the files.
    """
    import transformers

    stated = read_json(folder / CONFIG)
    with _tensors_of(folder, files) as place:
        held = [part.get_slice(name).get_shape() for name, part in place.items()]
    _check_layers(folder, stated, len(held))
    config = transformers.AutoConfig.from_pretrained(folder, **SAFE)
    other = SEQ2SEQ if getattr(config, "is_encoder_decoder", False) else CAUSAL
    if other is not kind:
        raise CausalFolderError(
            f"{folder}: expected a {kind.name}, found {config.model_type}, a {other.name}; "
            f"give it as --lm NAME={other.mark}{folder}"
        )
    with torch.device("meta"):
        model = getattr(transformers, kind.auto).from_config(config)
    architecture = type(model).__name__
    named = stated.get("architectures") or [architecture]
    named = [*map(str, named if isinstance(named, list) else [named])]
    if architecture.casefold() not in map(str.casefold, named):
        raise CausalFolderError(
            f"{folder}: expected a {kind.name}, {architecture}, found "
            f"{', '.join(named):.80} (architectures in config.json), which {kind.lack}; give "
            f"the folder of the {kind.name}"
        )
    most_absent = PACKED if "quantization_config" in stated else MOST_ABSENT
    if model.num_parameters() > most_absent * sum(map(math.prod, held)):
        _refuse(folder, architecture, (), (), ())
    return model


@contextmanager
def _tensors_of(folder: Path, files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The opened file that holds each tensor, by its name."""
    from safetensors import safe_open

    with ExitStack() as opened:
        parts = [opened.enter_context(safe_open(path, "pt")) for path in files]
        yield _places(folder, files, parts)


def _loaded(
    folder: Path,
    files: Sequence[Path],
    dtype: torch.dtype,
    outline: Any,
    adapter: LoraAdapter | None,
) -> Any:
    """The model of an outline, with each of its tensors from the files and none left over."""
    with _tensors_of(folder, files) as place:
        tensors = {name: part.get_tensor(name) for name, part in place.items()}
        loaded, report = type(outline).from_pretrained(
            None,
            config=outline.config,
            state_dict=tensors,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    wrong = [f"{name} ({product(a)} for {product(b)})" for name, a, b in report["mismatched_keys"]]
    unused = [name for name in report["unexpected_keys"] if not _CONSTANT.fullmatch(name)]
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
    if report["missing_keys"] or unused or wrong:
        _refuse(folder, type(loaded).__name__, report["missing_keys"], unused, wrong)
    if adapter is not None:
        adapter.merge(loaded, tensors)
    return loaded


def _places(folder: Path, files: Sequence[Path], parts: Sequence[Any]) -> dict[str, Any]:
    """The part that holds each tensor; CausalFolderError if that is not the one of the index."""
    held = [(name, n) for n, part in enumerate(parts) for name in part.offset_keys()]
    place = dict(held)
    stated = {} if files == [folder / WEIGHTS] else read_json(folder / INDEX)["weight_map"]
    lost = [name for name, file in stated.items() if files[place.get(name, 0)].name != file]
    lost += [name for name in place if name not in stated and stated]
    if lost or len(place) < len(held):
        twice = sorted({name for name, n in held if place[name] != n})
        raise CausalFolderError(
            f"{folder / INDEX}: expected each tensor in the file that it names, and in no other, "
            f"found {[*lost, *twice][0]} elsewhere; copy the model again, with all its parts"
        )
    return {name: parts[n] for name, n in held}


def _check_layers(folder: Path, stated: Mapping[str, Any], n_tensors: int) -> None:
    """CausalFolderError for more layers than there are tensors: each layer takes time to build."""
    for part in (stated, *(value for value in stated.values() if isinstance(value, dict))):
        for key, value in part.items():
            if _LAYERS.fullmatch(key) and isinstance(value, int) and value > n_tensors:
                raise CausalFolderError(
                    f"{folder}: expected tensors of {value:,} layers ({key} in config.json), found "
                    f"{n_tensors:,} tensors; copy the model again"
                )


def product(shape: Sequence[int]) -> str:
    """A shape in messages."""
    return " × ".join(map(str, shape))


def _refuse(
    folder: Path, kind: str, missing: Iterable[str], unused: Iterable[str], wrong: Iterable[str]
) -> None:
    """CausalFolderError with the first names of tensors that are amiss."""
    lists = {
        "without": sorted(missing),
        "with more, which it does not use:": sorted(unused),
        "with others than its configuration states:": sorted(wrong),
    }
    amiss = "; ".join(
        f"{what} {', '.join(names[:3])}{f' and {len(names) - 3:,} more' * (len(names) > 3)}"
        for what, names in lists.items()
        if names
    )
    raise CausalFolderError(
        f"{folder}: expected the tensors of {kind} in its files, found them "
        f"{amiss or 'smaller than config.json states'}; give the folder of a "
        "model, complete, as its save_pretrained writes it"
    )


# Adapters


@dataclass(frozen=True, slots=True, eq=False)
class LoraAdapter:
    """An adapter; weights: its file; digest: SHA-256 of both files; layers: of the model."""

    weights: Path
    config: Mapping[str, Any]
    digest: str
    layers: tuple[str, ...]

    def merge(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        """Add s B A to the weights of a model, in float32; CausalFolderError if it does not fit.

        tensors: of the model's files, which may be more precise than the model. O(out r in) time
        for each layer, O(out in) memory.
        """
        from safetensors import safe_open

        if getattr(model, "hf_quantizer", None) is not None:
            raise self._fault(f"a model whose weights are numbers, found packed ones; {MERGE}")
        prefix = f"{model.base_model_prefix}."
        of_files = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        with safe_open(self.weights, "pt") as file, torch.no_grad():
            for layer in self.layers:
                weight, turned = self._weight(model, layer)
                a, b = self._factors(file, layer, weight.T if turned else weight)
                alpha = float(self._number("lora_alpha", layer))
                root = math.sqrt if self.config.get("use_rslora") else float
                added = alpha / root(len(a)) * (b @ a)
                base = of_files.get(f"{layer}.weight".removeprefix(prefix), weight)
                if base.shape != weight.shape or not base.to(weight.dtype).equal(weight):
                    base = weight  # it was changed when it was read
                weight.copy_(base.float() + (added.T if turned else added))

    def _weight(self, model: nn.Module, layer: str) -> tuple[Tensor, bool]:
        """The weights of a linear layer, and whether they are (in, out), as in GPT-2."""
        from transformers.pytorch_utils import Conv1D

        module, name = dict(model.named_modules()).get(layer), _factor_names(layer)[0]
        if module is None:
            raise self._fault(
                f"layers of {type(model).__name__}, found {name}, a layer that it does not have; "
                f"{RIGHT_MODEL}"
            )
        if not isinstance(module, nn.Linear | Conv1D):
            raise self._fault(f"linear layers, found {name}, of {type(module).__name__}; {MERGE}")
        parameters = model.named_parameters(remove_duplicate=False)
        shared = {other for other, weight in parameters if weight is module.weight}
        if others := sorted(shared - {f"{layer}.weight"}):
            raise self._fault(
                f"layers that share no weights, found {name}, whose weights are those of "
                f"{', '.join(others)}, too; untie them (tie_word_embeddings=False), {MERGE}"
            )
        return module.weight, isinstance(module, Conv1D)

    def _factors(self, file: Any, layer: str, like: Tensor) -> tuple[Tensor, Tensor]:
        """A (r, in) and B (out, r) of a layer, for weights `like` (out, in), in float32."""
        rank, (rows, columns) = self._number("r", layer), like.shape
        factors = []
        for name, expected in zip(
            _factor_names(layer), ([rank, columns], [rows, rank]), strict=True
        ):
            shape = file.get_slice(name).get_shape()
            if shape != expected:
                shapes = f"{product(expected)}, found {product(shape)}"
                raise self._fault(f"{name} of {shapes}; {RIGHT_MODEL}, or copy the adapter again")
            tensor = file.get_tensor(name)
            if not tensor.is_floating_point() or not tensor.float().isfinite().all():
                raise self._fault(f"finite numbers, found others in {name}; copy the file again")
            factors.append(tensor.float())
        return factors[0], factors[1]

    def _number(self, name: str, layer: str) -> Any:
        """Rank or α of a layer: that of the first key that its name ends with, or of all."""
        patterns = self.config.get(LORA_NUMBERS[name]) or {}
        fits = (value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", layer))
        return next(fits, self.config[name])

    def _fault(self, expected: str) -> CausalFolderError:
        return CausalFolderError(f"{self.weights}: expected {expected}")


def read_adapter(folder: Path | None) -> LoraAdapter | None:
    """The adapter of a folder, without its tensors; CausalFolderError if it is not plain LoRA."""
    if folder is None:
        return None
    config, weights = folder / ADAPTER, folder / ADAPTER_WEIGHTS
    for path in (config, weights):
        if not path.is_file():
            other = f"only {PICKLE}, a pickle" if (folder / PICKLE).exists() else f"no {path.name}"
            raise CausalFolderError(
                f"{folder}: expected {ADAPTER} and {ADAPTER_WEIGHTS} of a LoRA adapter, found "
                f"{other}; write it again with save_pretrained(DIR, safe_serialization=True) of "
                "peft"
            )
    stated = read_json(config)
    _check_adapter(config, stated)
    digest = hashlib.sha256(digest_of(config) + digest_of(weights)).hexdigest()
    return LoraAdapter(weights, stated, digest, _adapter_layers(weights))


def _check_adapter(path: Path, config: Mapping[str, Any]) -> None:
    """CausalFolderError for a configuration of more than plain LoRA, or without its numbers."""
    known = {*LORA_NUMBERS, *LORA_NUMBERS.values(), *LORA_UNUSED}
    for key, value in {"peft_type": None, **config}.items():
        if value not in PLAIN_LORA[key] if key in PLAIN_LORA else value and key not in known:
            raise CausalFolderError(
                f"{path}: expected plain LoRA, found {key} {json.dumps(value):.60}; {MERGE}"
            )
    for key, pattern in LORA_NUMBERS.items():
        value, patterns = config.get(key), config.get(pattern) or {}
        kinds = (int,) if key == "r" else (int, float)
        # PEFT takes regular expressions, too: a stranger's may take time without end
        if (
            not isinstance(patterns, dict)
            or not all(map(_LITERAL.fullmatch, patterns))
            or not all(type(n) in kinds and 0 < n < MOST_ALPHA for n in (value, *patterns.values()))
        ):
            raise CausalFolderError(
                f"{path}: expected positive numbers as {key} and in {pattern}, there by the ends "
                f"of layers' names, found {json.dumps((value, patterns)):.60}; copy the file "
                f"again, or {MERGE}"
            )


def _adapter_layers(path: Path) -> tuple[str, ...]:
    """The layers whose A and B a file has; CausalFolderError if it has anything else."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as fault:
        raise CausalFolderError(
            f"{path}: adapters need the package safetensors ({fault}); install it: "
            "pip install 'rerank-mt[hf]'"
        ) from None
    try:
        with safe_open(path, "pt") as file:
            names = {*file.offset_keys()}
    except SafetensorError as fault:
        raise CausalFolderError(
            f"{path}: expected safetensors ({fault}); copy the file again"
        ) from None
    layers = {match[1] for name in names if (match := _FACTOR.fullmatch(name))}
    pairs = {name for layer in layers for name in _factor_names(layer)}
    if lost := sorted(pairs - names):
        raise CausalFolderError(f"{path}: expected {lost[0]}, found none; copy the file again")
    if names != pairs or not names:
        other = min(names - pairs, default="no tensors")
        raise CausalFolderError(
            f"{path}: expected pairs of lora_A and lora_B, found {other:.200}; {MERGE}"
        )
    return tuple(sorted(layers))


def _factor_names(layer: str) -> tuple[str, str]:
    """The names of A and B of a layer."""
    of_layer = f"base_model.model.{layer}.lora_"
    return f"{of_layer}A.weight", f"{of_layer}B.weight"
