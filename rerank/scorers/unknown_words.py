"""Words of a text that a language model does not know, counted, and a warning if they are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import split_words
from rerank.notices import Notices
from rerank.scorers.cached_scores import ListTexts

_LISTED = 10  # unknown words in a warning


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

    def add(self, words: Sequence[bytes], known: Mapping[bytes, int]) -> None:
        """Count the words of a sentence; known: the words of the vocabulary."""
        unknown = [word for word in words if word not in known]
        self.words += len(words)
        self.oov += len(unknown)
        self.named.update(unknown)

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

    def warn(
        self,
        name: str,
        about: Mapping[str, object],
        notices: Notices,
        *,
        source: str,
        text: str = "list",
    ) -> None:
        """A warning if there are far more unknown words than in the model's training text.

        about: what the model's folder says of it, with the rate of unknown words in training;
        text: what was counted, a singular noun.
        """
        known = about.get("oov_rate", 0.0)
        trained = float(known) if isinstance(known, float | int) else 0.0
        if self.share > 2 * trained + 0.01:
            words = ", ".join(
                repr(word.decode(errors="replace")) for word, _ in self.named.most_common(_LISTED)
            )
            notices.add(
                f"word unknown to {name} ({self.share:.1%} of the {text}'s words, {trained:.1%} "
                f"of its training text's; most frequent: {words}): check case, escaping (&apos;), "
                f"tokenisation and subwords; the {text}s must look like the training text",
                source=source,
                count=self.oov,
            )
