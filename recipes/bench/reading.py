r"""Reading k-best lists: MB/s of text on one core, against the obvious loop over lines.

    python recipes/bench/reading.py [--kbest LIST …] [--sentences 500]

Without --kbest a list is made up: 100 candidates a sentence of 22 words, 14 feature values. Each
list is unpacked and repeated, with new ids, to this many sentences, and converted to JSON lines by
`rerank convert`. The obvious loop splits a line into an object with words and a dictionary of
features, and collects the objects by sentence; for JSON lines it does so with `json.loads`. Ours
gives columns (`rows`) or, grouped by documents of ten sentences and checked, `KBest` objects
(`documents`). All three must agree in the number of words and the sum of all features. CPU seconds
of this process, best of five.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rerank.commands.convert import Converted, write_converted
from rerank.corpus.documents import Documents
from rerank.files.lines import read_lines
from rerank.formats.table import opened
from rerank.notices import Notices
from rerank.runs.lists import KBestFile, Lists

RUNS = 5
WORDS, CANDIDATES, LENGTH = 5000, 100, 22
Figures = tuple[int, float]
"""Number of words and sum of all features."""


@dataclass
class Hypothesis:
    """A candidate as the obvious loop keeps it."""

    words: list[str]
    features: dict[str, list[float]]
    total: float


def obvious(path: Path) -> Figures:
    """Split every line of a Moses list into an object."""
    lists: dict[int, list[Hypothesis]] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            fields = [field.strip() for field in line.split("|||")]
            features: dict[str, list[float]] = {}
            for token in fields[2].split():
                if token.endswith(("=", ":")):
                    values = features.setdefault(token[:-1], [])
                else:
                    values.append(float(token))
            one = Hypothesis(fields[1].split(" "), features, float(fields[3]))
            lists.setdefault(int(fields[0]), []).append(one)
    return figures(lists)


def obvious_json(path: Path) -> Figures:
    """Make an object of every candidate of JSON lines."""
    lists: dict[int, list[Hypothesis]] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            sentence = json.loads(line)
            for candidate in sentence["candidates"]:
                features = {
                    name: value if isinstance(value, list) else [value]
                    for name, value in (candidate["features"] | candidate.get("sparse", {})).items()
                }
                result = Hypothesis(candidate["text"].split(" "), features, candidate["score"])
                lists.setdefault(sentence["id"], []).append(result)
    return figures(lists)


def figures(lists: dict[int, list[Hypothesis]]) -> Figures:
    """What all readers must agree on."""
    every = [one for of_sentence in lists.values() for one in of_sentence]
    values = (v for one in every for block in one.features.values() for v in block)
    return sum(len(one.words) for one in every), math.fsum(values)


def rows(path: Path) -> Figures:
    """Read the columns of a list."""
    known, lines = opened(path, Notices())
    chunks = list(known.read(lines, Notices(), source=str(path), clip=None))
    return counted([(chunk.texts, chunk.dense, chunk.sparse.values) for chunk in chunks])


def documents(path: Path, sentences: int) -> Figures:
    """Read the lists of documents of ten sentences, with all their checks."""
    starts = tuple(range(0, sentences, 10))
    parts = Documents(tuple(map(str, starts)), (*starts, sentences))
    result = list(KBestFile(path, Lists(path), documents=parts).read(Notices()))
    return counted([(kbest.texts, kbest.dense, kbest.sparse.values) for _, kbest in result])


def counted(columns: list) -> Figures:  # type: ignore[type-arg]  # of texts and features
    """What all readers must agree on; timed with the reading, as in the obvious loop."""
    words = sum(text.count(b" ") + 1 for texts, _, _ in columns for text in texts.to_list())
    return words, math.fsum(float(v.sum()) for _, *values in columns for v in values)


def best(read: Callable[[], Figures]) -> tuple[float, Figures]:
    """CPU seconds of the fastest run, and its result."""
    fastest = math.inf
    for _ in range(RUNS):
        start = time.process_time()
        result = read()
        fastest = min(fastest, time.process_time() - start)
    return fastest, result


def made_up(sentences: int) -> Iterator[bytes]:
    """Lines of a Moses list of random words."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 8))) for _ in range(WORDS)]
    for t in range(sentences):
        for _ in range(CANDIDATES):
            reordering = " ".join(f"{draw.uniform(-9, 0):.5f}" for _ in range(6))
            translation = " ".join(f"{draw.uniform(-30, 0):.4f}" for _ in range(4))
            yield (
                f"{t} ||| {' '.join(draw.choices(words, k=LENGTH))}  ||| "
                f"LexicalReordering0= {reordering} Distortion0= {draw.randint(-9, 0)} "
                f"LM0= {draw.uniform(-99, 0):.4f} WordPenalty0= -{LENGTH} PhrasePenalty0= 8 "
                f"TranslationModel0= {translation} ||| {draw.uniform(-30, 0):.4f}"
            ).encode()


def repeated(path: Path, sentences: int) -> Iterator[bytes]:
    """Lines of a Moses list, again and again with new ids, up to a number of sentences."""
    fields = [line.partition(b"|||") for line in read_lines(path, Notices())]
    ids = list(dict.fromkeys(int(field) for field, _, _ in fields))
    places = {sentence: place for place, sentence in enumerate(ids)}
    for start in range(0, sentences, len(ids)):
        for field, bars, rest in fields:
            sentence = start + places[int(field)]
            if sentence < sentences:
                yield b"%d %s%s" % (sentence, bars, rest)


def main() -> None:
    """Read, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kbest", nargs="*", default=[], type=Path)
    parser.add_argument("--sentences", type=int, default=500)
    options = parser.parse_args()
    n = options.sentences
    print("| list | MB | obvious loop, MB/s | rows, MB/s | × | documents, MB/s | × |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for source in options.kbest or [None]:
            name = source.name if source else "made up"
            path, lines = Path(folder, "list.nbest"), Path(folder, "list.jsonl")
            content = repeated(source, n) if source else made_up(n)
            path.write_bytes(b"".join(line + b"\n" for line in content))
            write_converted(Lists(str(path)), Converted(to="jsonl", out=str(lines)), Notices())
            for kind, file, loop in (("Moses", path, obvious), ("JSON", lines, obvious_json)):
                table_row(f"{name}, {kind}", file, loop, n)


def table_row(name: str, file: Path, loop: Callable[[Path], Figures], sentences: int) -> None:
    """Time one list and print its row."""
    size = file.stat().st_size / 1e6
    rows(file)  # compiles
    times, result = zip(
        best(lambda: loop(file)),
        best(lambda: rows(file)),
        best(lambda: documents(file, sentences)),
        strict=True,
    )
    if len({words for words, _ in result}) > 1 or not all(
        math.isclose(total, result[0][1], rel_tol=1e-9) for _, total in result
    ):
        raise SystemExit(f"{name}: the readers disagree: {result}")
    slow, columns, grouped = (size / seconds for seconds in times)
    print(
        f"| {name} | {size:.1f} | {slow:.0f} | {columns:.0f} | {columns / slow:.1f} | "
        f"{grouped:.0f} | {grouped / slow:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
