"""Histories of a document as a language model sees them: contexts, and keys that identify them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices

if TYPE_CHECKING:
    from lm.contexts import Context
    from lm.rows import Rows
    from lm.trie import Candidates

KEY_BYTES = 16
Key: TypeAlias = tuple[bytes, ...]


class Keys(Protocol):
    """How histories are identified: equal keys, equal contexts; equal score keys, equal scores."""

    @property
    def first(self) -> Key:
        """Key of the empty history."""
        ...

    def after(self, key: Key, t: int, choice: int) -> Key:
        """Key of a history with a candidate of sentence t added."""
        ...

    def score_key(self, key: Key) -> bytes:
        """`KEY_BYTES` bytes, equal for histories after which candidates have equal scores."""
        ...


@dataclass(frozen=True, slots=True)
class AllSentences:
    """Keys of histories of which every sentence counts: a digest of the chosen texts.

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
class LastSentences:
    """Keys of histories of which the last `order` sentences count, as the context reads them."""

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
    """Histories with what scoring made of their candidates.

    contexts: of histories, `rows` (N,) telling which; summary: (M · K rows) what the context
    takes from each candidate, after M histories of other scores, `scored` (N,) telling which.
    −1 where the scores were cached; contexts and summary are None where all were.
    """

    histories: Histories
    rows: Indices
    scored: Indices
    contexts: Rows | None = None
    summary: Rows | None = None

    def candidates(self, k: int, parents: Indices, choices: Indices) -> tuple[Indices, Indices]:
        """Rows in contexts and summary of candidates of K that have both; −1 elsewhere."""
        context, scored = self.rows[parents], self.scored[parents]
        both = (context >= 0) & (scored >= 0)
        return np.where(both, context, -1), np.where(both, scored * k + choices, -1)
