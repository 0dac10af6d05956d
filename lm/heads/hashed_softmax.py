"""Softmax heads with hashed maximum-entropy features beside the features of the hidden state.

The exact softmax over V words of f · Wᵀ + Σ_m D[h(history_m) + word] (`lm.heads.hashing`).
Histories are the last words of the sentence (n-grams), or the words of the previous sentence. A
word's id travels to the scores as a column of the features, 1 + id, or 0 where there is no word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from lm.backend import Backend
from lm.heads import Head, softmax, unbiased_softmax
from lm.heads.hashing import SIZE, HashedLogits, HashTable, distinct_inputs, hashed_nll
from lm.normalisers import ROWS
from lm.objective import Proposal
from lm.sentences import Positions
from lm.vocabulary import END

MOST_WORDS = 1 << 24  # ids that float32 holds exactly


class HashedSoftmax(Head):
    """Softmax with hashed n-grams: S more parameters, zero at first.

    hash_size: S; hash_order: longest n-grams, 2 (the last word and the next) or 3, which has
    bigrams and trigrams. Histories do not cross the beginning of a sentence. Trained exactly, at
    O(V (R + n)) a target.
    """

    linear = False
    sampled = False
    options: ClassVar[tuple[str, ...]] = ("hash_size", "hash_order")

    def __init__(
        self,
        hidden: int,
        context: int,
        embedding: nn.Embedding,
        *,
        tied: bool,
        hash_size: int = SIZE,
        hash_order: int = 2,
    ) -> None:
        super().__init__()
        words = embedding.num_embeddings
        if words > MOST_WORDS:
            raise ValueError(f"hashed features: expected at most {MOST_WORDS} words, found {words}")
        self.layer = self._logit_layer(hidden, context, embedding, tied=tied)
        self.columns = self.layer.weight().shape[1]
        self.order = hash_order
        self.hashes = HashTable(words, hash_size)

    def _logit_layer(
        self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool
    ) -> Head:
        """The softmax to whose logits the features are added."""
        return softmax(hidden, context, embedding, tied=tied)

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R) features of the softmax."""
        return self.layer.features(h, c)

    def at_positions(self, features: Tensor, positions: Positions) -> Tensor:
        """The features in float32, and a column for each of the last n − 1 words."""
        words = [positions.words + 1]
        while len(words) < self.order - 1:
            words.append(positions.previous(words[-1]))
        return torch.cat([features.float(), torch.stack(words, dim=1).float()], dim=1)

    def split(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, R) of the softmax, and first slots (N, M) of the rows to add."""
        ids = features[:, self.columns :].long() - 1
        return features[:, : self.columns], self.slots(ids)

    def slots(self, ids: Tensor) -> Tensor:
        """First slots (N, n − 1) of the n-grams after words (N, n − 1), the last word first."""
        histories = range(1, self.order)
        return torch.stack([self.hashes.first_slots(ids[:, :n]) for n in histories], dim=1)

    def logits(self) -> HashedLogits:
        """The logits' parameters."""
        return HashedLogits(self.layer.weight(), self.layer.bias, self.hashes.weight)

    def sampler(self, counts: Tensor, samples: int) -> Proposal | None:
        """No negatives: most slots belong to several words."""
        return None

    def loss(
        self,
        features: Tensor,
        targets: Tensor,
        sampler: Proposal | None,
        generator: torch.Generator,
    ) -> Tensor:
        """−log p of each target, (N,) nats, in float32."""
        return self._exact(features, targets)

    @torch.no_grad()
    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        """Exact −log p of each target, (N,) nats, without gradient."""
        return self._exact(features, targets)

    def _exact(self, features: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            return hashed_nll(*self.split(features), targets, self.logits())

    @torch.no_grad()
    def log_probabilities(self, features: Tensor) -> Tensor:
        """Exact log p (N, V) of all words, without gradient; O(N V (R + n)) time."""
        return torch.log_softmax(self.logits().of_all(*self.split(features)), dim=1)

    def predictor(self, backend: Backend) -> HashedPredictor:
        """The head ready to score words."""
        return HashedPredictor(self, self.logits(), backend)


class LinSoftmax(HashedSoftmax):
    """Softmax of V h and hashed features as in Lin et al. 2015: no biases; V(H + D) + S numbers.

    The matrix starts in U(±1/H) (§4.3).
    """

    def _logit_layer(
        self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool
    ) -> Head:
        if tied:
            raise ValueError("expected separate input and output matrices")
        layer = unbiased_softmax(hidden, context, embedding, tied=False)
        bound = 1 / (hidden + context)
        nn.init.uniform_(layer.weight(), -bound, bound)
        return layer


class HashedBagSoftmax(LinSoftmax):
    """Probabilities of any word of the next sentence, as in Lin et al. 2015, eqs. 5–8.

    Features of hidden states (N, H) and values (N, D + M), of which the last M columns are the
    words of the bag before, 1 + id or 0: logit_t = V_t · [h; c] + Σ_w D[h(w) + t]. `</s>` has
    probability 0 and is not scored. Training takes the mean over a sentence's words (eq. 9).
    """

    predicts_end = False
    averaged = True
    options = ("hash_size",)

    def __init__(
        self,
        hidden: int,
        context: int,
        embedding: nn.Embedding,
        *,
        tied: bool,
        hash_size: int = SIZE,
    ) -> None:
        super().__init__(hidden, context, embedding, tied=tied, hash_size=hash_size)
        with torch.no_grad():
            self.layer.bias[END] = -torch.inf
        self.context = context

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R + M) features of the softmax, and the words of the bag."""
        if c is None:
            raise TypeError("the head of a bag of words needs a context's value")
        own = self.layer.features(h, c[:, : self.context])
        return torch.cat([own.float(), c[:, self.context :]], dim=1)

    def at_positions(self, features: Tensor, positions: Positions) -> Tensor:
        """The features: words of the sentence do not depend on one another."""
        return features

    def slots(self, ids: Tensor) -> Tensor:
        """First slots (N, M) of the words of the bag."""
        return self.hashes.first_slots(ids[:, :, None])

    def _exact(self, features: Tensor, targets: Tensor) -> Tensor:
        """−log p of words, 0 of `</s>`."""
        words = (targets != END).nonzero()[:, 0]
        found = super()._exact(features[words], targets[words])
        return found.new_zeros(len(targets)).index_copy(0, words, found)

    def predictor(self, backend: Backend) -> HashedPredictor:
        """The head ready to score words."""
        return BagPredictor(self, self.logits(), backend)


@dataclass(frozen=True, slots=True, eq=False)
class HashedPredictor:
    """Scores of a softmax with hashed features."""

    head: HashedSoftmax
    logits: HashedLogits
    backend: Backend

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of words and of `</s>`; O(U V (R + M)) time for U distinct features."""
        own, slots = self.head.split(features)
        log_z = self._normalisers(own, slots)
        ends = torch.full_like(log_z, END, dtype=torch.long)
        into = self.logits.of_targets(own[parents], slots[parents], words)
        return into - log_z[parents], self.logits.of_targets(own, slots, ends) - log_z

    def _normalisers(self, features: Tensor, slots: Tensor) -> Tensor:
        """(N,) of log Σ_v exp(logit), equal features once; memory: `Backend.floats` a thread."""
        first, own = distinct_inputs(features, slots)
        places = self.backend.pieces(first, ROWS)
        with self.backend.large_products():
            found = self.backend.map(lambda at: self._log_sums(features[at], slots[at]), places)
        return torch.cat(found)[own]

    def _log_sums(self, features: Tensor, slots: Tensor) -> Tensor:
        number = len(self.logits.weight)

        def attempt(floats: int) -> Tensor:
            most = max(16, floats // max(1, len(features)))
            blocks = (slice(a, min(a + most, number)) for a in range(0, number, most))
            sums = [
                torch.logsumexp(self.logits.of_all(features, slots, block), dim=1)
                for block in blocks
            ]
            return torch.logsumexp(torch.stack(sums), dim=0)

        return self.backend.within_memory(attempt)


@dataclass(frozen=True, slots=True, eq=False)
class BagPredictor(HashedPredictor):
    """Scores of the words of a bag; that of `</s>` is 0."""

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (M,) of words, and zeros (N,)."""
        into, leave = HashedPredictor.log_probs(self, features, parents, words)
        return into.masked_fill(words == END, 0.0), torch.zeros_like(leave)
