"""TER (translation edit rate) as sacrebleu counts it, negative so that larger is better.

A row of statistics is `[edits, reference length]` (float64): edits, shifts included, to the nearest
reference, and the mean length of the references in words. Rows add up; the score of a sum is the
negative of sacrebleu's corpus score.

Snover et al. (2006), https://aclanthology.org/2006.amta-papers.25; Post (2018),
https://aclanthology.org/W18-6319.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from rerank.metrics import Rows, TextMetric
from rerank.metrics.ter_kernel import Words, edits


class Ter(TextMetric):
    """Corpus TER, in percent and negative: sacrebleu's `ter` with its defaults."""

    name = "TER"
    width = 2

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> NDArray[np.float64]:
        """Statistics (n, 2) of the hypotheses of T sentences, equal ones of a sentence once."""
        from sacrebleu.metrics.ter import TER

        tokenizer = TER().tokenizer
        rows: list[tuple[float, float]] = []
        for group, lines in zip(hypotheses, references, strict=True):
            words_of = partial(_numbered, tokenizer, defaultdict(count().__next__))
            sources = list(map(words_of, lines))
            if not sources:
                raise ValueError("a sentence without a reference")
            rows += map(cache(partial(_row, words_of, sources)), group)
        return np.array(rows, np.float64).reshape(-1, self.width)

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """−TER (…) of summed statistics (…, 2); −100 for edits where references have no words."""
        needed, lengths = summed[..., 0], summed[..., 1]
        rate = np.where(lengths > 0, needed / np.where(lengths > 0, lengths, 1), needed > 0)
        return np.asarray(0.0 - 100 * rate)  # not −rate, which is −0 where nothing is to be edited

    def shown(self, score: float) -> float:
        """TER as it is published: positive, smaller is better."""
        return 0.0 - score

    def signature(self, n_references: int) -> str:
        """Signature of the corpus score, verbatim from sacrebleu."""
        from sacrebleu.metrics.ter import TER

        metric = TER()
        metric.num_refs = n_references
        return str(metric.get_signature())


def _row(
    words_of: Callable[[bytes], Words], references: Sequence[Words], line: bytes
) -> tuple[float, float]:
    """Edits to the nearest reference, and the mean length of the references."""
    words = words_of(line)
    length = sum(map(len, references)) / len(references)
    return float(min(edits(words, reference) for reference in references)), length


def _numbered(tokenizer: Callable[[str], str], numbers: Mapping[str, int], line: bytes) -> Words:
    """Words (L,) of a line as sacrebleu finds them, as numbers; a new word has the next one."""
    return np.array([numbers[word] for word in tokenizer(line.decode().rstrip()).split()], np.int64)
