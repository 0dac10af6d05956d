"""The oracle of k-best lists: the best that any choice from them could score, and the worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from rerank.corpus.kbest import KBest
from rerank.metrics.bleu import Bleu, Statistics, corpus_bleu
from rerank.metrics.texts import Texts


class Extremes(NamedTuple):
    """Statistics of the best and of the worst candidate of each sentence, (T, 9) each."""

    best: Statistics
    worst: Statistics


def list_extremes(
    lists: Iterable[KBest], references: Sequence[Sequence[bytes]], metric: Bleu
) -> Extremes:
    """Best and worst candidates by sacrebleu's sentence BLEU, of equals the first.

    lists: of all documents, one after the other; `references`: [sentence][reference]. A sentence
    without candidates is an empty line, as it is in the output of a system. Corpus BLEU is no sum
    of sentence BLEUs: the best sentences make a good corpus, not surely the best one. Memory: the
    largest document, and 144 bytes a sentence.
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
