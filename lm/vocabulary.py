"""Words and their ids: the closed vocabulary of a language model.

Ids 0, 1 and 2 are `<unk>` (the unknown class), `<s>` and `</s>`; the words follow, most
frequent first. In a text these three strings are ordinary unknown words. Words are UTF-8
bytes between ASCII spaces; nothing else separates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNKNOWN, START, END = 0, 1, 2
SPECIAL = (b"<unk>", b"<s>", b"</s>")


def words_of(line: bytes) -> list[bytes]:
    """Words of a line, split on ASCII space only; a line of white space has none."""
    return [] if line.isspace() else [word for word in line.split(b" ") if word]


def characters(word: bytes) -> list[bytes]:
    """The characters of a word; `<unk>`, `<s>` or `</s>` stays whole, as an unknown character."""
    if word in SPECIAL:
        return [word]
    how = "utf-8", "surrogateescape"
    return [character.encode(*how) for character in word.decode(*how)]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A bijection between V - 3 words and the ids 3..V-1."""

    words: tuple[bytes, ...]
    ids: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {word: i for i, word in enumerate(self.words, start=len(SPECIAL))}
        if len(ids) != len(self.words):
            raise ValueError("a vocabulary holds each word once")
        if any(word in ids for word in SPECIAL) or b"" in ids:
            raise ValueError("a vocabulary holds neither <unk>, <s>, </s> nor the empty word")
        object.__setattr__(self, "ids", ids)

    def __len__(self) -> int:
        return len(self.words) + len(SPECIAL)

    def __contains__(self, word: object) -> bool:
        """Whether a word has an id."""
        return word in self.ids

    def knows(self, word: bytes) -> bool:
        """Whether a word is in the vocabulary, or made of pieces that were learnt."""
        return word in self.ids

    @property
    def of_characters(self) -> bool:
        """Whether all words are single characters, as where a text is read so."""
        return all(len(word.decode(errors="replace")) == 1 for word in self.words)

    def encode(self, words: Iterable[bytes]) -> list[int]:
        """Ids of words; `UNKNOWN` for each word outside the vocabulary."""
        get = self.ids.get
        return [get(word, UNKNOWN) for word in words]

    def decode(self, ids: Iterable[int]) -> list[bytes]:
        """The words of ids, the special ones included."""
        every = SPECIAL + self.words
        return [every[i] for i in ids]

    def numbered(
        self, words: list[bytes], tokens: NDArray[np.int32], sentences: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids (N,) of distinct words at indices `tokens`, and the offsets of sentences in them."""
        ids = np.asarray(self.encode(words), dtype=np.int32)
        return (ids[tokens] if len(ids) else tokens), sentences

    def line(self, ids: Iterable[int]) -> bytes:
        """The words of ids, with spaces between them."""
        return b" ".join(self.decode(ids))

    def as_json(self) -> Any:
        """The vocabulary as JSON values."""
        return [word.decode() for word in self.words]

    def encode_lines(self, text: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids (N,) of the words of LF-ended lines, and the lines' offsets (lines + 1,) in them."""
        marks = {b"": -1, b"\n": -2}
        words = text.replace(b"\n", b" \n ").split(b" ")
        numbers = map({**self.ids, **marks}.get, words, repeat(UNKNOWN))
        ids = np.fromiter(numbers, dtype=np.int32, count=len(words))
        is_word = ids >= 0
        offsets = np.cumsum(is_word)[ids == -2]
        return ids[is_word], np.concatenate([[0], offsets])

    @classmethod
    def most_frequent(cls, counts: Iterable[tuple[bytes, int]], size: int) -> Vocabulary:
        """The `size` words with the highest counts; of equal counts, those that come first."""
        ranked = sorted(counts, key=lambda pair: -pair[1])
        return cls(tuple(islice((word for word, _ in ranked if word not in SPECIAL), size)))
