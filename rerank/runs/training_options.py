"""Options of `rerank train-lm`, and how a recipe completes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from rerank.errors import UsageError
from rerank.options import Given, of_dataclass, option, part, record
from rerank.registry import MODELS, attribute
from rerank.runs.options import Machine, Messages, side_files
from rerank.runs.subwords import check_package, tokenizer_files
from rerank.runs.texts import TextOptions
from rerank.values import FILE, FOLDER, MemberName

_VOCABULARIES = {  # options of texts that make vocabularies, and their fields
    **{"vocab": "vocabulary", "vocab-min-count": "min_count", "source-vocab": "source_vocabulary"},
    **{"source-characters": "source_characters"},
    **{"tokenizer": "tokenizer", "source-tokenizer": "source_tokenizer"},
}
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
    reverse: bool = option(
        "Exchange the sides: learn log p(source | target), the channel, of --source given --train; "
        "other options of the source are then of --train, which is read. The folder says so, and "
        "--lm NAME=DIR,reverse=yes takes it. For --model attention.",
        default=False,
        rare=True,
    )
    out: Path = option("New folder for the model.", type=FOLDER, metavar="DIR")
    resume: bool = option("Continue the interrupted training in --out.", default=False)
    curve: str | None = option(
        "New file for the learning curve: tab-separated figures of every validation. --resume "
        "extends it.",
        type=FILE,
        default=None,
        rare=True,
    )


@record
class ModelChoice:
    """Which model is trained, and where its values and its source side begin."""

    model: str = option(
        "Language model; `rerank list models` shows what each is, and its number of parameters.",
        type=MemberName(MODELS),
    )
    recipe: str = option(
        "Defaults of the options for the model and its training: strong for use, shown here; "
        "paper is the training of the model's own paper, code that of its authors' program. Of "
        "papers and code, the run prints what it uses; `rerank list models` says what is ours. The "
        "models of the memo have strong alone.",
        type=click.Choice(["strong", "paper", "code"]),
        default="strong",
    )
    size: str | None = option(
        "Defaults of --embed, --hidden and --layers: small 128, 256, 1; medium 256, 512, 1; "
        "large 512, 1024, 2 [default: those of --recipe].",
        type=click.Choice(["small", "medium", "large"]),
        default=None,
        rare=True,
    )
    begin: Path | None = option(
        "Model with whose weights and vocabularies training begins: every tensor of it has one of "
        "the same name; further columns and further tensors begin as without --from, as those of "
        "attention-gated do beside an attention [default: begin with random weights].",
        "--from",
        type=FOLDER,
        default=None,
        metavar="DIR",
        rare=True,
    )
    source_lm: Path | None = option(
        "A dclm trained on source text alone, of the same sizes and parts: the source side of a "
        "bilingual model begins with its embeddings, encoder and recurrence, and has its "
        "vocabulary [default: begin with random weights].",
        type=FOLDER,
        default=None,
        metavar="DIR",
        rare=True,
    )


_SHAPE = of_dataclass(attribute("lm.config:Config"), common={"embed", "hidden", "layers"})
_TRAINING = of_dataclass(
    attribute("lm.training.settings:Settings"), common={"epochs", "minutes", "seed"}
)


@record
class TrainLmOptions:
    """Options of `rerank train-lm`.

    shape, training: fields of `lm.config.Config` and `lm.training.settings.Settings`; those that
    are not given have the value of the recipe.
    """

    files: TrainingFiles = part(TrainingFiles, "Data and output")
    texts: TextOptions = part(TextOptions, "Data and output")
    choice: ModelChoice = part(ModelChoice, "Model")
    shape: Given = part(_SHAPE, "Model")
    training: Given = part(_TRAINING, "Training")
    machine: Machine = part(Machine, "Machine")
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
        if self.choice.begin and (given := [flag for flag, value in others.items() if value]):
            raise UsageError(
                f"--{given[0]}: the vocabularies are those of --from; leave one of them out"
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
        given = self.given | {name: value for name, value in texts.items() if value is not None}
        return {**model.adapted({**values, **given}), **given}


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
