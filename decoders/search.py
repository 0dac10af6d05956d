"""Decoding by name: a decoder is chosen and run on many documents, its paths compared with others.

The comparison says which path is best, or the best that is known, and by how much.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

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
    """Best paths of a problem. Errors: of `choose`, `check_options` and the decoder."""
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
    baseline: bool = True,
) -> list[SearchResult]:
    """Results of `decode` for each problem, searched together where the decoder allows.

    documents: their ids, from which and from the seed random numbers come; utilities: of each, for
    `mbr`; baseline: whether the first candidates are scored, too. Problems may differ in order, and
    under `auto` in decoder. A problem that depends on later sentences only is searched from its
    last sentence to its first. Errors: those of `decode`; a ScoreError with its `position` here.
    """
    searched: list[_Document] = []
    for problem in problems:
        direction = direction_of(problem)
        if direction is Direction.REVERSED:
            problem = reversed_problem(problem)
        row = choose(problem, name, n_best=options.n_best, table=table)
        order = None if problem.on_demand else problem.order
        check_options(row, options, order, auto=name == "auto", table=table)
        searched.append(_Document(problem, direction, row, _exact(problem, row, options)))
    both = {d: s.problem for d, s in enumerate(searched) if s.direction is Direction.BOTH}
    starts = best_starts(both, options.beam_width)
    thorough_starts = best_starts(both, options.gap) if options.gap is not None else {}
    searches: list[tuple[int, Steps[Any]]] = []
    comparisons: list[tuple[int, Steps[Any]]] = []
    for d, (problem, direction, row, exact) in enumerate(searched):
        utility = utilities[d] if utilities else None
        if utility is not None and direction is Direction.REVERSED:
            utility = ReversedUtility(utility, len(problem.lengths))
        document = documents[d] if documents else ""
        arguments = _arguments(row, options, document, utility, starts.get(d))
        searches.append((d, _steps(row.load(), problem, arguments)))
        if baseline:
            comparisons.append((d, follow.steps(problem, [0] * len(problem.lengths))))
        if options.gap is not None and not exact:
            start, rng = thorough_starts.get(d), rng_for(SEED, "")  # no sweep without a scale draws
            thorough: Steps[Any] = (
                viterbi.steps(problem)
                if affordable(problem)
                else sweeps.steps(problem, rng=rng, start=start, width=options.gap)
            )
            comparisons.append((d, thorough))
    numbers, steps = zip(*searches, *comparisons, strict=True) if searches else ((), ())
    try:
        answers = run_batch([searched[d].problem for d in numbers], steps, numbers)
    except ScoreError as fault:
        if fault.position is not None:
            problem, direction, *_ = searched[fault.position]
            if direction is Direction.REVERSED:
                raise reversed_fault(fault, len(problem.lengths)) from None
        raise
    results: list[list[SearchResult]] = [[] for _ in searched]
    for d, answer in zip(numbers, answers, strict=True):
        if not isinstance(answer, SearchResult):
            answer = SearchResult((answer,) if isinstance(answer, Path) else tuple(answer))
        results[d].append(answer)
    return [
        _compared(document, paths, options, baseline=baseline)
        for document, paths in zip(searched, results, strict=True)
    ]


class _Document(NamedTuple):
    """A problem, in the order of the search, its decoder, and whether no path can be better."""

    problem: DocumentProblem
    direction: Direction
    row: Decoder
    exact: bool


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

    Every decoder accepts the options `EVERYWHERE`, and `auto` a width too, since it may choose a
    beam. table: the decoders, flags: names of options, both for messages.
    """
    values = options.given()
    for name in (name for name in values if name not in EVERYWHERE):
        flag = flags.get(name, name)
        if not row.takes(name) and not (auto and name == "width"):
            takers = ", ".join(other.name for other in table.values() if other.takes(name))
            raise UnsuitedDecoder(f"{row.name} does not use {flag}; it is for {takers}")
        if order in (0, 1) and name in row.beyond:
            raise UnsuitedDecoder(
                f"{row.name} uses {flag} above order 1 only; up to order 1 it sums over all paths"
            )
    if row.own_scale and {"alpha", "spread"} <= values.keys():
        alpha, spread = (flags.get(name, name) for name in ("alpha", "spread"))
        raise UnsuitedDecoder(f"{alpha} is the scale itself; leave out {spread}")
    missing = options.alpha is None and options.scale is None
    if row.scaled(values) and missing and not row.own_scale:
        raise ScaleMissing(f"{row.name} works with p ∝ exp(alpha · score) and needs alpha")


class ScaleMissing(UnsuitedDecoder):
    """A decoder that needs the scale alpha, which is not given."""


def _arguments(
    row: Decoder, options: Options, document: str, utility: Utility | None, start: Choices | None
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
    """Steps of a search by a decoder's function, which has steps or returns paths."""
    paths = decoder(problem, **options)
    return (yield from paths) if isinstance(paths, Generator) else paths


def _exact(problem: DocumentProblem, row: Decoder, options: Options) -> bool:
    """Whether no path can be better: by the order, or by a beam that keeps every context."""
    if options.merge not in (None, "max"):
        return False
    complete = options.beam_width >= full_width(problem.lengths, problem.order)
    complete = complete and options.threshold is None
    return row.exact(problem.order) or (row.width_proves and complete and problem.causal)


def _compared(
    document: _Document, results: list[SearchResult], options: Options, *, baseline: bool
) -> SearchResult:
    """The first result of a document, compared with the others, of which the baseline is first."""
    problem, direction, row, exact = document
    posterior = results[0].posterior
    result = replace(
        results[0],
        decoder=row.name,
        exact=exact,
        baseline_score=results[1].score if baseline else float("nan"),
        best_score=max(result.score for result in results),
        optimal=exact or (options.gap is not None and affordable(problem)),
        log_normaliser=None if posterior is None or posterior.extinct else posterior.log_normaliser,
        direction=direction,
    )
    return in_document_order(result) if direction is Direction.REVERSED else result
