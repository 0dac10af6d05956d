"""What `rerank check` reads: the files of a run, and the figures of its lists.

Lists are read a document at a time; some figures and warnings need all of them.

F feature values, T sentences, K candidates of a sentence, n candidates of a document.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.check.findings import Findings
from rerank.corpus.columns import Label, column_names, offsets_of
from rerank.corpus.defects import Defects
from rerank.corpus.documents import Documents, Role
from rerank.corpus.kbest import KBest
from rerank.corpus.preparation import note_differences, note_identity
from rerank.corpus.reading import AVOID
from rerank.corpus.spelling import Spelling, nfc_lines
from rerank.errors import InputError
from rerank.files.paths import display
from rerank.files.terminal import progress
from rerank.formats.run_records import first_named
from rerank.formats.translations import (
    SOURCE,
    check_source_order,
    documents_of_reference,
    matched,
    read_reference_texts,
    read_texts_of,
)
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import Weights, vector
from rerank.metrics.agreement import SystemAgreement
from rerank.metrics.bleu import Bleu, corpus_bleu
from rerank.metrics.embeddings import note_elsewhere
from rerank.metrics.ngrams import Texts
from rerank.runs.lists import KBestFile, ListSource
from rerank.runs.systems import SystemLists
from rerank.scorers import TOTAL
from rerank.scorers.agreement import agreement_of, agreement_of_systems
from rerank.scorers.unknown_words import UnknownWords
from rerank.table import Column, Table

_TOLERANCE = 1e-3  # of a total, relative above 1: lists have six digits
_SIZES = (1, 2, 4, 8)  # candidates of which the best is chosen
_AGREEING = 30  # of a k-best list, whose agreement is computed, in time that grows with the square
_UNKNOWN_WORD = 100  # what Moses takes from a total for each unknown word; no feature of its lists
_SHOWN = 60  # features in the table
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
class KnownWords:
    """The vocabulary of a language model, and the words of lists that it lacks; about: as saved."""

    name: str
    vocabulary: Container[bytes]
    about: Mapping[str, object]
    counts: UnknownWords = field(default_factory=UnknownWords)

    @property
    def most_frequent(self) -> list[str]:
        """The most frequent words that the model does not know."""
        words = self.counts.named.most_common(_NAMED)
        return [word.decode(errors="replace") for word, _ in words]


@dataclass(frozen=True, slots=True)
class BleuScores:
    """BLEU of choices from lists, 0 to 100, and the metric's signature.

    oracle: of the best candidates by sentence BLEU; best_of: of those among the first N, by N;
    agreement: of the choice that `decode` makes without weights, of k-best lists among the first
    `_AGREEING`; better: sentences whose best candidate is better than the first; first_engine: of
    lists of engines, the one whose outputs the first candidates are.
    """

    first: float
    oracle: float
    signature: str
    best_of: Mapping[int, float]
    agreement: float
    better: int
    tuned: TunedBleu | None = None
    first_engine: str | None = None

    def to_text(self, k: NDArray[np.int64], *, limited: bool) -> str:
        """A table of the choices from lists of k (T,) candidates: is there anything to win.

        limited: whether only the first ones could be chosen by agreement.
        """
        scores = {first_named(self.first_engine): self.first}
        scores |= {f"best of the first {n}": score for n, score in self.best_of.items()}
        scores |= {"best of all (oracle)": self.oracle}
        some = f" of the first {_AGREEING}" if limited and k.max() > _AGREEING else ""
        scores |= {f"choice by agreement{some}": self.agreement}
        if self.tuned is not None:
            scores["tuned, on held-out documents"] = self.tuned.bleu
        rows = [
            (name, score, None if score is self.first else score - self.first)
            for name, score in scores.items()
        ]
        columns = Column("choice"), Column("BLEU", ".2f"), Column("gain", "+.2f")
        share = self.better / int((k > 0).sum())
        notes = [f"another candidate than the first is the best in {share:.0%} of the sentences"]
        if self.tuned is not None:
            notes.append(self.tuned.note)
        return "\n".join([Table(columns, rows).to_text(), "", *notes, ""])


@dataclass(frozen=True, slots=True)
class TunedBleu:
    """BLEU of documents that are held out from the tuning of their weights, and a note on how."""

    bleu: float
    note: str


class ListSurvey:
    """Figures of k-best lists, to which documents are added; reports what it finds about them.

    references: [sentence][file] of all sentences, or nothing; first_engine: of lists that are those
    of --systems, in no file of the user; of_systems: the agreement of the systems, if the lists are
    made of their outputs alone. Once they are finished: form: the format; lengths: of documents, in
    sentences, None where nothing tells them; k: of each sentence (T,), 0 without candidates.
    """

    form: str
    lengths: Sequence[int] | None
    k: NDArray[np.int64]
    features: Sequence[FeatureRange]
    bleu: BleuScores | None
    of_systems: SystemAgreement | None

    def __init__(
        self,
        name: str,
        references: Sequence[Sequence[bytes]],
        models: Sequence[KnownWords],
        findings: Findings,
        *,
        tokenize: str,
        first_engine: str | None = None,
    ) -> None:
        self._first_engine = first_engine
        self.of_systems = None
        self.name, self.models, self.sparse = name, models, set[str]()
        self.duplicates, self.empty, self.penalised = 0, 0, 0
        self._references, self._findings, self.tokenize = references, findings, tokenize
        self._counts: list[NDArray[np.int64]] = []
        self._labels: tuple[Label, ...] = ()
        # (F,) of each document: smallest and largest values, and whether they vary in a list
        self._ranges: list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]] = []
        self._firsts: list[bytes] = []
        self._spelling = Spelling()
        self._statistics: list[NDArray[np.int64]] = []  # (choices, 9) of each document
        self._better = 0

    def add(self, kbest: KBest) -> None:
        """Add a document's lists."""
        self._counts.append(kbest.counts)
        if kbest.n:
            starts = offsets_of(kbest.counts[kbest.counts > 0])[:-1]
            least = np.minimum.reduceat(kbest.dense, starts, axis=0)
            most = np.maximum.reduceat(kbest.dense, starts, axis=0)
            self._labels = self._labels or kbest.labels
            varies = np.any(least < most, axis=0)
            self._ranges.append((least.min(axis=0), most.max(axis=0), varies))
            self.sparse.update(kbest.sparse.names)
            texts = kbest.texts.to_list()
            unique = sum(len(set(texts[a:b])) for a, b in pairwise(kbest.offsets.tolist()))
            self.duplicates += len(texts) - unique
        for model in self.models:
            for row in range(kbest.n):
                model.counts.add(kbest.tokens(row), model.vocabulary.__contains__)
        if not self._references:
            return
        lists = map(kbest.rows, range(len(kbest)))
        self._firsts += [kbest.text(rows[0]) if rows else b"" for rows in lists]
        self._spelling.add(kbest.texts.to_list(), map(kbest.line_number, range(kbest.n)))
        self._count_choices(kbest, self._references[kbest.first : kbest.first + len(kbest)])

    def _count_choices(self, kbest: KBest, targets: Sequence[Sequence[bytes]]) -> None:
        """Statistics of the choices from a document's lists. O(bytes + T K²) time, K ≤ 30."""
        texts = Texts.of_lists(kbest)
        rows = Bleu(self.tokenize).statistics(texts, targets)
        bleu = corpus_bleu(rows, effective_order=True)
        spans = [slice(*span) for span in pairwise(texts.rows.tolist())]
        lists = [bleu[span] for span in spans]
        chosen = [[scores[:n].argmax() for scores in lists] for n in (*_SIZES, None)]
        considered = kbest if self.of_systems else kbest.top(_AGREEING)
        agreement = agreement_of(considered, self.of_systems)
        parts = [agreement[a:b] for a, b in pairwise(considered.offsets.tolist())]
        agreed = [int(part.argmax()) if len(part) else 0 for part in parts]
        places = texts.rows[:-1] + np.array([*chosen, agreed], np.int64)
        self._statistics.append(rows[places].sum(axis=1))
        self._better += int((bleu[places[-2]] > bleu[places[0]]).sum())

    def finish(self, form: str, documents: Documents | None) -> ListSurvey | None:
        """The figures of all lists, None if they have no candidates; warns of what is odd."""
        self.k = np.concatenate(self._counts) if self._counts else np.zeros(0, np.int64)
        if not self.k.any():
            return None
        self.form = form
        self.lengths = None if documents is None else np.diff(documents.starts).tolist()
        least, most, varies = map(np.array, zip(*self._ranges, strict=True))
        low, high = least.min(axis=0).tolist(), most.max(axis=0).tolist()
        vary = np.any(varies, axis=0).tolist()
        ranges = zip(column_names(self._labels), low, high, vary, strict=True)
        self.features = [FeatureRange(n, a, b, not v and a == b, not v) for n, a, b, v in ranges]
        self.empty = self._findings.count_of("empty-hypothesis")
        for model in self.models:
            model.counts.warn(model.name, model.about, self._findings, source=self.name)
        self.bleu = self._bleu() if self._statistics else None
        return self

    def _bleu(self) -> BleuScores:
        """BLEU of the choices; warns where texts differ from references in more, or not at all."""
        targets = self._references[: len(self._firsts)]
        note_differences(
            {self.name: self._firsts},
            [line for sentence in targets for line in sentence],
            self._findings,
            form=self.form if self._first_engine is None else "",
            tokenize=self.tokenize,
            spelling=self._spelling,
        )
        note_identity(self._firsts, targets, self._findings, source=self.name)
        scores = corpus_bleu(np.sum(self._statistics, axis=0)).tolist()
        first, *best_of, oracle, agreement = scores
        longest = int(self.k.max())
        sizes = {n: score for n, score in zip(_SIZES[1:], best_of, strict=True) if n < longest}
        signature = Bleu(self.tokenize).signature(len(targets[0]))
        figures = first, oracle, signature, sizes, agreement, self._better
        return BleuScores(*figures, first_engine=self._first_engine)

    @property
    def sizes(self) -> tuple[int, float, int]:
        """Minimum, median and maximum of K over the sentences with candidates; zeros if none."""
        some = self.k[self.k > 0]
        if not len(some):
            return 0, 0.0, 0
        return int(some.min()), float(np.median(some)), int(some.max())

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values, numbers unrounded."""
        least, median, most = self.sizes
        return {
            "file": self.name,
            "format": self.form,
            "sentences": len(self.k),
            "without_candidates": int((self.k == 0).sum()),
            "documents": None if self.lengths is None else len(self.lengths),
            "candidates": int(self.k.sum()),
            "k": {"min": least, "median": median, "max": most},
            "features": [asdict(feature) for feature in self.features],
            "sparse_features": len(self.sparse),
            "duplicates": self.duplicates,
            "empty": self.empty,
            "oov": [
                {
                    "model": model.name,
                    "words": model.counts.words,
                    "oov": model.counts.oov,
                    "most_frequent": model.most_frequent,
                }
                for model in self.models
            ],
            "bleu": None if self.bleu is None else asdict(self.bleu),
        }

    def to_text(self) -> str:
        """The figures as a few lines and a table of the features."""
        least, median, most = self.sizes
        gaps = int((self.k == 0).sum())
        documents = "unknown; decode and tune-mert need --docs FILE or --no-docs each|one"
        if self.lengths is not None:
            shortest, longest = min(self.lengths, default=0), max(self.lengths, default=0)
            lengths = f"{shortest:,}" + (f" to {longest:,}" if longest > shortest else "")
            documents = f"{len(self.lengths):,} of {lengths} sentences"
        rows = [
            ("list", f"{self.name} ({self.form})"),
            ("sentences", f"{len(self.k):,}" + (f", {gaps:,} without hypotheses" if gaps else "")),
            ("documents", documents),
            ("hypotheses", f"{self.k.sum():,}; k min {least}, median {median:g}, max {most}"),
            ("duplicates", f"{self.duplicates:,}, empty hypotheses {self.empty:,}"),
        ]
        if self.penalised:
            rows.append(("totals", f"{self.penalised:,} lower by Moses' penalty for unknown words"))
        if self.bleu is not None:
            first, oracle = self.bleu.first, self.bleu.oracle
            rows.append(("BLEU", f"first {first:.2f}, oracle {oracle:.2f} ({self.bleu.signature})"))
        for model in self.models:
            words = f" ({', '.join(model.most_frequent)})" if model.most_frequent else ""
            share = f"{model.counts.share:.2%} of {model.counts.words:,} words{words}"
            rows.append((f"OOV {model.name}", share))
        lines = Table((Column(""), Column("")), rows).to_text()
        if not self.features:
            return f"{lines}\nfeatures    none\n"
        columns = Column("feature"), Column("min", "g"), Column("max", "g"), Column("constant")
        kinds = {(True, True): "yes", (False, True): "in each list", (False, False): "no"}
        ranges = [
            (x.name, x.min, x.max, kinds[x.constant, x.constant_in_lists])
            for x in self.features[:_SHOWN]
        ]
        others = len(self.features) - len(ranges)
        more = f"… and {others:,} other features; --format json has all\n" * (others > 0)
        sparse = f"{len(self.sparse):,} sparse features\n" if self.sparse else ""
        return f"{lines}\n\n{Table(columns, ranges).to_text()}\n{more}{sparse}"


class WeightedTotals:
    """Checks weights against the features of lists and models, and the totals against weights."""

    def __init__(
        self, source: str | Path | None, models: Sequence[KnownWords], findings: Findings
    ) -> None:
        self._source = "" if source is None else display(source)
        self._models, self._findings = models, findings
        self._weights: Weights | None = None
        self._vector: NDArray[np.float64] | None = None
        self._unchecked = True
        self._wrong, self._line, self._largest, self._name = 0, 0, 0.0, ""
        self.penalised = 0  # totals that are lower by Moses' penalty of unknown words, and no more
        if source is not None:
            with findings.counting():
                self._weights = read_weights(source, findings)

    def add(self, kbest: KBest) -> None:
        """Check a document's lists."""
        if not kbest.n or self._weights is None:
            return
        if self._unchecked:
            self._unchecked = False
            with self._findings.counting():
                self._vector = self._vector_of(kbest, self._weights)
        if self._vector is None or kbest.totals is None:
            return
        sums = kbest.dense @ self._vector + kbest.sparse.dot(self._weights.sparse)
        excess = sums - kbest.totals
        allowed = _TOLERANCE * np.maximum(1, np.abs(kbest.totals))
        penalties = _UNKNOWN_WORD * np.maximum(0, np.round(excess / _UNKNOWN_WORD))
        differences = np.abs(excess - penalties)
        differences = np.where(differences > allowed, np.abs(excess), 0)
        self.penalised += int(((differences == 0) & (penalties > 0)).sum())
        rows = np.flatnonzero(differences)
        if len(rows):
            self._line = self._line or (kbest.line_number(int(rows[0])) or 0)
            self._wrong += len(rows)
            self._largest = max(self._largest, float(differences[rows].max()))
            self._name = kbest.source

    def report(self) -> None:
        """Warn of totals that are not the weighted sums of the features."""
        if self._wrong:
            self._findings.add(
                "wrong-totals",
                source=self._name,
                line=self._line or None,
                count=self._wrong,
                largest=f"{self._largest:.6g}",
            )

    def _vector_of(self, kbest: KBest, weights: Weights) -> NDArray[np.float64] | None:
        """The weights, if the list itself has all features; InputError for other features."""
        added = [name for model in self._models for name in (model.name, f"{model.name}oov")]
        labels = [*kbest.labels, *(Label(name, 1) for name in added)]
        if TOTAL in weights.dense and TOTAL not in {label.name for label in labels}:
            labels.append(Label(TOTAL, 1))
        values = vector(weights, labels, notices=self._findings, source=self._source)
        width = kbest.dense.shape[1]
        return None if values[width:].any() else values[:width]


