"""Contrastive items from k-best lists: candidates that differ in one word, which a reference has.

Contrastive sets are mostly written by hand (Bawden et al. 2018, https://aclanthology.org/N18-1118).
Here a system has made both variants: its own errors, in the documents that are to be reranked.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Words: TypeAlias = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A candidate, variants of it that are wrong in one word, and that word of the right one."""

    right: bytes
    wrong: tuple[bytes, ...]
    word: str


def contrast_of(
    candidates: Sequence[Words], references: Sequence[Words], kind: frozenset[str]
) -> Contrast | None:
    """The first candidate of a list that others contrast with; None if there is none.

    Two candidates contrast if they differ in one word, both words are of a kind (lower case), some
    reference has the first candidate's word as often as this candidate does, and no reference has
    the other's. Words are compared in lower case, escapes of Moses undone. All such others, in the
    order of the list, are the wrong variants. O(words of the list · words of a candidate) time.
    """
    counts = [Counter(map(_plain, reference)) for reference in references]
    frames: dict[tuple[int, tuple[bytes, ...]], list[tuple[Words, str]]] = {}
    distinct = dict.fromkeys(tuple(words) for words in candidates)
    for words in distinct:
        for j, word in enumerate(map(_plain, words)):
            if word in kind:
                frames.setdefault((j, words[:j] + words[j + 1 :]), []).append((words, word))
    for alike in frames.values():
        wrong = tuple(
            b" ".join(words) for words, word in alike if not any(own[word] for own in counts)
        )
        for right, word in alike if wrong else ():
            times = sum(word == _plain(other) for other in right)
            if any(own[word] >= times for own in counts):
                return Contrast(b" ".join(right), wrong, word)
    return None


def _plain(word: bytes) -> str:
    return html.unescape(word.decode()).lower()
