"""Passages of a text, and blocks of them whose last sentences are candidates of each other.

What Ghosh et al. (2016), §4.4, leave open is decided so: passages are cut from the beginning of a
document, one after the other, and share no sentence; a rest that is shorter is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lm.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive sentences of a document: the index of the first in the text, and the number.

    topic: of the last sentence, where topics are known.
    """

    document: int
    first: int
    size: int
    topic: int | None = None

    @property
    def last(self) -> int:
        """Index of the last sentence in the text."""
        return self.first + self.size - 1


Block = Sequence[Passage]


def passages_of(
    corpus: Corpus, size: int, topics: NDArray[np.int32] | None = None
) -> list[Passage]:
    """Passages of `size` sentences of each document; topics: (S,) those of the sentences."""
    bounds = corpus.documents.tolist()
    last = size - 1
    return [
        Passage(d, first, size, None if topics is None else int(topics[first + last]))
        for d, (begin, end) in enumerate(pairwise(bounds))
        for first in range(begin, end - size + 1, size)
    ]


def separate(
    passages: Sequence[Passage], size: int, most: int, rng: np.random.Generator
) -> list[Block]:
    """At most `most` blocks of passages from `size` different documents each.

    As in the paper, where a block has one random passage from each of 50 random paragraphs. Each
    block takes a random passage from the documents that have the most left, ties at random, which
    makes as many blocks as there can be.
    """
    left: dict[int, list[Passage]] = {}
    for k in rng.permutation(len(passages)).tolist():
        left.setdefault(passages[k].document, []).append(passages[k])
    blocks: list[Block] = []
    while len(left) >= size and len(blocks) < most:
        shuffled = [list(left)[k] for k in rng.permutation(len(left)).tolist()]
        chosen = sorted(shuffled, key=lambda d: -len(left[d]))[:size]
        blocks.append([left[d].pop() for d in chosen])
        left = {d: own for d, own in left.items() if own}
    return blocks


def consecutive(
    passages: Sequence[Passage], size: int, most: int, rng: np.random.Generator
) -> list[Block]:
    """At most `most` blocks, chosen at random, of passages that follow each other in the text.

    Candidates are about the same things, which makes the choice harder. A block may hold several
    documents.
    """
    blocks = [passages[i : i + size] for i in range(0, len(passages) - size + 1, size)]
    chosen = rng.permutation(len(blocks))[:most].tolist()
    return [blocks[b] for b in sorted(chosen)]


def of_one_topic(
    passages: Sequence[Passage], size: int, most: int, rng: np.random.Generator
) -> list[Block]:
    """At most `most` blocks, chosen at random, of passages whose last sentences have one topic.

    The second experiment of §4.4, where all candidates come from the same topic. A topic's
    passages are dealt in random order; a rest that fills no block is left out.
    """
    of_topics: dict[int | None, list[Passage]] = {}
    for k in rng.permutation(len(passages)).tolist():
        of_topics.setdefault(passages[k].topic, []).append(passages[k])
    blocks = [
        own[i : i + size] for own in of_topics.values() for i in range(0, len(own) - size + 1, size)
    ]
    return [blocks[b] for b in rng.permutation(len(blocks))[:most].tolist()]


CANDIDATES: Mapping[
    str, Callable[[Sequence[Passage], int, int, np.random.Generator], list[Block]]
] = {"separate": separate, "consecutive": consecutive, "same-topic": of_one_topic}
