"""Perplexity and accuracy of the next sentence's topic: Tables 4 and 5 of Ghosh et al. 2016.

    python recipes/ptb/topics.py --data DATA [--text 'bbc.{part}.txt'] [--work WORK] [-- OPTIONS]

Learns topics on the training text, labels all texts with them, trains a predictor for every row of
the table and every hidden size, and measures it on the test text. DATA holds the training,
validation and test text, as `bbc.py` makes them. OPTIONS after -- are those of `rerank topics
train`, as `--epochs 4`. What is trained is not trained again.
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

HERE = Path(__file__).parent
PARTS = ("train", "valid", "test")
BASELINES = ("most_frequent_topic", "topic_of_the_sentence_before", "bigram_of_topics")
Figures: TypeAlias = dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Row:
    """A row: where it is in the paper, its inputs there, and the options that choose it."""

    place: str
    inputs: str
    options: tuple[str, ...]

    @classmethod
    def of(cls, place: str, inputs: str, options: str) -> Row:
        """A row whose options are words of one text."""
        return cls(place, inputs, tuple(options.split()))


ROWS = (
    Row.of("Table 4", "W", "--architecture unrolled --inputs words"),
    Row.of("Table 4", "ST", "--architecture unrolled --inputs topics"),
    Row.of("Table 4", "W + ST", "--architecture unrolled --inputs words+topics"),
    Row.of("§5.1", "W", "--architecture rolled-up --inputs words"),
    Row.of("§5.1", "ST", "--architecture rolled-up --inputs topics"),
    Row.of("§5.1", "W + ST", "--architecture rolled-up --inputs words+topics"),
    Row.of("Table 5", "W + PST", "--architecture rolled-up --inputs words+thought"),
    Row.of(
        "§5, joint target", "W + ST", "--architecture unrolled --inputs words+topics --target joint"
    ),
    Row.of("§5.3, next words", "W", "--architecture bow-dnn --inputs words --given-next-words"),
    Row.of(
        "§5.3, next words",
        "W + ST",
        "--architecture unrolled --inputs words+topics --given-next-words",
    ),
)


@dataclass(frozen=True)
class Run:
    """What the rows share: texts, topics, folder of what is made, options of all trainings."""

    data: Path
    text: str
    work: Path
    topics: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def label(self) -> str:
        """Name of what is made of these topics."""
        return "topics-" + "-".join(self.topics)

    def learn(self) -> None:
        """Learn the topics and label all texts, unless that was done."""
        model = self.work / self.label
        if not (model / "topics.json").exists():
            kind, number = self.topics
            options = ["--topic-model", kind, "--topics-number", number, "--out", str(model)]
            rerank(["topics", "learn", self.file("train"), *options])
        for part in PARTS:
            if not Path(self.labels(part)).exists():
                out = ["--out", self.labels(part)]
                rerank(["topics", "label", "--model", str(model), self.file(part), *out])

    def figures(self, row: Row, hidden: int) -> Figures:
        """Figures on the test text of the predictor of a row, and of the baselines."""
        name = [self.label, *row.options, *self.options, f"hidden{hidden}"]
        folder = self.work / "-".join(name).replace("--", "")
        done = folder.with_name(folder.name + ".json")
        if not done.exists():
            files = ["--train", self.file("train"), "--topics", self.labels("train")]
            files += ["--valid", self.file("valid"), "--valid-topics", self.labels("valid")]
            sizes = ["--embed", str(hidden), "--hidden", str(hidden)]
            if not (folder / "topic-prediction.json").exists():
                training = ["topics", "train", *files, *row.options, *sizes, *self.options]
                rerank([*training, "--out", str(folder)])
            test = [self.file("test"), "--topics", self.labels("test"), "--format", "json"]
            done.write_bytes(rerank(["lm-eval", "topics", "--model", str(folder), *test]))
        return dict(json.loads(done.read_text()))

    def file(self, part: str) -> str:
        """The training, validation or test text."""
        return str(self.data / self.text.format(part=part))

    def labels(self, part: str) -> str:
        """The file of its topics."""
        return str(self.work / f"{self.label}.{part}")


def rerank(command: Sequence[str]) -> bytes:
    """What a command of rerank prints; the command itself is shown."""
    print("$ rerank", *command, file=sys.stderr, flush=True)
    return subprocess.run(
        [sys.executable, "-m", "rerank", *command], stdout=subprocess.PIPE, check=True
    ).stdout


def cell(figures: dict[str, float | None]) -> str:
    """`2.43 / 71.0 %`: perplexity and accuracy."""
    perplexity, accuracy = figures["perplexity"], figures["accuracy"]
    return f"{'–' if perplexity is None else f'{perplexity:.2f}'} / {accuracy:.1%}"


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--text", default="bbc.{part}.txt", show_default=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work")
@click.option("--topic-model", default="kmeans", show_default=True)
@click.option("--topics-number", default=50, show_default=True)
@click.option("--hidden", multiple=True, default=(64, 128), show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    data: Path,
    text: str,
    work: Path,
    topic_model: str,
    topics_number: int,
    hidden: tuple[int, ...],
    options: tuple[str, ...],
) -> None:
    """Print the table: perplexity / accuracy of the topics of next sentences in the test text."""
    work.mkdir(parents=True, exist_ok=True)
    run = Run(data, text, work, (topic_model, str(topics_number)), options)
    run.learn()
    print(f"| paper | inputs | {' | '.join(f'{size} hidden units' for size in hidden)} |")
    print("|---|---|" + "---|" * len(hidden), flush=True)
    found: Figures = {}
    for row in ROWS:
        cells = []
        for size in hidden:
            found = run.figures(row, size)
            cells.append(cell(found["topic_predictor"]))
        print(f"| {row.place} | {row.inputs} | {' | '.join(cells)} |", flush=True)
    for name in BASELINES:
        same = " | ".join([cell(found[name])] * len(hidden))
        print(f"| baseline | {name.replace('_', ' ')} | {same} |", flush=True)


if __name__ == "__main__":
    main()
