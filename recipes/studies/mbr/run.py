"""Minimum Bayes risk against the path of highest score, and systems combined; speed of utilities.

    python recipes/studies/mbr/run.py --data DATA [--work WORK] [--only test3ref systems ...]

DATA holds `tvsub-zh-en/`, `ted-zh-en/` and `wmt23-ru-en/` (see this folder's README). Everything
made goes to WORK (default: `work/` beside this file); delete a file there to make it again. Each
step prints the command of the shell that does the same. No language model is used.
"""

from __future__ import annotations

import argparse
import gzip
import html
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sacrebleu

from rerank.corpus.kbest import Document, KBest
from rerank.metrics.consensus import ExpectedUtility
from rerank.registry import UTILITIES, attribute

HERE = Path(__file__).parent
RERANK = [sys.executable, "-m", "rerank"]


@dataclass(frozen=True)
class Lists:
    """K-best lists of a set of DATA."""

    folder: str
    stem: str


@dataclass(frozen=True)
class Files:
    """Lists, documents, weights and references of a set."""

    kbest: Path
    docs: Path
    weights: Path
    references: tuple[Path, ...]


LISTS = {
    "test": Lists("tvsub-zh-en", "test"),
    "test3ref": Lists("tvsub-zh-en", "test3ref"),
    "tst2010": Lists("ted-zh-en", "tst2010"),
}
OTHERS = (Lists("tvsub-zh-en", "tune"), Lists("ted-zh-en", "dev2010"))
SPREADS = (0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16)
NMT = ("baseline", "cache", "han-enc", "han-dec", "han-joint")
PARTS = (*LISTS, "spreads", "systems", "wmt23", "speed")


@dataclass(frozen=True)
class Recipe:
    """Commands that write one file each; what is there is not done again."""

    data: Path
    work: Path

    def run(self, out: Path, *command: str) -> Path:
        """Run a command that writes `out`, unless it exists."""
        if not out.exists():
            out.parent.mkdir(parents=True, exist_ok=True)
            print("$ rerank", *command, "--out", out, flush=True)
            outcome = subprocess.run(
                [*RERANK, *command, "--out", str(out)], stderr=subprocess.PIPE, check=False
            )
            if outcome.returncode:
                sys.exit(outcome.stderr.decode())
        return out

    def files(self, lists: Lists) -> Files:
        """Files of a set of DATA."""
        folder, stem = self.data / lists.folder, lists.stem
        (kbest,) = folder.glob(f"{stem}.nbest.*")
        references = tuple(sorted([*folder.glob(f"{stem}.en"), *folder.glob(f"{stem}.en.*")]))
        return Files(kbest, folder / f"{stem}.docids", folder / "moses.rescore.ini", references)

    def decode(self, name: str, files: Files, *search: str) -> Path:
        """The output of a search."""
        stem = re.sub(r"[^\w.]+", "-", " ".join(search)).strip("-") or "plain"
        lists = ["--kbest", str(files.kbest), "--docs", str(files.docs)]
        return self.run(
            self.work / name / f"{stem}.en",
            *("decode", *lists, "--weights", str(files.weights), *search),
        )


def scores(out: Path, references: Iterable[Path]) -> tuple[float, float, float]:
    """BLEU and chrF2 of sacrebleu, the words as they are, and the length ratio."""
    lines = out.read_text().split("\n")[:-1]
    targets = [reference.read_text().split("\n")[:-1] for reference in references]
    bleu = sacrebleu.corpus_bleu(lines, targets, tokenize="none", force=True)
    return bleu.score, sacrebleu.corpus_chrf(lines, targets).score, bleu.sys_len / bleu.ref_len


def table(title: str, rows: dict[str, Path], references: Iterable[Path]) -> None:
    """Print the scores of outputs."""
    print(f"\n{title}\n\n| output | BLEU | chrF2 | length ratio |\n|---|---|---|---|")
    for name, out in rows.items():
        bleu, chrf, ratio = scores(out, references)
        print(f"| {name} | {bleu:.2f} | {chrf:.2f} | {ratio:.3f} |", flush=True)


def compare(recipe: Recipe, name: str) -> None:
    """The path of highest score and mbr on the k-best lists of a set."""
    files = recipe.files(LISTS[name])
    rows = {"path of highest score": recipe.decode(name, files)}
    for utility in UTILITIES:
        rows[utility] = recipe.decode(name, files, "--search", f"mbr:utility={utility}")
    rewards = {"linear-bleu": "0.2", "chrf": "-1"}
    for utility, reward in rewards.items():
        search = ("--search", f"mbr:utility={utility},word-reward={reward}")
        rows[f"{utility}, word reward {reward}"] = recipe.decode(name, files, *search)
    table(f"{name}, 100-best", rows, files.references)


def spreads(recipe: Recipe) -> None:
    """BLEU of `bleu` by spread, on the sets that no table above is of."""
    for lists in OTHERS:
        files = recipe.files(lists)
        searches = [(), *(("--search", f"mbr:spread={spread}") for spread in SPREADS)]
        outputs = [recipe.decode(lists.stem, files, *search) for search in searches]
        highest, *result = (scores(out, files.references)[0] for out in outputs)
        print(f"\n{lists.stem}, BLEU by spread; path of highest score {highest:.2f}\n")
        print(f"| {' | '.join(map(str, SPREADS))} |\n|{'---|' * len(SPREADS)}")
        print(f"| {' | '.join(f'{score:.2f}' for score in result)} |", flush=True)


