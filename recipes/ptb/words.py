"""Perplexity with topics, sentences reset or carried on: Table 2 of Ghosh et al. 2016, both ways.

    python recipes/ptb/words.py --data WORK --work WORK [--size 64:128 …] [-- OPTIONS]

The paper reads the sentences of a paragraph with a single LSTM (§5.1, the rolled-up architecture);
`--fusion input`, the default of the models but by the recipe `paper`, resets it at each sentence.
Test perplexity of each row of the table, both ways, for each size; what is trained already is not
trained again.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import click
import numpy as np
from run import Figures, Size, Training, size_of, spread

CELL = ("--recurrence", "peephole")
RESET, CARRIED = ("--fusion", "input"), ("--fusion", "input-initial")
TOPICS = {  # features in the table, beside the word
    "previous sentence": "clstm-prevsent",
    "sentence so far": "clstm-sentseg",
    "paragraph so far": "clstm-paraseg",
    "previous sentence, sentence so far": "clstm-prevsent-sentseg",
    "sentence so far, paragraph so far": "clstm-sentseg-paraseg",
}
ROWS = {  # the model whose sentences are reset, and the one that carries on
    "word": (("rnnlm",), ("drnnlm",)),
    **{f"word, {name}": ((lm, *RESET), (lm, *CARRIED)) for name, lm in TOPICS.items()},
}


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--text", default="bbc.{part}.txt", show_default=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--size", "sizes", multiple=True, default=("64:128",), show_default=True)
@click.option("--seeds", default=1, show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    data: Path,
    text: str,
    work: Path,
    sizes: tuple[str, ...],
    seeds: int,
    options: tuple[str, ...],
) -> None:
    """Print the table; OPTIONS after -- are those of `rerank train-lm`."""
    work.mkdir(parents=True, exist_ok=True)

    def found(model: str, more: tuple[str, ...], size: Size) -> list[Figures]:
        training = Training(data, text, work, (size,), seeds, (*CELL, *more, *options))
        return [training.figures(model, size, seed) for seed in range(1, seeds + 1)]

    shapes = [size_of(size) for size in sizes]
    heads = [f"{way}, {hidden} units" for _, hidden in shapes for way in ("reset", "carried on")]
    print(f"| features | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}", flush=True)
    base: dict[tuple[Size, int], float] = {}
    for features, ways in ROWS.items():
        cells = []
        for size in shapes:
            for way, (model, *more) in enumerate(ways):
                test = [one.test for one in found(model, tuple(more), size)]
                mean = float(np.mean(test))
                cells.append(f"{spread(test)} ({mean / base.setdefault((size, way), mean):.3f})")
        print(f"| {features} | {' | '.join(cells)} |", flush=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"{spent / 60:.1f} minutes of CPU time in this run", file=sys.stderr)


if __name__ == "__main__":
    main()
