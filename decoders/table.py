"""The table of decoders: their options, what each serves and costs; and the choice of one.

A new decoder is a function, a row of `DECODERS` and a test (`decoders.laws`), or the same in a
package that has the row as an entry point of the group `rerank.decoders`. `load` imports the
function, so that the table itself loads neither numpy nor a decoder. A function made by
`decoders.batching.batchable` searches all documents of a run together, any other one by one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from decoders.problem import DocumentProblem

AUTO_WIDTH = 8
PARTICLES = 64  # each may be a history that a model scores, see recipes/docs/search.md
ANY = float("inf")
FINITE = 1e9
NONE = -1

Finder: TypeAlias = Callable[..., Any]  # returns paths, a `SearchResult`, or steps towards them

EVERYWHERE = frozenset({"alpha", "seed"})  # accepted by decoders that do not use them, too
SEED = 1
SPREAD = 1.4  # of mbr: the best on Moses' lists of subtitles and lectures, see recipes/studies/mbr

_COUNT, _SHARE, _SCALE = (1, 10**6), (0.0, 1.0), (0.0, 1e100)
# of fields that say what is looked for, whatever the decoder, and are no options of its own
_OF_SEARCH = {"of_search": True}


def _own(help: str, **more: Any) -> Any:
    """A field for an option that some decoders have: its text for people, and the possible values.

    more: `range`, the least and the greatest number, and `above`, whether the least is excluded; or
    `choices`, the values of a text; `key`, its name for people, if it has another.
    """
    return field(default=None, metadata={"help": help, **more})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of decoders; None is the decoder's default.

    All but those that are `_OF_SEARCH` are arguments of decoders (`Decoder.options`). utility: a
    name, for which the caller makes the utility; scale: the α for a decoder that needs a scale
    where there is no `alpha`; gap: look for a better path where the decoder is not exact, by
    Viterbi where that is affordable, else by sweeps from a beam of this width.
    """

    width: int | None = None
    threshold: float | None = _own(
        "Prune hypotheses that score this much less than the best one in the beam.",
        range=_SCALE,
        above=True,
    )
    merge: str | None = _own(
        "How the histories of a candidate are merged [default: max].",
        choices=("max", "sample", "mean"),
    )
    particles: int | None = _own(
        "Number of particles: of smc on every order, of ffbs and mbr above order 1 "
        f"[default: {PARTICLES}].",
        range=_COUNT,
    )
    resampling: str | None = _own(
        "Resampling scheme [default: systematic].",
        choices=("systematic", "stratified", "residual", "multinomial"),
    )
    ess_threshold: float | None = _own(
        "Resample when the effective sample size falls below this share of the particles "
        "[default: 0.5].",
        range=_SHARE,
        key="ess",
    )
    temper: float | None = _own(
        "Tempering: share of alpha at the first sentence, rising to 1 [default: 1].", range=_SHARE
    )
    samples: int | None = _own("Number of paths that are drawn [default: 64].", range=_COUNT)
    lag: int | None = _own(
        "Smoothing lag: marginals, and the draws of ffbs above order 1, use so many later "
        "sentences [default: 5; for ffbs the order, 2 if unbounded].",
        range=_COUNT,
    )
    block: int | None = _own(
        "Number of sentences that are changed at once [default: 1].", range=_COUNT
    )
    horizon: int | None = _own(
        "Number of later sentences that are rescored after a change, and of earlier ones under "
        "models that read documents from the last sentence [default: the order, 2 if unbounded].",
        range=(0, 10**6),
    )
    gibbs: int | None = _own(
        "Number of Gibbs sampling sweeps before the maximising ones [default: 0].", range=(0, 10**6)
    )
    alpha: float | None = None
    seed: int | None = None
    utility: str | None = _own(
        "Utility that is maximised in expectation: sentence BLEU or chrF over all pairs of "
        "candidates; aggregate-…, the same metric against expected n-gram counts; linear-bleu, "
        "that of lattices [default: bleu]."
    )
    word_reward: float | None = _own(
        "What is added to the utility for each word, in points of the utility; below 0 it "
        "shortens the output [default: 0].",
        range=(-100.0, 100.0),
        key="word-reward",
    )
    spread: float | None = _own(
        "Standard deviation within a list to which the scores are scaled where no --alpha is "
        "given: the larger, the nearer to the path of highest score [default: mbr_spread of the "
        "weights file, else 1.4].",
        range=_SCALE,
        above=True,
    )
    n_best: int = field(default=1, metadata=_OF_SEARCH)
    scale: float | None = field(default=None, metadata=_OF_SEARCH)
    gap: int | None = field(default=None, metadata=_OF_SEARCH)

    @property
    def beam_width(self) -> int:
        """Width of a beam: `width`, else `AUTO_WIDTH`, or `n_best` if that is more."""
        return max(AUTO_WIDTH, self.n_best) if self.width is None else self.width

    def given(self) -> dict[str, object]:
        """Arguments of decoders that are set, by name."""
        names = [option.name for option in fields(self) if "of_search" not in option.metadata]
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Decoder:
    """A row of the table.

    target: its function, "module:attribute"; highest_order and exact_to: the highest orders that it
    serves and on which it is exact: a number, `FINITE` for all numbers, `ANY` for unbounded orders
    too, `NONE` for not even 0; options: its keyword arguments: without `n_best` it finds a single
    path, with `rng` it draws; scaled_by: the option that makes it need the scale `alpha`, and a
    test of its value (None: always, if `alpha` is among its options); width_proves: whether a beam
    wide enough makes it exact; acausal: whether it needs `rescore` only, and so serves problems
    whose sentences depend on later sentences, from the best path decoded in a direction if `start`
    is among its options; beyond: options that count only above order 1; uniform: whether it works
    with probabilities, so that all-zero weights make sense; own_scale: whether it chooses a scale
    where there is no `alpha`, and does not use a scale fitted by likelihood; histories: most
    histories of a sentence after which it asks for scores (above order 1).
    """

    name: str
    target: str
    highest_order: float = ANY
    exact_to: float = NONE
    cost: str = ""
    source: str = ""
    options: tuple[str, ...] = ()
    scaled_by: tuple[str, Callable[[Any], bool]] | None = None
    width_proves: bool = False
    acausal: bool = False
    beyond: tuple[str, ...] = ()
    uniform: bool = False
    own_scale: bool = False
    histories: Callable[[Options], float] = lambda options: ANY

    def serves(self, order: int | None, *, causal: bool = True) -> bool:
        """Whether it takes problems of this order; causal: no sentence depends on later ones."""
        return (ANY if order is None else order) <= self.highest_order and (causal or self.acausal)

    def exact(self, order: int | None) -> bool:
        """Whether it finds the best path of every problem of this order."""
        return (ANY if order is None else order) <= self.exact_to

    def takes(self, option: str) -> bool:
        """Whether it uses an option, at least under some others; a seed if it draws."""
        return ("rng" if option == "seed" else option) in self.options

    def scaled(self, given: Mapping[str, object]) -> bool:
        """Whether it works with a scale under these options."""
        if self.scaled_by is None:
            return "alpha" in self.options
        option, needs = self.scaled_by
        return option in given and needs(given[option])

    def load(self) -> Finder:
        """The function that the row names; its generator function if it is batchable."""
        module, _, attribute = self.target.partition(":")
        function = getattr(import_module(module), attribute)
        finder: Finder = getattr(function, "steps", function)
        return finder


