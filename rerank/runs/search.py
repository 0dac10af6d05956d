"""How documents are searched: options of the shell, the decoder and its options, the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from decoders.table import EVERYWHERE, SEED, SPREAD, Decoder, Options, check_order, named
from rerank.errors import ArgumentError, RerankError, UsageError
from rerank.files.run_files import no_option, without_addresses
from rerank.options import keywords, option, optional, record, settings_of
from rerank.registry import DECODERS, ESTIMATORS, UTILITIES
from rerank.values import SCALE, Kind, Member, MemberName, Whole, check_value, keys_of
from rerank.values import SEED as SEEDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from decoders.result import Direction, SearchResult
    from rerank.corpus.kbest import KBest
    from rerank.formats.weights import Weights
    from rerank.metrics.consensus import ExpectedUtility
    from rerank.runs.options import ScorerOptions
    from rerank.scorers.agreement import Agreement, DefectFeature
    from rerank.scorers.features import DocumentFeatures, FeatureSource
    from rerank.scorers.glossary import GlossaryScores
    from rerank.scorers.programs import Estimator
    from rerank.scorers.score_files import FileScorer

Settings = TypeVar("Settings")
UTILITY = "bleu"
_NARROW = 2  # width of a beam in folds of tuning, whose paths are context alone
_NO_SCALE = (
    ", and weights have no scale of their own: give --alpha A, or a weights file with an alpha, "
    "as tune-mert writes it"
)
_BOTH_DIRECTIONS = (
    ", which search the sum of models that read documents forward and of models that read them "
    "from the last sentence; or leave out those of one direction"
)
_NOT_CAUSAL = ", which search models that are given the next sentence, too; or leave these out"
FILE_UTILITY = "file:"  # before the file of utilities that another tool has computed


class UtilityName(MemberName):
    """The name of a utility, or `file:FILE.npz`, `command:PROGRAM`, `judge:MODEL`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or the file as it is."""
        other = value.startswith((FILE_UTILITY, *ESTIMATORS))
        return value if other else super().convert(value, param, ctx)


OF_FILE = (
    "utilities of another tool, for line i of the source (from 0) an array `i` (K, K) of each "
    "candidate where each other one is right"
)
SEARCH = Kind(DECODERS, "auto", keys=keys_of(Options, utility=UtilityName(UTILITIES)))
SEARCH_NAMES = {  # options of searches, for people, by the names that decoders use
    **{"width": "--beam", "alpha": "--alpha", "seed": "--seed"},
    **{key.field: name for name, key in SEARCH.keys.items()},
}


@record
class SearchOptions:
    """How documents are searched."""

    search: Member | str = option(
        "Decoder of `rerank list decoders`, and its options, as smc:particles=256,ess=0.5.\n\n"
        "auto: Viterbi where it is exact and affordable, else beam search; sweeps for models "
        "of unbounded order that read documents in both directions, or are given the next "
        "sentence.",
        type=SEARCH,
        default="auto",
        metavar="DECODER[:KEY=VALUE,...]",
    )
    utility: str | None = optional(
        "What mbr maximises, of `rerank list utilities`, file:U.npz, command:PROGRAM or "
        f"judge:MODEL [default: bleu].\n\nAs mbr:utility=NAME. file:U.npz has {OF_FILE}; "
        "command:PROGRAM and judge:MODEL are asked for them, with --source unless source=no is "
        "behind it.",
        type=UtilityName(UTILITIES),
        rare=True,
    )
    beam: int | None = optional("Beam width [default: 8].", type=Whole(), rare=True)
    alpha: float | None = optional(
        "Scale of p(path) ∝ exp(alpha · score), for decoders that sample [default: that of "
        "the weights].\n\n"
        "Other decoders ignore it; for mbr its spread decides.",
        type=SCALE,
        rare=True,
    )
    seed: int | None = optional(
        "Random seed, for decoders that sample; others ignore it [default: 1].",
        type=SEEDS,
        rare=True,
    )
    gap: int | None = optional(
        "Where the search is not exact, look for a better path, and report the gap to it.\n\n"
        "By Viterbi where that is affordable, else with a beam of this width and sweeps.",
        type=Whole(),
        rare=True,
    )

    def chosen(self) -> Search:
        """The decoder and its options as the search takes them."""
        choice = SEARCH.convert(self.search, None, None)
        settings = dict(choice.settings)
        if (
            self.utility is not None
            and settings.setdefault("utility", self.utility) != self.utility
        ):
            raise UsageError(
                f"--utility {self.utility}: --search names the utility {settings['utility']}; "
                "give one of them"
            )
        chosen = Options(
            width=self.beam, alpha=self.alpha, seed=self.seed, gap=self.gap, **settings
        )
        return Search(choice.kind, chosen)


def settings_with_search(kind: type[Settings], search: str, options: Mapping[str, Any]) -> Settings:
    """A record of options by their names in the shell, beside the keys of searches.

    ArgumentError, a TypeError, for an unknown option or a value of another type.
    """
    keys = {name.replace("-", "_"): key for name, key in SEARCH.keys.items()}
    known = sorted({*keys, *keywords(kind)} - {"search"})
    for name, value in options.items():
        if name not in known:
            raise ArgumentError(no_option(name, known))
        if name in keys and value is not None:
            check_value(name, keys[name].type, value)
    check_value("search", SEARCH, search)
    member = SEARCH.convert(search, None, None)
    of_search = {keys[name].field: value for name, value in options.items() if name in keys}
    others = {name: value for name, value in options.items() if name not in keys}
    return settings_of(kind, search=Member(member.kind, {**member.settings, **of_search}), **others)


@dataclass(frozen=True, slots=True)
class Search:
    """A decoder by name, or `auto`, and its options.

    The utility is a name of `rerank.registry.UTILITIES`; None is `bleu`.
    """

    method: str = "auto"
    options: Options = field(default_factory=Options)
    _programs: dict[str, Estimator] = field(default_factory=dict, compare=False, repr=False)

    def programs(self) -> list[Estimator]:
        """The program that computes the utility, if one does; started at the first call."""
        name = self.options.utility or ""
        if self.method != "mbr" or not name.startswith(ESTIMATORS):
            return []
        if name not in self._programs:
            from rerank.scorers.judge import estimator_of

            self._programs[name] = estimator_of("--search mbr:utility=", name)
        return [self._programs[name]]

    def entries(self) -> dict[str, object]:
        """What weights files and traces state of the program: its name, version and digest."""
        programs = [program.facts | {"digest": program.digest} for program in self.programs()]
        return {"programs": programs} if programs else {}

    def at(self, weights: Weights) -> Search:
        """A copy with the scale of weights, for decoders that need one, or with mbr's spread."""
        options = replace(self.options, scale=weights.alpha)
        if self.method == "mbr" and options.alpha is None and options.spread is None:
            options = replace(options, spread=weights.mbr_spread)
        return replace(self, options=options)

    def listing(self, n_best: int) -> Search:
        """A copy that looks for the `n_best` best paths of each document."""
        return replace(self, options=replace(self.options, n_best=n_best))

    def seeded(self, seed: int) -> Search:
        """A copy with a seed, if its decoder draws."""
        if self.method == "auto":
            return self
        row = row_of(self.method)
        if not (row.takes("seed") and row.scaled(self.options.given())):
            return self
        return replace(self, options=replace(self.options, seed=seed))

    def narrowed(self) -> Search:
        """A copy with a narrow beam, if its decoder has a beam."""
        if self.method != "auto" and not row_of(self.method).takes("width"):
            return self
        return replace(
            self, options=replace(self.options, width=min(_NARROW, self.options.beam_width))
        )

    @property
    def uniform(self) -> bool:
        """Whether the decoder can average over candidates that are all as likely."""
        return self.method != "auto" and row_of(self.method).uniform

    def check_weights(self, weights: Weights, source: str) -> None:
        """InputError for all-zero weights that no tuning has chosen.

        Decoders that average over uniform candidates can use them.
        """
        if not self.uniform and not weights.keep_first:
            uniform = ", ".join(row.name for row in DECODERS.builtin.values() if row.uniform)
            cure = f"only --search {uniform} can use them, to treat all candidates alike"
            weights.refuse_all_zero(cure, source=source)

    def signed(self, searches: Sequence[str]) -> dict[str, object]:
        """Options for a signature: those that a decoder uses; seed and alpha also if given."""
        rows = [DECODERS[name] for name in searches]
        chosen, scale = self.options.given(), self.options.scale
        values: dict[str, object] = {
            "width": self.options.beam_width,
            "utility": UTILITY,
            "seed": SEED,
        }
        if "alpha" not in chosen and scale is not None and not any(row.own_scale for row in rows):
            values["alpha"] = scale
        elif "alpha" not in chosen:
            values["spread"] = SPREAD
        values |= chosen
        for program in self.programs():
            values["utility"] = program.signature

        def used(name: str) -> bool:
            effective = name not in EVERYWHERE or any(row.scaled(chosen) for row in rows)
            return effective and any(row.takes(name) for row in rows)

        names = [item.name for item in fields(Options) if item.name in SEARCH_NAMES]
        return {
            SEARCH_NAMES[name].removeprefix("--"): values[name]
            for name in names
            if name in values and ((name in chosen and name in EVERYWHERE) or used(name))
        }

    def check_decoder(
        self, row: Decoder, order: int | None, direction: Direction, *, causal: bool
    ) -> None:
        """UsageError for a decoder that does not serve the order, and for unsuited options.

        causal: whether each scorer depends on the sentences of one side only.
        """
        from decoders.problem import UnsuitedDecoder
        from decoders.result import Direction
        from decoders.search import ScaleMissing, check_options

        options, both = self.options, direction is Direction.BOTH
        table, auto = DECODERS.builtin, self.method == "auto"
        try:
            check_order(row, order, causal=not both, n_best=options.n_best, table=table)
            check_options(row, options, order, auto=auto, table=table, flags=SEARCH_NAMES)
        except UnsuitedDecoder as fault:
            cure = _NO_SCALE if isinstance(fault, ScaleMissing) else ""
            if both and not row.acausal:
                cure = _BOTH_DIRECTIONS if causal else _NOT_CAUSAL
            raise UsageError(f"--search {row.name}: {fault}{cure}") from None


