"""How the documents of a run are searched: the decoder is chosen, said, and run on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from decoders.problem import ScoreError, UnsuitedDecoder
from decoders.search import AUTO_WIDTH, choose, decode_all
from rerank.errors import RerankError, UsageError
from rerank.features import Document
from rerank.pipeline.lists import Announce, Opened

DEAR = 4.0


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


def searched(
    documents: Sequence[Document], weights: NDArray[np.float64], how: Search
) -> list[Searched]:
    """The best path of each document that the search finds, all of them searched together.

    RerankError for scores that are none.
    """
    problems = [document.problem(weights) for document in documents]
    try:
        found = decode_all(problems, how.method, width=how.beam)
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {how.method}: {fault}") from None
    except ScoreError as fault:
        named = "" if fault.problem is None else f"document {documents[fault.problem].name!r}: "
        raise RerankError(f"{named}{fault}") from None
    return [
        Searched(one.paths[0].choices, one.paths[0].score, one.first.score, one.exact, one.decoder)
        for one in found
    ]


def say_search(opened: Opened, how: Search, announce: Announce) -> Search:
    """The search as it will run, chosen by the orders of the scorers and their cost, and said.

    `auto` is exact where that takes at most `DEAR` times the passes over the lists that a
    beam takes. UsageError for a decoder that cannot serve.
    """
    orders = [scorer.order for scorer in opened.scorers]
    order = None if None in orders else max([0, *(o for o in orders if o is not None)])
    try:
        row = choose(order, how.method)
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {how.method}: {fault}") from None
    priced = ""
    if how.method == "auto" and row.exact(order):
        passes = _passes(opened)
        if passes > DEAR * how.beam:
            how = replace(how, method="beam")
            row = choose(order, how.method)
            priced = f"; --search viterbi is exact, in {passes:.0f} passes over the lists"
    width = f" of width {how.beam}" if "width" in row.options else ""
    depth = "unbounded" if order is None else f"order {order}"
    exact = "exact" if row.exact(order) else "not exact"
    announce(f"search: {row.name}{width}, {exact} for a problem of {depth}, {row.cost}{priced}")
    return how


def _passes(opened: Opened) -> float:
    """Passes over the lists that exact search takes, of the scorer that takes most."""
    if all(scorer.passes(2) == scorer.passes(1) for scorer in opened.scorers):
        return 1.0  # whatever K is
    k = opened.survey.lines / max(1, opened.documents.n_lines)
    return max(scorer.passes(k) for scorer in opened.scorers)
