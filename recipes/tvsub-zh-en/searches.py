"""What each decoder finds, how far it is from the best path known, what that costs, and how long.

    python recipes/tvsub-zh-en/searches.py --data DATA [--work WORK] [--only codclm ccdclm]

`codclm` on all of the test set, 100-best, its scores in the cache before; `ccdclm` on the first
three documents, 25-best, without a cache. Weights, their scale
α and the models are those of `run.py`, whose steps are run where they are not done. Every decoding
is one `rerank decode`; what is there is not done again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from run import CONDITIONS, CORPORA, HERE, Recipe

TVSUB = CORPORA["tvsub"]
DOCUMENTS = 3


@dataclass(frozen=True)
class Setting:
    """A model, its condition in `run.py`, and how it is searched: names and options."""

    model: str
    condition: str
    lists: tuple[str, ...]
    whole: bool
    searches: dict[str, str]


# {a} is α, {b} eight times α: a scale to search with, not to sample with
CODCLM = {
    "viterbi": "--search viterbi",
    "greedy": "--search greedy",
    "beam 2": "--search beam --beam 2",
    "beam 4": "--search beam --beam 4",
    "beam 8": "--search beam",
    "beam 64": "--search beam --beam 64",
    "survivors, max": "--search survivors",
    "random-beam 8": "--search random-beam --alpha {a}",
    "random-beam 8, 8α": "--search random-beam --alpha {b}",
    "smc 64": "--search smc --alpha {a}",
    "smc 64, 8α": "--search smc --alpha {b}",
    "ffbs, 64 draws": "--search ffbs --alpha {a}",
    "ffbs, 64 draws, 8α": "--search ffbs --alpha {b}",
    "mbr, linear BLEU": "--search mbr:utility=linear-bleu --alpha {a}",
    "mbr, aggregate chrF": "--search mbr:utility=aggregate-chrf --alpha {a}",
    "mbr, linear BLEU, 8α": "--search mbr:utility=linear-bleu --alpha {b}",
    "mbr, aggregate chrF, 8α": "--search mbr:utility=aggregate-chrf --alpha {b}",
    "sweeps from greedy": "--search sweeps --beam 1",
    "sweeps from beam 8": "--search sweeps",
    "2 Gibbs sweeps, sweeps": "--search sweeps:gibbs=2 --alpha {a}",
}
CCDCLM = {
    "greedy": "--search greedy",
    "beam 2": "--search beam --beam 2",
    "beam 4": "--search beam --beam 4",
    "beam 8": "--search beam",
    "beam 16": "--search beam --beam 16",
    "survivors, max": "--search survivors",
    "survivors, mean, 8α": "--search survivors:merge=mean --alpha {b}",
    "random-beam 8, 8α": "--search random-beam --alpha {b}",
    "smc 32": "--search smc:particles=32 --alpha {a}",
    "smc 32, 8α": "--search smc:particles=32 --alpha {b}",
    "ffbs, 16 particles, 8 draws, 8α": "--search ffbs:particles=16,samples=8 --alpha {b}",
    "mbr, linear BLEU, 32 particles, 8α": (
        "--search mbr:utility=linear-bleu,particles=32 --alpha {b}"
    ),
    "sweeps from greedy": "--search sweeps --beam 1",
    "sweeps from beam 8": "--search sweeps",
}
FIRST = "first candidates"
SETTINGS = (
    Setting("codclm", "codclm", (), True, {FIRST: "", **CODCLM}),
    Setting("ccdclm", "ccdclm-25", ("--top", "25"), False, {FIRST: "", **CCDCLM}),
)


@dataclass(frozen=True)
class Comparison:
    """The decodings of a setting: files in a folder of their own."""

    recipe: Recipe
    setting: Setting

    @property
    def folder(self) -> Path:
        """Where everything made goes."""
        return self.recipe.work / "decoders" / self.setting.model

    def files(self) -> tuple[Path, Path, Path]:
        """List, documents and reference of the setting."""
        data = self.recipe.data / TVSUB.folder
        source = (data / "test.nbest.xz", data / "test.docids", data / "test.en")
        if self.setting.whole:
            return source
        made = tuple(self.folder / name for name in ("three.nbest.gz", "three.docids", "three.en"))
        if not made[2].exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            cut(source, made)
        return made

    def decode(self, name: str, options: str, alpha: float) -> dict[str, Any]:
        """Summary and times of one decoding."""
        kbest, docs, _ = self.files()
        stem = re.sub(r"\W+", "-", name).strip("-")
        out = self.folder / f"{stem}.out"
        summary = out.with_suffix(".summary.json")
        weights = self.recipe.tune(TVSUB, condition(self.setting.condition))
        how = options.format(a=f"{alpha:.6g}", b=f"{8 * alpha:.6g}").split()
        lists = ["--kbest", str(kbest), "--docs", str(docs), *self.setting.lists]
        model = ["--lm", f"{self.setting.model}={self.recipe.work / self.setting.model}"]
        if not options:
            lists, how = [*lists[:4], "--top", "1"], ["--search", "greedy"]
        if not self.setting.whole:
            how.append("--no-cache")
        outputs = ["--out", str(out), "--summary", str(summary)]
        spent, before = out.with_suffix(".cpu"), cpu_seconds()
        if not spent.exists():  # stopped before its time was known
            out.unlink(missing_ok=True)
        self.recipe.run(out, "decode", *lists, *model, "--weights", str(weights), *how, *outputs)
        if not spent.exists():
            spent.write_text(f"{cpu_seconds() - before:.1f}\n")
        found: dict[str, Any] = json.loads(summary.read_text())
        return {**found, "out": out, "cpu": float(spent.read_text())}

    def evaluate(self, outs: list[Path]) -> list[dict[str, Any]]:
        """What `rerank evaluate` says of decodings, the first of which is the baseline."""
        _, docs, reference = self.files()
        command = ["evaluate", "--docs", str(docs), "--ref", str(reference)]
        command += ["--baseline", *map(str, outs), "--format", "json"]
        script = [sys.executable, "-m", "rerank", *command]
        raw = subprocess.run(script, capture_output=True, check=True)
        systems: list[dict[str, Any]] = json.loads(raw.stdout)["systems"]
        return systems


def cut(source: tuple[Path, Path, Path], made: tuple[Path, ...]) -> None:
    """The first documents of a set, as files of their own."""
    kbest, docs, reference = source
    names = docs.read_text().splitlines()
    groups = [list(group) for _, group in groupby(names)][:DOCUMENTS]
    n = sum(map(len, groups))
    with lzma.open(kbest) as lines, gzip.open(made[0], "wb") as out:
        for line in lines:
            if int(line.split(b"|||", 1)[0]) >= n:
                break
            out.write(line)
    made[1].write_text("".join(f"{name}\n" for name in names[:n]))
    made[2].write_text("".join(reference.read_text().splitlines(keepends=True)[:n]))


def cpu_seconds() -> float:
    """Time that the commands so far have had of all processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def condition(name: str) -> Any:
    """The condition of `run.py`."""
    return next(one for one in CONDITIONS if one.name == name)


