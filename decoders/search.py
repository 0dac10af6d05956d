"""Decoding by name: a decoder is chosen, run on many documents, and judged.

Judged: what is the best path, or the best that is known, and how far from it is the one found?
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from decoders.batching import Steps, follow, run_batch
from decoders.beam import full_width
from decoders.mbr import Utility
from decoders.numerics import rng_for
from decoders.posterior import Found, Posterior
from decoders.problem import DocumentProblem, Path, ScoreError, UnsuitedDecoder
from decoders.sweeps import sweeps
from decoders.table import AUTO_WIDTH, DECODERS, Decoder, choose
from decoders.viterbi import affordable, viterbi

SEED = 1
EVERYWHERE = frozenset({"alpha", "seed"})  # accepted by decoders that do not use them, too


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller asks of a decoder; None is the decoder's own default.

    All but the last three are arguments of decoders (`Decoder.options`), and refused by those that
    have them not. scale: the α for a decoder that needs one where `alpha` is not given; gap: the
    width of the beam behind which sweeps look for the best known path of unbounded problems.
    """

    width: int | None = None
    threshold: float | None = None
    merge: str | None = None
    particles: int | None = None
    resampling: str | None = None
    ess_threshold: float | None = None
    temper: float | None = None
    samples: int | None = None
    lag: int | None = None
    block: int | None = None
    horizon: int | None = None
    gibbs: int | None = None
    alpha: float | None = None
    seed: int | None = None
    n_best: int = 1
    scale: float | None = None
    gap: int | None = None

    @property
    def beam_width(self) -> int:
        """The width of a beam: that asked for, else `AUTO_WIDTH`, or as many as are listed."""
        return max(AUTO_WIDTH, self.n_best) if self.width is None else self.width

    def given(self) -> dict[str, object]:
        """The arguments of decoders that were asked for, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        asked = values.keys() - {"n_best", "scale", "gap"}
        return {name: values[name] for name in values if name in asked and values[name] is not None}


NOTHING = Options()


@dataclass(frozen=True, slots=True)
class Decoded:
    """Paths found, best first; by which decoder; and how good the first of them is.

    exact: whether no path can be better; first: the path of first candidates, to compare with;
    best: the score of the best path that is known; optimal: whether that is the optimum.
    """

    paths: tuple[Path, ...]
    decoder: str
    exact: bool
    first: Path
    best: float
    optimal: bool
    posterior: Posterior | None = field(default=None, compare=False)

    @property
    def gap(self) -> float:
        """How much better the best known path is, >= 0; no bound where that is not the optimum."""
        return 0.0 if self.best == self.paths[0].score else self.best - self.paths[0].score


def decode(
    problem: DocumentProblem,
    name: str = "auto",
    options: Options = NOTHING,
    *,
    document: str = "",
    utility: Utility | None = None,
    table: Mapping[str, Decoder] = DECODERS,
) -> Decoded:
    """Best paths of a problem by the decoder of this name, and what is known of them.

    Errors: those of `choose`, `refuse_options` and of the decoder.
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
) -> list[Decoded]:
    """What `decode` finds for each problem, searched together where the decoder allows.

    documents: their ids, from which and from the seed random numbers come; utilities: of each, for
    `mbr`. Problems may differ in order, and under `auto` in decoder. Errors: those of `decode`; a
    ScoreError with `problem`, the position here.
    """
    documents = [""] * len(problems) if documents is None else documents
    rows = [choose(p, name, n_best=options.n_best, table=table) for p in problems]
    for problem, row in zip(problems, rows, strict=True):
        refuse_options(row, options, problem.order, auto=name == "auto", table=table)
    extras: Sequence[Utility | None] = utilities or [None] * len(problems)
    searches = [
        _search(problem, row, _arguments(row, options, document, utility))
        for problem, row, document, utility in zip(problems, rows, documents, extras, strict=True)
    ]
    exact = [_exact(p, row, options) for p, row in zip(problems, rows, strict=True)]
    others = [
        _others(problem, proved, options) for problem, proved in zip(problems, exact, strict=True)
    ]
    found = _together(problems, searches, others)
    return [
        _judged(problem, row.name, proved, one, rest)
        for problem, row, proved, (one, *rest) in zip(problems, rows, exact, found, strict=True)
    ]


