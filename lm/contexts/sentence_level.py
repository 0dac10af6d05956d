"""A recurrence over sentences that learns to predict the words of the next, by a second loss.

The sentence level of Lin et al. 2015 reads sentences as bags of words:
hs_j = HTanh(U_s hs_{j−1} + W_s xs_j) (eq. 4), with xs_j the counts of the words of sentence j and
hs_0 = (0.1, …, 0.1). y_{j+1} = softmax(V_s hs_j + Σ_{w ∈ xs_j} D[hash(w, ·)]) (eq. 8) are the
probabilities of each word of the next sentence, whatever its place. The paper does not say whether
a word that xs_j has twice adds its features twice; here it adds them once.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.contexts import Context, learned_start
from lm.contexts.bags import BagContext
from lm.heads.hashed_softmax import SIZE, HashedBagSoftmax
from lm.recurrences import Recurrence
from lm.recurrences.simple import OneHotHTanh
from lm.sentences import ReadSentences, Rows, embedding_sums
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
    first: nn.Parameter

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
        """−log p (N,) of the words, any order, from their contexts; 0 in the start context."""
        packed = contexts.take(batch.order)
        begun = torch.cat(packed.tensors[1:], dim=1).any(dim=1)[batch.rows]
        log_probs = torch.log_softmax(self.next_word_logits(packed).float(), dim=1)
        of_targets = log_probs[batch.rows, batch.targets]
        return -of_targets.masked_fill((batch.targets == END) | ~begun, 0.0)

    def auxiliary_parameters(self) -> list[nn.Parameter]:
        """Those of the sentence level."""
        return [*self.upper.parameters(), *self.next_words.parameters()]

    def next_word_logits(self, contexts: Rows) -> Tensor:
        """Logits (B, V) of any word of the next sentence, with the sentence level's gradient."""
        logits: Tensor = self.next_words(self.upper.output(contexts.tensors[1:]))
        return logits


class SentenceBags(BagContext):
    """hs_j, and the words of sentence j (RNNSLM); W_s is the embedding of the words.

    Value (B, H + M): hs_j, then the distinct words of the last sentence as 1 + id or 0, which
    `HashedBagSoftmax` expects. Tensors of a context: the layers of hs (B, H) each, and the words
    (B, M). U_s and W_s start in U(±1/V) (§4.3).
    """

    sentences = None

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        if embedding.embedding_dim != self.width:
            raise ValueError(
                f"expected an embedding of {self.width} columns, found {embedding.embedding_dim}"
            )
        self.table = embedding
        self.upper = OneHotHTanh(self.width, self.width, recurrence.layers)
        self.upper.initialise(embedding)

    def start(self, batch: int) -> Rows:
        """hs_0 and empty bags."""
        bags = self.get_buffer("empty").new_zeros(batch, 0, dtype=torch.long)
        return Rows.of(*self.upper.start(batch), bags)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of the sentence level (eq. 4)."""
        (bags,) = summary.tensors
        sums = embedding_sums(self.table.weight, bags - 1, bags > 0)
        return Rows.of(*self.upper.step(self.upper.project(sums), contexts.tensors[:-1]), bags)

    def value(self, contexts: Rows) -> Tensor:
        """hs_j and the distinct words of the last sentence, (B, H + M)."""
        *states, bags = contexts.tensors
        again = torch.zeros_like(bags, dtype=torch.bool)
        again[:, 1:] = bags[:, 1:] == bags[:, :-1]
        return torch.cat([states[-1].float(), bags.masked_fill(again, 0).float()], dim=1)


class SentenceLevel(BagContext):
    """hs_j for the words of sentence j + 1 (HRNNLM), of a sentence level with W_s and loss apart.

    The words' loss does not reach it: in the paper it is trained first, then fixed (§5.2). Here
    both levels may also be trained side by side.
    """

    sentences = None
    end_to_end = False
    averaged = True
    options: ClassVar[tuple[str, ...]] = ("hash_size",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, hash_size: int = SIZE
    ) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        words = nn.Embedding(embedding.num_embeddings, self.width)
        self.level = SentenceBags(words, recurrence)
        self.next_words = HashedBagSoftmax(0, self.width, words, tied=False, hash_size=hash_size)

    def start(self, batch: int) -> Rows:
        """hs_0 and empty bags."""
        return self.level.start(batch)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of the sentence level."""
        return self.level.advance(contexts, summary)

    def value(self, contexts: Rows) -> Tensor:
        """hs_j (B, H), without gradient unless the loss of the words trains the sentence level."""
        state = contexts.tensors[-2]
        return state if self.end_to_end else state.detach()

    def auxiliary_nll(self, contexts: Rows, batch: PackedBatch) -> Tensor:
        """−log y(w_t) (N,) of the words: the RNNSLM (eq. 9)."""
        values = self.level.value(contexts.take(batch.order))
        features = self.next_words.features(values[:, :0], values)[batch.rows]
        return self.next_words.loss(features, batch.targets, None, torch.Generator())


class DualSentenceLevel(SentenceLevel):
    """The sentence level trained by its loss and by that of the words (dual objective, §5.2).

    The gradient of the words' loss goes through hs_j, back to the beginning of the segment.
    """

    end_to_end = True
