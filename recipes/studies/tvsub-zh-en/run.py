"""From corpora and Moses lists to the result table, step by step; a step that is done is skipped.

    python recipes/studies/tvsub-zh-en/run.py --data DATA [--work WORK] [--only tvsub-codclm ...]

DATA holds `tvsub-zh-en/` and `ted-zh-en/` (see this folder's README). Everything made goes
to WORK (default: `work/` beside this file); delete a file there to make it again. Each
step prints the command of the shell that does the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODELS = ("rnnlm", "codclm", "ccdclm")
TRAINING = ["--embed", "128", "--hidden", "256", "--vocab", "10000", "--dropout", "0"]
# the defaults of `train-lm` when the results were measured
TRAINING += ["--optimiser", "adamw", "--learning-rate", "0.003", "--streams", "64"]
TRAINING += ["--context-noise", "0"]


@dataclass(frozen=True)
class Corpus:
    """Where weights are tuned, and what they are tested on: stems of files in a folder."""

    folder: str
    tune: str
    tests: tuple[str, ...]
    suffix: str


@dataclass(frozen=True)
class Condition:
    """A row of the table: language models, search, how much of the lists is used."""

    name: str
    models: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    context: str | None = None  # "null" or "reference": scores made by conditions.py
    start: str | None = None  # condition whose weights tuning starts from


CORPORA = {
    "tvsub": Corpus("tvsub-zh-en", "tune", ("test", "test3ref"), "xz"),
    "ted": Corpus("ted-zh-en", "dev2010", ("tst2010",), "gz"),
}
CONDITIONS = (
    Condition("static"),
    Condition("rnnlm", ("rnnlm",), start="static"),
    Condition("codclm", ("codclm",), start="static"),
    Condition("ccdclm-25", ("ccdclm",), ("--top", "25", "--beam", "4"), start="static"),
    Condition("static-25", (), ("--top", "25")),
    Condition("rnnlm-25", ("rnnlm",), ("--top", "25"), start="static-25"),
    Condition("codclm-25", ("codclm",), ("--top", "25"), start="static-25"),
    Condition("codclm-null", ("codclm",), context="null", start="static"),
    Condition("codclm-reference", ("codclm",), context="reference", start="static"),
)


@dataclass
class Recipe:
    """The steps, each a command that writes one file aside and renames it when done."""

    data: Path
    work: Path
    log: list[dict[str, object]] = field(default_factory=list)

    def run(self, target: Path, *command: str) -> None:
        """Run a command unless its target exists; its stderr is kept beside the target."""
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        print("$ rerank", *command, flush=True)
        began = time.monotonic()
        log = target.with_name(target.name + ".log")
        with open(log, "w") as errors:
            outcome = subprocess.run(
                [sys.executable, "-m", "rerank", *command],
                stdout=subprocess.PIPE,
                stderr=errors,
                check=False,
            )
        if outcome.returncode:
            sys.exit(f"exit code {outcome.returncode}: see {log}")
        if outcome.stdout and not target.exists():
            target.write_bytes(outcome.stdout)
        print(f"  {time.monotonic() - began:.0f} s -> {target}", flush=True)

    def train(self, model: str, epochs: str) -> Path:
        """A language model folder."""
        folder = self.work / model
        text = self.data / "tvsub-zh-en"
        done = self.work / f"{model}.done"  # beside the folder, which train-lm wants to itself
        if not done.exists():
            self.run(
                done,
                *("train-lm", "--model", model, "--train", str(text / "lm.train.en.gz")),
                *("--valid", str(text / "lm.valid.en.gz"), "--out", str(folder)),
                *(*TRAINING, "--epochs", epochs, "--resume"),
            )
            done.touch()
        return folder

    def files(self, corpus: Corpus, stem: str, condition: Condition) -> list[str]:
        """`--kbest`, `--docs` and `--lm` of a set under a condition."""
        folder = self.data / corpus.folder
        suffix = "gz" if (folder / f"{stem}.nbest.gz").exists() else "xz"
        kbest = folder / f"{stem}.nbest.{suffix}"
        if condition.context:
            kbest = self.conditioned(corpus, stem, kbest, condition)
        models = [] if condition.context else condition.models
        lms = [x for m in models for x in ("--lm", f"{m}={self.work / m}")]
        docs = str(folder / f"{stem}.docids")
        return ["--kbest", str(kbest), "--docs", docs, *lms, *condition.options]

    def conditioned(self, corpus: Corpus, stem: str, kbest: Path, condition: Condition) -> Path:
        """The list with the model's feature under a fixed context (`conditions.py`)."""
        target = self.work / corpus.folder / f"{stem}.{condition.name}.nbest.gz"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            folder = self.data / corpus.folder
            script = [sys.executable, str(HERE / "conditions.py"), str(condition.context)]
            inputs = [str(self.work / condition.models[0]), str(kbest)]
            texts = [str(folder / f"{stem}.docids"), references(folder, stem)[0], str(target)]
            print("$", *script, *inputs, *texts, flush=True)
            subprocess.run([*script, *inputs, *texts], check=True)
        return target

    def tune(self, corpus: Corpus, condition: Condition) -> Path:
        """Weights of a condition."""
        out = self.work / corpus.folder / f"{condition.name}.json"
        folder = self.data / corpus.folder
        start = folder / "moses.rescore.ini"
        if condition.start:
            start = self.work / corpus.folder / f"{condition.start}.json"
        refs = [x for ref in references(folder, corpus.tune) for x in ("--ref", ref)]
        lists = self.files(corpus, corpus.tune, condition)
        self.run(out, "tune-mert", *lists, *refs, "--start", str(start), "--out", str(out))
        return out

    def test(self, corpus: Corpus, stem: str, condition: Condition) -> Path:
        """1-best translations of a test set under a condition."""
        out = self.work / corpus.folder / f"{stem}.{condition.name}.out"
        weights = self.tune(corpus, condition)
        lists = self.files(corpus, stem, condition)
        summary = ("--summary", str(out.with_suffix(".summary.json")))
        self.run(out, "decode", *lists, "--weights", str(weights), *summary, "--out", str(out))
        return out

    def first_candidates(self, corpus: Corpus, stem: str) -> Path:
        """The list's own 1-best: its total as the only weight."""
        out = self.work / corpus.folder / f"{stem}.first.out"
        weights = self.data / corpus.folder / "moses.rescore.ini"
        lists = self.files(corpus, stem, Condition("first", options=("--top", "1")))
        self.run(out, "decode", *lists, "--weights", str(weights), "--out", str(out))
        return out

    def evaluate(self, corpus: Corpus, stem: str, names: list[str]) -> dict[str, Any]:
        """The JSON of `rerank evaluate` for all conditions of a test set."""
        folder = self.data / corpus.folder
        outs = [str(self.work / corpus.folder / f"{stem}.{name}.out") for name in names]
        refs = [x for ref in references(folder, stem) for x in ("--ref", ref)]
        command = ["evaluate", "--docs", str(folder / f"{stem}.docids"), *refs]
        command += ["--baseline", outs[0], *outs[1:], "--format", "json"]
        print("$ rerank", *command, flush=True)
        script = [sys.executable, "-m", "rerank", *command]
        raw = subprocess.run(script, capture_output=True, check=True)
        found: dict[str, Any] = json.loads(raw.stdout)
        return found