def combine(
    recipe: Recipe, name: str, systems: dict[str, Path], docs: Path, references: tuple[Path, ...]
) -> None:
    """Uniform mbr over the outputs of several systems, and each of these."""
    folder = recipe.work / name
    folder.mkdir(parents=True, exist_ok=True)
    kbest, weights = folder / "systems.nbest", folder / "equal.json"
    outputs = [path.read_text().split("\n")[:-1] for path in systems.values()]
    with open(kbest, "w") as file:
        for t, lines in enumerate(zip(*outputs, strict=True)):
            file.writelines(f"{t} ||| {line} ||| F0= 0 ||| 0\n" for line in lines)
    weights.write_text('{"F0": 0}\n')
    files = Files(kbest, docs, weights, references)
    result = sorted((scores(path, references)[0], one) for one, path in systems.items())
    rows = {
        f"{one}, of systems alone the {k}": systems[one]
        for k, one in (("worst", result[0][1]), ("best", result[-1][1]))
    }
    for utility in UTILITIES:
        rows[f"mbr, {utility}"] = recipe.decode(name, files, "--search", f"mbr:utility={utility}")
    table(f"{name}, {len(systems)} systems", rows, references)


def nmt(recipe: Recipe) -> None:
    """Five neural systems on TED talks."""
    folder = recipe.data / "ted-zh-en"
    systems = {one: folder / f"tst2010.nmt.{one}.en" for one in NMT}
    combine(recipe, "systems", systems, folder / "tst2010.docids", (folder / "tst2010.en",))


def wmt23(recipe: Recipe) -> None:
    """The systems of WMT23 ru-en; words as sacrebleu's 13a."""
    (packed,) = (recipe.data / "wmt23-ru-en").glob("*.xml.gz")
    with gzip.open(packed, "rt", encoding="utf-8") as file:
        documents = re.findall(r'<doc [^>]*id="([^"]*)"[^>]*>(.*?)</doc>', file.read(), re.DOTALL)
    split = sacrebleu.metrics.BLEU(tokenize="13a").tokenizer
    texts: dict[str, list[str]] = {"docs": []}
    for name, content in documents:
        for kind, rest, body in re.findall(r"<(ref|hyp) ([^>]*)>(.*?)</\1>", content, re.DOTALL):
            system = re.search(r'system="([^"]*)"', rest)
            key = kind if kind == "ref" else f"hyp.{system[1] if system else ''}"
            segments = re.findall(r"<seg[^>]*>(.*?)</seg>|<seg[^>]*/>", body, re.DOTALL)
            lines = [split(html.unescape(" ".join(segment.split()))) for segment in segments]
            texts.setdefault(key, []).extend(lines)
        texts["docs"] += [name] * (len(texts["ref"]) - len(texts["docs"]))
    folder = recipe.work / "wmt23"
    folder.mkdir(parents=True, exist_ok=True)
    for key, lines in texts.items():
        (folder / f"{key}.txt").write_text("".join(f"{line}\n" for line in lines))
    systems = {key[4:]: folder / f"{key}.txt" for key in sorted(texts) if key.startswith("hyp.")}
    combine(recipe, "wmt23", systems, folder / "docs.txt", (folder / "ref.txt",))


def speed(recipe: Recipe) -> None:
    """Milliseconds of a utility for a sentence, at several sizes of its list; sacrebleu's pairs."""
    from rerank import read

    files, sizes = recipe.files(LISTS["test3ref"]), (25, 50, 100)
    print("\nms a sentence, test3ref (one thread)\n")
    print("| utility |", " | ".join(f"K = {k}" for k in sizes), "|\n|---|---|---|---|")
    sets = {k: [*_kbest(read(files.kbest, files.docs, top=k))] for k in sizes}
    for name in UTILITIES:
        took = []
        for k in sizes:
            utilities: list[ExpectedUtility] = [attribute(UTILITIES[name])(one) for one in sets[k]]
            _decide(utilities[0], 1)  # compiled code is loaded
            began = time.process_time()
            n = sum(_decide(utility) for utility in utilities)
            took.append(1000 * (time.process_time() - began) / n)
        print(f"| {name} |", " | ".join(f"{one:.3f}" for one in took), "|", flush=True)
    bleu, texts = sacrebleu.metrics.BLEU(tokenize="none", effective_order=True), []
    first = sets[sizes[0]][0]
    texts = [first.text(row).decode() for row in first.rows(0)]
    began = time.process_time()
    for text in texts:
        for right in texts:
            bleu.sentence_score(text, [right])
    spent = 1000 * (time.process_time() - began)
    print(f"| sacrebleu's sentence BLEU, pair by pair (first sentence) | {spent:.0f} | | |")


def _kbest(documents: Iterable[Document]) -> Iterable[KBest]:
    """The lists of documents."""
    return (document.kbest for document in documents if document.kbest is not None)


def _decide(utility: ExpectedUtility, most: int | None = None) -> int:
    """Take the expectations of a document's sentences under uniform marginals; how many."""
    counts = utility.kbest.counts[utility.kbest.counts > 0][:most]
    for t, k in enumerate(counts.tolist()):
        utility.expected(t, np.full(k, 1 / k))
    return len(counts)


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    recipe = Recipe(options.data, options.work)
    for name in options.only:
        if name in LISTS:
            compare(recipe, name)
        else:
            {"spreads": spreads, "systems": nmt, "wmt23": wmt23, "speed": speed}[name](recipe)


if __name__ == "__main__":
    main()
