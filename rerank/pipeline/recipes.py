"""Recipes of training: completed, and checked against the model and the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rerank.errors import UsageError
from rerank.pipeline.recipe import Recipe
from rerank.pipeline.unused_options import WORD_NOISE, refuse_unused
from rerank.registry import MODELS
from rerank.scorers.model_folders import memory_bytes

if TYPE_CHECKING:
    import torch

    from lm.model import DocumentLM
    from lm.training.settings import Settings

TRAINING_BYTES = 16  # for each parameter: its value, gradient and two moments in float32
AVERAGING_BYTES = 4  # for each parameter: its average
EXTRAS = {"sklearn": ("scikit-learn", "topics")}  # packages by module, and what installs them


def check_packages(recipe: Recipe) -> None:
    """UsageError if the model learns from the training text with a package that is not there."""
    from lm.composition import fact, load

    module = fact(load(MODELS.named(recipe.model).context), "learns_with")
    if module is not None and find_spec(module) is None:
        package, extra = EXTRAS.get(module, (module, ""))
        cure = f"pip install 'rerank-mt[{extra}]'" if extra else "install it"
        raise UsageError(f"--model {recipe.model}: training needs {package}: {cure}")


def completed(recipe: Recipe) -> Recipe:
    """The recipe with the values of its name, for the family of its model, where none is given.

    The values of a size go before those of the recipe's name, and what the equations of the model
    decide before both.
    """
    from lm.training.settings import SIZES
    from lm.training.settings import recipe as values_of

    model = MODELS.named(recipe.model)
    try:
        values = values_of(recipe.recipe, model.recipe)
    except ValueError as fault:
        raise UsageError(
            f"--recipe {recipe.recipe} --model {recipe.model}: {fault}; choose one of these"
        ) from None
    if recipe.size is not None:
        values = {**values, **SIZES[recipe.size]._asdict()}
    given = {name: value for name in values if (value := getattr(recipe, name)) is not None}
    return replace(recipe, **{**model.adapted({**values, **given}), **given})


def settings_of(recipe: Recipe, given: Recipe, model: DocumentLM) -> Settings:
    """Settings of the training of a model by a completed recipe.

    given: the recipe before it was completed. Where sentences begin in a carried state, which
    would be lost for the rest of the document, no context is dropped unless it is asked for. An
    objective that needs sampled words has its own number of them.
    UsageError for a value that this model cannot use.
    """
    from lm.training.settings import Settings

    refuse_unused(recipe, given, model)
    unused = () if model.recurrence.width else WORD_NOISE
    settings = Settings(**{**recipe.values(Settings), **dict.fromkeys(unused, 0.0)})
    settings = replace(settings, negatives=_negatives(settings, given, model))
    if given.context_dropout is None and model.context.carries_state:
        settings = replace(settings, context_dropout=0.0)
    return settings


def _negatives(settings: Settings, given: Recipe, model: DocumentLM) -> int:
    """Number of words to sample; UsageError where there can be none, but the objective needs them.

    settings: with the number of the recipe, if none is given.
    """
    from lm.training.objectives import OBJECTIVES

    samples = OBJECTIVES[settings.objective].samples
    if not samples:
        return settings.negatives if model.head.sampled else 0
    option = f"--objective {settings.objective}"
    if not model.head.sampled:
        raise UsageError(
            f"{option}: the head of this model is trained on all words; leave the option out"
        )
    if given.negatives == 0:
        raise UsageError(
            f"{option}: expected noise words, found --negatives 0; give a number, or leave it out"
        )
    return given.negatives or samples


def described(recipe: str, settings: Settings) -> str:
    """Settings of a run in one line."""
    values = (
        f"{name.replace('_', ' ')} {value:g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
        for name, value in asdict(settings).items()
        if value is not None
    )
    return f"recipe {recipe}: {', '.join(values)}"


@contextmanager
def fitting(recipe: Recipe) -> Iterator[None]:
    """UsageError for a shape that the model of a recipe does not have."""
    try:
        yield
    except ValueError as fault:
        raise UsageError(f"--model {recipe.model}: {fault}") from None


def check_model(recipe: Recipe, given: Recipe, device: torch.device) -> None:
    """UsageError for a model that cannot be trained so on this device, whatever its vocabulary is.

    given: the recipe before it was completed. No text has been read yet.
    """
    import torch

    from lm.composition import load
    from lm.model import Config, DocumentLM, n_parameters
    from lm.side_information import KINDS, information_of
    from lm.vocabulary import SPECIAL

    try:
        with fitting(recipe), torch.device("meta"):  # no numbers
            kinds = information_of(load(MODELS[recipe.model].context))
            sizes = dict.fromkeys(
                ("vocabulary", *(KINDS[kind] for kind in kinds if kind in KINDS)), len(SPECIAL)
            )
            config = Config(**recipe.values(Config) | sizes)
            model = DocumentLM(config, MODELS)
    except RuntimeError:  # of a plug-in that computes with numbers when it is made
        return
    each = TRAINING_BYTES + (AVERAGING_BYTES if recipe.averaging else 0)
    needed, held = each * n_parameters(model), memory_bytes(device)
    if needed > held:
        table = "" if recipe.hash_size is None else f" --hash-size {recipe.hash_size}"
        raise UsageError(
            f"--embed {recipe.embed} --hidden {recipe.hidden} --layers {recipe.layers}{table}: "
            f"training needs more than {needed / 1e9:,.0f} GB, {device} has {held / 1e9:,.0f} GB; "
            "choose smaller sizes"
        )
    settings_of(recipe, given, model)
