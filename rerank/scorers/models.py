"""Language models and other scorers of options, opened on a device."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rerank.errors import InputError, RerankError, UsageError
from rerank.files.terminal import local_number, local_processes
from rerank.registry import JUDGE, MODELS, PROGRAM, SCORERS, SIDE_INFORMATION
from rerank.scorers.model_options import (
    HUGGING_FACE,
    SEQ2SEQ,
    SERVER,
    LanguageModelOption,
    ServerSettings,
    TranslationSettings,
    Window,
)

if TYPE_CHECKING:
    import torch

    from lm.ctranslate2 import ConvertedEngine
    from lm.folders import SavedModel
    from lm.model import DocumentLM
    from lm.seq2seq import TranslationEngine
    from rerank.files.cache import Cache
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.features import FeatureSource
    from rerank.scorers.translation_model import TranslationScorer


_DEVICE = re.compile(r"cpu|mps|cuda(:[0-9]{1,2})?")
_OF_TRANSFORMERS = {"model_type", "architectures"}  # keys of their configurations
_CONFIG_BYTES = 1 << 20  # more than any configuration of a model
# of a model, for each thread after the first: below, threads wait for each other longer than they
# compute (recipes/bench, *Threads*)
_PARAMETERS_A_THREAD = 200_000


def open_models(
    models: Sequence[LanguageModelOption],
    cache: Cache | None,
    *,
    device: str,
    threads: int | None,
    dtype: str,
    deterministic: bool,
) -> list[FeatureSource]:
    """The scorers of `--lm`, in order. UsageError for the PMI form of a model without context.

    The tensors of models of `train-lm` are read when something is first computed with them.
    """
    if models and device not in ("auto", "cpu"):
        choose_device(device, threads)  # one that is not there is refused though nothing computes
    scorers: list[FeatureSource] = []
    for model in models:
        scorer: FeatureSource
        if (window := model.window) is None:
            saved = open_model(model.value, device, threads)
            scorer = _scorer_of_ours(model, saved, (dtype, deterministic), cache)
        elif isinstance(window, ServerSettings):
            from rerank.scorers.server_model import ServerScorer

            scorer = ServerScorer(model.name, window, cache, pmi=model.pmi)
        else:
            machine = _Machine(choose_device(device, threads), threads, dtype, deterministic)
            scorer = _open_transformer(model, window, machine, cache)
        if model.pmi and scorer.order == 0:
            cure = "give the model a document cache: document-cache=0.1"
            cure = cure if model.window is None else "give a window of a sentence or more"
            raise UsageError(
                f"{model.option}: {model.folder} is a model without context, whose PMI is always "
                f"0; leave the option out, or {cure}"
            )
        if model.pmi and not scorer.causal:
            raise UsageError(
                f"{model.option}: {model.folder} is a model that is given the next sentence, too, "
                "for which there is no PMI form; leave the option out"
            )
        scorers.append(scorer)
    return scorers


def _scorer_of_ours(
    model: LanguageModelOption,
    saved: SavedModel,
    arithmetic: tuple[str, bool],
    cache: Cache | None,
) -> FeatureSource:
    """The scorer of a model of `train-lm`; UsageError if it is to be reversed and cannot be."""
    from rerank.scorers.language_model import ChannelModel, LanguageModel

    if not model.reverse:
        if saved.about.get("reverse"):
            raise UsageError(
                f"{model.option}: a model of the source given the target, of train-lm --reverse; "
                "write ,reverse=yes behind the folder"
            )
        return LanguageModel(
            model.name,
            saved,
            cache,
            arithmetic=arithmetic,
            pmi=model.pmi,
            document_cache=model.document_cache,
        )
    if model.pmi or model.document_cache is not None:
        other = "pmi" if model.pmi else "document-cache"
        raise UsageError(f"{model.option}: {other} is not for reverse=yes; leave it out")
    if not saved.facts.alone:
        raise UsageError(
            f"{model.option}: reverse=yes is for models of attention over the words of a source "
            "sentence; leave it out, or train one: train-lm --model attention --reverse"
        )
    return ChannelModel(model.name, saved, cache, arithmetic=arithmetic)


@dataclass(frozen=True, slots=True)
class _Machine:
    """What a transformer runs on; the fields are keywords of `open_models`."""

    device: torch.device
    threads: int | None
    dtype: str = "float32"
    deterministic: bool = False

    def engine(self, folder: Path, make: Callable[..., Any], model: Any) -> Any:
        """The engine of a model, whose tensors are read; InputError if they are not valid."""
        from lm.backend import Backend

        with _usable(folder):
            use_cores(model.model.num_parameters(), self.threads)
            backend = Backend(self.device, dtype=self.dtype, deterministic=self.deterministic)
            engine = make(model, backend)
            engine.check()
        return engine


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    """InputError for the folder of a transformer that is not valid, or of no use here."""
    from lm.causal_folder import CausalFolderError

    try:
        yield
    except CausalFolderError as fault:
        raise InputError(str(fault)) from None
    except ValueError as fault:
        raise InputError(f"{folder}: {fault}") from None


def _open_transformer(
    model: LanguageModelOption,
    window: Window | TranslationSettings,
    machine: _Machine,
    cache: Cache | None,
) -> CausalLM | TranslationScorer:
    """The scorer of a model of Hugging Face; InputError if the folder is not valid.

    The model's tensors are read when something is first computed with it.
    """
    from lm.causal import CausalEngine, open_causal_model
    from lm.causal_folder import read_adapter
    from lm.seq2seq import TranslationEngine, open_translation_model
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.prompts import PromptedLM
    from rerank.scorers.translation_model import TranslationScorer

    name, folder = model.name, model.folder
    if isinstance(window, Window) and window.dtype is not None:
        machine = replace(machine, dtype=window.dtype)
    device, dtype = machine.device, machine.dtype
    how: dict[str, Any] = {"arithmetic": (dtype, machine.deterministic), "pmi": model.pmi}
    scorer: CausalLM | TranslationScorer
    with _usable(folder):
        adapter = read_adapter(window.adapter)
        if isinstance(window, Window):
            causal = open_causal_model(folder, device, dtype, adapter)
            new_engine = partial(machine.engine, folder, CausalEngine)
            kind = CausalLM if window.prompt is None else PromptedLM
            scorer = kind(name, causal, window, new_engine, cache, **how)
        else:
            languages = window.src, window.tgt
            seq2seq = open_translation_model(folder, *languages, device, dtype, adapter=adapter)
            new_engine = partial(machine.engine, folder, TranslationEngine)
            scorer = TranslationScorer(name, seq2seq, window, new_engine, cache, **how)
        scorer.check()
    return scorer


def open_engine(
    model: LanguageModelOption, device: str, threads: int | None, *, converted: bool
) -> tuple[TranslationEngine | ConvertedEngine, TranslationSettings]:
    """The model of a folder of Hugging Face or of CTranslate2; InputError for an invalid one."""
    settings = model.window
    if not isinstance(settings, TranslationSettings):
        raise TypeError(type(settings))
    if converted:
        from lm.ctranslate2 import open_converted_model

        languages, chosen = (settings.src, settings.tgt), choose_device(device, threads)
        with _usable(model.folder):
            return open_converted_model(model.folder, *languages, chosen, threads), settings
    machine = _Machine(choose_device(device, threads), threads)
    engine: Any = _open_transformer(model, settings, machine, None).engine
    return engine, settings


def open_for_texts(folder: Path, device: str, threads: int | None) -> CausalLM | None:
    """The model of `hf:DIR[,KEY=VALUE…]`, to score texts with; None for another folder."""
    from rerank.scorers.causal_lm import CausalLM

    if not str(folder).startswith(HUGGING_FACE):
        return None
    model = LanguageModelOption.of("lm", folder)
    if model.window is None or model.pmi:
        raise UsageError(f"--lm {folder}: pmi is for lists of candidates; leave it out")
    machine = _Machine(choose_device(device, threads), threads)
    named = replace(model, name=str(model.folder))
    scorer = _open_transformer(named, model.window, machine, None)
    if scorer.side_information:
        raise UsageError(
            f"--lm {folder}: its prompt shows the source, which this command does not read; give a "
            "prompt of targets_before alone"
        )
    return scorer if isinstance(scorer, CausalLM) else None


def open_scorer(
    name: str, entry: str, cache: Cache | None, of_models: Mapping[str, Any]
) -> FeatureSource:
    """The scorer of `--scorer NAME=ENTRY[:ARGUMENT]`, made by its factory.

    of_models: keywords of `open_models`.
    """
    from rerank.scorers.plugin import PluginScorer

    plugin, given, argument = entry.partition(":")
    factory = SCORERS.named(plugin)
    if plugin in (PROGRAM, JUDGE):
        asked: FeatureSource = factory(name, argument, cache, of_models)
        return asked
    try:
        scorer = factory(argument) if given else factory()
    except RerankError:
        raise
    except (Exception, SystemExit) as fault:
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise RerankError(
            f"--scorer {name}={entry}: the scorer cannot be made: {reason}; check the ARGUMENT "
            "that it expects; for a function of a document, the entry point names a function "
            "without ARGUMENT that returns it"
        ) from fault
    return PluginScorer(name, scorer, identity=(plugin, argument), cache=cache)


# Folders of language models, and what they run on


def choose_device(name: str, threads: int | None = None) -> torch.device:
    """The device called `name`; `auto` is CUDA where there is one, else the CPU.

    Processes of `torchrun` on one machine take its CUDA devices in turn, unless one is named.
    threads: of the process for tensors on the CPU, from now on; None is one, until `use_cores`
    knows a model, or as many as OMP_NUM_THREADS says.
    """
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    elif not _chosen_by_the_environment():
        _begin_in_one_thread()
    if name in ("auto", "cuda") and local_processes() > 1 and torch.cuda.is_available():
        return torch.device("cuda", local_number() % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not _DEVICE.fullmatch(name):
        raise UsageError(f"--device {name}: expected auto, cpu, cuda, cuda:N or mps")
    device = torch.device("mps", 0) if name == "mps" else torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"--device {name}: no CUDA device is usable here; use --device cpu, or install a "
            "CUDA build of torch and check nvidia-smi"
        )
    if name == "mps" and not torch.backends.mps.is_available():
        raise UsageError(
            "--device mps: Metal is not usable here; use --device cpu, or torch for macOS on a "
            "Mac with an Apple processor"
        )
    if name == "mps" and local_processes() > 1:
        raise UsageError("--device mps: torchrun's processes cannot share it; use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"--device {name}: there are {torch.cuda.device_count()} CUDA devices here, counted "
            "from 0"
        )
    return device


@cache
def _begin_in_one_thread() -> None:
    """Have torch compute in one thread, once: a model that is opened later leaves others theirs."""
    import torch

    torch.set_num_threads(1)


def use_cores(parameters: int, threads: int | None) -> None:
    """Give a model of so many parameters the CPU threads that it can keep busy.

    Small products are quicker in one thread; larger models get more, up to a thread for each core
    that Slurm, containers or taskset leave, of which processes of `torchrun` on one machine have
    equal shares. Nothing changes where the user chose the number, by `threads` or OMP_NUM_THREADS,
    or where a larger model has more already.
    """
    import torch

    if threads is None and not _chosen_by_the_environment():
        here = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1
        most = max(1, cores // local_processes())
        busy = min(most, 1 + parameters // _PARAMETERS_A_THREAD)
        torch.set_num_threads(max(busy, torch.get_num_threads()))


def _chosen_by_the_environment() -> bool:
    """Whether OMP_NUM_THREADS is the user's: `torchrun` sets it to 1 where the user has not."""
    chosen = os.environ.get("OMP_NUM_THREADS")
    return chosen is not None and not (local_processes() > 1 and chosen == "1")


