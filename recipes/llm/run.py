"""A language model of Hugging Face as a scorer of documents: pronouns, and outputs of systems.

    python recipes/llm/run.py --lm models/smollm2 --data DATA --work WORK [--only mqm …] [--quick]

DATA holds `pronouns-en/`, and of the sets of outputs of systems that are asked for `mqm-zh-en/`,
`llm4-guofeng/`, `wmt23-ru-en/` and `ted-zh-en/`, as for recipes/systems. Each command of the shell
is printed and run once, and scores go to a cache in WORK: killed, the same command goes on. Minutes
are user time, of the last run of what was killed. `--quick` is for a trial on a few items.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from combination import HEADS, SETS, WAYS, combination
from tabulate import tabulate

from rerank.files.outputs import atomic
from rerank.metrics.significance import sign_test

PRONOUNS, LANGUAGES = "pronouns-en", ("de", "fr", "zh")
QUICK = 4  # items of each file, documents of each set


@dataclass(frozen=True)
class Run:
    """Commands of rerank, whose results lie in WORK with their minutes."""

    lm: str
    data: Path
    work: Path
    quick: bool

    def once(self, name: str, *command: str) -> str:
        """What a command prints, or printed before; all of it ends if the command fails."""
        path = self.work / f"{name}.txt"
        if not path.exists():
            print("$ rerank", shlex.join(command), file=sys.stderr, flush=True)
            began = os.times().children_user
            script = [sys.executable, "-m", "rerank", *command]
            done = subprocess.run(script, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sys.exit(done.returncode)
            minutes = (os.times().children_user - began) / 60
            with atomic(str(path)) as file:
                file.write(f"{minutes:.1f}\n{done.stdout}".encode())
        return path.read_text(encoding="utf-8").split("\n", 1)[1]

    def minutes(self, name: str) -> float:
        """Minutes that a command took."""
        return float((self.work / f"{name}.txt").read_text(encoding="utf-8").split("\n", 1)[0])


def pronouns(run: Run) -> None:
    """Print how often the right pronoun is preferred, by the number of sentences before it."""
    rows = []
    for n in (1, 2):
        found = dict[str, dict[str, Any]]()
        minutes = 0.0
        for language in LANGUAGES:
            items = run.data / PRONOUNS / f"{language}.jsonl"
            if run.quick:
                items = _head(items, run.work / f"{language}.jsonl", QUICK)
            name, lm = f"pronouns.{language}.{n}", f"hf:{run.lm},sentences={n}"
            command = ("lm-eval", "contrastive", "--lm", lm, str(items), "--format", "json")
            (model,) = json.loads(run.once(name, *command, "--threads", "1"))["models"]
            found[language] = model["groups"][0]
            minutes += run.minutes(name)
        rows += [[f"from {name}", n, *_accuracies([own]), ""] for name, own in found.items()]
        rows.append(["all", n, *_accuracies([*found.values()]), f"{minutes:.0f}"])
    heads = ["pairs", "sentences", "own context", "none", "p", "another's", "p", "CPU minutes"]
    print_table(rows, heads)


def _accuracies(groups: list[dict[str, Any]]) -> list[str]:
    """Accuracies of groups together, with wins, losses and p of the difference to own context."""
    items = sum(group["items"] for group in groups)

    def share(condition: str) -> str:
        right = sum(own["items"] * own["accuracies"][condition]["accuracy"] for own in groups)
        return f"{100 * right / items:.1f} %"

    cells = [share("context")]
    for condition in ("null", "other"):
        better, worse = (sum(own[x][condition] for own in groups) for x in ("better", "worse"))
        cells += [share(condition), f"{sign_test(better, worse):.2g} ({better} : {worse})"]
    return cells


def _head(path: Path, to: Path, lines: int) -> Path:
    """The first lines of a file."""
    with path.open("rb") as file, atomic(str(to)) as out:
        out.writelines(islice(file, lines))
    return to


def print_table(rows: Sequence[Sequence[object]], heads: Sequence[str]) -> None:
    """Print a table of Markdown."""
    print(tabulate(rows, heads, tablefmt="github", disable_numparse=True), end="\n\n", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--lm", required=True, help="DIR[,KEY=VALUE…], as behind --lm NAME=hf:")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parts = ["pronouns", *SETS]
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--documents", type=int, help="of each set, the first ones alone")
    parser.add_argument(
        "--ways", nargs="*", choices=WAYS, default=WAYS, help="without a prompt, with"
    )
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    run = Run(given.lm, given.data, work, given.quick)
    documents = QUICK if given.quick else given.documents
    for name in given.only:
        if name == "pronouns":
            pronouns(run)
        else:
            rows, discourse = combination(run, name, run.data, run.lm, documents).rows(given.ways)
            print_table(rows, HEADS)
            print(discourse, flush=True)


if __name__ == "__main__":
    main()
