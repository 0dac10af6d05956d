"""`rerank train-lm`: the training of a language model, and model folders read back."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rerank
from rerank.errors import InputError, UsageError
from rerank.files.inputs import InputFiles
from rerank.files.lines import digest
from rerank.files.outputs import check_folder, check_outputs
from rerank.notices import Notices
from rerank.pipeline.curves import LearningCurve
from rerank.pipeline.devices import choose_device, choose_precision
from rerank.pipeline.processes import processes
from rerank.pipeline.recipes import (
    check_memory,
    check_packages,
    completed,
    described,
    fitting,
    settings_of,
)
from rerank.pipeline.training import validations
from rerank.pipeline.training_texts import corpora
from rerank.registry import MODELS

if TYPE_CHECKING:
    import torch
    from _typeshed import DataclassInstance

    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.training.processes import Processes
    from lm.training.settings import Report, Settings
    from lm.training.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of the training of a language model: the options of `train-lm`.

    None stands for the value of the recipe (`lm.training.recipes`); fusion, head: None for those
    of the model. documents: a name of `lm.corpus.DOCUMENTS`; unknown: word of the texts that stands
    for unknown words. backward: whether sentences are read from right to left; longest: most words
    of a sentence to train on, None for any number; across_documents: whether contexts cross the
    ends of documents. size: a name of `lm.training.sizes`, whose values go before those of the
    recipe.
    """

    model: str
    recipe: str = "strong"
    size: str | None = None
    embed: int | None = None
    hidden: int | None = None
    layers: int | None = None
    recurrence: str | None = None
    tied: bool | None = None
    head: str | None = None
    backward: bool | None = None
    fusion: str | None = None
    attention: int | None = None
    hash_size: int | None = None
    hash_order: int | None = None
    thought: int | None = None
    topic_model: str | None = None
    topics_number: int | None = None
    documents: str = "blank"
    unknown: str | None = None
    initialisation: str | None = None
    vocabulary: int | None = None
    min_count: int | None = None
    longest: int | None = None
    across_documents: bool = False
    epochs: int | None = None
    minutes: float | None = None
    seed: int = 1
    optimiser: str | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    clip: float | None = None
    schedule: str | None = None
    validations: int | None = None
    patience: int | None = None
    streams: int | None = None
    segment: int | None = None
    segments: str | None = None
    accumulate: int | None = None
    levels: str | None = None
    dropout: float | None = None
    locked_dropout: float | None = None
    word_dropout: float | None = None
    weight_dropout: float | None = None
    context_dropout: float | None = None
    context_noise: float | None = None
    averaging: float | None = None
    negatives: int | None = None
    device: str = "auto"
    precision: str | None = None
    threads: int | None = None

    def values(self, record: type[DataclassInstance]) -> dict[str, Any]:
        """Values, but for None, of the fields that a dataclass has, too."""
        values = {field.name: getattr(self, field.name, None) for field in fields(record)}
        return {name: value for name, value in values.items() if value is not None}


