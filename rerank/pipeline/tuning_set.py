"""A tuning set: documents with their features, and the statistics of all candidates, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.bleu import Statistics, Tokenizer, corpus_bleu
from rerank.columns import offsets_of
from rerank.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.features import TOTAL, Document, Space
from rerank.formats.unnamed import by_place
from rerank.kbest import KBest
from rerank.lines import display
from rerank.metrics.corpus_bleu import Bleu
from rerank.notices import Notices
from rerank.pipeline.lists import Announce, Opened
from rerank.pipeline.searching import Search, Searched, searched
from rerank.references import note_escaping, note_normalization
from rerank.tuning.pool import Pool
from rerank.tuning.scale import Scale, fit_scale
from rerank.weights import Weights, vector

Choices = tuple[tuple[int, ...], ...]  # the choices for each document


@dataclass(frozen=True, slots=True, eq=False)
class TuningSet:
    """A tuning set in memory: documents, in groups searched together, and their statistics.

    statistics: per document (n, 9); gaps: (9,) summed statistics of the sentences without
    candidates, which count as empty lines. Bytes a candidate: 16 F + 104 here and in the
    pool, and 4 K more at order 1; at unbounded order its text, and 4 for each history scored.
    """

    groups: tuple[tuple[Document, ...], ...]
    statistics: tuple[Statistics, ...]
    gaps: Statistics

    @property
    def documents(self) -> tuple[Document, ...]:
        """All documents, in order."""
        return tuple(document for group in self.groups for document in group)

    @property
    def first(self) -> Choices:
        """The path of first candidates."""
        return tuple(document.first() for document in self.documents)

    def total(self, path: Choices) -> Statistics:
        """Summed statistics (9,) of a path."""
        sums = self.gaps.copy()
        for document, rows, choices in zip(self.documents, self.statistics, path, strict=True):
            sums += rows[document.rows(choices)].sum(axis=0)
        return sums

    def pool(self, path: Choices, tuned: NDArray[np.int64], start: NDArray[np.float64]) -> Pool:
        """All candidates under a path; columns that are not tuned count with their weight.

        The gaps are one more list, of one candidate without features.
        """
        held = np.setdiff1d(np.arange(len(start)), tuned)
        features, fixed, counts = [], [], []
        for document, choices in zip(self.documents, path, strict=True):
            full = document.under(choices)
            features.append(full[:, tuned])
            fixed.append(document.sparse + full[:, held] @ start[held])
            counts.append(np.diff(document.offsets))
        return Pool(
            np.concatenate([[0], np.cumsum(np.concatenate([*counts, [1]]))]),
            np.concatenate([*features, np.zeros((1, len(tuned)))]),
            np.concatenate([*self.statistics, self.gaps[None]]),
            np.concatenate([*fixed, np.zeros(1)]),
        )

    def scale(self, path: Choices, weights: NDArray[np.float64], notices: Notices) -> Scale | None:
        """The scale of full weights (F,): all candidates scored under a path, the best by BLEU."""
        scores, sizes = [], []
        for document, choices in zip(self.documents, path, strict=True):
            scores.append(document.under(choices) @ weights + document.sparse)
            sizes.append(np.diff(document.offsets))
        bleu = corpus_bleu(np.concatenate(self.statistics), effective_order=True)
        offsets = offsets_of(np.concatenate(sizes))
        return fit_scale(np.concatenate(scores), bleu, offsets, notices)

    def decode(self, weights: NDArray[np.float64], how: Search) -> tuple[Choices, Statistics]:
        """The path that full weights (F,) choose, and its summed statistics."""
        found: list[Searched] = []
        for group in self.groups:
            found += searched(group, weights, how)
            for document in group:
                document.keep()
        path = tuple(one.choices for one in found)
        return path, self.total(path)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What decides on the columns: the features named, and the weights given in a file."""

    features: Sequence[str]
    given: Weights | None
    source: str

    @property
    def total(self) -> bool:
        """Whether the list's total is a feature."""
        return TOTAL in self.features or (self.given is not None and TOTAL in self.given.dense)

    def start(self, space: Space) -> NDArray[np.float64]:
        """Start weights (F,): those given, 0 for the others."""
        if self.given is None:
            return np.zeros(space.width)
        return vector(self.given, space.labels, default=0.0, source=self.source)

    def columns(self, space: Space) -> NDArray[np.int64]:
        """Columns of the features named, of all if none is; UsageError for a name that is none."""
        known = [label.name for label in space.labels]
        for name in self.features:
            if name not in known:
                raise UsageError(
                    f"--features {name}: no such feature; there are {', '.join(known)}"
                )
        tuned = [name in self.features or not self.features for name in known]
        return np.flatnonzero(np.repeat(tuned, [label.width for label in space.labels]))

    def check(self, space: Space, announce: Announce) -> None:
        """Refuse names that are none, before any work; say which features begin at 0."""
        self.start(space)
        self.columns(space)
        if self.given is None:
            return
        known = by_place(self.given.dense, space.labels, source=self.source)
        missing = [label.name for label in space.labels if label.name not in known]
        if missing:
            announce(
                f"features that {self.source} has no weight for begin at 0: {', '.join(missing)}"
            )


