"""Language models and other scorers as options name them: checked, and opened on a device."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.errors import InputError, RerankError, UsageError
from rerank.registry import MODELS, PROGRAM, SCORE_FILES, SCORERS, SIDE_INFORMATION
from rerank.scorers import TOTAL
from rerank.scorers.hugging_face import (
    HUGGING_FACE,
    OF_FOLDERS,
    SEQ2SEQ,
    SERVER,
    SERVER_KEYS,
    TRANSLATION_KEYS,
    WINDOW_KEYS,
    WITH_PROMPT,
    WITHOUT_PROMPT,
    ServerSettings,
    TranslationSettings,
    Window,
    marked,
    shown_keys,
)
from rerank.torchrun import local_number, local_processes
from rerank.values import FOLDER, PART, FileName, Key, settings, split, text_of

if TYPE_CHECKING:
    import torch

    from lm.backend import Backend
    from lm.checkpoint import SavedModel
    from rerank.files.cache import Cache
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.features import FeatureSource
    from rerank.scorers.translation_model import TranslationScorer

LM, SCORER = "lm", "scorer"  # options of language models and of scorers in other packages
REVERSE = "reverse"  # key of models of Hugging Face and of ours: score the source
GLOSSARY = "glossary"  # its option, and its feature
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_DEVICE = re.compile(r"cpu|cuda(:[0-9]{1,2})?")
_CONFIG_BYTES = 1 << 20  # more than any configuration of a model
# of a model, for each thread after the first: below, threads wait for each other longer than they
# compute (`recipes/bench/threads.py`)
_PARAMETERS_A_THREAD = 200_000
_SECRET = re.compile("//[^/]*@")  # in a URL
_UNKNOWN_KEY = re.compile(r".*,([a-z-]+=[^,/]*)", re.DOTALL)


KEYS = {
    "pmi": Key(
        "pmi",
        click.BOOL,
        "features NAMEnull, without the sentences before, and NAMEpmi, the rest, in place of NAME; "
        "what a model reads of the source, earlier sentences included, is in both",
    ),
    "document-cache": Key("document_cache", PART, "share of a document cache in the model"),
    **WINDOW_KEYS,
    **TRANSLATION_KEYS,
    **SERVER_KEYS,
}
OF_OTHERS = WINDOW_KEYS | TRANSLATION_KEYS | SERVER_KEYS


@dataclass(frozen=True, slots=True)
class LanguageModelOption:
    """A value of `--lm NAME=[hf:|seq2seq:]DIR[,KEY=VALUE…]`: a language model as a feature.

    value: the folder, as it was given with the keys of a window, or `openai:` and the name of a
    server's model; window: what a model of Hugging Face or of a server is given, None for one of
    our own; pmi: whether its feature becomes two, with and without context; document_cache: weight
    λ of a document cache (`lm.document_cache`), if any; reverse: whether one of our own scores the
    source given a candidate (`rerank.scorers.channel_model`).
    """

    name: str
    folder: Path
    value: Path
    pmi: bool = False
    document_cache: float | None = None
    reverse: bool = False
    window: Window | TranslationSettings | None = None

    @classmethod
    def of(cls, name: str, value: str | Path) -> LanguageModelOption:
        """The model that a value describes; UsageError for an invalid one."""
        try:
            return _parsed(name, str(value))
        except click.BadParameter as fault:
            raise UsageError(f"--{LM} {fault.message}") from None

    @property
    def option(self) -> str:
        """The option as it was given, for messages."""
        share = "" if self.document_cache is None else f",document-cache={self.document_cache}"
        share += ",reverse=yes" * self.reverse
        return f"--{LM} {self.name}={self.value}{',pmi=yes' * self.pmi}{share}"

    @property
    def provenance(self) -> dict[str, object]:
        """Entries of a weights file about what is made of the model's scores."""
        found: dict[str, object] = {"pmi": True} if self.pmi else {}
        found |= {"reverse": True} if self.reverse else {}
        share = self.document_cache
        return found if share is None else {**found, "document_cache": share}

    def as_tuned(self, provenance: Mapping[str, object]) -> LanguageModelOption:
        """The option with what was chosen for the model when weights were tuned, if anything was.

        provenance: of the weights.
        """
        models = provenance.get("models")
        stored = models.get(self.name) if isinstance(models, dict) else None
        begin = stored.get("begin") if isinstance(stored, dict) else None
        window = self.window
        if not (isinstance(window, Window) and window.begin is None and isinstance(begin, str)):
            return self
        return replace(self, window=replace(window, begin=begin))


