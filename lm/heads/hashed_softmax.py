"""Softmax heads with hashed maximum-entropy features beside the features of the hidden state.

The exact softmax over V words of f · Wᵀ + Σ_m D[h(history_m) + word]. Histories are the last word
of the sentence (bigrams), or the words of the previous sentence. A word's id travels to the scores
as a column of the features, 1 + id, or 0 where there is no word.

Pairs of a history and a next word share the S slots of a table D (Mahoney 2000; Mikolov 2012; Lin
et al. 2015, eq. 8). Slot of (history, word t) is h(history) + t, with h(history) in 0 … S − V: the
V words of a history have consecutive slots, and rows of different histories overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend
from lm.heads import Head, softmax, unbiased_softmax
from lm.normalisers import ROWS
from lm.objective import CHUNK
from lm.sentences import Positions
from lm.vocabulary import END

SIZE = 10_000_000  # slots in Lin et al. 2015, §6.1
NONE = -1  # in place of a history's first slot
SPARSE = 4  # a gradient is sparse if it has at most one in so many slots
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # odd: 2^64 over the golden ratio
MOST_WORDS = 1 << 24  # ids that float32 holds exactly


class HashTable(nn.Module):
    """S numbers, zero at first: 4 S bytes. Errors: ValueError if V words do not fit.

    sparse: the gradient has the slots that an update read, as that of torch's sparse embeddings,
    unless these are more than S / `SPARSE`.
    """

    sparse: ClassVar[bool] = True

    def __init__(self, words: int, size: int = SIZE) -> None:
        super().__init__()
        if size < words:
            raise ValueError(
                f"expected a hash size of at least {words:,}, a slot for each word, found {size:,}"
            )
        self.words = words
        self.weight = nn.Parameter(torch.zeros(size))

    def first_slots(self, words: Tensor) -> Tensor:
        """Where the rows of words (…) begin, (…); `NONE` for ids below 0."""
        mixed = (words + 1) * _MIX  # modulo 2^64
        mixed = mixed ^ ((mixed >> 32) & 0xFFFFFFFF)
        slots = (mixed & ((1 << 62) - 1)) % (len(self.weight) - self.words + 1)
        return slots.masked_fill(words < 0, NONE)


@dataclass(frozen=True, slots=True, eq=False)
class HashedLogits:
    """Logits f · weightᵀ + bias + Σ_m D[slots_m + t] of features f.

    weight: (V, R); bias: (V,), −inf for words that are never predicted; table: (S,). In the
    methods features are (N, R) and slots (N, M) first slots of the rows to add, or `NONE`.
    """

    weight: Tensor
    bias: Tensor
    table: Tensor

    def of_all(self, features: Tensor, slots: Tensor, words: slice = slice(None)) -> Tensor:
        """Logits (N, W) of a range of words; O(N W (R + M)) time."""
        logits = F.linear(features, self.weight[words], self.bias[words])
        begin = words.start or 0
        rows = self.table.unfold(0, logits.shape[1], 1)  # overlapping, nothing is copied
        for column in slots.unbind(1):
            at = (column >= 0).nonzero()[:, 0]
            logits.index_add_(0, at, rows[column[at] + begin])
        return logits

    def of_targets(self, features: Tensor, slots: Tensor, targets: Tensor) -> Tensor:
        """Logit (N,) of a word each; O(N (R + M)) time."""
        logits = (features * self.weight[targets]).sum(dim=1) + self.bias[targets]
        added = self.table[slots.clamp(min=0) + targets[:, None]]
        return logits + added.masked_fill(slots < 0, 0.0).sum(dim=1)


def distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """First places (U,) of the distinct rows of an int32 matrix (N, C), and of which each is (N,).

    Rows are compared by a hash. Should different rows have equal hashes, which is checked, all rows
    count as distinct. O(N (C + log N)) time, O(N) memory.
    """
    n, columns = len(rows), rows.unbind(1)  # singly: 8 bytes a number would be a lot
    every = torch.arange(n, device=rows.device)
    keys = torch.zeros_like(every)
    for column in columns:
        keys = (keys ^ column) * _MIX
        keys ^= (keys >> 32) & 0xFFFFFFFF
    values, group = torch.unique(keys, return_inverse=True)
    first = group.new_full((len(values),), n).scatter_reduce_(0, group, every, "amin")
    same = all(torch.equal(column[first][group], column) for column in columns)
    return (first, group) if same else (every, every)


def distinct_inputs(features: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    """`distinct` of float32 features (N, R) and slots (N, M) side by side."""
    bits = features.detach().contiguous().view(torch.int32)
    return distinct(torch.cat([bits, slots.to(torch.int32)], dim=1))


class HashedNLL(torch.autograd.Function):
    """−log p (N,) of targets under hashed logits, exactly, in float32.

    At most `CHUNK` logits are in memory; equal rows of features and slots share a normaliser.
    The gradient of the table is sparse, as `HashTable` says.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        slots: Tensor,
        targets: Tensor,
        weight: Tensor,
        bias: Tensor,
        table: Tensor,
    ) -> Tensor:
        """O(U V (R + M) + N (R + M)) time for U distinct rows."""
        logits = HashedLogits(weight, bias, table)
        first, group = distinct_inputs(features, slots)
        parts = _parts(len(weight), features[first], slots[first])
        log_z = torch.cat([torch.logsumexp(logits.of_all(f, s), dim=1) for f, s in parts])
        ctx.save_for_backward(features, slots, targets, weight, bias, table, first, group, log_z)
        return log_z[group] - logits.of_targets(features, slots, targets)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of a logit is its probability, less one for the target."""
        features, slots, targets, weight, bias, table, first, group, log_z = ctx.saved_tensors
        (d,) = gradients
        logits = HashedLogits(weight, bias, table)
        shares = d.new_zeros(len(first)).index_add_(0, group, d)
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        of_table = _TableGradient.of(slots[first], table, len(weight))
        means = []  # of the words' weights
        for f, s, z, share in _parts(len(weight), features[first], slots[first], log_z, shares):
            p = (logits.of_all(f, s) - z[:, None]).exp_()
            means.append(p @ weight)
            p *= share[:, None]
            d_weight.addmm_(p.T, f)
            d_bias += p.sum(dim=0)
            of_table.add(s, p)
        d_weight.index_add_(0, targets, -d[:, None] * features)
        d_bias.index_add_(0, targets, -d)
        d_features = d[:, None] * (torch.cat(means)[group] - weight[targets])
        d_table = of_table.less(slots, targets, d)
        return d_features, None, None, d_weight, d_bias, d_table


_nll: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = HashedNLL.apply


def hashed_nll(features: Tensor, slots: Tensor, targets: Tensor, logits: HashedLogits) -> Tensor:
    """−log p (N,) of targets, in nats; see `HashedNLL`."""
    if not len(targets):
        return features.sum(dim=1)
    return _nll(features, slots, targets, logits.weight, logits.bias, logits.table)


@dataclass(frozen=True, slots=True, eq=False)
class _TableGradient:
    """Gradient of the table, summed row by row.

    begins: (G,) first slots of the distinct rows that were read, ascending; sums: (G, V), a row for
    each history, or (S,) where these would be too many.
    """

    begins: Tensor
    sums: Tensor
    words: int
    size: int

    @classmethod
    def of(cls, slots: Tensor, table: Tensor, words: int) -> _TableGradient:
        """Zeros for the rows that begin in `slots` (U, M)."""
        begins = torch.unique(slots[slots >= 0])
        few = SPARSE * len(begins) * words <= len(table)
        sums = table.new_zeros((len(begins), words) if few else (len(table),))
        return cls(begins, sums, words, len(table))

    def add(self, slots: Tensor, terms: Tensor) -> None:
        """Add terms (U, V) to the rows that begin in `slots` (U, M)."""
        every = torch.arange(self.words, device=slots.device)
        for column in slots.unbind(1):
            at = (column >= 0).nonzero()[:, 0]
            if self.sums.ndim > 1:
                rows = torch.searchsorted(self.begins, column[at])
                self.sums.index_add_(0, rows, terms[at])
            else:
                places = column[at][:, None] + every
                self.sums.index_add_(0, places.flatten(), terms[at].flatten())

    def less(self, slots: Tensor, targets: Tensor, terms: Tensor) -> Tensor:
        """The gradient (S,), with terms (N,) taken away at a word of each row of `slots`."""
        at, column = (slots >= 0).nonzero().unbind(1)
        slot, word, minus = slots[at, column], targets[at], -terms[at]
        if self.sums.ndim == 1:
            return self.sums.index_add(0, slot + word, minus)
        rows = torch.searchsorted(self.begins, slot)
        sums = self.sums.index_put((rows, word), minus, accumulate=True)
        every = torch.arange(self.words, device=slots.device)
        places = (self.begins[:, None] + every).flatten()
        return torch.sparse_coo_tensor(
            places[None], sums.flatten(), (self.size,), check_invariants=False
        )


def _parts(words: int, *columns: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Rows of columns, as many at a time as have `CHUNK` logits."""
    rows = max(1, CHUNK // words)
    yield from zip(*(torch.split(column, rows) for column in columns), strict=True)


class HashedSoftmax(Head):
    """Softmax with hashed bigrams of the last word and the next: S more parameters, zero at first.

    hash_size: S. Trained exactly, at O(V R) a target. layer_of: makes the softmax to whose logits
    the features are added.
    """

    linear = False
    sampled = False
    options: ClassVar[tuple[str, ...]] = ("hash_size",)
    layer_of: Callable[..., Head] = staticmethod(softmax)

    def __init__(
        self,
        hidden: int,
        context: int,
        embedding: nn.Embedding,
        *,
        tied: bool,
        hash_size: int = SIZE,
    ) -> None:
        super().__init__()
        words = embedding.num_embeddings
        if words > MOST_WORDS:
            raise ValueError(f"hashed features: expected at most {MOST_WORDS} words, found {words}")
        self.layer = self.layer_of(hidden, context, embedding, tied=tied)
        self.context, self.columns = context, self.layer.weight().shape[1]
        self.hashes = HashTable(words, hash_size)
        if not self.predicts_end:
            with torch.no_grad():
                self.layer.bias[END] = -torch.inf

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R) features of the softmax."""
        return self.layer.features(h, c)

    def at_positions(self, features: Tensor, positions: Positions) -> Tensor:
        """The features in float32, and a column of the last word."""
        return torch.cat([features.float(), positions.words[:, None] + 1.0], dim=1)

    def split(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, R) of the softmax, and first slots (N, M) of the rows to add."""
        ids = features[:, self.columns :].long() - 1
        return features[:, : self.columns], self.hashes.first_slots(ids)

    def logits(self) -> HashedLogits:
        """The logits' parameters."""
        return HashedLogits(self.layer.weight(), self.layer.bias, self.hashes.weight)

    def exact_loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """−log p of each target, (N,) nats, in float32."""
        with torch.autocast(features.device.type, enabled=False):
            return hashed_nll(*self.split(features), targets, self.logits())

    @torch.no_grad()
    def log_probabilities(self, features: Tensor) -> Tensor:
        """Exact log p (N, V) of all words, without gradient; O(N V R) time."""
        return torch.log_softmax(self.logits().of_all(*self.split(features)), dim=1)

    def predictor(self, backend: Backend) -> HashedPredictor:
        """The head ready to score words."""
        return HashedPredictor(self, self.logits(), backend)


