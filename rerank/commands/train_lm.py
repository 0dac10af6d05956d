"""`rerank train-lm`: the training of a document language model."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, fields, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rerank.errors import RerankError, StoppedEarly, UsageError
from rerank.files.lines import digest
from rerank.files.outputs import check_folder, check_new_folder, check_outputs, only_writer
from rerank.files.signature import __version__
from rerank.files.terminal import Interrupts, process_number, progress
from rerank.formats.run_records import LearningCurve
from rerank.notices import Notices
from rerank.options import Command
from rerank.registry import MODELS
from rerank.runs.texts import TextFiles, counted_words, tokenizer_files
from rerank.runs.training import (
    OF_RECIPES,
    Beginning,
    TrainingFiles,
    TrainingTexts,
    TrainLmOptions,
    begin_from,
    begin_with,
    model_before,
    source_model,
    training_texts,
)
from rerank.scorers.models import choose_device, use_cores, valid_files

if TYPE_CHECKING:
    import torch
    from _typeshed import DataclassInstance

    from lm.model import DocumentLM
    from lm.training.processes import Processes
    from lm.training.settings import Settings
    from lm.training.trainer import Trainer, Validation
    from lm.vocabulary import Vocabulary

SAVE_SECONDS = 300.0
TRAINING_BYTES = 16  # for each parameter: its value, gradient and two moments in float32
AVERAGING_BYTES = 4  # for each parameter: its average
EXTRAS = {"sklearn": ("scikit-learn", "topics")}  # packages by module, and what installs them


def train_lm(options: TrainLmOptions) -> Validation | None:
    """Train a document language model.

    Example:
      rerank train-lm --model codclm --train train.en.gz --valid valid.en --out codclm.lm
    """
    options.messages.announce_threads(options.machine.threads)
    with options.messages.warnings() as notices:
        last, best = _trained(options, notices)
    if last is not None:
        options.messages.announce(
            f"model written to {options.files.out}: valid {_perplexity(last, best)}, "
            f"{last.seconds / 60:.1f} min"
        )
    return last


COMMAND = Command("train-lm", TrainLmOptions, train_lm)


def _trained(options: TrainLmOptions, notices: Notices) -> tuple[Validation | None, float]:
    """Train a model into the folder `out`, which holds that of the best validation.

    The last validation's report, and the best perplexity; None where the run to be resumed is
    finished: what repeats a command after a kill may come late. Interrupted runs (SIGINT, SIGTERM,
    a closed terminal) save their state and raise StoppedEarly; `resume` goes on from there. Under
    `torchrun` several processes share the work of every update, and the first one writes, reports
    and announces.
    Memory: 4 bytes a word of the training text, plus the model.
    """
    from lm.training.state import load_training
    from rerank.runs.distribution import processes

    began, files, out = perf_counter(), options.files, options.files.out
    _check_folder(out, files.resume)
    values = options.completed()
    of_recipe: dict[str, Any] = {name: values.get(name) for name in OF_RECIPES}
    options = replace(options, texts=replace(options.texts, **of_recipe))
    train, valid = _text_files(files, options.choice.model)
    read = (*train.all, *valid.all, *tokenizer_files(options.texts.tokenizers.values()))
    rows = LearningCurve(files.curve) if files.curve else None
    folders = [options.choice.source_lm, options.choice.begin, *filter(Path.is_file, out.glob("*"))]
    inputs = check_outputs([files.curve], read, filter(None, folders))
    saved = out / "resume" if files.resume and (out / "resume" / "state.json").exists() else None
    if saved is None:
        _check_packages(options.choice.model)
    chosen_device = choose_device(options.machine.device, options.machine.threads)
    lock = only_writer(out) if process_number() == 0 else nullcontext()
    with lock, processes(chosen_device, read) as (device, group):
        _check_model(options, values, device)
        begin = Beginning(source_model(options, values), model_before(options, values))
        known = _known(options, saved, begin)
        texts = training_texts(options, values, (train, valid), known, group, notices)
        trainer = _trainer(options, values, texts, device, group, begin, fresh=saved is None)
        if saved is not None:
            with valid_files():
                load_training(saved, trainer)
            if rows:
                rows.resume(trainer.progress.update, notices)
        options.messages.report(notices)
        _describe(options, values, trainer, device)
        sources = {"train": train.text, "valid": valid.text, **train.side}
        about = begin.about | _about(options, trainer, sources)
        inputs.check()
        group.any(False)  # none makes the folder before all have found it fit
        last: Validation | None = None
        for last in _validations(trainer, out, texts, about, rows, began):
            options.messages.announce(_row(last))
    if last is None:
        options.messages.announce(f"{out}: this run is finished; nothing is left to do")
    else:
        _note_few_updates(trainer, out, notices)
    return last, math.exp(trainer.progress.best or 0.0)


def _text_files(files: TrainingFiles, model: str) -> tuple[TextFiles, TextFiles]:
    """Training and validation text with the files beside them, exchanged for a channel."""
    from lm.composition import load
    from lm.side_information import information_of
    from rerank.formats.translations import check_files

    context, valid_side = load(MODELS[model].context), files.valid_side.values()
    side = {name.removeprefix("valid_"): file for name, file in valid_side.items()}
    train, valid = TextFiles(files.train, files.side.values()), TextFiles(files.valid, side)
    for text, prefix, training in ((train, "", True), (valid, "valid-", False)):
        needed = information_of(context, training=training)
        check_files(dict.fromkeys(needed, model), text.side, prefix)
    return (train.exchanged(), valid.exchanged()) if files.reverse else (train, valid)


def _known(options: TrainLmOptions, state: Path | None, begin: Beginning) -> dict[str, Vocabulary]:
    """Vocabularies not made from the text: of --from, --source-lm, and pieces of a resumed run."""
    from lm.side_information import TARGET
    from lm.training.state import load_subwords

    with valid_files():
        known = load_subwords(state) if state is not None and options.texts.tokenizers else {}
    if begin.whole is not None:
        known |= {TARGET: begin.whole.vocabulary, **begin.whole.side}
    return known | ({} if begin.source is None else {"source": begin.source.vocabulary})


def _note_few_updates(trainer: Trainer, out: Path, notices: Notices) -> None:
    """A notice of a model whose training has not read its text once."""
    done, settings = trainer.progress, trainer.settings
    share = (done.update - done.first_update) / trainer.updates_per_epoch
    if share >= 1:
        return
    cure = "a larger --patience"
    if settings.words is not None:
        cure = f"--words {len(trainer.train.tokens) + trainer.train.n_sentences} --resume"
    elif settings.minutes is not None:
        more = math.ceil(1.1 * done.seconds / share / 60)
        cure = f"--minutes {more} --resume for an epoch"
    notices.add("barely-trained", source=str(out), epochs=f"{share:.2f}", cure=cure)


def _describe(
    options: TrainLmOptions, values: Mapping[str, Any], trainer: Trainer, device: torch.device
) -> None:
    """Print the model and its texts in a line, and the settings in another; values: completed."""
    from lm.model import n_parameters

    model, corpus, number = trainer.model, trainer.train, trainer.processes.number
    parts = ("encoder", "sentence_recurrence", "fusion", "head")
    others = ", ".join(values[part] for part in parts if values.get(part))
    settings = ", ".join(
        f"{name.replace('_', ' ')} {f'{value:g}' if isinstance(value, float) else value}"
        for name, value in asdict(trainer.settings).items()
        if value is not None
    )
    unit = "stretches" if options.texts.across_documents else "documents"
    if options.texts.passages is not None:
        unit = f"passages of {options.texts.passages} sentences"
    order = "unbounded" if model.order is None else model.order
    kind = [
        f"{options.choice.model}{f' ({others})' if others else ''}",
        " from right to left" * bool(values.get("backward")),
        ", documents from the last sentence" * bool(values.get("reverse_documents")),
        " of the source given the target" * options.files.reverse,
        f": {n_parameters(model):,} parameters, order {order}",
        ", given the next sentence, too" * (not model.causal),
    ]
    options.messages.announce(
        f"{''.join(kind)}; {corpus.n_documents:,} {unit}, {counted_words(corpus)}; "
        f"{trainer.updates_per_epoch:,} updates an epoch on {device} "
        f"({trainer.settings.precision}){f', {number} processes' if number > 1 else ''}"
    )
    recipe = options.choice.recipe
    say = options.messages.detail if recipe == "strong" else options.messages.announce
    say(f"recipe {recipe}: {settings}")


def _perplexity(report: Validation, value: float) -> str:
    """A perplexity of the kind of a report; of pieces, with that a word."""
    kind = f"{'' if report.predicts_end else 'bag-of-words '}{'' if report.causal else 'pseudo-'}"
    of_words = ""
    if report.tokens_per_word is not None:
        of_words = f" a piece, {value**report.tokens_per_word:.2f} a word"
    return f"{kind}perplexity {value:.2f}{of_words}"


def _row(report: Validation) -> str:
    """A validation in one line."""
    unit = "words" if report.tokens_per_word is None else "pieces"
    return (
        f"epoch {report.epoch:5.2f}  {report.seconds / 60:5.1f} min  "
        f"{report.words_per_second:7,.0f} {unit}/s  train {report.training_nats:.3f} nats  "
        f"valid {_perplexity(report, report.valid_perplexity)}"
        f"{'' if report.stage == 'words' else f' of {report.stage}'}"
        f"{f'  {report.log_z.to_text()}' if report.log_z else ''}{'  best' if report.best else ''}"
    )


def _check_folder(out: Path, resume: bool) -> None:
    """UsageError unless a folder is new, or one of an interrupted run that is to be resumed."""
    if not resume:
        check_new_folder(out, "not empty; name a new folder, or --resume to go on with its run")
        return
    check_folder(out, str(out))
    # a folder `resume` without a state: the first state was not whole
    files = {path.name for path in out.iterdir()} if out.exists() else set()
    if files - {"resume"} and not (out / "resume" / "state.json").exists():
        raise UsageError(f"{out}: not empty, and holds no run to go on with; name a new folder")


def _check_packages(model: str) -> None:
    """UsageError if the model learns from the training text with a package that is not there."""
    from lm.composition import fact, load

    module = fact(load(MODELS[model].context), "learns_with")
    if module is not None and find_spec(module) is None:
        package, extra = EXTRAS.get(module, (module, ""))
        cure = f"pip install 'rerank-mt[{extra}]'" if extra else "install it"
        raise UsageError(f"--model {model}: training needs {package}: {cure}")


# Models and settings of completed options


def _fields_of(record: type[DataclassInstance], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those values, but for None, that are options of a record's fields."""
    names = [field.name for field in fields(record) if "help" in field.metadata]
    return {name: values[name] for name in names if values.get(name) is not None}


