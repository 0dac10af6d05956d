"""Discourse relations, annotated and predicted, as context of a language model: GUM.

    python recipes/ptb/relations.py --data DATA [--work WORK] [--seeds 3] [-- OPTIONS]

DATA/gum/gum.jsonl.gz has documents with the relation of each sentence to the one before. Trains
`dclm`, which reads none, and `dclm-projection` (Eisenstein's memo, eq. 9) with the annotated
relations and with those that a classifier predicts, then the other models of the memo that are
given relations (eqs. 10–12) and a contextual LSTM that reads them as it reads topics, all with the
annotated ones, and prints perplexity on the test documents, also relative to the model above
without relations.
Training documents are labelled by classifiers that have not seen them: each half by that of the
other half. Chance relations, the annotated ones of the training text dealt anew, are the control.
OPTIONS after -- are those of `train-lm`, as `--epochs 8 --threads 1`. What is trained is not
trained again.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

HERE = Path(__file__).parent
SPLITS = {"train": "train", "valid": "dev", "test": "test"}
ROWS = (
    ("none", "dclm"),
    ("annotated", "dclm-projection"),
    ("predicted", "dclm-projection"),
    ("chance", "dclm-projection"),
    ("annotated", "dclm-recurrence"),
    ("annotated", "dclm-auxiliary"),
    ("none", "dclm-decoupled"),
    ("annotated", "dclm-projection-decoupled"),
    ("none", "rnnlm"),
    ("annotated", "clstm-given-topic"),
)
IN_TRAINING_ALONE = "dclm-auxiliary"
AS_TOPICS = "clstm-given-topic"


def rerank(*command: str) -> bytes:
    """What a command prints; the command itself is shown."""
    print("$ rerank", *command, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "rerank", *command], stdout=subprocess.PIPE, check=True
    )
    return done.stdout


def write(path: Path, documents: Iterable[Iterable[str]]) -> None:
    """Lines of documents, a blank line after each."""
    path.write_text("".join("\n".join([*one, "", ""]) for one in documents), encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """The annotated documents, the folder of what is made, and options of all trainings."""

    gum: Path
    work: Path
    options: tuple[str, ...]

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        """Documents of training, validation and test text."""
        with gzip.open(self.gum, "rt", encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        return {part: [d for d in found if d["split"] == split] for part, split in SPLITS.items()}

    def prepare(self) -> None:
        """Write texts and relations of every kind, unless that was done."""
        if (self.work / "test.chance").exists():
            return
        parts = self.documents()
        for part, documents in parts.items():
            write(
                self.work / f"{part}.txt",
                ([" ".join(s) for s in d["sentences"]] for d in documents),
            )
            gold = [[sense(one) for one in d["relations"]] for d in documents]
            write(self.work / f"{part}.annotated", gold)
        halves = parts["train"][::2], parts["train"][1::2]
        predicted: dict[str, list[str]] = {}
        for n, (own, other) in enumerate((halves, halves[::-1])):
            predicted |= self.labels(f"half{n}", trained_on=other, documents=own)
        write(self.work / "train.predicted", (predicted[d["id"]] for d in parts["train"]))
        for part in ("valid", "test"):
            found = self.labels("all", trained_on=parts["train"], documents=parts[part])
            write(self.work / f"{part}.predicted", (found[d["id"]] for d in parts[part]))
        rng = random.Random(1)
        pool = [sense(one) for d in parts["train"] for one in d["relations"]]
        for part, documents in parts.items():
            dealt = ([rng.choice(pool) for _ in d["relations"]] for d in documents)
            write(self.work / f"{part}.chance", dealt)

    def labels(
        self, name: str, *, trained_on: list[dict[str, Any]], documents: list[dict[str, Any]]
    ) -> dict[str, list[str]]:
        """Relations of documents by a classifier trained on others, by document id."""
        model, annotated = self.work / f"classifier-{name}", self.work / f"{name}.jsonl"
        if not model.exists():
            lines = [json.dumps({**d, "split": "train"}) for d in trained_on]
            annotated.write_text("\n".join(lines) + "\n", encoding="utf-8")
            rerank("relations", "train", str(annotated), "--out", str(model))
        text, out = self.work / f"{name}.txt", self.work / f"{name}.labels"
        write(text, ([" ".join(s) for s in d["sentences"]] for d in documents))
        rerank("relations", "label", "--model", str(model), str(text), "--out", str(out))
        parts = out.read_text(encoding="utf-8").strip("\n").split("\n\n")
        return {d["id"]: own.split("\n") for d, own in zip(documents, parts, strict=True)}

    def perplexity(self, relations: str, model: str, seed: int) -> float:
        """Test perplexity of a model with relations of a kind, trained unless that was done."""
        label = "-".join([model, relations, *self.options, f"seed{seed}"]).replace("--", "")
        folder = self.work / label
        done = folder.with_name(f"{label}.json")
        if not done.exists():
            files = ["--train", self.file("train.txt"), "--valid", self.file("valid.txt")]
            side, test = [], []
            if relations != "none":
                kind = "topics" if model == AS_TOPICS else "relations"
                side = [f"--{kind}", self.file(f"train.{relations}")]
                if model != IN_TRAINING_ALONE:
                    side += [f"--valid-{kind}", self.file(f"valid.{relations}")]
                    test = [f"--{kind}", self.file(f"test.{relations}")]
            training = ["--model", model, *files, *side, "--seed", str(seed), *self.options]
            rerank("train-lm", *training, "--resume", "--out", str(folder))
            text = [self.file("test.txt"), *test, "--format", "json"]
            done.write_bytes(rerank("perplexity", "--lm", str(folder), *text))
        return float(json.loads(done.read_text())["perplexity"])

    def file(self, name: str) -> str:
        """A file of the run."""
        return str(self.work / name)


def sense(relation: dict[str, Any] | None) -> str:
    """The label of a relation, as `rerank relations train` reads it."""
    return "none" if relation is None else str(relation["sense"])


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work" / "relations")
@click.option("--seeds", default=3, show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(data: Path, work: Path, seeds: int, options: tuple[str, ...]) -> None:
    """Print the table: test perplexity by relations, mean and standard deviation over seeds."""
    work.mkdir(parents=True, exist_ok=True)
    run = Run(data / "gum" / "gum.jsonl.gz", work, options)
    run.prepare()
    print("| relations | model | test perplexity | ÷ without |\n|---|---|---|---|")
    base = 0.0  # of the model above without relations
    for relations, model in ROWS:
        found = [run.perplexity(relations, model, seed) for seed in range(1, seeds + 1)]
        mean, sd = np.mean(found), np.std(found, ddof=1) if seeds > 1 else 0.0
        base = float(mean) if relations == "none" else base
        print(
            f"| {relations} | `{model}` | {mean:.2f} ± {sd:.2f} | {mean / base:.3f} |", flush=True
        )


if __name__ == "__main__":
    main()
