"""The decoders by name: what each serves, when it is exact, what it costs; and the choice of one.

A new decoder is one file, one row of `DECODERS` and one test. The table holds names of functions;
`load` imports them. A function that returns steps (`decoders.lockstep`) searches all documents of a
run together, one that returns paths searches one document after the other.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from decoders.beam import full_width
from decoders.lockstep import Steps, along, together
from decoders.problem import DocumentProblem, Path, ScoreError, UnsuitedDecoder

AUTO_WIDTH = 8

Finder: TypeAlias = Callable[..., Path | list[Path] | Steps]


@dataclass(frozen=True, slots=True)
class Decoder:
    """A row of the table.

    `highest_order` and `exact_to` are the highest orders that the decoder serves and on which it
    is exact: a number, `ANY` for all of them (unbounded ones too), `NONE` for not even 0.
    `options` are the keyword arguments it takes; one without `n_best` finds a single path.
    """

    name: str
    target: str  # "module:attribute"
    highest_order: float
    exact_to: float
    cost: str
    source: str
    options: tuple[str, ...] = ()

    def serves(self, order: int | None) -> bool:
        """Whether the decoder takes problems of this order."""
        return (ANY if order is None else order) <= self.highest_order

    def exact(self, order: int | None) -> bool:
        """Whether it finds the best path of every problem of this order."""
        return (ANY if order is None else order) <= self.exact_to

    @property
    def orders(self) -> str:
        """The orders served, for people: `up to 1`, `any`."""
        return "any" if self.highest_order == ANY else f"up to {self.highest_order}"

    def load(self) -> Finder:
        """The function itself."""
        module, _, attribute = self.target.partition(":")
        function: Finder = getattr(import_module(module), attribute)
        return function


ANY = float("inf")
NONE = -1

MEMO = "Eisenstein, The Document Context Language Model (memo)"
DECODERS: Mapping[str, Decoder] = {
    row.name: row
    for row in (
        Decoder(
            name="greedy",
            target="decoders.greedy:greedy_steps",
            highest_order=ANY,
            exact_to=0,
            cost="O(T K)",
            source=f"{MEMO}, eq. (18) with one hypothesis",
        ),
        Decoder(
            name="viterbi",
            target="decoders.viterbi:viterbi",
            highest_order=1,
            exact_to=1,
            cost="O(T K^2)",
            source=f"{MEMO}, eqs. (16)-(17); Viterbi (1967)",
        ),
        Decoder(
            name="beam",
            target="decoders.beam:beam_steps",
            highest_order=ANY,
            exact_to=0,
            cost="O(T B K)",
            source=f"{MEMO}, eq. (18) with the B best; Lowerre (1976)",
            options=("width", "n_best"),
        ),
        Decoder(
            name="exhaustive",
            target="decoders.exhaustive:exhaustive",
            highest_order=ANY,
            exact_to=ANY,
            cost="O(K^T), at most 10^6 paths",
            source="definition of the search problem",
            options=("n_best",),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """Paths found, best first; by which decoder; and whether no path can be better.

    first: the path of first candidates, to compare with.
    """

    paths: tuple[Path, ...]
    decoder: str
    exact: bool
    first: Path


def choose(
    order: int | None,
    requested: str = "auto",
    *,
    n_best: int = 1,
    table: Mapping[str, Decoder] = DECODERS,
) -> Decoder:
    """The decoder of this name, once it is sure to serve the order and to list `n_best` paths.

    `auto` is Viterbi where it is exact (order 0 and 1) and one path is wanted, else beam. `table`
    may hold more rows than ours. Errors: UnsuitedDecoder naming the decoders that fit.
    """
    if requested == "auto":
        requested = "viterbi" if order in (0, 1) and n_best == 1 else "beam"
    if requested not in table:
        near = difflib.get_close_matches(requested, table, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnsuitedDecoder(
            f"no decoder is called {requested!r}; {hint}there are auto, {', '.join(table)}"
        )
    row = table[requested]
    lists = [r for r in table.values() if n_best == 1 or "n_best" in r.options]
    if row.serves(order) and row in lists:
        return row
    fitting = ", ".join(r.name for r in lists if r.serves(order))
    depth = "all earlier sentences" if order is None else f"order {order}"
    lack = f"scores that depend on {depth}" if not row.serves(order) else "lists of several paths"
    raise UnsuitedDecoder(f"{row.name} does not serve {lack}; decoders that fit: {fitting}")


def decode(
    problem: DocumentProblem,
    name: str = "auto",
    *,
    width: int = AUTO_WIDTH,
    n_best: int = 1,
    table: Mapping[str, Decoder] = DECODERS,
) -> Decoded:
    """Best paths of a problem by the decoder of this name, and whether they are proved best.

    `width` is for decoders that have one; under `auto` it is at least `n_best`. Errors: those of
    `choose` and of the decoder.
    """
    return decode_all([problem], name, width=width, n_best=n_best, table=table)[0]


def decode_all(
    problems: Sequence[DocumentProblem],
    name: str = "auto",
    *,
    width: int = AUTO_WIDTH,
    n_best: int = 1,
    table: Mapping[str, Decoder] = DECODERS,
) -> list[Decoded]:
    """What `decode` finds for each problem, searched together where the decoder allows.

    Problems may differ in order, and under `auto` in decoder. Errors: those of `decode`; a
    ScoreError with `problem`, the position here.
    """
    rows = [choose(problem.order, name, n_best=n_best, table=table) for problem in problems]
    if name == "auto":
        width = max(width, n_best)
    wanted = {"width": width, "n_best": n_best}
    searches = [_search(problem, row, wanted) for problem, row in zip(problems, rows, strict=True)]
    firsts = [along(problem, [0] * len(problem.lengths)) for problem in problems]
    try:
        found = together([*problems, *problems], [*searches, *firsts])
    except ScoreError as fault:
        if fault.problem is not None:
            fault.problem %= len(problems)
        raise
    return [
        Decoded(tuple(paths), row.name, exact=_exact(problem, row, width), first=first)
        for problem, row, paths, (first,) in zip(
            problems, rows, found, found[len(problems) :], strict=False
        )
    ]


def _search(problem: DocumentProblem, row: Decoder, wanted: Mapping[str, int]) -> Steps:
    """Steps of any decoder; one that has none ends before the first."""
    found = row.load()(problem, **{option: wanted[option] for option in row.options})
    if isinstance(found, Generator):
        found = yield from found
    return [found] if isinstance(found, Path) else found


def _exact(problem: DocumentProblem, row: Decoder, width: int) -> bool:
    """Whether no path can be better: by the order, or by a beam that keeps every prefix."""
    unpruned = "width" in row.options and width >= full_width(problem.lengths)
    return row.exact(problem.order) or unpruned
