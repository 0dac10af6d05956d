"""Language models trained on one text: perplexity, pronouns, and what each adds to Moses lists.

    python recipes/tvsub-zh-en/models.py --data DATA [--work WORK] [--model NAME …] [--words N]

The text is the first documents of the training text that reach so many words; the next twelve
documents are held out, with their source sentences. Every model has one epoch of it, is measured
on the held-out documents and on pairs of pronouns, and is tuned and tested on the first ten
candidates of the subtitle lists, with a beam of four where exact search would be too slow. What is
done is not done again.
"""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

HERE = Path(__file__).parent
MODELS = ("rnnlm", "drnnlm", "codclm", "ccdclm", "hrnnlm", "rlm-bow-lf-1", "dclm-bilingual")
WITH_SOURCE = ("dclm-bilingual", "dclm-bilingual-decoupled", "dclm-right")
HELD_OUT = 12  # documents
LISTS = ("--top", "10", "--beam", "4")


def opened(path: Path) -> IO[bytes]:
    """A compressed file, opened."""
    return lzma.open(path) if path.suffix == ".xz" else gzip.open(path)  # type: ignore[return-value]


def documents(path: Path) -> Iterator[list[bytes]]:
    """The lines of each document, which a blank line ends."""
    lines: list[bytes] = []
    with opened(path) as file:
        for line in file:
            if line.strip():
                lines.append(line)
            elif lines:
                yield lines
                lines = []
    if lines:
        yield lines


def write_texts(data: Path, work: Path, words: int) -> None:
    """Write train.{en,zh} and held-out.{en,zh} to WORK."""
    n = total = 0
    for document in documents(data / "lm.train.en.gz"):
        n, total = n + 1, total + sum(len(line.split()) for line in document)
        if total > words:
            break
    for language, suffix in (("en", "gz"), ("zh", "xz")):
        text = documents(data / f"lm.train.{language}.{suffix}")
        for name, size in (("train", n), ("held-out", HELD_OUT)):
            parts = (b"".join(document) for document in islice(text, size))
            (work / f"{name}.{language}").write_bytes(b"\n".join(parts))


@dataclass(frozen=True)
class Models:
    """Data, and folder of what is made."""

    data: Path
    work: Path

    def run(self, *command: str, target: Path | None = None) -> bytes:
        """What a command of rerank prints; nothing if its target is there."""
        if target is not None and target.exists():
            return b""
        print("$ rerank", *command, file=sys.stderr, flush=True)
        script = [sys.executable, "-m", "rerank", *command]
        return subprocess.run(script, stdout=subprocess.PIPE, check=True).stdout

    def train(self, name: str) -> Path:
        """The folder of a model."""
        folder, text = self.work / name, str(self.work / "train")
        held_out = str(self.work / "held-out")
        files = ["--train", f"{text}.en", "--valid", f"{held_out}.en"]
        if name in WITH_SOURCE:
            files += ["--source", f"{text}.zh", "--valid-source", f"{held_out}.zh"]
        options = ["--epochs", "1", "--threads", "1", "--resume"]
        done = self.work / f"{name}.done"
        self.run("train-lm", "--model", name, *files, *options, "--out", str(folder), target=done)
        done.touch()
        return folder

    def perplexity(self, name: str) -> float:
        """Perplexity of the held-out documents."""
        source = ["--source", str(self.work / "held-out.zh")] if name in WITH_SOURCE else []
        text = ["--lm", str(self.work / name), str(self.work / "held-out.en")]
        found = json.loads(self.run("perplexity", *text, *source, "--format", "json"))
        return float(found["perplexity"])

    def rerank(self, name: str | None) -> Path:
        """Translations of the test set with the features of a model, or of the lists alone."""
        label, sets = name or "static", self.data / "tvsub-zh-en"
        out, weights = self.work / f"{label}.out", self.work / f"{label}.json"
        for stem, command, files in (
            ("tune", "tune-mert", ["--out", str(weights), "--ref", str(sets / "tune.en")]),
            ("test", "decode", ["--out", str(out), "--weights", str(weights)]),
        ):
            lists = ["--kbest", str(sets / f"{stem}.nbest.xz")]
            lists += ["--docs", str(sets / f"{stem}.docids"), *LISTS, "--threads", "1"]
            if name:
                lists += ["--lm", f"lm={self.work / name}"]
            if name in WITH_SOURCE:
                lists += ["--source", str(sets / f"{stem}.zh")]
            if command == "tune-mert":
                lists += ["--start", str(sets / "moses.rescore.ini")]
            self.run(command, *lists, *files, target=Path(files[1]))
        return out

    def pronouns(self, names: list[str]) -> str:
        """The table of `lm-eval contrastive`; models of source sentences are left out."""
        folders = [x for n in names if n not in WITH_SOURCE for x in ("--lm", str(self.work / n))]
        pairs = [str(self.data / "pronouns-en" / f"{x}.jsonl") for x in ("de", "fr", "zh")]
        return self.run("lm-eval", "contrastive", *folders, *pairs).decode()

    def evaluate(self, outs: list[Path]) -> list[dict[str, Any]]:
        """The systems of `evaluate --format json`, the first one the baseline."""
        sets = self.data / "tvsub-zh-en"
        files = ["--docs", str(sets / "test.docids"), "--ref", str(sets / "test.en")]
        command = [*files, "--baseline", *map(str, outs), "--format", "json"]
        found: list[dict[str, Any]] = json.loads(self.run("evaluate", *command))["systems"]
        return found


def row(name: str, perplexity: float | None, system: dict[str, Any]) -> str:
    """A line of the table."""
    cells = [f"`{name}`", "" if perplexity is None else f"{perplexity:.2f}"]
    cells.append(f"{system['bleu']:.2f}")
    documents = system["documents"]
    if documents["better"] is not None:
        cells.append("/".join(str(documents[k]) for k in ("better", "equal", "worse")))
        cells.append(f"{system['p_value']:.4f}")
    return "| " + " | ".join(cells) + " |"


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work" / "models")
@click.option("--model", "names", multiple=True, default=MODELS)
@click.option("--words", default=3_000_000, show_default=True)
def main(data: Path, work: Path, names: tuple[str, ...], words: int) -> None:
    """Print the tables."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "held-out.zh").exists():
        write_texts(data / "tvsub-zh-en", work, words)
    models = Models(data, work)
    for name in names:
        models.train(name)
    outs = [models.rerank(name) for name in (None, *names)]
    figures = [None, *(models.perplexity(name) for name in names)]
    print("| model | perplexity | BLEU | documents better/equal/worse | p |")
    print("|---|---|---|---|---|")
    systems = models.evaluate(outs)
    for label, figure, system in zip(("static", *names), figures, systems, strict=True):
        print(row(label, figure, system))
    print("\n" + models.pronouns(list(names)))


if __name__ == "__main__":
    main()
