"""Options of `train-lm` that the model of a run has no use for: refused before texts are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rerank.errors import UsageError

if TYPE_CHECKING:
    from lm.model import DocumentLM
    from rerank.pipeline.recipe import Recipe

WORD_NOISE = ("dropout", "locked_dropout", "word_dropout")  # of what word states are made of
LEAVE_OUT = "leave the option out"


def refuse_unused(recipe: Recipe, given: Recipe, model: DocumentLM) -> None:
    """UsageError for an option that was given, but that this model cannot use.

    given: the recipe before it was completed.
    """
    found = (*_of_passages(given), *_of_parts(given, model), *_of_losses(recipe, given, model))
    for fault in found:
        raise UsageError(fault)


def _of_passages(given: Recipe) -> Iterator[str]:
    """Faults of options that contradict the division into passages."""
    others = {
        "across-documents": given.across_documents,
        "reverse-documents": given.reverse_documents,
    }
    for option in (name for name, value in others.items() if value and given.passages):
        yield (
            f"--passages {given.passages}: the last sentence of a passage is predicted from those "
            f"before it in its document, which --{option} does not read so; leave one of them out"
        )


def _of_parts(given: Recipe, model: DocumentLM) -> Iterator[str]:
    """Faults of options about words, sentences and contexts."""
    from lm.side_information import NUMBERS, information_of

    name = given.model
    if given.negatives and not model.head.sampled:
        yield (
            f"--negatives {given.negatives}: the head of this model is trained on all words; "
            f"{LEAVE_OUT}"
        )
    if given.backward and not model.head.predicts_end:
        yield f"--backward: {name} predicts bags of words, which have no order; {LEAVE_OUT}"
    if given.reverse_documents:
        numbers = [kind for kind in information_of(model.context) if kind in NUMBERS]
        if numbers:
            yield (
                f"--reverse-documents: {name} needs --{numbers[0]}, whose numbers count sentences "
                f"from the first one; {LEAVE_OUT}"
            )
        if not model.fusion.uses_context:
            yield (
                f"--reverse-documents: {name} reads no context, so that the order of sentences "
                f"does not matter; {LEAVE_OUT}"
            )
    for field in () if model.recurrence.width else WORD_NOISE:
        if value := getattr(given, field):
            option = f"--{field.replace('_', '-')} {value:g}"
            yield f"{option}: {name} has no states of words; {LEAVE_OUT}"
    if given.context_noise and model.order == 0:
        option = f"--context-noise {given.context_noise:g}"
        yield f"{option}: {name} reads no target context; {LEAVE_OUT}"


def _of_losses(recipe: Recipe, given: Recipe, model: DocumentLM) -> Iterator[str]:
    """Faults of options about a loss of the sentence level."""
    auxiliary = bool(model.context.auxiliary_parameters())
    if given.levels and not auxiliary:
        yield f"--levels {given.levels}: this model has no sentence level; {LEAVE_OUT}"
    if given.levels == "two-step" and model.context.training_information:
        yield (
            f"--levels two-step: {given.model} predicts words and relations from one sentence "
            "level; choose together or separate"
        )
    if given.auxiliary_weight is not None:
        option = f"--auxiliary-weight {given.auxiliary_weight:g}"
        if not auxiliary:
            yield f"{option}: {given.model} is trained by the loss of the words alone; {LEAVE_OUT}"
        if recipe.levels == "two-step":
            yield f"{option}: with --levels two-step the losses are not added; {LEAVE_OUT}"
