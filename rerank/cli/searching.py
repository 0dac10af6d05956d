"""Options that say how documents are searched, and `rerank list`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rerank.cli.options import format_option

if TYPE_CHECKING:
    from rerank.pipeline import Search

Command = TypeVar("Command", bound=Callable[..., Any])
SEARCHES = [
    *("auto", "greedy", "viterbi", "beam", "survivors", "random-beam"),
    *("smc", "ffbs", "mbr", "sweeps", "exhaustive"),
]
RESAMPLING = ["systematic", "stratified", "residual", "multinomial"]
_SHARE = click.FloatRange(0, 1)
_POSITIVE = click.FloatRange(0, min_open=True)
_OPTIONS = {  # by the name that decoders use
    "method": click.option(
        "--search",
        "method",
        type=click.Choice(SEARCHES),
        default="auto",
        show_default=True,
        help="Decoder; auto is Viterbi where it is exact, else beam. `rerank list decoders` "
        "says which takes which option.",
    ),
    "width": click.option(
        "--beam", "width", type=click.IntRange(1), help="Width of the beam [default: 8]."
    ),
    "threshold": click.option(
        "--beam-threshold",
        "threshold",
        type=_POSITIVE,
        help="Drop from the beam what scores this much less than its best.",
    ),
    "merge": click.option(
        "--merge",
        type=click.Choice(["max", "sample", "mean"]),
        help="How survivors merges the hypotheses of a candidate [default: max].",
    ),
    "particles": click.option(
        "--particles",
        type=click.IntRange(1),
        help="Of smc and, above order 1, of ffbs and mbr [default: 64].",
    ),
    "resampling": click.option(
        "--resampling",
        type=click.Choice(RESAMPLING),
        help="How smc resamples [default: systematic].",
    ),
    "ess_threshold": click.option(
        "--ess",
        "ess_threshold",
        type=_SHARE,
        help="Resample when the effective share of particles falls below this [default: 0.5].",
    ),
    "temper": click.option(
        "--temper",
        type=_SHARE,
        help="Share of alpha at the first sentence, growing to 1 [default: 1].",
    ),
    "samples": click.option(
        "--samples", type=click.IntRange(1), help="Paths that ffbs draws [default: 64]."
    ),
    "lag": click.option(
        "--lag",
        type=click.IntRange(1),
        help="Sentences behind one that tell of it, to the marginals of smc and mbr and the draws "
        "of ffbs, the latter two above order 1 [default: 5; for ffbs the order, 2 if unbounded].",
    ),
    "block": click.option(
        "--block", type=click.IntRange(1), help="Sentences that sweeps moves at once [default: 1]."
    ),
    "horizon": click.option(
        "--horizon",
        type=click.IntRange(0),
        help="Sentences behind a move that judge it [default: the order, 2 if unbounded].",
    ),
    "gibbs": click.option(
        "--gibbs", type=click.IntRange(0), help="Random sweeps before the others [default: 0]."
    ),
    "utility": click.option(
        "--utility", type=click.Choice(["bleu", "chrf"]), help="Gain of mbr [default: bleu]."
    ),
    "alpha": click.option(
        "--alpha",
        type=_POSITIVE,
        help="Scale of p(path) ∝ exp(alpha · score), for decoders that sample [default: that of "
        "the weights file].",
    ),
    "seed": click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        help="Of decoders that draw [default: 1].",
    ),
    "gap": click.option(
        "--gap",
        type=click.IntRange(1),
        metavar="WIDTH",
        help="Where no decoder is exact, look for the best known path with a beam this wide and "
        "sweeps, to tell the gap.",
    ),
}


def search_options(command: Command) -> Command:
    """The options of `rerank.pipeline.Search`."""
    return _with(_OPTIONS, command)


def path_options(command: Command) -> Command:
    """The same for a command that takes the path that is found and says nothing of its gap."""
    return _with(_OPTIONS.keys() - {"gap"}, command)


def tuning_search_options(command: Command) -> Command:
    """The same for a command that has a seed of its own, which is that of the search, too."""
    return _with(_OPTIONS.keys() - {"gap", "seed"}, command)


def _with(names: Collection[str], command: Command) -> Command:
    """The command with the options of these names, in the order of `_OPTIONS`."""
    for name, option in reversed(_OPTIONS.items()):
        command = option(command) if name in names else command
    return command


def taken(options: dict[str, Any]) -> Search:
    """The `Search` that a command's options ask for, which are taken out of them."""
    from decoders.search import Options
    from rerank.pipeline import Search

    given = {name: options.pop(name) for name in _OPTIONS if name in options}
    method, utility = given.pop("method"), given.pop("utility")
    return Search(method, Options(**given), utility)


@click.group("list")
def listing() -> None:
    """Show what there is to choose from."""


@listing.command()
@format_option
def decoders(form: str) -> None:
    """Show the decoders of --search: orders served, where exact, cost, options, source.

    \b
    Example:
      rerank list decoders
      rerank list decoders --format json
    """
    from rerank import pipeline
    from rerank.files.outputs import to_json

    table = pipeline.list_decoders()
    click.echo(to_json(table.to_dict()).decode() if form == "json" else table.to_text())