@contextmanager
def _fitting(options: TrainLmOptions) -> Iterator[None]:
    """UsageError for a shape that the model does not have."""
    try:
        yield
    except ValueError as fault:
        raise UsageError(f"--model {options.choice.model}: {fault}") from None


def _check_model(options: TrainLmOptions, values: Mapping[str, Any], device: torch.device) -> None:
    """UsageError for a model that cannot be trained so, before any text is read."""
    import torch

    from lm.composition import Config, load
    from lm.model import DocumentLM, n_parameters
    from lm.side_information import KINDS, information_of
    from lm.vocabulary import SPECIAL

    name, least = options.choice.model, len(SPECIAL)
    try:
        with _fitting(options), torch.device("meta"):  # no numbers
            needed = information_of(load(MODELS[name].context))
            sizes: dict[str, Any] = {KINDS[kind]: least for kind in needed if kind in KINDS}
            config = Config(name, least, **_fields_of(Config, values), **sizes)
            model = DocumentLM(config, MODELS)
    except RuntimeError:  # of a plug-in that computes with numbers when it is made
        return
    each = TRAINING_BYTES + (AVERAGING_BYTES if values["averaging"] else 0)
    bytes_needed, held = each * n_parameters(model), sys.maxsize
    if device.type == "cuda":
        held = int(torch.cuda.mem_get_info(device)[1])
    elif "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        held = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if bytes_needed > held:
        hashed = values.get("hash_size")
        table = "" if hashed is None else f" --hash-size {hashed}"
        raise UsageError(
            f"--embed {values['embed']} --hidden {values['hidden']} --layers {values['layers']}"
            f"{table}: training needs more than {bytes_needed / 1e9:,.0f} GB, {device} has "
            f"{held / 1e9:,.0f} GB; choose smaller sizes"
        )
    _settings(options, values, model)


