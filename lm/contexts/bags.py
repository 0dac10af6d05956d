"""Sentences as bags of words: the sum of the last few, or a sequence that a recurrence reads.

The sentence level of Lin et al. 2015 learns to predict the words of the next sentence, by a second
loss: hs_j = HTanh(U_s hs_{j−1} + W_s xs_j) (eq. 4), with xs_j the counts of the words of sentence j
and hs_0 = (0.1, …, 0.1). y_{j+1} = softmax(V_s hs_j + Σ_{w ∈ xs_j} D[hash(w, ·)]) (eq. 8) are the
probabilities of each word of the next sentence, whatever its place. The paper does not say whether
a word that xs_j has twice adds its features twice; here it adds them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context, learned_start
from lm.corpus import PackedBatch
from lm.heads.hashed_softmax import SIZE, HashedBagSoftmax
from lm.recurrences import OneHotHTanh, Recurrence
from lm.sentences import ReadSentences, Rows, embedding_sums
from lm.vocabulary import END


class BagContext(Context):
    """Base of the contexts that read each sentence as a bag of words.

    They hold the words of a sentence (B, M) as 1 + id in descending order, so that equal bags have
    equal bits; 0 where there is none.
    """

    averages = False
    merges_sentences = True

    def summary(self, sentences: ReadSentences) -> Rows:
        """The sorted words (B, M) of each sentence, as a context holds them."""
        words, mask = sentences.words()
        return Rows.of(((words + 1) * mask).sort(dim=1, descending=True).values)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The sorted words: equal bags leave equal contexts."""
        return np.sort(words).tobytes()


class BagOfWords(BagContext):
    """Sum of the embeddings of all words of the last n sentences, with a separate table.

    A context holds the words (B, M, n) of the sentences, at first none; embeddings are added in the
    order of the ids, so that equal sums have equal bits. Parameters: VK.
    """

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, sentences: int = 1
    ) -> None:
        super().__init__(embedding, recurrence)
        self.sentences = self.bags = sentences
        self.width = embedding.embedding_dim
        self.table = nn.Parameter(torch.empty_like(embedding.weight).uniform_(-0.1, 0.1))

    def start(self, batch: int) -> Rows:
        """Empty bags."""
        empty = self.get_buffer("empty")
        return Rows.of(empty.new_zeros(batch, 0, self.bags, dtype=torch.long))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The last bag after the n − 1 before it."""
        newest = Rows.of(summary.tensors[0][:, :, None])
        (older,) = contexts.tensors
        slots = [Rows.of(bag) for bag in torch.split(older, 1, dim=2)[1:]]
        # bags of different sizes are padded to the same number of words
        padded = torch.tensor_split(Rows.cat([*slots, newest]).tensors[0], self.bags)
        return Rows.of(torch.cat(padded, dim=2))

    def value(self, contexts: Rows) -> Tensor:
        """The vector (B, K) of all sentences as a single bag."""
        return self.vectors(contexts.tensors[0].flatten(1).sort(dim=1).values)

    def vectors(self, bags: Tensor) -> Tensor:
        """Summed embeddings (B, K) of sorted bags (B, M), as contexts hold them."""
        return embedding_sums(self.table, bags - 1, bags > 0)

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """The sorted words of all sentences: equal sums give equal scores."""
        return np.sort(np.frombuffer(b"".join(sentences), dtype=np.int32)).tobytes()


class WordFrequencies(BagOfWords):
    """Relative frequencies s of the words of the last n sentences, projected: p = P s.

    The BoW context of Wang & Cho 2015, arXiv:1511.03729, §3.1: the sentences are a single bag whose
    counts are divided by their sum. p is zero at the beginning of a document.
    """

    def vectors(self, bags: Tensor) -> Tensor:
        """P s (B, K) of sorted bags (B, M); 0 if empty."""
        return super().vectors(bags) / (bags > 0).sum(dim=1, keepdim=True).clamp(min=1)


class BagSequence(WordFrequencies):
    """Last state of a recurrence over the bags s_1 … s_n of the last n sentences, oldest first.

    The SeqBoW context of Wang & Cho 2015, arXiv:1511.03729, §3.1: z_j = φ(P s_j, z_{j-1}) with
    frequencies s_j, value p = z_n, (B, H). φ is of the word level's kind and size. The paper
    does not say what φ's input is; here P is the projection of the BoW context, so that a word
    costs K parameters and not 4H. There is no step without words, and p is then the state before,
    at first zero. Parameters, for an LSTM layer: VK + 4H(H + K + 1).
    """

    history_key = Context.history_key  # the order of the bags decides, too

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, sentences: int = 1
    ) -> None:
        super().__init__(embedding, recurrence, sentences=sentences)
        self.reader = recurrence.like(self.width)
        self.width = recurrence.hidden

    def value(self, contexts: Rows) -> Tensor:
        """The last state, (B, H)."""
        return self.read(self.reader, *self.projected(contexts))[-1]

    def projected(self, contexts: Rows) -> tuple[Tensor, Tensor]:
        """P s_j (n, B, K) of each sentence, and a mask (n, B) of those with words."""
        bags = contexts.tensors[0].permute(2, 0, 1)
        frequencies = self.vectors(bags.flatten(0, 1))
        return frequencies.view(*bags.shape[:2], -1), (bags > 0).any(dim=2)

    def read(self, reader: Recurrence, inputs: Tensor, mask: Tensor) -> list[Tensor]:
        """Top states (B, H) after each of n inputs (n, B, K), unchanged where the mask is false."""
        state, outputs = reader.start(inputs.shape[1]), []
        for projected, present in zip(reader.project(inputs), mask, strict=True):
            both = zip(reader.step(projected, state), state, strict=True)
            state = tuple(torch.where(present[:, None], new, old) for new, old in both)
            outputs.append(reader.output(state))
        return outputs


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
