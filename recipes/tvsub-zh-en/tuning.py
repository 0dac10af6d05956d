"""What tuning is worth on documents that it has not seen: rounds, length, replicates.

    python recipes/tvsub-zh-en/tuning.py --data DATA [--work WORK] [--seeds 5] [--only length]

DATA and WORK are those of `run.py`, whose models this uses. Weights are tuned on a tuning set with
several seeds and tested on documents of the same kind and of the other one: episodes and lectures.
Every step is a command of the shell, done once; the tables show BLEU on the test set as mean ±
standard deviation over seeds, and CPU seconds of a tuning, reading and scoring from the cache
included.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from run import CORPORA, Condition, Corpus, Recipe, references

CODCLM = Condition("codclm", ("codclm",))
CCDCLM = Condition("ccdclm", ("ccdclm",), ("--top", "10", "--search", "greedy"))
STATIC = Condition("static")
TESTS = (("tvsub", "test"), ("tvsub", "test3ref"), ("ted", "tst2010"))


@dataclass(frozen=True)
class Row:
    """A way of tuning: name in the table, lists, options of `tune-mert`."""

    name: str
    condition: Condition
    options: tuple[str, ...] = ()


ROUNDS = [Row("rounds", CODCLM, ())]
LENGTH = [
    Row("free", STATIC, ("--length-ratio", "free")),
    Row("keep", STATIC, ("--length-ratio", "keep")),
    Row("1.0", STATIC, ("--length-ratio", "1.0")),
    Row("free, no shrinkage", STATIC, ("--length-ratio", "free", "--shrink", "0")),
    Row("keep, no shrinkage", STATIC, ("--length-ratio", "keep", "--shrink", "0")),
]
STEADY = [
    Row("one tuning", STATIC),
    Row("5 replicates", STATIC, ("--replicates", "5")),
    Row("expected-bleu", STATIC, ("--algorithm", "expected-bleu")),
    Row("pro", STATIC, ("--algorithm", "pro")),
]
UNBOUNDED = [Row("rounds", CCDCLM, ())]


@dataclass
class Tunings:
    """The steps, on files of the recipe, and what weights are tested on."""

    recipe: Recipe
    tests: tuple[tuple[str, str], ...]

    def tuned(self, name: str, row: Row, seed: int) -> tuple[Path, float]:
        """Weights of a seed and CPU seconds."""
        corpus = CORPORA[name]
        label = "".join(c if c.isalnum() or c == "." else "-" for c in row.name)
        out = self.recipe.work / "tuning" / f"{name}.{row.condition.name}.{label}.{seed}.json"
        spent = out.with_suffix(".seconds")
        if not out.exists():
            folder = self.recipe.data / corpus.folder
            refs = [x for ref in references(folder, corpus.tune) for x in ("--ref", ref)]
            lists = self.recipe.files(corpus, corpus.tune, row.condition)
            start = ["--start", str(folder / "moses.rescore.ini")]
            options = [*row.options, "--seed", str(seed), "--out", str(out)]
            before = cpu()
            self.recipe.run(out, "tune-mert", *lists, *refs, *start, *options)
            spent.write_text(str(cpu() - before))
        return out, float(spent.read_text())

    def tested(self, weights: Path, name: str, stem: str, row: Row) -> tuple[float, float]:
        """BLEU and length ratio on a test set."""
        corpus = CORPORA[name]
        out = weights.with_suffix(f".{stem}.out")
        lists = self.recipe.files(corpus, stem, row.condition)
        self.recipe.run(out, "decode", *lists, "--weights", str(weights), "--out", str(out))
        return scored(self.recipe, corpus, stem, out)

    def line(self, tuning: str, row: Row, seeds: int) -> str:
        """A row of a table: tested on its own kind of documents, and on the other."""
        runs = [self.tuned(tuning, row, seed) for seed in range(1, seeds + 1)]
        reached = [json.loads(weights.read_text())["provenance"] for weights, _ in runs]
        figures = [f"{spread([r['bleu'] for r in reached])}"]
        for name, stem in self.tests:
            found = [self.tested(weights, name, stem, row) for weights, _ in runs]
            ratio = statistics.mean(ratio for _, ratio in found)
            figures.append(f"{spread([bleu for bleu, _ in found])} ({ratio:.3f})")
        seconds = statistics.mean(seconds for _, seconds in runs)
        return f"| {row.name} | {' | '.join(figures)} | {seconds:.0f} |"

    def table(self, title: str, rows: list[Row], seeds: int, tunings: list[str]) -> None:
        """All rows for each tuning set."""
        for tuning in tunings:
            print(f"\n{title}, tuned on {tuning} {CORPORA[tuning].tune}, {seeds} seeds\n")
            heads = " | ".join(f"{name} {stem} (ratio)" for name, stem in self.tests)
            print(f"| tuning | BLEU there | {heads} | CPU, s |\n|{'---|' * (3 + len(self.tests))}")
            for row in rows:
                print(self.line(tuning, row, seeds), flush=True)


def spread(values: list[float]) -> str:
    """Mean ± standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {deviation:.2f}"


