"""The sound list in other formats, and changes of it there."""

import json
from collections.abc import Iterator
from itertools import groupby

from support.faults import Change, Changes, both

KBEST, DOCS, REF, SOURCE, WEIGHTS = "dev.kbest", "dev.docs", "dev.ref", "dev.src", "w.ini"


def _lists(old: bytes) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """Number of each sentence of a Moses list, and columns of its candidates."""
    rows = [[x.strip() for x in line.split("|||")] for line in old.decode().splitlines()]
    return groupby(rows, key=lambda row: row[0])


def as_jsonl(old: bytes) -> bytes:
    """A Moses list of the sound features as JSON lines."""
    lines = []
    for sentence, group in _lists(old):
        candidates = []
        for _, text, features, total in group:
            lm, tm0, tm1, wp = (float(token) for token in features.split() if token[-1] != "=")
            values = {"LM0": lm, "TM0": [tm0, tm1], "WP0": wp}
            candidates.append({"text": text, "score": float(total), "features": values})
        lines.append(json.dumps({"id": int(sentence), "candidates": candidates}))
    return "".join(line + "\n" for line in lines).encode()


def as_sockeye(old: bytes) -> bytes:
    """A Moses list as Sockeye's JSON."""
    lines = []
    for _, group in _lists(old):
        result = list(group)
        one = {
            "sentence_id": result[0][0],
            "translation": result[0][1],
            "translations": [row[1] for row in result],
            "scores": [[-float(row[3])] for row in result],
        }
        lines.append(json.dumps(one))
    return "".join(line + "\n" for line in lines).encode()


def as_fairseq(old: bytes) -> bytes:
    """A Moses list as output of fairseq-generate."""
    lines = []
    for sentence, group in _lists(old):
        lines.append(f"S-{sentence}\tsource {sentence}")
        for _, text, _, total in group:
            lines += [f"H-{sentence}\t{total}\t{text}", f"P-{sentence}\t-0.5 {total}"]
    return "".join(line + "\n" for line in lines).encode()


def sockeye(change: Change) -> Changes:
    """A change of the list of Sockeye, with weights for it."""
    return {KBEST: both(as_sockeye, change), WEIGHTS: "[weight]\nlogprob= 1\n"}


def fairseq(change: Change) -> Changes:
    """A change of the output of fairseq, with weights for it."""
    return {KBEST: both(as_fairseq, change), WEIGHTS: "[weight]\nlogprob= 0\nscore= 1\n"}


def jsonl(change: Change) -> Changes:
    """A change of the list as JSON lines."""
    return {KBEST: both(as_jsonl, change)}


def kbest(change: Change | str | bytes) -> Changes:
    """A change of the list."""
    return {KBEST: change}
