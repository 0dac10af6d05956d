"""Language models trained on one text: perplexity, pronouns, and what each adds to Moses lists.

    python recipes/tvsub-zh-en/models.py --data DATA [--work WORK] [--model NAME …] [--words N] …

The text is the first documents of the training text that reach so many words; the next twelve
documents are held out, with their source sentences. Every model has one epoch of it, is measured
on `lm.valid`, on the held-out documents and on pairs of pronouns, and is tuned and tested on the
first candidates of the lists of subtitles and of lectures (`--top`), with a narrow beam (`--beam`)
where exact search would be too slow. NAME is a model, one of the variants below, or several of
these with + between them: one system with the features of all. What is done is not done again.
"""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

HERE = Path(__file__).parent
MODELS = ("rnnlm", "drnnlm", "codclm", "ccdclm", "hrnnlm", "rlm-bow-lf-1", "dclm-bilingual")
VARIANTS = {
    "codclm-clean": ("codclm", "--context-noise", "0"),
    "dam-64": ("dam", "--attention", "64"),
    "codclm-reversed": ("codclm", "--reverse-documents"),
    "ccdclm-reversed": ("ccdclm", "--reverse-documents"),
    "dclm-bilingual-previous": ("dclm-bilingual", "--source-context", "previous"),
    "dclm-bilingual-current": ("dclm-bilingual", "--source-context", "current"),
}
WITH_SOURCE = ("dclm-bilingual", "dclm-bilingual-decoupled", "dclm-right")
BAGS = ("rnnslm",)  # no words in order: neither perplexity of words nor pronouns
HELD_OUT = 12  # documents


@dataclass(frozen=True)
class Lists:
    """Tuning set and test set of one kind of text."""

    folder: str
    tune: str
    test: str


SUBTITLES = Lists("tvsub-zh-en", "tune", "test")
LECTURES = Lists("ted-zh-en", "dev2010", "tst2010")


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


def needs_source(name: str) -> bool:
    """Whether a model, a variant or one of several reads source sentences."""
    return any(VARIANTS.get(part, (part,))[0] in WITH_SOURCE for part in name.split("+"))


@dataclass(frozen=True)
class Models:
    """Data, folder of what is made, and options of the search."""

    data: Path
    work: Path
    search: tuple[str, ...]

    def run(self, *command: str, target: Path | None = None) -> bytes:
        """What a command of rerank prints; nothing if its target is there."""
        if target is not None and target.exists():
            return b""
        print("$ rerank", *command, file=sys.stderr, flush=True)
        script = [sys.executable, "-m", "rerank", *command]
        return subprocess.run(script, stdout=subprocess.PIPE, check=True).stdout

    def train(self, name: str) -> None:
        """Train a model or a variant."""
        model, *options = VARIANTS.get(name, (name,))
        text, held_out = self.work / "train", self.work / "held-out"
        files = ["--train", f"{text}.en", "--valid", f"{held_out}.en"]
        if needs_source(name):
            files += ["--source", f"{text}.zh", "--valid-source", f"{held_out}.zh"]
        out = ["--epochs", "1", "--threads", "1", "--resume", "--out", str(self.work / name)]
        done = self.work / f"{name}.done"
        self.run("train-lm", "--model", model, *options, *files, *out, target=done)
        done.touch()

    def perplexity(self, name: str, text: Path, *source: str) -> float | None:
        """Perplexity of a text; None where the model gives none."""
        if name in BAGS or "+" in name or (needs_source(name) and not source):
            return None
        files = ["--lm", str(self.work / name), str(text), *(source if needs_source(name) else ())]
        found = json.loads(self.run("perplexity", *files, "--format", "json"))
        return float(found["perplexity"])

    def rerank(self, name: str | None, sets: Lists) -> Path:
        """Translations of the test set with the features of models, or of the lists alone."""
        folder = self.data / sets.folder
        label = self.work / f"{name or 'static'}-{sets.test}"
        weights, out = Path(f"{label}.json"), Path(f"{label}.out")
        start = ["--start", str(folder / "moses.rescore.ini")]
        self.run(
            *("tune-mert", *self.lists(name, folder / sets.tune), *start),
            *("--ref", str(folder / f"{sets.tune}.en"), "--out", str(weights)),
            target=weights,
        )
        lists = self.lists(name, folder / sets.test)
        self.run("decode", *lists, "--weights", str(weights), "--out", str(out), target=out)
        return out

    def lists(self, name: str | None, stem: Path) -> list[str]:
        """Options of lists with the features of models."""
        lists = next(
            path for suffix in ("gz", "xz") if (path := with_suffix(stem, suffix)).exists()
        )
        options = ["--kbest", str(lists), "--docs", f"{stem}.docids", *self.search]
        for i, part in enumerate(name.split("+") if name else ()):
            options += ["--lm", f"lm{i or ''}={self.work / part}"]
        return [*options, "--source", f"{stem}.zh"] if name and needs_source(name) else options

    def pronouns(self, names: Sequence[str]) -> str:
        """The table of `lm-eval contrastive`."""
        folders = [option for name in names for option in ("--lm", str(self.work / name))]
        pairs = [str(self.data / "pronouns-en" / f"{x}.jsonl") for x in ("de", "fr", "zh")]
        return self.run("lm-eval", "contrastive", *folders, *pairs).decode()

    def evaluate(self, outs: list[Path], sets: Lists) -> list[dict[str, Any]]:
        """The systems of `evaluate --format json`, the first one the baseline."""
        stem = self.data / sets.folder / sets.test
        files = ["--docs", f"{stem}.docids", "--ref", f"{stem}.en"]
        command = [*files, "--baseline", *map(str, outs), "--format", "json"]
        found: list[dict[str, Any]] = json.loads(self.run("evaluate", *command))["systems"]
        return found


