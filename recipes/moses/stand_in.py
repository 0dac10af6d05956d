#!/usr/bin/env python3
"""A stand-in for Moses: speaks a part of its command line, and takes its lists from a file.

    stand_in.py -config FILE [-weight-overwrite 'Name= v …'] [-weight-file FILE] [-show-weights]
                [-input-file FILE] [-n-best-list FILE N [distinct]] [-start-translation-id N]

FILE of -config is a moses.ini of two sections: [weight], and [candidates] with the path of an n-best
list, whose totals do not count. It translates nothing: line t of the input gets the candidates with
id t, sorted by the current weights, of equal ones the first first. Like Moses it refuses weights of
features that it does not have, leaves UnknownWordPenalty0 out of lists, writes two blanks after a
hypothesis, and neither a list nor words for a sentence without candidates.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

UNTUNED = "UnknownWordPenalty0"
KNOWN = {"config", "weight-overwrite", "weight-file", "show-weights", "input-file", "n-best-list"}
KNOWN |= {"inputtype", "threads", "v", "start-translation-id", "f", "i"}


def parsed(words: Sequence[str]) -> dict[str, list[str]]:
    """Values of each option."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("-") and word[1:2] not in set("0123456789") and word != "-":
            values = found.setdefault(word.lstrip("-"), [])
        else:
            values.append(word)
    if unknown := found.keys() - KNOWN:
        sys.exit(f"stand_in: Unrecognised parameter: {sorted(unknown)}")
    return found


def sections(path: str) -> dict[str, list[str]]:
    """Lines of each section of an ini, without comments."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("["):
            lines = found.setdefault(text.strip("[]"), [])
        elif text:
            lines.append(text)
    return found


def values_of(text: str) -> dict[str, list[float]]:
    """Values of each feature of `Name= v v Other= v`."""
    found: dict[str, list[float]] = {}
    values: list[float] = []
    for word in text.split():
        if word.endswith("="):
            values = found.setdefault(word[:-1], [])
        else:
            values.append(float(word))
    return found


def text_of(path: str) -> str:
    """Text of a file, packed or not."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return str(file.read())


def main(words: Sequence[str]) -> None:
    """Decode, or show the weights."""
    options = parsed(words)
    ini = sections((options.get("config") or options["f"])[0])
    weights = values_of(" ".join(ini["weight"]))
    lists: dict[int, list[tuple[str, dict[str, list[float]]]]] = {}
    for line in text_of(ini["candidates"][0]).splitlines():
        sentence, text, features, *_ = line.split("|||")
        lists.setdefault(int(sentence), []).append((text.strip(), values_of(features)))
    features = next(iter(lists.values()))[0][1]
    dense = [name for name in features if "_" not in name]
    if unknown := weights.keys() - {*dense, UNTUNED}:
        sys.exit(f"stand_in: The following weights have no feature function: {sorted(unknown)}")
    for name, values in values_of(" ".join(options.get("weight-overwrite", []))).items():
        if name not in dense or len(values) != len(features[name]):
            sys.exit(f"stand_in: weight-overwrite: no such feature: {name}")
        weights[name] = values
    for file in options.get("weight-file", []):
        for line in text_of(file).splitlines():
            weights[line.split()[0]] = [float(line.split()[1])]
    if "show-weights" in options:
        for name in dense:
            print(f"{name}=", *(f"{value:g}" for value in weights[name]))
        print(UNTUNED, "UNTUNEABLE")
        return
    source = options.get("input-file") or options.get("i")
    n_lines = len((text_of(source[0]) if source else sys.stdin.read()).splitlines())
    (first,) = map(int, options.get("start-translation-id", ["0"]))
    path, size, *distinct = options.get("n-best-list", ["", "0"])
    listing: list[str] = []
    best: list[str] = []
    for t in range(n_lines):
        scored = [
            (-sum(w * v for name in row for w, v in zip(weights.get(name, ()), row[name])), n)
            for n, (_, row) in enumerate(lists.get(t, []))
        ]
        ranked = [(lists[t][n], -score) for score, n in sorted(scored)]
        best.append(ranked[0][0][0] if ranked else "")
        seen: set[str] = set()
        for (text, row), total in ranked:
            if len(seen) < int(size) and not (distinct and text in seen):
                seen.add(text if distinct else str(len(seen)))
                column = " ".join(
                    word for name in row for word in (f"{name}=", *(f"{v:g}" for v in row[name]))
                )
                listing.append(f"{first + t} ||| {text}  ||| {column} ||| {total:.6g}\n")
    if path == "-":
        print(end="".join(listing))
        return
    if path:
        packed = gzip.open if path.endswith(".gz") else open
        with packed(path, "wt", encoding="utf-8") as file:
            file.writelines(listing)
    print(end="".join(text + "\n" for text in best))


if __name__ == "__main__":
    main(sys.argv[1:])
