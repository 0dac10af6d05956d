"""A document language model: recurrence, context, fusion and head composed.

`start`, `step` and `hidden` read one word at a time; `unroll` is the parallel form of this
recurrence, over packed sentences, for training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lm.batches import PackedBatch
from lm.contexts import Context
from lm.fusions import Fusion
from lm.heads import Head
from lm.recurrence import RECURRENCES, Recurrence, select
from lm.recurrence import State as RecurrentState
from lm.rows import Rows
from lm.sentences import ReadSentences
from lm.vocabulary import SPECIAL, START
from lm.zoo import HEADS, ZOO, Composition, Part, Zoo, load

Dropout = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Config:
    """Shape of a model. `vocabulary` is V, the three special words included.

    head: a name of `lm.zoo.HEADS`; None for the head of the composition. recurrence: a name of
    `RECURRENCES`; None for that of the composition, or the LSTM. tied: None for the composition's
    choice, or tied. hash_size, hash_order: of the parts with hashed features; None for theirs.
    """

    model: str
    vocabulary: int
    embed: int = 128
    hidden: int = 256
    recurrence: str | None = None
    layers: int = 1
    tied: bool | None = None
    head: str | None = None
    hash_size: int | None = None
    hash_order: int | None = None

    def __post_init__(self) -> None:
        if self.recurrence is not None and self.recurrence not in RECURRENCES:
            raise ValueError(f"no recurrence {self.recurrence!r} is known")
        if self.head is not None and self.head not in HEADS:
            raise ValueError(f"no head {self.head!r} is known; there are {', '.join(HEADS)}")
        sizes = (self.vocabulary, self.embed, self.hidden, self.layers)
        if not all(isinstance(size, int) for size in sizes):
            raise ValueError(f"a model has sizes that are whole numbers, not {sizes}")
        if self.vocabulary < len(SPECIAL):
            raise ValueError(f"a model has at least 3 words, not {self.vocabulary}")
        if self.vocabulary >= 1 << 31:
            raise ValueError("a model has at most 2,147,483,647 words")
        if not all(1 <= size <= 1 << 16 for size in (self.embed, self.hidden)):
            raise ValueError("a model has sizes of 1 to 65,536")
        if not 1 <= self.layers <= 64:
            raise ValueError(f"a model has 1 to 64 layers, not {self.layers}")
        if self.hash_size is not None and not 1 <= self.hash_size < 1 << 31:
            raise ValueError(f"a table has 1 to 2,147,483,647 slots, not {self.hash_size}")
        if self.hash_order not in (None, 2, 3):
            raise ValueError(f"hashed n-grams have 2 or 3 words, not {self.hash_order}")

    def as_json(self) -> dict[str, object]:
        """The fields by name; without those that are the composition's."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class ConfigError(ValueError):
    """A configuration that a composition refuses; `option` names the field."""

    def __init__(self, option: str, fault: str) -> None:
        self.option = option
        super().__init__(fault)


def check_config(config: Config, composition: Composition) -> None:
    """ConfigError for a choice that the equations of a composition leave no room for."""
    if composition.recurrence is not None and config.recurrence is not None:
        raise ConfigError("recurrence", f"{config.model} has a recurrence of its own")
    if composition.tied is not None and config.tied not in (None, composition.tied):
        kind = "one matrix" if composition.tied else "separate matrices"
        raise ConfigError("tied", f"{config.model} has {kind} for input and output")
    if composition.only_head and config.head is not None:
        raise ConfigError("head", f"{config.model} has a head of its own")
    if composition.one_size and config.embed != config.hidden:
        raise ConfigError(
            "embed",
            f"{config.model} has no embeddings beside its hidden layers: expected as many columns "
            f"as hidden units, found {config.embed} and {config.hidden}",
        )
    if config.hash_size is not None and config.hash_size < config.vocabulary:
        raise ConfigError(
            "hash_size",
            f"expected at least a slot for each of {config.vocabulary:,} words of the vocabulary",
        )
    taken = options_of(config, composition)
    for name in ("hash_size", "hash_order"):
        if getattr(config, name) is not None and name not in taken:
            raise ConfigError(name, f"no part of this {config.model} has hashed features of words")


