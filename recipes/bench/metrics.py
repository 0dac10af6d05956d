"""Statistics of BLEU, chrF and TER: hypotheses a second, ours and sacrebleu's, on one core.

    python recipes/bench/metrics.py --data DATA [--sentences 500]

Reads 100-best lists (tvsub-zh-en/test) with one reference, and one output for each sentence, as
`rerank evaluate` has. sacrebleu computes the statistics of each hypothesis that `corpus_score`
sums, and prepares each reference once, however many hypotheses it has. All are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from rerank.formats.document_files import documents_of_file
from rerank.formats.translations import read_references
from rerank.metrics import TextMetric
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.ter import Ter
from rerank.notices import Notices
from rerank.runs.lists import KBestFile, Lists

Lines = list[list[bytes]]
METRICS: tuple[tuple[str, TextMetric, Any], ...] = (
    ("BLEU", Bleu(), BLEU(tokenize="none", force=True)),
    ("chrF", Chrf(), CHRF()),
    ("TER", Ter(), TER()),
)


def lists(folder: Path, sentences: int, top: int | None) -> tuple[Lines, Lines]:
    """Candidates and references of the first sentences."""
    documents = documents_of_file(folder / "test.docids", Notices())
    references = read_references([folder / "test.en"], documents.n_sentences, Notices())
    found: Lines = []
    path = folder / "test.nbest.xz"
    for _, kbest in KBestFile(path, Lists(path, top=top), documents=documents).read(Notices()):
        texts = kbest.texts.to_list()
        bounds = zip(kbest.offsets[:-1], kbest.offsets[1:], strict=True)
        found += [texts[begin:end] for begin, end in bounds]
        if len(found) >= sentences:
            break
    return found[:sentences], references[: len(found[:sentences])]


def of_sacrebleu(metric: Any, candidates: Lines, references: Lines) -> list[Sequence[float]]:
    """Statistics of each hypothesis."""
    rows: list[Sequence[float]] = []
    for group, (line,) in zip(candidates, references, strict=True):
        (prepared,) = metric._cache_references([[line.decode()]])
        for text in group:
            segment = metric._preprocess_segment(text.decode())
            rows.append(metric._compute_segment_statistics(segment, prepared))
    return rows


def columns(label: str, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Statistics of sacrebleu in the order of ours: for BLEU, the reference's length comes last."""
    return rows[:, [*range(2, 10), 1]] if label == "BLEU" else rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=500)
    options = parser.parse_args()
    print("| lists | metric | ours/s | sacrebleu/s | ratio |\n|---|---|---|---|---|")
    for name, sentences, top in (
        ("100-best", options.sentences, None),
        ("one output", 10 * options.sentences, 1),
    ):
        candidates, references = lists(options.data / "tvsub-zh-en", sentences, top)
        n = sum(map(len, candidates))
        for label, ours, theirs in METRICS:
            ours.statistics(candidates[:2], references[:2])  # what is compiled, is compiled
            start = time.perf_counter()
            result = ours.statistics(candidates, references)
            middle = time.perf_counter()
            rows = of_sacrebleu(theirs, candidates, references)
            end = time.perf_counter()
            if not np.array_equal(np.asarray(result), columns(label, np.asarray(rows))):
                raise SystemExit(f"{label}: statistics differ")
            a, b = n / (middle - start), n / (end - middle)
            print(f"| {name} | {label} | {a:,.0f} | {b:,.0f} | {a / b:.1f} |", flush=True)


if __name__ == "__main__":
    main()
