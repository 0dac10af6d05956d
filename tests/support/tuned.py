"""What tuned weights reach: sacrebleu's scores of the lines that `rerank decode` writes."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEUScore
from support.world import World

LISTS = "--kbest dev.kbest --docs dev.docs"
TUNE = f"tune-mert {LISTS} --ref dev.ref --out out.json"
FROM_START = f"{TUNE} --start start.json"
PAIRS = "--pair-scores pairs=dev.pairs"


def made(world: World, name: str = "out.json") -> Any:
    """The provenance of a weights file."""
    return world.json(name)["provenance"]


def dense(world: World, name: str = "out.json") -> dict[str, tuple[float, ...]]:
    return {label: tuple(w) for label, w in world.json(name)["weights"].items()}


def columns(world: World, name: str = "out.json") -> list[float]:
    """All dense weights, in their order."""
    return [weight for own in dense(world, name).values() for weight in own]


def decoded(world: World, *more: object, weights: str = "out.json") -> list[str]:
    """Lines that decoding of the development set writes, without trailing `-q` messages."""
    return world.ok(f"decode {LISTS} --weights {weights} --out - -q", *more).lines


def bleu(lines: Sequence[str], *references: Sequence[str], tokenize: str = "none") -> BLEUScore:
    return sacrebleu.corpus_bleu(
        [*lines], [[*r] for r in references], tokenize=tokenize, force=True
    )


def first_candidates(world: World) -> list[str]:
    """The first candidate of every sentence; empty where there is none."""
    first = {t: own[0][0] for t, own in world.lists().items()}
    return [first.get(t, "") for t in range(len(world.lines("dev.docs")))]


# Objectives
@dataclass
class Lines:
    """Some sentences: hypotheses, references, and another tool's numbers of these hypotheses."""

    hypotheses: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    def score(self, name: str) -> float:
        """Larger is better."""
        if name == "m":
            return sum(self.numbers) / max(len(self.numbers), 1)
        if name == "ter":
            return -sacrebleu.corpus_ter(self.hypotheses, [self.references]).score
        if name == "chrf":
            return float(sacrebleu.corpus_chrf(self.hypotheses, [self.references]).score)
        return float(bleu(self.hypotheses, self.references).score)

    @property
    def ratio(self) -> float:
        own = bleu(self.hypotheses, self.references)
        return own.sys_len / own.ref_len


def lines_of(world: World, hypotheses: Sequence[str], names: Iterable[str] | None = None) -> Lines:
    """All lines of an output, or those of some documents."""
    number: dict[tuple[int, str], float] = {}
    for line, score in zip(world.lines("dev.kbest"), world.lines("dev.m"), strict=True):
        s, text, *_ = line.split(" ||| ")
        number[int(s), text] = float(score)
    docs, lines = world.lines("dev.docs"), Lines()
    wanted = {*docs} if names is None else {*names}
    for t, (text, reference) in enumerate(zip(hypotheses, world.lines("dev.ref"), strict=True)):
        if docs[t] in wanted:
            lines.hypotheses.append(text)
            lines.references.append(reference)
            if (t, text) in number:
                lines.numbers.append(number[t, text])
    return lines


@dataclass(frozen=True)
class Objective:
    """What options of the command maximise, by the words of its help."""

    metrics: Mapping[str, float] = field(default_factory=lambda: {"bleu": 1.0})
    length: str | float = "free"
    price: float = 5.0

    @property
    def options(self) -> list[str]:
        found = [f"--objective={name}={weight}" for name, weight in self.metrics.items()]
        found += ["--metric=m=dev.m"] * ("m" in self.metrics)
        priced = [f"--length-ratio={self.length}", f"--length-price={self.price}"]
        return found + ([] if self.length == "free" else priced)

    def value(
        self, world: World, hypotheses: Sequence[str], names: Iterable[str] | None = None
    ) -> float:
        """The value of an output, of all documents or of some of them."""
        whole = lines_of(world, hypotheses, names)
        result = sum(weight * whole.score(name) for name, weight in self.metrics.items())
        if self.length == "free":
            return result
        kept = lines_of(world, first_candidates(world), names).ratio
        return result - self.price * abs(
            whole.ratio - (kept if self.length == "keep" else 1.0 * float(self.length))
        )


