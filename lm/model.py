"""A document language model: recurrence, context, fusion and head composed.

`start(context)`, `step(state, words)` and `summary(state)` read one word at a time;
`unroll` is the same recurrence over packed sentences, for training. Everything else
(trainer, trie engine, decoders) uses nothing but these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from lm.batches import Packed
from lm.contexts import Context, SentenceRecurrence
from lm.heads import Head, Softmax, TiedSoftmax
from lm.recurrence import RECURRENCES, Recurrence, State, select
from lm.vocabulary import SPECIAL, START
from lm.zoo import ZOO

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
        if self.model not in ZOO or self.recurrence not in RECURRENCES:
            raise ValueError(f"no model {self.model!r} of {self.recurrence!r} layers is known")
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


class DocumentLM(nn.Module):
    """Language model of a sentence given what was kept of the sentences before it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        composition = ZOO[config.model]
        self.fusion = composition.fusion()
        self.embedding = nn.Embedding(config.vocabulary, config.embed)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        cell = RECURRENCES[config.recurrence]
        probe = cell(1, config.hidden, config.layers)
        self.context: Context = self._context(composition.context, probe)
        columns = config.embed + self.fusion.input_columns(self.context.width)
        self.recurrence: Recurrence = cell(columns, config.hidden, config.layers)
        head = TiedSoftmax if config.tied else Softmax
        extra = self.fusion.output_columns(self.context.width)
        self.head: Head = head(config.hidden, extra, self.embedding)

    def _context(self, kind: type[Context], probe: Recurrence) -> Context:
        if kind is SentenceRecurrence:
            embed, words = self.config.embed, self.config.vocabulary
            return SentenceRecurrence(probe, embed=embed, vocabulary=words)
        return kind(probe)

    @classmethod
    def seeded(cls, config: Config, seed: int) -> DocumentLM:
        """A fresh model whose initial weights are a function of the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(config)

    @property
    def order(self) -> int | None:
        """Number of earlier target sentences a score depends on; None where unbounded."""
        if self.context.width == 0:
            return 0
        unseen = self.context.reads_words or not self.fusion.touches_hidden
        return 1 if self.context.markov and unseen else None

    # One word at a time: a state is (recurrent tensors…, drive?, summed embeddings?).

    def start(self, context: Tensor, inputs: Tensor) -> State:
        """States after `<s>` in contexts (B, C); inputs: `word_inputs()`."""
        value = self.context.value(context)
        state: State = self.fusion.initial(self.recurrence, value)
        drive = self.fusion.drive(self.recurrence, value, self.config.embed)
        state += () if drive is None else (drive,)
        if self.context.reads_words:
            state += (value.new_zeros(len(value), self.config.embed),)
        words = torch.full((len(value),), START, device=value.device)
        state = self.step(state, words, inputs)
        if self.context.reads_words:
            state = (*state[:-1], torch.zeros_like(state[-1]))
        return state

    def word_inputs(self) -> Tensor:
        """Every word's share of the first layer's pre-activations, (V, P)."""
        return self.recurrence.project(self.embedding.weight)

    def step(self, state: State, words: Tensor, inputs: Tensor) -> State:
        """States after one more word each; words: (B,) ids, inputs: `word_inputs()`."""
        tensors = 2 * self.recurrence.layers
        extra = list(state[tensors:])
        projected = inputs[words]
        if self.fusion.input_columns(self.context.width):
            projected = projected + extra[0]
        if self.context.reads_words:
            extra[-1] = extra[-1] + self.embedding(words)
        return (*self.recurrence.step(projected, state[:tensors]), *extra)

    def hidden(self, state: State) -> Tensor:
        """What the head sees of the states, (B, H)."""
        return self.recurrence.output(state[: 2 * self.recurrence.layers])

    def summary(self, state: State) -> Tensor:
        """What the context is told of the sentences that end in these states, (B, U)."""
        if self.context.reads_words:
            return state[-1]
        if self.context.size == 0:
            return state[0][:, :0]
        if self.context.width == self.recurrence.hidden:
            return self.hidden(state)
        return torch.cat(state[: 2 * self.recurrence.layers], dim=1)[:, : self.context.size]

    # All words of packed sentences at once.

    def unroll(
        self, batch: Packed, value: Tensor, dropout: Dropout = lambda x: x
    ) -> tuple[Tensor, Tensor]:
        """Hidden states (N, H) in packed order, and summaries (B, U) in the caller's order.

        value: (B, D) context values in the caller's order.
        """
        embedded = self.embedding(batch.inputs)
        projected = self.recurrence.project(dropout(embedded))
        value = value[batch.order]
        drive = self.fusion.drive(self.recurrence, value, self.config.embed)
        if drive is not None:
            projected = projected + drive[batch.rows]
        first = self.fusion.initial(self.recurrence, value)
        states = self.recurrence.unroll(projected, first, batch.sizes)
        summary = self._summaries(batch, embedded, states)
        unsorted = torch.empty_like(summary).index_copy(0, batch.order, summary)
        return self.recurrence.output(states), unsorted

    def _summaries(self, batch: Packed, embedded: Tensor, states: State) -> Tensor:
        """Summaries in packed order, from the states after each sentence's last word."""
        if self.context.reads_words:
            words = embedded.detach() * (batch.inputs != START)[:, None]
            zeros = words.new_zeros(len(batch.order), self.config.embed)
            return zeros.index_add(0, batch.rows, words)
        return self.summary(select(states, batch.last))


def n_parameters(model: nn.Module) -> int:
    """Number of trained parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
