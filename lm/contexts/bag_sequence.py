"""The last few sentences as a sequence of bags of words, read by a context recurrence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lm.contexts import Context
from lm.contexts.bag import BagOfWords
from lm.recurrences import Recurrence, State
from lm.rows import Rows


class BagSequence(BagOfWords):
    """Last state of a recurrence over the bags s_1 … s_n of the last n sentences, oldest first.

    The SeqBoW context of Wang & Cho 2015, arXiv:1511.03729, §3.1: z_j = φ(P s_j, z_{j-1}) with
    frequencies s_j, value p = z_n, (B, H). φ is of the word level's kind and size. The paper
    does not say what φ's input is; the projection P is that of the BoW context, so that a word
    costs K parameters and not 4H. There is no step without words: none before the beginning of
    a document, none for an empty sentence; p is then the state before, at first zero.
    Parameters, for an LSTM layer: VK + 4H(H + K + 1).
    """

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, sentences: int = 1
    ) -> None:
        super().__init__(embedding, recurrence, sentences=sentences)
        self.reader = recurrence.like(self.width)
        self.width = recurrence.hidden

    def value(self, contexts: Rows) -> Tensor:
        """The last state, (B, H)."""
        return self.read(self.reader, *self.projected(contexts))[-1]

    def projected(self, contexts: Rows) -> tuple[Tensor, Tensor]:
        """P s_j (n, B, K) of each sentence, and a mask (n, B) of those with words."""
        bags = contexts.tensors[0].permute(2, 0, 1)
        means = self.means(bags.flatten(0, 1))
        return means.view(*bags.shape[:2], -1), (bags > 0).any(dim=2)

    def read(self, reader: Recurrence, inputs: Tensor, mask: Tensor) -> list[Tensor]:
        """Top states (B, H) after each of n inputs (n, B, K), unchanged where the mask is false."""
        state, outputs = reader.start(inputs.shape[1]), []
        for projected, present in zip(reader.project(inputs), mask, strict=True):
            state = _where(present, reader.step(projected, state), state)
            outputs.append(reader.output(state))
        return outputs

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """The keys in their order: the sequence of bags decides the value."""
        return Context.history_key(self, sentences)


def _where(mask: Tensor, following: State, before: State) -> State:
    """The following state of the rows where the mask holds, that before of the others."""
    column = mask[:, None]
    return tuple(torch.where(column, f, b) for f, b in zip(following, before, strict=True))
