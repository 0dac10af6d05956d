"""Evaluation of systems against a baseline, over the corpus and per document.

BLEU is sacrebleu's corpus BLEU, of all lines and of the lines of each document. The increase ratio
is the share of documents whose BLEU is strictly better than the baseline's, as in Lin et al.
(2015), https://aclanthology.org/D15-1106. Confidence intervals and p-values resample whole
documents (`rerank.metrics.significance`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from textwrap import wrap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.metrics.bleu import WIDTH, Bleu, Statistics, corpus_bleu, length_ratio
from rerank.metrics.oracle import Extremes
from rerank.metrics.significance import (
    DRAWS,
    FEWEST_DOCUMENTS,
    MOST_EXACT,
    RESAMPLES,
    bootstrap,
    percentile_interval,
    sign_flip_p_value,
)

Interval: TypeAlias = tuple[float, float]
"""Lower and upper end of a 95% confidence interval."""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of one file, one per sentence, and the file's name in messages."""

    name: str
    lines: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Score:
    """BLEU (0 to 100) and length ratio: hypothesis words / reference words."""

    bleu: float
    length_ratio: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of documents with better, equal and worse BLEU than the baseline's."""

    better: int | None = None
    equal: int | None = None
    worse: int | None = None
    increase_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class System:
    """Results of one system; the comparison with the baseline is None for the baseline."""

    name: str
    bleu: float
    length_ratio: float
    signature: str
    interval: Interval | None
    difference: float | None = None
    difference_interval: Interval | None = None
    documents: Counts = Counts()
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """Results of one document: one number per system."""

    id: str
    sentences: int
    bleu: tuple[float, ...]
    length_ratio: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of `rerank evaluate`; `systems[0]` is the baseline."""

    systems: tuple[System, ...]
    documents: tuple[DocumentScores, ...]
    oracle: Score | None
    anti_oracle: Score | None
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as JSON values, unrounded.

        The increase ratio and the p-value are given twice: for the system and for its documents.
        """
        report = {"schema": 1, **asdict(self)}
        for system, found in zip(self.systems, report["systems"], strict=True):
            found["increase_ratio"] = system.documents.increase_ratio
            found["documents"]["p_value"] = system.p_value
        return report

    def to_text(self, width: int | None = None) -> str:
        """The evaluation as a table, with a legend below it.

        Systems are columns where as rows they would take more than `width` characters.
        """
        from tabulate import tabulate

        rows = [_cells(system) for system in self.systems]
        for name, score in (("oracle", self.oracle), ("anti-oracle", self.anti_oracle)):
            if score is not None:
                rows.append([name, f"{score.bleu:.2f}", "", f"{score.length_ratio:.3f}"])
        n_columns = max(map(len, rows))
        table = tabulate(
            rows,
            headers=_HEADERS[:n_columns],
            colalign=["left"] + ["right"] * (n_columns - 1),
            disable_numparse=True,
        )
        first = "row"
        if width is not None and width < len(table.partition("\n")[0]):
            names, *others = zip_longest(_HEADERS[:n_columns], *rows, fillvalue="")
            room = max(13, (width - len("better/equal/worse")) // len(rows) - 2)
            table = tabulate(
                [[row[0].replace("/\n", "/").replace("\n", " "), *row[1:]] for row in others],
                headers=["\n".join(wrap(name, room)) for name in names],
                colalign=["left"] + ["right"] * len(rows),
                disable_numparse=True,
            )
            first = "column"
        return "\n".join([table, "", *self._legend(first)]) + "\n"

    def _legend(self, first: str) -> Iterator[str]:
        n, sentences = len(self.documents), sum(d.sentences for d in self.documents)
        yield f"BLEU: sacrebleu {self.systems[0].signature}; {n:,} documents, {sentences:,} lines"
        yield "length ratio: words of the system / words of the references"
        if n > 1:
            yield f"95%: bootstrap over documents, {RESAMPLES:,} resamples, seed {self.seed}"
        if len(self.systems) == 1:
            return
        yield (
            f"gain, better/equal/worse: compared with the first {first}; "
            "increase ratio: better / all"
        )
        if n < FEWEST_DOCUMENTS:
            yield f"p: not computed for fewer than {FEWEST_DOCUMENTS} documents"
        else:
            patterns = f"all {2**n:,}" if n <= MOST_EXACT else f"{DRAWS:,} random"
            yield f"p: two-sided sign-flip test over documents, {patterns} patterns"


def evaluate(
    documents: Documents,
    references: Sequence[Sequence[bytes]],
    systems: Sequence[Text],
    *,
    metric: Bleu,
    extremes: Extremes | None = None,
    seed: int = 1,
) -> Evaluation:
    """Evaluation of `systems`, the baseline first, against `references`, [sentence][reference].

    All systems get the same random draws, so that a system's results do not depend on the others.
    Each text has a line for each of the documents' sentences. InputError without documents.
    """
    if not documents.n_lines:
        raise InputError("expected one or more documents, found none; nothing to evaluate")
    hypotheses = zip(*(text.lines for text in systems), strict=True)
    by_sentence = metric.statistics(hypotheses, references)
    by_document = _summed(by_sentence.reshape(-1, len(systems), WIDTH), documents.starts)
    return Evaluation(
        systems=_compared(systems, by_document, metric.signature(len(references[0])), seed),
        documents=tuple(
            DocumentScores(
                name, n, tuple(corpus_bleu(rows).tolist()), tuple(length_ratio(rows).tolist())
            )
            for name, n, rows in zip(
                documents.ids, np.diff(documents.starts).tolist(), by_document, strict=True
            )
        ),
        oracle=None if extremes is None else _score(extremes.best),
        anti_oracle=None if extremes is None else _score(extremes.worst),
        seed=seed,
    )


def _summed(by_sentence: Statistics, starts: Sequence[int]) -> Statistics:
    """Statistics of documents (D, systems, 9), the sums of those of sentences (T, systems, 9)."""
    running = np.zeros((len(by_sentence) + 1, *by_sentence.shape[1:]), dtype=np.int64)
    by_sentence.cumsum(axis=0, out=running[1:])
    return np.diff(running[list(starts)], axis=0)


def _score(rows: Statistics) -> Score:
    """Score of a corpus from its statistics (n, 9)."""
    summed = rows.sum(axis=0)
    return Score(float(corpus_bleu(summed)), float(length_ratio(summed)))


def _compared(
    texts: Sequence[Text], by_document: Statistics, signature: str, seed: int
) -> tuple[System, ...]:
    """Results of the systems of `by_document` (D, systems, 9), each compared with the first."""
    by_system = by_document.swapaxes(0, 1)
    resampled = bootstrap(by_system, corpus_bleu, rng=np.random.default_rng(seed))
    scores = [_score(rows) for rows in by_system]
    systems = [
        System(text.name, score.bleu, score.length_ratio, signature, _interval(draws, by_document))
        for text, score, draws in zip(texts, scores, resampled, strict=True)
    ]
    baseline = systems[0]
    return baseline, *(
        replace(
            systems[i],
            difference=systems[i].bleu - baseline.bleu,
            difference_interval=_interval(resampled[i] - resampled[0], by_document),
            documents=_counts(corpus_bleu(by_system[i]) - corpus_bleu(by_system[0])),
            p_value=sign_flip_p_value(
                by_system[i], by_system[0], corpus_bleu, rng=np.random.default_rng(seed)
            ),
        )
        for i in range(1, len(systems))
    )


def _interval(scores: NDArray[np.float64], by_document: Statistics) -> Interval | None:
    """Interval of resampled scores; None for a single document."""
    return percentile_interval(scores) if len(by_document) > 1 else None


def _counts(gains: NDArray[np.float64]) -> Counts:
    """Numbers of documents with positive, zero and negative gain, from gains (D,)."""
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    return Counts(better, len(gains) - better - worse, worse, better / len(gains))


_HEADERS = (
    "system",
    "BLEU",
    "95%",
    "length\nratio",
    "gain",
    "95%",
    "better/equal/\nworse",
    "increase\nratio",
    "p",
)


def _cells(system: System) -> list[str]:
    """Row of the table; that of the baseline has no comparison."""
    cells = [
        system.name,
        f"{system.bleu:.2f}",
        _ends(system.interval, ".2f"),
        f"{system.length_ratio:.3f}",
    ]
    if system.difference is None:
        return cells
    counts, p = system.documents, system.p_value
    return [
        *cells,
        f"{system.difference:+.2f}",
        _ends(system.difference_interval, "+.2f"),
        f"{counts.better}/{counts.equal}/{counts.worse}",
        f"{counts.increase_ratio:.1%}",
        "" if p is None else f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}",
    ]


def _ends(interval: Interval | None, form: str) -> str:
    return "" if interval is None else f"{interval[0]:{form}} … {interval[1]:{form}}"
