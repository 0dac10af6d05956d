#!/usr/bin/env python3
"""A stand-in for Moses: speaks a part of its command line, and takes its lists from a file.

    stand_in.py -config FILE [-weight-overwrite 'Name= v …'] [-weight-file FILE] [-show-weights]
                [-input-file FILE] [-n-best-list FILE N [distinct]] [-start-translation-id N]

The FILE of -config is a moses.ini of two sections: [weight], and [candidates] with the path of an
n-best list, whose totals do not count. It translates nothing: line t of the input, from 0, gets the
candidates with id t, sorted by the current weights, of equal ones the first first. Like Moses it
refuses weights of features that it does not have, leaves UnknownWordPenalty0 out of lists, writes
two blanks after a hypothesis, and for a sentence without candidates an empty line and no list.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

Features = dict[str, list[float]]
Candidate = tuple[str, Features]

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


def values_of(text: str) -> Features:
    """Values of each feature of `Name= v v Other= v`."""
    found: Features = {}
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


def current_weights(
    options: Mapping[str, list[str]], ini: Mapping[str, list[str]], row: Features
) -> Features:
    """The weights of the ini, over these those of the command line; row: that of a candidate."""
    dense = [name for name in row if "_" not in name]
    weights = values_of(" ".join(ini["weight"]))
    if unknown := weights.keys() - {*dense, UNTUNED}:
        sys.exit(f"stand_in: The following weights have no feature function: {sorted(unknown)}")
    for name, values in values_of(" ".join(options.get("weight-overwrite", []))).items():
        if name not in dense or len(values) != len(row[name]):
            sys.exit(f"stand_in: weight-overwrite: no such feature: {name}")
        weights[name] = values
    for file in options.get("weight-file", []):
        for line in text_of(file).splitlines():
            weights[line.split()[0]] = [float(line.split()[1])]
    return weights


def ranked(rows: Sequence[Candidate], weights: Features) -> list[tuple[Candidate, float]]:
    """Candidates with their totals, the best first."""
    totals = [
        sum(w * v for name in row for w, v in zip(weights.get(name, [0]), row[name], strict=True))
        for _, row in rows
    ]
    order = sorted(range(len(rows)), key=lambda n: -totals[n])
    return [(rows[n], totals[n]) for n in order]


def listed(
    t: int, rows: Sequence[tuple[Candidate, float]], size: int, *, distinct: bool
) -> Iterator[str]:
    """Lines of the list of a sentence."""
    texts: list[str] = []
    for (text, row), total in rows:
        if len(texts) < size and not (distinct and text in texts):
            texts.append(text)
            features = (" ".join([f"{name}=", *(f"{v:g}" for v in row[name])]) for name in row)
            yield f"{t} ||| {text}  ||| {' '.join(features)} ||| {total:.6g}\n"


def main(words: Sequence[str]) -> None:
    """Decode, or show the weights."""
    options = parsed(words)
    ini = sections((options.get("config") or options["f"])[0])
    lists: dict[int, list[Candidate]] = {}
    for line in text_of(ini["candidates"][0]).splitlines():
        sentence, text, features, *_ = line.split("|||")
        lists.setdefault(int(sentence), []).append((text.strip(), values_of(features)))
    row = next(iter(lists.values()))[0][1]
    weights = current_weights(options, ini, row)
    if "show-weights" in options:
        for name in row:
            if "_" not in name:
                print(f"{name}=", *(f"{value:g}" for value in weights[name]))
        print(UNTUNED, "UNTUNEABLE")
        return
    source = options.get("input-file") or options.get("i")
    n_lines = len((text_of(source[0]) if source else sys.stdin.read()).splitlines())
    (first,) = map(int, options.get("start-translation-id", ["0"]))
    path, size, *distinct = options.get("n-best-list", ["", "0"])
    result = [ranked(lists.get(t, []), weights) for t in range(n_lines)]
    listing = [
        line
        for t, rows in enumerate(result)
        for line in listed(first + t, rows, int(size), distinct=bool(distinct))
    ]
    if path == "-":
        print(end="".join(listing))
        return
    if path:
        packed = gzip.open if path.endswith(".gz") else open
        with packed(path, "wt", encoding="utf-8") as file:
            file.writelines(listing)
    print(end="".join(f"{rows[0][0][0] if rows else ''}\n" for rows in result))


if __name__ == "__main__":
    main(sys.argv[1:])
