"""`rerank tune-moses`."""

from __future__ import annotations

import click

from rerank.cli.options import announcer, quiet_option, strict_option, told


@click.command("tune-moses")
@click.option(
    "--features",
    required=True,
    multiple=True,
    help="features.dat of Moses' extractor; repeatable, one for each --scores.",
)
@click.option(
    "--scores",
    required=True,
    multiple=True,
    help="scores.dat of the same run of extractor, with BLEU; repeatable.",
)
@click.option(
    "--out", required=True, help="Weights file to write: .json or .ini (with --base, moses.ini)."
)
@click.option("--init", help="init.opt to start from: three lines, start, least, largest values.")
@click.option(
    "--start",
    help="Weights to start from, sparse ones too: moses.ini, run*.dense, weights.txt, JSON; "
    "features it lacks begin at 0.",
)
@click.option("--base", help="moses.ini that --out is to be, with the new weights in it.")
@click.option(
    "--starts", default=10, show_default=True, type=click.IntRange(0), help="Random starts."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option(
    "--threads", default=1, show_default=True, type=click.IntRange(1), help="Starts side by side."
)
@strict_option
@quiet_option
def tune_moses(
    features: tuple[str, ...],
    scores: tuple[str, ...],
    out: str,
    init: str | None,
    start: str | None,
    base: str | None,
    starts: int,
    seed: int,
    threads: int,
    strict: bool,
    quiet: bool,
) -> None:
    """Tune the feature weights on the files of Moses' extractor, in place of Moses' mert.

    \b
    Example:
      rerank tune-moses --features run1.features.dat --scores run1.scores.dat \\
        --init run1.init.opt --base moses.ini --out tuned.ini
    """
    from rerank import pipeline

    say = announcer(quiet)
    with told(strict, quiet) as notices:
        result = pipeline.tune_moses(
            features,
            scores,
            out,
            start=start,
            init=init,
            base=base,
            settings=pipeline.MertSettings(random_starts=starts, seed=seed, threads=threads),
            notices=notices,
            announce=say,
        )
    say(result.to_text())