def examine(
    source: ListSource,
    references: Sequence[str | Path],
    weights: str | Path | None = None,
    models: Sequence[KnownWords] = (),
    *,
    tokenize: str = "none",
    embeddings: bool = False,
) -> tuple[Findings, ListSurvey | None]:
    """Findings about files that can be read twice, and the figures of lists that can be read.

    embeddings: whether candidates are compared with the source by `rerank.metrics.embeddings`.
    Memory: a document, the first candidates and the references.
    """
    findings = Findings()
    totals = WeightedTotals(weights, models, findings)
    documents, known = documents_of_run(source, references, findings)
    documents, targets = _targets(source, references, documents, findings)
    source.documents = documents
    names = set(map(source.side_name, source.kinds))
    if any(finding.fault and finding.source in names for finding in findings.all):
        source = source.without_sources()
    made = isinstance(source, SystemLists)
    first = next(iter(source.systems.values())) if made else None
    survey = ListSurvey(
        source.name, targets, models, findings, tokenize=tokenize, first_engine=first
    )
    defects = Defects(AVOID)
    if isinstance(source, SystemLists) and not source.merged and targets:
        marked = defects.marked(source.read(Findings()), Findings(), source.systems)
        survey.of_systems = agreement_of_systems((lists for _, lists in marked), source.systems)
    form = ""
    with findings.counting():
        form = source.format.name
        source.documents = source.in_pieces()
        total = len(source)
        lists = defects.marked(source.read(findings), findings, source.systems)
        for _, kbest in progress(lists, label="documents", unit="documents", total=total):
            survey.add(kbest)
            totals.add(kbest)
            if embeddings:
                note_elsewhere(kbest, findings, first=not made)
    totals.report()
    survey.penalised = totals.penalised
    return findings, survey.finish(form, documents if known else None)


