"""The oracle of k-best lists: the best that any choice from them could score, and the worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.metrics.bleu import Statistics, Tokenizer, corpus_bleu, statistics


@dataclass(frozen=True, slots=True, eq=False)
class Extremes:
    """Statistics of the best and of the worst candidate of each sentence, (T, 9) each."""

    best: Statistics
    worst: Statistics


def list_extremes(
    lists: Iterable[KBest], references: Sequence[Sequence[bytes]], tokenizer: Tokenizer
) -> Extremes:
    """Extremes of the k-best lists of all documents, which come one after the other.

    `references`: [sentence][reference]. A sentence without candidates is an empty line, as it is
    in the output of a system. Memory: the largest document, and 144 bytes a sentence.
    """
    targets: Iterator[list[list[str]]] = (list(map(tokenizer, lines)) for lines in references)
    best, worst = [], []
    for kbest in lists:
        spans = [kbest.rows(t) for t in range(len(kbest))]
        candidates = ([tokenizer(kbest.text(row)) for row in span] or [[]] for span in spans)
        rows = statistics(candidates, islice(targets, len(spans)))
        found = find_extremes(rows, np.cumsum([0, *(max(len(span), 1) for span in spans)]))
        best.append(found.best)
        worst.append(found.worst)
    return Extremes(np.concatenate(best), np.concatenate(worst))


def find_extremes(rows: Statistics, offsets: NDArray[np.int64]) -> Extremes:
    """Best and worst candidate of each sentence by sacrebleu's sentence BLEU; of equals the first.

    `rows`: (n, 9), of sentence t offsets[t]:offsets[t+1], at least one. Corpus BLEU is no sum of
    sentence BLEUs: the best sentences make a good corpus, not surely the best one.
    """
    bleu = corpus_bleu(rows, effective_order=True)
    best = [start + bleu[start:end].argmax() for start, end in pairwise(offsets)]
    worst = [start + bleu[start:end].argmin() for start, end in pairwise(offsets)]
    return Extremes(rows[best], rows[worst])
