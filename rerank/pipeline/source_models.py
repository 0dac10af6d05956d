"""A model of source text with which the source side of a bilingual model begins its training.

Eisenstein's memo, §2.1: "We may also want to train this model on source-language text, as described
in the basic DCLM." The source side of a bilingual model is what a `dclm` has of its own text:
embeddings, encoder and recurrence over sentences. So it can begin with those of a `dclm` that
was trained on source text alone, of which there may be more than there is with translations.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import UsageError

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.contexts import Context
    from lm.model import DocumentLM
    from rerank.pipeline.recipe import Recipe


def check_source_model(saved: SavedModel, recipe: Recipe, context: type[Context]) -> None:
    """UsageError for a model of source text that no source side of this recipe can begin with.

    context: that of the model to be trained.
    """
    from lm.contexts.document import DocumentRecurrence

    option = f"--source-lm {recipe.source_lm}"
    if "source" not in context.side_information:
        raise UsageError(f"{option}: {recipe.model} reads no source sentences; leave it out")
    if recipe.source_vocabulary is not None:
        raise UsageError(
            f"{option}: the vocabulary of the source sentences is that of this model; leave out "
            "--source-vocab"
        )
    own = saved.model.config
    if type(saved.model.context) is not DocumentRecurrence or own.backward:
        raise UsageError(
            f"{option}: expected a dclm that reads sentences from left to right, found {own.model}"
            f"{' from right to left' if own.backward else ''}; train one on source text"
        )
    if bool(own.reverse_documents) != bool(recipe.reverse_documents):
        raise UsageError(
            f"{option}: it and the model to be trained read documents in different directions; "
            "give --reverse-documents to both, or to none"
        )


def begin_with(model: DocumentLM, saved: SavedModel, folder: str | Path) -> None:
    """Give the source side of a model the weights of a model of source text.

    UsageError if they differ in size or kind.
    """
    level = model.context.source_level
    if level is None:
        raise TypeError(f"{model.config.model} has no source level")
    given = saved.model.context.state_dict()
    expected = {name: tuple(tensor.shape) for name, tensor in level.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in given.items()}
    if expected != found:
        name = min(n for n in expected | found if expected.get(n) != found.get(n))
        raise UsageError(
            f"--source-lm {folder}: {name}: expected {expected.get(name, 'none')}, found "
            f"{found.get(name, 'none')}; train both with the same --embed, --hidden, --layers, "
            "--recurrence, --encoder and --sentence-recurrence"
        )
    level.load_state_dict(given)
