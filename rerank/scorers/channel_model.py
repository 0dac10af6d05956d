"""A model of the source given the target as a feature: the channel of a noisy-channel model.

By Bayes' rule the best translation has the largest p(target) · p(source | target) (Brown et al.
1993); Yee, Dauphin & Auli 2019 (arXiv:1908.05731) rerank lists of neural systems by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from lm.backend import Backend
from lm.checkpoint import SavedModel
from lm.scoring import LogProbError, given_each
from lm.sentences import Rows
from rerank.corpus.columns import offsets_of
from rerank.files.cache import Cache
from rerank.formats.translations import SOURCE
from rerank.scorers.cached_scores import Arrays, ListScores, ListTexts, flat
from rerank.scorers.language_model import LanguageModel, Places


class ChannelModel(LanguageModel):
    """log p(source sentence | candidate) by a model trained with source and target exchanged.

    Order 0. Equal candidates of a list are read once. There is no column of unknown words: those of
    the source are the same for all candidates.
    """

    cached_columns = ()
    counted = "source"

    def __init__(
        self, name: str, saved: SavedModel, backend: Backend, cache: Cache | None = None
    ) -> None:
        super().__init__(name, saved, backend, cache)
        self.columns, self.cure = (), "leave reverse=yes out if it is a model of the target"
        identity = repr((saved.digest, "reverse")).encode()
        self.digest = hashlib.sha256(identity).hexdigest()[: len(saved.digest)]

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """That of the model, and the direction."""
        return (*super()._identity(null=null), "reverse")

    def _static(self, known: ListScores) -> NDArray[np.float64]:
        """No columns; the unknown words of the source are counted for a warning."""
        lines = known.requested.side[SOURCE]
        sources = ListTexts(lines, np.ones(len(known.requested.counts), np.int64))
        self.unknown.add_first(sources, self.saved.vocabulary.knows)
        return np.zeros((known.requested.counts.sum(), 0))

    def _batch(self, texts: Sequence[ListTexts], starts: Places, *, null: bool) -> list[Arrays]:
        """Scores of documents in one batch; starts: (D + 1,) offsets into the lists of all."""
        numbers: list[list[int]] = []  # of each candidate among the distinct ones of its list
        distinct: list[dict[bytes, int]] = []
        for text in chain(*(own.lists() for own in texts)):
            known: dict[bytes, int] = {}
            numbers.append([known.setdefault(line, len(known)) for line in text.splitlines(True)])
            distinct.append(known)
        groups = offsets_of(np.array([len(known) for known in distinct], np.int64))
        read = self.saved.encode_side(SOURCE, b"".join(chain(*distinct)))
        device = self._engine.backend.device
        side = Rows.of(read.rows(np.arange(groups[-1]), device))
        lines = b"".join(own.side[SOURCE] for own in texts)
        sentences, _ = self._encoded(ListTexts(lines, np.ones(len(distinct), np.int64)))
        try:
            scores = given_each(self._engine, sentences, side, groups)
        except LogProbError as fault:
            k = numbers[fault.list or 0].index(fault.candidate or 0)
            raise LogProbError(str(fault), list=fault.list, candidate=k) from None
        every = [own[places] for own, places in zip(scores, numbers, strict=True)]
        return [{"scores": flat(every[a:b])} for a, b in pairwise(starts.tolist())]
