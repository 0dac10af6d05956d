"""A document under a language model whose scores depend on context: scored history by history.

Histories that the model cannot tell apart have equal keys, and are scored once: in this run
and, with a cache, in later ones. The context of a history whose scores came from the cache is
computed lazily from its nearest ancestor with a context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Answer, DocumentProblem, Indices
from lm.scoring import ScoringEngine
from lm.sentences import Rows
from lm.trie import Candidates
from rerank.scorers.cached_scores import CachedScores, ScorerCache
from rerank.scorers.following import advanced, follow, read
from rerank.scorers.histories import (
    AllKeys,
    AllSentences,
    Histories,
    Key,
    LastSentences,
    ScoredHistories,
    digest,
)
from rerank.scorers.history_scores import HistoryScores
from rerank.scorers.moves import rescored
from rerank.scorers.requests import scored_together

Scores = NDArray[np.float32]
Sums = NDArray[np.float64]


class ContextualProblem(DocumentProblem):
    """Log-probabilities of a document's candidates in context; a state is a batch of histories.

    order: the model's, or None to treat every history as different. `encode` gives the
    candidates in the model's words, once they are needed; side: side information of the T
    sentences, if the model needs it. Memory: 4 bytes a candidate and
    about 300 for each history that was scored or cached.
    """

    lengths: tuple[int, ...] = ()
    order: int | None = None

    def __init__(
        self,
        engine: ScoringEngine,
        kept: CachedScores,
        encode: Callable[[], Candidates],
        *,
        order: int | None,
        memory: ScorerCache,
        label: str,
        side: Rows | None = None,
    ) -> None:
        self.engine, self.order, self.label = engine, order, label
        self._side = side
        self.lengths = tuple(kept.requested.counts.tolist())
        self._kept, self._encode, self._memory = kept, encode, memory
        self._table = HistoryScores(kept)
        self._noted: dict[tuple[int, Key], Rows] = {}
        self._keys: AllSentences | AllKeys | LastSentences
        context = engine.model.context
        if order is None and context.merges_sentences:
            self._keys = AllKeys(context, lambda: self.lists)
        elif order is None:
            self._keys = AllSentences([text.split(b"\n") for text in kept.requested.lists()])
        else:
            self._keys = LastSentences(order, context, lambda: self.lists)

    @cached_property
    def lists(self) -> Candidates:
        """The candidates in the model's words."""
        return self._encode()

    def sentence(self, t: int) -> Candidates:
        """The candidates of sentence t."""
        return self.lists.part(t, t + 1)

    def initial(self) -> Histories:
        """The empty history, in the start context."""
        context, side = self.engine.model.context, self._side_of(0)
        start = context.start(1).detach()
        if side is not None:
            with self.engine.backend.inference():
                start = context.enter(start, side)
        return Histories(0, [self._keys.first], start, np.zeros(1, dtype=np.intp))

    @cached_property
    def _encoded_side(self) -> Rows | None:
        """The side information as the model's context takes it."""
        if self._side is None:
            return None
        with self.engine.backend.inference():
            return self.engine.model.context.encoded(self._side)

    def _side_of(self, t: int) -> Rows | None:
        """Encoded side information of sentence t, one row; None if there is none."""
        if self._encoded_side is None or t >= len(self.lengths):
            return None
        return self._encoded_side.take(slice(t, t + 1))

    def advanced(self, t: int, contexts: Rows, summaries: Rows) -> Rows:
        """Contexts (M rows) after sentence t, whose summaries (M rows) these are."""
        return advanced(self.engine, contexts, summaries, self._side_of(t + 1))

    def extend(self, states: Histories, t: int) -> Answer:
        """Scores (N, K_t) after each history; O(trie nodes) steps for each one not cached."""
        return self.extend_together([(self, states, t)])[0]

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, Histories, int]]) -> list[Answer]:
        """Scores for histories of many documents, in one batch for each model."""
        found = scored_together([(problem, histories) for problem, histories, _ in requests])
        return [
            (problem._scores(histories), scored)
            for (problem, histories, _), scored in zip(requests, found, strict=True)
        ]

    def select(self, successors: ScoredHistories, parents: Indices, choices: Indices) -> Histories:
        """The histories after the chosen candidates."""
        histories = successors.histories
        following = self.followed(histories, parents, choices)
        if found := successors.pairs(parents, choices, self.lengths[histories.t]):
            known, contexts, summary = found
            following.enter(known, self.advanced(histories.t, contexts, summary))
        return following

    def followed(self, before: Histories, parents: Indices, choices: Indices) -> Histories:
        """The histories after chosen candidates, their contexts not computed yet."""
        pairs = zip(parents.tolist(), choices.tolist(), strict=True)
        keys = [self._keys.after(before.keys[p], before.t, c) for p, c in pairs]
        unknown = np.full(len(keys), -1, dtype=np.intp)
        return Histories(before.t + 1, keys, None, unknown, (before, parents, choices))

    def average(self, successors: ScoredHistories, weights: Sums) -> Histories:
        """The states after each candidate whose contexts are weighted means, `weights: (N, K_t)`.

        The key is a digest of the context. O(N K_t) contexts beside the cost of the scores,
        which is paid again for those that were cached.
        """
        import torch

        if not self.engine.model.context.averages:
            refused: Histories = super().average(successors, weights)
            return refused
        before, (n, k) = successors.histories, weights.shape
        parents, choices = np.divmod(np.arange(n * k), k)
        known = successors.pairs(parents, choices, k)
        if known is not None and len(known[0]) == n * k:
            _, given, found = known
        else:
            given = self.contexts(before)
            ((_, found),) = read([(self, before.t, self.sentence(before.t), given)])
            given = given.repeat_interleave(k)
        pairs = self.advanced(before.t, given, found)
        with self.engine.backend.inference():
            means = [
                torch.einsum(
                    "nk,nkc->kc", torch.from_numpy(weights).to(column), column.view(n, k, -1)
                ).view(k, *column.shape[1:])
                for column in pairs.tensors
            ]
        raw = [mean.flatten(1).cpu().contiguous().view(torch.uint8).numpy() for mean in means]
        keys = [(digest(row.tobytes()),) for row in np.concatenate(raw, axis=1)]
        return Histories(before.t + 1, list(keys), Rows.of(*means), np.arange(k))

    def rescore(self, paths: Indices, t: int, horizon: int) -> Sums:
        """Sums (N,) along each path; costs as `rerank.scorers.moves.rescored`."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums along paths of many documents, a sentence at a time."""
        return rescored(requests)

    def contexts(self, histories: Histories, places: Indices | None = None) -> Rows:
        """Contexts (M rows) of some histories, or of all.

        They are computed from the nearest ancestors that have one, in a short pass for each
        history on the way that has none, all of a sentence together.
        """
        own = histories
        places = np.arange(len(own.keys)) if places is None else places
        chain = []
        unknown = self._recall(histories, places)
        while unknown.size and histories.origin is not None:
            chain.append((histories, histories.origin, unknown))
            histories, parents, _ = histories.origin
            unknown = self._recall(histories, np.unique(parents[unknown]))
        for following, (before, parents, choices), unknown in reversed(chain):
            given = self.contexts(before, parents[unknown])
            ((_, contexts),) = follow([(self, before.t, choices[unknown], given)])
            following.enter(unknown, contexts)
        return own.at(places)

    def note(self, histories: Histories) -> None:
        """Remember the contexts that are computed, for moves to begin from."""
        for place in np.flatnonzero(histories.known).tolist():
            name = histories.t, histories.keys[place]
            if name not in self._noted:
                self._noted[name] = histories.at(np.array([place]))

    def keep(self) -> None:
        """Put what was scored since the last call into the cache."""
        if not self._table.grown:
            return
        self._memory.keep(self._kept.cached, {**self._kept.arrays, **self._table.arrays()})
        self._table.grown = False  # not before: a signal may end the writing

    def _recall(self, histories: Histories, places: Indices) -> Indices:
        """Which of some histories still lack a context, once the noted contexts are entered."""
        unknown = places[~histories.known[places]]
        named = [(place, (histories.t, histories.keys[place])) for place in unknown.tolist()]
        noted = [(place, self._noted[name]) for place, name in named if name in self._noted]
        if noted:
            found, contexts = zip(*noted, strict=True)
            histories.enter(np.array(found), contexts[0].cat(contexts))
        return unknown[~histories.known[unknown]]

    def score_keys(self, histories: Histories) -> list[bytes]:
        """Keys of the histories' scores in the table."""
        return list(map(self._keys.score_key, histories.keys))

    def has_scores(self, t: int, key: bytes) -> bool:
        """Whether the scores of sentence t after a history are in the table."""
        return self._table.has(t, key)

    def _scores(self, histories: Histories) -> Scores:
        """Scores (N, K_t), all of them in the table."""
        return self._table.stacked(histories.t, self.score_keys(histories))

    def enter(self, t: int, keys: Sequence[bytes], scores: Scores) -> None:
        """Put the scores (M, K_t) after histories with these score keys into the table."""
        self._table.enter(t, keys, scores)
