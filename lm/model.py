"""A document language model: recurrence, context, fusion and head composed.

`before` and `step` read word by word, as scoring does; `unroll` is the parallel form of this
recurrence, over packed sentences, for training; `features` are what the head predicts from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from lm.backend import WithoutMemory
from lm.composition import FUSIONS, HEADS, RECURRENCES, Composition, Facts, Part, Zoo, fact, load
from lm.composition import Config as Config
from lm.contexts import Context, Prepared, carrying
from lm.corpus import PackedBatch
from lm.fusions import Fusion, Share
from lm.heads import Head
from lm.recurrences import Recurrence, select
from lm.recurrences import State as RecurrentState
from lm.sentences import Positions, PositionStates, ReadSentences, Rows
from lm.side_information import KINDS, information_of, is_causal
from lm.vocabulary import START
from lm.zoo import ZOO

Dropout = Callable[[Tensor], Tensor]  # of values (N, D)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """B sentences after the same number of words.

    One of two is set. share: what fusion needs of the contexts' values, if that is the same for all
    words. contexts: all of them, prepared, if a value is asked for at each word; then value: (B, D)
    that entered with the last word, and prefix: (B, C) sums of the context's terms of the words so
    far, if values depend on them. rows: (B,) row of each sentence in share or contexts, None where
    sentence b has row b.
    """

    recurrent: RecurrentState
    share: Tensor | None
    contexts: Prepared | None
    rows: Tensor | None = None
    value: Tensor | None = None
    prefix: Tensor | None = None

    def take(self, index: Tensor) -> State:
        """The sentences at some positions of the batch."""
        rows = index if self.rows is None else self.rows[index]
        recurrent = select(self.recurrent, index)
        prefix = None if self.prefix is None else self.prefix[index]
        return State(recurrent, self.share, self.contexts, rows, prefix=prefix)

    def first(self, n: int) -> State:
        """The first n sentences, where sentence b has row b of the contexts: views."""
        share = None if self.share is None else self.share[:n]
        return State(tuple(tensor[:n] for tensor in self.recurrent), share, self.contexts)


class DocumentLM(nn.Module):
    """Language model of a sentence given the context of the sentences before it.

    `zoo` holds the composition that the configuration names. ValueError if it does not, or if
    composition and configuration do not fit each other.
    """

    def __init__(self, config: Config, zoo: Zoo = ZOO) -> None:
        super().__init__()
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
        composition = with_choices(zoo[config.model], config)
        self.config = config = decided(config, composition)
        cell = load(composition.recurrence or RECURRENCES[str(config.recurrence)])
        self.embedding = nn.Embedding(config.vocabulary, config.embed)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        # for its sizes; its random numbers are drawn too, so that seeds keep their weights
        sizes = cell(1, config.hidden, config.layers)
        self.context: Context = _made(composition.context, config, self.embedding, sizes)
        _check_fusion(config, composition, self.context)
        with WithoutMemory():  # it draws no random numbers
            over_words = cell(config.embed, config.hidden, config.layers)
        self.fusion: Fusion = _made(composition.fusion, config, self.context.width, over_words)
        self.recurrence: Recurrence = sizes.like(config.embed + self.fusion.input_columns)
        columns = sizes.width, self.fusion.output_columns
        tied = config.tied if composition.tied is None else composition.tied
        self.head: Head = _made(composition.head, config, *columns, self.embedding, tied=tied)
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
        with WithoutMemory():
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
    def causal(self) -> bool:
        """Whether scores depend on no later target sentence, and add up to those of documents.

        Otherwise a sentence's score depends on the next, too: their sum is a pseudo-likelihood.
        """
        return not self.fusion.uses_context or is_causal(self.context)

    @property
    def additive(self) -> bool:
        """Whether a context only adds a vector, `Context.value`, to all logits of a sentence."""
        adds = self.fusion.adds_to_logits and not self.fusion.hidden_depends_on_context
        return adds and not self.context.per_word and self.head.linear

    @property
    def facts(self) -> Facts:
        """What a folder states of its model."""
        return Facts(
            order=self.order,
            causal=self.causal,
            additive=self.additive,
            normalised=self.head.normalised,
            alone=self.context.alone,
            information=information_of(self.context, training=False),
        )

    @property
    def _value_enters_words(self) -> bool:
        """Whether hidden states depend on a value for each word."""
        return self.context.per_word and self.fusion.hidden_depends_on_context

    # Word by word

    def start(self, contexts: Rows, inputs: Tensor) -> State:
        """States after `<s>` in some contexts; inputs: `word_inputs()`."""
        words = torch.full((len(contexts),), START, device=contexts.device)
        return self.step(self.before(contexts), words, inputs[words])

    def before(self, contexts: Rows) -> State:
        """States before `<s>` in some contexts."""
        share = None
        if not self.context.per_word:
            share = self.fusion.share(self.recurrence, self.context.value(contexts))
        initial = self.fusion.initial(self.recurrence, self.context, contexts)
        enters = self._value_enters_words
        return State(initial, share, self.context.prepared(contexts) if enters else None)

    def word_inputs(self) -> Tensor:
        """Share (V, P) of every word in the first layer's pre-activations."""
        return self.recurrence.project(self.embedding.weight)

    def step(self, state: State, words: Tensor, projected: Tensor) -> State:
        """States after another word each; words: (B,) ids, projected: their `word_inputs()`."""
        rows, prefix, value = state.rows, state.prefix, None
        share: Share = state.share
        if self.fusion.asks:
            share = partial(self._values, state.contexts, rows)
        elif state.contexts is not None:
            if self.context.reads_prefix:
                terms = self.context.word_terms(words)
                query = prefix = terms if prefix is None else prefix + terms
            elif self.context.reads_layers:
                query = self.recurrence.hidden_states(state.recurrent)
            else:
                query = self.hidden(state)
            value = self._values(state.contexts, rows, query)
            share = self.fusion.share(self.recurrence, value)
        elif state.share is not None and rows is not None:
            share = state.share[rows]
        recurrent = self.fusion.step(self.recurrence, projected, state.recurrent, share)
        return State(recurrent, state.share, state.contexts, rows, value, prefix)

    def _values(self, contexts: Prepared, rows: Tensor | None, query: Tensor) -> Tensor:
        """Values (N, D) of prepared contexts at N rows, or of the first N, asked by queries."""
        if rows is None:
            return self.context.row_values(contexts, query)
        return self.context.word_values(contexts, rows, query)

    def hidden(self, state: State) -> Tensor:
        """Top hidden states, (B, H)."""
        return self.recurrence.output(state.recurrent)

    def kept(self, state: State) -> PositionStates:
        """What is kept of B positions for `features` and for the context."""
        whole = state.recurrent if self.context.carries_state else ()
        layers = None
        if self.context.reads_layers:
            layers = self.recurrence.hidden_states(state.recurrent)
        return PositionStates(self.hidden(state), whole, layers, state.value)

    # After the head

    def interpolated(
        self, log_probs: Tensor, words: Tensor, rows: Tensor, contexts: Rows
    ) -> Tensor:
        """Log-probabilities (M,) of words, in the contexts of their rows, mixed; here unchanged."""
        return log_probs

    # All positions at once

    def unroll(
        self, batch: PackedBatch, contexts: Rows, dropout: Dropout = lambda x: x
    ) -> ReadSentences:
        """Packed sentences read in their contexts (B rows in the caller's order)."""
        positions = batch.positions
        projected = self.recurrence.project(dropout(self.embedding(batch.inputs)))
        state, values = self.before(contexts.take(batch.order)), None
        share: Share = None
        if self.fusion.asks:
            share = partial(self._values, state.contexts, batch.rows)
        elif state.share is not None:
            share = state.share[batch.rows]
        elif self._value_enters_words and self.context.reads_prefix:
            values = self._prefix_values(positions, contexts)
            share = self.fusion.share(self.recurrence, values)
        elif self._value_enters_words:
            return ReadSentences(positions, self._with_queries(batch, projected, state))
        recurrent = self.fusion.unroll(
            self.recurrence, projected, state.recurrent, sizes=batch.sizes, share=share
        )
        return ReadSentences(positions, self.kept(State(recurrent, None, None, value=values)))

    def _with_queries(self, batch: PackedBatch, projected: Tensor, state: State) -> PositionStates:
        """What is kept of all positions where a word's value depends on the state before it."""
        if self.fusion.linear:
            unrolled = self.context.unroll(
                self.recurrence,
                projected,
                state.recurrent,
                sizes=batch.sizes,
                prepared=state.contexts,
                share=lambda values: cast(Tensor, self.fusion.share(self.recurrence, values)),
            )
            if unrolled is not None:
                recurrent, values = unrolled
                return self.kept(State(recurrent, None, None, value=values))
        steps = []
        both = (torch.split(rows, list(batch.sizes)) for rows in (batch.inputs, projected))
        for words, of_words in zip(*both, strict=True):
            state = self.step(state.first(len(words)), words, of_words)
            steps.append(self.kept(state))
        return PositionStates.cat(steps)

    def _prefix_values(self, positions: Positions, contexts: Rows) -> Tensor:
        """The context's values (N, D) at positions whose words are known."""
        prefixes = positions.sums(self.context.word_terms(positions.words))
        prepared = self.context.prepared(contexts)
        return self.context.word_values(prepared, positions.context, prefixes)

    def features(
        self, read: ReadSentences, contexts: Rows, dropout: Dropout = lambda x: x
    ) -> Tensor:
        """Output features (N, R) of all positions of sentences in their contexts."""
        positions = read.positions

        def value() -> Tensor:
            if not self.context.per_word:
                return self.context.value(contexts)[positions.context]
            if read.states.values is not None:
                return read.states.values
            if self.context.reads_prefix:
                return self._prefix_values(positions, contexts)
            query = read.hidden if read.states.layers is None else read.states.layers
            if not self.fusion.asks:
                query = positions.previous(query)
            prepared = self.context.prepared(contexts)
            return self.context.word_values(prepared, positions.context, query)

        def words() -> Tensor:
            return dropout(self.embedding(positions.words))

        h, c = self.fusion.output(dropout(read.hidden), value, words)
        return self.head.at_positions(self.head.features(h, c), positions)


