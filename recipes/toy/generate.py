"""Writes the embedded example: text to train language models on, lists to tune and to test on.

python recipes/toy/generate.py rerank/example
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from lists import WEIGHTS, candidates
from stories import Dice, document

from rerank.files.outputs import atomic

DOCUMENTS = {"lm.train": 750, "lm.valid": 30, "tune": 24, "test": 24}


def generate(folder: Path, seed: int) -> None:
    """Write the example of a seed: the same bytes wherever zlib is the same."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, n_documents) in enumerate(DOCUMENTS.items()):
        dice = Dice(seed, number)
        if name.startswith("lm."):
            _write(folder / f"{name}.txt.gz", _text(dice, n_documents))
        else:
            for suffix, lines in _lists(dice, n_documents, name).items():
                _write(folder / f"{name}.{suffix}.gz", lines)
    weights = (f"{name}= {' '.join(map(str, values))}" for name, values in WEIGHTS.items())
    _write(folder / "weights.ini", ["[weight]", *weights])


def _text(dice: Dice, n_documents: int) -> Iterator[str]:
    """Lines of documents, parted by blank lines."""
    for _ in range(n_documents):
        for sentence in document(dice):
            yield " ".join(sentence.words(sentence.right))
        yield ""


def _lists(dice: Dice, n_documents: int, name: str) -> dict[str, list[str]]:
    """Lines of k-best lists, references and document ids, by suffix."""
    lines: dict[str, list[str]] = {"nbest": [], "ref": [], "docids": []}
    for d in range(n_documents):
        for sentence in document(dice):
            number = len(lines["ref"])
            lines["nbest"] += [found.line(number) for found in candidates(sentence, dice)]
            lines["ref"].append(" ".join(sentence.words(sentence.right)))
            lines["docids"].append(f"{name}-{d + 1:02}")
    return lines


def _write(path: Path, lines: Iterable[str]) -> None:
    with atomic(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1, help="1 is the embedded example")
    arguments = parser.parse_args()
    generate(arguments.folder, arguments.seed)
