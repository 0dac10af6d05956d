"""BLEU from sufficient statistics: counted once, summed at will, scored as sacrebleu scores.

A row of statistics is `[c1 c2 c3 c4 t1 t2 t3 t4 reflen]` (int64): clipped n-gram matches, n-grams
of the hypothesis (t1 is its length), and the length of the reference closest to it, the shorter
of two as close. Rows of a corpus add up; the score of a sum is sacrebleu's corpus score, bit for
bit.

Papineni et al. (2002), https://aclanthology.org/P02-1040; Post (2018), https://aclanthology.org/W18-6319.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.metrics.ngrams import add_matches, trie

ORDER = 4
WIDTH = 2 * ORDER + 1
_MATCHES, _TOTALS, _REFERENCE = slice(0, ORDER), slice(ORDER, 2 * ORDER), 2 * ORDER

Tokens: TypeAlias = Sequence[Hashable]
Statistics: TypeAlias = NDArray[np.int64]
"""Rows of statistics, shape (…, 9)."""


def sentence_statistics(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> Statistics:
    """Statistics of the hypotheses of one sentence, shape (K, 9)."""
    return statistics([hypotheses], [references])


def statistics(
    hypotheses: Iterable[Iterable[Tokens]], references: Iterable[Iterable[Tokens]]
) -> Statistics:
    """Statistics of the hypotheses of T sentences, shape (n, 9), lists one after another.

    `hypotheses` and `references` hold one group per sentence: its hypotheses (maybe none) and its
    references (at least one). A match of several references is clipped at the largest count of
    the n-gram in any one of them. Both are read once; only word numbers are kept. O(tokens) time.
    """
    vocabulary: defaultdict[Hashable, int] = defaultdict(count().__next__)
    ids, starts, rows = _flatten(hypotheses, vocabulary)
    reference_ids, reference_starts, reference_rows = _flatten(references, vocabulary)
    if len(rows) != len(reference_rows):
        raise ValueError(
            f"hypotheses of {len(rows) - 1} sentences, references of {len(reference_rows) - 1}"
        )
    if not np.diff(reference_rows).all():
        raise ValueError("a sentence without a reference")
    return _count(ids, starts, rows, reference_ids, reference_starts, reference_rows)


def corpus_bleu(summed: Statistics, *, effective_order: bool = False) -> NDArray[np.float64]:
    """BLEU in 0..100 of summed statistics (…, 9), shape (…): sacrebleu's, `smooth exp`.

    Equal to the last bit, because the same operations run in the same order. `effective_order`
    leaves out the orders longer than the hypothesis, as sacrebleu does for single sentences.
    """
    rows = np.ascontiguousarray(summed).astype(np.int64, casting="same_kind", copy=False)
    return _scores(rows.reshape(-1, WIDTH), effective_order).reshape(rows.shape[:-1])


def length_ratio(summed: Statistics) -> NDArray[np.float64]:
    """Hypothesis length ÷ reference length of summed statistics (…, 9), shape (…).

    0 where the references have no words, as in sacrebleu.
    """
    lengths, reference_lengths = summed[..., ORDER], summed[..., _REFERENCE]
    return np.where(reference_lengths == 0, 0.0, lengths / np.maximum(reference_lengths, 1))


class Tokenizer:
    """A tokenizer of sacrebleu, by its name there: `none`, `13a`, `intl`, `char`, `zh` and others.

    Words are what sacrebleu counts: its tokenizer on the line without trailing white space, then
    split on Unicode white space. sacrebleu remembers the last 65,536 distinct lines itself.
    """

    def __init__(self, name: str = "none") -> None:
        from sacrebleu.metrics.bleu import BLEU

        if name not in BLEU.TOKENIZERS:
            raise UsageError(f"no tokenizer {name!r}; sacrebleu has {', '.join(BLEU.TOKENIZERS)}")
        _refuse_to_download(name)
        try:
            self._metric = BLEU(tokenize=name)
        except (ImportError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"tokenizer {name!r} cannot be loaded: {reason}") from error
        self.name = name

    def __call__(self, line: bytes) -> list[str]:
        """Words of a line of UTF-8 text."""
        text: str = self._metric.tokenizer(line.decode().rstrip())
        return text.split()

    def signature(self, n_references: int) -> str:
        """Signature of the corpus score, verbatim from sacrebleu."""
        self._metric.num_refs = n_references
        return str(self._metric.get_signature())


def _refuse_to_download(name: str) -> None:
    """UsageError where sacrebleu would fetch a sub-word model from the network."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if name in SPM_MODELS:
        url = SPM_MODELS[name]["url"]
        model = Path(SACREBLEU_DIR, "models", Path(url).name)
        if not model.exists():
            raise UsageError(f"tokenizer {name!r} needs {model}; download it there from {url}")


