"""Figures of k-best lists that are read a document at a time, and what only all of them tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rerank.check.findings import Findings
from rerank.check.summary import BleuScores, Features, Unknown
from rerank.corpus.columns import Label
from rerank.corpus.kbest import KBest
from rerank.corpus.spelling import Spelling, note_spelling
from rerank.errors import InputError
from rerank.formats.translations import note_identity
from rerank.formats.weights import Weights, vector
from rerank.scorers.features import TOTAL
from rerank.scorers.unknown_words import UnknownWords

_TOLERANCE = 1e-3  # of a total, relative above 1: lists have six digits
_NAMED = 5  # unknown words of a model in the summary


@dataclass(frozen=True, slots=True)
class KnownWords:
    """The vocabulary of a language model called `name`; about: what its folder says of it."""

    name: str
    ids: Mapping[bytes, int]
    about: Mapping[str, object]
    counts: UnknownWords = field(default_factory=UnknownWords)


class ListSurvey:
    """Collects the figures of lists, and reports what it finds about them.

    references: [sentence][file] of all sentences, or nothing; tokenize: for BLEU.
    """

    def __init__(
        self,
        name: str,
        references: Sequence[Sequence[bytes]],
        models: Sequence[KnownWords],
        findings: Findings,
        *,
        tokenize: str = "none",
    ) -> None:
        self.name, self.features = name, Features()
        self._references, self._models, self._findings = references, models, findings
        self._tokenize = tokenize
        self._counts: list[NDArray[np.int64]] = []
        self._firsts: list[bytes] = []
        self._spelling = Spelling()
        self._rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, kbest: KBest) -> None:
        """Add a document's lists."""
        self._counts.append(kbest.counts)
        self.features.add(kbest)
        for model in self._models:
            for row in range(kbest.n):
                model.counts.add(kbest.tokens(row), model.ids)
        if not self._references:
            return
        for t in range(len(kbest)):
            rows = kbest.rows(t)
            self._firsts.append(kbest.text(rows[0]) if rows else b"")
        self._spelling.add(kbest.texts.to_list(), map(kbest.line_number, range(kbest.n)))
        self._rows.append(self._statistics(kbest))

    @property
    def k(self) -> NDArray[np.int64]:
        """Numbers of candidates of the sentences, (T,)."""
        return np.concatenate(self._counts) if self._counts else np.zeros(0, np.int64)

    def unknown(self) -> tuple[Unknown, ...]:
        """Unknown words of each model; warns where they are many."""
        found = []
        for model in self._models:
            counts = model.counts
            counts.warn(model.name, model.about, self._findings, source=self.name)
            most = [word.decode(errors="replace") for word, _ in counts.named.most_common(_NAMED)]
            found.append(Unknown(model.name, counts.words, counts.oov, tuple(most)))
        return tuple(found)

    def bleu(self) -> BleuScores | None:
        """BLEU of the first candidates and the oracle; None without references.

        Warns where texts and references differ in escaping or normal form, or not at all.
        """
        if not self._rows:
            return None
        from rerank.metrics.bleu import Bleu, corpus_bleu

        n = len(self._firsts)
        targets = self._references[:n]
        expected = Spelling()
        expected.add(line for sentence in targets for line in sentence)
        note_spelling(self._spelling, expected, self._findings, source=self.name, of_lists=True)
        note_identity(self._firsts, targets, self._findings, source=self.name)
        first, oracle = (
            float(corpus_bleu(np.concatenate(rows).sum(axis=0)))
            for rows in zip(*self._rows, strict=True)
        )
        return BleuScores(first, oracle, Bleu(self._tokenize).signature(len(targets[0])))

    def _statistics(self, kbest: KBest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """BLEU statistics (T, 9) of the first candidates and of the best ones."""
        from rerank.metrics.bleu import Bleu
        from rerank.metrics.oracle import list_extremes

        metric = Bleu(self._tokenize)
        targets = self._references[kbest.first : kbest.first + len(kbest)]
        best = list_extremes([kbest], targets, metric).best
        firsts = [[text] for text in self._firsts[len(self._firsts) - len(kbest) :]]
        return metric.statistics(firsts, targets), best


class WeightedTotals:
    """Checks weights against the features of lists, and the totals of lists against weights.

    added: labels of features that a run adds to those of the list.
    """

    def __init__(
        self, weights: Weights, source: str, added: Sequence[Label], findings: Findings
    ) -> None:
        self._weights, self._source, self._added = weights, source, added
        self._findings = findings
        self._vector: NDArray[np.float64] | None = None
        self._checked = False
        self._wrong, self._line, self._largest, self._name = 0, 0, 0.0, ""

    def add(self, kbest: KBest) -> None:
        """Check a document's lists."""
        if not kbest.n:
            return
        if not self._checked:
            self._checked = True
            self._check(kbest)
        if self._vector is None or kbest.totals is None:
            return
        sums = kbest.dense @ self._vector + kbest.sparse.dot(self._weights.sparse)
        differences = np.abs(sums - kbest.totals)
        rows = np.flatnonzero(differences > _TOLERANCE * np.maximum(1, np.abs(kbest.totals)))
        if len(rows):
            self._line = self._line or (kbest.line_number(int(rows[0])) or 0)
            self._wrong += len(rows)
            self._largest = max(self._largest, float(differences[rows].max()))
            self._name = kbest.source

    def report(self) -> None:
        """Warn of totals that are not the weighted sums of the features."""
        if self._wrong:
            self._findings.add(
                "total that is not the weighted sum of the features (largest difference "
                f"{self._largest:.6g}); are these the weights that the decoder had?",
                source=self._name,
                line=self._line or None,
                count=self._wrong,
            )

    def _check(self, kbest: KBest) -> None:
        """Refuse weights of other features; the vector, if the list itself has all features."""
        labels = [*kbest.labels, *self._added]
        if TOTAL in self._weights.dense and TOTAL not in {label.name for label in labels}:
            labels.append(Label(TOTAL, 1))
        try:
            found = vector(self._weights, labels, notices=self._findings, source=self._source)
        except InputError as fault:
            self._findings.refuse(fault)
            return
        width = kbest.dense.shape[1]
        if not found[width:].any():
            self._vector = found[:width]
