"""A document language model: recurrence, context, fusion and head composed.

`start(contexts)`, `step(state, words)` and `hidden(state)` read one word at a time; `unroll`
is the same recurrence over packed sentences, for training. What the parts are is asked of
them (`lm.contexts.Context`, `lm.fusions.Fusion`, `lm.heads.Head`) and never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.contexts import Context, Reads
from lm.fusions import Fusion
from lm.heads import Head
from lm.recurrence import RECURRENCES, Recurrence, select
from lm.recurrence import State as RecurrentState
from lm.rows import Rows
from lm.sentences import Positions, ReadSentences
from lm.vocabulary import SPECIAL, START
from lm.zoo import ZOO, Zoo, load

Dropout = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Config:
    """Shape of a model. `vocabulary` is V, the three special words included."""

    model: str
    vocabulary: int
    embed: int = 128
    hidden: int = 256
    recurrence: str = "lstm"
    layers: int = 1
    tied: bool = True

    def __post_init__(self) -> None:
        if self.recurrence not in RECURRENCES:
            raise ValueError(f"no recurrence {self.recurrence!r} is known")
        sizes = (self.vocabulary, self.embed, self.hidden, self.layers)
        if not all(isinstance(size, int) for size in sizes):
            raise ValueError(f"a model has sizes that are whole numbers, not {sizes}")
        if self.vocabulary < len(SPECIAL):
            raise ValueError(f"a model has at least 3 words, not {self.vocabulary}")
        if not all(1 <= size <= 1 << 16 for size in (self.embed, self.hidden)):
            raise ValueError("a model has sizes of 1 to 65,536")
        if not 1 <= self.layers <= 64:
            raise ValueError(f"a model has 1 to 64 layers, not {self.layers}")

    def as_json(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """B sentences at the same number of words.

    share: what fusion needs of the contexts' values at each word, if it is the same for all;
    contexts: (B rows) if fusion needs a value for each word, else None.
    """

    recurrent: RecurrentState
    share: Tensor | None
    contexts: Rows | None

    def take(self, index: Tensor) -> State:
        """The sentences at some places."""
        share = None if self.share is None else self.share[index]
        contexts = None if self.contexts is None else self.contexts.take(index)
        return State(select(self.recurrent, index), share, contexts)


class DocumentLM(nn.Module):
    """Language model of a sentence given what was kept of the sentences before it.

    `zoo` holds the composition that the configuration names. ValueError if it does not.
    """

    def __init__(self, config: Config, zoo: Zoo = ZOO) -> None:
        super().__init__()
        if config.model not in zoo:
            raise ValueError(f"no model {config.model!r} is known")
        self.config = config
        composition, cell = zoo[config.model], RECURRENCES[config.recurrence]
        self.embedding = nn.Embedding(config.vocabulary, config.embed)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        # for its sizes; drawn first, so that a seed gives the weights that it always gave
        sizes = cell(1, config.hidden, config.layers)
        self.context: Context = load(composition.context)(self.embedding, sizes)
        self.fusion: Fusion = load(composition.fusion)(self.context.width, sizes)
        self.recurrence: Recurrence = sizes.like(config.embed + self.fusion.input_columns)
        self.head: Head = load(composition.head)(
            config.hidden, self.fusion.output_columns, self.embedding, tied=config.tied
        )

    @classmethod
    def seeded(cls, config: Config, seed: int, zoo: Zoo = ZOO) -> DocumentLM:
        """A fresh model whose initial weights are a function of the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(config, zoo)

    # Facts that follow from those of the parts

    @property
    def order(self) -> int | None:
        """Number of earlier target sentences a score depends on; None where unbounded."""
        if not self.fusion.uses_context:
            return 0
        reads_states = self.context.reads in (Reads.HIDDEN, Reads.STATES)
        if reads_states and self.fusion.hidden_depends_on_context:
            return None
        return self.context.sentences

    @property
    def additive(self) -> bool:
        """Whether a context adds a vector of its own to the logits of a sentence, nothing else."""
        fusion = self.fusion
        adds = fusion.adds_to_logits and not fusion.hidden_depends_on_context
        return adds and not self.context.per_word and self.head.linear

    @property
    def _value_enters_words(self) -> bool:
        """Whether hidden states depend on a value that is another one at each word."""
        return self.context.per_word and self.fusion.hidden_depends_on_context

    # One word at a time

    def start(self, contexts: Rows, inputs: Tensor) -> State:
        """States after `<s>` in some contexts; inputs: `word_inputs()`."""
        share = None
        if not self.context.per_word:
            share = self.fusion.share(self.recurrence, self.context.value(contexts))
        kept = contexts if self._value_enters_words else None
        state = State(self._initial(contexts), share, kept)
        words = torch.full((len(contexts),), START, device=contexts.device)
        return self.step(state, words, inputs)

    def _initial(self, contexts: Rows) -> RecurrentState:
        def value() -> Tensor:
            return self.context.value(contexts)

        return self.fusion.initial(self.recurrence, len(contexts), value)

    def word_inputs(self) -> Tensor:
        """Every word's share of the first layer's pre-activations, (V, P)."""
        return self.recurrence.project(self.embedding.weight)

    def step(self, state: State, words: Tensor, inputs: Tensor) -> State:
        """States after one more word each; words: (B,) ids, inputs: `word_inputs()`."""
        return self._projected_step(state, inputs[words])

    def _projected_step(self, state: State, projected: Tensor) -> State:
        share = state.share
        if state.contexts is not None:
            rows = torch.arange(len(projected), device=projected.device)
            value = self.context.word_values(state.contexts, rows, self.hidden(state))
            share = self.fusion.share(self.recurrence, value)
        recurrent = self.fusion.step(self.recurrence, projected, state.recurrent, share)
        return State(recurrent, state.share, state.contexts)

    def hidden(self, state: State) -> Tensor:
        """Top hidden states, (B, H)."""
        return self.recurrence.output(state.recurrent)

    # All positions at once

    def unroll(
        self, batch: PackedBatch, contexts: Rows, dropout: Dropout = lambda x: x
    ) -> ReadSentences:
        """Packed sentences read in their contexts (B rows in the caller's order)."""
        projected = self.recurrence.project(dropout(self.embedding(batch.inputs)))
        contexts = contexts.take(batch.order)
        if self._value_enters_words:
            recurrent = self._unroll_by_steps(batch, contexts, projected)
        else:
            share = None
            if not self.context.per_word:
                share = self.fusion.share(self.recurrence, self.context.value(contexts))
            recurrent = self.fusion.unroll(
                self.recurrence,
                projected,
                self._initial(contexts),
                sizes=batch.sizes,
                share=None if share is None else share[batch.rows],
            )
        return self.read(batch.positions, self.recurrence.output(recurrent), recurrent)

    def _unroll_by_steps(
        self, batch: PackedBatch, contexts: Rows, projected: Tensor
    ) -> RecurrentState:
        """Recurrent states of all positions where a word's value depends on the state before."""
        state, states = State(self._initial(contexts), None, contexts), []
        for step in torch.split(projected, list(batch.sizes)):
            rows = torch.arange(len(step), device=step.device)
            state = self._projected_step(state.take(rows), step)
            states.append(state.recurrent)
        return tuple(torch.cat(column) for column in zip(*states, strict=True))

    def read(
        self, positions: Positions, hidden: Tensor, recurrent: RecurrentState | None
    ) -> ReadSentences:
        """Sentences that were read, as the context sees them."""
        kept = recurrent if self.context.reads is Reads.STATES else None
        return ReadSentences(positions, hidden, kept, self.embedding)

    def features(
        self,
        read: ReadSentences,
        contexts: Rows,
        dropout: Dropout = lambda x: x,
    ) -> Tensor:
        """Output features (N, R) of all positions of sentences read, or to be read, in contexts."""
        positions = read.positions

        def value() -> Tensor:
            if not self.context.per_word:
                return self.context.value(contexts)[positions.context]
            query = positions.previous(read.hidden)
            return self.context.word_values(contexts, positions.context, query)

        h, c = self.fusion.output(dropout(read.hidden), value)
        return self.head.at_positions(self.head.features(h, c), positions)


def n_parameters(model: nn.Module) -> int:
    """Number of trained parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
