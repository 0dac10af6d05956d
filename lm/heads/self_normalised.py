"""The self-normalised softmax: logits that are taken for log-probabilities.

Training keeps log Z near 0 by α (log Z)² beside −log p (Devlin et al. 2014,
https://aclanthology.org/P14-1129), or by noise-contrastive estimation, which needs no penalty
(`lm.nce`). A score needs no normaliser then: O(R) instead of O(V R). Its error is log Z, whose
mean and standard deviation on a text `lm.evaluation` measures.

Where negatives are sampled, Z is estimated from them: a penalty on the exact Z of a part of the
targets has gradients for all words, which for rare words are nothing but the penalty's, and Adam
makes whole steps of them (perplexity 79 instead of 60).
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
from lm.normalisers import Pair
from lm.objective import Proposal
from lm.vocabulary import END

ALPHA = 0.1  # as in Devlin et al.; 1 makes log Z a third and perplexity 7 % worse


class SelfNormalised(LogitHead):
    """Softmax trained so that log Z is near 0 and its logits are scores; no more parameters.

    The bias starts at −log V, and log Z therefore near 0, as in Devlin et al. 2014.
    """

    normalised = False
    log_normaliser = 0.0

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

    def predictor(self, backend: Backend) -> LinearPredictor:
        """The head ready to score words, in many contexts at once."""
        return LogitPredictor(torch.cat([self.weight(), self.bias[:, None]], dim=1), backend)


@dataclass(frozen=True, slots=True, eq=False)
class LogitPredictor(LinearPredictor):
    """Logits of a linear head as scores: log Z is taken as 0."""

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of words and of `</s>`; O((N + M) R) time."""
        return self._logits(with_column(features, 1.0), parents, words)

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """No normalisers: empty tensors."""
        return [(columns[:0], columns[:0].bool()) for columns, _ in pairs]

    def pair_log_probs(
        self, pair: Pair, log_z: Tensor, parents: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits (M, C) of words and (N, C) of `</s>` in each context; O((N + M C) R) time."""
        columns, shifts = pair
        into, leave = self._logits(columns, parents, words)
        of_words, of_end = self.weight[words] @ shifts.T, shifts @ self.weight[END]
        return into[:, None] + of_words, leave[:, None] + of_end
