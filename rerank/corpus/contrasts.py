"""Contrasts in k-best lists: candidates of which one word is right in one and wrong in another.

Contrastive sets are mostly written by hand (Bawden et al. 2018,
https://aclanthology.org/N18-1118). Here a system has made both variants: its own errors, in the
documents that are to be reranked. Words are compared in lower case, escapes of Moses undone.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Words: TypeAlias = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class WordTest:
    """Words in which variants differ, as tests of a word; right: of the word that is right."""

    any: Callable[[str], bool]
    right: Callable[[str], bool] = lambda word: True

    @classmethod
    def repeated(cls, earlier: Sequence[Sequence[bytes]], function: frozenset[str]) -> WordTest:
        """Content words, the right one in an earlier reference; function: all other words."""
        had = {_plain(word) for own in earlier for line in own for word in line.split()}
        return cls(lambda word: word.isalpha() and word not in function, had.__contains__)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A candidate, variants of it that are wrong in one word, and that word of the right one."""

    right: bytes
    wrong: tuple[bytes, ...]
    word: str


def replacement_of(
    candidates: Sequence[Words], references: Sequence[Words], kind: WordTest
) -> Contrast | None:
    """The first candidate of a list that others contrast with; None if there is none.

    Two candidates contrast if they differ in one word, both words are of a kind, some reference has
    the first candidate's word as often as this candidate does, and no reference has the other's.
    All such others, in the order of the list, are the wrong variants.
    O(words of the list · words of a candidate) time.
    """
    counts = [Counter(map(_plain, reference)) for reference in references]
    frames: dict[tuple[int, tuple[bytes, ...]], list[tuple[Words, str]]] = {}
    distinct = dict.fromkeys(tuple(words) for words in candidates)
    for words in distinct:
        for j, word in enumerate(map(_plain, words)):
            if kind.any(word):
                frames.setdefault((j, words[:j] + words[j + 1 :]), []).append((words, word))
    for alike in frames.values():
        wrong = tuple(
            b" ".join(words) for words, word in alike if not any(own[word] for own in counts)
        )
        for right, word in alike if wrong else ():
            if kind.right(word) and any(own[word] >= _times(word, right) for own in counts):
                return Contrast(b" ".join(right), wrong, word)
    return None


def omission_of(
    candidates: Sequence[Words], references: Sequence[Words], kind: WordTest
) -> Contrast | None:
    """The first candidate that another equals but for a word that it lacks; None if there is none.

    The word is of a kind. The candidate with it is right if some reference has it as often as this
    candidate does; the one without it, if a reference has it as often as that one, and none has
    it more often. O(words of the list · words of a candidate) time.
    """
    counts = [Counter(map(_plain, reference)) for reference in references]
    distinct = dict.fromkeys(tuple(words) for words in candidates)
    for words in distinct:
        for j, word in enumerate(map(_plain, words)):
            shorter = words[:j] + words[j + 1 :]
            if not (shorter and shorter in distinct and kind.any(word) and kind.right(word)):
                continue
            texts, times = (b" ".join(words), b" ".join(shorter)), _times(word, words)
            most = max(own[word] for own in counts)
            if most >= times:
                return Contrast(texts[0], texts[1:], word)
            if most == times - 1:
                return Contrast(texts[1], texts[:1], word)
    return None


CONTRASTS: Mapping[str, Callable[[Sequence[Words], Sequence[Words], WordTest], Contrast | None]] = {
    "replaced": replacement_of,
    "omitted": omission_of,
}


def _times(word: str, words: Words) -> int:
    """How often a word is in a candidate."""
    return sum(word == _plain(other) for other in words)


def _plain(word: bytes) -> str:
    return html.unescape(word.decode()).lower()
