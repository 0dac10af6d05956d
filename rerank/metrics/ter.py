"""TER (translation edit rate) as sacrebleu counts it, negative so that larger is better.

A row of statistics is `[edits, reference length]` (float64): edits, shifts included, to the nearest
reference, and the mean length of the references in words. Rows add up; the score of a sum is the
negative of sacrebleu's corpus score.

TER with free shifts is NP-hard; every tool searches greedily, and the number depends on how. Here
it is done as in sacrebleu 2 (after Tercom): in each round all shifts of up to 10 words, to a place
at most 50 words away where the reference has them, are tried, until 1000 have been; that which
saves most edits is made (of equals the longest, then the first, then that to the first place). Edit
distances are those within a band around the diagonal.

Snover et al. (2006), section 2.2, https://aclanthology.org/2006.amta-papers.25; Post (2018),
https://aclanthology.org/W18-6319; https://github.com/mjpost/sacrebleu, `lib_ter.py`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.metrics import Rows, TextMetric

Words: TypeAlias = NDArray[np.int64]

_LONGEST, _FARTHEST, _TRIES = 10, 50, 1000  # words of a shift, places to go, shifts tried
_BAND = 25  # words to either side of the diagonal
_INFINITE = 1 << 50


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


@njit(cache=True)
def edits(hypothesis: Words, reference: Words) -> int:
    """Fewest edits found from a hypothesis (n,) to a reference (m,), words as numbers.

    O(n m) for the alignment of a round, and O(n) for each shift tried, times the band.
    """
    n, m = len(hypothesis), len(reference)
    if m == 0:
        return n
    words = hypothesis.copy()
    costs = np.empty((n + 1, m + 1), np.int64)  # edit distances of all prefixes
    costs[0] = np.arange(m + 1)
    shifts = tried = 0
    while True:
        for i in range(1, n + 1):
            _fill_row(words[i - 1], reference, costs[i - 1], costs[i], _band(i, n, m))
        saved, shifted, tried = _best_shift(words, reference, costs, tried)
        if tried >= _TRIES or saved <= 0:
            return shifts + int(costs[n, m])
        words = shifted
        shifts += 1


@njit(cache=True)
def _band(i: int, n: int, m: int) -> tuple[int, int]:
    """The columns, from and to before, of row i of the edit distances."""
    ratio = m / n
    width = _BAND
    if ratio / 2 > _BAND:
        width = math.ceil(ratio / 2 + _BAND)
    diagonal = math.floor(i * ratio)
    end = m + 1 if i == n else min(m + 1, diagonal + width)
    return max(0, diagonal - width), end


@njit(cache=True)
def _fill_row(
    word: int,
    reference: Words,
    above: NDArray[np.int64],
    row: NDArray[np.int64],
    band: tuple[int, int],
) -> None:
    """Fill the edit distances (m+1,) of a prefix that ends in `word`, from those without it."""
    row[:] = _INFINITE
    for j in range(band[0], band[1]):
        cost = above[j] + 1
        if j > 0:
            same = word == reference[j - 1]
            cost = min(cost, above[j - 1] + (0 if same else 1), row[j - 1] + 1)
        row[j] = min(cost, _INFINITE)


@njit(cache=True)
def _distance(
    words: Words, reference: Words, first: int, above: NDArray[np.int64], row: NDArray[np.int64]
) -> int:
    """Edit distance of words whose first ones have the row `above` (m+1,); both are written to."""
    n, m = len(words), len(reference)
    for i in range(first + 1, n + 1):
        _fill_row(words[i - 1], reference, above, row, _band(i, n, m))
        above, row = row, above
    return int(above[m])


@njit(cache=True)
def _alignment(
    words: Words, reference: Words, costs: NDArray[np.int64]
) -> tuple[Words, NDArray[np.int64], NDArray[np.int64]]:
    """The word of the hypothesis at or before each of the reference (m,), −1 for none; and errors.

    Those are the numbers of wrong words in prefixes of the hypothesis (n+1,), of the reference
    (m+1,). Of equal costs a pair comes first, then a word that only the hypothesis has.
    """
    i, j = len(words), len(reference)
    places = np.zeros(j, np.int64)
    wrong, missed = np.zeros(i + 1, np.int64), np.zeros(j + 1, np.int64)
    while i > 0 or j > 0:
        here = costs[i, j]
        error = 0 if i > 0 and j > 0 and words[i - 1] == reference[j - 1] else 1
        paired = i > 0 and j > 0 and here == costs[i - 1, j - 1] + error
        extra = not paired and i > 0 and here == costs[i - 1, j] + 1
        error = error if paired else 1
        if not extra:
            places[j - 1], missed[j] = i - 1, error
        if paired or extra:
            wrong[i] = error
            i -= 1
        if not extra:
            j -= 1
    return places, np.cumsum(wrong), np.cumsum(missed)


@njit(cache=True)
def _shifted(words: Words, start: int, length: int, target: int, out: Words) -> None:
    """Put words into `out` with words[start:start + length] moved before the one at `target`."""
    n = len(words)
    if target > start + length:
        target -= length  # where the moved words begin, once they are taken out
    elif target > start:  # inside the moved words: as far to the right as it is inside
        target = min(target, n - length)
    k = 0
    for i in range(n - length + 1):
        if i == target:
            out[k : k + length] = words[start : start + length]
            k += length
        if i < n - length:
            out[k] = words[i if i < start else i + length]
            k += 1


@njit(cache=True)
def _best_shift(
    words: Words, reference: Words, costs: NDArray[np.int64], tried: int
) -> tuple[int, Words, int]:
    """What the best shift saves, the words after it, and how many shifts have been tried."""
    n, m = len(words), len(reference)
    places, wrong, missed = _alignment(words, reference, costs)
    above, row, other = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64), np.empty_like(words)
    best, shifted = (-_INFINITE, 0, 0, 0), words
    for start in range(n):
        for source in range(max(0, start - _FARTHEST), min(m, start + _FARTHEST + 1)):
            length = 0
            while (
                length < min(_LONGEST, n - start, m - source)
                and words[start + length] == reference[source + length]
            ):
                length += 1
                if wrong[start + length] == wrong[start]:
                    continue
                if missed[source + length] == missed[source]:
                    continue
                if start <= places[source] < start + length:
                    continue
                before = -1
                for j in range(source - 1, source + length):
                    target = places[j] + 1 if j >= 0 else 0
                    if target == before:
                        continue
                    before = target
                    _shifted(words, start, length, target, other)
                    first = min(start, target)
                    above[:] = costs[first]
                    saved = costs[n, m] - _distance(other, reference, first, above, row)
                    tried += 1
                    if (saved, length, -start, -target) > best:
                        best, shifted = (saved, length, -start, -target), other.copy()
                if tried >= _TRIES:
                    return best[0], shifted, tried
    return best[0], shifted, tried