def refuse_options(
    row: Decoder,
    options: Options,
    order: int | None,
    *,
    auto: bool = False,
    table: Mapping[str, Decoder] = DECODERS,
) -> None:
    """UnsuitedDecoder for an option that has no effect here, or where the scale is missing.

    `EVERYWHERE` lists options that every decoder accepts; `auto` accepts a width too, since it may
    choose a decoder without one. table: the decoders that messages name.
    """
    given = options.given()
    for name in (one for one in given if one not in EVERYWHERE):
        if not row.takes(name) and not (auto and name == "width"):
            raise UnknownOption(row, name, table)
        if row.takes(name) and row.idle(name, given, order):
            raise IdleOption(row, name)
    if row.scaled(given) and options.alpha is None and options.scale is None:
        raise ScaleMissing(row.name)


class UnknownOption(UnsuitedDecoder):
    """An option that a decoder does not use; the message names those that do."""

    def __init__(self, row: Decoder, option: str, table: Mapping[str, Decoder] = DECODERS) -> None:
        self.decoder, self.option = row, option
        takers = ", ".join(one.name for one in table.values() if one.takes(option))
        super().__init__(f"{row.name} does not use {option}; it is for {takers}")


class IdleOption(UnsuitedDecoder):
    """An option that a decoder uses only for problems of higher order."""

    def __init__(self, row: Decoder, option: str) -> None:
        self.decoder, self.option = row, option
        super().__init__(f"{row.name} uses {option} above order 1 only")


class ScaleMissing(UnsuitedDecoder):
    """A decoder that works with probabilities, and no scale for them."""

    def __init__(self, decoder: str) -> None:
        self.decoder = decoder
        super().__init__(f"{decoder} works with p ∝ exp(alpha · score) and needs alpha")


def _arguments(
    row: Decoder, options: Options, document: str, utility: Utility | None
) -> dict[str, object]:
    """Arguments of a decoder's function."""
    arguments = {name: value for name, value in options.given().items() if name in row.options}
    seed = SEED if options.seed is None else options.seed
    own = {
        "width": options.beam_width,
        "n_best": options.n_best,
        "alpha": options.scale,
        "utility": utility,
        "rng": rng_for(seed, document) if "rng" in row.options else None,
    }
    return {name: own[name] for name in row.options if name in own} | arguments


def _search(
    problem: DocumentProblem, row: Decoder, arguments: Mapping[str, object]
) -> Steps[Found]:
    """Steps of any decoder; one that has none ends before the first."""
    found = row.load()(problem, **arguments)
    if isinstance(found, Generator):
        found = yield from found
    if isinstance(found, Found):
        return found
    return Found((found,) if isinstance(found, Path) else tuple(found))


def _exact(problem: DocumentProblem, row: Decoder, options: Options) -> bool:
    """Whether no path can be better: by the order, or by a beam that keeps every context."""
    if options.merge not in (None, "max"):
        return False
    complete = options.beam_width >= full_width(problem.lengths, problem.order)
    complete = complete and options.threshold is None
    return row.exact(problem.order) or (row.width_proves and complete and problem.causal)


def _others(problem: DocumentProblem, exact: bool, options: Options) -> list[Steps[Found]]:
    """Searches to judge one by: the first candidates, and what finds the best known path."""
    searches = [_one(follow.steps(problem, [0] * len(problem.lengths)))]
    if not exact and affordable(problem):
        searches.append(_listed(viterbi.steps(problem)))
    elif not exact and options.gap is not None:
        rng = rng_for(SEED, "")  # asked for by no sweep without a scale
        searches.append(_one(sweeps.steps(problem, rng=rng, width=options.gap)))
    return searches


def _one(steps: Steps[Path]) -> Steps[Found]:
    return Found(((yield from steps),))


def _listed(steps: Steps[list[Path]]) -> Steps[Found]:
    return Found(tuple((yield from steps)))


def _together(
    problems: Sequence[DocumentProblem],
    searches: Sequence[Steps[Found]],
    others: Sequence[Sequence[Steps[Found]]],
) -> list[list[Found]]:
    """What the searches of each problem find, its own and those to judge it by."""
    owners = [*range(len(problems)), *(d for d, rest in enumerate(others) for _ in rest)]
    everything = [*searches, *(one for rest in others for one in rest)]
    try:
        found = run_batch([problems[d] for d in owners], everything)
    except ScoreError as fault:
        if fault.problem is not None:
            fault.problem = owners[fault.problem]
        raise
    results: list[list[Found]] = [[] for _ in problems]
    for d, one in zip(owners, found, strict=True):
        results[d].append(one)
    return results


def _judged(
    problem: DocumentProblem, name: str, exact: bool, found: Found, others: Sequence[Found]
) -> Decoded:
    """What a search found, beside what others did."""
    first = others[0].paths[0]
    best = max(one.paths[0].score for one in (found, *others))
    optimal = exact or affordable(problem)
    return Decoded(found.paths, name, exact, first, best, optimal, found.posterior)
