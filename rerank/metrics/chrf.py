"""chrF2 from sufficient statistics, scored as sacrebleu does.

A row of statistics is `[h1 r1 m1 … h6 r6 m6]` (int64): of each order the n-grams of the hypothesis
(0 where the reference has none), those of the reference, and the clipped matches. N-grams are of
1 to 6 characters, without white space. Of several references the one with the best sentence score
counts, the first of equals. Rows add up; the score of a sum is sacrebleu's corpus score, bit for
bit, while sums are below 2⁵³.

Popović (2015), https://aclanthology.org/W15-3049; Post (2018), https://aclanthology.org/W18-6319.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.formats.token_kernel import Bytes
from rerank.metrics import Rows, TextMetric
from rerank.metrics.bleu import Statistics
from rerank.metrics.ngrams import Columns, add_matches, blank, columns_of, trie

ORDER = 6
WIDTH = 3 * ORDER
BETA = 2  # weight of recall


class Chrf(TextMetric):
    """Corpus chrF2, 0..100: sacrebleu's `chrf` with its defaults."""

    name = "chrF2"
    width = WIDTH

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> Statistics:
        """Statistics (n, 18) of the hypotheses of T sentences. O(bytes · references)."""
        return _statistics(*columns_of(hypotheses, references))

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """chrF2 (…) of summed statistics (…, 18), whole numbers of any type."""
        rows = np.ascontiguousarray(summed).astype(np.int64, copy=False)
        return _scores(rows.reshape(-1, WIDTH)).reshape(rows.shape[:-1])

    def signature(self, n_references: int) -> str:
        """Signature of the corpus score, verbatim from sacrebleu."""
        from sacrebleu.metrics.chrf import CHRF

        metric = CHRF(char_order=ORDER, beta=BETA)
        metric.num_refs = n_references
        return str(metric.get_signature())


Counts: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


@njit(cache=True)
def _characters(blob: Bytes, span: NDArray[np.int64], ids: NDArray[np.int64]) -> int:
    """Put the numbers of a line's characters, their bytes in UTF-8, into `ids`; how many."""
    n, i, stop = 0, span[0], span[1]
    while i < stop:
        first = blob[i]
        size = blank(blob, i)
        if size > 0:
            i += size
            continue
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        number = np.int64(0)
        for j in range(i, i + size):
            number = number << 8 | np.int64(blob[j])
        ids[n] = number
        n += 1
        i += size
    return n


@njit(cache=True)
def numbered_characters(
    blob: Bytes, spans: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Character numbers (L,) of the lines (R, 2), and where each line begins in them (R+1,)."""
    ids = np.empty(np.sum(spans[:, 1] - spans[:, 0]), np.int64)
    starts = np.zeros(len(spans) + 1, np.int64)
    for r in range(len(spans)):
        starts[r + 1] = starts[r] + _characters(blob, spans[r], ids[starts[r] :])
    return ids[: starts[-1]], starts


@njit(cache=True)
def _statistics(texts: Columns, sources: Columns, longest: int) -> Statistics:
    """Statistics (n, 18) of hypotheses against references, no line of more than `longest` bytes."""
    blob, spans, rows = texts
    reference_blob, reference_spans, reference_rows = sources
    counts = np.zeros((len(spans), WIDTH), np.int64)
    best = np.full(len(spans), -1.0)
    ids = np.empty(longest, np.int64)
    row, matches = np.zeros(WIDTH, np.int64), np.zeros(ORDER, np.int64)
    for t in range(len(rows) - 1):
        for r in range(reference_rows[t], reference_rows[t + 1]):
            length = _characters(reference_blob, reference_spans[r], ids)
            table = trie(ids, np.array([0, length]), ORDER)
            for k in range(rows[t], rows[t + 1]):
                n = _characters(blob, spans[k], ids)
                matches[:] = 0
                add_matches(table, ids[:n], k + 1, matches)
                for j in range(ORDER):
                    row[3 * j] = max(n - j, 0) if length > j else 0
                    row[3 * j + 1] = max(length - j, 0)
                    row[3 * j + 2] = matches[j]
                sentence_score = f_score(row[0::3], row[1::3], row[2::3])
                if sentence_score > best[k]:
                    best[k] = sentence_score
                    counts[k] = row
    return counts


@njit(cache=True)
def _scores(rows: Statistics) -> NDArray[np.float64]:
    scores = np.empty(len(rows))
    for m in range(len(rows)):
        scores[m] = f_score(rows[m, 0::3], rows[m, 1::3], rows[m, 2::3])
    return scores


@njit(cache=True)
def f_score(hypothesis: Counts, reference: Counts, matches: Counts, beta: float = BETA) -> float:
    """F-score of n-grams counted by order (N,), compiled: sacrebleu's `CHRF._compute_f_score`."""
    precision, recall, orders = 0.0, 0.0, 0
    for j in range(len(matches)):
        if hypothesis[j] > 0 and reference[j] > 0:
            precision += matches[j] / hypothesis[j]
            recall += matches[j] / reference[j]
            orders += 1
    if precision + recall == 0:
        return 0.0
    precision, recall = precision / orders, recall / orders
    product = (1 + beta**2) * precision * recall
    return 100 * (product / (beta**2 * precision + recall))