_Columns: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _flatten(
    groups: Iterable[Iterable[Tokens]], vocabulary: defaultdict[Hashable, int]
) -> _Columns:
    """Token ids (L,), where each sequence starts in them (n+1,), and each group in those (T+1,)."""
    ids, starts, rows = array("q"), array("q", [0]), array("q", [0])
    for group in groups:
        for tokens in group:
            ids.extend(map(vocabulary.__getitem__, tokens))
            starts.append(len(ids))
        rows.append(len(starts) - 1)
    return np.array(ids), np.array(starts), np.array(rows)


@njit(cache=True)
def _closest(length: int, starts: NDArray[np.int64]) -> int:
    """Length of the reference closest to `length`, the shorter of two as close."""
    best: int = starts[1] - starts[0]
    for r in range(1, len(starts) - 1):
        this = starts[r + 1] - starts[r]
        nearer = abs(this - length) - abs(best - length)
        if nearer < 0 or (nearer == 0 and this < best):
            best = this
    return best


@njit(cache=True)
def _count(
    ids: NDArray[np.int64],
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    reference_ids: NDArray[np.int64],
    reference_starts: NDArray[np.int64],
    reference_rows: NDArray[np.int64],
) -> Statistics:
    """Statistics (n, 9) of flattened hypotheses against flattened references."""
    counts = np.zeros((len(starts) - 1, WIDTH), dtype=np.int64)
    for t in range(len(rows) - 1):
        references = reference_starts[reference_rows[t] : reference_rows[t + 1] + 1]
        table = trie(reference_ids, references, ORDER)
        for row in range(rows[t], rows[t + 1]):
            user = len(references) + row  # no reference's number, nor another hypothesis'
            count_row(table, ids[starts[row] : starts[row + 1]], user, references, counts[row])
    return counts


@njit(cache=True)
def count_row(
    table: NDArray[np.int64],
    ids: NDArray[np.int64],
    user: int,
    references: NDArray[np.int64],
    row: Statistics,
) -> None:
    """Fill a row of zeros (9,) with the statistics of a hypothesis; compiled, for such callers.

    table: the references' `trie`; references: (R+1,) where they start; user: see `add_matches`.
    """
    add_matches(table, ids, user, row[_MATCHES])
    for n in range(ORDER):
        row[ORDER + n] = max(len(ids) - n, 0)
    row[_REFERENCE] = _closest(len(ids), references)


_COMPENSATED = sys.version_info >= (3, 12)  # Python's sum() of floats is Neumaier's from there on


@njit(cache=True)
def _scores(rows: Statistics, effective_order: bool) -> NDArray[np.float64]:
    """BLEU of each row (m, 9)."""
    scores = np.empty(len(rows))
    for m in range(len(rows)):
        scores[m] = score(rows[m], effective_order)
    return scores


@njit(cache=True)
def score(row: Statistics, effective_order: bool) -> float:
    """BLEU of one row (9,), compiled, for compiled callers: sacrebleu's `BLEU.compute_bleu`."""
    matches, totals = row[_MATCHES], row[_TOTALS]
    if not matches.any():
        return 0.0
    total, lost, smooth, order = 0.0, 0.0, 1.0, ORDER
    for n in range(ORDER):
        if totals[n] == 0:
            if not effective_order:
                return 0.0  # a precision of 0, which is not smoothed
            order = n
            break
        if matches[n] == 0:
            smooth *= 2.0
            precision = 100.0 / (smooth * totals[n])
        else:
            precision = 100.0 * matches[n] / totals[n]
        log_precision = math.log(precision)
        before, total = total, total + log_precision
        if _COMPENSATED:
            large, small = before, log_precision
            if abs(large) < abs(small):
                large, small = small, large
            lost += (large - total) + small
    brevity = min(1.0, math.exp(1.0 - row[_REFERENCE] / totals[0]))
    return brevity * math.exp((total + lost) / order)
