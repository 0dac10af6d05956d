"""The worth of models that read the source: lists tuned and tested with each, as one table.

    python recipes/studies/source/run.py --data DATA --model fwd=DIR --model chan=DIR,reverse=yes …

DATA holds `tvsub-zh-en/` and `ted-zh-en/`. Every model scores the lists of all sets once; for each
number of candidates (`--top`) weights are tuned on the tuning set, by its default cross-validation,
and the test sets are decoded with them once. The systems are the models alone, and each with the
features of a reversed one; models that differ in their seed alone have a row of their mean. What is
in WORK is not done again: scores are in its cache, which a run that was killed goes on from; a
model that was trained anew needs another NAME. `--documents N` is for a trial on the first
documents of each set.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, takewhile
from pathlib import Path
from statistics import fmean
from typing import Any

import click
from tabulate import tabulate

from rerank.files.lines import read_lines
from rerank.notices import Notices

HERE = Path(__file__).parent
REVERSED = ",reverse=yes"
SETS = {"tvsub-zh-en": ("tune", "test", "test3ref"), "ted-zh-en": ("dev2010", "tst2010")}
OTHERS = "chrf", "ter"  # metrics beside BLEU
NO_LM = "lists alone"


@dataclass(frozen=True)
class Lists:
    """A set of lists: what the names of its files begin with."""

    stem: Path

    @property
    def kbest(self) -> Path:
        """The k-best lists, compressed in one way."""
        return next(self.stem.parent.glob(f"{self.stem.name}.nbest*"))

    @property
    def options(self) -> list[str]:
        """Lists and documents."""
        return ["--kbest", str(self.kbest), "--docs", f"{self.stem}.docids"]

    @property
    def references(self) -> list[str]:
        """A reference, or several."""
        result = sorted(self.stem.parent.glob(f"{self.stem.name}.en*"))
        return [word for path in result for word in ("--ref", str(path))]

    @property
    def start(self) -> list[str]:
        """Weights to start from."""
        return ["--start", str(self.stem.with_name("moses.rescore.ini"))]

    def head(self, documents: int, folder: Path) -> Lists:
        """The first documents, written as a set of their own."""
        short, parts = Lists(folder / self.stem.name), (".docids", ".zh", ".en", ".nbest")
        folder.mkdir(parents=True, exist_ok=True)
        sizes = [len([*group]) for _, group in groupby(lines_of(Path(f"{self.stem}.docids")))]
        n = sum(sizes[:documents])
        for path in self.stem.parent.glob(f"{self.stem.name}.*"):
            to = folder / path.name.removesuffix(".gz").removesuffix(".xz")
            if to.exists() or path.suffixes[0] not in parts:
                continue
            lines = islice(lines_of(path), n)
            if ".nbest" in path.suffixes:
                lines = takewhile(lambda line: int(line.split(None, 1)[0]) < n, lines_of(path))
            to.write_bytes(b"".join(line + b"\n" for line in lines))
        weights = self.stem.with_name("moses.rescore.ini")
        (folder / weights.name).write_bytes(weights.read_bytes())
        return short


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, plain or compressed."""
    return read_lines(path, Notices())


