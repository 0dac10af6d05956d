"""How the documents of a run are searched: the decoder is chosen, said, and run on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from decoders.mbr import Utility
from decoders.posterior import Posterior
from decoders.problem import Path, ScoreError, UnsuitedDecoder
from decoders.search import (
    NOTHING,
    SEED,
    Decoded,
    IdleOption,
    Options,
    ScaleMissing,
    UnknownOption,
    decode_all,
    refuse_options,
)
from decoders.table import DECODERS, Decoder, named
from rerank.corpus.kbest import KBest
from rerank.errors import RerankError, UsageError
from rerank.files.lines import display
from rerank.pipeline.lists import Announce, Opened
from rerank.scorers.features import Document

DEAR = 4.0
FLAGS = {  # options of the shell for those of decoders
    "width": "--beam",
    "threshold": "--beam-threshold",
    "merge": "--merge",
    "particles": "--particles",
    "resampling": "--resampling",
    "ess_threshold": "--ess",
    "temper": "--temper",
    "samples": "--samples",
    "lag": "--lag",
    "block": "--block",
    "horizon": "--horizon",
    "gibbs": "--gibbs",
    "alpha": "--alpha",
    "seed": "--seed",
    "utility": "--utility",
}
UTILITY = "bleu"


@dataclass(frozen=True, slots=True)
class Search:
    """How documents are searched: a decoder's name, or `auto`, and what it is asked for.

    utility: utility of minimum Bayes risk decoding, a name of
    `rerank.metrics.consensus.UTILITIES`; None is `bleu`.
    """

    method: str = "auto"
    options: Options = NOTHING
    utility: str | None = None

    def at(self, scale: float | None) -> Search:
        """The same with the scale of a weights file, for decoders that need one."""
        return replace(self, options=replace(self.options, scale=scale))

    def listing(self, n_best: int) -> Search:
        """The same for so many paths of each document."""
        return replace(self, options=replace(self.options, n_best=n_best))

    def seeded(self, seed: int) -> Search:
        """The same with a seed, if the decoder draws."""
        if self.method == "auto":
            return self
        row = _row(self.method)
        if not row.takes("seed") or row.idle("seed", self.options.given(), None):
            return self
        return replace(self, options=replace(self.options, seed=seed))

    def signed(self, searches: Sequence[str]) -> dict[str, object]:
        """What a signature says of the options, where one of these decoders uses them."""
        rows = [DECODERS[name] for name in searches]
        given = {**self.options.given(), "utility": self.utility}
        if given.get("alpha") is None:
            given["alpha"] = self.options.scale
        defaults = {"width": self.options.beam_width, "utility": UTILITY, "seed": SEED}
        return {
            flag.removeprefix("--"): value
            for name, flag in FLAGS.items()
            if (value := defaults.get(name) if given.get(name) is None else given[name]) is not None
            and any(row.takes(name) for row in rows)
            and (name not in ("alpha", "seed") or any(row.scaled(given) for row in rows))
        }

    def refuse(self, row: Decoder, order: int | None) -> None:
        """UsageError for options that the decoder does not use, or a scale that it lacks."""
        try:
            refuse_options(row, self.options, order, auto=self.method == "auto")
            if self.utility is not None and not row.takes("utility"):
                raise UnknownOption(row, "utility")
            if self.options.n_best > 1 and not row.takes("n_best"):
                listing = ", ".join(one.name for one in DECODERS.values() if one.takes("n_best"))
                raise UsageError(
                    f"--n-best: --search {row.name} finds one path; several are found by {listing}"
                )
        except UnknownOption as fault:
            takers = ", ".join(one.name for one in DECODERS.values() if one.takes(fault.option))
            raise UsageError(
                f"{FLAGS[fault.option]}: --search {row.name} does not use it; it is for "
                f"--search {takers}"
            ) from None
        except IdleOption as fault:
            where = "above order 1, where it cannot sum all paths"
            if row.scaled_by is not None:
                where = f"only where {FLAGS[row.scaled_by[0]]} makes it draw"
            raise UsageError(
                f"{FLAGS[fault.option]}: --search {row.name} uses it {where}; leave it out"
            ) from None
        except ScaleMissing as fault:
            raise UsageError(
                f"--search {fault.decoder} works with probabilities, p(path) ∝ exp(alpha · score), "
                "and weights have no scale of their own: give --alpha A, or --weights of a file "
                "with an alpha, as tune-mert writes it"
            ) from None


AUTO = Search()


@dataclass(frozen=True, slots=True)
class Searched:
    """What was found for a document: choices of the sentences with candidates, and how good.

    baseline_score: of the first candidates; exact: whether no path can be better; best_score: of
    the best path known, the optimum if `optimal`; posterior: of a decoder that has one; further:
    the next best paths, as many as were asked for and found.
    """

    choices: tuple[int, ...]
    score: float
    baseline_score: float
    exact: bool
    decoder: str
    best_score: float
    optimal: bool
    posterior: Posterior | None
    further: tuple[Path, ...] = ()


def searched(
    documents: Sequence[Document],
    weights: NDArray[np.float64],
    how: Search,
    lists: Sequence[KBest] = (),
) -> list[Searched]:
    """The best path of each document that the search finds, all of them searched together.

    lists: of each document, where the texts count (mbr). RerankError for scores that are none,
    UsageError for a decoder that cannot serve and options that it cannot use.
    """
    utilities = None
    if how.method == "mbr":
        utilities = _utilities(how.utility or UTILITY, lists)
    try:
        # sums and products beyond float64 are −inf, which is a score; +inf and NaN are refused
        with np.errstate(over="ignore", invalid="raise"):
            found = decode_all(
                [document.problem(weights) for document in documents],
                how.method,
                how.options,
                documents=[document.name for document in documents],
                utilities=utilities,
            )
        _refuse_infinity(found)
    except FloatingPointError:
        raise RerankError(
            "expected weights · features, their sums and alpha times these below 1.8e308, found "
            "more; take smaller weights or another --alpha"
        ) from None
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {how.method}: {fault}") from None
    except ScoreError as fault:
        of = "" if fault.problem is None else f"document {documents[fault.problem].name!r}: "
        raise RerankError(f"{of}{fault}") from None
    except ValueError as fault:
        raise UsageError(f"--search {how.method}: {fault}") from None
    return [
        Searched(
            one.paths[0].choices,
            one.paths[0].score,
            one.first.score,
            one.exact,
            one.decoder,
            one.best,
            one.optimal,
            one.posterior,
            one.paths[1:],
        )
        for one in found
    ]


def _refuse_infinity(found: Sequence[Decoded]) -> None:
    """FloatingPointError where the score of a path, or log Z, has come to +inf or NaN."""
    for one in found:
        sums = [one.best, *(path.score for path in one.paths)]
        sums += [] if one.posterior is None else [one.posterior.log_normaliser]
        if not all(value < np.inf for value in sums):
            raise FloatingPointError


def _utilities(name: str, lists: Sequence[KBest]) -> list[Utility]:
    """The utility of this name on each document's lists."""
    from rerank.metrics.consensus import UTILITIES

    if name not in UTILITIES:
        raise UsageError(f"--utility {name}: there are {', '.join(UTILITIES)}")
    return [UTILITIES[name].of(kbest) for kbest in lists]


