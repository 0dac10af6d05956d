"""How the documents of a run are searched: the decoder is chosen, said, and run on each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decoders.problem import ScoreError, UnsuitedDecoder, path_score
from decoders.search import AUTO_WIDTH, choose
from decoders.search import decode as search
from rerank.errors import RerankError, UsageError
from rerank.features import Document, Space, prepare
from rerank.kbest import KBest
from rerank.pipeline.lists import Announce, Opened
from rerank.weights import Weights


@dataclass(frozen=True, slots=True)
class Search:
    """How documents are searched: a decoder's name, or `auto`, and the width of a beam."""

    method: str = "auto"
    beam: int = AUTO_WIDTH

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise UsageError(f"--beam {self.beam}: expected a width of at least 1")


AUTO = Search()


@dataclass(frozen=True, slots=True)
class Searched:
    """A document's path: choices of the sentences with candidates, scores, and by whom."""

    choices: tuple[int, ...]
    score: float
    baseline_score: float
    exact: bool
    decoder: str


def searched(document: Document, weights: NDArray[np.float64], how: Search) -> Searched:
    """The best path of a document that the search finds; RerankError for scores that are none."""
    try:
        problem = document.problem(weights)
        found = search(problem, how.method, width=how.beam)
        first = path_score(problem, document.first())
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {how.method}: {fault}") from None
    except ScoreError as fault:
        raise RerankError(f"document {document.name!r}: {fault}") from None
    path = found.paths[0]
    return Searched(path.choices, path.score, first, found.exact, found.decoder)


def prepared(
    opened: Opened, kbest: KBest, name: str, space: Space, weights: Weights | None
) -> Document:
    """A document scored by all scorers, its sparse features weighted."""
    return prepare(kbest, name, opened.scorers, space, weights.sparse if weights else {})


def say_search(opened: Opened, how: Search, announce: Announce) -> None:
    """Which decoder will run, from the orders of the scorers; refuses one that cannot."""
    orders = [scorer.order for scorer in opened.scorers]
    order = None if None in orders else max([0, *(o for o in orders if o is not None)])
    try:
        row = choose(order, how.method)
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {how.method}: {fault}") from None
    width = f" of width {how.beam}" if "width" in row.options else ""
    depth = "unbounded" if order is None else f"order {order}"
    exact = "exact" if row.exact(order) else "not exact"
    announce(f"search: {row.name}{width}, {exact} for a problem of {depth}, {row.cost}")
