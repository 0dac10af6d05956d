"""Texts of whole documents parted into segments: how many of these come back.

    python recipes/systems/align.py --data DATA [--join newline] [SET...]

Joins the aligned outputs of each system to a text a document, and aligns it with the reference, and
with the outputs of the other systems, as `evaluate --align` and `--systems NAME=FILE,align=yes` do.
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

from sacrebleu import corpus_bleu, corpus_chrf

from rerank.corpus.documents import Documents
from rerank.corpus.edit_distance import parted

SETS = ("llm4-guofeng", "llm4-ted17-fr-en", "wmt23-zh-en-llm")


def lines_of(path: Path) -> list[str]:
    """Lines of a text."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def main() -> None:
    """Print a row for each set and for what its systems are aligned with."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--join", choices=["space", "newline"], default="space")
    parser.add_argument("sets", nargs="*", default=SETS)
    given = parser.parse_args()
    join = {"space": " ", "newline": "\n"}[given.join]
    for name in given.sets:
        folder = given.data / name
        reference = lines_of(folder / "ref.en")
        documents = Documents.from_lines((folder / "docids").read_bytes().splitlines())
        systems = [lines_of(path) for path in sorted(folder.glob("hyp.*"))]
        for target in ("reference", "others"):
            rows = []
            for own in systems:
                others = [one for one in systems if one is not own]
                texts = [reference] if target == "reference" else others
                beside = [[one for one in each if one] or [""] for each in zip(*texts, strict=True)]
                pairs = zip(documents.split(own), documents.split(beside), strict=True)
                found = [*chain.from_iterable(parted(join.join(a), b).segments for a, b in pairs)]
                same = [" ".join(a.split()) == b for a, b in zip(own, found, strict=True)]
                scores = (
                    metric(text, [reference]).score
                    for metric in (corpus_bleu, corpus_chrf)
                    for text in (own, found)
                )
                rows.append((sum(same) / len(same), *scores))
            share, *means = (sum(column) / len(rows) for column in zip(*rows, strict=True))
            shown = "BLEU {:.2f} → {:.2f} | chrF2 {:.2f} → {:.2f}".format(*means)
            print(f"| {name} | {len(systems)} | {target} | {share:.1%} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