def _settings(options: TrainLmOptions, values: Mapping[str, Any], model: DocumentLM) -> Settings:
    """Settings of the training of a model by completed options.

    Where sentences begin in a carried state, which would be lost for the rest of the document, no
    context is dropped unless it is asked for. An objective that needs sampled words has its own
    number of them. UsageError for a value that this model cannot use.
    """
    from lm.training.settings import Settings
    from lm.training.trainer import OBJECTIVES

    noise_words, explicit = OBJECTIVES[values["objective"]].samples, options.given
    _check_use(options, values, model, noise_words)
    changed: dict[str, Any] = {} if model.recurrence.width else {"dropout": 0.0}
    if "context_dropout" not in explicit and model.context.carries_state:
        changed["context_dropout"] = 0.0
    if noise_words:
        changed["negatives"] = explicit.get("negatives") or noise_words
    elif not model.head.sampled:
        changed["negatives"] = 0
    return Settings(**{**_fields_of(Settings, values), **changed})


def _check_use(
    options: TrainLmOptions, values: Mapping[str, Any], model: DocumentLM, noise_words: int
) -> None:
    """UsageError for an option that was given, but that this model cannot use."""
    from lm.side_information import NUMBERS, information_of

    explicit, name = {**options.given, "passages": options.texts.passages}, options.choice.model
    context, head, levels = model.context, model.head, values["levels"]
    words_alone, stateless = not context.auxiliary_parameters(), not model.recurrence.width
    numbers = "".join([kind for kind in information_of(context) if kind in NUMBERS][:1])
    across, turned = options.texts.across_documents, explicit.get("reverse_documents")
    of_passages = (
        "the last sentence of a passage is predicted from those before it in its document, "
        "which --{} does not read so"
    )
    counted = f"{name} needs --{numbers}, whose numbers count sentences from the first one"
    unread = f"{name} reads no context, so that the order of sentences does not matter"
    added = f"{name} adds no document context to another model"
    random = "without --from all other weights would stay random"
    one_level = f"{name} predicts words and relations from one sentence level"
    leave, all_words = "leave one of them out", "the head of this model is trained on all words"
    without_noise = "expected noise words, found --negatives 0"
    no_noise, scratch = explicit.get("negatives") == 0, options.choice.begin is None
    # whether it holds, the option that is of no use then, why, and what to do but to leave it out
    rules: tuple[tuple[Any, ...], ...] = (
        (across, "passages", of_passages.format("across-documents"), leave),
        (turned, "passages", of_passages.format("reverse-documents"), leave),
        (not head.sampled, "negatives", all_words),
        (not head.predicts_end, "backward", f"{name} predicts bags of words, which have no order"),
        (numbers, "reverse_documents", counted),
        (not model.fusion.uses_context, "reverse_documents", unread),
        (stateless, "dropout", f"{name} has no states of words"),
        (model.order == 0, "context_noise", f"{name} reads no target context"),
        (levels == "context" and not context.added_parameters(), "levels", added),
        (levels == "context" and scratch, "levels", random, "give --from DIR"),
        (words_alone and levels != "context", "levels", "this model has no sentence level"),
        (
            levels == "two-step" and context.training_information,
            *("levels", one_level, "choose together or separate"),
        ),
        (noise_words and not head.sampled, "objective", all_words),
        (noise_words and no_noise, "objective", without_noise, "give a number, or leave it out"),
    )
    for holds, field, fault, *cure in rules:
        value = explicit.get(field)
        if holds and value:
            shown = f" {value:g}" if isinstance(value, float) else f" {value}"
            flag = f"--{field.replace('_', '-')}{'' if value is True else shown}"
            raise UsageError(f"{flag}: {fault}; {cure[0] if cure else 'leave the option out'}")