def train_lm(
    recipe: Recipe,
    train: str | Path,
    valid: str | Path,
    out: Path,
    *,
    notices: Notices,
    resume: bool = False,
    curve: str | Path | None = None,
    report: Callable[[Report], None] = lambda report: None,
    announce: Callable[[str], None] = lambda line: None,
) -> Report:
    """Train a document language model into the folder `out`; the last validation's report.

    The folder holds the model of the best validation. Interrupted runs (SIGINT, SIGTERM, a
    closed terminal) save their state and raise StoppedEarly; `resume` goes on from there.
    curve: file for a line of every validation. Under `torchrun` several processes share the work
    of every update, and the first one writes, reports and announces.
    Memory: 4 bytes a word of the training text, plus the model.
    """
    from lm.checkpoint import load_training
    from lm.model import n_parameters

    _check_folder(out, resume)
    given, recipe = recipe, completed(recipe)
    inputs = InputFiles((train, valid))
    rows = LearningCurve(curve) if curve else None
    check_outputs((curve,) if curve else (), (train, valid))
    state = out / "resume"
    resume = resume and (state / "state.json").exists()
    if not resume:
        check_packages(recipe)
    with processes(choose_device(recipe.device, recipe.threads), (train, valid)) as (device, group):
        check_memory(recipe, device)
        corpus, held_out, vocabulary = corpora(recipe, train, valid, notices)
        trainer = _trainer(
            recipe, given, corpus, held_out, len(vocabulary), device, group, fresh=not resume
        )
        model, settings = trainer.model, trainer.settings
        if resume:
            with _valid_files():
                load_training(state, trainer)
            if rows:
                rows.resume(trainer.progress.update, notices)
        announce = announce if group.rank == 0 else lambda line: None
        others = ", ".join(name for name in (recipe.fusion, recipe.head) if name)
        announce(
            f"{recipe.model}{f' ({others})' if others else ''}"
            f"{' from right to left' if recipe.backward else ''}: "
            f"{n_parameters(model):,} parameters, order "
            f"{'unbounded' if model.order is None else model.order}; {corpus.n_documents:,} "
            f"{'stretches' if recipe.across_documents else 'documents'}, "
            f"{len(corpus.tokens):,} words "
            f"({corpus.n_unknown / len(corpus.tokens):.2%} outside the vocabulary); "
            f"{trainer.updates_per_epoch:,} updates an epoch on {device} ({settings.precision})"
            f"{f', {group.number} processes' if group.number > 1 else ''}"
        )
        announce(described(recipe.recipe, settings))
        about = _about(recipe, settings, corpus, {"train": train, "valid": valid})
        inputs.check()
        group.any(False)  # none makes the folder before all have found it fit
        last: Report | None = None
        for last in validations(trainer, out, vocabulary, about, rows):
            if group.rank == 0:
                report(last)
    if last is None:
        raise UsageError(f"{out}: this run is finished; train into another folder")
    return last


def _trainer(
    recipe: Recipe,
    given: Recipe,
    corpus: Corpus,
    held_out: Corpus,
    words: int,
    device: torch.device,
    group: Processes,
    *,
    fresh: bool,
) -> Trainer:
    """A new model of so many words and its trainer, by a recipe and by what it was before.

    fresh: whether the model learns from the training text what no gradient trains; a resumed run
    reads it from its state.
    """
    from lm.model import Config, DocumentLM
    from lm.training.initialisation import INITIALISATIONS
    from lm.training.trainer import Trainer

    with fitting(recipe):
        config = Config(**recipe.values(Config) | {"vocabulary": words})
        model = DocumentLM.seeded(config, recipe.seed, MODELS)
    precise = replace(recipe, precision=choose_precision(recipe.precision or "auto", device))
    settings = settings_of(precise, given, model)
    INITIALISATIONS[settings.initialisation](model, recipe.seed)
    if fresh:
        with fitting(recipe):
            model.fit(corpus, recipe.seed)
        # the first process decides: a last bit may differ between two of them
        model.load_state_dict(group.gather(dict(model.named_buffers()))[0], strict=False)
    try:
        return Trainer(model.to(device), corpus, held_out, settings=settings, processes=group)
    except ValueError as fault:
        raise UsageError(f"--streams {settings.streams}: {fault}; start fewer processes") from None


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


@contextmanager
def _valid_files() -> Iterator[None]:
    """InputError for files of a model that are not valid."""
    from lm.checkpoint import ModelError

    try:
        yield
    except ModelError as fault:
        raise InputError(str(fault)) from None


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
        "recipe": recipe.recipe,
        "settings": asdict(settings),
        "longest": recipe.longest,
        "across_documents": recipe.across_documents,
        "oov_rate": corpus.n_unknown / len(corpus.tokens),
        "data": {  # pipes cannot be read again
            name: {"file": Path(f).name, "digest": digest(f)}
            for name, f in files.items()
            if Path(f).is_file()
        },
    }
