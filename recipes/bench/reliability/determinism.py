"""Decode the same lists in many circumstances, and compare the bytes and the choices.

    python recipes/bench/reliability/determinism.py --kbest LIST --docs DOCS \
      [--only NAME …] -- OPTIONS

LIST is a Moses list; OPTIONS are others of `rerank decode`, as --weights and --lm. Every run is a
process of its own. The first one has one thread and no cache; the others are compared with it, once
with `--deterministic`, whose bytes must be equal, and once without it, where choices may differ at
near-ties alone. Exit code 4 if any bytes differ under `--deterministic`.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click
from tabulate import tabulate

HERE = Path(__file__).parent
FAULT = 4  # exit code


@dataclass(frozen=True)
class Decoding:
    """A list, its documents, other options of `rerank decode`, and a folder for what is made."""

    kbest: Path
    docs: Path
    options: tuple[str, ...]
    work: Path

    def run(self, *more: str, stdin: Path | None = None, **variables: str) -> bytes:
        """Output of a process with further options, an empty value for none, and variables."""
        given = {"--kbest": str(self.kbest), "--docs": str(self.docs)}
        given |= dict(zip(more[::2], more[1::2], strict=True))
        named = [part for name, value in given.items() for part in (name, value) if part]
        with open(stdin or os.devnull, "rb") as source:
            done = subprocess.run(
                [sys.executable, "-m", "rerank", "decode", *named, *self.options],
                stdin=source,
                capture_output=True,
                env={**os.environ, **variables},
                check=False,
            )
        if done.returncode:
            raise click.ClickException(done.stderr.decode())
        return done.stdout

    def near_ties(self) -> int:
        """Choices whose margin is below 1e-4 nats."""
        summary = self.work / "summary.json"
        self.run("--no-cache", "", "--threads", "1", "--summary", str(summary))
        return int(json.loads(summary.read_text(encoding="utf-8"))["near_ties"])

    def threads(self, number: str) -> bytes:
        """With so many threads."""
        return self.run("--no-cache", "", "--threads", number)

    def again(self, **variables: str) -> bytes:
        """In a new process with these environment variables."""
        return self.run("--no-cache", "", **variables)

    def compressed(self, suffix: str, compress: Callable[[bytes], bytes]) -> bytes:
        """With a list that is compressed."""
        path = self.work / f"list{suffix}"
        path.write_bytes(compress(self.kbest.read_bytes()))
        return self.run("--no-cache", "", "--kbest", str(path))

    def standard_input(self) -> bytes:
        """With the list from standard input."""
        return self.run("--no-cache", "", "--kbest", "-", stdin=self.kbest)

    def cached(self, removed: slice | None) -> bytes:
        """With a cache that has all scores but those of some files; None is an empty cache."""
        cache = self._empty("cache")
        if removed is not None:
            self.run("--cache", str(cache))
            kept = sorted(cache.rglob("*.scores"))
            for path in kept[removed]:
                path.unlink()
        return self.run("--cache", str(cache))

    def shards(self, number: int) -> bytes:
        """From a cache that so many processes have filled, each with its share of the documents."""
        cache = self._empty("cache")
        for one in range(1, number + 1):
            self.run("--cache", str(cache), "--shard", f"{one}/{number}")
        return self.run("--cache", str(cache))

    def turned(self) -> bytes:
        """With the documents in the other order; the output is put back in order."""
        names = self.docs.read_bytes().splitlines()
        runs = [list(one) for _, one in groupby(range(len(names)), key=names.__getitem__)]
        order = [t for run in reversed(runs) for t in run]
        place = {t: n for n, t in enumerate(order)}
        lists: list[list[bytes]] = [[] for _ in names]
        for line in self.kbest.read_bytes().splitlines():
            number, _, rest = line.partition(b" ")
            lists[place[int(number)]].append(b"%d %s" % (place[int(number)], rest))
        kbest, docs = self.work / "turned.nbest", self.work / "turned.docs"
        kbest.write_bytes(b"".join(line + b"\n" for of_list in lists for line in of_list))
        docs.write_bytes(b"".join(names[t] + b"\n" for t in order))
        run = self.run("--no-cache", "", "--kbest", str(kbest), "--docs", str(docs))
        lines = run.splitlines(keepends=True)
        return b"".join(lines[place[t]] for t in range(len(names)))

    def _empty(self, name: str) -> Path:
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder


CIRCUMSTANCES: dict[str, Callable[[Decoding], bytes]] = {
    "fresh process": lambda d: d.again(),
    "2 threads": lambda d: d.threads("2"),
    "documents in the other order": lambda d: d.turned(),
    "1 shard": lambda d: d.shards(1),
    "2 shards": lambda d: d.shards(2),
    "7 shards": lambda d: d.shards(7),
    "cold cache": lambda d: d.cached(None),
    "warm cache": lambda d: d.cached(slice(0)),
    "half a cache": lambda d: d.cached(slice(None, None, 2)),
    "list in gzip": lambda d: d.compressed(".gz", gzip.compress),
    "list in xz": lambda d: d.compressed(".xz", lzma.compress),
    "list from standard input": lambda d: d.standard_input(),
    "LC_ALL=C": lambda d: d.again(LC_ALL="C"),
    "LC_ALL=C.UTF-8": lambda d: d.again(LC_ALL="C.UTF-8"),
    "PYTHONHASHSEED=0": lambda d: d.again(PYTHONHASHSEED="0"),
    "PYTHONHASHSEED=1": lambda d: d.again(PYTHONHASHSEED="1"),
    "PYTHONHASHSEED=random": lambda d: d.again(PYTHONHASHSEED="random"),
}


def differing(one: bytes, other: bytes) -> int:
    """Lines of two outputs that differ; all, if their numbers do."""
    first, second = one.splitlines(), other.splitlines()
    if len(first) != len(second):
        return max(len(first), len(second))
    return sum(a != b for a, b in zip(first, second, strict=True))


def matrix(exact: Decoding, usual: Decoding, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """For each circumstance whether the bytes are equal, and how many lines are not without."""
    expected, plain = (one.run("--no-cache", "", "--threads", "1") for one in (exact, usual))
    print(f"{len(plain.splitlines())} lines; near-ties of the first run: {usual.near_ties()}")
    rows = []
    for name in names:
        run = CIRCUMSTANCES[name]
        equal = "equal" if run(exact) == expected else "DIFFERENT"
        rows.append((name, equal, differing(run(usual), plain)))
        print(f"{name}: {equal}", file=sys.stderr)
    return rows


@click.command()
@click.option("--kbest", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--docs", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work")
@click.option("--only", multiple=True, type=click.Choice(list(CIRCUMSTANCES)))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    kbest: Path, docs: Path, work: Path, only: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """Print the table of circumstances."""
    work.mkdir(parents=True, exist_ok=True)
    exact = Decoding(kbest, docs, (*options, "--deterministic"), work)
    rows = matrix(exact, Decoding(kbest, docs, options, work), only or list(CIRCUMSTANCES))
    print(tabulate(rows, ["circumstance", "bytes, --deterministic", "lines that differ without"]))
    if any(equal != "equal" for _, equal, _ in rows):
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
