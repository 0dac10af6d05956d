"""What the cache keeps of a document: its hypotheses as they are, and what they scored.

The key is the text itself. A shard is found by the first candidates of its document, so
that `--top` finds what longer lists have left; it counts when every list asked for begins
the one that it holds. Nothing is trusted to a digest alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.cache import Cache
from rerank.corpus.columns import places_of
from rerank.corpus.kbest import KBest

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Hypotheses of a document's T lists that have any, an LF-ended line each.

    counts: (T,) candidates of each list; chosen: whether they are not the first ones of the
    lists that were read, but others left out between them.
    """

    text: bytes
    counts: NDArray[np.int64]
    chosen: bool = False

    @classmethod
    def of(cls, kbest: KBest) -> Texts:
        """The hypotheses of k-best lists."""
        text = b"".join(line + b"\n" for line in kbest.texts.to_list())
        chosen = not np.array_equal(kbest.ranks, places_of(kbest.counts))
        return cls(text, kbest.counts[kbest.counts > 0], chosen)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(T + 1,) of the lists in the candidates."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def starts(self) -> NDArray[np.int64]:
        """(T + 1,) of the lists in the text."""
        ends = np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n")) + 1
        return np.concatenate([[0], ends])[self.offsets]

    def lists(self) -> list[bytes]:
        """The text of each list."""
        starts = self.starts.tolist()
        return [self.text[a:b] for a, b in pairwise(starts)]

    def name(self) -> str:
        """Digest of the first candidates; of chosen ones all, which begin no longer list."""
        if self.chosen:
            return hashlib.sha256(self.text).hexdigest()
        first = (part[: part.index(b"\n") + 1] for part in self.lists())
        return hashlib.sha256(b"".join(first)).hexdigest()

    def same(self, other: Texts) -> bool:
        """Whether the lists are the same."""
        return self.text == other.text and np.array_equal(self.counts, other.counts)

    def begins(self, held: Texts) -> bool:
        """Whether each list is the beginning of the list that `held` has there."""
        if self.same(held):
            return True
        if len(self.counts) != len(held.counts) or (self.counts > held.counts).any():
            return False
        pairs = zip(self.lists(), held.lists(), strict=True)
        return all(theirs.startswith(ours) for ours, theirs in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What is known of a document's candidates: arrays, and the lists that they are of."""

    held: Texts
    wanted: Texts
    arrays: Arrays

    def column(self, name: str) -> NDArray[Any]:
        """A value of each wanted candidate, (n,)."""
        counts, offsets = self.wanted.counts, self.held.offsets
        within = np.arange(counts.sum()) - np.repeat(self.wanted.offsets[:-1], counts)
        column: NDArray[Any] = self.arrays[name][np.repeat(offsets[:-1], counts) + within]
        return column

    def scores(self, order: int) -> list[NDArray[Any]]:
        """Scores of the wanted candidates: (K_t,) of each list, at order 1 (K_{t-1}, K_t)."""
        flat, found, begin = self.arrays["scores"], [], 0
        before = (1, 1)
        for held, wanted in zip(
            self.held.counts.tolist(), self.wanted.counts.tolist(), strict=True
        ):
            end = begin + before[0] * held
            block = flat[begin:end].reshape(before[0], held)[: before[1], :wanted]
            found.append(block if order else block[0])
            begin, before = end, (held, wanted) if order else (1, 1)
        return found


@dataclass(slots=True, eq=False)
class Memory:
    """A cache as one scorer sees it: `group` says whose scores they are. None keeps nothing.

    whole: lists are found as they were kept only, not in longer ones, whose scores may differ
    in the last bits.
    """

    cache: Cache | None
    group: str
    whole: bool = False
    _peeked: tuple[Texts, Kept | None] | None = None

    def peek(self, wanted: Texts) -> Kept | None:
        """What the next `recall` of these lists will find; the cache is asked once."""
        found = self.recall(wanted)
        self._peeked = wanted, found
        return found

    def recall(self, wanted: Texts) -> Kept | None:
        """What is kept of these lists, or of longer ones that begin with them."""
        peeked, self._peeked = self._peeked, None
        if peeked is not None and peeked[0].same(wanted):
            return peeked[1]
        if self.cache is None:
            return None
        arrays = self.cache.get(self.group, wanted.name())
        if arrays is None or not arrays.keys() >= {"text", "counts"}:
            return None
        held = Texts(arrays["text"].tobytes(), arrays["counts"])
        fits = wanted.same(held) if self.whole else wanted.begins(held)
        return Kept(held, wanted, arrays) if fits else None

    def keep(self, texts: Texts, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put arrays of these lists into the cache."""
        if self.cache is not None:
            text = np.frombuffer(texts.text, dtype=np.uint8)
            own: Arrays = {"text": text, "counts": texts.counts}
            self.cache.put(self.group, texts.name(), {**arrays, **own})
