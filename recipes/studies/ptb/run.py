"""Perplexity of document language models on the Penn Treebank with recovered article boundaries.

    python recipes/studies/ptb/run.py --data DATA [--work WORK] [--model NAME …] \
      [--seeds 3] [-- OPTIONS]

Trains each model with the same sizes and the same budget, keeps the state with the best validation
perplexity, and prints a table of validation and test perplexity, highest first, with p of each row
against the one above: a sign-flip test over the test documents, of the mean −log p of the seeds.
With several sizes (`--size 32 --size 48:96`, embedding and hidden size) the row of a model is that
of the best mean validation perplexity. Epochs: where the training of each seed ended.
`--text 'bbc.{part}.txt'` takes other texts of DATA, such as those of `bbc.py`.

What is trained is not trained again. A run that is stopped, by `--hours` or a signal, prints the
rows that are complete; the same command goes on where it was. Seeds are trained in turns of all
models.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from rerank.files.outputs import atomic
from rerank.metrics.significance import sign_flip_p_value

HERE = Path(__file__).parent
MODELS = (
    "rnnlm",
    "drnnlm",
    "hrnnlm",
    "adclm",
    "codclm",
    "ccdclm",
    "rlm-bow-lf-1",
    "dclm-two-sentence",
    "dclm",
)
Size: TypeAlias = tuple[int, int]  # of embeddings and of hidden layers
COLUMNS = ("valid", "test", "words")
WORDS = 10_000  # more than the text has: every training word is in the vocabulary


@dataclass(frozen=True)
class Figures:
    """Perplexities of one trained model, `</s>` counted, and of words alone on the test text.

    nats: (D, 1) −log p of the test documents; epochs: how many the training had.
    """

    valid: float
    test: float
    words: float
    nats: NDArray[np.float64]
    epochs: float


@dataclass(frozen=True)
class Row:
    """A model of the table, at one size, with its figures for each seed."""

    model: str
    size: Size
    found: list[Figures]

    def mean(self, name: str) -> float:
        """Mean of a figure over the seeds."""
        return float(np.mean([getattr(one, name) for one in self.found]))

    def cells(self, base: float, above: Row | None) -> list[str]:
        """The row as text; base: test perplexity to divide by."""
        shown = [spread([getattr(one, name) for one in self.found]) for name in COLUMNS]
        ratio, epochs = f"{self.mean('test') / base:.3f}", [f"{one.epochs:g}" for one in self.found]
        sizes = ", ".join(map(str, self.size))
        return [f"`{self.model}`", sizes, *shown, ratio, self.p_value(above), ", ".join(epochs)]

    def p_value(self, above: Row | None) -> str:
        """Of the sign-flip test over documents against the row above."""
        if above is None:
            return "–"
        ours, theirs = (np.mean([f.nats for f in row.found], axis=0) for row in (self, above))
        rng = np.random.default_rng(1)
        p = sign_flip_p_value(ours, theirs, lambda sums: sums[..., 0], rng=rng)
        return "–" if p is None else f"{p:.2g}"


class OutOfTime(Exception):
    """The time of this run is over, or it was asked to stop."""


@dataclass(frozen=True)
class Training:
    """What the models of a table share: data, folder of what is made, and options of `train-lm`."""

    data: Path
    text: str
    work: Path
    sizes: tuple[Size, ...]
    seeds: int
    options: tuple[str, ...]
    end: float | None = None

    def label(self, model: str, size: Size, seed: int) -> str:
        """Name of a training, and of its files."""
        named = "x".join(map(str, dict.fromkeys(size)))
        return "-".join([model, named, *self.options, f"seed{seed}"]).replace("--", "")

    def row(self, model: str) -> Row | None:
        """The size of the best mean validation perplexity; None if a training is missing."""
        seeds, rows = range(1, self.seeds + 1), []
        for size in self.sizes:
            labels = [self.label(model, size, seed) for seed in seeds]
            if not all(map(self.measured, labels)):
                return None
            rows.append(Row(model, size, [self.figures(model, size, seed) for seed in seeds]))
        return min(rows, key=lambda row: row.mean("valid"))

    def measured(self, label: str) -> bool:
        """Whether a training is measured, documents apart, which files of earlier versions lack."""
        done = self.work / f"{label}.json"
        return done.exists() and "documents" in json.loads(done.read_text())["test"]

    def figures(self, model: str, size: Size, seed: int) -> Figures:
        """Train a model, unless that was done, and measure it."""
        label = self.label(model, size, seed)
        folder, done = self.work / label, self.work / f"{label}.json"
        curve = self.work / f"{label}.curve.tsv"
        if not self.measured(label):
            command = ["train-lm", "--model", model, "--out", str(folder), "--resume"]
            command += ["--train", self.file("train"), "--valid", self.file("valid")]
            command += ["--embed", str(size[0]), "--hidden", str(size[1])]
            command += ["--vocab", str(WORDS), "--seed", str(seed), *self.options]
            run([*command, "--curve", str(curve)], self.end)
            result = {part: self.perplexity(folder, part) for part in ("valid", "test")}
            with atomic(str(done)) as file:
                file.write(json.dumps(result).encode())
        result = json.loads(done.read_text())
        test = result["test"]
        nats = np.array([[document["nats"]] for document in test["documents"]])
        heading, *_, last = (line.split("\t") for line in curve.read_text().splitlines())
        epochs = float(dict(zip(heading, last, strict=True))["epoch"])
        perplexities = test["perplexity"], test["perplexity_without_eos"]
        return Figures(result["valid"]["perplexity"], *perplexities, nats, epochs)

    def perplexity(self, folder: Path, part: str) -> dict[str, Any]:
        """What `rerank perplexity --format json` prints, documents among it."""
        command = ["perplexity", "--lm", str(folder), self.file(part), "--format", "json"]
        return dict(json.loads(run([*command, "--per-document"], self.end)))

    def file(self, part: str) -> str:
        """The training, validation or test text."""
        return str(self.data / self.text.format(part=part))


def run(command: Sequence[str], end: float | None) -> bytes:
    """What a command of rerank prints; the command itself is shown.

    OutOfTime when it was stopped, after a training has saved its state; end: of the time there is.
    """
    print("$ rerank", *command, file=sys.stderr, flush=True)
    whole = [sys.executable, "-m", "rerank", *command]
    with subprocess.Popen(whole, stdout=subprocess.PIPE) as child:
        try:
            left = None if end is None else max(0.0, end - time.monotonic())
            printed, _ = child.communicate(timeout=left)
        except (subprocess.TimeoutExpired, OutOfTime):
            child.terminate()
            child.communicate()
            raise OutOfTime from None
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, whole)
    return printed


def stop(number: int, frame: object) -> None:
    """Answer to a signal that asks this run to stop."""
    raise OutOfTime


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
@click.option("--hours", default=168.0, show_default=True, help="Time after which it stops.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    data: Path,
    text: str,
    work: Path,
    models: tuple[str, ...],
    sizes: tuple[str, ...],
    seeds: int,
    hours: float,
    options: tuple[str, ...],
) -> None:
    """Print the table; OPTIONS after -- are those of `rerank train-lm`, as `--recipe paper`."""
    work.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 3600 * hours
    if "rnnslm" in models:
        raise click.UsageError(
            "--model rnnslm: expected models of words, found one of bags, whose perplexity is "
            "another; rerank train-lm --model rnnslm trains it"
        )
    training = Training(data, text, work, tuple(map(size_of, sizes)), seeds, options, end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        for seed, model, size in product(range(1, seeds + 1), models, training.sizes):
            training.figures(model, size, seed)
    except OutOfTime:
        print("stopped; the same command goes on", file=sys.stderr)
    rows = [row for row in map(training.row, models) if row is not None]
    base = next((row.mean("test") for row in rows if row.model == models[0]), float("nan"))
    print(
        f"| model | K, H | validation | test | test, without `</s>` | ÷ {models[0]} | p | epochs |"
    )
    print("|---|---|---|---|---|---|---|---|")
    rows.sort(key=lambda row: row.mean("test"), reverse=True)
    for row, above in zip(rows, [None, *rows], strict=False):
        print("|", " | ".join(row.cells(base, above)), "|")


if __name__ == "__main__":
    main()