@dataclass
class Scorers:
    """The scorers of a run by kind, in the order of their features."""

    agreement: Agreement | None = None
    defects: DefectFeature | None = None
    models: Sequence[FeatureSource] = ()
    score_files: Sequence[FileScorer] = ()
    plugins: Sequence[FeatureSource] = ()
    glossary: GlossaryScores | None = None

    @property
    def all(self) -> list[FeatureSource]:
        """All of them."""
        agreement = [] if self.agreement is None else [self.agreement]
        glossary = [] if self.glossary is None else [self.glossary]
        defects = [] if self.defects is None else [self.defects]
        return [*agreement, *defects, *self.models, *self.score_files, *self.plugins, *glossary]

    def summary(self) -> dict[str, object]:
        """What scorers add to a summary of the run, by key."""
        return {key: value for scorer in self.all for key, value in scorer.summary().items()}

    def entries(self, options: ScorerOptions) -> dict[str, dict[str, dict[str, object]]]:
        """What weights files and traces state of models and of scorers of `--scorer`, by name.

        Model, digests and, of a program, its own name and version; kinds that there are not are
        left out.
        """
        models = {
            option.name: {
                "folder": option.value.name,
                "digest": scorer.digest,
                **option.provenance,
                **scorer.chosen,
            }
            for scorer, option in zip(self.models, options.lm, strict=True)
        }
        plugins = {
            scorer.name: {
                "entry": without_addresses(entry),
                "digest": scorer.digest,
                **scorer.chosen,
            }
            for scorer, (_, entry) in zip(self.plugins, options.scorer, strict=True)
        }
        return {kind: rows for kind, rows in [("models", models), ("scorers", plugins)] if rows}

    @property
    def direction(self) -> Direction:
        """The direction of a search with all scorers; up to order 1 a scorer serves either."""
        from decoders.result import Direction

        if not self.causal:
            return Direction.BOTH
        given_later = {
            scorer.given_later
            for scorer in self.all
            if scorer.order not in (0, 1) or scorer.on_demand
        }
        if len(given_later) > 1:
            return Direction.BOTH
        return Direction.REVERSED if True in given_later else Direction.FORWARD

    @property
    def causal(self) -> bool:
        """Whether each of the scorers depends on the sentences of one side only."""
        return all(scorer.causal for scorer in self.all)

    @property
    def order(self) -> int | None:
        """Largest order of the scorers; None if one is unbounded, or above 1 in both directions."""
        from decoders.result import Direction

        orders = [scorer.order for scorer in self.all]
        if self.direction is Direction.BOTH:
            return None
        return None if None in orders else max([0, *(o for o in orders if o is not None)])


