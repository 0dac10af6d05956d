"""Decoding by name: a decoder is chosen and run on many documents, its paths compared with others.

The comparison says which path is best, or the best that is known, and by how much.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from inspect import isgeneratorfunction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from decoders.batching import Steps, follow, run_batch
from decoders.beam import full_width
from decoders.marginals import rng_for
from decoders.problem import DocumentProblem, Path, ScoreError, UnsuitedDecoder
from decoders.result import Direction, SearchResult
from decoders.reversal import (
    ReversedUtility,
    direction_of,
    in_document_order,
    reversed_fault,
    reversed_problem,
)
from decoders.sweeps import Choices, best_starts, sweeps
from decoders.table import DECODERS, EVERYWHERE, SEED, Decoder, Finder, Options, choose
from decoders.viterbi import affordable, viterbi

if TYPE_CHECKING:
    from decoders.mbr import Utility

NOTHING = Options()
NO_FLAGS: Mapping[str, str] = MappingProxyType({})


def decode(
    problem: DocumentProblem,
    name: str = "auto",
    options: Options = NOTHING,
    *,
    document: str = "",
    utility: Utility | None = None,
    table: Mapping[str, Decoder] = DECODERS,
) -> SearchResult:
    """Best paths of a problem found by the decoder of this name.

    Errors: those of `choose`, `check_options` and of the decoder.
    """
    utilities = None if utility is None else [utility]
    return decode_all(
        [problem], name, options, documents=[document], utilities=utilities, table=table
    )[0]


def decode_all(
    problems: Sequence[DocumentProblem],
    name: str = "auto",
    options: Options = NOTHING,
    *,
    documents: Sequence[str] | None = None,
    utilities: Sequence[Utility] | None = None,
    table: Mapping[str, Decoder] = DECODERS,
) -> list[SearchResult]:
    """Results of `decode` for each problem, searched together where the decoder allows.

    documents: their ids, from which and from the seed random numbers come; utilities: of each, for
    `mbr`. Problems may differ in order, and under `auto` in decoder. A problem that depends on
    later sentences only is searched from its last sentence on, also by its rules of sums and ties
    (`decoders.problem`); `SearchResult.direction` says so. Errors: those of `decode`; a ScoreError
    with its `position` here.
    """
    documents = [""] * len(problems) if documents is None else documents
    directions = list(map(direction_of, problems))
    searched = list(problems)
    aims: list[Utility | None] = list(utilities or ()) or [None for _ in problems]
    for d, (problem, direction) in enumerate(zip(problems, directions, strict=True)):
        if direction is Direction.REVERSED:
            searched[d] = reversed_problem(problem)
            aims[d] = ReversedUtility.of(aims[d], len(problem.lengths))
    rows = [choose(problem, name, n_best=options.n_best, table=table) for problem in searched]
    for problem, row in zip(searched, rows, strict=True):
        check_options(row, options, problem.order, auto=name == "auto", table=table)
    both = {d: searched[d] for d, one in enumerate(directions) if one is Direction.BOTH}
    starts = best_starts(both, options.beam_width) if both else {}
    searches: list[Steps[Any]] = []
    for d, (problem, row) in enumerate(zip(searched, rows, strict=True)):
        own = _arguments(row, options, documents[d], aims[d], starts.get(d))
        searches.append(_steps(row.load(), problem, own))
    exact = [_exact(problem, row, options) for problem, row in zip(searched, rows, strict=True)]
    owners = list(range(len(searched)))
    starts = best_starts(both, options.gap) if both and options.gap is not None else {}
    for d, problem in enumerate(searched):
        more = _others(problem, exact[d], options, starts.get(d))
        searches += more
        owners += [d] * len(more)
    try:
        paths = run_batch([searched[d] for d in owners], searches)
    except ScoreError as fault:
        if fault.position is not None:
            fault.position = owners[fault.position]
            if directions[fault.position] is Direction.REVERSED:
                n = len(searched[fault.position].lengths)
                raise reversed_fault(fault, n) from None
        raise
    found: list[list[SearchResult]] = [[] for _ in searched]
    for d, path in zip(owners, paths, strict=True):
        found[d].append(_result(path))
    results = []
    for problem, row, proved, (own_result, *rest) in zip(searched, rows, exact, found, strict=True):
        one = _compared(own_result, rest)
        optimal = proved or (options.gap is not None and affordable(problem))
        results.append(replace(one, decoder=row.name, exact=proved, optimal=optimal))
    return [
        in_document_order(one)
        if direction is Direction.REVERSED
        else replace(one, direction=direction)
        for one, direction in zip(results, directions, strict=True)
    ]


def check_options(
    row: Decoder,
    options: Options,
    order: int | None,
    *,
    auto: bool = False,
    table: Mapping[str, Decoder] = DECODERS,
    flags: Mapping[str, str] = NO_FLAGS,
) -> None:
    """UnsuitedDecoder for an option that has no effect here; ScaleMissing.

    `EVERYWHERE` lists options that every decoder accepts; `auto` accepts a width too, since it may
    choose a decoder without one. table: the decoders that messages name; flags: names of options
    in messages.
    """
    given = options.given()
    for name in (one for one in given if one not in EVERYWHERE):
        flag = flags.get(name, name)
        if not row.takes(name) and not (auto and name == "width"):
            raise UnsuitedDecoder(
                f"{row.name} does not use {flag}; it is for {_takers(name, table)}"
            )
        if row.takes(name) and row.idle(name, order):
            raise UnsuitedDecoder(
                f"{row.name} uses {flag} above order 1 only; up to order 1 it sums over all paths"
            )
    if row.own_scale and {"alpha", "spread"} <= given.keys():
        alpha, spread = (flags.get(name, name) for name in ("alpha", "spread"))
        raise UnsuitedDecoder(f"{alpha} is the scale itself; leave out {spread}")
    missing = options.alpha is None and options.scale is None
    if row.scaled(given) and missing and not row.own_scale:
        raise ScaleMissing(f"{row.name} works with p ∝ exp(alpha · score) and needs alpha")


class ScaleMissing(UnsuitedDecoder):
    """A decoder that needs the scale alpha, which is not given."""


def _takers(option: str, table: Mapping[str, Decoder]) -> str:
    """Names of the decoders that use an option."""
    return ", ".join(row.name for row in table.values() if row.takes(option))


def _arguments(
    row: Decoder,
    options: Options,
    document: str,
    utility: Utility | None,
    start: Choices | None,
) -> dict[str, object]:
    """Arguments of a decoder's function."""
    seed = SEED if options.seed is None else options.seed
    arguments = {
        "width": options.beam_width,
        "n_best": options.n_best,
        "alpha": None if row.own_scale else options.scale,
        **options.given(),
        "utility": utility,
        "start": start,
        "rng": rng_for(seed, document) if "rng" in row.options else None,
    }
    return {name: arguments[name] for name in row.options if name in arguments}