def compare(recipe: Recipe, setting: Setting) -> None:
    """All decodings of a setting, then their table."""
    recipe.train(setting.model, "1")
    weights = recipe.tune(TVSUB, condition(setting.condition))
    alpha = json.loads(weights.read_text())["alpha"]
    comparison = Comparison(recipe, setting)
    if setting.whole:
        comparison.decode("scores into the cache", "--search viterbi", alpha)
    found = {n: comparison.decode(n, o, alpha) for n, o in setting.searches.items()}
    systems = comparison.evaluate([one["out"] for one in found.values()])
    scores = [[d["score"] for d in one["documents"]] for one in found.values()]
    known = [[d["best_score"] for d in one["documents"]] for one in found.values()]
    best = [max(of_document) for of_document in zip(*scores, *known, strict=True)]
    optimal = all(d["best"] == "optimum" for one in found.values() for d in one["documents"])
    what = "optimum" if optimal else "best path known, of all rows"
    print(f"\n{setting.model}, {len(best)} documents, α = {alpha:.4g}, {what} {sum(best):.3f}\n")
    print("| search | score | gap | best in | BLEU | length ratio | CPU, s |")
    print("|---|---|---|---|---|---|---|")
    for (name, one), system in zip(found.items(), systems, strict=True):
        documents = [d["score"] for d in one["documents"]]
        gaps = [b - s for b, s in zip(best, documents, strict=True)]
        reached = sum(gap < 1e-9 * abs(b) for gap, b in zip(gaps, best, strict=True))
        print(
            f"| {name} | {sum(documents):.3f} | {sum(gaps):.3f} | {reached}/{len(gaps)} "
            f"| {system['bleu']:.2f} | {system['length_ratio']:.3f} | {one['cpu']:.0f} |"
        )


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--only", nargs="*", default=[s.model for s in SETTINGS])
    options = parser.parse_args()
    recipe = Recipe(options.data, options.work)
    for setting in SETTINGS:
        if setting.model in options.only:
            compare(recipe, setting)


if __name__ == "__main__":
    main()