def _targets(
    source: ListSource, references: Sequence[str | Path], documents: Documents, findings: Findings
) -> tuple[Documents, list[list[bytes]]]:
    """The documents, and references [sentence][file] of the files that have all their lines.

    With `Lists.drop_unreferenced` the documents are those of the sentences that have references.
    """
    lists = source.lists
    model = source.name if lists.docs is None else display(lists.docs)
    sound = []
    for path in [*lists.side.values(), *references]:
        of_text = Findings()
        role: Role = "reference" if path in references else "source"
        with of_text.counting():
            read_texts_of(path, documents, of_text, model=model, role=role)
            if role == "reference":
                sound.append(path)  # read once more, together with the others
                continue
        findings.merge(of_text)
    with findings.counting():  # of a text that lacks a sentence
        texts = read_reference_texts(sound, documents, findings, model=model) if sound else []
        documents, targets = matched(texts, documents, findings, drop=lists.drop_unreferenced)
        return documents, nfc_lines(targets) if lists.in_nfc else targets
    return documents, []


def documents_of_run(
    source: ListSource, references: Sequence[str | Path], findings: Findings
) -> tuple[Documents, bool]:
    """The documents, and whether a file or an option names them; otherwise one per sentence.

    A list that cannot be read is reported where it is read, and likewise a reference.
    """
    if not isinstance(source, KBestFile):
        return source.documents, True
    lists, docs = source.lists, [] if source.lists.docs is None else [source.lists.docs]
    named = bool(docs)
    if not docs and lists.no_docs is None:
        with suppress(InputError):
            named = source.annotations[0] is not None
    if named:
        with findings.counting():
            return source.find_documents(findings), True
    elif lists.no_docs is None and references:
        stated = None
        with suppress(InputError):
            stated = documents_of_reference(references, findings.unreported())
        if stated is not None:
            with findings.counting():
                check_source_order(lists.side.get(SOURCE), references[0], stated, findings)
            return stated, True
    n_lines = 0
    with suppress(InputError):
        n_lines = source.survey.candidates
        with findings.counting():
            n_lines = source.lines_by_id()
    if texts := [*docs, *lists.side.values(), *references]:
        role: Role = "reference" if texts[0] in references else "source"
        with suppress(InputError):  # reported where the text is read
            text, *_ = read_texts_of(texts[0], None, Findings(), role=role)
            filled = [n for n, line in enumerate(text.lines, 1) if line and line.strip()]
            # blank lines at the end count up to the ids of the list
            n_lines = max([min(n_lines, len(text.lines)), *filled[-1:]])
    if lists.no_docs == "one":
        return Documents.one(n_lines), True
    return Documents.each(n_lines), lists.no_docs is not None
