"""Several systems combined: tuned on half of the documents, tested on the other half.

    python recipes/studies/systems/run.py --data DATA --work WORK [--lm DIR] [--only wmt23 nmt]
    python recipes/studies/systems/run.py --xml FILE.xml --work WORK [--lm DIR]

DATA holds `wmt23-ru-en/` and `ted-zh-en/` (see this folder's README). FILE is WMT XML (2021 and
later), plain or compressed, with references and outputs of systems; documents without reference and
systems without some documents are left out. Each command of the shell is
printed; everything made goes to WORK.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from complete_part import complete_part

from rerank.corpus.documents import Documents
from rerank.formats.document_files import documents_of_file
from rerank.notices import Notices
from rerank.scorers.agreement import DOCUMENT_BLEU, SENTENCE_BLEU

RERANK = [sys.executable, "-m", "rerank"]
NMT = ("baseline", "cache", "han-enc", "han-dec", "han-joint")


@dataclass(frozen=True)
class Half:
    """Half of the documents of a test set, as options of the shell: systems, documents, reference.

    objective: options of tuning for another objective than BLEU.
    """

    name: str
    systems: list[str]
    docs: Path
    reference: str | Path
    objective: Sequence[str] = ()

    @property
    def lists(self) -> list[str]:
        """Options that make the lists."""
        return [*(f"--systems={one}" for one in self.systems), "--docs", str(self.docs)]


@dataclass(frozen=True)
class Recipe:
    """Commands of rerank, whose files lie in WORK; each row of the table is printed when known."""

    work: Path
    model: Path | None
    tokenize: str

    def run(self, *command: str) -> str:
        """What a command prints; all of it ends if the command fails."""
        print("$ rerank", shlex.join(command), file=sys.stderr, flush=True)
        done = subprocess.run([*RERANK, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout

    def decode(self, half: Half, name: str, weights: Path, *options: str) -> Path:
        """The output of some weights."""
        out = self.work / f"{half.name}.{name}.out"
        command = ("decode", *half.lists, "--weights", str(weights), "--out", str(out))
        self.run(*command, *options)
        return out

    def alone(self, feature: str) -> Path:
        """Weights of a single feature; decode with `--default-weight 0`."""
        path = self.work / f"{feature}.json"
        path.write_text(json.dumps({"schema": 1, "weights": {feature: [1.0]}}))
        return path

    def tuned(self, half: Half, name: str, *options: str) -> Path:
        """Weights tuned on a half, from its best system."""
        path = self.work / f"{half.name}.{name}.json"
        about = ("--ref", str(half.reference), "--tokenize", self.tokenize, "--out", str(path))
        self.run("tune-mert", *half.lists, *about, *half.objective, *options)
        return path

    def compare(self, tuning: Half, test: Half) -> None:
        """Print the rows of a tuning half and the other half."""
        weights = self.tuned(tuning, "tuned")
        made = json.loads(weights.read_text())["provenance"]
        best = max(made["systems"], key=made["systems"].get)
        nothing = ("--default-weight", "0")
        alone = self.alone(made["indicators"][best])
        rows = {
            f"best system there: {best}": self.decode(test, "best", alone, *nothing),
            "sentence MBR": self.decode(test, "mbr", self.alone(SENTENCE_BLEU), *nothing),
            "document MBR": self.decode(test, "document-mbr", self.alone(DOCUMENT_BLEU), *nothing),
            "tuned combination": self.decode(test, "tuned", weights),
        }
        if self.model is not None:
            lm = ("--lm", f"doc={self.model}")
            weights = self.tuned(tuning, "document", *lm)
            rows["+ document feature"] = self.decode(test, "document", weights, *lm)
        found = self.run(
            *("evaluate", "--docs", str(test.docs), "--ref", str(test.reference)),
            *("--tokenize", self.tokenize, "--format", "json"),
            *("--baseline", *map(str, rows.values())),
        )
        for name, one in zip(rows, json.loads(found)["systems"], strict=True):
            print(f"| {tuning.name} | {test.name} | {name} | {_cells(one)} |", flush=True)


def _cells(system: dict[str, Any]) -> str:
    """BLEU, its gain over the first row, chrF, documents and p of a row."""
    bleu, chrf = system["bleu"], system["metrics"]["chrf"]["score"]
    if system["difference"] is None:
        return f"{bleu:.2f} | | {chrf:.2f} | | "
    documents = system["documents"]
    counts = "/".join(str(documents[name]) for name in ("better", "equal", "worse"))
    p = "" if system["p_value"] is None else f"{system['p_value']:.4f}"
    return f"{bleu:.2f} | {system['difference']:+.2f} | {chrf:.2f} | {counts} | {p}"


def halves_of_xml(xml: Path, work: Path, name: str) -> tuple[Half, Half]:
    """Every other document of the complete part of WMT XML."""
    part = complete_part(xml, lambda line: print(f"{xml.name}: {line}", file=sys.stderr))
    found = []
    for half in (0, 1):
        docs = work / f"{name}.{half}.docids"
        docs.write_text("".join(f"{own}\n" * size for own, size in part.documents[half::2]))
        found.append(Half(f"{name}.{half}", list(part.systems), docs, part.reference))
    return found[0], found[1]


def halves_of_nmt(data: Path, work: Path) -> tuple[Half, Half]:
    """Every other talk of TED tst2010, translated by five neural systems."""
    folder = data / "ted-zh-en"
    documents = documents_of_file(folder / "tst2010.docids", Notices())
    found = []
    for half in (0, 1):
        kept = [d % 2 == half for d in _owners(documents)]

        def part(file: str, kept: list[bool] = kept, half: int = half) -> Path:
            lines = (folder / file).read_text(encoding="utf-8").split("\n")
            path = work / f"{half}.{file}"
            chosen = (line for line, own in zip(lines, kept, strict=False) if own)
            path.write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
            return path

        systems = [f"{one}={part(f'tst2010.nmt.{one}.en')}" for one in NMT]
        found.append(Half(f"nmt.{half}", systems, part("tst2010.docids"), part("tst2010.en")))
    return found[0], found[1]


def _owners(documents: Documents) -> list[int]:
    """The document of each sentence."""
    spans = [documents.span(d) for d in range(len(documents))]
    return [d for d, (start, stop) in enumerate(spans) for _ in range(start, stop)]


def main() -> None:
    """Print a table of both directions of each test set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--xml", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--lm", type=Path)
    parser.add_argument("--only", nargs="*", default=["wmt23", "nmt"])
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    sets: list[tuple[tuple[Half, Half], str]] = []
    if given.xml:
        sets.append((halves_of_xml(given.xml, given.work, given.xml.name.split(".")[0]), "13a"))
    elif given.data:
        if "wmt23" in given.only:
            xml = given.data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
            sets.append((halves_of_xml(xml, given.work, "wmt23"), "13a"))
        if "nmt" in given.only:
            sets.append((halves_of_nmt(given.data, given.work), "none"))
    else:
        parser.error("expected --data DATA or --xml FILE")
    print("| tuned on | tested on | output | BLEU | gain | chrF | better/equal/worse | p |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for (first, second), tokenize in sets:
        recipe = Recipe(given.work, given.lm, tokenize)
        recipe.compare(first, second)
        recipe.compare(second, first)


if __name__ == "__main__":
    main()