def open_model(folder: Path, device: str = "auto", threads: int | None = None) -> SavedModel:
    """A model folder, whose tensors are read when `model` is first asked for; else InputError.

    It computes in `threads`, or as many as `use_cores` finds.
    """
    from lm.folders import open_folder

    def read(saved: SavedModel) -> DocumentLM:
        from lm.checkpoint import read_model
        from lm.model import n_parameters

        with valid_files():
            model = read_model(saved, choose_device(device, threads), MODELS)
        use_cores(n_parameters(model), threads)
        return model

    refused = {
        SEQ2SEQ: f"{folder}: a sequence-to-sequence model scores the candidates of a source; give "
        "it to decode, score or tune-mert, with --source FILE",
        SERVER: f"{SERVER}…: a server scores candidates of lists; give it to decode, score or "
        "tune-mert",
        HUGGING_FACE: f"{folder}: this command takes models made by train-lm; Hugging Face models "
        "are for perplexity, lm-eval, and the commands that read k-best lists",
    }
    for mark, why in refused.items():
        if str(folder).startswith(mark):
            raise UsageError(f"--lm {why}")
    if not folder.exists() or _is_transformers(folder):
        other = "a Hugging Face model" if folder.exists() else "none"
        raise InputError(
            f"{folder}: expected a folder made by `rerank train-lm`, found {other}; the folder of "
            "a Hugging Face model is given as --lm NAME=hf:DIR, or NAME=seq2seq:DIR"
        )
    with valid_files():
        return open_folder(folder, MODELS, read)


def _is_transformers(folder: Path) -> bool:
    """Whether a folder was written by `save_pretrained` of Hugging Face's transformers."""
    config = folder / "config.json"
    if not config.is_file():  # a pipe would block
        return False
    try:
        with config.open("rb") as file:
            stated = json.loads(file.read(_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(stated, dict) and not stated.keys().isdisjoint(_OF_TRANSFORMERS)


def open_forward_model(
    folder: Path, device: str = "auto", threads: int | None = None
) -> SavedModel:
    """A model that reads documents forward, for texts without later sentences.

    UsageError for another one; InputError if the folder is not valid.
    """
    saved = open_model(folder, device, threads)
    if saved.config.reverse_documents:
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
    if not saved.facts.causal:
        raise UsageError(
            f"{folder}: the model is given the next sentence, which {command} does not have; "
            "choose another model"
        )
    for kind in saved.facts.information:
        raise UsageError(
            f"{folder}: the model needs {SIDE_INFORMATION[kind]}, which {command} does not read; "
            "choose another model"
        )


@contextmanager
def valid_files() -> Iterator[None]:
    """InputError for files of a model that are not valid."""
    from lm.folders import ModelError

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