def search_documents(
    documents: Sequence[DocumentFeatures],
    weights: NDArray[np.float64],
    search: Search,
    lists: Sequence[KBest] = (),
    *,
    baseline: bool = True,
) -> list[SearchResult]:
    """Result for each document under weights (F,); all documents are searched together.

    baseline: whether the first candidates are scored beside the paths found
    lists: of each document; only mbr reads the texts, and their votes, if weights say nothing.
    RerankError for NaN or infinite scores,
    UsageError for a decoder that does not serve the problem, or options that it does not use.
    """
    import numpy as np

    from decoders.problem import ScoreError
    from decoders.search import decode_all
    from rerank.scorers.agreement import UtilityByVotes

    utilities: list[Any] | None = None
    if search.method == "mbr":
        utilities = list(utilities_of(search, lists))
        if not (weights.any() or any(document.sparse.any() for document in documents)):
            utilities = list(map(UtilityByVotes, utilities))
    try:
        # sums and products beyond float64 are −inf, which is a score; +inf and NaN are refused
        with np.errstate(over="ignore", invalid="raise"):
            results = decode_all(
                [document.problem(weights) for document in documents],
                search.method,
                search.options,
                table=DECODERS.with_plugin(search.method),
                documents=[document.name for document in documents],
                utilities=utilities,
                baseline=baseline,
            )
        for result in results:
            sums = [result.best_score, *(path.score for path in result.paths)]
            sums += [] if result.posterior is None else [result.posterior.log_normaliser]
            if not all(value < np.inf for value in sums):
                raise FloatingPointError
    except FloatingPointError:
        raise RerankError(
            "expected weights · features, their sums and alpha times these below 1.8e308, found "
            "more; take smaller weights or another --alpha"
        ) from None
    except ScoreError as fault:
        raise documents[fault.position or 0].located(fault) from None
    except ValueError as fault:
        raise UsageError(f"--search {search.method}: {fault}") from None
    return results


def utilities_of(search: Search, lists: Sequence[KBest]) -> list[ExpectedUtility]:
    """Utilities of mbr for each document's lists."""
    name = search.options.utility or UTILITY
    if name.startswith(FILE_UTILITY):
        from rerank.metrics.consensus import FileUtility

        return [FileUtility(kbest, name.removeprefix(FILE_UTILITY)) for kbest in lists]
    for program in search.programs():
        from rerank.scorers.programs import ProgramUtility

        return [ProgramUtility(kbest, program) for kbest in lists]
    return [UTILITIES[name](kbest) for kbest in lists]


def row_of(name: str) -> Decoder:
    """The decoder of this name."""
    from decoders.problem import UnsuitedDecoder

    try:
        return named(name, DECODERS.with_plugin(name))
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {name}: {fault}") from None