def _trainer(
    options: TrainLmOptions,
    values: Mapping[str, Any],
    texts: TrainingTexts,
    device: torch.device,
    group: Processes,
    begin: Beginning,
    *,
    fresh: bool,
) -> Trainer:
    """A model of these texts and its trainer; fresh: whether the model learns from the text."""
    from lm.backend import fast_bfloat16
    from lm.composition import Config
    from lm.model import DocumentLM, n_parameters
    from lm.side_information import KINDS
    from lm.training.optimisers import INITIALISATIONS
    from lm.training.trainer import Trainer

    seed, name, words = values["seed"], options.choice.model, len(texts.vocabulary)
    sizes: dict[str, Any] = {KINDS[kind]: len(side) for kind, side in texts.side.items()}
    with _fitting(options):
        config = Config(name, words, **_fields_of(Config, values), **sizes)
        model = DocumentLM.seeded(config, seed, MODELS)
    precision = values["precision"]
    if precision == "auto":  # bfloat16 where the hardware multiplies it faster
        precision = "bfloat16" if fast_bfloat16(device) else "float32"
    settings = _settings(options, {**values, "precision": precision}, model)
    use_cores(n_parameters(model), options.machine.threads)
    INITIALISATIONS[settings.initialisation](model, seed)
    if begin.source is not None:
        begin_with(model, begin.source, options.choice.source_lm)
    if begin.whole is not None:
        begin_from(model, begin.whole, options.choice.begin)
    if fresh:
        with _fitting(options):
            model.context.fit(texts.train, seed)
        # the first process decides: a last bit may differ between two of them
        model.load_state_dict(group.gather(dict(model.named_buffers()))[0], strict=False)
    try:
        return Trainer(
            model.to(device), texts.train, texts.valid, settings=settings, processes=group
        )
    except ValueError as fault:
        raise UsageError(f"--streams {settings.streams}: {fault}; start fewer processes") from None


