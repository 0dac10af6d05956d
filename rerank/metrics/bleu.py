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
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.corpus.spelling import PREFIX, moses_tokenizer
from rerank.errors import UsageError
from rerank.files.compilation import njit
from rerank.formats.token_kernel import FREE, word_slot
from rerank.metrics import DocumentMetric, Rows, TextMetric
from rerank.metrics.ngrams import (
    Columns,
    Texts,
    add_matches,
    columns_of,
    next_word,
    numbered_words,
    trie,
)

ORDER = 4
WIDTH = 2 * ORDER + 1
_MATCHES, _TOTALS, _REFERENCE = slice(0, ORDER), slice(ORDER, 2 * ORDER), 2 * ORDER

Statistics: TypeAlias = NDArray[np.int64]
"""Rows of statistics, shape (…, 9)."""


class Bleu(TextMetric):
    """Corpus BLEU, 0..100, of the words of a tokenizer of sacrebleu: `none`, `13a`, `intl`, ….

    Words are what sacrebleu counts: its tokenizer on the line without trailing white space, then
    split on Unicode white space. `moses-en` is the Moses tokenizer for a language.
    """

    name = "BLEU"
    width = WIDTH
    lowercase = False

    def __init__(self, tokenize: str = "none") -> None:
        self.tokenize = tokenize
        self._metric, self._tokeniser = _load_tokenizer(tokenize, lowercase=self.lowercase)

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> Statistics:
        """Statistics (n, 9) of the hypotheses of T sentences. O(bytes) time.

        A match is clipped at the largest count of the n-gram in any reference.
        """
        if self.tokenize != "none" or self.lowercase:  # else white space alone divides words
            hypotheses, references = self._words(hypotheses), self._words(references)
        return _statistics(*columns_of(hypotheses, references))

    def _words(self, groups: Iterable[Iterable[bytes]]) -> Iterable[Iterable[bytes]]:
        """The lines with white space between the words of the tokenizer."""
        return ((self._tokenised(line).encode() for line in group) for group in groups)

    def _tokenised(self, line: bytes) -> str:
        """A line with white space between words."""
        text = line.decode()
        return self._tokeniser((text.lower() if self.lowercase else text).rstrip())

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """BLEU (…) of summed statistics (…, 9): sacrebleu's, `smooth exp`."""
        return corpus_bleu(summed)

    def signature(self, n_references: int) -> str:
        """Signature of the corpus score, from sacrebleu; a tokenizer of Moses has its version."""
        self._metric.num_refs = n_references
        text = str(self._metric.get_signature())
        if not self.tokenize.startswith(PREFIX):
            return text
        return text.replace("tok:none", f"tok:{self.tokenize}-sacremoses{version('sacremoses')}")


class LowercaseBleu(Bleu):
    """BLEU of texts in lower case, as of sacrebleu's `-lc`."""

    lowercase = True


class DocumentBleu(Bleu, DocumentMetric):
    """BLEU whose sentences are whole documents: d-BLEU of Liu et al. (2020).

    N-grams reach over the ends of sentences. https://aclanthology.org/2020.tacl-1.47
    """


