"""Validation text with its source: the last documents of a bitext, which training does not see.

    python recipes/studies/source/held_out.py en=DATA/tvsub-zh-en/lm.train.en.gz \
        zh=DATA/tvsub-zh-en/lm.train.zh.xz --documents 12

writes `train.en`, `valid.en`, `train.zh` and `valid.zh`. Blank lines part documents; a line of one
side belongs to the same line of the other.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from rerank.files.lines import read_lines
from rerank.files.outputs import atomic
from rerank.notices import Notices


def parted(text: str) -> list[list[bytes]]:
    """The documents of a text, each with its lines."""
    lines = [*read_lines(text, Notices()), b""]
    ends = [n for n, line in enumerate(lines) if not line.strip()]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [lines[a:b] for a, b in zip(starts, ends, strict=True) if a < b]


@click.command(help=__doc__)
@click.argument("sides", nargs=2, metavar="LANGUAGE=FILE LANGUAGE=FILE")
@click.option("--documents", type=click.IntRange(1), default=12, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path())
def main(sides: tuple[str, str], documents: int, out: Path) -> None:
    """Write the four files."""
    texts = {}
    for side in sides:
        language, _, file = side.partition("=")
        texts[language] = parted(file)
    lengths = [np.array([len(one) for one in text]) for text in texts.values()]
    if len(lengths) != 2 or not np.array_equal(*lengths):
        raise click.UsageError(f"{' '.join(sides)}: expected as many sentences in each document")
    if documents >= len(lengths[0]):
        raise click.UsageError(f"--documents {documents}: the text has {len(lengths[0]):,}")
    out.mkdir(parents=True, exist_ok=True)
    for language, text in texts.items():
        for name, part in (("train", text[:-documents]), ("valid", text[-documents:])):
            with atomic(str(out / f"{name}.{language}")) as file:
                file.write(b"\n".join(b"".join(b"%s\n" % line for line in one) for one in part))
            words = sum(len(line.split()) for one in part for line in one)
            click.echo(f"{name}.{language}: {len(part):,} documents, {words:,} words")


if __name__ == "__main__":
    main()
