"""The best script that we can write in 150 lines of PyTorch: logits once a distinct prefix.

Prefixes are found level by level with `unique`, and read level by level. The normaliser of a
pair, with logits A of a prefix plus logits B of a context, is an entry of exp(A) · exp(B)ᵀ; all
states of a beam read one trie together. One of the scripts that `scoring.py` times the engine of
`lm.scoring` against; nothing here is imported from that engine. Scores are log p of a
candidate's words and `</s>`, in nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from obvious import ContextLM, KBest
from torch import Tensor
from torch.nn import functional as F

from lm.vocabulary import END, START

ROWS = 256  # prefixes whose logits are in memory at once
LOST = 2.0**-126 / 1e-6  # a sum must exceed this times its terms' sizes, lest underflow shows


@dataclass(frozen=True)
class Trie:
    """N distinct prefixes of n hypotheses, level by level; prefix 0 is `<s>`.

    begins: first prefix of each level, and N; parent, word: (N,) of each prefix; path: (n, L)
    prefixes of each hypothesis, filled up with 0; end: (n,) the last of them.
    """

    begins: list[int]
    parent: Tensor
    word: Tensor
    path: Tensor
    end: Tensor

    @classmethod
    def of(cls, hypotheses: KBest, vocabulary: int) -> Trie:
        """Prefixes told apart by parent and word, a level at a time."""
        lengths = torch.tensor([len(words) for words in hypotheses])
        mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
        words = torch.zeros(mask.shape, dtype=torch.int64)
        words[mask] = torch.tensor([w for words in hypotheses for w in words], dtype=torch.int64)
        path, end = torch.zeros_like(words), torch.zeros_like(lengths)
        begins, keys = [0, 1], [torch.tensor([START])]
        for level in range(mask.shape[1]):
            alive = mask[:, level].nonzero()[:, 0]
            pairs = end[alive] * vocabulary + words[alive, level]
            key, number = pairs.unique(return_inverse=True)
            end[alive] = path[alive, level] = number + begins[-1]
            keys.append(key)
            begins.append(begins[-1] + len(key))
        key = torch.cat(keys)
        return cls(begins, key // vocabulary, key % vocabulary, path, end)

    def sums(self, into: Tensor, leave: Tensor) -> Tensor:
        """Scores (C, n) from log-probabilities (N, C) of each prefix's last word and of `</s>`."""
        into[0] = 0.0
        return (F.embedding_bag(self.path, into, mode="sum") + leave[self.end]).T