def _load_tokenizer(name: str, *, lowercase: bool) -> tuple[Any, Callable[[str], str]]:
    """The metric of sacrebleu, and the tokenizer; UsageError if there is none or it cannot load."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if name.startswith(PREFIX):
        return BLEU(tokenize="none", lowercase=lowercase), moses_tokenizer(name)
    if name not in BLEU.TOKENIZERS:
        known = ", ".join(BLEU.TOKENIZERS)
        raise UsageError(
            f"no tokenizer {name!r}; sacrebleu has {known}, and {PREFIX}en is that of Moses"
        )
    if name in SPM_MODELS:  # which sacrebleu would fetch from the network
        url = SPM_MODELS[name]["url"]
        model = Path(SACREBLEU_DIR, "models", Path(url).name)
        if not model.exists():
            raise UsageError(f"tokenizer {name!r} needs {model}; download it there from {url}")
    try:
        metric = BLEU(tokenize=name, lowercase=lowercase)
    except (ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"tokenizer {name!r} cannot be loaded: {reason}") from error
    return metric, metric.tokenizer


def corpus_bleu(summed: Rows, *, effective_order: bool = False) -> NDArray[np.float64]:
    """BLEU in 0..100 of summed statistics (…, 9), shape (…): sacrebleu's, `smooth exp`.

    Equal to the last bit, because the same operations run in the same order. `effective_order`
    leaves out the orders longer than the hypothesis, as sacrebleu does for single sentences.
    """
    rows = np.ascontiguousarray(summed).astype(np.int64, copy=False)
    return _scores(rows.reshape(-1, WIDTH), effective_order).reshape(rows.shape[:-1])


def length_ratio(summed: Statistics) -> NDArray[np.float64]:
    """Hypothesis length ÷ reference length of summed statistics (…, 9), shape (…).

    0 where the references have no words, as in sacrebleu.
    """
    lengths, reference_lengths = summed[..., ORDER], summed[..., _REFERENCE]
    return np.where(reference_lengths == 0, 0.0, lengths / np.maximum(reference_lengths, 1))


def without_brevity_penalty(summed: Statistics) -> Statistics:
    """Statistics (…, 9) whose BLEU has no brevity penalty: references as long as hypotheses."""
    free = summed.copy()
    free[..., _REFERENCE] = free[..., ORDER]
    return free


class Extremes(NamedTuple):
    """Statistics of the best and of the worst candidate of each sentence, (T, 9) each."""

    best: Statistics
    worst: Statistics


def list_extremes(
    lists: Iterable[KBest], references: Sequence[Sequence[bytes]], metric: Bleu
) -> Extremes:
    """Best and worst candidates by sacrebleu's sentence BLEU, of equals the first.

    `references`: [sentence][reference]. A sentence without candidates is an empty line. The best
    sentences make a good corpus, not surely the best. Memory: the largest document, and 144 bytes a
    sentence.
    """
    targets = iter(references)
    best, worst = [], []
    for kbest in lists:
        texts = Texts.of_lists(kbest)
        rows = metric.statistics(texts, islice(targets, len(kbest)))
        bleu = corpus_bleu(rows, effective_order=True)
        spans = list(pairwise(texts.rows.tolist()))
        best.append(rows[[start + bleu[start:end].argmax() for start, end in spans]])
        worst.append(rows[[start + bleu[start:end].argmin() for start, end in spans]])
    return Extremes(np.concatenate(best), np.concatenate(worst))


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
def _statistics(texts: Columns, sources: Columns, longest: int) -> Statistics:
    """Statistics (n, 9) of hypotheses against references, no line of more than `longest` bytes."""
    blob, spans, rows = texts
    words, reference_spans, reference_rows = sources
    counts = np.zeros((len(spans), WIDTH), np.int64)
    ids = np.empty(longest // 2 + 1, np.int64)
    for t in range(len(rows) - 1):
        lines = reference_spans[reference_rows[t] : reference_rows[t + 1]]
        reference_ids, starts, table = numbered_words(words, lines)
        ngrams = trie(reference_ids, starts, ORDER)
        for k in range(rows[t], rows[t + 1]):
            length = 0
            begin, end = next_word(blob, spans[k, 0], spans[k, 1])
            while begin < end:
                slot = word_slot(table, words, blob[begin:end])
                ids[length] = slot + 1 if table[slot, 0] != FREE else 0
                length += 1
                begin, end = next_word(blob, end, spans[k, 1])
            # marks n-grams of this hypothesis: no reference has the number, nor another hypothesis
            user = len(starts) + k
            add_matches(ngrams, ids[:length], user, counts[k, _MATCHES])
            for n in range(ORDER):
                counts[k, ORDER + n] = max(length - n, 0)
            counts[k, _REFERENCE] = _closest(length, starts)
    return counts


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
