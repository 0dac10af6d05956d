"""Discrete topics of any sequence of words, by sums over the words.

A topic model is a table of weights of words, and a weight of each topic. The topic of a sequence is
the one with the largest sum, so that a prefix needs one vector of sums and one addition a word.
Weights are whole numbers: sums do not depend on the order of the words, the batch or the device,
and no rounding decides a topic. How weights are learned: a file each, named in
`lm.composition.TOPIC_MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.corpus import Corpus
from lm.topics.texts import counts_of
from lm.vocabulary import SPECIAL

UNIT = 1 << 10  # of whole numbers in a weight of 1: a nat, or a cosine
TOPICS = 100
AT_ONCE = 1024  # sentences whose sums are held at once
Weights: TypeAlias = NDArray[np.float64]
Learner: TypeAlias = Callable[[Any, int, int], tuple[Weights, Weights]]
"""Counts (M, V) of the words of M texts, a number of topics N and a seed → (V, N) and (N,)."""


class TopicModel(nn.Module):
    """Topics of sequences of words: 1 + argmax_z (prior_z + Σ_i weight[w_i, z]).

    The lowest z of equal ones; 0 where no word counts. terms: (V, 1 + N) of each word: 1 if it
    counts, then its weights; prior: (N,). Words outside the vocabulary do not count, nor do those
    that the topics were learned without. Before `learn` the weights are random.
    """

    terms: Tensor
    prior: Tensor

    def __init__(self, words: int, topics: int = TOPICS) -> None:
        super().__init__()
        terms = (torch.rand(words, 1 + topics) * UNIT).int()
        terms[:, 0] = 1
        terms[: len(SPECIAL)] = 0
        self.register_buffer("terms", terms)
        self.register_buffer("prior", torch.zeros(topics, dtype=torch.int32))

    @property
    def topics(self) -> int:
        """N, beside topic 0 of sequences in which no word counts."""
        return len(self.prior)

    def of_words(self, words: Tensor) -> Tensor:
        """What each of M words adds to sums, (M, 1 + N)."""
        return self.terms[words].long()

    def of_sums(self, sums: Tensor) -> Tensor:
        """Topics (M,) of sequences, given the sums (M, 1 + N) of their words."""
        best = (sums[:, 1:] + self.prior).argmax(dim=1)
        return torch.where(sums[:, 0] > 0, best + 1, 0)

    def of_sentence(self, words: NDArray[np.int32]) -> int:
        """The topic of one sentence."""
        ids = torch.from_numpy(words.astype(np.int64)).to(self.terms.device)
        return int(self.of_sums(self.of_words(ids).sum(dim=0, keepdim=True))[0])

    def of_corpus(self, corpus: Corpus) -> NDArray[np.int64]:
        """The topics (S,) of the sentences of a corpus; O(words · N) time."""
        found = [
            self.of_sums(self._sums(corpus, np.arange(begin, end)))
            for begin, end in pairwise([*range(0, corpus.n_sentences, AT_ONCE), corpus.n_sentences])
        ]
        return torch.cat(found).cpu().numpy() if found else np.zeros(0, dtype=np.int64)

    def _sums(self, corpus: Corpus, chosen: NDArray[np.int64]) -> Tensor:
        """Sums (M, 1 + N) of the words of M consecutive sentences."""
        bounds = corpus.sentences[chosen[0] : chosen[-1] + 2]
        rows = np.repeat(np.arange(len(chosen)), np.diff(bounds))
        ids = torch.from_numpy(corpus.tokens[bounds[0] : bounds[-1]].astype(np.int64))
        terms = self.of_words(ids.to(self.terms.device))
        sums = terms.new_zeros(len(chosen), terms.shape[1])
        return sums.index_add_(0, torch.from_numpy(rows).to(terms.device), terms)

    def learn(self, learner: Learner, corpus: Corpus, seed: int) -> None:
        """Take the weights that a learner finds in a training text.

        ValueError if the text is too short for so many topics.
        """
        kept, counts = counts_of(corpus, len(self.terms), seed)
        if counts.shape[0] < self.topics:
            raise ValueError(
                f"expected at least as many stretches of the training text as topics, "
                f"{self.topics}, found {counts.shape[0]}; ask for fewer topics"
            )
        weights, prior = learner(counts, self.topics, seed)
        terms = torch.zeros_like(self.terms)
        terms[kept, 0] = 1
        terms[kept, 1:] = _whole(weights - weights.mean(axis=1, keepdims=True)).to(terms)
        self.terms.copy_(terms)
        self.prior.copy_(_whole(prior - prior.max()))


def _whole(weights: Weights) -> Tensor:
    """Weights in whole numbers of 1 / `UNIT`."""
    return torch.from_numpy(np.rint(weights * UNIT).astype(np.int32))