def describe_orders(highest: float) -> str:
    """The orders up to the highest, for people: `up to 1`, `finite`, `any`."""
    if highest == 0:
        return "0"
    return {ANY: "any", FINITE: "finite", NONE: "none"}.get(highest, f"up to {highest:g}")


MEMO = "Eisenstein, The Document Context Language Model (memo)"
DECODERS: Mapping[str, Decoder] = {
    row.name: row
    for row in (
        Decoder(
            name="greedy",
            target="decoders.beam:greedy",
            exact_to=0,
            cost="O(T K)",
            source=f"{MEMO}, eq. (18) with one hypothesis",
            histories=lambda options: 1,
        ),
        Decoder(
            name="viterbi",
            target="decoders.viterbi:viterbi",
            highest_order=FINITE,
            exact_to=FINITE,
            cost="O(T K^(n+1)), order n",
            source=f"{MEMO}, eqs. (16)-(17); Viterbi (1967)",
            options=("n_best",),
        ),
        Decoder(
            name="beam",
            target="decoders.beam:beam",
            exact_to=0,
            cost="O(T B K)",
            source=f"{MEMO}, eq. (18) with the B best; Lowerre (1976)",
            options=("width", "threshold", "n_best"),
            width_proves=True,
            histories=lambda options: options.beam_width,
        ),
        Decoder(
            name="survivors",
            target="decoders.beam:survivors",
            exact_to=1,
            cost="O(T K^2)",
            source=f"{MEMO}, eq. (18) as printed; Raheli et al. (1995)",
            options=("merge", "alpha", "rng"),
            scaled_by=("merge", lambda merge: merge != "max"),
        ),
        Decoder(
            name="random-beam",
            target="decoders.beam:random_beam",
            cost="O(T B K)",
            source=f"{MEMO}, section 3.2; Kool et al. (2019)",
            options=("width", "alpha", "rng", "n_best"),
        ),
        Decoder(
            name="smc",
            target="decoders.smc:smc",
            cost="O(T N K)",
            source=f"{MEMO}, section 3.2; Doucet and Johansen (2009)",
            options=(
                *("particles", "resampling", "ess_threshold", "temper", "lag"),
                *("alpha", "rng", "n_best"),
            ),
            uniform=True,
            histories=lambda options: options.particles or PARTICLES,
        ),
        Decoder(
            name="ffbs",
            target="decoders.ffbs:ffbs",
            cost="O(T K^2 + T M K) to order 1, else approximate in O(T N K + T M N (T + lag))",
            source=f"{MEMO}, section 3.2; Carter and Kohn (1994), Lindsten et al. (2014)",
            options=("samples", "particles", "lag", "alpha", "rng", "n_best"),
            beyond=("particles", "lag"),
            uniform=True,
        ),
        Decoder(
            name="mbr",
            target="decoders.mbr:mbr",
            cost="O(T K^2) to order 1, else O(T N K + T K^2), and n-grams",
            source="Kumar and Byrne (2004)",
            options=("utility", "word_reward", "spread", "particles", "lag", "alpha", "rng"),
            beyond=("particles", "lag"),
            uniform=True,
            own_scale=True,
        ),
        Decoder(
            name="sweeps",
            target="decoders.sweeps:sweeps",
            exact_to=0,
            cost="O(T K^block (block + horizon)) a sweep",
            source="Besag (1986); Geman and Geman (1984)",
            options=("start", "width", "block", "horizon", "gibbs", "alpha", "rng"),
            scaled_by=("gibbs", bool),
            width_proves=True,
            acausal=True,
        ),
        Decoder(
            name="exhaustive",
            target="decoders.viterbi:exhaustive",
            exact_to=ANY,
            cost="O(K^T), at most 10^6 paths",
            source="definition of the search problem",
            options=("n_best",),
        ),
    )
}


