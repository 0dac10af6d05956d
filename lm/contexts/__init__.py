"""What a model keeps of the sentences before: what all contexts are; a file for each family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.corpus import Corpus
from lm.recurrences import Recurrence, Sizes, State
from lm.sentences import ReadSentences, Rows
from lm.side_information import labels_of

Prepared: TypeAlias = Any  # of contexts; only the context that made it knows what it holds


class Context(nn.Module):
    """Base of the contexts, and the facts that each of them states.

    sentences: how many earlier sentences it depends on, beside those on which their states
    depended; None for all. reads_states: whether what it takes from a sentence depends on that
    sentence's own context, where hidden states do. carries_state: whether it takes whole
    recurrent states, and has one for a sentence to begin in; may_carry_state: whether it can have
    such states beside what is its own, as `lm.contexts.states.carrying` makes it. reads_layers:
    whether what it takes and its queries are hidden states of all layers, not of the top one.
    per_word: whether fusion
    receives a value for each word, or one for the sentence. reads_prefix: whether the query of a
    value for a word is what `word_terms` gives for the sentence's words so far, not a hidden state.
    averages: whether a weighted mean of contexts is a context. merges_sentences: whether different
    sentences may leave equal contexts, as `sentence_key` says. side_information: kinds of side
    information that it needs of every sentence (`lm.side_information.KINDS` and `DERIVED`);
    training_information: kinds that only training needs, for `auxiliary_nll`: where a text has none
    of them, no sentence is entered with them. end_to_end: whether the loss of the words reaches the
    auxiliary parameters, if there are any. averaged: whether training minimises the
    mean of `auxiliary_nll` over a sentence's words, instead of the sum. learns_with: package that
    `fit` imports, None if it needs none. spells: kinds of side information whose unknown words are
    read as their characters (`lm.corpus.spelled`). alone: whether it is made of nothing but side
    information of its own sentence. width: D, columns of a value.

    Constructors receive the embedding of the words and a recurrence of the word level's kind
    and size, for their sizes, and keywords for the fields of `lm.model.Config` that `options`
    names, unless they are None.
    """

    sentences: int | None = 1
    reads_states: ClassVar[bool] = False
    carries_state: ClassVar[bool] = False
    may_carry_state: ClassVar[bool] = False
    reads_layers: ClassVar[bool] = False
    per_word: ClassVar[bool] = False
    reads_prefix: ClassVar[bool] = False
    averages: ClassVar[bool] = True
    merges_sentences: bool = False
    side_information: ClassVar[tuple[str, ...]] = ()
    training_information: ClassVar[tuple[str, ...]] = ()
    end_to_end: ClassVar[bool] = True
    averaged: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ()
    learns_with: ClassVar[str | None] = None
    spells: ClassVar[tuple[str, ...]] = ()
    alone: ClassVar[bool] = False
    width = 0

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__()
        self.register_buffer("empty", embedding.weight.new_zeros(0), persistent=False)
        self.first: nn.Parameter | None = None

    def fit(self, corpus: Corpus, seed: int) -> None:
        """Learn, before training, what no gradient trains; it is held in buffers. Here nothing.

        corpus: the training text. ValueError if it does not suffice.
        """

    def start(self, batch: int) -> Rows:
        """Contexts before any sentence, also the null context of training.

        Vectors of zeros, or the learned vector `first`, if there is one.
        """
        if self.first is not None:
            return Rows.of(self.first.expand(batch, -1))
        return Rows.of(self.get_buffer("empty").new_zeros(batch, self.width))

    def summary(self, sentences: ReadSentences) -> Rows:
        """What is taken from sentences that were read, (B rows).

        Here the states after their last words, or after `<s>` of an empty sentence: whole ones, the
        hidden states of all layers, or of the top one, as the facts say; else nothing.
        """
        if self.carries_state:
            return Rows(sentences.last_states())
        if self.reads_layers:
            return Rows.of(sentences.last_layers())
        if self.reads_states:
            return Rows.of(sentences.last_hidden())
        return Rows.of(sentences.hidden.new_zeros(len(sentences.positions.last), 0))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """Contexts after one more sentence each: what was taken from that sentence."""
        return summary

    def encoded(self, side: Rows) -> Rows:
        """What is taken of side information (B rows, a tensor for each kind); here all of it.

        Kinds of `training_information` follow the others.
        """
        return side

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """Contexts (B rows) in which sentences are read, given their side information, `encoded`.

        Only of contexts with side information. All other methods receive contexts of which a
        sentence was entered, but for `enter` itself.
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

        prepared: `prepared(contexts)`; row: (N,) its context; query: (N, H) hidden state at the
        previous position, or (N, L · H) if `reads_layers`; zeros at the first position. If
        `reads_prefix`: sums (N, C) of `word_terms` up to the position. Of a fusion that asks for
        values itself: a state of the same position.
        """
        raise TypeError("only a context with a value per word defines word_values")

    def word_terms(self, words: Tensor) -> Tensor:
        """What N words add to the sum that stands for a sentence's words so far, if `reads_prefix`.

        (N, C) whole numbers, so that no order of additions changes a sum.
        """
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

        Only if the values of `per_word` enter the inputs. None, as here, where single steps and
        `row_values` are needed. words: (N, gates · H) projections; state: before the first words;
        prepared: `prepared(contexts)` of the B sentences in packed order; share: a linear function
        from values to what they add to projections.
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
        """Parameters of the sentence level: those that `auxiliary_nll` trains.

        Here all of them, if the class defines that loss.
        """
        has_loss = type(self).auxiliary_nll is not Context.auxiliary_nll
        return list(self.parameters()) if has_loss else []

    def added_parameters(self) -> list[nn.Parameter]:
        """Parameters of what a document adds to a model of single sentences; here none."""
        return []

    def auxiliary_nll(self, contexts: Rows, batch: PackedBatch) -> Tensor | None:
        """−log p (N,) of the targets under a loss of the context's own, in nats; here None.

        contexts: those in which the sentences are read, in the caller's order. 0 for what is not
        predicted, such as `</s>`.
        """
        return None

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Bytes that are equal for sentences which leave equal contexts; here the words."""
        return words.tobytes()

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """Bytes that are equal for histories of equal values.

        sentences: keys of the last n sentences, fewer at the beginning of a document.
        """
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
