"""Rules that choose among outputs of systems, compared with the best single system of each set.

    python recipes/studies/systems/rules.py --data DATA --work WORK [--only guofeng …] [--splits 5]

A set is a folder with `docids`, `hyp.NAME.en` of each system, and `ref.en` or people's judgements:
`mqm.tsv`, a row for each segment and a column for each system that `mqm.columns` names. Weights are
tuned on half of the documents and choose on the others, both ways: every other document, then
random halves, of whose scores the mean is printed. p is two-sided, over documents, of the
difference to the best system in BLEU, or in MQM where there is no reference; of tuned weights, to
the system that is best on the other half, in the first halves. The last rows are mean gains; those
of agreement also with the constants that are best on the other sets. Each command of the shell is
printed; everything made goes to WORK.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.formats.document_files import read_texts
from rerank.metrics.bleu import Bleu, length_ratio
from rerank.metrics.chrf import Chrf
from rerank.metrics.consensus import PairwiseChrf
from rerank.metrics.significance import sign_flip_p_value
from rerank.notices import Notices
from rerank.scorers.agreement import DOCUMENT_BLEU, SENTENCE_CHRF

NMT = ("baseline", "cache", "han-enc", "han-dec", "han-joint")
FOLDERS = {
    "llm": "wmt23-zh-en-llm",
    "guofeng": "llm4-guofeng",
    "fr-en": "llm4-ted17-fr-en",
    "mqm": "mqm-zh-en",
}
RULES = {"document BLEU": DOCUMENT_BLEU, "chrF": SENTENCE_CHRF, "agreement": ""}
METRICS = ("BLEU", "chrF2", "MQM")
LENGTH = "length"
BEST, TUNED = "best system of the other half", "tuned on the other half"
OVER_BEST = f"{TUNED}, less the {BEST}"
BETAS, OUTLIERS, SHARES = (1.0, 1.25, 1.5, 2.0), (1.5, 2.0, 3.0, np.inf), (0.0, 0.5, 1.0, 2.0)
Rows = NDArray[Any]
Scores = dict[str, float]


@dataclass(frozen=True)
class Half:
    """Half of the documents of a test set, as options of the shell: systems, documents, reference.

    objective: options of tuning for another objective than BLEU.
    """

    name: str
    systems: list[str]
    docs: Path
    reference: Path
    objective: Sequence[str]

    @property
    def lists(self) -> list[str]:
        """Options that make the lists."""
        return [*(f"--systems={system}" for system in self.systems), "--docs", str(self.docs)]


def rerank(*command: str) -> None:
    """Run a command of rerank, which is shown; all of it ends if the command fails."""
    print("$ rerank", shlex.join(command), file=sys.stderr, flush=True)
    whole = [sys.executable, "-m", "rerank", *command]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)


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

    def scores(self, output: Sequence[str]) -> Scores:
        """Scores of an output by metric, and its length ratio."""
        judged = self.judged(output)
        result = {x: float(score(own.sum(axis=0))) for x, (own, score) in judged.items()}
        if "BLEU" in judged:
            result[LENGTH] = float(length_ratio(judged["BLEU"][0].sum(axis=0)))
        return result

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
        some = next(iter(self.systems.values()))  # tuning asks for a reference, whatever it is for
        reference = write("ref", self.reference or some)
        metrics = [
            f"--metric=mqm={of}:{write(f'{of}.mqm', [f'{-value}' for value in values])}"
            for of, values in self.mqm.items()
        ]
        objective = [*metrics, "--objective", "mqm"] if metrics else []
        return Half(name, systems, write("docids", self.docids), reference, objective)


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
    result = read_texts(data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz", Notices())
    if result is None:
        raise SystemExit("wmt23-ru-en: expected WMT XML")

    def decoded(lines: Sequence[bytes | None]) -> list[str]:
        return [" ".join((line or b"").decode().split()) for line in lines]

    documents, (reference,) = result.documents, result.text("reference").values()
    docids = [name for name, own in documents.ranges() for _ in own]
    systems = {name: decoded(lines) for name, lines in result.text("system").items()}
    return TestSet(docids, systems, decoded(reference), "13a", {})


def outputs_of(name: str, found: TestSet, work: Path) -> dict[str, list[str]]:
    """What each rule chooses."""
    whole = found.half(name, range(len(found.docids)), work)
    outputs = {}
    for rule, feature in RULES.items():
        alone = work / f"{feature}.json"
        alone.write_text(json.dumps({"schema": 1, "weights": {feature: [1.0]}}))
        options = ["--weights", str(alone), "--default-weight", "0"]
        out = work / f"{name}.{feature or 'agreement'}.out"
        rerank("decode", *whole.lists, *(options if feature else ()), "--out", str(out))
        outputs[rule] = lines_of(out)
    return outputs


def tuned_outputs(name: str, found: TestSet, work: Path, split: int) -> dict[str, list[str]]:
    """What weights choose that were tuned on the other half, and its best system."""
    numbers = np.array([d for d, (_, own) in enumerate(groupby(found.docids)) for _ in own])
    order = np.arange(numbers[-1] + 1)
    if split:
        order = np.random.default_rng(split).permutation(order)
    kept = [np.flatnonzero(np.isin(numbers, order[half::2])).tolist() for half in (0, 1)]
    halves = [found.half(f"{name}.{split}.{half}", own, work) for half, own in enumerate(kept)]
    outputs = {BEST: [""] * len(numbers), TUNED: [""] * len(numbers)}
    for half in (0, 1):
        here, there = halves[half], halves[1 - half]
        weights, out = work / f"{here.name}.tuned.json", work / f"{there.name}.tuned.out"
        about = ("--ref", str(here.reference), "--tokenize", found.tokenize, "--out", str(weights))
        rerank("tune-mert", *here.lists, *about, *here.objective)
        values = json.loads(weights.read_text())["provenance"]["systems"]
        best = found.systems[max(values, key=lambda system: float(values[system]))]
        rerank("decode", *there.lists, "--weights", str(weights), "--out", str(out))
        for t, line in zip(kept[1 - half], lines_of(out), strict=True):
            outputs[TUNED][t], outputs[BEST][t] = line, best[t]
    return outputs


def by_constants(found: TestSet) -> dict[tuple[float, float, float], Scores]:
    """Scores of agreement by its constants: beta, outliers in length, share of the systems' means.

    Outliers: so many times the median system's deviation from the median length.
    """
    outputs = [*found.systems.values()]
    kbest = KBest.of([[(text, {}) for text in own] for own in zip(*outputs, strict=True)])
    shape = len(kbest), len(outputs)
    utility, scores = PairwiseChrf(kbest), dict[tuple[float, float, float], Scores]()
    lengths = np.array([utility.characters(t) for t in range(len(kbest))]) + 1
    medians = np.median(lengths, axis=1, keepdims=True)
    deviations = np.abs(np.log(lengths / medians)).mean(axis=0)
    for beta in BETAS:
        utility = PairwiseChrf(kbest, beta=beta)
        pairs = np.array([utility.expected(t, np.eye(shape[1])) for t in range(shape[0])])
        for outlier, share in product(OUTLIERS, SHARES):
            voters = deviations <= outlier * np.median(deviations) + 1e-12
            others = voters[:, None] & ~np.eye(shape[1], dtype=bool)  # [against, candidate]
            means = (pairs * others).sum(axis=1) / np.maximum(others.sum(axis=0), 1)
            chosen = (means + share * means.mean(axis=0)).round(9).argmax(axis=1)
            output = [outputs[m][t] for t, m in enumerate(chosen.tolist())]
            scores[beta, outlier, share] = found.scores(output)
    return scores


def held_out(gains: Sequence[Mapping[tuple[float, ...], Scores]]) -> Scores:
    """Mean gain of agreement on each set with the constants that are best on the other sets."""

    def mean(constants: tuple[float, ...], sets: Sequence[int], metric: str) -> float:
        return float(np.mean([gains[i][constants][metric] for i in sets]))

    result = []
    for i in range(len(gains)):
        others = [j for j in range(len(gains)) if j != i]
        best = max(gains[i], key=lambda x: mean(x, others, "BLEU") + mean(x, others, "chrF2"))
        result.append(gains[i][best])
    return {metric: float(np.mean([own[metric] for own in result])) for metric in METRICS[:2]}


def table_of(
    name: str, found: TestSet, work: Path, splits: int
) -> tuple[dict[str, Scores], dict[tuple[float, float, float], Scores]]:
    """Print the rows of a set; the gains over the best system by rule, and by constants."""
    singles = [found.judged(lines) for lines in found.systems.values()]
    judge = next(iter(singles[0]))  # the metric of the test
    of_systems = [found.scores(lines) for lines in found.systems.values()]
    columns = {x: np.array([own[x] for own in of_systems]) for x in of_systems[0]}
    best = {x: int((-column if x == "MQM" else column).argmax()) for x, column in columns.items()}
    top = {x: float(column[best[x]]) for x, column in columns.items() if x != LENGTH}
    rows = {
        "mean system": {x: float(column.mean()) for x, column in columns.items()},
        "best system": top | {x: columns[x][best[judge]] for x in columns if x == LENGTH},
    }
    p_values = dict[str, float | None]()

    def p_of(output: Sequence[str], rival: Rows) -> float | None:
        own, score = found.judged(output)[judge]
        return sign_flip_p_value(own, rival, score, rng=np.random.default_rng(1))

    for rule, output in outputs_of(name, found, work).items():
        rows[rule] = found.scores(output)
        p_values[rule] = p_of(output, singles[best[judge]][judge][0])
    of_splits = [tuned_outputs(name, found, work, split) for split in range(splits)]
    for rule in of_splits[0] if splits else ():
        scored = [found.scores(outputs[rule]) for outputs in of_splits]
        rows[rule] = {x: float(np.mean([own[x] for own in scored])) for x in scored[0]}
    if splits:
        p_values[TUNED] = p_of(of_splits[0][TUNED], found.judged(of_splits[0][BEST])[judge][0])
    for rule, values in rows.items():
        cells = [f"{values[x]:.2f}" if x in values else "" for x in METRICS]
        length, p = f"{values[LENGTH]:.3f}" if LENGTH in values else "", p_values.get(rule)
        p_cell = "" if p is None else f"{p:.4f}"
        print(f"| {name} | {rule} | {' | '.join(cells)} | {length} | {p_cell} |", flush=True)

    def gain(values: Scores) -> Scores:
        return {x: values[x] - top[x] for x in top}

    by = {constants: gain(own) for constants, own in by_constants(found).items()}
    gains = {rule: gain(values) for rule, values in rows.items()}
    if splits:
        gains[OVER_BEST] = {x: rows[TUNED][x] - rows[BEST][x] for x in top}
        cells = [f"{gains[OVER_BEST][x]:+.2f}" if x in top else "" for x in METRICS]
        print(f"| {name} | {OVER_BEST} | {' | '.join(cells)} | | |", flush=True)
    return gains, by


def main() -> None:
    """Print the rows of each set, and the mean gains of each rule over the sets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=["wmt23", "nmt", *FOLDERS])
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print(f"| set | rule | {' | '.join(METRICS)} | {LENGTH} | p |", flush=True)
    print("|---|---|---|---|---|---|---|", flush=True)
    result, by_set = [], []
    for name in options.only:
        if name in FOLDERS:
            read = of_folder(options.data / FOLDERS[name])
        else:
            read = {"wmt23": wmt23, "nmt": nmt}[name](options.data)
        gains, by = table_of(name, read, options.work, options.splits)
        result.append(gains)
        by_set += [by] if read.reference else []
    for rule in {rule: None for one in result for rule in one}:
        own = [one[rule] for one in result if rule in one]
        means = {x: [gains[x] for gains in own if x in gains] for x in METRICS}
        cells = [f"{np.mean(values):+.2f}" if values else "" for values in means.values()]
        over = "" if rule == OVER_BEST else " over the best system"
        print(f"| mean gain{over} | {rule} | {' | '.join(cells)} | | |")
    if len(by_set) > 1:
        cells = [f"{value:+.2f}" for value in held_out(by_set).values()]
        print(f"| | agreement, constants of the other sets | {' | '.join(cells)} | | | |")


if __name__ == "__main__":
    main()
