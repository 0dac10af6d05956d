"""Corpus BLEU as a metric of the table; n-grams are counted in `rerank.metrics.bleu`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.metrics import Counted, Rows, TextMetric, counted_in_place
from rerank.metrics.bleu import WIDTH, Statistics, Tokenizer, corpus_bleu, statistics
from rerank.metrics.texts import Texts, word_statistics

_IN_PLACE = "none"  # the tokenizer whose words are found without making them


@dataclass(frozen=True, slots=True)
class Bleu(TextMetric):
    """Corpus BLEU, 0..100, of the words of a tokenizer; statistics as in `rerank.metrics.bleu`."""

    name: ClassVar[str] = "BLEU"
    width: ClassVar[int] = WIDTH
    tokenizer: Tokenizer = field(default_factory=Tokenizer)

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> Statistics:
        """Statistics (n, 9) of the hypotheses of T sentences. O(bytes)."""
        if self.tokenizer.name == _IN_PLACE:
            return word_statistics(Texts.of(hypotheses), Texts.of(references))
        return statistics(
            (map(self.tokenizer, group) for group in hypotheses),
            (map(self.tokenizer, group) for group in references),
        )

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates; `references` has those of each sentence (T)."""
        if self.tokenizer.name == _IN_PLACE:
            return counted_in_place(kbest, references, word_statistics)
        return TextMetric.of_lists(self, kbest, references)

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """BLEU (…) of summed statistics (…, 9): sacrebleu's, `smooth exp`.

        They are counts, though beside those of other metrics they may be float64.
        """
        return corpus_bleu(summed.astype(np.int64))

    def signature(self, n_references: int) -> str:
        """Signature of the corpus score, verbatim from sacrebleu."""
        return self.tokenizer.signature(n_references)
