"""Folders of Hugging Face causal language models: checked, digested and loaded.

Only safetensors are read, no code from the folder is run, and nothing is looked up on the network.
The package `transformers` (extra `hf`) is imported when a folder is opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

UNLIMITED = 1 << 30  # positions of a model that states no number of them
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
DIGESTED = ("*.safetensors", "*.json", "*.model", "*.txt", "*.jinja")  # weights, tokenizer, shape
_BLOCK = 1 << 20


class CausalFolderError(ValueError):
    """A folder that is not a usable model, or a missing package; the message says what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class CausalModel:
    """A causal language model that was read back.

    model: of transformers, in evaluation mode; digest: SHA-256 of its files; positions: most
    tokens of a text with its context; begin: id of the token that texts begin with.
    """

    model: Any
    tokenizer: Any
    digest: str
    positions: int
    begin: int

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the tokens of texts, without special tokens; what looks like one is text."""
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
        )["input_ids"]
        return found


def open_causal_model(
    folder: Path, device: torch.device | str = "cpu", dtype: str = "float32"
) -> CausalModel:
    """The causal language model of a folder; CausalFolderError if there is none.

    dtype: `float32` or `bfloat16`, of weights and of all that is computed.
    """
    _check_files(folder)
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
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, use_safetensors=True, dtype=getattr(torch, dtype), **safe
        )
    except Exception as fault:  # of any kind: transformers documents none
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise CausalFolderError(
            f"{folder}: transformers {transformers.__version__} cannot load it as a causal "
            f"language model: {reason:.300}; give a folder written by save_pretrained, with its "
            "tokenizer"
        ) from None
    begin = tokenizer.bos_token_id
    begin = tokenizer.eos_token_id if begin is None else begin
    if begin is None:
        raise CausalFolderError(
            f"{folder}: expected a tokenizer with a bos or an eos token, which texts begin with, "
            "found neither; name one in tokenizer_config.json"
        )
    positions = _positions(model.config.get_text_config())
    return CausalModel(model.to(device).eval(), tokenizer, _digest(folder), positions, begin)


def _check_files(folder: Path) -> None:
    """CausalFolderError unless a folder has a configuration and safetensors, and needs no code."""
    if not folder.is_dir():
        raise CausalFolderError(
            f"{folder}: expected a folder written by save_pretrained, found "
            f"{'a file' if folder.exists() else 'none'}; models are not downloaded: give the path "
            "of a folder on this machine"
        )
    if not (folder / "config.json").is_file():
        raise CausalFolderError(
            f"{folder}: expected config.json of a Hugging Face model, found none; a model made by "
            "train-lm is given without hf:"
        )
    if not any(folder.glob("*.safetensors")):
        pickles = sorted(path.name for suffix in PICKLES for path in folder.glob(suffix))
        found = f"only {pickles[0]}, a pickle, which may run code" if pickles else "none"
        raise CausalFolderError(
            f"{folder}: expected weights in *.safetensors, found {found}; write the model again "
            "with model.save_pretrained(DIR, safe_serialization=True)"
        )
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except ValueError as fault:
        raise CausalFolderError(f"{folder}/config.json: expected JSON ({fault})") from None
    if isinstance(config, dict) and "auto_map" in config:
        raise CausalFolderError(
            f"{folder}: this model comes with code of its own (auto_map in config.json), which is "
            "never run; give a model of an architecture that is in transformers"
        )


def _positions(config: Any) -> int:
    """Most tokens that each token may attend to and that have positions."""
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "sliding_window")]
    return min([UNLIMITED, *(n for n in limits if isinstance(n, int) and n > 0)])


def _digest(folder: Path) -> str:
    """SHA-256 of the names and contents of all files that scores may depend on."""
    whole = hashlib.sha256()
    for path in sorted({path for suffix in DIGESTED for path in folder.glob(suffix)}):
        own = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                own.update(block)
        whole.update(f"{path.name}\0{own.hexdigest()}\n".encode())
    return whole.hexdigest()
