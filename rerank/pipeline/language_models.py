"""`rerank train-lm` and `rerank perplexity`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rerank
from rerank.errors import InputError, RerankError, StoppedEarly, UsageError
from rerank.files.inputs import InputFiles
from rerank.files.interrupts import Interrupts
from rerank.files.lines import digest, read_lines
from rerank.files.outputs import check_folder, check_outputs
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.pipeline.devices import choose_device, choose_precision, memory_bytes
from rerank.pipeline.progress import progress
from rerank.registry import MODELS

if TYPE_CHECKING:
    import torch
    from _typeshed import DataclassInstance

    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.evaluation import Perplexity
    from lm.model import Config
    from lm.training import Report, Settings
    from lm.vocabulary import Vocabulary

SAVE_SECONDS = 300.0
TRAINING_BYTES = 16  # for each parameter: its value, gradient and two moments in float32


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of the training of a language model; the defaults are those of `train-lm`.

    None stands for the default of `lm`, or of the model. embed: 128, or `hidden` for a model whose
    words have no embedding of a size of their own.
    """

    model: str
    embed: int | None = None
    hidden: int = 256
    layers: int = 1
    recurrence: str | None = None
    tied: bool | None = None
    head: str | None = None
    hash_size: int | None = None
    hash_order: int | None = None
    vocabulary: int = 10_000
    epochs: int = 5
    minutes: float | None = None
    seed: int = 1
    dropout: float = 0.1
    context_dropout: float = 0.1
    learning_rate: float = 3e-3
    negatives: int | None = None
    streams: int = 64
    device: str = "auto"
    precision: str = "auto"
    threads: int | None = None

    def values(self, record: type[DataclassInstance]) -> dict[str, Any]:
        """Values, but for None, of the fields that a dataclass has, too."""
        values = {field.name: getattr(self, field.name, None) for field in fields(record)}
        return {name: value for name, value in values.items() if value is not None}

    def config(self, vocabulary: int) -> Config:
        """Shape of the model over V words; UsageError for options that it does not have."""
        from lm.model import Config, ConfigError, check_config

        composition = MODELS[self.model]
        defaults: dict[str, Any] = {"embed": self.hidden} if composition.one_size else {}
        if composition.recurrence is None:
            defaults["recurrence"] = "lstm"
        if composition.tied is None:
            defaults["tied"] = True
        config = Config(**defaults | self.values(Config) | {"vocabulary": vocabulary})
        try:
            check_config(config, composition)
        except ConfigError as fault:
            value = getattr(config, fault.option)
            given = f"--{fault.option.replace('_', '-')} {value}"
            if fault.option == "tied":
                given = "--tied" if value else "--untied"
            raise UsageError(f"{given}: {fault}; leave the option out") from None
        return config


def train_lm(
    recipe: Recipe,
    train: str | Path,
    valid: str | Path,
    out: Path,
    *,
    notices: Notices,
    resume: bool = False,
    report: Callable[[Report], None] = lambda report: None,
    announce: Callable[[str], None] = lambda line: None,
) -> Report:
    """Train a document language model into the folder `out`; the last validation's report.

    The folder holds the model of the best validation. Interrupted runs (SIGINT, SIGTERM, a
    closed terminal) save their state and raise StoppedEarly; `resume` goes on from there.
    Memory: 4 bytes a word of the training text, plus the model.
    """
    from lm.checkpoint import load_training, save_model, save_training
    from lm.model import DocumentLM, n_parameters
    from lm.training import Settings, Trainer

    _check_folder(out, resume)
    inputs = InputFiles((train, valid))
    check_outputs((), (train, valid))
    device = choose_device(recipe.device, recipe.threads)
    _check_memory(recipe, device)
    corpus, held_out, vocabulary = _corpora(recipe, train, valid, notices)
    precise = replace(recipe, precision=choose_precision(recipe.precision, device))
    settings = Settings(**precise.values(Settings))
    model = DocumentLM.seeded(recipe.config(len(vocabulary)), recipe.seed, MODELS).to(device)
    if not model.head.sampled:
        if recipe.negatives:
            raise UsageError(
                f"--negatives {recipe.negatives}: the head of this model is trained on all words; "
                "leave the option out"
            )
        settings = replace(settings, negatives=0)
    trainer = Trainer(model, corpus, held_out, settings=settings)
    state = out / "resume"
    if resume and (state / "state.json").exists():
        with _valid_files():
            load_training(state, trainer)
    with _failures(out):
        out.mkdir(parents=True, exist_ok=True)
    announce(
        f"{recipe.model}{f' ({recipe.head})' if recipe.head else ''}: "
        f"{n_parameters(model):,} parameters, order "
        f"{'unbounded' if model.order is None else model.order}; {corpus.n_documents:,} documents, "
        f"{len(corpus.tokens):,} words ({corpus.n_unknown / len(corpus.tokens):.2%} outside "
        f"the vocabulary); {trainer.updates_per_epoch:,} updates an epoch on {device} "
        f"({settings.precision})"
    )
    about = _about(recipe, settings, corpus, {"train": train, "valid": valid})
    inputs.check()
    last: Report | None = None
    updates = recipe.epochs * trainer.updates_per_epoch - trainer.progress.update
    saved = trainer.progress.seconds
    with Interrupts() as interrupts, _failures(out):
        for item in progress(trainer.run(), label="training", unit="updates", total=updates):
            if item is not None:
                last = item
                report(item)
            if item is not None and item.best:
                measured: dict[str, object] = {
                    "valid_perplexity": item.valid_perplexity,
                    "update": item.update,
                }
                if item.log_z is not None:
                    measured["log_z"] = asdict(item.log_z)
                save_model(out, model, vocabulary, {**about, **measured})
            if item is not None or trainer.progress.seconds - saved > SAVE_SECONDS:
                save_training(state, trainer)
                saved = trainer.progress.seconds
            if interrupts.asked and not trainer.progress.finished:
                save_training(state, trainer)
                raise StoppedEarly(
                    f"{out}: stopped, state saved; to continue, run the same command with --resume"
                )
    if last is None:
        raise UsageError(f"{out}: this run is finished; train into another folder")
    return last


