"""Decoding by name: a decoder is chosen and run on many documents, its paths compared with others.

The comparison says which path is best, or the best that is known, and by how much.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from decoders.batching import Steps, follow, run_batch
from decoders.beam import full_width
from decoders.marginals import rng_for
from decoders.mbr import Utility
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
from decoders.table import DECODERS, SEED, Decoder, Finder, Options, choose
from decoders.viterbi import affordable, viterbi

EVERYWHERE = frozenset({"alpha", "seed"})  # accepted by decoders that do not use them, too
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
    with `problem`, the position here.
    """
    documents = [""] * len(problems) if documents is None else documents
    extras: Sequence[Utility | None] = utilities or [None] * len(problems)
    directions = list(map(direction_of, problems))
    turned = [
        (reversed_problem(problem), ReversedUtility.of(utility, len(problem.lengths)))
        if direction is Direction.REVERSED
        else (problem, utility)
        for problem, utility, direction in zip(problems, extras, directions, strict=True)
    ]
    try:
        found = _decoded(turned, directions, name, options, documents, table)
    except ScoreError as fault:
        if fault.problem is None or directions[fault.problem] is not Direction.REVERSED:
            raise
        raise reversed_fault(fault, len(problems[fault.problem].lengths)) from None
    return [
        in_document_order(one)
        if direction is Direction.REVERSED
        else replace(one, direction=direction)
        for one, direction in zip(found, directions, strict=True)
    ]


def _decoded(
    given: Sequence[tuple[DocumentProblem, Utility | None]],
    directions: Sequence[Direction],
    name: str,
    options: Options,
    documents: Sequence[str],
    table: Mapping[str, Decoder],
) -> list[SearchResult]:
    """Results for problems in the order of their search, each with a utility if there is one."""
    problems = [problem for problem, _ in given]
    rows = [choose(p, name, n_best=options.n_best, table=table) for p in problems]
    for problem, row in zip(problems, rows, strict=True):
        check_options(row, options, problem.order, auto=name == "auto", table=table)
    both = {d: problems[d] for d, one in enumerate(directions) if one is Direction.BOTH}
    starts = best_starts(both, options.beam_width)
    searches = [
        _search(
            row.load(), problem, **_arguments(row, options, documents[d], utility, starts.get(d))
        )
        for d, ((problem, utility), row) in enumerate(zip(given, rows, strict=True))
    ]
    exact = [_exact(p, row, options) for p, row in zip(problems, rows, strict=True)]
    starts = {} if options.gap is None else best_starts(both, options.gap)
    others = [
        _others(problem, proved, options, starts.get(d))
        for d, (problem, proved) in enumerate(zip(problems, exact, strict=True))
    ]
    found = _together(problems, searches, others)
    return [
        _judged(problem, row.name, proved, one, rest, compared=options.gap is not None)
        for problem, row, proved, (one, *rest) in zip(problems, rows, exact, found, strict=True)
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
        if row.takes(name) and row.idle(name, given, order):
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


def _search(
    decoder: Finder, problem: DocumentProblem, *given: object, **options: object
) -> Steps[SearchResult]:
    """Steps of a search by a decoder's function, which returns steps, paths, or one path."""
    found = decoder(problem, *given, **options)
    if isinstance(found, Generator):
        found = yield from found
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
) -> list[Steps[SearchResult]]:
    """Searches to compare with: the first candidates, and one for the best known path."""
    searches = [_search(follow.steps, problem, [0] * len(problem.lengths))]
    if exact or options.gap is None:
        return searches
    if affordable(problem):
        return [*searches, _search(viterbi.steps, problem)]
    rng = rng_for(SEED, "")  # asked for by no sweep without a scale
    return [*searches, _search(sweeps.steps, problem, rng=rng, start=start, width=options.gap)]


def _together(
    problems: Sequence[DocumentProblem],
    searches: Sequence[Steps[SearchResult]],
    others: Sequence[Sequence[Steps[SearchResult]]],
) -> list[list[SearchResult]]:
    """Results for each problem: of its own search, and of those to compare with."""
    owners = [*range(len(problems)), *(d for d, rest in enumerate(others) for _ in rest)]
    everything = [*searches, *(one for rest in others for one in rest)]
    try:
        found = run_batch([problems[d] for d in owners], everything)
    except ScoreError as fault:
        if fault.problem is not None:
            fault.problem = owners[fault.problem]
        raise
    results: list[list[SearchResult]] = [[] for _ in problems]
    for d, one in zip(owners, found, strict=True):
        results[d].append(one)
    return results


def _judged(
    problem: DocumentProblem,
    name: str,
    exact: bool,
    found: SearchResult,
    others: Sequence[SearchResult],
    *,
    compared: bool,
) -> SearchResult:
    """The result of a search, compared with those of others, first the first candidates.

    compared: whether `_others` looked for a better path.
    """
    posterior = found.posterior
    return replace(
        found,
        decoder=name,
        exact=exact,
        baseline_score=others[0].score,
        best_score=max(one.score for one in (found, *others)),
        optimal=exact or (compared and affordable(problem)),
        log_normaliser=None if posterior is None or posterior.extinct else posterior.log_normaliser,
    )
