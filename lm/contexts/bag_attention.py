"""Attention over the last few sentences, each a state of a bidirectional context recurrence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.contexts.bag_sequence import BagSequence
from lm.recurrences import Recurrence
from lm.rows import Rows

MOST_ENTRIES = 1 << 22  # of (positions, sentences, attention) at once


class BagAttention(BagSequence):
    """Weighted mean of annotations of the last n sentences, with other weights for each word.

    The SeqBoW-ATT context of Wang & Cho 2015, arXiv:1511.03729, §3.1: two recurrences read the
    bags in both directions; z_j = [→z_j; ←z_j]; α_j = softmax_j score(z_j, h); p = Σ α_j z_j.
    The paper leaves the score open: it is v · tanh(W h + U z_j) (Bahdanau et al. 2015) of size
    `attention`, H by default. Its h is the state before the word, since late fusion makes the
    current state from p; at the first word there is none. Sentences without words have no
    annotation; p is zero if there is no other.
    Parameters, for LSTM layers: VK + 8H(H + K + 1) + A(3H + 1).
    """

    per_word = True
    options = ("attention",)

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        sentences: int = 1,
        attention: int | None = None,
    ) -> None:
        super().__init__(embedding, recurrence, sentences=sentences)
        self.backward_reader = recurrence.like(embedding.embedding_dim)
        hidden, self.width = recurrence.hidden, 2 * recurrence.hidden
        size = hidden if attention is None else attention
        self.query = nn.Linear(hidden, size, bias=False)
        self.annotation = nn.Linear(self.width, size, bias=False)
        self.weight = nn.Linear(size, 1, bias=False)

    def prepared(self, contexts: Rows) -> Rows:
        """Annotations (B, n, 2H), their share (B, n, A) in the scores, and a mask (B, n)."""
        inputs, mask = self.projected(contexts)
        forward = self.read(self.reader, inputs, mask)
        backward = self.read(self.backward_reader, inputs.flip(0), mask.flip(0))[::-1]
        both = zip(forward, backward, strict=True)
        annotations = torch.stack([torch.cat(pair, dim=1) for pair in both], dim=1).float()
        return Rows.of(annotations, self.annotation(annotations), mask.T)

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """O(N n (A + H)) time; at most `MOST_ENTRIES` numbers of the attention at once."""
        annotations, keys, mask = prepared.tensors
        largest = max(tensor.shape[1:].numel() for tensor in (annotations, keys))
        most = max(1, MOST_ENTRIES // largest)
        values = []
        for at, asked in zip(torch.split(row, most), torch.split(query, most), strict=True):
            energy = self.weight(torch.tanh(keys[at] + self.query(asked)[:, None]))[:, :, 0]
            # a finite number: without any sentence all shares would be NaN
            shares = torch.softmax(energy.float().masked_fill(~mask[at], -1e30), dim=1) * mask[at]
            values.append(torch.einsum("bn,bnd->bd", shares, annotations[at]))
        return torch.cat(values)