def _parsed(name: str, text: str) -> LanguageModelOption:
    """The model that a value describes; BadParameter for an invalid one."""
    found: dict[str, Any] = {}
    try:
        rest, given = split(text, KEYS)
        mark, folder = marked(rest)
        own = OF_FOLDERS[mark].keys if mark else {}
        unknown = _UNKNOWN_KEY.fullmatch(rest)
        if unknown and not Path(folder).exists():
            raise click.BadParameter(
                f"expected a folder, or one of {', '.join(KEYS)} behind it, "
                f"found {unknown.group(1)}"
            )
        if not folder:
            raise click.BadParameter(f"expected {mark}DIR, the folder of a Hugging Face model")
        if mark == SERVER:
            check_server(folder, given)
        for key, value in given.items():
            if mark and key == "document-cache":
                raise click.BadParameter(
                    f"{folder} is a Hugging Face model, whose tokens are not words; give "
                    "--scorer NAME=document-cache beside it"
                )
            if key in OF_OTHERS.keys() - own and (mark or key != REVERSE):
                kinds = [known for known, kind in OF_FOLDERS.items() if key in kind.keys]
                places = [f"{one}{'URL' if one == SERVER else 'DIR'}" for one in kinds]
                whose = "a server" if kinds == [SERVER] else "a Hugging Face model"
                raise click.BadParameter(f"{key} is for {' and '.join(places)}, {whose}")
            if key in (WITHOUT_PROMPT if "prompt" in given else WITH_PROMPT):
                which = "without" if "prompt" in given else "with"
                raise click.BadParameter(f"{key} is for models {which} prompt=FILE; leave it out")
            try:
                known = own.get(key) or KEYS[key]
                found[known.field] = known.type.convert(value, None, None)
            except click.BadParameter as fault:
                raise click.BadParameter(f"found {key}={value}: {fault.message}") from None
    except click.BadParameter as fault:
        told = _SECRET.sub("//…@", text)
        raise click.BadParameter(f"{name}={told}: {fault.message}") from None
    window = {known.field: found.pop(known.field) for key, known in own.items() if key in given}
    told = shown_keys(mark, given)
    if mark == SERVER:
        window["url"], folder, told = folder, f"{mark}{given['model']}", ""
        rest = folder
    value = FOLDER.convert(f"{rest}{told}", None, None)
    return LanguageModelOption(
        name,
        Path(folder),
        value,
        **found,
        window=OF_FOLDERS[mark].record(**window) if mark else None,
    )


def check_server(url: str, given: Mapping[str, str]) -> None:
    """BadParameter for no URL of a server, or no name of a model behind it."""
    from rerank.files.server import url_of

    try:
        url_of(url)
    except ValueError as fault:
        keys = ", ".join(SERVER_KEYS)
        raise click.BadParameter(f"{fault}, and one of {keys} behind it") from None
    if "model" not in given:
        raise click.BadParameter("expected ,model=NAME behind the URL")


