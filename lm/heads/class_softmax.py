"""The class-factored softmax: p(word | h) = p(class | h) · p(word | class, h), exactly.

Goodman 2001 (https://arxiv.org/abs/cs/0108006), with classes by frequency as in Mikolov et al.
2011 (Extensions of recurrent neural network language model). A word has normalisers of about √V
classes and of the words of its class: O(√V R) instead of O(V R).

The expected work Σ_c p(c) · |c| of contiguous classes by frequency is least where Σ √p is equal
for all of them (by the Cauchy–Schwarz inequality; "sqrt" in Mikolov's toolkit). Under Zipf's law
class c then has the ranks c² … (c + 1)² − 1. Ids are ranks, so that the class of a word is the
whole part of √id: no counts are kept, no class has more than 2√V words, and a running word's
class has about 4√V / ln V. `</s>` shares its class with `<s>` and the most frequent word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend
from lm.heads import LinearPredictor, LogitHead, with_column
from lm.normalisers import ROWS, Pair, log_sums, pair_log_sums
from lm.objective import cross_entropy, exact_nll
from lm.vocabulary import END

LOGITS = 1 << 27  # of a product with all words, 512 MiB
REACH = 80.0  # exp(±REACH) neither overflows nor underflows in float32, nor do sums of 1,000


def class_of(words: Tensor) -> Tensor:
    """Class of each word id: ⌊√id⌋."""
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
        on_cuda = self.backend.device.type == "cuda"
        most = LOGITS // (2 * len(self.classes)) if on_cuda else ROWS["cpu"]
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
