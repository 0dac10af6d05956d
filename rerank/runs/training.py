"""A training of `rerank train-lm`: its options, recipe, texts, and the weights it begins with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rerank.errors import InputError, UsageError
from rerank.files.paths import display
from rerank.formats.plain_texts import RunningText
from rerank.notices import Notices
from rerank.options import Given, flag, of_dataclass, option, optional, optional_file, part, record
from rerank.registry import MODELS, attribute
from rerank.runs.options import Machine, Messages, side_files
from rerank.runs.texts import (
    TextFiles,
    TextOptions,
    Vocabularies,
    check_package,
    note_language,
    read_text,
    tokenizer_files,
    with_side,
)
from rerank.scorers.models import open_model
from rerank.values import FILE, FOLDER, MemberName

if TYPE_CHECKING:
    from lm.corpus import Corpus
    from lm.folders import SavedModel
    from lm.model import DocumentLM
    from lm.training.processes import Processes
    from lm.vocabulary import Vocabulary

STRETCHES = 4  # for each stream, where contexts cross the ends of documents
_PARTED = {  # documents, by the names of `lm.corpus.DOCUMENTS`
    "blank": "part documents with blank lines",
    "equals": "close documents with lines that begin with =",
    "paragraphs": "part documents with blank lines, and paragraphs with lines that are <p>",
}
_VOCABULARIES = {  # options of texts that make vocabularies, and their fields
    **{"vocab": "vocabulary", "vocab-min-count": "min_count", "source-vocab": "source_vocabulary"},
    **{"source-characters": "source_characters"},
    **{"tokenizer": "tokenizer", "source-tokenizer": "source_tokenizer"},
}
TOKENIZERS = ("tokenizer", "source_tokenizer")  # as a model's folder names them
OF_RECIPES = ("vocabulary", "min_count", "longest")  # options of texts that recipes have, too
_FLAGS = {field: flag for flag, field in _VOCABULARIES.items()}


@record
class TrainingFiles:
    """The texts of a training, the files beside them, and what is written."""

    train: str = option(
        "Training text: one sentence per line, documents parted as --documents says.", type=FILE
    )
    side: Given = part(side_files("line of --train, blank where that is blank"))
    valid: str = option("Validation text in the same format.", type=FILE)
    valid_side: Given = part(side_files("line of --valid", "valid-"))
    reverse: bool = flag(
        "Exchange the sides: learn the channel, log p(source | target); for --model "
        "attention.\n\n"
        "Of --source given --train; other options of the source are then of --train, which "
        "is read. The folder says so, and --lm NAME=DIR,reverse=yes takes it.",
        rare=True,
    )
    out: Path = option("New folder for the model.", type=FOLDER, metavar="DIR")
    resume: bool = flag("Continue the interrupted training in --out.")
    curve: str | None = optional_file(
        "New file for the learning curve: tab-separated figures of every validation. --resume "
        "extends it.",
        rare=True,
    )


@record
class ModelChoice:
    """Which model is trained, and where its values and its source side begin."""

    model: str = option(
        "Language model; `rerank list models` shows what each is, and its parameters.",
        type=MemberName(MODELS),
    )
    recipe: str = option(
        "Defaults of the other options: strong for use, shown here; those of a paper, or of "
        "its code.\n\n"
        "paper is the training of the model's own paper, code that of its authors' program. "
        "Of papers and code, the run prints what it uses; `rerank list models` says what is "
        "ours. The models of the memo have strong alone.",
        type=click.Choice(["strong", "paper", "code"]),
        default="strong",
    )
    size: str | None = optional(
        "Defaults of --embed, --hidden and --layers: small 128, 256, 1; medium 256, 512, 1; "
        "large 512, 1024, 2 [default: those of --recipe].",
        type=click.Choice(["small", "medium", "large"]),
        rare=True,
    )
    begin: Path | None = optional(
        "Model with whose weights and vocabularies training begins [default: random "
        "weights].\n\n"
        "Every tensor of it has one of the same name; further columns and further tensors "
        "begin as without --from, as those of attention-gated do beside an attention.",
        "--from",
        type=FOLDER,
        metavar="DIR",
        rare=True,
    )
    source_lm: Path | None = optional(
        "A dclm of source text, with whose weights the source side of a bilingual model "
        "begins.\n\n"
        "It is trained on source text alone, of the same sizes and parts: the bilingual "
        "model begins with its embeddings, encoder and recurrence, and has its vocabulary. "
        "Default: begin with random weights.",
        type=FOLDER,
        metavar="DIR",
        rare=True,
    )


_SHAPE = of_dataclass(attribute("lm.composition:Config"), common={"embed", "hidden", "layers"})
_TRAINING = of_dataclass(
    attribute("lm.training.settings:Settings"), common={"epochs", "minutes", "seed"}
)


@record
class TrainLmOptions:
    """Options of `rerank train-lm`.

    shape, training: fields of `lm.composition.Config` and `lm.training.settings.Settings`; those
    that are not given have the value of the recipe.
    """

    files: TrainingFiles = part(TrainingFiles, "Data and output")
    texts: TextOptions = part(TextOptions, "Data and output")
    choice: ModelChoice = part(ModelChoice, "Model")
    shape: Given = part(_SHAPE, "Model")
    training: Given = part(_TRAINING, "Training")
    machine: Machine = part(Machine, "Machine", rare={"device", "threads"})
    messages: Messages = part(Messages, "Messages")

    def check(self) -> None:
        """UsageError for options that do not fit the tokenizers, --from, or the model."""
        from lm.composition import fact, load

        name = self.choice.model
        if self.files.reverse and not fact(load(MODELS[name].context), "alone"):
            raise UsageError(
                f"--reverse: {name} has no attention over the words of one source sentence, which "
                "a channel needs; choose --model attention, or leave it out"
            )
        _check_tokenizers(self.texts, self.files.side.values())
        others = {flag: getattr(self.texts, name) for flag, name in _VOCABULARIES.items()}
        others["source-lm"] = self.choice.source_lm
        if self.choice.begin and (flags := [flag for flag, value in others.items() if value]):
            raise UsageError(
                f"--{flags[0]}: the vocabularies are those of --from; leave one of them out"
            )

    @property
    def given(self) -> dict[str, Any]:
        """The values of fields of `Config` and `Settings` that are given."""
        return {**self.shape.values(), **self.training.values()}

    def completed(self) -> dict[str, Any]:
        """The given values, and those of the recipe, for the family of the model, for all others.

        The values of a size go before those of the recipe, and what the equations of the model
        decide before both.
        """
        from lm.training.settings import SIZES, recipe

        name, model = self.choice.recipe, MODELS.named(self.choice.model)
        try:
            values = recipe(name, model.recipe)
        except ValueError as fault:
            raise UsageError(
                f"--recipe {name} --model {self.choice.model}: {fault}; choose one of these"
            ) from None
        if self.choice.size is not None:
            values = {**values, **SIZES[self.choice.size]._asdict()}
        texts = {name: getattr(self.texts, name) for name in OF_RECIPES}
        chosen = self.given | {name: value for name, value in texts.items() if value is not None}
        return {**model.adapted({**values, **chosen}), **chosen}


def _check_tokenizers(texts: TextOptions, side: Collection[str]) -> None:
    """UsageError for options that do not fit the tokenizers, or a package that is not there.

    side: kinds of side information that are given.
    """
    source = "source" in side
    of_source, of_text = ("source_vocabulary", "source_characters"), ("min_count", "unknown")
    rules = (
        (texts.tokenizer, "tokenizer", ("vocabulary", *of_text)),
        (texts.source_tokenizer, "source-tokenizer", of_source),
        (source and texts.tokenizer, "tokenizer", of_source),
    )
    for value, name, others in rules:
        for other in (other for other in others if value and getattr(texts, other)):
            raise UsageError(
                f"--{_FLAGS.get(other, other)}: the pieces of --{name} are the vocabulary; leave "
                "one of them out"
            )
    if texts.source_tokenizer and not source:
        raise UsageError("--source-tokenizer: no --source to read so; leave it out")
    if source and tokenizer_files([texts.tokenizer or ""]) and not texts.source_tokenizer:
        raise UsageError(
            f"--tokenizer {texts.tokenizer}: the source sentences need pieces, too; give "
            "--source-tokenizer, the same file if its pieces are of both languages"
        )
    for name, tokenizer in texts.tokenizers.items():
        check_package(f"--{name.replace('_', '-')}", tokenizer)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTexts:
    """Training and validation text in ids, as a model reads them, and the training vocabularies.

    side: vocabulary of each kind of side information.
    """

    train: Corpus
    valid: Corpus
    vocabulary: Vocabulary
    side: Mapping[str, Vocabulary]


def training_texts(
    options: TrainLmOptions,
    values: Mapping[str, Any],
    files: tuple[TextFiles, TextFiles],
    known: Mapping[str, Vocabulary],
    group: Processes,
    notices: Notices,
) -> TrainingTexts:
    """The texts of a training in the order in which its model reads them.

    values: completed options; files: of training and validation; known: as of `Vocabularies`.
    InputError for files that do not fit each other.
    """
    from lm.composition import fact, load
    from lm.corpus import in_reading_order, renumber
    from rerank.corpus.preparation import note_preparation

    (train, valid), chosen = files, options.texts
    documents, across = chosen.documents, chosen.across_documents
    spells = fact(load(MODELS[options.choice.model].context), "spells") or ()
    vocabularies = Vocabularies(chosen, known, spells, lambda learnt: group.gather(learnt)[0])
    text, words, raw = _read_training(chosen, train, notices)
    vocabulary = vocabularies.of_text(text, words, raw, notices)
    trained = renumber(raw, words, vocabulary)
    valid_text = RunningText(valid.text, "evaluation", documents)
    valid_words, held_out = read_text(valid_text, notices, across=across)
    note_language(
        *(valid_words, held_out, vocabulary, "the model", notices),
        path=valid.text,
        cure="give a validation text in the language of the training text",
        trained=trained.n_unknown / len(trained.tokens),
    )
    held_out = renumber(held_out, valid_words, vocabulary)
    profiles = {"training sentences": text.profile, "validation sentences": valid_text.profile}
    note_preparation(profiles, notices, source=text.source)
    if raw.n_documents == 1 and not across:
        notices.add("one-document", source=text.source, cure=_PARTED[documents])
    pair = [
        with_side(corpus, read, vocabularies.of_side, spells, documents, notices)
        for corpus, read in zip((trained, held_out), files, strict=True)
    ]
    backward, turned = values.get("backward"), values.get("reverse_documents")
    trained, held_out = (
        in_reading_order(text, backward=backward, reverse_documents=turned)
        for text in _cut(chosen, pair, files, values["streams"])
    )
    return TrainingTexts(trained, held_out, vocabulary, vocabularies.of_kinds)


def _read_training(
    options: TextOptions, train: TextFiles, notices: Notices
) -> tuple[RunningText, list[bytes], Corpus]:
    """The training text, its distinct words, and the corpus in their indices."""
    text = RunningText(train.text, "training", options.documents, options.unknown_word)
    words, raw = read_text(text, notices, across=options.across_documents)
    if options.unknown_word is not None and options.unknown_word not in words:
        raise InputError(
            f"expected the word {options.unknown!r} of --unknown in the training text, found none; "
            "correct it, or leave it out",
            source=text.source,
        )
    return text, words, raw


def _cut(
    options: TextOptions, texts: Sequence[Corpus], files: Sequence[TextFiles], streams: int
) -> list[Corpus]:
    """Training and validation text without long sentences, in stretches and passages.

    UsageError if that leaves nothing of one of them.
    """
    corpus, held_out = texts
    if options.longest is not None:
        corpus = corpus.without_longer(options.longest)
        if not corpus.n_sentences:
            raise UsageError(
                f"--longest {options.longest}: all sentences of the training text have more words; "
                "choose a larger number"
            )
    if options.across_documents:
        corpus = corpus.in_stretches(streams * STRETCHES)
        held_out = held_out.in_stretches(1)
    if (passages := options.passages) is None:
        return [corpus, held_out]
    parted = [text.in_passages(passages) for text in (corpus, held_out)]
    for text, read in zip(parted, files, strict=True):
        if not text.n_sentences:
            raise UsageError(
                f"--passages {passages}: all documents of {display(read.text)} have fewer "
                "sentences; choose a smaller number"
            )
    return parted


class Beginning(NamedTuple):
    """Models with whose weights and vocabularies training begins: --source-lm and --from."""

    source: SavedModel | None
    whole: SavedModel | None

    @property
    def about(self) -> dict[str, object]:
        """Digests of the models, and the tokenizers of --from, for the folder of the new model."""
        both = {"source_lm": self.source, "from": self.whole}
        digests = {name: saved.digest for name, saved in both.items() if saved is not None}
        known = {} if self.whole is None else self.whole.about
        return {**digests, **{name: known[name] for name in TOKENIZERS if name in known}}


def model_before(options: TrainLmOptions, values: Mapping[str, Any]) -> SavedModel | None:
    """The model of --from; UsageError if it reads in another direction."""
    folder = options.choice.begin
    if folder is None:
        return None
    saved = open_model(folder, "cpu", options.machine.threads)
    for name in ("backward", "reverse_documents"):
        if bool(getattr(saved.model.config, name)) != bool(values.get(name)):
            raise UsageError(
                f"--from {folder}: it and the model to be trained read in different directions; "
                f"give --{name.replace('_', '-')} to both, or to none"
            )
    if bool(saved.about.get("reverse")) != options.files.reverse:
        raise UsageError(
            f"--from {folder}: it and the model to be trained translate in different directions; "
            "give --reverse to both, or to none"
        )
    return saved


def begin_from(model: DocumentLM, saved: SavedModel, folder: Path | None) -> None:
    """Give a model the tensors of another, in the first columns of those that have more.

    UsageError if one of them has no tensor of its name, or of its size.
    """
    import torch

    tensors = model.state_dict()
    for name, tensor in saved.model.state_dict().items():
        to = tensors.get(name)
        if to is not None and to.ndim == tensor.ndim == 2:
            to = to[:, : tensor.shape[1]]
        if to is None or to.shape != tensor.shape:
            size = "none" if to is None else tuple(tensors[name].shape)
            raise UsageError(
                f"--from {folder}: {name} of this {saved.model.config.model} has the size "
                f"{tuple(tensor.shape)}, found {size} in {model.config.model}; train with the "
                "--model, --embed, --hidden, --layers and other parts of that model"
            )
        with torch.no_grad():
            to.copy_(tensor)


def source_model(options: TrainLmOptions, values: Mapping[str, Any]) -> SavedModel | None:
    """The model of source text of --source-lm; UsageError if no source side can begin with it.

    What a bilingual model has of the source sentences, a dclm has of text alone (Eisenstein's
    memo, §2.1: "We may also want to train this model on source-language text").
    """
    from lm.composition import load
    from lm.contexts.document import DocumentRecurrence

    folder, name = options.choice.source_lm, options.choice.model
    if folder is None:
        return None
    saved = open_model(folder, "cpu", options.machine.threads)
    config = saved.model.config
    fault = ""
    if "source" not in load(MODELS[name].context).side_information:
        fault = f"{name} reads no source sentences; leave it out"
    elif options.texts.source_vocabulary or options.texts.source_tokenizer:
        option = "vocab" if options.texts.source_vocabulary else "tokenizer"
        fault = (
            "the vocabulary of the source sentences is that of this model; leave out "
            f"--source-{option}"
        )
    elif type(saved.model.context) is not DocumentRecurrence or config.backward:
        turned = " from right to left" if config.backward else ""
        fault = (
            "expected a dclm that reads sentences from left to right, found "
            f"{config.model}{turned}; train one on source text"
        )
    elif bool(config.reverse_documents) != bool(values.get("reverse_documents")):
        fault = (
            "it and the model to be trained read documents in different directions; give "
            "--reverse-documents to both, or to none"
        )
    if fault:
        raise UsageError(f"--source-lm {folder}: {fault}")
    return saved


def begin_with(model: DocumentLM, saved: SavedModel, folder: Path | None) -> None:
    """Give the source side of a model the weights of a model of source text.

    UsageError if they differ in size or kind.
    """
    level = model.context.source_level
    if level is None:
        raise UsageError(
            f"--source-lm {folder}: {model.config.model} has no recurrence over source sentences; "
            "leave it out"
        )
    tensors = saved.model.context.state_dict()
    expected = {name: tuple(tensor.shape) for name, tensor in level.state_dict().items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != shapes:
        name = min(n for n in expected | shapes if expected.get(n) != shapes.get(n))
        raise UsageError(
            f"--source-lm {folder}: {name}: expected {expected.get(name, 'none')}, found "
            f"{shapes.get(name, 'none')}; train both with the same --embed, --hidden, --layers, "
            "--recurrence, --encoder and --sentence-recurrence"
        )
    level.load_state_dict(tensors)
