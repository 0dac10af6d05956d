"""A recurrence over sentences, above the one over words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.contexts import Context, learned_start
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences, embedding_sums
from lm.vocabulary import END


class SentenceRecurrence(Context):
    """A recurrence over sentences, each the sum of its word embeddings.

    The HRNNLM in the LSTM form of Ji et al. 2016: the sentence level learns only to predict
    the words of the next sentence (`auxiliary_nll`); the word level receives its top hidden
    state as data, without gradient, and a learned c_0 before the first sentence. Both softmaxes
    have a bias, which the authors' code allocates but does not use; each word counts once, where
    the code counts a sentence's first word twice; both levels are updated together.
    Tensors of a context: the value (B, H), then the recurrent state.
    """

    sentences = None
    end_to_end = False

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.embedding = embedding
        self.upper = recurrence.like(embedding.embedding_dim)
        self.width = recurrence.hidden
        self.first = learned_start(self.width)
        self.next_words = nn.Linear(self.width, embedding.num_embeddings)

    def start(self, batch: int) -> Rows:
        """c_0 and the zero state for each row."""
        return Rows.of(self.first.expand(batch, -1), *self.upper.start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """Summed embeddings (B, K), without gradient."""
        return Rows.of(embedding_sums(self.embedding.weight, *sentences.words()).detach())

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of the sentence level."""
        state = self.upper.step(self.upper.project(summary.tensors[0]), contexts.tensors[1:])
        return Rows.of(self.upper.output(state).detach(), *state)

    def auxiliary_nll(self, contexts: Rows, batch: PackedBatch) -> Tensor:
        """−log p (N,) of the sentences' words, any order, from their contexts alone.

        0 of those of sentences in the start context, where the state is zero: there is no
        earlier sentence from which to predict them.
        """
        given = contexts.take(batch.order)
        begun = torch.cat(given.tensors[1:], dim=1).any(dim=1)[batch.rows]
        log_probs = torch.log_softmax(self.next_word_logits(given).float(), dim=1)
        own = log_probs[batch.rows, batch.targets]
        return -own.masked_fill((batch.targets == END) | ~begun, 0.0)

    def auxiliary_parameters(self) -> list[nn.Parameter]:
        """Those of the sentence level."""
        return [*self.upper.parameters(), *self.next_words.parameters()]

    def next_word_logits(self, contexts: Rows) -> Tensor:
        """Logits (B, V) of any word of the next sentence, with the sentence level's gradient."""
        logits: Tensor = self.next_words(self.upper.output(contexts.tensors[1:]))
        return logits
