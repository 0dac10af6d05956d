"""Words of a text that a language model does not know, and the warnings of many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import split_words
from rerank.notices import Notices
from rerank.scorers.cached_scores import ListTexts

if TYPE_CHECKING:
    from lm.vocabulary import Vocabulary

_LISTED = 10  # unknown words in a warning
FOREIGN = 0.5  # share of words unknown to a model, of a text in another language
OF_PAIR = "give the model of this pair of languages, and the source as --source"


@dataclass(slots=True)
class UnknownWords:
    """Counts of a text: its words, those out of vocabulary, and some of these one by one."""

    words: int = 0
    oov: int = 0
    named: Counter[bytes] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Share of the words that are out of vocabulary."""
        return self.oov / max(1, self.words)

    @classmethod
    def of(cls, counts: Mapping[bytes, int], vocabulary: Vocabulary) -> UnknownWords:
        """Of a text with so many of each word: of its characters if there are no other words."""
        from lm.vocabulary import characters

        units: Counter[bytes] = Counter()
        if vocabulary.of_characters:
            for word, n in counts.items():
                for character in characters(word):
                    units[character] += n
        else:
            units.update(counts)
        counts_of = cls()
        for unit, n in units.items():
            counts_of.count(unit, n, vocabulary.knows(unit))
        return counts_of

    def count(self, word: bytes, n: int, known: bool) -> None:
        """Count a word n times; known: whether it is."""
        self.words += n
        if not known:
            self.oov += n
            self.named[word] += n

    def add(self, words: Iterable[bytes], known: Callable[[bytes], bool]) -> None:
        """Count words; known: whether a word is known."""
        for word, n in Counter(words).items():
            self.count(word, n, known(word))

    def add_first(self, texts: ListTexts, known: Callable[[bytes], bool]) -> None:
        """Count the words of the first candidate of each list, which costs little."""
        lines = texts.text.split(b"\n")
        for row in texts.offsets[:-1][np.diff(texts.offsets) > 0].tolist():
            self.add(split_words(lines[row]), known)

    def add_candidates(
        self,
        texts: ListTexts,
        words: int,
        unknown: NDArray[np.integer],
        known: Callable[[bytes], bool],
    ) -> None:
        """Count the words of lists, of which each candidate has so many `unknown` ones (n,).

        known: whether a word is in the vocabulary. The words themselves are named of one hypothesis
        of each list, which costs little.
        """
        self.words += words
        self.oov += int(unknown.sum())
        rows = np.flatnonzero(unknown)
        owners = np.searchsorted(texts.offsets, rows, side="right")
        lines = texts.text.split(b"\n")
        for row in rows[np.unique(owners, return_index=True)[1]].tolist():
            self.named.update(word for word in split_words(lines[row]) if not known(word))

    def _most_frequent(self) -> str:
        words = (word.decode(errors="replace") for word, _ in self.named.most_common(_LISTED))
        return ", ".join(map(repr, words))

    def warn_of_language(
        self,
        name: str,
        notices: Notices,
        *,
        unit: str = "word",
        cure: str = "",
        source: str = "",
        trained: float = 0.0,
    ) -> None:
        """A warning of a text in another language: most of its words are unknown.

        unit: what was counted, a singular noun; trained: share of unknown words in training.
        """
        if self.share > max(FOREIGN, 2 * trained + 0.01):
            notices.add(
                "foreign-text",
                source=source,
                count=self.oov,
                unit=unit,
                name=name,
                share=f"{self.share:.1%}",
                words=self._most_frequent(),
                cure=cure or "give the model of this language",
            )

    def warn(
        self,
        name: str,
        about: Mapping[str, object],
        notices: Notices,
        *,
        source: str,
        text: str = "list",
        cure: str = "",
    ) -> None:
        """A warning if there are far more unknown words than in the model's training text.

        about: what the model's folder says of it, with the rate of unknown words in training;
        text: what was counted, a singular noun; cure: of a text in which nearly all are unknown.
        """
        known = about.get("oov_rate", 0.0)
        trained = float(known) if isinstance(known, float | int) else 0.0
        if self.share > 2 * trained + 0.01:
            notices.add(
                "unknown-words",
                source=source,
                count=self.oov,
                name=name,
                share=f"{self.share:.1%}",
                text=text,
                trained=f"{trained:.1%}",
                words=self._most_frequent(),
                cure=f"{'; ' * bool(cure)}{cure}",
            )
