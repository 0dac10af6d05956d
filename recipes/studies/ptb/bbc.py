"""The BBC news articles as texts for `run.py`: a sentence on each line, tokenised.

    python recipes/studies/ptb/bbc.py --data DATA --work WORK

DATA/bbc/bbc.raw.txt.gz has a line `= topic number` before each article, then its headline and
paragraphs, a line each. Of every twenty articles one is held out for validation and one for the
test. Sentences end at `.`, `!` or `?` before a space and a capital letter, a digit or a quotation
mark, unless the word before is a title or an initial; sacremoses tokenises them, without escapes.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import click
from sacremoses import MosesTokenizer

END = re.compile(r"(?<=[.!?])[\"')]?\s+(?=[\"'(]?[A-Z0-9£])")
NO_END = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Sir|St|Gen|Lt|Prof|No|vs)|\b[A-Z])\.$")


def articles(path: Path) -> Iterator[list[str]]:
    """The lines of each article."""
    lines: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith("="):
                if lines:
                    yield lines
                lines = []
            elif line.strip():
                lines.append(line.strip())
    if lines:
        yield lines


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph."""
    begin = 0
    for match in END.finditer(paragraph):
        before = paragraph[begin : match.start()]
        if not NO_END.search(before):
            yield paragraph[begin : match.end()].strip()
            begin = match.end()
    if rest := paragraph[begin:].strip():
        yield rest


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
def main(data: Path, work: Path) -> None:
    """Write bbc.train.txt, bbc.valid.txt and bbc.test.txt to WORK."""
    work.mkdir(parents=True, exist_ok=True)
    tokenise = MosesTokenizer(lang="en").tokenize
    parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for number, article in enumerate(articles(data / "bbc" / "bbc.raw.txt.gz")):
        part = {0: "valid", 10: "test"}.get(number % 20, "train")
        for paragraph in article:
            for sentence in sentences(paragraph):
                parts[part].append(tokenise(sentence, return_str=True, escape=False))
        parts[part].append("")
    for part, lines in parts.items():
        (work / f"bbc.{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        words = sum(len(line.split()) for line in lines)
        filled = sum(map(bool, lines))
        print(f"{part}: {lines.count('')} articles, {filled:,} sentences, {words:,} words")


if __name__ == "__main__":
    main()
