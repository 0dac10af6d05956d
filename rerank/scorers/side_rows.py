"""Side information of k-best lists as a model reads it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lm.checkpoint import SavedModel
from lm.sentences import Rows
from lm.side_information import NUMBERS, SentenceNumbers, SideText, information_of, rows_of
from rerank.scorers.cached_scores import ListTexts

if TYPE_CHECKING:
    import torch


def side_rows(saved: SavedModel, texts: Sequence[ListTexts], device: torch.device) -> Rows | None:
    """Side information of all lists of some documents, a row each; None if the model needs none.

    Lists without candidates are not among them: the next sentence is the next one with candidates.
    """
    context = saved.model.context
    if not context.side_information:
        return None
    documents = np.cumsum([0, *(len(own.counts) for own in texts)])
    side: dict[str, SideText] = {}
    for kind in information_of(context, training=False):
        if kind in NUMBERS:
            indices = np.full(documents[-1], -1, dtype=np.int64)
            for own, (begin, end) in zip(texts, pairwise(documents.tolist()), strict=True):
                numbers = own.numbers(kind)
                indices[begin:end] = np.where(numbers, begin + numbers - 1, -1)
            side[kind] = SentenceNumbers.of(indices)
        else:
            lines = b"".join(own.side[kind] for own in texts)
            side[kind] = saved.encode_side(kind, lines)
    return rows_of(side, context.side_information, np.arange(documents[-1]), documents, device)