class LanguageModelValue(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """NAME=[MARK:]DIR[,KEY=VALUE…] as a `LanguageModelOption`; in TOML a table with a path."""

    name = "model"
    text_of = staticmethod(text_of)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> LanguageModelOption:
        """The option."""
        if isinstance(value, LanguageModelOption):
            return value
        name, _, text = str(value).partition("=")
        if not (name and text):
            self.fail(
                f"expected NAME=DIR, for example codclm=models/codclm; found {value!r:.60}",
                param,
                ctx,
            )
        return _parsed(name, text)


GLOSSARY_KEYS = {
    "case": Key("case", click.BOOL, "whether capitals must be the same"),
    "inflection": Key("inflection", click.BOOL, "whether words with other endings count, too"),
}


class GlossaryName(FileName):
    """FILE[,case=yes][,inflection=yes] as it is given."""

    def parsed(self, value: str) -> str:
        """The value as it is given."""
        path, _ = glossary_value(value)
        super().parsed(path)
        return value


def glossary_value(value: str) -> tuple[str, dict[str, bool]]:
    """The file of a value of `--glossary`, and its keys; BadParameter for what is no yes or no."""
    path, given = split(value, GLOSSARY_KEYS)
    return path, settings(given, GLOSSARY_KEYS, None, None)


def check_names(
    options: Mapping[str, Sequence[tuple[str, str | Path]]], pmi: Collection[str] = ()
) -> None:
    """UsageError for invalid and repeated names of features.

    options: (NAME, value) pairs by option, without its dashes; pmi: NAMEs of models whose feature
    becomes two.
    """
    labels: dict[str, str] = {}
    for option, given in options.items():
        for name, value in given:
            own = f"--{option} {name}={value}"
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"{own}: expected a NAME of letters and digits that begins with a letter, "
                    "because it becomes a label of the list"
                )
            if name == TOTAL:
                raise UsageError(f"{own}: {TOTAL!r} is the list's total; choose another NAME")
            columns = SCORE_FILES[option].columns if option in SCORE_FILES else ()
            ends = ("oov",) if option == LM else columns
            added = {name, *(name + end for end in ends)}
            added |= {f"{name}pmi", f"{name}null"} if option == LM and name in pmi else set()
            if taken := sorted(added & labels.keys()):
                raise UsageError(
                    f"{own}: the name is taken by another --{labels[taken[0]]}; choose another NAME"
                )
            labels |= dict.fromkeys(added, option)


def open_models(
    models: Sequence[LanguageModelOption],
    cache: Cache | None,
    *,
    device: str,
    threads: int | None,
    dtype: str,
    deterministic: bool,
) -> list[FeatureSource]:
    """The scorers of `--lm`, in order. UsageError for the PMI form of a model without context."""
    if not models:
        return []
    from lm.backend import Backend

    # called when the model has set the number of threads, which a backend keeps
    backend = partial(
        Backend, choose_device(device, threads), dtype=dtype, deterministic=deterministic
    )
    found: list[FeatureSource] = []
    for model in models:
        scorer: FeatureSource
        if (window := model.window) is None:
            scorer = _open_own(model, open_model(model.value, device, threads), backend, cache)
        elif isinstance(window, ServerSettings):
            from rerank.scorers.server_model import ServerScorer

            scorer = ServerScorer(model.name, window, cache, pmi=model.pmi)
        else:
            own = window.dtype if isinstance(window, Window) else None
            new = partial(backend, dtype=own or dtype)
            scorer = _open_transformer(model, window, new, cache, threads)
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
        found.append(scorer)
    return found


def _open_own(
    model: LanguageModelOption,
    saved: SavedModel,
    new_backend: Callable[[], Backend],
    cache: Cache | None,
) -> FeatureSource:
    """The scorer of a model of our own; UsageError if it is to be reversed and cannot be."""
    from rerank.scorers.channel_model import ChannelModel
    from rerank.scorers.language_model import LanguageModel

    if not model.reverse:
        pmi, share = model.pmi, model.document_cache
        return LanguageModel(model.name, saved, new_backend(), cache, pmi=pmi, document_cache=share)
    if model.pmi or model.document_cache is not None:
        other = "pmi" if model.pmi else "document-cache"
        raise UsageError(f"{model.option}: {other} is not for reverse=yes; leave it out")
    if not saved.model.context.alone:
        raise UsageError(
            f"{model.option}: reverse=yes is for models of attention over the words of a source "
            "sentence; leave it out, or train one: train-lm --model attention --train SOURCE "
            "--source TARGET"
        )
    return ChannelModel(model.name, saved, new_backend(), cache)


