"""What trained language models know of documents: coherence and the choice of next sentences.

    python recipes/studies/coherence/run.py --data DATA --set ptb --lm codclm=DIR --lm rnnlm=DIR …

Runs `rerank lm-eval coherence` and `rerank lm-eval next-sentence` on one text with models that are
trained already, and prints a table of each. Sets: `ptb`, the test articles of the Penn Treebank
(DATA/ptb); `ted`, the references of the talks dev2010 and tst2010 (DATA/ted-zh-en); `bbc`, the
test articles that `recipes/studies/ptb/bbc.py` writes (DATA/bbc.test.txt). Options after --
are those that both commands share, as `--threads 1`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
TALKS = ("dev2010", "tst2010")
SCORES = {"normalised": "eq. 4", "log_p": "log p", "pmi": "log p − log p(s)"}


@dataclass(frozen=True)
class TestSet:
    """How a test text is found, given DATA and WORK, and the candidates of next sentences."""

    text: Callable[[Path, Path], Path]
    candidates: str = "separate"


def talks(data: Path, work: Path) -> Path:
    """The references of the talks, a blank line after each, written to WORK."""
    lines: list[str] = []
    for part in TALKS:
        folder = data / "ted-zh-en"
        sentences = (folder / f"{part}.en").read_text(encoding="utf-8").split("\n")[:-1]
        names = (folder / f"{part}.docids").read_text(encoding="utf-8").split("\n")[:-1]
        for t, (name, sentence) in enumerate(zip(names, sentences, strict=True)):
            if t and name != names[t - 1]:
                lines.append("")
            lines.append(sentence)
        lines.append("")
    work.mkdir(parents=True, exist_ok=True)
    path = work / "ted.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


SETS: Mapping[str, TestSet] = {
    "ptb": TestSet(lambda data, work: data / "ptb" / "ptb.test.txt.gz"),
    "ted": TestSet(talks, "consecutive"),  # 19 talks are too few for 50 different ones
    "bbc": TestSet(lambda data, work: data / "bbc.test.txt"),
}


def evaluated(experiment: str, options: Sequence[str]) -> Any:
    """What `rerank lm-eval EXPERIMENT …` prints as JSON; the command itself is shown."""
    command = ["lm-eval", experiment, *options, "--format", "json"]
    print("$ rerank", *command, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "rerank", *command], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def percent(found: Mapping[str, float]) -> str:
    """`63.0 [61.7, 64.3]`."""
    return " ".join(
        [
            f"{100 * found['accuracy']:.1f}",
            f"[{100 * found['low']:.1f}, {100 * found['high']:.1f}]",
        ]
    )


def print_coherence(found: Any) -> None:
    """Print the accuracies of models, and p of each against the first one."""
    documents, first = len(found["documents"]), found["models"][0]["lm"]
    p = {}
    for own in found["comparisons"]:
        pair = {own["higher"], own["lower"]}
        if first in pair:
            (other,) = pair - {first}
            p[other] = own["p_documents"]
    print(f"\nCoherence: {found['pairs']:,} pairs of {documents} documents\n")
    print(f"| model | accuracy | 1,000 sets: mean (SD) | p, against {first} |\n|---|---|---|---|")
    for own in found["models"]:
        sets = f"{100 * own['sets_mean']:.2f} ({100 * own['sets_sd']:.2f})"
        shown = "–" if p.get(own["lm"]) is None else f"{p[own['lm']]:.2g}"
        print(f"| {own['lm']} | {percent(own)} | {sets} | {shown} |")


def print_next_sentences(found: Any) -> None:
    """Print the accuracies of models by score."""
    print(
        f"\nNext sentence: {found['blocks']} blocks of {found['block']}, {found['candidates']}; "
        f"chance {found['chance']:.1%}\n"
    )
    print(f"| model | {' | '.join(SCORES.values())} |\n|---|---|---|---|")
    for own in found["models"]:
        cells = [percent(own["accuracies"][score]) for score in SCORES]
        print(f"| {own['lm']} | {' | '.join(cells)} |")


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--set", "name", type=click.Choice(list(SETS)), required=True)
@click.option("--lm", "lms", multiple=True, required=True, metavar="[NAME=]DIR")
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work")
@click.option("--permutations", default="20", show_default=True)
@click.option("--block", default="50", show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    data: Path,
    name: str,
    lms: tuple[str, ...],
    work: Path,
    permutations: str,
    block: str,
    options: tuple[str, ...],
) -> None:
    """Print both tables."""
    chosen = SETS[name]
    shared = [option for lm in lms for option in ("--lm", lm)]
    shared += [str(chosen.text(data, work)), *options]
    print_coherence(evaluated("coherence", [*shared, "--permutations", permutations]))
    blocks = ["--block", block, "--candidates", chosen.candidates]
    print_next_sentences(evaluated("next-sentence", [*shared, *blocks]))


if __name__ == "__main__":
    main()