def automatic(order: int | None, *, causal: bool) -> str:
    """The decoder for problems of an order; causal: no sentence depends on later ones."""
    if not causal:
        return "sweeps"
    return "beam" if order is None else "viterbi"


def choose(
    problem: DocumentProblem,
    requested: str = "auto",
    *,
    n_best: int = 1,
    table: Mapping[str, Decoder] = DECODERS,
) -> Decoder:
    """The decoder of this name (`auto`: beam where Viterbi costs too much); see `check_order`."""
    from decoders.viterbi import affordable

    if requested == "auto":
        requested = automatic(problem.order, causal=problem.causal)
        if requested == "viterbi" and not affordable(problem, n_best):
            requested = "beam"
    row = named(requested, table)
    check_order(row, problem.order, causal=problem.causal, n_best=n_best, table=table)
    return row


def check_order(
    row: Decoder,
    order: int | None,
    *,
    causal: bool = True,
    n_best: int = 1,
    table: Mapping[str, Decoder] = DECODERS,
) -> None:
    """UnsuitedDecoder unless a decoder serves an order, and, above `n_best` 1, lists of paths."""
    from decoders.problem import UnsuitedDecoder

    def fits(decoder: Decoder) -> bool:
        return decoder.serves(order, causal=causal) and (n_best == 1 or decoder.takes("n_best"))

    if fits(row):
        return
    fitting = ", ".join(decoder.name for decoder in table.values() if fits(decoder)) or "none"
    depth = "all earlier sentences" if order is None else f"order {order}"
    depth = depth if causal else "later sentences"
    served = row.serves(order, causal=causal)
    lack = "lists of several paths" if served else f"scores that depend on {depth}"
    raise UnsuitedDecoder(f"{row.name} does not serve {lack}; decoders that fit: {fitting}")


def named(name: str, table: Mapping[str, Decoder] = DECODERS) -> Decoder:
    """The row of this name; UnsuitedDecoder with the nearest name where there is none."""
    if name not in table:
        from decoders.problem import UnsuitedDecoder

        near = difflib.get_close_matches(name, table, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnsuitedDecoder(
            f"no decoder is called {name!r}; {hint}there are auto, {', '.join(table)}"
        )
    return table[name]
