"""Sentences read from left to right by a recurrence of their own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.encoders import Encoder
from lm.recurrences import Recurrence


class RecurrentEncoder(Encoder):
    """g(w): top hidden state (B, H) of a recurrence after the last word.

    The recurrence is of the word level's kind and size, with weights of its own; it reads neither
    `<s>` nor `</s>`. Without words the vector is that of the state before any input.
    Parameters: those of the recurrence over K inputs. O(B M (H + K) H) time.
    """

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.reader = recurrence.like(embedding.embedding_dim)

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, H)."""
        reader, lengths = self.reader, mask.sum(dim=1)
        start = reader.start(len(words))
        order = torch.argsort(lengths, descending=True, stable=True)
        packed, sizes = _packed(words[order], mask[order])
        if not len(packed):
            return reader.output(start)
        projected = reader.project(self.embedding(packed))
        hidden = reader.output(reader.unroll(projected, start, tuple(sizes.tolist())))
        first = sizes.cumsum(0) - sizes  # position of the longest sentence at each time step
        place = torch.arange(int(sizes[0]), device=words.device)  # of each sentence with words
        last = hidden[first[lengths[order][place] - 1] + place]
        return torch.cat([last, reader.output(start)[len(last) :]])[torch.argsort(order)]


def _packed(words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Words (N,) by time step, the longest sentence first, and sentences (T,) at each step.

    words: (B, M) of sentences in descending order of their lengths, padded at the beginning; mask:
    true for words.
    """
    time = torch.arange(words.shape[1], device=words.device)
    present = time < mask.sum(dim=1, keepdim=True)
    aligned = torch.zeros_like(words)
    aligned[present] = words[mask]
    sizes = present.sum(dim=0)
    return aligned.T[present.T], sizes[sizes > 0]
