"""The choice of next sentences by models trained for it: Table 3 of Ghosh et al. 2016.

    python recipes/coherence/next_sentence.py --data WORK [--text 'bbc.{part}.txt'] [-- OPTIONS]

WORK holds the training, validation and test text, as `recipes/ptb/bbc.py` makes them. Learns topics
of the training text, labels all texts with them, and trains four models: the LSTM whose state is
carried on and the CLSTM that is given each sentence's topic, too, on whole documents and on
passages of four sentences of which the last one alone is predicted (§4.3). Measures them with
candidates of different documents and of one topic. OPTIONS after -- are those of `train-lm`, as
`--epochs 4 --threads 1`. What is trained is not trained again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

PARTS = ("train", "valid", "test")
MODELS = {
    "drnnlm": ("drnnlm", ()),
    "drnnlm, passages": ("drnnlm", ("--passages", "4")),
    "clstm": ("clstm-given-topic-carried", ()),
    "clstm, passages": ("clstm-given-topic-carried", ("--passages", "4")),
}
CANDIDATES = {"separate": "different documents", "same-topic": "one topic"}


def rerank(*command: str) -> bytes:
    """What a command prints; the command itself is shown."""
    print("$ rerank", *command, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "rerank", *command], stdout=subprocess.PIPE, check=True
    )
    return done.stdout


@dataclass(frozen=True)
class Run:
    """Texts, the folder of what is made, and options of all trainings."""

    data: Path
    text: str
    topics: int
    options: tuple[str, ...]

    def file(self, part: str) -> str:
        """The training, validation or test text."""
        return str(self.data / self.text.format(part=part))

    def labels(self, part: str) -> str:
        """The file of its topics."""
        return f"{self.file(part)}.topics{self.topics}"

    def learn(self) -> None:
        """Learn the topics and label all texts, unless that was done."""
        model = self.data / f"topics{self.topics}"
        if not (model / "topics.json").exists():
            number = ["--topics-number", str(self.topics)]
            rerank("topics", "learn", self.file("train"), *number, "--out", str(model))
        for part in PARTS:
            if not Path(self.labels(part)).exists():
                out = ["--out", self.labels(part)]
                rerank("topics", "label", "--model", str(model), self.file(part), *out)

    def trained(self, name: str) -> Path:
        """The folder of a model, trained unless that was done."""
        model, own = MODELS[name]
        options = [*own, *self.options]
        folder = self.data / "-".join([model, *options]).replace("--", "")
        done = Path(f"{folder}.done")
        if not done.exists():
            files = ["--train", self.file("train"), "--valid", self.file("valid")]
            if model.startswith("clstm"):
                files += ["--topics", self.labels("train"), "--valid-topics", self.labels("valid")]
            cell = ["--model", model, "--recurrence", "peephole"]  # that of the paper, for both
            rerank("train-lm", *cell, *files, *options, "--resume", "--out", str(folder))
            done.touch()
        return folder

    def accuracies(self, folders: Sequence[Path], candidates: str) -> list[str]:
        """Accuracy of each model by equation 4, with its interval, in per cent."""
        lms = [option for n, own in enumerate(folders) for option in ("--lm", f"m{n}={own}")]
        files = [self.file("test"), "--topics", self.labels("test")]
        command = ["lm-eval", "next-sentence", *lms, *files, "--candidates", candidates]
        found = json.loads(rerank(*command, "--format", "json"))
        print(f"{found['blocks']} blocks, {CANDIDATES[candidates]}", file=sys.stderr)
        rows = [own["accuracies"]["normalised"] for own in found["models"]]
        return [
            f"{100 * own['accuracy']:.1f} [{100 * own['low']:.1f}, {100 * own['high']:.1f}]"
            for own in rows
        ]


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--text", default="bbc.{part}.txt", show_default=True)
@click.option("--topics-number", default=20, show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(data: Path, text: str, topics_number: int, options: tuple[str, ...]) -> None:
    """Print the table: accuracy by equation 4, chance 2.0."""
    run = Run(data, text, topics_number, options)
    run.learn()
    folders = [run.trained(name) for name in MODELS]
    columns = [run.accuracies(folders, candidates) for candidates in CANDIDATES]
    print(f"| model | {' | '.join(f'among 50 of {name}' for name in CANDIDATES.values())} |")
    print("|---|---|---|")
    for name, *cells in zip(MODELS, *columns, strict=True):
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