def _steps(decoder: Finder, problem: DocumentProblem, options: Mapping[str, Any]) -> Steps[Any]:
    """Steps of a search by a decoder's function, which has steps, or returns what it found."""
    if isgeneratorfunction(decoder):
        steps: Steps[Any] = decoder(problem, **options)
        return steps

    def call() -> Steps[Any]:
        found = decoder(problem, **options)
        return (yield from found) if isinstance(found, Generator) else found

    return call()


def _result(found: SearchResult | Path | Sequence[Path]) -> SearchResult:
    """What a decoder found: a result, one path, or paths."""
    if isinstance(found, SearchResult):
        return found
    return SearchResult((found,) if isinstance(found, Path) else tuple(found))


def _exact(problem: DocumentProblem, row: Decoder, options: Options) -> bool:
    """Whether no path can be better: by the order, or by a beam that keeps every context."""
    if options.merge not in (None, "max"):
        return False
    complete = options.beam_width >= full_width(problem.lengths, problem.order)
    complete = complete and options.threshold is None
    return row.exact(problem.order) or (row.width_proves and complete and problem.causal)


def _others(
    problem: DocumentProblem, exact: bool, options: Options, start: Choices | None
) -> list[Steps[Any]]:
    """Searches to compare with: the first candidates, and one for the best known path."""
    searches: list[Steps[Any]] = [follow.steps(problem, [0] * len(problem.lengths))]
    if exact or options.gap is None:
        return searches
    if affordable(problem):
        return [*searches, viterbi.steps(problem)]
    rng = rng_for(SEED, "")  # asked for by no sweep without a scale
    return [*searches, sweeps.steps(problem, rng=rng, start=start, width=options.gap)]


def _compared(found: SearchResult, others: Sequence[SearchResult]) -> SearchResult:
    """The result of a search beside those of others, first the path of the first candidates."""
    posterior = found.posterior
    return replace(
        found,
        baseline_score=others[0].score,
        best_score=max(one.score for one in (found, *others)),
        log_normaliser=None if posterior is None or posterior.extinct else posterior.log_normaliser,
    )