@dataclass(frozen=True)
class Recipe:
    """Folder of what is made, models by name, and options of the search."""

    work: Path
    models: Mapping[str, str]

    def run(self, *command: str, target: Path | None = None) -> bytes:
        """What a command of rerank prints; nothing if its target is there."""
        if target is not None and target.exists():
            return b""
        print("$ rerank", *command, file=sys.stderr, flush=True)
        script = [sys.executable, "-m", "rerank", *command]
        return subprocess.run(script, stdout=subprocess.PIPE, check=True).stdout

    def lists(self, lists: Lists, names: Sequence[str], top: int) -> list[str]:
        """Options of the first candidates with the features of some models."""
        machine = ["--top", str(top), "--threads", "1", "--cache", str(self.work / "cache")]
        given = [word for name in names for word in ("--lm", f"{name}={self.models[name]}")]
        source = ["--source", f"{lists.stem}.zh"] if any(map(self.reads_source, names)) else []
        return [*lists.options, *machine, *given, *source]

    def reads_source(self, name: str) -> bool:
        """Whether a model needs the source."""
        return self.about(name)["source"] is not None

    def about(self, name: str) -> dict[str, Any]:
        """What the folder of a model says of it."""
        content = json.loads(Path(self.models[name].split(",")[0], "config.json").read_text())
        about, settings = content["about"], content["about"]["settings"]
        return {
            "model": content["config"]["model"]
            + " reversed" * self.models[name].endswith(REVERSED),
            "seed": settings["seed"],
            "words seen": about.get("words") or settings["words"],
            "perplexity": f"{about['valid_perplexity']:.2f}",
            "source": about["data"].get("source"),
        }

    def score(self, lists: Lists, name: str, top: int) -> None:
        """Put the scores of a model into the cache; words a second are those of user time."""
        done = self.work / f"{lists.stem.parent.name}-{lists.stem.name}.{name}.{top}.scored"
        began = os.times().children_user
        self.run("score", *self.lists(lists, [name], top), "--shard", "1/1", target=done)
        if not done.exists():
            seconds = os.times().children_user - began
            done.write_text(f"{seconds:.0f}\n")
            print(f"{done.name}: {seconds:,.0f} s of user time", file=sys.stderr, flush=True)

    def decoded(self, tune: Lists, test: Lists, names: Sequence[str], top: int) -> Path:
        """Translations of a test set by weights that are tuned on another set."""
        folder = self.work / tune.stem.parent.name / f"{'+'.join(names) or 'static'}.{top}"
        folder.mkdir(parents=True, exist_ok=True)
        weights, out = folder / "weights.json", folder / f"{test.stem.name}.out"
        made = [*tune.start, *tune.references, "--out", str(weights)]
        self.run("tune-mert", *self.lists(tune, names, top), *made, target=weights)
        chosen = ["--weights", str(weights), "--out", str(out)]
        self.run("decode", *self.lists(test, names, top), *chosen, target=out)
        return out

    def results(self, tune: Lists, test: Lists, systems: Sequence[str], tops: Sequence[int]) -> str:
        """The systems of one test set, beside the first candidates."""
        first = self.work / f"{test.stem.name}.first"
        self.run("first", "--kbest", str(test.kbest), "--out", str(first), target=first)
        rows = [(system, top) for top in tops for system in systems]
        outs = [
            self.decoded(tune, test, () if system == NO_LM else system.split("+"), top)
            for system, top in rows
        ]
        files = ["--docs", f"{test.stem}.docids", *test.references, "--baseline", str(first)]
        report = self.run("evaluate", *files, *map(str, outs), "--format", "json")
        own, *others = json.loads(report)["systems"]
        rows_of = [["first candidates", "", *cells(own), ""]]
        for (system, top), out, other in zip(rows, outs, others, strict=True):
            tuned = json.loads((out.parent / "weights.json").read_text())["provenance"]
            held_out = tuned.get("selection", {}).get("held_out_bleu")  # not of a few lines
            rows_of.append([system, str(top), *cells(other), f"{held_out or math.nan:.2f}"])
        rows_of += self.of_seeds(dict(zip(rows, others, strict=True)))
        heads = "system|K|BLEU|gain, 95 %|chrF|TER|length ratio|b/e/w|p|BLEU tuned, held out"
        return f"\n{test.stem.name}, {own['signature']}\n\n{table(heads, rows_of)}"

    def of_seeds(self, found: Mapping[tuple[str, int], Mapping[str, Any]]) -> Iterator[list[str]]:
        """Mean of the models that differ in their seed, and range of their gains.

        found: what `evaluate` says, by system and number of candidates.
        """
        groups: dict[tuple[str, str, int], list[str]] = {}
        for system, top in found:
            if system in self.models:
                about = self.about(system)
                groups.setdefault((about["model"], about["words seen"], top), []).append(system)
        for (*_, top), names in groups.items():
            own = [found[name, top] for name in names]
            gains = [one["difference"] for one in own]
            mean = {key: fmean(one[key] for one in own) for key in ("bleu", "length_ratio")}
            mean |= {key: fmean(one["metrics"][key]["score"] for one in own) for key in OTHERS}
            row = [f"mean of {', '.join(names)}", str(top), f"{mean['bleu']:.2f}"]
            row.append(f"{fmean(gains):+.2f}, from {min(gains):+.2f} to {max(gains):+.2f}")
            row += [f"{mean[key]:.2f}" for key in OTHERS]
            if len(names) > 1:
                yield [*row, f"{mean['length_ratio']:.3f}", "", "", ""]