class PrefixLM:
    """A model with the matrices of its parts, and every word's input projection.

    Logits are features(h) · of_hiddenᵀ + features(c) · of_contextᵀ + bias.
    """

    def __init__(self, model: ContextLM) -> None:
        lstm, hidden, embed = model.lstm, len(model.start), model.embedding.embedding_dim
        self.start, self.bias = model.start, model.output.bias
        self.tied = isinstance(model.projection, torch.nn.Linear)
        matrix = model.projection.weight if self.tied else model.output.weight
        self.project_hidden, self.project_context = matrix[:, :hidden], matrix[:, hidden:]
        self.of_hidden = model.output.weight if self.tied else self.project_hidden.contiguous()
        self.of_context = model.output.weight if self.tied else self.project_context.contiguous()
        bias = lstm.bias_ih_l0 + lstm.bias_hh_l0
        self.inputs = F.linear(model.embedding.weight, lstm.weight_ih_l0[:, :embed], bias)
        self.of_share = lstm.weight_ih_l0[:, embed:]
        self.recurrent = lstm.weight_hh_l0.T.contiguous()
        self.exp_bias, self.logits = self.bias.exp(), torch.empty(ROWS, len(self.bias))

    @classmethod
    @torch.inference_mode()
    def of(cls, model: ContextLM) -> PrefixLM:
        """The model made ready; a CPU's."""
        return cls(model)

    def read(self, trie: Trie, share: Tensor | float = 0.0) -> Tensor:
        """Hidden states (S, N, H) of all prefixes; share: (S, 1, 4H), added to every input."""
        states: list[Tensor] = []
        c = torch.zeros(())
        for level, (begin, stop) in enumerate(pairwise(trie.begins)):
            z = self.inputs[trie.word[begin:stop]] + share
            z = z.view(-1, stop - begin, 4, len(self.start))
            if level:
                parent = trie.parent[begin:stop] - trie.begins[level - 1]
                z += (states[-1][:, parent] @ self.recurrent).view_as(z)
                c = c[:, parent]
            i, f, g, o = z.unbind(dim=2)
            c = i.sigmoid() * g.tanh() + f.sigmoid() * c
            states.append(o.sigmoid() * c.tanh())
        return torch.cat(states, dim=1)

    def features(self, hidden: Tensor) -> Tensor:
        """(…, R) of hidden states (…, H)."""
        return hidden @ self.project_hidden.T if self.tied else hidden

    def log_z(self, features: Tensor) -> Tensor:
        """Log normalisers (N,); the maximum is subtracted only where the sum needs it."""
        weight = self.of_hidden.T
        blocks = (torch.mm(x, weight, out=self.logits[: len(x)]) for x in features.split(ROWS))
        total = torch.cat([block.exp_() @ self.exp_bias for block in blocks])
        log_z = total.log()
        weak = ~((total > LOST * self.exp_bias.sum()) & (total < torch.inf))
        for rows in weak.nonzero()[:, 0].split(ROWS):
            log_z[rows] = torch.addmm(self.bias, features[rows], weight).logsumexp(dim=1)
        return log_z

    def log_probs(self, trie: Trie, features: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (S, N) of prefixes' last words and of `</s>`; features: (S, N, R)."""
        log_z = self.log_z(features.flatten(0, 1)).view(features.shape[:2])
        into = torch.einsum("snr,nr->sn", features[:, trie.parent], self.of_hidden[trie.word])
        into += self.bias[trie.word] - log_z[:, trie.parent]
        return into, features @ self.of_hidden[END] + self.bias[END] - log_z

    def pair_log_probs(self, trie: Trie, features: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (N, C) in contexts whose features are own (C, R); features: (N, R)."""
        bias, own = self.bias + self.of_context @ own.mean(dim=0), own - own.mean(dim=0)
        b = (self.of_context @ own.T).exp_()
        columns = torch.cat([b, b.new_ones(len(b), 1)], dim=1)  # the last gives Σ exp(A)
        product = features.new_empty(len(features), len(own) + 1)
        for x, rows in zip(features.split(ROWS), product.split(ROWS), strict=True):
            a = torch.addmm(bias, x, self.of_hidden.T, out=self.logits[: len(x)]).exp_()
            torch.mm(a, columns, out=rows)
        lost, product = len(b) + product[:, -1:] + b.sum(dim=0), product[:, :-1]
        log_z = product.log()
        for some in (~((product > LOST * lost) & (product < torch.inf))).nonzero().split(ROWS):
            n, c = some.unbind(dim=1)
            logits = torch.addmm(bias, features[n], self.of_hidden.T) + own[c] @ self.of_context.T
            log_z[n, c] = logits.logsumexp(dim=1)
        into = (features[trie.parent] * self.of_hidden[trie.word]).sum(dim=1) + bias[trie.word]
        leave = features @ self.of_hidden[END] + bias[END]
        into = into[:, None] + self.of_context[trie.word] @ own.T - log_z[trie.parent]
        return into, leave[:, None] + own @ self.of_context[END] - log_z


@torch.inference_mode()
def independent(model: PrefixLM, lists: Sequence[KBest]) -> list[Tensor]:
    """Scores (K,) of each list under a model without context, from one trie of all lists."""
    trie = Trie.of([words for candidates in lists for words in candidates], len(model.bias))
    into, leave = model.log_probs(trie, model.features(model.read(trie)))
    return list(trie.sums(into.T, leave.T)[0].split([len(candidates) for candidates in lists]))


@torch.inference_mode()
def pairs(model: PrefixLM, lists: Sequence[KBest]) -> list[Tensor]:
    """Scores (K_prev, K) of a document's lists after each candidate of the list before."""
    contexts, which, matrices = model.start[None], torch.zeros(1, dtype=torch.int64), []
    for candidates in lists:
        trie = Trie.of(candidates, len(model.bias))
        [hidden] = model.read(trie)
        own = contexts @ model.project_context.T if model.tied else contexts
        into, leave = model.pair_log_probs(trie, model.features(hidden), own)
        matrices.append(trie.sums(into, leave)[which])
        ends, which = trie.end.unique(return_inverse=True)
        contexts = hidden[ends]
    return matrices


@torch.inference_mode()
def beam(model: PrefixLM, lists: Sequence[KBest], width: int) -> tuple[float, tuple[int, ...], int]:
    """Best path through a document that a beam of `width` paths finds.

    Returns its log-probability, its candidates, and how many hypotheses were scored.
    """
    contexts, totals = model.start[None], torch.zeros(1, 1, dtype=torch.float64)
    paths: list[tuple[int, ...]] = [()]
    scored = 0
    for candidates in lists:
        trie = Trie.of(candidates, len(model.bias))
        hidden = model.read(trie, (contexts @ model.of_share.T)[:, None])
        into, leave = model.log_probs(trie, model.features(hidden))
        extended = (totals + trie.sums(into.T, leave.T)).flatten()
        best = extended.topk(min(width, len(extended)))
        parents, choices = best.indices // len(candidates), best.indices % len(candidates)
        contexts, totals = hidden[parents, trie.end[choices]], best.values[:, None]
        chosen = zip(parents.tolist(), choices.tolist(), strict=True)
        paths = [(*paths[parent], choice) for parent, choice in chosen]
        scored += len(extended)
    return float(totals[0]), paths[0], scored
