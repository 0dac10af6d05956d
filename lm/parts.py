"""Context and fusion of a model as its configuration names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from lm.contexts import Context
from lm.fusions import Fusion
from lm.recurrence import Recurrence
from lm.zoo import FUSIONS, Composition, fact, load

if TYPE_CHECKING:
    from lm.model import Config


def context_of(
    config: Config, composition: Composition, embedding: nn.Embedding, sizes: Recurrence
) -> Context:
    """The context of a composition; sizes: a recurrence of the word level's kind and size.

    ValueError if it needs side information, or has no attention of the size configured.
    """
    maker = load(composition.context)
    options: dict[str, int | None] = {}
    if fact(maker, "per_word"):
        options["attention"] = config.attention
    elif config.attention is not None:
        raise ValueError(
            f"{config.model!r} has no attention, found a size {config.attention} of it; leave "
            "that out"
        )
    context: Context = maker(embedding, sizes, **options)
    if missing := ", ".join(context.side_information):
        raise ValueError(f"the context of {config.model!r} needs {missing}: not supported yet")
    return context


def fusion_of(
    config: Config, composition: Composition, context: Context, over_words: Recurrence
) -> Fusion:
    """The fusion configured, or else that of the composition; over_words: for its sizes.

    ValueError if the context has nothing that the fusion configured could use.
    """
    maker = load(composition.fusion if config.fusion is None else FUSIONS[config.fusion])
    if config.fusion is not None and context.sentences == 0:
        raise ValueError(
            f"{config.model!r} has no context, found the fusion {config.fusion!r}; leave that out"
        )
    if config.fusion is not None and fact(maker, "needs_state") and not context.carries_state:
        raise ValueError(
            f"the fusion {config.fusion!r} needs a context that carries a recurrent state, which "
            f"that of {config.model!r} does not; choose another fusion"
        )
    fusion: Fusion = maker(context.width, over_words)
    return fusion