def cells(found: Mapping[str, Any]) -> list[str]:
    """BLEU and its gain, chrF, TER, length ratio, documents better, equal and worse, and p."""
    scores, documents = found["metrics"], found["documents"]
    row = [f"{found['bleu']:.2f}", ""]
    if found["difference_interval"] is not None:
        low, high = found["difference_interval"]
        row[1] = f"{found['difference']:+.2f} [{low:+.2f}, {high:+.2f}]"
    row += [f"{scores[name]['score']:.2f}" for name in OTHERS]
    row.append(f"{found['length_ratio']:.3f}")
    if documents["better"] is None:
        return [*row, "", ""]
    p = found["p_value"]
    counts = "/".join(str(documents[k]) for k in ("better", "equal", "worse"))
    return [*row, counts, "" if p is None else f"{p:.4f}"]


def table(heads: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; heads: with | between them."""
    return tabulate(rows, heads.split("|"), tablefmt="github", disable_numparse=True)


def combined(models: Mapping[str, str]) -> list[str]:
    """The lists alone, the models alone, and each model that is not reversed with each that is."""
    forward = [name for name, value in models.items() if not value.endswith(REVERSED)]
    channels = [name for name in models if name not in forward]
    return [NO_LM, *models, *(f"{a}+{b}" for a in forward for b in channels)]


def commit() -> str:
    """The commit of this checkout; empty where there is none."""
    command = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as git:
        return git.communicate()[0].decode().strip()


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work")
@click.option("--model", "given", multiple=True, required=True, metavar="NAME=DIR[,reverse=yes]")
@click.option("--system", "systems", multiple=True, help="NAME, or several with + between them.")
@click.option("--top", "tops", multiple=True, type=int, default=(30,), help="Candidates.")
@click.option("--set", "sets", multiple=True, type=click.Choice([*SETS]), default=[*SETS])
@click.option("--documents", type=int, help="Of each set, for a trial.")
def main(
    data: Path,
    work: Path,
    given: tuple[str, ...],
    systems: tuple[str, ...],
    tops: tuple[int, ...],
    sets: tuple[str, ...],
    documents: int | None,
) -> None:
    """Print a table of the models, and one of each test set."""
    models = dict(one.split("=", 1) for one in given)
    work = work if documents is None else work / f"head-{documents}"
    recipe, chosen = Recipe(work, models), systems or combined(models)
    work.mkdir(parents=True, exist_ok=True)
    folders: list[tuple[Lists, ...]] = []
    for folder in sets:
        lists = [Lists(data / folder / name) for name in SETS[folder]]
        if documents is not None:
            lists = [of_list.head(documents, work / "data" / folder) for of_list in lists]
        folders.append(tuple(lists))
    for name in dict.fromkeys(name for system in chosen for name in system.split("+")):
        for one in (of_list for lists in folders for of_list in lists if name in models):
            recipe.score(one, name, max(tops))
    print(f"commit {commit()}\n")
    about = [[name, *map(str, recipe.about(name).values())] for name in models]
    print(table("name|model|seed|words seen|valid perplexity", [row[:5] for row in about]))
    for tune, *tests in folders:
        for test in tests:
            print(recipe.results(tune, test, chosen, tops), flush=True)


if __name__ == "__main__":
    main()