def read_set(
    opened: Opened,
    references: Sequence[Sequence[bytes]],
    tokenizer: Tokenizer,
    wanted: Wanted,
    announce: Announce,
) -> tuple[TuningSet, Space]:
    """The whole tuning set: features, scores of the models, statistics."""
    groups: list[tuple[Document, ...]] = []
    counts, gaps = [], np.zeros(9, dtype=np.int64)
    space: Space | None = None
    baseline = _Baseline([], [], [])
    d = 0
    for batch in opened.batches():
        for _, kbest in batch:
            rows, missing = _count(kbest, references, opened.documents, d, tokenizer)
            d += 1
            gaps += missing
            if kbest.n:
                counts.append(rows)
                baseline.add(kbest, references)
        filled = [(name, kbest) for name, kbest in batch if kbest.n]
        if not filled:
            continue
        if space is None:
            wanted.check(opened.space(filled[0][1], total=wanted.total), announce)
        space = opened.space(filled[0][1], total=wanted.total)
        sparse = wanted.given.sparse if wanted.given else {}
        groups.append(tuple(opened.prepared(filled, space, sparse)))
    if space is None:
        raise InputError(
            "expected candidates to tune on, found none", source=display(opened.lists.kbest)
        )
    baseline.note_oddities(opened)
    return TuningSet(tuple(groups), tuple(counts), gaps), space


@dataclass(frozen=True, slots=True)
class _Baseline:
    """First candidates, the numbers of their lines, and the references of their sentences."""

    hypotheses: list[bytes]
    numbers: list[int]
    references: list[bytes]

    def add(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> None:
        """Take note of a document; `references` are those of all documents."""
        for t in np.flatnonzero(kbest.counts).tolist():
            row = kbest.rows(t)[0]
            self.hypotheses.append(kbest.text(row))
            self.numbers.append(int(kbest.line_numbers[row]))
            self.references.extend(references[kbest.first + t])

    def note_oddities(self, opened: Opened) -> None:
        """Notices of lists that differ from the references in more than words."""
        source = display(opened.lists.kbest)
        for note in (note_escaping, note_normalization):
            note(
                self.hypotheses,
                self.references,
                opened.notices,
                source=source,
                numbers=self.numbers,
            )


def _count(
    kbest: KBest,
    lines: Sequence[Sequence[bytes]],
    documents: Documents,
    d: int,
    tokenizer: Tokenizer,
) -> tuple[Statistics, Statistics]:
    """Statistics (n, 9) of a document's candidates, and summed those of its gaps as empty lines."""
    begin, end = documents.span(d)
    return Bleu(tokenizer).of_lists(kbest, lines[begin:end])
