"""What embeddings know of translations: order of candidates and choices, beside people's counts.

    python recipes/adapters/estimators/embeddings.py --data DATA/mqm-zh-en

DATA is a folder as of recipes/studies/systems: src.zh, a file hyp.SYSTEM.en for each system,
mqm.columns (the systems in order) and mqm.tsv (penalties by people of each output of a line, less
is better).
Candidates are ordered by the cosine of source and candidate, and by the mean similarity to the
others, cosine or chrF2. Pairs of a sentence with equal scores or equal penalties do not count.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from rerank.metrics.embeddings import embeddings

Array = NDArray[np.float64]


def lines(path: Path) -> list[str]:
    """The lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def vectors(texts: list[list[str]]) -> Array:
    """Embeddings (N, K, 384) of the candidates of N sentences."""
    flat = embeddings([text for own in texts for text in own])
    return flat.reshape(len(texts), len(texts[0]), -1).astype(np.float64)


def mean_of_others(similar: Array) -> Array:
    """Mean (N, K) over the other candidates of similarities (N, K, K), the first to the second."""
    k = similar.shape[1]
    own = similar[:, range(k), range(k)]
    total: Array = (similar.sum(axis=2) - own) / (k - 1)
    return total


def chrf(texts: list[str]) -> Array:
    """chrF2 (K, K) of each candidate with each as the reference."""
    metric = sacrebleu.CHRF()
    return np.array([[metric.sentence_score(a, [b]).score for b in texts] for a in texts])


def in_order(scores: Array, penalties: Array) -> float:
    """Share of pairs that scores (N, K) order as penalties (N, K) do."""
    a, b = np.triu_indices(scores.shape[1], 1)
    by_people, by_scores = penalties[:, b] - penalties[:, a], scores[:, a] - scores[:, b]
    counted = (by_people != 0) & (abs(by_scores) > 1e-9)  # equal texts differ by rounding
    return float((by_people * by_scores > 0)[counted].mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    systems = [name for line in lines(data / "mqm.columns") for name in line.split("\t")]
    outputs = [lines(data / f"hyp.{name}.en") for name in systems]
    texts = [[*own] for own in zip(*outputs, strict=True)]
    penalties = np.loadtxt(data / "mqm.tsv", ndmin=2)
    sources, candidates = vectors([[x] for x in lines(data / "src.zh")]), vectors(texts)
    rows = {
        "cosine of source and candidate": (candidates @ sources.transpose(0, 2, 1))[..., 0],
        "mean cosine to the others": mean_of_others(candidates @ candidates.transpose(0, 2, 1)),
        "mean chrF2 to the others": mean_of_others(np.array([chrf(text) for text in texts])),
    }
    print("| scores | pairs in the order of people, % | penalty of the choice |\n|---|---|---|")
    for name, scores in rows.items():
        chosen = penalties[range(len(texts)), scores.argmax(axis=1)]
        print(f"| {name} | {100 * in_order(scores, penalties):.1f} | {chosen.mean():.2f} |")
    print(f"| none: mean of {len(systems)} systems | 50.0 | {penalties.mean():.2f} |")


if __name__ == "__main__":
    main()
