"""What a model keeps of the sentences before: what all contexts are, and the states of sentences.

The hidden states in which earlier sentences ended are kept whole, projected, or read by a
recurrence; other families have a file each. The thought vectors of Ghosh et al. 2016,
arXiv:1602.06291, §5.4 and §8, are embeddings of the previous sentence's last state, denoised by
"roundoff-based projection", which the paper does not define: here numbers are rounded in training,
and not when a model is used, where the last bit of a state, which differs between batches, must not
decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.corpus import Corpus, PackedBatch
from lm.recurrences import Recurrence, Sizes, State
from lm.sentences import ReadSentences, Rows
from lm.side_information import labels_of

Prepared: TypeAlias = Any  # of contexts; only the context that made it knows what it holds


class Context(nn.Module):
    """Base of the contexts, and the facts that each of them states.

    Constructors receive the embedding of the words and a recurrence of the word level's kind
    and size, for their sizes, and keywords for the fields of `lm.model.Config` that `options`
    names, unless they are None.
    """

    sentences: int | None = 1  # earlier ones it depends on, beside what their states saw; None: all
    reads_states: ClassVar[bool] = False  # what it takes of a sentence depends on hidden states
    carries_state: ClassVar[bool] = False  # takes whole states, and has one to begin sentences in
    may_carry_state: ClassVar[bool] = False  # can have that, too: `lm.contexts.carrying`
    reads_layers: ClassVar[bool] = False  # takes, and is asked by, states of all layers
    per_word: ClassVar[bool] = False  # fusion receives a value for each word, not for the sentence
    reads_prefix: ClassVar[bool] = False  # query: sums of `word_terms`, not a hidden state
    averages: ClassVar[bool] = True  # a weighted mean of contexts is a context
    merges_sentences: bool = False  # different sentences may leave equal contexts: `sentence_key`
    # kinds that every sentence needs (`lm.side_information.KINDS` and `DERIVED`); those that only
    # training needs, without which sentences are not entered; those whose unknown words are spelled
    side_information: ClassVar[tuple[str, ...]] = ()
    training_information: ClassVar[tuple[str, ...]] = ()
    spells: ClassVar[tuple[str, ...]] = ()
    alone: ClassVar[bool] = False  # made of nothing but side information of its own sentence
    end_to_end: ClassVar[bool] = True  # the words' loss reaches the auxiliary parameters
    averaged: ClassVar[bool] = False  # training takes the mean of `auxiliary_nll` over a sentence
    options: ClassVar[tuple[str, ...]] = ()
    learns_with: ClassVar[str | None] = None  # package that `fit` imports
    width = 0  # D, columns of a value

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__()
        self.register_buffer("empty", embedding.weight.new_zeros(0), persistent=False)
        self.first: nn.Parameter | None = None

    def fit(self, corpus: Corpus, seed: int) -> None:
        """Learn buffers from the training text, which must suffice (ValueError); here nothing."""

    def start(self, batch: int) -> Rows:
        """Contexts before any sentence, also the null context of training: `first`, or zeros."""
        if self.first is not None:
            return Rows.of(self.first.expand(batch, -1))
        return Rows.of(self.get_buffer("empty").new_zeros(batch, self.width))

    def summary(self, sentences: ReadSentences) -> Rows:
        """What is taken from sentences that were read, (B rows); here states, as the facts say.

        They are those after the last words, or after `<s>` of an empty sentence.
        """
        if self.carries_state:
            return Rows(sentences.last().recurrent)
        if self.reads_layers:
            return Rows.of(cast(Tensor, sentences.last().layers))
        if self.reads_states:
            return Rows.of(sentences.last().hidden)
        return Rows.of(sentences.hidden.new_zeros(len(sentences.positions.last), 0))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """Contexts after one more sentence each; here what was taken from that sentence."""
        return summary

    def encoded(self, side: Rows) -> Rows:
        """What is taken of side information (B rows, a tensor for each kind); here all of it."""
        return side

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """Contexts (B rows) in which sentences are read, with their side information, `encoded`.

        Only of contexts with side information, whose other methods receive entered contexts.
        """
        return contexts

    def value(self, contexts: Rows) -> Tensor:
        """What fusion receives for each sentence, (B, D)."""
        return contexts.tensors[0]

    def prepared(self, contexts: Rows) -> Prepared:
        """What `word_values` needs of contexts (B rows), computed once for all positions."""
        return contexts

    def word_values(self, prepared: Prepared, row: Tensor, query: Tensor) -> Tensor:
        """What fusion receives at each of N positions, (N, D), if `per_word`.

        row: (N,) contexts of the positions; query: (N, H), or (N, L · H) if `reads_layers`, state
        at the previous position, zeros at the first (of a fusion that `asks`: at the same one); if
        `reads_prefix` sums (N, C) of `word_terms` up to the position.
        """
        raise TypeError("only a context with a value per word defines word_values")

    def word_terms(self, words: Tensor) -> Tensor:
        """Whole numbers (N, C) that N words add to the sum of a prefix, if `reads_prefix`."""
        raise TypeError("only a context that reads the words of a prefix defines word_terms")

    def row_values(self, prepared: Prepared, query: Tensor) -> Tensor:
        """`word_values` (N, D) of one position in each of the first N contexts."""
        return self.word_values(prepared, torch.arange(len(query), device=query.device), query)

    def unroll(
        self,
        cells: Recurrence,
        words: Tensor,
        state: State,
        *,
        sizes: Sizes,
        prepared: Prepared,
        share: Callable[[Tensor], Tensor],
    ) -> tuple[State, Tensor] | None:
        """States after every word of packed sentences, and values (N, D) that entered with words.

        Only if the values of `per_word` enter the inputs. None where single steps are needed, as
        here. words: (N, gates · H) projections; state: before the first words; share: a linear
        function from values to what they add to projections.
        """
        return None

    def state(self, contexts: Rows) -> State:
        """Recurrent states (B rows) for sentences to begin in, if `carries_state`."""
        raise TypeError("only a context that carries a recurrent state can be an initial state")

    @property
    def source_level(self) -> Context | None:
        """The `DocumentRecurrence` over source sentences, of a part; None if no part has one."""
        levels = (part.source_level for part in self.children() if isinstance(part, Context))
        return next(filter(None, levels), None)

    def auxiliary_parameters(self) -> list[nn.Parameter]:
        """Parameters that `auxiliary_nll` trains; here all, if the class defines that loss."""
        has_loss = type(self).auxiliary_nll is not Context.auxiliary_nll
        return list(self.parameters()) if has_loss else []

    def added_parameters(self) -> list[nn.Parameter]:
        """Parameters of what a document adds to a model of single sentences; here none."""
        return []

    def auxiliary_nll(self, contexts: Rows, batch: PackedBatch) -> Tensor | None:
        """−log p (N,), nats, of a context's loss, 0 where nothing is predicted; here None."""
        return None

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Bytes that are equal for sentences which leave equal contexts; here the words."""
        return words.tobytes()

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """Bytes that are equal for histories of equal values; sentences: up to n keys."""
        lengths = np.array([len(key) for key in sentences], dtype=np.int64)
        return lengths.tobytes() + b"".join(sentences)


class NoContext(Context):
    """Sentences are independent."""

    sentences = 0


class GivenContext(Context):
    """Base of the contexts that side information alone makes: target sentences leave nothing."""

    sentences = 0

    def summary(self, sentences: ReadSentences) -> Rows:
        """Nothing."""
        return Rows.of(sentences.hidden.new_zeros(len(sentences.positions.last), 0))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The contexts, unchanged."""
        return contexts

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Nothing: all target sentences leave equal contexts."""
        return b""


class LabelledContext(Context):
    """Base of the contexts that take labels, as of discourse relations, as they are."""

    def encoded(self, side: Rows) -> Rows:
        """The labels (B,)."""
        return Rows.of(labels_of(side.tensors[0]))


def learned_start(width: int) -> nn.Parameter:
    """A learned vector for the beginning of documents."""
    return nn.Parameter(torch.empty(width).uniform_(-0.1, 0.1))


STEPS = 8  # of rounding, between 0 and 1


class LastHidden(Context):
    """Top hidden state after the previous sentence's last word (Ji et al. 2016, eq. 3).

    The state before a document, c_0, is learned (H parameters), and stands for each sentence that
    is missing. Tensors of a context: the last `number` states (B, H), the oldest first.
    """

    reads_states = True
    number: ClassVar[int] = 1

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = self.number * recurrence.hidden
        self.first = learned_start(recurrence.hidden)

    def start(self, batch: int) -> Rows:
        """The learned state n times."""
        return Rows(super().start(batch).tensors * self.number)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The states but for the oldest, and that of the sentence that was read."""
        return contexts.rest.beside(summary)

    def value(self, contexts: Rows) -> Tensor:
        """The states side by side, (B, n · H)."""
        return torch.cat(contexts.tensors, dim=1)