# Rounds that a tuning reports
@dataclass(frozen=True)
class Round:
    """BLEU and objective of a round, predicted (None of the start) and decoded."""

    predicted: float | None
    decoded: float
    value: float
    predicted_value: float | None


def rounds(messages: str) -> list[Round]:
    """The rounds that were reported, in order; the value is BLEU where nothing else is said."""
    result = list[Round]()
    for number, line in re.findall(r"^round (\d+): (.*)$", messages, re.MULTILINE):
        assert int(number) == len(result)
        real = re.search(r"decoded BLEU ([\d.]+)", line)
        before = re.search(r"predicted BLEU ([\d.]+)", line)
        value = re.search(r"objective (?:predicted (-?[\d.]+), )?decoded (-?[\d.]+\d)", line)
        assert real
        both = (value[1], value[2]) if value else (before and before[1], real[1])
        ahead, there = (None if one is None else float(one) for one in both)
        assert there is not None
        result.append(Round(before and float(before[1]), float(real[1]), there, ahead))
    return result


def kept(messages: str) -> int:
    """The round whose weights were kept."""
    (number,) = re.findall(r"^kept: round (\d+)$", messages, re.MULTILINE)
    return int(number)


# Enumeration
def every_choice(world: World, names: Sequence[str], most: float = math.pi) -> list[list[str]]:
    """Outputs of all directions of the weights of two features: one of each interval of angles.

    Candidates of a list change places where the weights are orthogonal to their difference.
    most: largest angle between the weights and the first feature's axis
    """
    lists: dict[int, list[tuple[str, tuple[float, float]]]] = {}
    for t, candidates in world.lists().items():
        for text, features, _ in candidates:
            values = dict(re.findall(r"(\w+)= (-?[\d.]+)", features))
            both = float(values[names[0]]), float(values[names[1]])
            lists.setdefault(t, []).append((text, both))
    angles = {0.0, most, 2 * math.pi - most}
    for own in lists.values():
        for (_, a), (_, b) in combinations(own, 2):
            normal = math.atan2(b[0] - a[0], a[1] - b[1])
            angles |= {normal % (2 * math.pi), (normal + math.pi) % (2 * math.pi)}
    places = sorted(angles)
    middles = [(a + b) / 2 for a, b in zip(places, [*places[1:], 2 * math.pi], strict=True)]
    n = len(world.lines("dev.docs"))
    result = []
    for angle in (middle for middle in middles if min(middle, 2 * math.pi - middle) <= most):
        weights = np.array([math.cos(angle), math.sin(angle)])
        chosen = {
            t: own[int(np.argmax([weights @ v for _, v in own]))][0] for t, own in lists.items()
        }
        result.append([chosen.get(t, "") for t in range(n)])
    return [list(own) for own in dict.fromkeys(map(tuple, result))]


def two_features(world: World, change: Callable[[str], str] = lambda line: line) -> None:
    """Leave the second value of TM0 out of the lists, and start both others at 0.5."""
    lines = world.lines("dev.kbest")
    world.write("dev.kbest", [change(re.sub(r"(TM0= \S+) \S+", r"\1", line)) for line in lines])
    world.weights("start.json", {"LM0": 0.5, "TM0": 0.5})


def mark_references(world: World, weight: float) -> list[str]:
    """Make the first candidates the references, and a feature `same` say which ones these are.

    Returns the references; the start gives the feature this weight.
    """
    first = first_candidates(world)
    lines = [
        f"{t} ||| {text} ||| same= {float(text == first[t])} {features} ||| 0"
        for t, own in world.lists().items()
        for text, features, _ in own
    ]
    world.write("dev.kbest", lines)
    world.write("dev.ref", [text or "it" for text in first])
    world.weights("start.json", {"same": weight})
    return first
