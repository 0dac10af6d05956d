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
    from lm.training import Report, Settings
    from lm.vocabulary import Vocabulary

SAVE_SECONDS = 300.0
_PARTED = {
    "blank": "part documents with blank lines",
    "equals": "close documents with lines that begin with =",
}
STRETCHES = 4  # for each stream, where contexts cross the ends of documents
TRAINING_BYTES = 16  # for each parameter: its value, gradient and two moments in float32


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of the training of a language model; the defaults are those of `train-lm`.

    None stands for the default of `lm`; fusion, head: None for those of the model. documents: a
    name of `lm.corpus.DOCUMENTS`; unknown: word of the texts that stands for unknown words.
    longest: most words of a sentence to train on, None for any number; across_documents: whether
    contexts cross the ends of documents.
    """

    model: str
    embed: int = 128
    hidden: int = 256
    layers: int = 1
    recurrence: str = "lstm"
    tied: bool = True
    head: str | None = None
    fusion: str | None = None
    attention: int | None = None
    documents: str = "blank"
    unknown: str | None = None
    vocabulary: int = 10_000
    longest: int | None = None
    across_documents: bool = False
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
    from lm.model import Config, DocumentLM, n_parameters
    from lm.training import Settings, Trainer

    _check_folder(out, resume)
    inputs = InputFiles((train, valid))
    check_outputs((), (train, valid))
    device = choose_device(recipe.device, recipe.threads)
    _check_memory(recipe, device)
    corpus, held_out, vocabulary = _corpora(recipe, train, valid, notices)
    precise = replace(recipe, precision=choose_precision(recipe.precision, device))
    settings = Settings(**precise.values(Settings))
    config = Config(**recipe.values(Config) | {"vocabulary": len(vocabulary)})
    model = DocumentLM.seeded(config, recipe.seed, MODELS).to(device)
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
    others = ", ".join(name for name in (recipe.fusion, recipe.head) if name)
    announce(
        f"{recipe.model}{f' ({others})' if others else ''}: "
        f"{n_parameters(model):,} parameters, order "
        f"{'unbounded' if model.order is None else model.order}; {corpus.n_documents:,} "
        f"{'stretches' if recipe.across_documents else 'documents'}, "
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
    documents: str = "blank",
    duplicate_last_word: bool = False,
    across_documents: bool = False,
    device: str = "auto",
    threads: int | None = None,
) -> Perplexity:
    """Perplexity of a text whose documents are parted as `lm.corpus.DOCUMENTS` names it.

    duplicate_last_word: each sentence's last word is read and counted twice, as in the published
    program of Ji et al. 2016. across_documents: whether contexts cross the ends of documents.
    """
    from lm import evaluation
    from lm.corpus import encode, with_last_words_twice
    from lm.scoring import ScoreError

    saved = open_model(lm, device, threads)
    corpus = encode(read_lines(text, notices), saved.vocabulary, documents)
    _check_text(corpus, text, notices)
    if duplicate_last_word:
        corpus = with_last_words_twice(corpus)
    corpus = corpus.in_stretches(1) if across_documents else corpus
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

    from lm.model import Config, DocumentLM, n_parameters
    from lm.vocabulary import SPECIAL

    config = Config(**recipe.values(Config) | {"vocabulary": len(SPECIAL)})
    try:
        with torch.device("meta"):  # no numbers
            n = n_parameters(DocumentLM(config, MODELS))
    except ValueError as fault:  # parts that do not fit each other
        raise UsageError(f"--model {recipe.model}: {fault}") from None
    except RuntimeError:  # of a plug-in that computes with numbers when it is made
        return
    needed, held = TRAINING_BYTES * n, memory_bytes(device)
    if needed > held:
        raise UsageError(
            f"--embed {recipe.embed} --hidden {recipe.hidden} --layers {recipe.layers}: training "
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

    words, raw = intern(read_lines(train, notices), recipe.documents)
    _check_text(raw, train, notices)
    unknown = None if recipe.unknown is None else recipe.unknown.encode()
    if unknown is not None and unknown not in words:
        raise InputError(
            f"expected the word {recipe.unknown!r} of --unknown in the training text, found none; "
            "correct it, or leave it out",
            source=display(train),
        )
    vocabulary = build_vocabulary(words, raw, recipe.vocabulary, unknown)
    held_out = encode(read_lines(valid, notices), vocabulary, recipe.documents)
    _check_text(held_out, valid, notices)
    if raw.n_documents == 1 and not recipe.across_documents:
        notices.add(
            f"training text is one document; {_PARTED[recipe.documents]}", source=display(train)
        )
    corpus = renumber(raw, words, vocabulary)
    if recipe.longest is not None:
        corpus = corpus.without_longer(recipe.longest)
        if not corpus.n_sentences:
            raise UsageError(
                f"--longest {recipe.longest}: all sentences of the training text have more words; "
                "choose a larger number"
            )
    if recipe.across_documents:
        stretches = recipe.streams * STRETCHES
        return corpus.in_stretches(stretches), held_out.in_stretches(1), vocabulary
    return corpus, held_out, vocabulary


def _check_text(corpus: Corpus, path: str | Path, notices: Notices) -> None:
    """InputError for a text without words; a notice of sentences without words."""
    import numpy as np

    if not len(corpus.tokens):
        raise InputError(
            "expected one sentence per line, found no words; is this the right file?",
            source=display(path),
            line=1,
        )
    if empty := int(np.count_nonzero(np.diff(corpus.sentences) == 0)):
        notices.add(
            "blank line read as a sentence without words, as --documents equals says",
            source=display(path),
            count=empty,
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
        "longest": recipe.longest,
        "across_documents": recipe.across_documents,
        "oov_rate": corpus.n_unknown / len(corpus.tokens),
        "data": {  # pipes cannot be read again
            name: {"file": Path(f).name, "digest": digest(f)}
            for name, f in files.items()
            if Path(f).is_file()
        },
    }
