"""The tables of README: each is selected from what recipes print, and carries their commit.

    make tables DATA=../shared/data MODELS=models    all of them; hours
    make tables QUICK=1                              small ones of what is there; minutes

DATA is that of the studies `systems` and `source`. MODELS holds `fwd`, trained as `source` says.
What is printed goes to `results` here, and
README shows of it what stands between two comments; a row that was not printed again is gone.
With QUICK, tables go to build/tables alone, those without data or model are left out, and the
others are of small sets.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "recipes" / "studies" / "results"
SETS = {  # of recipes/studies/systems/rules.py: what they are, number of systems
    "wmt23": "WMT23 Russian → English, 12",
    "nmt": "TED, Chinese → English, 5",
    "llm": "WMT23 Chinese → English, 14 outputs of LLMs",
    "guofeng": "novels, Chinese → English, 4 LLMs",
    "fr-en": "TED, French → English, 4 LLMs",
}
RULES = {  # columns of the table of systems: a rule less another one
    "agreement": ("agreement", "best system"),
    "the mean system": ("mean system", "best system"),
    "tuned": ("tuned on the other half", "best system of the other half"),
}
Rows = list[list[str]]


@dataclass(frozen=True)
class Folders:
    """Data, models, and what is made; quick: small sets."""

    data: Path
    models: Path
    work: Path
    quick: bool

    def demo(self) -> str:
        """The embedded example."""
        folder = self.work / "demo"
        if not folder.exists():
            python("-m", "rerank", "demo", "--out", folder)
        sets = ["--docs", folder / "data/test.docids.gz", "--ref", folder / "data/test.ref.gz"]
        names = ("1-best", "rnnlm", "codclm", "shuffled.codclm.in-order")
        files = [folder / f"test.{name}.txt" for name in names]
        evaluate = ["-m", "rerank", "evaluate", *sets, "--format", "markdown"]
        return python(*evaluate, "--baseline", *files)

    def subtitles(self) -> str:
        """Subtitles and lectures, with a model that reads the source."""
        model = self.there(self.models / "fwd")
        small = ["--documents", "2", "--set", "tvsub-zh-en"] if self.quick else []
        given = ["--data", self.there(self.data), "--work", self.work / "subtitles"]
        return python("recipes/studies/source/run.py", *given, "--model", f"fwd={model}", *small)

    def systems(self) -> str:
        """Outputs of several systems."""
        small = ["--only", "fr-en"] if self.quick else []
        given = ["--data", self.there(self.data), "--work", self.work / "systems", "--splits", 1]
        return python("recipes/studies/systems/rules.py", *given, *small)

    def there(self, path: Path) -> Path:
        """A path that exists."""
        if not path.exists():
            raise FileNotFoundError(path)
        return path


def python(*words: object) -> str:
    """What a Python program prints."""
    print("$ python", *words, file=sys.stderr, flush=True)
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def cells(text: str) -> Rows:
    """Cells of the tables of Markdown in a text, without rules."""
    lines = (line for line in text.splitlines() if re.match(r"\| *[^ :|-]|\| +\|", line))
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def table(heads: str, rows: Rows) -> str:
    """A table of Markdown without its first heading; heads: with | between them."""
    rule = "|---" * (heads.count("|") + 2) + "|"
    lines = [" " + " | ".join(heads.split("|")) + " |", rule]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return re.sub(r"(?<!\w)-(?=\d)", "−", "\n".join(lines))


def of_demo(text: str) -> str:
    """BLEU, chrF2, TER and documents of the four outputs."""
    names = (
        "1-best of the lists",
        "+ model of sentences",
        "+ model of documents",
        "the same, shuffled",
    )
    head, *result = cells(text)
    shown = [head.index(heading) for heading in ("BLEU", "chrF2", "TER", "better/equal/worse")]
    rows = [[name, *(row[i] for i in shown)] for name, row in zip(names, result, strict=True)]
    return table("BLEU|chrF2|TER|documents better/equal/worse", rows)


def of_subtitles(text: str) -> str:
    """Two test sets, without the columns of one value."""
    rows, name = [], ""
    for line in text.splitlines():
        name = line.partition(",")[0] if ", nrefs" in line else name
        for row in cells(line) if name else []:
            if row[0] != "system" and name != "test3ref":
                rows.append([f"`{name}`", row[0].replace("fwd", "+ `attention`"), *row[2:9]])
    return table("|BLEU|gain, 95 %|chrF2|TER|length ratio|b/e/w|p", rows)


def of_systems(text: str) -> str:
    """Differences of rules by set, in BLEU and chrF2, and their means."""
    scores: dict[str, dict[str, list[float]]] = {}
    for name, rule, *values in cells(text):
        if name in SETS:
            scores.setdefault(name, {})[rule] = [float(value) for value in values[:2]]
    differences = {
        name: [
            [a - b for a, b in zip(of[one], of[other], strict=True)]
            for one, other in RULES.values()
        ]
        for name, of in scores.items()
    }
    rows = [[SETS[name], *map(shown, differences[name])] for name in SETS if name in differences]
    columns = zip(*differences.values(), strict=True)
    means = [
        [sum(values) / len(rows) for values in zip(*column, strict=True)] for column in columns
    ]
    rows.append(["mean", *map(shown, means)])
    return table(f"{'|'.join(RULES)}", rows)


def shown(differences: Sequence[float]) -> str:
    """Differences as text."""
    return ", ".join(f"{value:+.2f}" for value in differences)


TABLES: Mapping[str, tuple[Callable[[Folders], str], Callable[[str], str]]] = MappingProxyType(
    {
        "demo": (Folders.demo, of_demo),
        "subtitles": (Folders.subtitles, of_subtitles),
        "systems": (Folders.systems, of_systems),
    }
)


def block(name: str, printed: str) -> str:
    """What README shows of a result, whose first line is its commit."""
    commit, _, text = printed.partition("\n")
    return f"<!-- {name} -->\n| {commit} |{TABLES[name][1](text)}\n<!-- end -->"


def replaced(readme: str, results: Path) -> str:
    """README with the tables of these results; those without results are left out."""

    def new(match: re.Match[str]) -> str:
        result = results / f"{match[1]}.txt"
        name = match[1]
        return (
            block(name, result.read_text("utf-8"))
            if result.exists()
            else f"<!-- {name} -->\n<!-- end -->"
        )

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", new, readme, flags=re.DOTALL)


def main() -> None:
    """Run the recipes of the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", choices=[*TABLES], default=[*TABLES])
    options = parser.parse_args()
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, check=False, stdout=subprocess.PIPE, text=True).stdout.strip()
    work = Path("build", "tables", commit)  # what was made by other commits is made again
    results = work if options.quick else RESULTS
    folders = Folders(options.data, options.models, work, options.quick)
    work.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        try:
            text = TABLES[name][0](folders)
        except FileNotFoundError as missing:
            if not options.quick:
                raise
            print(f"{name}: no {missing}; left out", file=sys.stderr)
            continue
        printed = f"commit {commit}\n{text.replace(str(folders.models), 'models')}"
        (results / f"{name}.txt").write_text(printed, "utf-8")
        print(block(name, printed), flush=True)
    if not options.quick:
        readme = ROOT / "README.md"
        readme.write_text(replaced(readme.read_text("utf-8"), RESULTS), "utf-8")


if __name__ == "__main__":
    main()