def lin_layer(hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> Head:
    """A softmax without biases whose matrix starts in U(±1/(H + D)) (Lin et al. 2015, §4.3)."""
    if tied:
        raise ValueError("expected separate input and output matrices")
    layer = unbiased_softmax(hidden, context, embedding, tied=False)
    bound = 1 / (hidden + context)
    nn.init.uniform_(layer.weight(), -bound, bound)
    return layer


class LinSoftmax(HashedSoftmax):
    """Softmax of V h and hashed features as in Lin et al. 2015: no biases; V(H + D) + S numbers."""

    layer_of = staticmethod(lin_layer)


class HashedBagSoftmax(LinSoftmax):
    """Probabilities of any word of the next sentence, as in Lin et al. 2015, eqs. 5–8.

    Features of hidden states (N, H) and values (N, D + M), of which the last M columns are the
    words of the bag before, 1 + id or 0: logit_t = V_t · [h; c] + Σ_w D[h(w) + t]. `</s>` has
    probability 0 and is not scored. Training takes the mean over a sentence's words (eq. 9).
    """

    predicts_end = False
    averaged = True
    at_positions = Head.at_positions  # words of the sentence do not depend on one another

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R + M) features of the softmax, and the words of the bag."""
        if c is None:
            raise TypeError("the head of a bag of words needs a context's value")
        of_layer = self.layer.features(h, c[:, : self.context])
        return torch.cat([of_layer.float(), c[:, self.context :]], dim=1)

    def exact_loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """−log p of words, 0 of `</s>`."""
        words = (targets != END).nonzero()[:, 0]
        nll = super().exact_loss(features[words], targets[words])
        return nll.new_zeros(len(targets)).index_copy(0, words, nll)


@dataclass(frozen=True, slots=True, eq=False)
class HashedPredictor:
    """Scores of a softmax with hashed features; that of `</s>` is 0 if it is not predicted."""

    head: HashedSoftmax
    logits: HashedLogits
    backend: Backend

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of words and of `</s>`; O(U V (R + M)) time for U distinct features."""
        dense, slots = self.head.split(features)
        first, group = distinct_inputs(dense, slots)  # equal features once
        places = self.backend.pieces(first, ROWS[self.backend.device.type])
        with self.backend.large_products():
            sums = self.backend.map(lambda at: self._log_sums(dense[at], slots[at]), places)
        log_z = torch.cat(sums)[group]
        ends = torch.full_like(log_z, END, dtype=torch.long)
        into = self.logits.of_targets(dense[parents], slots[parents], words) - log_z[parents]
        if not self.head.predicts_end:
            return into.masked_fill(words == END, 0.0), torch.zeros_like(log_z)
        return into, self.logits.of_targets(dense, slots, ends) - log_z

    def _log_sums(self, features: Tensor, slots: Tensor) -> Tensor:
        """(N,) of log Σ_v exp(logit); memory: `Backend.floats` a thread."""
        number = len(self.logits.weight)

        def attempt(floats: int) -> Tensor:
            most = max(16, floats // max(1, len(features)))
            blocks = (slice(a, min(a + most, number)) for a in range(0, number, most))
            logits = (self.logits.of_all(features, slots, block) for block in blocks)
            sums = [torch.logsumexp(of_block, dim=1) for of_block in logits]
            return torch.logsumexp(torch.stack(sums), dim=0)

        return self.backend.within_memory(attempt)