def references(folder: Path, stem: str) -> list[str]:
    """Reference files of a set."""
    one = folder / f"{stem}.en"
    return [str(one)] if one.exists() else sorted(map(str, folder.glob(f"{stem}.en.*")))


def row(name: str, system: dict[str, Any], tuned: dict[str, Any] | None) -> str:
    """A line of the Markdown table."""
    documents, p, interval = (system[k] for k in ("documents", "p_value", "difference_interval"))
    figures = [f"{system['bleu']:.2f}", f"{system['length_ratio']:.3f}"]
    if documents["better"] is None:
        figures += ["", "", ""]
    else:
        figures.append("/".join(str(documents[k]) for k in ("better", "equal", "worse")))
        figures.append("–" if p is None else f"{p:.4f}")
        figures.append("–" if interval is None else f"{interval[0]:+.2f} … {interval[1]:+.2f}")
    if tuned:
        provenance = tuned["provenance"]
        figures.append(f"{provenance['bleu']:.2f} ({provenance['length_ratio']:.3f})")
    else:
        figures.append("")
    return f"| {name} | " + " | ".join(figures) + " |"


def main() -> None:
    """All steps, then the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--epochs", default="1")
    parser.add_argument("--only", nargs="*", help="corpus-condition, for example tvsub-codclm")
    options = parser.parse_args()
    recipe = Recipe(options.data, options.work)
    for corpus_name, corpus in CORPORA.items():
        wanted = [
            c for c in CONDITIONS if not options.only or f"{corpus_name}-{c.name}" in options.only
        ]
        for condition in wanted:
            for model in condition.models:
                recipe.train(model, options.epochs)
            for stem in corpus.tests:
                recipe.test(corpus, stem, condition)
    print_tables(recipe)


def print_tables(recipe: Recipe) -> None:
    """A table for each test set, of the conditions that are done."""
    for corpus in CORPORA.values():
        for stem in corpus.tests:
            recipe.first_candidates(corpus, stem)
            folder = recipe.work / corpus.folder
            names = ["first"]
            names += [c.name for c in CONDITIONS if (folder / f"{stem}.{c.name}.out").exists()]
            result = recipe.evaluate(corpus, stem, names)
            systems = result["systems"]
            print(f"\n{corpus.folder}/{stem}, {systems[0]['signature']}\n")
            print(
                "| system | BLEU | length ratio | documents better/equal/worse | p | gain, 95 % |"
                " tuning BLEU (ratio) |"
            )
            print("|---|---|---|---|---|---|---|")
            for name, system in zip(names, systems, strict=True):
                weights = folder / f"{name}.json"
                tuned = json.loads(weights.read_text()) if weights.exists() else None
                print(row(name, system, tuned))
            print(flush=True)


if __name__ == "__main__":
    main()
