"""Side information: what a model is told of every sentence beside the target text.

Each kind is a text of its own, parallel to the target text and in words of its own vocabulary: the
source sentences, or labels, which are sentences of one word. It is given, not searched, so that
it never raises the order of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.vocabulary import SPECIAL
from lm.zoo import fact

# kinds, and the field of `lm.config.Config` that holds the size of a kind's vocabulary
KINDS: Mapping[str, str] = {"source": "source_words", "relations": "relation_labels"}
LABELS = frozenset({"relations"})  # kinds whose sentences are one word


def information_of(context: Any, *, training: bool = True) -> tuple[str, ...]:
    """Kinds that a context, or the maker of one, needs of every sentence.

    training: with those that only training needs.
    """
    needed: tuple[str, ...] = fact(context, "side_information") or ()
    return (*needed, *((fact(context, "training_information") or ()) if training else ()))


@dataclass(frozen=True, slots=True, eq=False)
class SideText:
    """S sentences of word ids, in the columns of `lm.corpus.Corpus`.

    tokens: (N,) int32 ids; sentences: (S + 1,) offsets into tokens.
    """

    tokens: NDArray[np.int32]
    sentences: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.int64], device: torch.device | None = None) -> Tensor:
        """Words (B, M) of the sentences `chosen`: 1 + id, and zeros behind shorter sentences."""
        starts, lengths = self.sentences[chosen], np.diff(self.sentences)[chosen]
        columns = np.arange(int(lengths.max(initial=0)))
        within = columns < lengths[:, None]
        found = np.zeros(within.shape, dtype=np.int64)
        found[within] = self.tokens[(starts[:, None] + columns)[within]] + 1
        return torch.from_numpy(found).to(device)

    def where(self, kept: NDArray[np.bool_]) -> SideText:
        """The sentences that a mask (S,) keeps."""
        lengths = np.diff(self.sentences)
        tokens = self.tokens[np.repeat(kept, lengths)]
        return SideText(tokens, np.concatenate([[0], np.cumsum(lengths[kept])]))


SideTexts = Mapping[str, SideText]


def labels_of(rows: Tensor) -> Tensor:
    """Labels (B,) of `SideText.rows` of a kind of `LABELS`: 0 for `<unk>`, then the others.

    The other special words, which are no labels, have no number.
    """
    return (rows[:, 0] - len(SPECIAL)).clamp(min=0)


def n_labels(words: int) -> int:
    """Number of different labels that `labels_of` gives, for a vocabulary of so many words."""
    return words - len(SPECIAL) + 1


def words_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Ids (B, M) of `SideText.rows`, padded at the beginning instead, and a mask of the words."""
    m = rows.shape[1]
    index = torch.arange(m, device=rows.device) - (m - (rows > 0).sum(dim=1, keepdim=True))
    mask = index >= 0
    return (rows.gather(1, index.clamp(min=0)) - 1) * mask, mask
