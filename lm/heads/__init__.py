"""How words are predicted: softmax over the vocabulary or over classes, and logits as scores.

Training of the self-normalised softmax keeps log Z near 0 by α (log Z)² beside −log p (Devlin et
al. 2014, https://aclanthology.org/P14-1129), or by noise-contrastive estimation, which needs no
penalty (`lm.objective`). A score needs no normaliser then: O(R) instead of O(V R). Its error is
log Z, whose mean and standard deviation on a text `lm.evaluation` measures. Where negatives are
sampled, Z is estimated from them: a penalty on the exact Z of some targets has gradients for all
words, of which Adam makes whole steps for rare words (perplexity 79 instead of 60).

The class-factored softmax is exact: p(word | h) = p(class | h) · p(word | class, h) (Goodman 2001,
https://arxiv.org/abs/cs/0108006, with classes by frequency as in Mikolov et al. 2011, Extensions of
recurrent neural network language model). The expected work Σ_c p(c) · |c| of contiguous classes by
frequency is least where Σ √p is equal for all of them (by the Cauchy–Schwarz inequality; "sqrt" in
Mikolov's toolkit). Under Zipf's law class c then has the ranks c² … (c + 1)² − 1. Ids are ranks, so
that the class of a word is the whole part of √id: no counts are kept, no class has more than 2√V
words, and a running word's class has about 4√V / ln V. `</s>` shares its class with `<s>` and the
most frequent word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend, column_multiple, linear
from lm.normalisers import ROWS, Pair, log_sums, pair_log_sums
from lm.objective import NoiseDistribution, Proposal, chunked_nll, cross_entropy, exact_nll
from lm.sentences import Positions
from lm.vocabulary import END

SCORED = 1 << 16  # words that a predictor scores at once where all of them are wanted
ALPHA = 0.1  # as in Devlin et al.; 1 makes log Z a third and perplexity 7 % worse
LOGITS = 1 << 27  # of a product with all words, 512 MiB
REACH = 80.0  # exp(±REACH) neither overflows nor underflows in float32, nor do sums of 1,000


class Predictor(Protocol):
    """A head ready to score words."""

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (M,) of words[m] after parents[m], and (N,) of `</s>`; features: (N, R)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinearPredictor:
    """Scores of a linear head, also in many contexts at once.

    weight: (V, R + 1), the bias as its last column.
    """

    weight: Tensor
    backend: Backend

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of words and of `</s>`; O(N V R) time."""
        columns = with_column(features, 1.0)
        log_z = log_sums(columns, self.weight, self.backend)
        into, leave = self._logits(columns, parents, words)
        return into - log_z[parents], leave - log_z

    def pair(self, features: Tensor, shifts: Tensor) -> Pair:
        """Features (N, R) of positions and (C, R) that contexts add, for the next two methods."""
        return with_column(features, 1.0), with_column(shifts, 0.0)

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """Log normalisers (N, C) of each pair, and a mask of those that were recomputed."""
        return pair_log_sums(pairs, self.weight, self.backend)

    def pair_log_probs(
        self, pair: Pair, log_z: Tensor, parents: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores (M, C) of words and (N, C) of `</s>` in each context; log_z is empty for 0."""
        columns, shifts = pair
        into, leave = self._logits(columns, parents, words)
        of_words, of_ends = (log_z[parents], log_z) if len(log_z) else (0.0, 0.0)
        into = (self.weight[words] @ shifts.T).add_(into[:, None] - of_words)
        return into, (leave[:, None] - of_ends) + shifts @ self.weight[END]

    def _logits(self, columns: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        return (columns[parents] * self.weight[words]).sum(dim=1), columns @ self.weight[END]


def with_column(rows: Tensor, column: Tensor | float) -> Tensor:
    """(N, R + 1): rows and the bias or what multiplies it; zeros follow on CUDA."""
    width = rows.shape[1]
    wide = rows.new_zeros(len(rows), width + 1 + -(width + 1) % column_multiple(rows.device))
    wide[:, :width], wide[:, width] = rows, column
    return wide


class Head(nn.Module):
    """Base of the heads: training loss, normaliser and scores of words, here of a softmax.

    A head is linear if logits = features(h, c) · weight()ᵀ + bias, with features linear in the
    hidden state h and the context's value c: features(h, c + d) = features(h, c) + features(0, d),
    so that all pairs are matrix products. Its predictor is a `LinearPredictor`, the `scorer`.
    """

    linear: ClassVar[bool] = True
    normalised: ClassVar[bool] = True  # probabilities sum to 1 exactly: no score is above 0
    # `loss` can do with a sample of the words, and `nce_loss` trains the head, whose probabilities
    # are the softmax of its logits
    sampled: ClassVar[bool] = True
    predicts_end: ClassVar[bool] = True  # else loss and score of `</s>` are 0
    averaged: ClassVar[bool] = False  # training takes the mean of `loss` over a sentence's words
    scorer: ClassVar[type[LinearPredictor]] = LinearPredictor
    bias: Tensor

    def weight(self) -> Tensor:
        """(V, R) output matrix of a linear head."""
        raise TypeError("a linear head defines its matrix")

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R) features of hidden states (N, H) and values (N, D); here both side by side."""
        return h if c is None else torch.cat([h, c], dim=1)

    def at_positions(self, features: Tensor, positions: Positions) -> Tensor:
        """Features with what the head takes from the words read before; here nothing."""
        return features

    def sampler(self, counts: Tensor, samples: int) -> Proposal | None:
        """Negatives for `loss` from word counts (V,); None for no samples, or more than V / 4."""
        if not self.sampled or not 0 < samples <= len(counts) // 4:
            return None
        return Proposal.from_counts(counts, samples)

    def exact_loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """Exact −log p of each target, (N,) nats."""
        return exact_nll(features, self.weight(), self.bias, targets)

    def loss(
        self,
        features: Tensor,
        targets: Tensor,
        sampler: Proposal | None,
        generator: torch.Generator,
    ) -> Tensor:
        """Training loss of each target, (N,) nats: by sampled softmax, or exact without sampler."""
        if sampler is None:
            return self.exact_loss(features, targets)
        return sampler.nll(features, self.weight(), self.bias, targets, generator)

    @property
    def log_normaliser(self) -> float:
        """Log Z that NCE gives the logits: log V, that of logits near 0, where training begins."""
        return math.log(len(self.bias))

    def nce_loss(
        self,
        features: Tensor,
        targets: Tensor,
        noise: NoiseDistribution,
        generator: torch.Generator,
    ) -> Tensor:
        """NCE loss of each target, (N,) nats, with the scores logit − `log_normaliser`."""
        shifted = self.bias - self.log_normaliser
        return noise.loss(features, self.weight(), shifted, targets, generator)

    @torch.no_grad()
    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        """Exact −log p of each target, (N,) nats, without gradient."""
        if self.sampled:
            return chunked_nll(features, self.weight(), self.bias, targets)
        return self.exact_loss(features, targets)

    @torch.no_grad()
    def log_probabilities(self, features: Tensor) -> Tensor:
        """Exact log p (N, V) of all words, without gradient; O(N V R) time if `linear`.

        A linear head whose probabilities are no softmax of its logits overrides it. Other heads
        score every word with their predictor. `</s>` has log p = −inf where it is not predicted.
        """
        if self.linear:
            return torch.log_softmax(linear(features, self.weight(), self.bias).float(), dim=1)
        predictor = self.predictor(Backend(features.device))
        every = torch.arange(len(self.bias), device=features.device)
        tables = []
        for rows in torch.split(features, max(1, SCORED // len(every))):
            at = torch.arange(len(rows), device=rows.device).repeat_interleave(len(every))
            scores, _ = predictor.log_probs(rows, at, every.repeat(len(rows)))
            tables.append(torch.log_softmax(scores.float().view(len(rows), -1), dim=1))
        return torch.cat(tables)

    def score(self, features: Tensor, targets: Tensor) -> Tensor:
        """What the predictor gives as log p of each target, (N,) nats; exact if `normalised`."""
        return -self.nll(features, targets)

    def predictor(self, backend: Backend) -> Predictor:
        """The head ready to score words, in many contexts at once if it is linear."""
        return self.scorer(with_column(self.weight(), self.bias), backend)


class Softmax(Head):
    """Separate output matrix: V(H + D + 1) parameters."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding) -> None:
        super().__init__()
        words, bound = embedding.num_embeddings, (hidden + context) ** -0.5
        self.columns = [hidden, context]
        self.output = nn.Parameter(torch.empty(words, hidden + context).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(words))

    def weight(self) -> Tensor:
        """The separate matrix."""
        return self.output

    def blocks(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The matrices of hidden states and of contexts, side by side."""
        return torch.split(tensor, self.columns, dim=1) if tensor.ndim > 1 else (tensor,)


class TiedSoftmax(Head):
    """Output matrix shared with the embeddings behind a projection: K(H + D) + V parameters.

    Press & Wolf 2017; the projection follows Inan et al. 2017.
    """

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.projection = nn.Linear(hidden + context, embedding.embedding_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    def weight(self) -> Tensor:
        """(V, K) embedding matrix."""
        return self.embedding.weight

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, K) projected features."""
        return linear(super().features(h, c), self.projection.weight)


def softmax(hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> Head:
    """The softmax over H and D columns, with the embedding as its matrix if `tied`."""
    return (TiedSoftmax if tied else Softmax)(hidden, context, embedding)


def unbiased_softmax(hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> Head:
    """The softmax without a bias for each word: V parameters fewer (Ji et al. 2016, eq. 12)."""
    head = softmax(hidden, context, embedding, tied=tied)
    zeros = torch.zeros_like(head.bias, requires_grad=False)
    del head.bias
    head.register_buffer("bias", zeros, persistent=False)
    return head


class LogitHead(Head):
    """Base of the heads that use the logits of a softmax, `layer`, in another way."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__()
        self.layer = softmax(hidden, context, embedding, tied=tied)
        self.bias = self.layer.bias

    def weight(self) -> Tensor:
        """(V, R) matrix of the logits."""
        return self.layer.weight()

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R) features of the softmax."""
        return self.layer.features(h, c)


@dataclass(frozen=True, slots=True, eq=False)
class LogitPredictor(LinearPredictor):
    """Logits of a linear head as scores: log Z is taken as 0."""

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of words and of `</s>`; O((N + M) R) time."""
        return self._logits(with_column(features, 1.0), parents, words)

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """No normalisers: empty tensors."""
        return [(columns[:0], columns[:0].bool()) for columns, _ in pairs]


class SelfNormalised(LogitHead):
    """Softmax trained so that log Z is near 0 and its logits are scores.

    The bias starts at −log V, and log Z therefore near 0, as in Devlin et al. 2014.
    """

    normalised = False
    log_normaliser = 0.0
    scorer = LogitPredictor

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding, tied=tied)
        nn.init.constant_(self.bias, -math.log(len(self.bias)))

    def loss(
        self,
        features: Tensor,
        targets: Tensor,
        sampler: Proposal | None,
        generator: torch.Generator,
    ) -> Tensor:
        """−log p + α (log Z)² of each target, (N,) nats."""
        if sampler is None:
            logits = F.linear(features, self.weight(), self.bias).float()
            log_z = torch.logsumexp(logits, dim=1)
            return log_z - logits.gather(1, targets[:, None])[:, 0] + ALPHA * log_z.square()
        nll = sampler.nll(features, self.weight(), self.bias, targets, generator)
        log_z = sampler.log_normalisers(nll, self.score(features, targets), targets)
        return nll + ALPHA * log_z.square()

    def score(self, features: Tensor, targets: Tensor) -> Tensor:
        """Logits of the targets, (N,)."""
        return (features * self.weight()[targets]).sum(dim=1) + self.bias[targets]


def class_of(words: Tensor) -> Tensor:
    """Class of each word id: ⌊√id⌋."""
    if words.device.type == "mps":  # it has no float64
        return class_of(words.cpu()).to(words.device)
    return words.double().sqrt().long()


def words_of_class(number: int) -> slice:
    """Ids of a class; those from V on do not exist in the last one."""
    return slice(number**2, (number + 1) ** 2)


class ClassSoftmax(LogitHead):
    """Softmax over ⌈√V⌉ classes, then over the words of the class: ⌈√V⌉(R + 1) more parameters.

    It is trained exactly, at O(√V R) a target.
    """

    sampled = False

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding, tied=tied)
        words, columns = self.weight().shape
        number, bound = math.isqrt(words - 1) + 1, columns**-0.5
        self.sizes = [len(range(words)[words_of_class(c)]) for c in range(number)]
        self.classes = nn.Parameter(torch.empty(number, columns).uniform_(-bound, bound))
        self.class_bias = nn.Parameter(torch.zeros(number))

    def exact_loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """−log p of each target, (N,) nats.

        In the parameters' precision: for bfloat16 oneDNN compiles a kernel for each shape, and
        classes have new shapes in every update.
        """
        features = features.to(self.classes.dtype)
        classes = class_of(targets)
        with torch.autocast(features.device.type, enabled=False):
            of_class = exact_nll(features, self.classes, self.class_bias, classes)
            within = self.within_by_rows if features.is_cuda else self.within_by_class
            return of_class + within(features, classes, targets)

    def within_by_class(self, features: Tensor, classes: Tensor, targets: Tensor) -> Tensor:
        """−log p(word | class), (N,): a product for each class that occurs; O(N √V R)."""
        order = classes.argsort(stable=True)
        counts = torch.bincount(classes, minlength=len(self.sizes)).tolist()
        of_classes = zip(
            torch.split(features[order], counts),
            torch.split(self.weight(), self.sizes),
            torch.split(self.bias, self.sizes),
            torch.split((targets - classes.square())[order], counts),
            strict=True,
        )
        within = torch.cat([exact_nll(*columns) for columns in of_classes if len(columns[-1])])
        return torch.empty_like(within).index_copy(0, order, within)

    def within_by_rows(self, features: Tensor, classes: Tensor, targets: Tensor) -> Tensor:
        """−log p(word | class), (N,), by products with all words, `LOGITS` at a time; O(N V R).

        On a GPU the calls of √V small products take longer than this arithmetic.
        """
        weight, bias, place = self.weight(), self.bias, targets - classes.square()
        within = torch.arange(max(self.sizes), device=targets.device)

        def loss(rows: Tensor) -> Tensor:
            ids = classes[rows].square()[:, None] + within
            outside = (within > 2 * classes[rows, None]) | (ids >= len(bias))
            logits = F.linear(features[rows], weight, bias)
            chosen = logits.gather(1, ids.clamp(max=len(bias) - 1)).masked_fill(outside, -torch.inf)
            return cross_entropy(chosen, place[rows])

        every = torch.arange(len(targets), device=targets.device)
        return torch.cat([loss(rows) for rows in torch.split(every, max(1, LOGITS // len(bias)))])

    @torch.no_grad()
    def log_probabilities(self, features: Tensor) -> Tensor:
        """Exact log p (N, V) of all words, without gradient; O(N V R) time."""
        logits = F.linear(features, self.weight(), self.bias).float()
        within = [logit.log_softmax(dim=1) for logit in torch.split(logits, self.sizes, dim=1)]
        of_class = F.linear(features, self.classes, self.class_bias).float().log_softmax(dim=1)
        every = torch.arange(len(self.bias), device=features.device)
        return torch.cat(within, dim=1) + of_class[:, class_of(every)]

    def predictor(self, backend: Backend) -> LinearPredictor:
        """The head ready to score words, in many contexts at once."""
        words = with_column(self.weight(), self.bias)
        classes = with_column(self.classes, self.class_bias)
        return ClassPredictor(words, backend, classes)


@dataclass(frozen=True, slots=True, eq=False)
class ClassPredictor(LinearPredictor):
    """Scores of a class-factored softmax; classes: (⌈√V⌉, R + 1), the bias as its last column."""

    classes: Tensor

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of words and of `</s>`; O((N + M) √V R) time."""
        columns = with_column(features, 1.0)
        log_z = log_sums(columns, self.classes, self.backend)
        at, targets, order, pieces = self.pieces(len(features), parents, words)

        def scores(piece: tuple[int, slice]) -> Tensor:
            number, rows = piece
            ids, inputs = words_of_class(number), columns[at[rows]]
            logits = inputs @ self.weight[ids].T
            chosen = logits.gather(1, (targets[rows] - ids.start)[:, None])[:, 0]
            return chosen - torch.logsumexp(logits, dim=1) + inputs @ self.classes[number]

        log_probs = torch.cat(self.backend.map(scores, pieces)) - log_z[at]
        return _restored(log_probs, order, len(words))

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """Log normalisers (N, C) of the classes; O(N √V (R + C)) time."""
        return pair_log_sums(pairs, self.classes, self.backend)

    def pair_log_probs(
        self, pair: Pair, log_z: Tensor, parents: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores (M, C) of words and (N, C) of `</s>`; O((N + M) √V (R + C) + C V R) time."""
        columns, shifts = pair
        at, targets, order, pieces = self.pieces(len(columns), parents, words)
        classes = class_of(targets)
        scores = (self.classes @ shifts.T)[classes] - log_z[at]
        scores += (columns @ self.classes.T)[at, classes][:, None]
        for number, rows in pieces:
            ids = words_of_class(number)
            weight, chosen = self.weight[ids], targets[rows] - ids.start
            a, b = columns[at[rows]] @ weight.T, weight @ shifts.T
            scores[rows] += a.gather(1, chosen[:, None]) + b[chosen]
            scores[rows] -= _sums_of_pairs(a, b, self.backend)
        return _restored(scores, order, len(words))

    def pieces(
        self, positions: int, parents: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, list[tuple[int, slice]]]:
        """Words after their parents and `</s>` after every position, sorted by class.

        (M + N,) positions, words, and places before sorting; then the classes that occur, each with
        its range in these, at most `ROWS` at a time on a CPU, for which many pieces are better.
        """
        every = torch.arange(positions, device=words.device)
        at, targets = torch.cat([parents, every]), torch.cat([words, torch.full_like(every, END)])
        classes = class_of(targets)
        order = classes.argsort(stable=True)
        on_cpu = self.backend.device.type == "cpu"
        most = ROWS["cpu"] if on_cpu else LOGITS // (2 * len(self.classes))
        pieces, begin = [], 0
        for number, count in enumerate(torch.bincount(classes).tolist()):
            end = begin + count
            pieces += [(number, slice(b, min(b + most, end))) for b in range(begin, end, most)]
            begin = end
        return at[order], targets[order], order, pieces


def _restored(scores: Tensor, order: Tensor, words: int) -> tuple[Tensor, Tensor]:
    """Scores sorted by `pieces` as those of the words and those of `</s>`, in their order."""
    restored = torch.empty_like(scores).index_copy(0, order, scores)
    return restored[:words], restored[words:]


def _sums_of_pairs(a: Tensor, b: Tensor, backend: Backend) -> Tensor:
    """(N, C) of log Σ_w exp(a[n, w] + b[w, c]): a product of exponentials where these fit."""
    if float(a.abs().amax()) + float(b.abs().amax()) < REACH:
        return (a.exp() @ b.exp()).log_()
    rows = max(1, backend.floats // b.numel())
    return torch.cat(
        [torch.logsumexp(some[:, :, None] + b, dim=1) for some in torch.split(a, rows)]
    )
