"""Statistics of texts under our metrics, and texts to count."""

import random
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from rerank.metrics import Rows, TextMetric
from rerank.metrics.bleu import ORDER, WIDTH, Bleu, Statistics


def corpora(lines: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[list[str], list[list[str]]]]:
    """Hypotheses (T,) and references, one list (T,) per reference file, as sacrebleu takes them."""

    def of_length(n: int) -> st.SearchStrategy[tuple[list[str], list[list[str]]]]:
        texts = st.lists(lines, min_size=n, max_size=n)
        return st.tuples(texts, st.lists(texts, min_size=1, max_size=3))

    return st.integers(1, 5).flatmap(of_length)


def drafts(n: int, n_texts: int, *, seed: int = 1) -> list[list[str]]:
    """Parallel texts that resemble each other: edits of n common lines, some of them empty."""
    rng = random.Random(seed)
    words = ["a", "b", "c", "d", "e", "f"]
    lines = [rng.choices(words, k=rng.randint(0, 12)) for _ in range(n)]
    return [
        [" ".join(w if rng.random() < 0.8 else rng.choice(words) for w in line) for line in lines]
        for _ in range(n_texts)
    ]


def statistics_of_lines(
    metric: TextMetric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Rows:
    """Statistics of a hypothesis for each sentence; `references` are those of sacrebleu."""
    return metric.statistics(
        [[line.encode()] for line in hypotheses],
        [[line.encode() for line in lines] for lines in zip(*references, strict=True)],
    )


def bleu_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> Statistics:
    """BLEU's statistics (K, 9) of the hypotheses of one sentence."""
    return Bleu().statistics([[h.encode() for h in hypotheses]], [[r.encode() for r in references]])


def random_statistics(rng: np.random.Generator, n: int) -> Statistics:
    """BLEU's statistics (n, 9) of n candidates, some of them without a word or a match."""
    rows = np.zeros((n, WIDTH), dtype=np.int64)
    for row in rows:
        totals = np.maximum(rng.integers(0, 15) - np.arange(ORDER), 0)
        row[:] = [*np.minimum.accumulate(rng.integers(0, totals + 1)), *totals, rng.integers(0, 15)]
    return rows
