"""Heads: perplexity beside speed.

    python recipes/bench/heads.py --data DATA --lm WORK/rnnlm --lm WORK/rnnlm-classes …

For each trained model: perplexity of the validation text, always normalised exactly; mean and
standard deviation of log Z, the error of scores that are not; and hypotheses scored in a second
of CPU time by one thread, on the first sentences of a set. A ratio is to the first model of the
same name. The training of the models is described in README.md.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import click
import torch
from lists import FILES, Text
from tabulate import tabulate
from tasks import TASKS, hypotheses

from lm.checkpoint import load_model
from lm.corpus import encode
from lm.evaluation import perplexity
from lm.scoring import ScoringEngine
from rerank.files.lines import read_lines
from rerank.notices import Notices

RUNS = 5


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--set", "name", type=click.Choice(list(FILES)), default="tvsub test")
@click.option("--lm", "folders", multiple=True, required=True, type=click.Path(path_type=Path))
@click.option("--sentences", default=200, show_default=True, help="Of the set, for rnnlm.")
@click.option("--sample", default=20, show_default=True, help="The same, for codclm and ccdclm.")
def main(data: Path, name: str, folders: tuple[Path, ...], sentences: int, sample: int) -> None:
    """Print perplexity and speed of trained models."""
    torch.set_num_threads(1)
    text = Text.read(data, name, max(sentences, sample))
    valid = list(read_lines(data / "tvsub-zh-en" / "lm.valid.en.gz", Notices()))
    rows, first = [], dict[str, float]()
    for folder in folders:
        saved = load_model(folder)
        model, config = saved.model, saved.model.config
        result = perplexity(model, encode(valid, saved.vocabulary))
        lists = text.encoded(saved.vocabulary).head(
            sentences if config.model == "rnnlm" else sample
        )
        scorer, seconds = ScoringEngine.of(model), float("inf")
        for _ in range(RUNS):
            begin = process_time()
            TASKS[config.model].ours(scorer, lists)
            seconds = min(seconds, process_time() - begin)
        rate = hypotheses(config.model, lists) / seconds
        log_z = result.log_z
        rows.append(
            {
                "model": config.model,
                "head": config.head or "softmax",
                "perplexity": f"{result.perplexity:.2f}",
                "log Z": "0" if log_z is None else f"{log_z.mean:.3f} ± {log_z.sd:.3f}",
                "hypotheses/s": f"{rate:,.0f}",
                "ratio": f"{rate / first.setdefault(config.model, rate):.1f}×",
            }
        )
        click.echo(f"{folder.name}: done", err=True)
    align = ["left"] * 2 + ["right"] * 4
    print(tabulate(rows, "keys", tablefmt="github", colalign=align, disable_numparse=True))


if __name__ == "__main__":
    main()