# The run


def _validations(
    trainer: Trainer,
    out: Path,
    texts: TrainingTexts,
    about: dict[str, object],
    rows: LearningCurve | None,
    began: float,
) -> Iterator[Validation]:
    """Reports of a run, whose best model, learning curve and state the first process saves."""
    from lm.checkpoint import save_model
    from lm.side_information import TARGET
    from lm.training.state import save_subwords, save_training

    group, state, first = trainer.processes, out / "resume", trainer.processes.rank == 0
    with _failures(out):
        out.mkdir(parents=True, exist_ok=True)
    updates, saved = trainer.run(began), trainer.progress.seconds
    if first:
        total, left = trainer.updates_left(), trainer.seconds_left
        updates = progress(updates, label="training", unit="updates", total=total, left=left)
    with Interrupts() as interrupts, _failures(out):
        if not trainer.progress.update:  # a folder with a model has a state, whenever it is killed
            if first:
                save_subwords(state, {TARGET: texts.vocabulary, **texts.side})
            save_training(state, trainer)
        for item in updates:
            if item is not None:
                yield item
                if first and item.best:
                    measured = {"valid_perplexity": item.valid_perplexity, "update": item.update}
                    stage = {} if item.stage == "words" else {"stage": item.stage}
                    log_z = {} if item.log_z is None else {"log_z": asdict(item.log_z)}
                    if item.tokens_per_word is not None:
                        per_word = item.valid_perplexity**item.tokens_per_word
                        measured["valid_perplexity_per_word"] = per_word
                    facts = {**about, **measured, **stage, **log_z}
                    save_model(out, trainer.validated, texts.vocabulary, facts, texts.side)
                if first and rows:
                    rows.add(item)
            if item is not None or trainer.progress.seconds - saved > SAVE_SECONDS:
                save_training(state, trainer)
                saved = trainer.progress.seconds
            if group.any(interrupts.asked) and not trainer.progress.finished:
                save_training(state, trainer)
                raise StoppedEarly(
                    f"{out}: stopped, state saved; to continue, run the same command with --resume"
                )


@contextmanager
def _failures(out: Path) -> Iterator[None]:
    """Errors of a run as RerankError with its folder: failed saving, diverged training."""
    from lm.scoring import LogProbError

    try:
        yield
    except LogProbError as fault:
        raise RerankError(f"{out}: training diverged: {fault}; lower --learning-rate") from None
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise RerankError(
            f"{out}: the model cannot be saved: {(fault.strerror or str(fault)).lower()}"
        ) from None


def _about(
    options: TrainLmOptions, trainer: Trainer, files: Mapping[str, str | Path]
) -> dict[str, object]:
    """Provenance saved with a model: settings, digests of the data, versions."""
    import torch

    corpus, texts = trainer.train, options.texts
    return {
        "rerank": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": options.choice.model,
        "recipe": options.choice.recipe,
        "settings": asdict(trainer.settings),
        "longest": texts.longest,
        "across_documents": texts.across_documents,
        "passages": texts.passages,
        **texts.tokenizers,
        **({"reverse": True} if options.files.reverse else {}),
        "oov_rate": corpus.n_unknown / len(corpus.tokens),
        "data": {  # pipes cannot be read again
            name: {"file": Path(f).name, "digest": digest(f)}
            for name, f in files.items()
            if Path(f).is_file()
        },
    }
