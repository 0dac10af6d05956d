"""A language model interpolated with a document cache: the unigram of the document so far.

p(w) = (1 − λ) p_LM(w) + λ c(w) / n for every word w, where c counts the n words of the document's
earlier sentences (Kuhn & De Mori 1990; here emptied at the beginning of each document). The cache
holds known words only: `<unk>` would be one word, and `</s>` occurs once in each sentence; for both
c is 0. An empty cache leaves the model as it is, and so does any cache the score 0 of a `</s>` that
the model does not predict. Probabilities sum to 1 where the model's do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context
from lm.model import DocumentLM
from lm.sentences import ReadSentences, Rows
from lm.vocabulary import END, UNKNOWN


class CachedWords(nn.Module):
    """An inner context, and the words of all earlier sentences.

    The last tensor of its rows holds the words' ids (B, M) in descending order, `UNKNOWN` where
    there is none; the tensors before it are the inner context's, as are all other attributes.
    """

    sentences = None
    averages = False
    history_key = Context.history_key
    of_contexts = ("value", "prepared", "state", "auxiliary_nll")  # methods that receive contexts

    def __init__(self, inner: Context) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        """The inner context's attribute; its methods receive its rows."""
        inner = self._modules["inner"]
        if name == "inner":
            return inner
        attribute = getattr(inner, name)
        if name not in self.of_contexts:
            return attribute
        return lambda contexts, *more: attribute(_inner(contexts), *more)

    def start(self, batch: int) -> Rows:
        """The inner context's start, and no words."""
        inner = self.inner.start(batch)
        words = torch.zeros(batch, 0, dtype=torch.long, device=inner.device)
        return inner.beside(Rows.of(words))

    def summary(self, sentences: ReadSentences) -> Rows:
        """What the inner context takes, and the known words."""
        words, mask = sentences.words()
        return self.inner.summary(sentences).beside(Rows.of(_packed(words * mask)))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The inner context after the sentences, and their words with those before."""
        inner = self.inner.advance(_inner(contexts), _inner(summary))
        words = torch.cat([contexts.tensors[-1], summary.tensors[-1]], dim=1)
        return inner.beside(Rows.of(_packed(words)))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The inner context entered."""
        inner = self.inner.enter(_inner(contexts), encoded)
        return inner.beside(Rows(contexts.tensors[-1:]))

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The inner context's key, and the sentence's bag of words."""
        key = self.inner.sentence_key(words)
        return len(key).to_bytes(8, "little") + key + np.sort(words).tobytes()


class WithDocumentCache(DocumentLM):
    """A trained model, whose parts it shares, interpolated with a document cache of weight λ."""

    def __init__(self, model: DocumentLM, share: float) -> None:
        if not 0 < share < 1:
            raise ValueError(f"the weight of a document cache is between 0 and 1, not {share}")
        super(DocumentLM, self).__init__()
        self.__dict__.update(vars(model))
        self._modules = {**model._modules, "context": CachedWords(model.context)}
        self.share = share

    @property
    def order(self) -> int | None:
        """Unbounded: the cache holds all earlier sentences."""
        return None

    @property
    def additive(self) -> bool:
        """False: the cache adds to probabilities, not to logits."""
        return False

    def interpolated(
        self, log_probs: Tensor, words: Tensor, rows: Tensor, contexts: Rows
    ) -> Tensor:
        """log((1 − λ) p + λ c / n) of words (M,), given log p; O(B M log) time for B contexts."""
        cached = contexts.tensors[-1]
        counts = self._counts(cached, words, rows)
        totals = (cached != UNKNOWN).sum(dim=1)[rows]
        log_cache = (counts / totals.clamp(min=1)).to(log_probs).log()
        mixed = torch.logaddexp(
            log_probs + math.log1p(-self.share), log_cache + math.log(self.share)
        )
        changed = totals > 0
        if not self.head.predicts_end:
            changed &= words != END
        return torch.where(changed, mixed, log_probs)

    def _counts(self, cached: Tensor, words: Tensor, rows: Tensor) -> Tensor:
        """How often each of the words (M,) is in the row (B, …) of cached words that it names."""
        v = self.config.vocabulary
        row = torch.arange(len(cached), device=cached.device)[:, None]
        keys, counts = torch.unique((row * v + cached)[cached != UNKNOWN], return_counts=True)
        if not len(keys):
            return torch.zeros_like(words)
        wanted = rows * v + words
        at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
        return torch.where(keys[at] == wanted, counts[at], 0)


def _inner(rows: Rows) -> Rows:
    """The rows of the inner context."""
    return Rows(rows.tensors[:-1])


def _packed(words: Tensor) -> Tensor:
    """Words (B, M) in descending order, without empty columns."""
    words = words.sort(dim=1, descending=True).values
    return words[:, : int((words != UNKNOWN).sum(dim=1).max()) if len(words) else 0]