def options_of(config: Config, composition: Composition) -> set[str]:
    """Fields of a configuration that the parts of the composition take."""
    parts = (_head(config, composition), composition.context, composition.fusion)
    return {name for part in parts for name in _options(part)}


def _head(config: Config, composition: Composition) -> Part:
    return composition.head if config.head is None else HEADS[config.head]


def _options(part: Part) -> tuple[str, ...]:
    """Fields of `Config` that the maker of a part takes."""
    maker = load(part)
    while isinstance(maker, partial):
        maker = maker.func
    return getattr(maker, "options", ())


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """B sentences after the same number of words.

    share: what fusion needs of the contexts' values, if that is the same for all words;
    contexts: all of them, if fusion needs a value for each word, else None; rows: (B,) row of
    each sentence's context in these.
    """

    recurrent: RecurrentState
    share: Tensor | None
    contexts: Rows | None
    rows: Tensor

    def take(self, index: Tensor) -> State:
        """The sentences at some positions of the batch."""
        return State(select(self.recurrent, index), self.share, self.contexts, self.rows[index])


class DocumentLM(nn.Module):
    """Language model of a sentence given the context of the sentences before it.

    `zoo` holds the composition that the configuration names. ValueError if it does not, if the
    configuration contradicts the composition, or if this needs side information, which no reader
    supplies yet.
    """

    def __init__(self, config: Config, zoo: Zoo = ZOO) -> None:
        super().__init__()
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
        self.config = config
        composition = zoo[config.model]
        check_config(config, composition)
        cell = load(composition.recurrence or RECURRENCES[config.recurrence or "lstm"])
        self.embedding = nn.Embedding(config.vocabulary, config.embed)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        # for its sizes; its random numbers are drawn too, so that seeds keep their weights
        sizes: Recurrence = cell(1, config.hidden, config.layers)
        self.context: Context = _made(composition.context, config, self.embedding, sizes)
        if missing := ", ".join(self.context.side_information):
            raise ValueError(f"the context of {config.model!r} needs {missing}: not supported yet")
        self.fusion: Fusion = _made(composition.fusion, config, self.context.width, sizes)
        self.recurrence: Recurrence = sizes.like(config.embed + self.fusion.input_columns)
        tied = next(t for t in (composition.tied, config.tied, True) if t is not None)
        columns = sizes.width, self.fusion.output_columns
        head = _head(config, composition)
        self.head: Head = _made(head, config, *columns, self.embedding, tied=tied)
        self.recurrence.initialise(self.embedding)

    @classmethod
    def seeded(cls, config: Config, seed: int, zoo: Zoo = ZOO) -> DocumentLM:
        """A fresh model whose initial weights are a function of the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(config, zoo)

    @classmethod
    def without_memory(cls, config: Config, zoo: Zoo = ZOO) -> DocumentLM:
        """A model whose tensors have shapes and types, but no memory: their device is `meta`."""
        with _WithoutMemory():
            return cls(config, zoo)

    # Facts that follow from those of the parts

    @property
    def order(self) -> int | None:
        """Number of earlier target sentences a score depends on; None where unbounded."""
        if not self.fusion.uses_context:
            return 0
        if self.context.reads_states and self.fusion.hidden_depends_on_context:
            return None
        return self.context.sentences

    @property
    def additive(self) -> bool:
        """Whether a context only adds a vector to all logits of a sentence."""
        adds = self.fusion.adds_to_logits and not self.fusion.hidden_depends_on_context
        return adds and not self.context.per_word and self.head.linear

    @property
    def _value_enters_words(self) -> bool:
        """Whether hidden states depend on a value for each word."""
        return self.context.per_word and self.fusion.hidden_depends_on_context

    # One word at a time

    def start(self, contexts: Rows, inputs: Tensor) -> State:
        """States after `<s>` in some contexts; inputs: `word_inputs()`."""
        words = torch.full((len(contexts),), START, device=contexts.device)
        return self.step(self._before_words(contexts), words, inputs)

    def _before_words(self, contexts: Rows) -> State:
        share = None
        if not self.context.per_word:
            share = self.fusion.share(self.recurrence, self.context.value(contexts))
        initial = self.fusion.initial(self.recurrence, self.context, contexts)
        rows = torch.arange(len(contexts), device=contexts.device)
        return State(initial, share, contexts if self._value_enters_words else None, rows)

    def word_inputs(self) -> Tensor:
        """Share (V, P) of every word in the first layer's pre-activations."""
        return self.recurrence.project(self.embedding.weight)

    def step(self, state: State, words: Tensor, inputs: Tensor) -> State:
        """States after one more word each; words: (B,) ids, inputs: `word_inputs()`."""
        return self._projected_step(state, inputs[words])

    def _projected_step(self, state: State, projected: Tensor) -> State:
        share = None if state.share is None else state.share[state.rows]
        if state.contexts is not None:
            value = self.context.word_values(state.contexts, state.rows, self.hidden(state))
            share = self.fusion.share(self.recurrence, value)
        recurrent = self.fusion.step(self.recurrence, projected, state.recurrent, share)
        return State(recurrent, state.share, state.contexts, state.rows)

    def hidden(self, state: State) -> Tensor:
        """Top hidden states, (B, H)."""
        return self.recurrence.output(state.recurrent)

    # All positions at once

    def unroll(
        self, batch: PackedBatch, contexts: Rows, dropout: Dropout = lambda x: x
    ) -> ReadSentences:
        """Packed sentences read in their contexts (B rows in the caller's order)."""
        projected = self.recurrence.project(dropout(self.embedding(batch.inputs)))
        state = self._before_words(contexts.take(batch.order))
        if self._value_enters_words:
            recurrent = self._unroll_by_steps(batch.sizes, state, projected)
        else:
            share = None if state.share is None else state.share[batch.rows]
            recurrent = self.fusion.unroll(
                self.recurrence, projected, state.recurrent, sizes=batch.sizes, share=share
            )
        return ReadSentences(batch.positions, self.recurrence.output(recurrent), recurrent)

    def _unroll_by_steps(
        self, sizes: tuple[int, ...], state: State, projected: Tensor
    ) -> RecurrentState:
        """Recurrent states of all positions where a word's value depends on the state before."""
        states = []
        for step in torch.split(projected, list(sizes)):
            rows = torch.arange(len(step), device=step.device)
            state = self._projected_step(state.take(rows), step)
            states.append(state.recurrent)
        return tuple(torch.cat(column) for column in zip(*states, strict=True))

    def features(
        self, read: ReadSentences, contexts: Rows, dropout: Dropout = lambda x: x
    ) -> Tensor:
        """Output features (N, R) of all positions of sentences, given their contexts."""
        positions = read.positions

        def value() -> Tensor:
            if not self.context.per_word:
                return self.context.value(contexts)[positions.context]
            query = positions.previous(read.hidden)
            return self.context.word_values(contexts, positions.context, query)

        h, c = self.fusion.output(dropout(read.hidden), value)
        return self.head.at_positions(self.head.features(h, c), positions)


def _made(part: Part, config: Config, *args: object, **named: object) -> Any:
    """A part, made with those fields of the configuration that it takes."""
    own = {name: getattr(config, name) for name in _options(part)}
    return load(part)(*args, **named, **{n: v for n, v in own.items() if v is not None})


def sparse_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters whose gradients may be sparse: those of modules that state `sparse`."""
    modules = (module for module in model.modules() if getattr(module, "sparse", False))
    return [parameter for module in modules for parameter in module.parameters(recurse=False)]


def n_parameters(model: nn.Module) -> int:
    """Number of trained parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


class _WithoutMemory(TorchFunctionMode):
    """Context manager in which new tensors are on the device `meta`.

    `with torch.device("meta")` would do it too, but `normal_`, which nn.Embedding calls, then
    imports for 3 s.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else named["tensor"]
        if func in _FACTORIES:
            named["device"] = "meta"
        return func(*args, **named)


_FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