def with_suffix(stem: Path, suffix: str) -> Path:
    """The k-best lists of a set, compressed in one way."""
    return stem.with_name(f"{stem.name}.nbest.{suffix}")


def cells(system: dict[str, Any]) -> list[str]:
    """BLEU, documents that got better, equal and worse, and p."""
    documents = system["documents"]
    if documents["better"] is None:
        return [f"{system['bleu']:.2f}", "", ""]
    counts = "/".join(str(documents[k]) for k in ("better", "equal", "worse"))
    return [f"{system['bleu']:.2f}", counts, f"{system['p_value']:.4f}"]


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work" / "models")
@click.option("--model", "names", multiple=True, default=MODELS)
@click.option("--words", default=3_000_000, show_default=True)
@click.option("--top", default=10, show_default=True, help="Candidates of each sentence.")
@click.option("--beam", default=4, show_default=True, help="Where exact search is too slow.")
def main(data: Path, work: Path, names: tuple[str, ...], words: int, top: int, beam: int) -> None:
    """Print the tables."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "held-out.zh").exists():
        write_texts(data / "tvsub-zh-en", work, words)
    search = ("--top", str(top), "--beam", str(beam), "--threads", "1")
    models = Models(data, work, search)
    for name in dict.fromkeys(part for joined in names for part in joined.split("+")):
        models.train(name)
    systems = [
        models.evaluate([models.rerank(name, sets) for name in (None, *names)], sets)
        for sets in (SUBTITLES, LECTURES)
    ]
    valid, held_out = data / "tvsub-zh-en" / "lm.valid.en.gz", work / "held-out.en"
    source = ("--source", str(work / "held-out.zh"))
    print("| model | lm.valid | held out | subtitles | b/e/w | p | lectures | b/e/w | p |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, *both in zip((None, *names), *systems, strict=True):
        found = (
            [models.perplexity(name, valid), models.perplexity(name, held_out, *source)]
            if name
            else [None, None]
        )
        row = [f"`{name}`" if name else "features of the lists, tuned"]
        row += ["" if x is None else f"{x:.2f}" for x in found]
        print("| " + " | ".join(row + [cell for one in both for cell in cells(one)]) + " |")
    words_in_order = [n for n in names if "+" not in n and n not in BAGS and not needs_source(n)]
    if words_in_order:
        print("\n" + models.pronouns(words_in_order))


if __name__ == "__main__":
    main()
