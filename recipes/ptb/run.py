"""Perplexity of document language models on the Penn Treebank with recovered article boundaries.

    python recipes/ptb/run.py --data DATA [--work WORK] [--model NAME …] [--seeds 3] [-- OPTIONS]

Trains each model with the same sizes and the same budget, keeps the state with the best validation
perplexity, and prints a table of validation and test perplexity. With several sizes (`--size 32
--size 48:96`, embedding and hidden size) the row of a model is that of the best mean validation
perplexity. What is trained is not trained again; an interrupted training goes on where it was.
`--text 'bbc.{part}.txt'` takes other texts of DATA, such as those of `bbc.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np

HERE = Path(__file__).parent
MODELS = ("rnnlm", "drnnlm", "hrnnlm", "adclm", "codclm", "ccdclm", "rlm-bow-lf-1")
Size: TypeAlias = tuple[int, int]  # of embeddings and of hidden layers
WORDS = 10_000  # more than the text has: every training word is in the vocabulary


@dataclass(frozen=True)
class Figures:
    """Perplexities of one trained model, `</s>` counted, and of words alone on the test text."""

    valid: float
    test: float
    words: float


@dataclass(frozen=True)
class Training:
    """What the models of a table share: data, folder of what is made, and options of `train-lm`."""

    data: Path
    text: str
    work: Path
    sizes: tuple[Size, ...]
    seeds: int
    options: tuple[str, ...]

    def best(self, model: str) -> tuple[Size, list[Figures]]:
        """The size of the best mean validation perplexity, and its figures for each seed."""
        seeds = range(1, self.seeds + 1)
        found = {size: [self.figures(model, size, seed) for seed in seeds] for size in self.sizes}
        return min(found.items(), key=lambda item: np.mean([one.valid for one in item[1]]))

    def figures(self, model: str, size: Size, seed: int) -> Figures:
        """Train a model, unless that was done, and measure it."""
        named = "x".join(map(str, dict.fromkeys(size)))
        label = "-".join([model, named, *self.options, f"seed{seed}"]).replace("--", "")
        folder = self.work / label
        done = self.work / f"{label}.json"
        if not done.exists():
            command = ["train-lm", "--model", model, "--out", str(folder), "--resume"]
            command += ["--train", self.file("train"), "--valid", self.file("valid")]
            command += ["--embed", str(size[0]), "--hidden", str(size[1])]
            command += ["--vocab", str(WORDS), "--seed", str(seed), *self.options]
            run([*command, "--curve", str(self.work / f"{label}.curve.tsv")])
            found = {part: self.perplexity(folder, part) for part in ("valid", "test")}
            done.write_text(json.dumps(found))
        found = json.loads(done.read_text())
        test = found["test"]
        return Figures(
            found["valid"]["perplexity"], test["perplexity"], test["perplexity_without_eos"]
        )

    def perplexity(self, folder: Path, part: str) -> dict[str, float]:
        """What `rerank perplexity --format json` prints."""
        printed = run(["perplexity", "--lm", str(folder), self.file(part), "--format", "json"])
        return dict(json.loads(printed))

    def file(self, part: str) -> str:
        """The training, validation or test text."""
        return str(self.data / self.text.format(part=part))


def run(command: Sequence[str]) -> bytes:
    """What a command of rerank prints; the command itself is shown."""
    print("$ rerank", *command, file=sys.stderr, flush=True)
    return subprocess.run(
        [sys.executable, "-m", "rerank", *command], stdout=subprocess.PIPE, check=True
    ).stdout


def size_of(text: str) -> Size:
    """K and H of `96` or `48:96`."""
    embed, _, hidden = text.partition(":")
    return int(embed), int(hidden or embed)


def spread(values: Sequence[float]) -> str:
    """Mean, and standard deviation of more than one."""
    mean = f"{np.mean(values):.2f}"
    return f"{mean} ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--text", default="ptb/ptb.{part}.txt.gz", show_default=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work")
@click.option("--model", "models", multiple=True, default=MODELS)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    default=("96",),
    show_default=True,
    help="Embedding and hidden size, as 96, or as 48:96; repeatable.",
)
@click.option("--seeds", default=1, show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    data: Path,
    text: str,
    work: Path,
    models: tuple[str, ...],
    sizes: tuple[str, ...],
    seeds: int,
    options: tuple[str, ...],
) -> None:
    """Print the table; OPTIONS after -- are those of `rerank train-lm`, as `--recipe paper`."""
    work.mkdir(parents=True, exist_ok=True)
    training = Training(data, text, work, tuple(map(size_of, sizes)), seeds, options)
    print(f"| model | K, H | validation | test | test, without `</s>` | ÷ {models[0]} |")
    print("|---|---|---|---|---|---|", flush=True)
    base: float | None = None
    for model in models:
        size, found = training.best(model)
        test = [one.test for one in found]
        base = base or float(np.mean(test))
        print(
            f"| `{model}` | {size[0]}, {size[1]} | {spread([one.valid for one in found])} "
            f"| {spread(test)} | {spread([one.words for one in found])} "
            f"| {np.mean(test) / base:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
