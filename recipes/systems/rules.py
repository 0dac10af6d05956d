"""Rules that choose among outputs of systems, compared with the best single system of each set.

    python recipes/systems/rules.py --data DATA --work WORK [--only guofeng …]

A set is a folder with `docids`, `hyp.NAME.en` of each system, and `ref.en` or people's judgements:
`mqm.tsv`, a row for each segment and a column for each system that `mqm.columns` names. The tuned
rule is tuned on every other document and chooses on the others, both ways. p is two-sided, over
documents, of the difference to the best system in BLEU, or in MQM where there is no reference. Each
command of the shell is printed; everything made goes to WORK.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from run import NMT, Half, Recipe

from rerank.formats.document_files import read_texts
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.significance import sign_flip_p_value
from rerank.notices import Notices
from rerank.scorers.agreement import DOCUMENT_BLEU, SENTENCE_CHRF

FOLDERS = {
    "llm": "wmt23-zh-en-llm",
    "guofeng": "llm4-guofeng",
    "fr-en": "llm4-ted17-fr-en",
    "mqm": "mqm-zh-en",
}
RULES = {"document BLEU": DOCUMENT_BLEU, "chrF": SENTENCE_CHRF, "agreement": ""}
METRICS = ("BLEU", "chrF2", "MQM")
Rows = NDArray[Any]


@dataclass(frozen=True)
class TestSet:
    """Outputs of systems for the sentences of a test set, and what they are judged by.

    docids: (T,); reference: (T,) or none; mqm: (T,) penalties by system, or none.
    """

    docids: Sequence[str]
    systems: Mapping[str, Sequence[str]]
    reference: Sequence[str]
    tokenize: str
    mqm: Mapping[str, Rows]

    def judged(self, output: Sequence[str]) -> dict[str, tuple[Rows, Any]]:
        """Of each metric the statistics (D, W) of an output, and the score of their sums."""
        found: dict[str, tuple[Rows, Any]] = {}
        if self.reference:
            given = [[x.encode()] for x in output], [[x.encode()] for x in self.reference]
            for metric in (Bleu(self.tokenize), Chrf()):
                found[metric.name] = self.by_document(metric.statistics(*given)), metric.scores
        if self.mqm:
            of_text = [
                [self.mqm[name][t] for name, lines in self.systems.items() if lines[t] == text]
                for t, text in enumerate(output)
            ]
            rows = np.array([[np.mean(values), 1.0] for values in of_text])
            found["MQM"] = self.by_document(rows), lambda sums: sums[..., 0] / sums[..., 1]
        return found

    def by_document(self, rows: Rows) -> Rows:
        """Sums over the sentences of each document."""
        sizes = [len([*own]) for _, own in groupby(self.docids)]
        return np.add.reduceat(rows, np.cumsum([0, *sizes[:-1]]))

    def half(self, name: str, kept: Sequence[int], work: Path) -> Half:
        """The sentences that are kept, as files."""

        def write(of: str, lines: Sequence[str]) -> Path:
            path = work / f"{name}.{of}"
            path.write_text("".join(f"{lines[t]}\n" for t in kept), encoding="utf-8")
            return path

        systems = [f"{of}={write(f'{of}.txt', lines)}" for of, lines in self.systems.items()]
        reference = write("ref", self.reference) if self.reference else ""
        return Half(name, systems, write("docids", self.docids), reference)


def lines_of(path: Path) -> list[str]:
    """Lines of a text."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def of_folder(folder: Path) -> TestSet:
    """The set in a folder."""
    systems = {path.name[4:-3]: lines_of(path) for path in sorted(folder.glob("hyp.*.en"))}
    reference = folder / "ref.en"
    mqm = {}
    if (folder / "mqm.tsv").exists():
        names = (folder / "mqm.columns").read_text().split()
        mqm = dict(zip(names, np.loadtxt(folder / "mqm.tsv", ndmin=2).T, strict=True))
    expected = lines_of(reference) if reference.exists() else []
    return TestSet(lines_of(folder / "docids"), systems, expected, "13a", mqm)


def nmt(data: Path) -> TestSet:
    """Five neural systems on TED tst2010."""
    folder = data / "ted-zh-en"
    systems = {name: lines_of(folder / f"tst2010.nmt.{name}.en") for name in NMT}
    given = lines_of(folder / "tst2010.docids"), systems, lines_of(folder / "tst2010.en")
    return TestSet(*given, "none", {})


