"""Figures of k-best lists that are read a document at a time, and what only all of them tell.

F feature values, T sentences, K candidates of a sentence, n candidates of a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import Label, column_names, offsets_of
from rerank.corpus.kbest import KBest
from rerank.corpus.spelling import Spelling, note_spelling
from rerank.errors import InputError
from rerank.formats.translations import note_identity
from rerank.formats.weights import Weights, vector
from rerank.notices import Notices
from rerank.scorers import TOTAL
from rerank.scorers.features import UnknownWords
from rerank.table import Column, Table

_TOLERANCE = 1e-3  # of a total, relative above 1: lists have six digits
_NAMED = 5  # unknown words of a model in the summary


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """A feature: its smallest and largest value, and whether it can order candidates at all."""

    name: str
    min: float
    max: float
    constant: bool
    constant_in_lists: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """Words of a list, of all its candidates, that a language model does not know."""

    model: str
    words: int
    oov: int
    most_frequent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BleuScores:
    """BLEU of the first candidates and of the oracle, 0 to 100, and the metric's signature."""

    first: float
    oracle: float
    signature: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What k-best lists hold.

    form: format of the list; documents: None where nothing tells them; lengths: of documents, in
    sentences; k: of each sentence (T,), 0 where there are no candidates.
    """

    name: str
    form: str
    documents: int | None
    lengths: tuple[int, ...]
    k: NDArray[np.int64]
    features: tuple[FeatureRange, ...]
    sparse: int
    duplicates: int
    empty: int
    unknown: tuple[Unknown, ...] = ()
    bleu: BleuScores | None = None

    @property
    def sizes(self) -> tuple[int, float, int]:
        """Minimum, median and maximum of K over the sentences with candidates; zeros if none."""
        some = self.k[self.k > 0]
        if not len(some):
            return 0, 0.0, 0
        return int(some.min()), float(np.median(some)), int(some.max())

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON values, numbers unrounded."""
        least, median, most = self.sizes
        return {
            "file": self.name,
            "format": self.form,
            "sentences": len(self.k),
            "without_candidates": int((self.k == 0).sum()),
            "documents": self.documents,
            "candidates": int(self.k.sum()),
            "k": {"min": least, "median": median, "max": most},
            "features": [asdict(feature) for feature in self.features],
            "sparse_features": self.sparse,
            "duplicates": self.duplicates,
            "empty": self.empty,
            "oov": [asdict(one) for one in self.unknown],
            "bleu": None if self.bleu is None else asdict(self.bleu),
        }

    def to_text(self) -> str:
        """The summary as a few lines and a table of the features."""
        least, median, most = self.sizes
        gaps = int((self.k == 0).sum())
        rows = [
            ("list", f"{self.name} ({self.form})"),
            ("sentences", f"{len(self.k):,}" + (f", {gaps:,} without hypotheses" if gaps else "")),
            ("documents", self._documents()),
            ("hypotheses", f"{self.k.sum():,}; k min {least}, median {median:g}, max {most}"),
            ("duplicates", f"{self.duplicates:,}, empty hypotheses {self.empty:,}"),
        ]
        if self.bleu is not None:
            first, oracle = self.bleu.first, self.bleu.oracle
            rows.append(("BLEU", f"first {first:.2f}, oracle {oracle:.2f} ({self.bleu.signature})"))
        for one in self.unknown:
            words = f" ({', '.join(one.most_frequent)})" if one.most_frequent else ""
            share = one.oov / max(1, one.words)
            rows.append((f"OOV {one.model}", f"{share:.2%} of {one.words:,} words{words}"))
        lines = Table((Column(""), Column("")), rows).to_text()
        if not self.features:
            return f"{lines}\nfeatures    none\n"
        columns = Column("feature"), Column("min", "g"), Column("max", "g"), Column("constant")
        kinds = {(True, True): "yes", (False, True): "in each list", (False, False): "no"}
        constant = [kinds[one.constant, one.constant_in_lists] for one in self.features]
        ranges = [
            (one.name, one.min, one.max, kind)
            for one, kind in zip(self.features, constant, strict=True)
        ]
        sparse = f"{self.sparse:,} sparse features\n" if self.sparse else ""
        return f"{lines}\n\n{Table(columns, ranges).to_text()}\n{sparse}"

    def _documents(self) -> str:
        if self.documents is None:
            return "unknown; decode and tune-mert need --docs FILE or --no-docs each|one"
        shortest, longest = min(self.lengths, default=0), max(self.lengths, default=0)
        lengths = f"{shortest:,}" + (f" to {longest:,}" if longest > shortest else "")
        return f"{self.documents:,} of {lengths} sentences"


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
        findings: Notices,
        *,
        tokenize: str = "none",
    ) -> None:
        self.name, self.sparse = name, set[str]()
        self._references, self._models, self._findings = references, models, findings
        self._tokenize = tokenize
        self._counts: list[NDArray[np.int64]] = []
        self._labels: tuple[Label, ...] = ()
        self._ranges: list[tuple[NDArray[np.float64], ...]] = []  # (F,) of each document
        self._varies: list[NDArray[np.bool_]] = []
        self._firsts: list[bytes] = []
        self._spelling = Spelling()
        self._statistics: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, kbest: KBest) -> None:
        """Add a document's lists."""
        self._counts.append(kbest.counts)
        if kbest.n:
            starts = offsets_of(kbest.counts[kbest.counts > 0])[:-1]
            least = np.minimum.reduceat(kbest.dense, starts, axis=0)
            most = np.maximum.reduceat(kbest.dense, starts, axis=0)
            self._labels = self._labels or kbest.labels
            self._ranges.append((least.min(axis=0), most.max(axis=0)))
            self._varies.append(np.any(least < most, axis=0))
            self.sparse.update(kbest.sparse.names)
        for model in self._models:
            for row in range(kbest.n):
                model.counts.add(kbest.tokens(row), model.ids)
        if not self._references:
            return
        rows = map(kbest.rows, range(len(kbest)))
        firsts = [kbest.text(own[0]) if own else b"" for own in rows]
        self._firsts += firsts
        self._spelling.add(kbest.texts.to_list(), map(kbest.line_number, range(kbest.n)))
        from rerank.metrics.bleu import Bleu, list_extremes

        metric = Bleu(self._tokenize)
        targets = self._references[kbest.first : kbest.first + len(kbest)]
        best = list_extremes([kbest], targets, metric).best
        self._statistics.append((metric.statistics([[one] for one in firsts], targets), best))

    @property
    def k(self) -> NDArray[np.int64]:
        """Numbers of candidates of the sentences, (T,)."""
        return np.concatenate(self._counts) if self._counts else np.zeros(0, np.int64)

    def features(self) -> tuple[FeatureRange, ...]:
        """The range of each value of each feature, in the order of the list."""
        if not self._ranges:
            return ()
        least, most = zip(*self._ranges, strict=True)
        low, high = reduce(np.minimum, least).tolist(), reduce(np.maximum, most).tolist()
        varies = np.any(self._varies, axis=0).tolist()
        return tuple(
            FeatureRange(name, a, b, not vary and a == b, not vary)
            for name, a, b, vary in zip(column_names(self._labels), low, high, varies, strict=True)
        )

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
        if not self._statistics:
            return None
        from rerank.metrics.bleu import Bleu, corpus_bleu

        targets = self._references[: len(self._firsts)]
        expected = Spelling()
        expected.add(line for sentence in targets for line in sentence)
        note_spelling(self._spelling, expected, self._findings, source=self.name, of_lists=True)
        note_identity(self._firsts, targets, self._findings, source=self.name)
        first, oracle = (
            float(corpus_bleu(np.concatenate(rows).sum(axis=0)))
            for rows in zip(*self._statistics, strict=True)
        )
        return BleuScores(first, oracle, Bleu(self._tokenize).signature(len(targets[0])))


class WeightedTotals:
    """Checks weights against the features of lists, and the totals of lists against weights.

    added: labels of features that a run adds to those of the list.
    """

    def __init__(
        self, weights: Weights, source: str, added: Sequence[Label], findings: Notices
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
