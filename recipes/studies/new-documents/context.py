"""Tuning with context on random problems: what is printed beside new documents.

    python recipes/studies/new-documents/context.py [--problems 200] [--first 0]

A problem has documents of lists with two features that matter, one that does not, and a scorer that
looks 0, 1 or 2 sentences back; references are the best path under weights that give the context no
part, or a small to a decisive one, with some words changed. Weights are tuned by default and with
`select="none"`, on 10 to 30 documents, from start weights without context or from none. 80 new
documents are decoded. For each order and strength the table has, in BLEU: the printed value less
that of the new documents, beside the same of the start weights, which nothing was tuned for; how
often the first lies within two standard errors of both; what the default gains on new documents
over `none` and over the start; and CPU seconds of both tunings.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import sacrebleu
from numpy.typing import NDArray

import rerank
from decoders.arrays import HistoryTable
from decoders.viterbi import viterbi
from rerank import Document, Reranker

STRENGTHS = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0)  # of the context, where a feature of the list has 1
WORDS = np.array([*"abcdefghijkl"])
Floats = NDArray[np.float64]


class Context:
    """A scorer of some order with a table of numbers for each sentence."""

    def __init__(self, order: int) -> None:
        self.order, self.tables = order, dict[str, list[Floats]]()

    def score(self, document: Document) -> HistoryTable:
        """The numbers of a document."""
        return HistoryTable(self.tables[document.id], self.order)


@dataclass(frozen=True)
class Texts:
    """Documents, and the references of their sentences."""

    documents: list[Document]
    references: list[list[str]]


@dataclass(frozen=True)
class Shape:
    """How documents of a problem are drawn; list_weight: of a feature in the order of the lists."""

    sentences: int
    candidates: int
    strength: float
    changed: float
    list_weight: float


def texts(rng: np.random.Generator, name: str, number: int, shape: Shape, scorer: Context) -> Texts:
    """Documents with lists, tables of their context, and references."""
    found = Texts([], [])
    for d in range(number):
        sizes = rng.integers(2, shape.candidates + 1, shape.sentences).tolist()
        sentences, linear, written = [], [], []
        for size in sizes:
            base = rng.choice(WORDS, rng.integers(4, 10))
            lines = [
                " ".join(np.where(rng.random(len(base)) > 0.35, base, rng.choice(WORDS, len(base))))
                + " a" * int(rng.geometric(0.7) - 1)
                for _ in range(size)
            ]
            numbers = rng.normal(size=(size, 3))
            numbers = numbers[np.argsort(-(numbers @ [1.0, shape.list_weight, 0.0]))]
            named = [dict(zip(("tm", "lm", "rnd"), row, strict=True)) for row in numbers.tolist()]
            sentences.append([*zip(lines, named, strict=True)])
            linear.append(numbers @ [1.0, 0.5, 0.0])
            written.append(lines)
        order = scorer.order
        tables = [
            rng.normal(size=(*sizes[max(0, t - order) : t], size)) for t, size in enumerate(sizes)
        ]
        truth = [shape.strength * own + alone for own, alone in zip(tables, linear, strict=True)]
        (path,) = viterbi(HistoryTable(truth, order))
        chosen = [lines[k].split() for lines, k in zip(written, path.choices, strict=True)]
        found.references.append(
            [
                " ".join(
                    np.where(rng.random(len(own)) > shape.changed, own, rng.choice(WORDS, len(own)))
                )
                for own in chosen
            ]
        )
        found.documents.append(Document(f"{name}{d}", sentences))
        scorer.tables[f"{name}{d}"] = tables
    return found


def scored(lines: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Floats:
    """BLEU of all documents, and its jackknife standard error over them."""
    rows = []
    for own, refs in zip(lines, references, strict=True):
        score = sacrebleu.corpus_bleu([*own], [[*refs]], tokenize="none", force=True)
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    counts = np.array(rows)

    def bleu(sums: NDArray[np.int64]) -> float:
        own = sums.tolist()
        return float(sacrebleu.BLEU.compute_bleu(own[:4], own[4:8], own[8], own[9], "exp").score)

    total = counts.sum(axis=0)
    without = np.array([bleu(total - row) for row in counts])
    spread = ((without - without.mean()) ** 2).sum() * (len(counts) - 1) / len(counts)
    return np.array([bleu(total), np.sqrt(spread)])


def problem(seed: int) -> dict[str, Any]:
    """What a problem gives: values with standard errors, and CPU seconds."""
    rng, order = np.random.default_rng(seed), seed % 3
    strength, from_start = STRENGTHS[seed // 3 % len(STRENGTHS)], seed // 18 % 2 == 0
    candidates = int(rng.choice([4, 6, 8])) if order < 2 else 4
    changed, weight = float(rng.choice([0.1, 0.2, 0.3])), float(rng.uniform(0, 1.2))
    shape = Shape(int(rng.integers(4, 12)), candidates, strength, changed, weight)
    scorer = Context(order)
    dev = texts(rng, "d", int(rng.integers(10, 31)), shape, scorer)
    new = texts(rng, "n", 80, shape, scorer)
    start = {"tm": 1.0, "lm": weight, "rnd": 0.0} if from_start else None
    row: dict[str, Any] = {"order": order, "strength": strength}

    def on_new(weights: Mapping[str, float] | rerank.Weights) -> Floats:
        results = Reranker(weights, scorers={"context": scorer}).decode(new.documents)
        return scored([result.texts for result in results], new.references)

    for select in ("cv", "none"):
        begin = time.process_time()
        weights = rerank.tune(
            dev.documents, dev.references, start=start, scorers={"context": scorer}, select=select
        )
        row[f"{select}, s"] = time.process_time() - begin
        row[select] = on_new(weights)
        if select == "cv":
            selection: Any = weights.provenance["selection"]
            chosen, first = selection["choice"], selection["candidates"][0]
            row["printed"] = np.array([chosen["held_out"], chosen["error"]])
            row["printed start"] = np.array([first["held_out"], first["error"]])
    row["start"] = on_new(start | {"context": 0.0}) if start else None
    return row


HEADS = ("problems", "printed − new", "start: printed − new", "within 2 errors")
HEADS += ("default − none", "default − start", "CPU s, default", "none")


def cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A row of the table."""

    def mean(values: Sequence[float], form: str = "{:+.2f} ± {:.2f}") -> str:
        if len(values) < 2:
            return ""
        return form.format(np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values)))

    started = [row for row in rows if row["start"] is not None]
    printed = [row["printed"][0] - row["cv"][0] for row in rows]
    errors = [np.hypot(row["printed"][1], row["cv"][1]) for row in rows]
    return [
        str(len(rows)),
        mean(printed),
        mean([row["printed start"][0] - row["start"][0] for row in started]),
        f"{np.mean(np.abs(printed) <= 2 * np.array(errors)):.1%}",
        mean([row["cv"][0] - row["none"][0] for row in rows]),
        mean([row["cv"][0] - row["start"][0] for row in started]),
        mean([row["cv, s"] for row in rows], "{:.2f}"),
        mean([row["none, s"] for row in rows], "{:.2f}"),
    ]


@click.command()
@click.option("--problems", default=200, show_default=True)
@click.option("--first", default=0, show_default=True)
def main(problems: int, first: int) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", rerank.RerankWarning)
    rows = [problem(seed) for seed in range(first, first + problems)]
    print("| | " + " | ".join(HEADS) + " |\n" + "|---" * (len(HEADS) + 1) + "|")
    parts = {"all": rows}
    parts |= {f"order {n}": [row for row in rows if row["order"] == n] for n in range(3)}
    parts |= {f"strength {s:g}": [row for row in rows if row["strength"] == s] for s in STRENGTHS}
    for name, own in parts.items():
        if own:
            print("| " + " | ".join([name, *cells(own)]) + " |", flush=True)


if __name__ == "__main__":
    main()