def wmt23(data: Path) -> TestSet:
    """All systems of WMT23 ru-en."""
    found = read_texts(data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz", Notices())
    if found is None:
        raise SystemExit("wmt23-ru-en: expected WMT XML")

    def decoded(lines: Sequence[bytes | None]) -> list[str]:
        return [" ".join((line or b"").decode().split()) for line in lines]

    documents, (reference,) = found.documents, found.text("reference").values()
    docids = [name for name, own in documents.ranges() for _ in own]
    systems = {name: decoded(lines) for name, lines in found.text("system").items()}
    return TestSet(docids, systems, decoded(reference), "13a", {})


def outputs_of(name: str, found: TestSet, work: Path) -> dict[str, list[str]]:
    """What each rule chooses."""
    recipe = Recipe(work, None, found.tokenize)
    whole = found.half(name, range(len(found.docids)), work)
    outputs = {}
    for rule, feature in RULES.items():
        options = ["--weights", str(recipe.alone(feature)), "--default-weight", "0"]
        out = work / f"{name}.{feature or 'agreement'}.out"
        recipe.run("decode", *whole.lists, *(options if feature else ()), "--out", str(out))
        outputs[rule] = lines_of(out)
    if found.reference:
        numbers = [d for d, (_, own) in enumerate(groupby(found.docids)) for _ in own]
        kept = [[t for t, d in enumerate(numbers) if d % 2 == half] for half in (0, 1)]
        halves = [found.half(f"{name}.{half}", own, work) for half, own in enumerate(kept)]
        tuned = [""] * len(numbers)
        for half in (0, 1):
            weights = recipe.tuned(halves[half], "tuned")
            out = recipe.decode(halves[1 - half], "tuned", weights)
            for t, line in zip(kept[1 - half], lines_of(out), strict=True):
                tuned[t] = line
        outputs["tuned on the other half"] = tuned
    return outputs


def table_of(name: str, found: TestSet, work: Path) -> dict[str, dict[str, float]]:
    """Print the rows of a set; the gains over the best system, by rule and metric."""
    singles = [found.judged(lines) for lines in found.systems.values()]
    judge = next(iter(singles[0]))  # the metric of the test
    columns, gains = {}, {}
    for metric, (_, score) in singles[0].items():
        own = np.array([float(score(one[metric][0].sum(axis=0))) for one in singles])
        columns[metric] = own
    sign = {metric: -1.0 if metric == "MQM" else 1.0 for metric in columns}
    best = {metric: int((sign[metric] * own).argmax()) for metric, own in columns.items()}
    rows = {
        "mean system": {metric: float(own.mean()) for metric, own in columns.items()},
        "best system": {metric: float(own[best[metric]]) for metric, own in columns.items()},
    }
    p_values: dict[str, float | None] = {}
    for rule, output in outputs_of(name, found, work).items():
        judged = found.judged(output)
        rows[rule] = {x: float(score(own.sum(axis=0))) for x, (own, score) in judged.items()}
        gains[rule] = {x: rows[rule][x] - rows["best system"][x] for x in judged}
        own, score = judged[judge]
        rival = singles[best[judge]][judge][0]
        p_values[rule] = sign_flip_p_value(own, rival, score, rng=np.random.default_rng(1))
    for rule, values in rows.items():
        cells = [f"{values[x]:.2f}" if x in values else "" for x in METRICS]
        p = p_values.get(rule)
        print(f"| {name} | {rule} | {' | '.join(cells)} | {'' if p is None else f'{p:.4f}'} |")
    return gains


def main() -> None:
    """Print the rows of each set, and the mean gains of each rule over the sets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=["wmt23", "nmt", *FOLDERS])
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    print(f"| set | rule | {' | '.join(METRICS)} | p |\n|---|---|---|---|---|---|", flush=True)
    found = []
    for name in given.only:
        if name in FOLDERS:
            read = of_folder(given.data / FOLDERS[name])
        else:
            read = {"wmt23": wmt23, "nmt": nmt}[name](given.data)
        found.append(table_of(name, read, given.work))
    for rule in {rule: None for one in found for rule in one}:
        own = [one[rule] for one in found if rule in one]
        means = {x: [gains[x] for gains in own if x in gains] for x in METRICS}
        cells = [f"{np.mean(values):+.2f}" if values else "" for values in means.values()]
        print(f"| mean gain over the best system | {rule} | {' | '.join(cells)} | |")


if __name__ == "__main__":
    main()