def perplexity(
    lm: Path,
    text: str | Path,
    *,
    notices: Notices,
    device: str = "auto",
    threads: int | None = None,
) -> Perplexity:
    """Perplexity of a text whose documents are separated by blank lines."""
    from lm import evaluation
    from lm.corpus import encode
    from lm.scoring import ScoreError

    saved = open_model(lm, device, threads)
    corpus = encode(read_lines(text, notices), saved.vocabulary)
    _refuse_empty(corpus, text)
    try:
        return evaluation.perplexity(saved.model, corpus)
    except ScoreError as fault:
        raise RerankError(f"{lm}: {fault}") from None


def open_model(folder: Path, device: str = "auto", threads: int | None = None) -> SavedModel:
    """A model folder; InputError if it is not valid."""
    from lm.checkpoint import load_model

    with _valid_files():
        return load_model(folder, choose_device(device, threads), MODELS)


def _check_folder(out: Path, resume: bool) -> None:
    check_folder(out, str(out))
    if not out.exists() or not any(out.iterdir()):
        return
    if not resume:
        raise UsageError(f"{out}: not empty; name a new folder, or --resume to go on with its run")
    if not (out / "resume" / "state.json").exists():
        raise UsageError(f"{out}: not empty, and holds no run to go on with; name a new folder")


def _check_memory(recipe: Recipe, device: torch.device) -> None:
    """UsageError for a shape that cannot be trained on this device, whatever its vocabulary is."""
    import torch

    from lm.model import DocumentLM, n_parameters
    from lm.vocabulary import SPECIAL

    config = recipe.config(len(SPECIAL))
    try:
        with torch.device("meta"):  # no numbers
            n = n_parameters(DocumentLM(config, MODELS))
    except RuntimeError:  # of a plug-in that computes with numbers when it is made
        return
    needed, held = TRAINING_BYTES * n, memory_bytes(device)
    if needed > held:
        raise UsageError(
            f"--embed {config.embed} --hidden {recipe.hidden} --layers {recipe.layers}: training "
            f"needs more than {needed / 1e9:,.0f} GB, {device} has {held / 1e9:,.0f} GB; choose "
            "smaller sizes"
        )


@contextmanager
def _valid_files() -> Iterator[None]:
    """InputError for files of a model that are not valid."""
    from lm.checkpoint import ModelError

    try:
        yield
    except ModelError as fault:
        raise InputError(str(fault)) from None


@contextmanager
def _failures(out: Path) -> Iterator[None]:
    """Errors of a run as RerankError with its folder: failed saving, diverged training."""
    from lm.scoring import ScoreError

    try:
        yield
    except ScoreError as fault:
        raise RerankError(f"{out}: training diverged: {fault}; lower --learning-rate") from None
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise RerankError(
            f"{out}: the model cannot be saved: {(fault.strerror or str(fault)).lower()}"
        ) from None


def _corpora(
    recipe: Recipe, train: str | Path, valid: str | Path, notices: Notices
) -> tuple[Corpus, Corpus, Vocabulary]:
    """Training and validation text in ids, and the vocabulary of the training text."""
    from lm.corpus import build_vocabulary, encode, intern, renumber

    words, raw = intern(read_lines(train, notices))
    _refuse_empty(raw, train)
    vocabulary = build_vocabulary(words, raw, recipe.vocabulary)
    held_out = encode(read_lines(valid, notices), vocabulary)
    _refuse_empty(held_out, valid)
    if raw.n_documents == 1:
        notices.add(
            "training text is one document; part documents with blank lines", source=display(train)
        )
    return renumber(raw, words, vocabulary), held_out, vocabulary


def _refuse_empty(corpus: Corpus, path: str | Path) -> None:
    if not corpus.n_sentences:
        raise InputError(
            "expected one sentence per line, found no words; is this the right file?",
            source=display(path),
            line=1,
        )


def _about(
    recipe: Recipe, settings: Settings, corpus: Corpus, files: dict[str, str | Path]
) -> dict[str, object]:
    """Provenance saved with a model: settings, digests of the data, versions."""
    import torch

    return {
        "rerank": rerank.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": recipe.model,
        "settings": asdict(settings),
        "oov_rate": corpus.n_unknown / len(corpus.tokens),
        "data": {  # pipes cannot be read again
            name: {"file": Path(f).name, "digest": digest(f)}
            for name, f in files.items()
            if Path(f).is_file()
        },
    }
