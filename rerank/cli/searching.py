"""Options of the search through documents."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.options import Decorator, all_of, count_option
from rerank.registry import DECODERS, UTILITIES
from rerank.values import SCALE, SEED, SHARE, MemberName, Real

if TYPE_CHECKING:
    from rerank.pipeline import Search

RESAMPLING = ["systematic", "stratified", "residual", "multinomial"]

_OPTIONS = {  # by the name that decoders use
    "method": click.option(
        "--search",
        "method",
        type=MemberName(DECODERS, "auto"),
        default="auto",
        help="Decoder: a name of `rerank list decoders`, which shows the options of each, or "
        "auto: Viterbi where it is exact and affordable, else beam search; sweeps for models of "
        "unbounded order that read documents in both directions, or are given the next sentence.",
    ),
    "width": count_option("--beam", "width", help="Beam width [default: 8]."),
    "threshold": click.option(
        "--beam-threshold",
        "threshold",
        type=SCALE,
        help="Prune hypotheses that score this much less than the best one in the beam.",
    ),
    "merge": click.option(
        "--merge",
        type=click.Choice(["max", "sample", "mean"]),
        help="How survivors merges the histories of a candidate [default: max].",
    ),
    "particles": count_option(
        "--particles",
        help="Number of particles, for smc and, above order 1, ffbs and mbr [default: 64].",
    ),
    "resampling": click.option(
        "--resampling",
        type=click.Choice(RESAMPLING),
        help="Resampling scheme of smc [default: systematic].",
    ),
    "ess_threshold": click.option(
        "--ess",
        "ess_threshold",
        type=SHARE,
        help="Resample when the effective sample size falls below this share of the particles "
        "[default: 0.5].",
    ),
    "temper": click.option(
        "--temper",
        type=SHARE,
        help="Tempering: share of alpha at the first sentence, rising to 1 [default: 1].",
    ),
    "samples": count_option("--samples", help="Number of paths that ffbs draws [default: 64]."),
    "lag": count_option(
        "--lag",
        help="Smoothing lag, in sentences: marginals of smc, and above order 1 those of mbr and "
        "the draws of ffbs, use so many later sentences [default: 5; for ffbs the order, 2 if "
        "unbounded].",
    ),
    "block": count_option(
        "--block", help="Number of sentences that sweeps changes at once [default: 1]."
    ),
    "horizon": count_option(
        "--horizon",
        least=0,
        help="Number of later sentences that sweeps rescores after a change, and of earlier ones "
        "under models that read documents from the last sentence [default: the order, 2 if "
        "unbounded].",
    ),
    "gibbs": count_option(
        "--gibbs",
        least=0,
        help="Number of Gibbs sampling sweeps before the maximising ones [default: 0].",
    ),
    "utility": click.option(
        "--utility",
        type=click.Choice(list(UTILITIES)),
        help="Utility that mbr maximises in expectation: sentence BLEU or chrF over all pairs of "
        "candidates; aggregate-…, the same metric against expected n-gram counts; linear-bleu, "
        "that of lattices [default: bleu].",
    ),
    "word_reward": click.option(
        "--word-reward",
        type=Real(-100, 100),
        metavar="POINTS",
        help="What mbr adds to the utility for each word, in points of the utility; below 0 it "
        "shortens the output [default: 0].",
    ),
    "spread": click.option(
        "--spread",
        type=SCALE,
        help="Standard deviation within a list to which mbr scales the scores where no --alpha "
        "is given: the larger, the nearer to the path of highest score [default: that of the "
        "weights file, as tune-mbr writes it, else 1.4].",
    ),
    "alpha": click.option(
        "--alpha",
        type=SCALE,
        help="Scale of p(path) ∝ exp(alpha · score), for decoders that sample; others ignore it "
        "[default: that of the weights file; for mbr --spread decides].",
    ),
    "seed": click.option(
        "--seed",
        type=SEED,
        help="Random seed, for decoders that sample; others ignore it [default: 1].",
    ),
    "gap": count_option(
        "--gap",
        help="Where the search is not exact, look for a better path, and report the gap to it: by "
        "Viterbi where that is affordable, else with a beam of this width and sweeps.",
    ),
}


def _options(names: Collection[str]) -> Decorator:
    """The options of these names, in the order of `_OPTIONS`."""
    return all_of([option for name, option in _OPTIONS.items() if name in names])


search_options = _options(_OPTIONS)
path_options = _options(_OPTIONS.keys() - {"gap"})  # for commands that report no gap
mbr_options = _options({"utility", "word_reward", "particles", "lag", "seed"})
tuning_search_options = _options(_OPTIONS.keys() - {"gap", "seed"})  # with a seed of their own


def search_of(options: dict[str, Any]) -> Search:
    """The `Search` that a command's options ask for; they are removed from `options`."""
    from decoders.search import Options
    from rerank.pipeline import Search

    given = {name: options.pop(name) for name in _OPTIONS if name in options}
    return Search(given.pop("method"), Options(**given))