def note_extinction(found: Searched, opened: Opened) -> None:
    """A notice of a document of which every path that was seen is impossible (−inf)."""
    sampled = found.posterior is not None and found.posterior.extinct
    if sampled or found.score == -np.inf:
        opened.notices.add(
            "document in which no possible path was found, left with its first candidates",
            source=display(opened.lists.kbest),
        )


def say_search(opened: Opened, how: Search, announce: Announce) -> Search:
    """The search as it will run, chosen by the orders of the scorers and their cost, and said.

    `auto` is exact where that takes at most `DEAR` times the passes over the lists that a
    beam takes. UsageError for a decoder that cannot serve.
    """
    orders = [scorer.order for scorer in opened.scorers]
    order = None if None in orders else max([0, *(o for o in orders if o is not None)])
    automatic = how.method == "auto"
    row = _row("beam" if automatic and order is None else "viterbi" if automatic else how.method)
    if not row.serves(order):
        fitting = ", ".join(r.name for r in DECODERS.values() if r.serves(order))
        depth = "all earlier sentences" if order is None else f"order {order}"
        raise UsageError(
            f"--search {how.method}: {row.name} does not serve scores that depend on {depth}; "
            f"decoders that fit: {fitting}"
        )
    width = how.options.beam_width
    priced = ""
    if automatic and row.name == "viterbi":
        passes = _passes(opened)
        if passes > DEAR * width:
            how, row = replace(how, method="beam"), _row("beam")
            priced = f"; --search viterbi is exact, in {passes:.0f} passes over the lists"
            for scorer in opened.scorers:
                scorer.lazily()
    how.refuse(row, order)
    wide = f" of width {width}" if "width" in row.options else ""
    depth = "unbounded order" if order is None else f"order {order}"
    exact = "exact" if row.exact(order) and how.options.merge in (None, "max") else "not exact"
    announce(f"search: {row.name}{wide}, {exact} for a problem of {depth}, {row.cost}{priced}")
    return how


def _row(name: str) -> Decoder:
    """The decoder of this name."""
    try:
        return named(name)
    except UnsuitedDecoder as fault:
        raise UsageError(f"--search {name}: {fault}") from None


def _passes(opened: Opened) -> float:
    """Passes over the lists that exact search takes, of the scorer that takes most."""
    if all(scorer.passes(2) == scorer.passes(1) for scorer in opened.scorers):
        return 1.0  # whatever K is
    k = opened.survey.candidates / max(1, opened.documents.n_lines)
    return max(scorer.passes(k) for scorer in opened.scorers)