def _open_transformer(
    model: LanguageModelOption,
    window: Window | TranslationSettings,
    new_backend: Callable[[], Backend],
    cache: Cache | None,
    threads: int | None,
) -> CausalLM | TranslationScorer:
    """The scorer of a model of Hugging Face; InputError if the folder is not valid."""
    from lm.causal_folder import CausalFolderError, open_causal_model
    from lm.lora import read_adapter
    from lm.seq2seq import open_translation_model
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.prompts import PromptedLM
    from rerank.scorers.translation_model import TranslationScorer

    name, pmi = model.name, model.pmi
    try:
        backend = new_backend()
        device, dtype, adapter = backend.device, backend.dtype, read_adapter(window.adapter)
        scorer: CausalLM | TranslationScorer
        if isinstance(window, Window):
            causal = open_causal_model(model.folder, device, dtype, adapter)
            use_cores(causal.model.num_parameters(), threads)
            kind = CausalLM if window.prompt is None else PromptedLM
            scorer = kind(name, causal, window, new_backend(), cache, pmi=pmi)
        else:
            given = model.folder, window.src, window.tgt, device, dtype
            opened = open_translation_model(*given, adapter=adapter)
            use_cores(opened.model.num_parameters(), threads)
            scorer = TranslationScorer(name, opened, window, new_backend(), cache, pmi=pmi)
        scorer.check()
    except CausalFolderError as fault:
        raise InputError(str(fault)) from None
    except ValueError as fault:
        raise InputError(f"{model.folder}: {fault}") from None
    return scorer


def open_for_texts(folder: Path, device: str, threads: int | None) -> CausalLM | None:
    """The model of `hf:DIR[,KEY=VALUE…]`, to score texts with; None for another folder."""
    from lm.backend import Backend
    from rerank.scorers.causal_lm import CausalLM

    if not str(folder).startswith(HUGGING_FACE):
        return None
    model = LanguageModelOption.of("lm", folder)
    if model.window is None or model.pmi:
        raise UsageError(f"--lm {folder}: pmi is for lists of candidates; leave it out")
    own = model.window.dtype if isinstance(model.window, Window) else None
    backend = partial(Backend, choose_device(device, threads), dtype=own or "float32")
    named = replace(model, name=str(model.folder))
    scorer = _open_transformer(named, model.window, backend, None, threads)
    if scorer.side_information:
        raise UsageError(
            f"--lm {folder}: its prompt shows the source, which this command does not read; give a "
            "prompt of targets_before alone"
        )
    return scorer if isinstance(scorer, CausalLM) else None


def open_scorer(name: str, entry: str, cache: Cache | None) -> FeatureSource:
    """The scorer of `--scorer NAME=ENTRY[:ARGUMENT]`, made by its factory."""
    from rerank.scorers.plugin import PluginScorer

    plugin, given, argument = entry.partition(":")
    factory = SCORERS.named(plugin)
    if plugin == PROGRAM:
        program: FeatureSource = factory(name, argument, cache)
        return program
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
    knows the model, or as many as OMP_NUM_THREADS says.
    """
    import torch

    if threads is not None or not _chosen_by_the_environment():
        torch.set_num_threads(threads or 1)
    if name in ("auto", "cuda") and local_processes() > 1 and torch.cuda.is_available():
        return torch.device("cuda", local_number() % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not _DEVICE.fullmatch(name):
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


def use_cores(parameters: int, threads: int | None) -> None:
    """Give a model of so many parameters the CPU threads that it can keep busy.

    Small products are quicker in one thread; larger models get more, up to a thread for each core
    that Slurm, containers or taskset leave, of which processes of `torchrun` on one machine have
    equal shares. Nothing changes where the user
    chose the number, by `threads` or OMP_NUM_THREADS, or where a larger model has more already.
    """
    import torch

    if threads is None and not _chosen_by_the_environment():
        here = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1
        most = max(1, cores // local_processes())
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

    if str(folder).startswith(SEQ2SEQ):
        raise UsageError(
            f"--lm {folder}: a sequence-to-sequence model scores the candidates of a source; give "
            "it to decode, score or tune-mert, with --source FILE"
        )
    if str(folder).startswith(SERVER):
        raise UsageError(
            f"--lm {SERVER}…: a server scores candidates of lists; give it to decode, score or "
            "tune-mert"
        )
    if str(folder).startswith(HUGGING_FACE):
        raise UsageError(
            f"--lm {folder}: this command takes models made by train-lm; Hugging Face models are "
            "for perplexity, lm-eval, and the commands that read k-best lists"
        )
    if not folder.exists() or _is_transformers(folder):
        found = "a Hugging Face model" if folder.exists() else "none"
        raise InputError(
            f"{folder}: expected a folder made by `rerank train-lm`, found {found}; the folder of "
            "a Hugging Face model is given as --lm NAME=hf:DIR, or NAME=seq2seq:DIR"
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