def cpu() -> float:
    """CPU seconds of all commands run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scored(recipe: Recipe, corpus: Corpus, stem: str, out: Path) -> tuple[float, float]:
    """BLEU and length ratio by `rerank evaluate`."""
    folder = recipe.data / corpus.folder
    refs = [x for ref in references(folder, stem) for x in ("--ref", ref)]
    docs = ["--docs", str(folder / f"{stem}.docids")]
    command = [sys.executable, "-m", "rerank", "evaluate", *docs, *refs, "--format", "json"]
    both = ["--baseline", str(out), str(out)]
    raw = subprocess.run([*command, *both], capture_output=True, check=True)
    system = json.loads(raw.stdout)["systems"][0]
    return system["bleu"], system["length_ratio"]


def three_talks(data: Path, work: Path) -> Recipe:
    """A recipe on the three shortest talks of the lectures' sets, which are written to `work`."""
    corpus = CORPORA["ted"]
    target = work / "three"
    folder = target / corpus.folder
    folder.mkdir(parents=True, exist_ok=True)
    source = data / corpus.folder
    shutil.copy(source / "moses.rescore.ini", folder)
    for stem in (corpus.tune, "tst2010"):
        names = (source / f"{stem}.docids").read_text().splitlines()
        shortest = [name for name, _ in Counter(names).most_common()[-3:]]
        kept = [i for i, name in enumerate(names) if name in shortest]
        (folder / f"{stem}.docids").write_text("".join(f"{names[i]}\n" for i in kept))
        lines = (source / f"{stem}.en").read_bytes().split(b"\n")
        (folder / f"{stem}.en").write_bytes(b"".join(lines[i] + b"\n" for i in kept))
        numbers = {i: n for n, i in enumerate(kept)}
        with (
            gzip.open(source / f"{stem}.nbest.gz") as lists,
            gzip.open(folder / f"{stem}.nbest.gz", "wb") as out,
        ):
            for line in lists:
                sentence, rest = line.split(b" ", 1)
                if int(sentence) in numbers:
                    out.write(b"%d %s" % (numbers[int(sentence)], rest))
    for model in ("codclm", "ccdclm"):
        if not (target / model).exists():
            (target / model).symlink_to(work.resolve() / model)
    return Recipe(target, target)


TABLES = {
    "length": ("Length ratio, the list's own features", LENGTH),
    "steady": ("Replicates and other tuners, the list's own features", STEADY),
    "rounds": ("Rounds for codclm", ROUNDS),
    "unbounded": ("Rounds for ccdclm, 10-best, greedy, the three shortest talks", UNBOUNDED),
}


def main() -> None:
    """The tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--tuned-on", nargs="*", choices=list(CORPORA), default=list(CORPORA))
    options = parser.parse_args()
    whole = Tunings(Recipe(options.data, options.work), TESTS)
    for name in options.only:
        if name == "unbounded":  # a decoding is dear there
            parts = Tunings(three_talks(options.data, options.work), TESTS[-1:])
            parts.table(*TABLES[name], min(options.seeds, 2), ["ted"])
        else:
            whole.table(*TABLES[name], options.seeds, options.tuned_on)


if __name__ == "__main__":
    main()