def with_choices(composition: Composition, config: Config) -> Composition:
    """The composition with the fusion and the head that a configuration chooses instead.

    A context carries the recurrent state, too, if the fusion needs that and the context can.
    """
    fusion = composition.fusion if config.fusion is None else FUSIONS[config.fusion]
    head = composition.head if config.head is None else HEADS[config.head]
    context = load(composition.context)
    if fact(load(fusion), "needs_state") and fact(context, "may_carry_state"):
        context = carrying(context)
    return replace(composition, context=context, fusion=fusion, head=head)


def options_of(config: Config, composition: Composition) -> set[str]:
    """Fields of a configuration that the parts of a composition, or those in their place, take."""
    chosen = with_choices(composition, config)
    parts = chosen.context, chosen.fusion, chosen.head
    return {name for part in parts for name in fact(load(part), "options") or ()}


def decided(config: Config, composition: Composition) -> Config:
    """The configuration with an LSTM and tied matrices where it leaves a choice open.

    None stays where the composition decides. ValueError for a choice that the equations of the
    composition leave no room for, or for missing sizes of side information.
    """
    model = repr(config.model)
    if composition.recurrence is not None and config.recurrence is not None:
        raise ValueError(
            f"{model} has a recurrence of its own, found {config.recurrence!r}; leave that out"
        )
    if composition.tied is not None and config.tied not in (None, composition.tied):
        fixed, chosen = ("tied", "untied") if composition.tied else ("untied", "tied")
        raise ValueError(f"{model} has {fixed} embeddings, found {chosen} ones; leave that out")
    for kind, name in (("fusion", config.fusion), ("head", config.head)):
        if composition.fixed and name is not None:
            raise ValueError(f"{model} has a {kind} of its own, found {name!r}; leave that out")
    if composition.one_size and config.embed != config.hidden:
        raise ValueError(
            f"{model} has no embeddings beside its hidden layers: expected as many columns as "
            f"hidden units, found {config.embed} and {config.hidden}; give one size for both"
        )
    taken = options_of(config, composition)
    for option in fields(config):
        value, lacks = getattr(config, option.name), option.metadata.get("lacks")
        if lacks is not None and value is not None and option.name not in taken:
            raise ValueError(f"{model} has no {lacks.format(value)}; leave that out")
    needed = [kind for kind in information_of(load(composition.context)) if kind in KINDS]
    if missing := [kind for kind in needed if getattr(config, KINDS[kind]) is None]:
        raise ValueError(f"{model} needs side information: {', '.join(missing)}")
    free = {"recurrence": config.recurrence or "lstm", "tied": config.tied is not False}
    return replace(config, **composition.adapted({**free, "hidden": config.hidden}))


def _made(part: Part, config: Config, *args: object, **named: object) -> Any:
    """A part, made with those fields of the configuration that it takes."""
    make = load(part)
    options = {name: getattr(config, name) for name in fact(make, "options") or ()}
    return make(*args, **named, **{n: v for n, v in options.items() if v is not None})


def _check_fusion(config: Config, composition: Composition, context: Context) -> None:
    """ValueError if a context has nothing that the fusion of a configuration could use."""
    if config.fusion is None:
        return
    if not context.width and not context.carries_state:
        raise ValueError(
            f"{config.model!r} has no context, found the fusion {config.fusion!r}; leave that out"
        )
    if fact(load(composition.fusion), "needs_state") and not context.carries_state:
        raise ValueError(
            f"the fusion {config.fusion!r} needs a context that carries a recurrent state, which "
            f"that of {config.model!r} does not; choose another fusion"
        )


def n_parameters(model: nn.Module) -> int:
    """Number of trained parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
