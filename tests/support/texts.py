"""Texts to train on: documents about one thing each, in which the order of words is fixed."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from support.world import World

TRAIN = "train-lm --train train.txt --valid valid.txt --out lm --embed 6 --hidden 8 --streams 4"
TRAIN += " --epochs 1 --learning-rate 0.05 --precision float32 --device cpu"


def with_texts(world: World, documents: int = 24, others: int = 6) -> None:
    """`train.txt` and `valid.txt`: documents of four sentences."""
    rng = np.random.default_rng(1)
    for name, n in (("train.txt", documents), ("valid.txt", others)):
        lines: list[str] = []
        for _ in range(n):
            thing = rng.choice(["lamp", "boat", "king", "moon"])
            lines += [f"the {thing} is {how}" for how in rng.choice(["lit", "dark", "old"], 4)]
            lines += [""]
        world.write(name, lines)


def documents_of(lines: Sequence[str]) -> list[list[str]]:
    """Sentences of each document of a text with blank lines between documents."""
    return [one.split("\n") for one in "\n".join(lines).strip("\n").split("\n\n")]


def unigram_perplexity(train: str, text: str) -> float:
    """Of a text under the frequencies of another, `</s>` counted."""
    one, other = (
        Counter(w for line in lines.splitlines() if line for w in (*line.split(), "</s>"))
        for lines in (train, text)
    )
    nats = -sum(n * math.log(one[word] / one.total()) for word, n in other.items())
    return math.exp(nats / other.total())