class LastTwoHidden(LastHidden):
    """Top hidden states after the last words of the previous two sentences, side by side.

    The context of the sentence-sensitive RNNLM of Eisenstein's memo, §1.
    """

    sentences = 2
    number = 2


class CarriedState(Context):
    """The whole recurrent state after the last word (the document RNNLM); starts at zero."""

    reads_states = True
    carries_state = True

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.widths = [tensor.shape[1] for tensor in recurrence.start(1)]
        self.width = sum(self.widths)

    def start(self, batch: int) -> Rows:
        """Zeros for each tensor of the state."""
        return _zero_state(self, self.widths, batch)

    def state(self, contexts: Rows) -> State:
        """The carried state."""
        return contexts.tensors

    def value(self, contexts: Rows) -> Tensor:
        """The state's tensors side by side."""
        return torch.cat(contexts.tensors, dim=1)


def _zero_state(context: Context, widths: Sequence[int], batch: int) -> Rows:
    empty = context.get_buffer("empty")
    return Rows.of(*(empty.new_zeros(batch, width) for width in widths))


class BesideState(Context):
    """Mixin before the class of a context: a sentence also begins in the state before it.

    Tensors of a context: those of the state after the previous sentence, then the other class's.
    """

    reads_states = True
    carries_state = True
    may_carry_state = False
    merges_sentences = False

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence, **options: Any) -> None:
        super().__init__(embedding, recurrence, **options)
        self.widths = [tensor.shape[1] for tensor in recurrence.start(1)]

    def start(self, batch: int) -> Rows:
        """Zeros for each tensor of the state, and the other class's beginning."""
        return _zero_state(self, self.widths, batch).beside(super().start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The state after the last word, and what the other class takes."""
        return Rows(sentences.last().recurrent).beside(super().summary(sentences))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The state of the summary."""
        following = super().advance(self._others(contexts), self._others(summary))
        return Rows(self.state(summary)).beside(following)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The state stays."""
        return Rows(self.state(contexts)).beside(super().enter(self._others(contexts), encoded))

    def state(self, contexts: Rows) -> State:
        """The carried state."""
        return contexts.tensors[: len(self.widths)]

    def value(self, contexts: Rows) -> Tensor:
        """The other class's."""
        return super().value(self._others(contexts))

    def prepared(self, contexts: Rows) -> Prepared:
        """The other class's."""
        return super().prepared(self._others(contexts))

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The words."""
        return words.tobytes()

    def _others(self, rows: Rows) -> Rows:
        return Rows(rows.tensors[len(self.widths) :])


@cache
def carrying(context: type[Context]) -> type[Context]:
    """The class of contexts that carry the state beside what this class keeps."""
    return type(f"{context.__name__}BesideState", (BesideState, context), {})


class ThoughtVector(nn.Module):
    """tanh(W h), (B, D), of hidden states (B, H); in training rounded to multiples of 1/`STEPS`.

    The gradient is that of the numbers before they were rounded. DH parameters.
    """

    def __init__(self, hidden: int, width: int | None) -> None:
        super().__init__()
        self.width = -(-hidden // 8) if width is None else width
        self.projection = nn.Linear(hidden, self.width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """The vectors; 0 where there is no sentence yet and the state is zero."""
        exact = torch.tanh(self.projection(hidden))
        if not self.training:
            return exact
        return exact + (torch.round(exact * STEPS) / STEPS - exact).detach()


class PreviousThought(CarriedState):
    """The state after the previous sentence, to begin in, and its thought vector as value (fig. 8).

    The sentences' LSTMs are one long chain. thought: D, by default H/8, rounded up.
    """

    options = ("thought",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, thought: int | None = None
    ) -> None:
        super().__init__(embedding, recurrence)
        self.top = -recurrence.tensors
        self.thought = ThoughtVector(recurrence.hidden, thought)
        self.width = self.thought.width

    def value(self, contexts: Rows) -> Tensor:
        """The thought vector (B, D) of the top hidden state."""
        vector: Tensor = self.thought(contexts.tensors[self.top])
        return vector


class SentenceThoughts(Context):
    """The thought vector of a recurrence over sentences, the upper level of the HLSTM (fig. 9).

    Its inputs are the word level's states after the last words; it is of the word level's kind
    and size. The paper only draws it: here the word level begins anew in every sentence. Tensors of
    a context: the state of the upper level.
    """

    sentences = None
    reads_states = True
    options = ("thought",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, thought: int | None = None
    ) -> None:
        super().__init__(embedding, recurrence)
        self.upper = recurrence.like(recurrence.hidden)
        self.thought = ThoughtVector(recurrence.hidden, thought)
        self.width = self.thought.width

    def start(self, batch: int) -> Rows:
        """The upper level's state before any sentence."""
        return Rows(self.upper.start(batch))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of the upper level."""
        projected = self.upper.project(summary.tensors[0])
        return Rows(self.upper.step(projected, contexts.tensors))

    def value(self, contexts: Rows) -> Tensor:
        """The thought vector (B, D) of the upper level's top hidden state."""
        vector: Tensor = self.thought(self.upper.output(contexts.tensors))
        return vector
