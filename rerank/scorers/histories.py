"""Histories of a document as a language model sees them: contexts, and keys that identify them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices

if TYPE_CHECKING:
    from lm.contexts import Context
    from lm.sentences import Rows
    from lm.trie import Candidates

KEY_BYTES = 16
Key: TypeAlias = tuple[bytes, ...]
"""Of a history: equal keys, equal contexts; equal score keys (`KEY_BYTES`), equal scores."""


@dataclass(frozen=True, slots=True)
class AllSentences:
    """Keys of histories that differ in any sentence: digests of the chosen texts.

    lines: texts of the candidates of each sentence.
    """

    lines: Sequence[Sequence[bytes]]
    first: Key = (bytes(KEY_BYTES),)

    def after(self, key: Key, t: int, choice: int) -> Key:
        """Digest of the key and the candidate's text."""
        return (digest(key[0] + self.lines[t][choice]),)

    def score_key(self, key: Key) -> bytes:
        """The key itself."""
        return key[0]


@dataclass(frozen=True, slots=True)
class AllKeys:
    """Keys of histories that differ in any sentence as the context reads it, such as in a bag."""

    context: Context
    lists: Callable[[], Candidates]
    first: Key = (bytes(KEY_BYTES),)

    def after(self, key: Key, t: int, choice: int) -> Key:
        """Digest of the key and the sentence's."""
        words = self.lists().one(t, choice).tokens
        return (digest(key[0] + self.context.sentence_key(words)),)

    def score_key(self, key: Key) -> bytes:
        """The key itself."""
        return key[0]


@dataclass(frozen=True, slots=True)
class LastSentences:
    """Keys of histories that differ in their last `order` sentences, as the context reads them."""

    order: int
    context: Context
    lists: Callable[[], Candidates]
    first: Key = ()

    def after(self, key: Key, t: int, choice: int) -> Key:
        """The keys of the last sentences, of which the candidate is one."""
        words = self.lists().one(t, choice).tokens
        return (*key, self.context.sentence_key(words))[-self.order :]

    def score_key(self, key: Key) -> bytes:
        """Digest of what the context makes of these sentences."""
        return digest(self.context.history_key(key))


def digest(text: bytes) -> bytes:
    """`KEY_BYTES` bytes that identify a text."""
    return hashlib.blake2b(text, digest_size=KEY_BYTES).digest()


@dataclass(slots=True, eq=False)
class Histories:
    """N histories before sentence t.

    contexts: those that were computed; rows: (N,) of each history in them, −1 if its own was
    not. origin: the histories before, and of each the parent among them and the choice; None
    if all contexts are computed.
    """

    t: int
    keys: list[Key]
    contexts: Rows | None
    rows: Indices
    origin: tuple[Histories, Indices, Indices] | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which histories have a context, (N,)."""
        return self.rows >= 0

    def at(self, places: Indices) -> Rows:
        """Copies of the contexts at some places, all of them known."""
        rows = self.rows[places]
        if self.contexts is None or (rows < 0).any():
            raise ValueError("histories without an ancestor that has a context")
        return take(self.contexts, rows)

    def enter(self, places: Indices, contexts: Rows) -> None:
        """Add the contexts (M rows) of the histories at some places."""
        held = 0 if self.contexts is None else len(self.contexts)
        both = contexts if self.contexts is None else contexts.cat([self.contexts, contexts])
        self.contexts = both
        self.rows[places] = np.arange(held, held + len(places))
        if self.known.all():
            self.origin = None  # which would keep all earlier histories in memory


@dataclass(frozen=True, slots=True, eq=False)
class ScoredHistories:
    """Histories after which the candidates of their sentence were scored.

    summary: (M · K rows) what the context takes from each candidate, after M histories of
    different scores; scored: (N,) number of each history among them, −1 if its scores were
    cached. None if all were.
    """

    histories: Histories
    scored: Indices
    summary: Rows | None = None

    def pairs(
        self, parents: Indices, choices: Indices, k: int
    ) -> tuple[Indices, Rows, Rows] | None:
        """Contexts and summaries (M rows) of the pairs of history and candidate that have both.

        First the numbers (M,) of these pairs. None if there are no such pairs.
        """
        scored = self.scored[parents]
        both = np.flatnonzero((scored >= 0) & self.histories.known[parents])
        if self.summary is None or not both.size:
            return None
        contexts = self.histories.at(parents[both])
        return both, contexts, take(self.summary, scored[both] * k + choices[both])


def take(rows: Rows, places: Indices) -> Rows:
    """A copy of the rows at some places."""
    import torch

    return rows.take(torch.from_numpy(places).to(rows.device))
