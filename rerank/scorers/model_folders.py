"""Folders of trained language models, read for use, and the device and cores that they run on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import InputError, RerankError, UsageError
from rerank.registry import MODELS, SIDE_INFORMATION
from rerank.torchrun import local_number, local_processes

if TYPE_CHECKING:
    import torch

    from lm.checkpoint import SavedModel

HUGGING_FACE = "hf:"  # before the folder of a causal language model
_CONFIG_BYTES = 1 << 20  # more than any configuration of a model
_NAME = re.compile(r"cpu|cuda(:[0-9]{1,2})?")
# of a model, for each thread after the first: below, threads wait for each other longer than they
# compute (`recipes/bench/threads.py`)
_PARAMETERS_A_THREAD = 200_000


def choose_device(name: str, threads: int | None = None) -> torch.device:
    """The device called `name`; `auto` is CUDA where there is one, else the CPU.

    Processes of `torchrun` on one machine take its CUDA devices in turn, unless one is named.
    threads: of the process for tensors on the CPU, from now on; None is one, until `use_cores`
    knows the model, or as many as OMP_NUM_THREADS says.
    """
    import torch

    if threads is not None or not _chosen_by_the_environment():
        torch.set_num_threads(threads or 1)
    if name in ("auto", "cuda") and local_processes() > 1 and torch.cuda.is_available():
        return torch.device("cuda", local_number() % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not _NAME.fullmatch(name):
        raise UsageError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"--device {name}: no CUDA device is usable here; use --device cpu, or install a "
            "CUDA build of torch and check nvidia-smi"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"--device {name}: there are {torch.cuda.device_count()} CUDA devices here, counted "
            "from 0"
        )
    return device


def cores() -> int:
    """CPU cores that this process may run on, as Slurm, containers or taskset leave them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_cores(parameters: int, threads: int | None) -> None:
    """Give a model of so many parameters the CPU threads that it can keep busy.

    Small products are quicker in one thread; larger models get more, up to a thread a core, of
    which processes of `torchrun` on one machine have equal shares. Nothing changes where the user
    chose the number, by `threads` or OMP_NUM_THREADS, or where a larger model has more already.
    """
    import torch

    if threads is None and not _chosen_by_the_environment():
        most = max(1, cores() // local_processes())
        own = min(most, 1 + parameters // _PARAMETERS_A_THREAD)
        torch.set_num_threads(max(own, torch.get_num_threads()))


def _chosen_by_the_environment() -> bool:
    """Whether OMP_NUM_THREADS is the user's: `torchrun` sets it to 1 where the user has not."""
    chosen = os.environ.get("OMP_NUM_THREADS")
    return chosen is not None and not (local_processes() > 1 and chosen == "1")


def open_model(folder: Path, device: str = "auto", threads: int | None = None) -> SavedModel:
    """A model folder, computing in `threads` or as many as `use_cores` finds; else InputError."""
    from lm.checkpoint import load_model
    from lm.model import n_parameters

    if str(folder).startswith(HUGGING_FACE):
        raise UsageError(
            f"--lm {folder}: this command takes models made by train-lm; Hugging Face models are "
            "scorers of decode, score, tune-mert and the others that read k-best lists"
        )
    if not folder.exists() or _is_transformers(folder):
        found = "a Hugging Face model" if folder.exists() else "none"
        raise InputError(
            f"{folder}: expected a folder made by `rerank train-lm`, found {found}; the folder of "
            "a Hugging Face model is given as --lm NAME=hf:DIR"
        )
    with valid_files():
        saved = load_model(folder, choose_device(device, threads), MODELS)
    use_cores(n_parameters(saved.model), threads)
    return saved


def _is_transformers(folder: Path) -> bool:
    """Whether a folder was written by `save_pretrained` of Hugging Face's transformers."""
    config = folder / "config.json"
    if not config.is_file():  # a pipe would block
        return False
    try:
        with config.open("rb") as file:
            found = json.loads(file.read(_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and ("model_type" in found or "architectures" in found)


def open_forward_model(
    folder: Path, device: str = "auto", threads: int | None = None
) -> SavedModel:
    """A model that reads documents forward, for texts without later sentences.

    UsageError for another one; InputError if the folder is not valid.
    """
    saved = open_model(folder, device, threads)
    if saved.model.config.reverse_documents:
        raise UsageError(
            f"--lm {folder}: this model reads documents from the last sentence to the first, and "
            "here no sentence is after the one in question; give a model trained without "
            "--reverse-documents"
        )
    return saved


def refuse(saved: SavedModel, folder: str | Path, command: str) -> None:
    """UsageError for a model that needs side information, in a command that reads none.

    Also for one that is given the next sentence, where there is none.
    """
    from lm.side_information import information_of

    if not saved.model.causal:
        raise UsageError(
            f"{folder}: the model is given the next sentence, which {command} does not have; "
            "choose another model"
        )
    for kind in information_of(saved.model.context, training=False):
        raise UsageError(
            f"{folder}: the model needs {SIDE_INFORMATION[kind]}, which {command} does not read; "
            "choose another model"
        )


@contextmanager
def valid_files() -> Iterator[None]:
    """InputError for files of a model that are not valid."""
    from lm.checkpoint import ModelError

    try:
        yield
    except ModelError as fault:
        raise InputError(str(fault)) from None


@contextmanager
def broken_models(lm: Path) -> Iterator[None]:
    """RerankError, with the folder of a model, for scores that are no log-probabilities."""
    from lm.scoring import LogProbError

    try:
        yield
    except LogProbError as fault:
        raise RerankError(f"{lm}: {fault}") from None
