"""The parts of a model, as its composition or its configuration names them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from lm.composition import FUSIONS, HEADS, RECURRENCES, Composition, Part, fact, load
from lm.config import Config
from lm.contexts import Context
from lm.fusions import Fusion
from lm.heads import Head
from lm.recurrences import Recurrence
from lm.side_information import KINDS, information_of

# Fields of a configuration that makers of parts may take, and what a model lacks that has no use
# for the value found.
OPTIONS = {
    "attention": "attention, found a size {} of it",
    "hash_size": "hashed features, found a size {} of their table",
    "hash_order": "hashed n-grams of words, found a length {} of them",
    "encoder": "choice of a sentence encoder, found {!r}",
    "sentence_recurrence": "choice of a recurrence over sentences, found {!r}",
    "source_words": "source sentences, found a vocabulary of {} words of theirs",
    "source_context": "source sentences, found the choice {!r} of them",
    "relation_labels": "discourse relations, found {} labels of them",
    "thought": "thought vector, found a size {} of it",
    "topic_model": "topics, found a model {} of them",
    "topics_number": "topics, found a number {} of them",
    "topic_labels": "topics given by a file, found {} labels of them",
    "relation_classifier": "classifier of discourse relations, found {!r}",
}


def decided(config: Config, composition: Composition) -> Config:
    """The configuration with an LSTM and tied matrices where nobody has chosen.

    None stays where the composition decides. ValueError for a choice of which it leaves none.
    """
    _check(config, composition)
    free = {"recurrence": config.recurrence or "lstm", "tied": config.tied is not False}
    return replace(config, **composition.adapted({**free, "hidden": config.hidden}))


def _check(config: Config, composition: Composition) -> None:
    """ValueError for a choice that the equations of a composition leave no room for."""
    model = repr(config.model)
    if composition.recurrence is not None and config.recurrence is not None:
        raise ValueError(
            f"{model} has a recurrence of its own, found {config.recurrence!r}; leave that out"
        )
    if composition.tied is not None and config.tied not in (None, composition.tied):
        own, other = ("tied", "untied") if composition.tied else ("untied", "tied")
        raise ValueError(f"{model} has {own} embeddings, found {other} ones; leave that out")
    for kind, name in (("fusion", config.fusion), ("head", config.head)):
        if composition.fixed and name is not None:
            raise ValueError(f"{model} has a {kind} of its own, found {name!r}; leave that out")
    if composition.one_size and config.embed != config.hidden:
        raise ValueError(
            f"{model} has no embeddings beside its hidden layers: expected as many columns as "
            f"hidden units, found {config.embed} and {config.hidden}; give one size for both"
        )
    taken = options_of(config, composition)
    for name, fault in OPTIONS.items():
        if (value := getattr(config, name)) is not None and name not in taken:
            raise ValueError(f"{model} has no {fault.format(value)}; leave that out")


def options_of(config: Config, composition: Composition) -> set[str]:
    """Fields of a configuration that the parts of the composition take."""
    parts = composition.context, _fusion(config, composition), _head(config, composition)
    return {name for part in parts for name in _options(part)}


def recurrence_of(config: Config, composition: Composition) -> Any:
    """The maker of the composition's own recurrence, or else of the one decided."""
    own = composition.recurrence
    return load(RECURRENCES[str(config.recurrence)] if own is None else own)


def context_of(
    config: Config, composition: Composition, embedding: nn.Embedding, sizes: Recurrence
) -> Context:
    """The context of a composition; sizes: a recurrence of the word level's kind and size.

    ValueError if it needs side information of which the configuration does not say how many words
    there are.
    """
    needed = information_of(load(composition.context))
    if missing := [
        kind for kind in needed if kind in KINDS and getattr(config, KINDS[kind]) is None
    ]:
        raise ValueError(f"{config.model!r} needs side information: {', '.join(missing)}")
    context: Context = _made(composition.context, config, embedding, sizes)
    return context


def fusion_of(
    config: Config, composition: Composition, context: Context, over_words: Recurrence
) -> Fusion:
    """The fusion configured, or else that of the composition; over_words: for its sizes.

    ValueError if the context has nothing that the fusion configured could use.
    """
    part = _fusion(config, composition)
    if config.fusion is not None and not context.width and not context.carries_state:
        raise ValueError(
            f"{config.model!r} has no context, found the fusion {config.fusion!r}; leave that out"
        )
    if config.fusion is not None and fact(load(part), "needs_state") and not context.carries_state:
        raise ValueError(
            f"the fusion {config.fusion!r} needs a context that carries a recurrent state, which "
            f"that of {config.model!r} does not; choose another fusion"
        )
    fusion: Fusion = _made(part, config, context.width, over_words)
    return fusion


def head_of(
    config: Config, composition: Composition, columns: tuple[int, int], embedding: nn.Embedding
) -> Head:
    """The head configured, or else that of the composition, over columns H and D."""
    tied = config.tied if composition.tied is None else composition.tied
    head: Head = _made(_head(config, composition), config, *columns, embedding, tied=tied)
    return head


def _fusion(config: Config, composition: Composition) -> Part:
    return composition.fusion if config.fusion is None else FUSIONS[config.fusion]


def _head(config: Config, composition: Composition) -> Part:
    return composition.head if config.head is None else HEADS[config.head]


def _options(part: Part) -> tuple[str, ...]:
    """Fields of `Config` that the maker of a part takes."""
    return fact(load(part), "options") or ()


def _made(part: Part, config: Config, *args: object, **named: object) -> Any:
    """A part, made with those fields of the configuration that it takes."""
    own = {name: getattr(config, name) for name in _options(part)}
    return load(part)(*args, **named, **{n: v for n, v in own.items() if v is not None})
