"""Tuning and reranking with a Moses stand-in, on the embedded example; prints a table of BLEU.

    python recipes/adapters/moses/run.py [--work WORK] [--iterations 3]

1. `decoder.py` around `stand_in.py` is tuned as mert-moses.pl does it: show the weights, decode
   with `-weight-overwrite`, tune on the lists of all runs so far, and again. rerank tune-mert takes
   the part of Moses' `mert`: it sees the columns of the lists, and no documents.
2. The test set is translated by Moses alone, by `decoder.py` with the tuned weights, and by
   `moses | rerank decode | detokenizer`; the last two must agree.

Nothing here runs Moses. WORK is `work/` beside this file by default.
"""

from __future__ import annotations

import argparse
import gzip
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sacrebleu

from rerank.example import EMBEDDED, Set
from rerank.formats.weight_files import read_weights
from rerank.notices import Notices

HERE = Path(__file__).parent
PYTHON = shlex.quote(sys.executable)
RERANK = f"{PYTHON} -m rerank"
FAILED = 5  # the sentence of the test set of which the stand-in finds no translation
FEATURE = "used"  # the document cache, a feature that needs no training
START = 0.3


@dataclass(frozen=True)
class Shell:
    """Commands of the shell in a folder."""

    folder: Path

    def run(self, command: str) -> None:
        """Print and run a command; a failure in a pipeline ends the program."""
        print("$", command.replace(PYTHON, "python"), flush=True)
        subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=self.folder, check=True)

    def lines(self, name: str) -> list[str]:
        """Lines of a file."""
        return (self.folder / name).read_text(encoding="utf-8").split("\n")[:-1]

    def write(self, name: str, text: str, *, program: bool = False) -> None:
        """Write a file."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        if program:
            path.chmod(0o755)


def prepare(shell: Shell, name: str, found: Set, failed: int | None = None) -> None:
    """Files of a set: NAME.ini for the stand-in, NAME.src, NAME.docids, NAME.ref."""
    shell.folder.mkdir(parents=True, exist_ok=True)
    for kind, path in (("docids", found.docs), ("ref", found.references)):
        shell.write(f"{name}.{kind}", gzip.decompress(path.read_bytes()).decode())
    shell.write(f"{name}.src", "".join(f"source of {x}\n" for x in shell.lines(f"{name}.docids")))
    lists = gzip.decompress(found.kbest.read_bytes()).decode().splitlines(keepends=True)
    kept = [line for line in lists if failed is None or not line.startswith(f"{failed} |||")]
    shell.write(f"{name}.candidates", "".join(kept))
    weights = EMBEDDED.weights.read_text(encoding="utf-8")
    shell.write(
        f"{name}.ini", f"[candidates]\n{name}.candidates\n\n{weights}UnknownWordPenalty0= 1\n"
    )


def programs(shell: Shell) -> None:
    """`moses`, the stand-in, and `decoder`, the script to give to mert-moses.pl."""
    shell.write(
        "moses",
        f'#!/bin/sh\nexec {PYTHON} {shlex.quote(str(HERE / "stand_in.py"))} "$@"\n',
        program=True,
    )
    for name in ("tune", "test"):
        shell.write(
            f"decoder.{name}",
            f"#!/bin/sh\nexec {PYTHON} {shlex.quote(str(HERE / 'decoder.py'))} --moses ./moses \\\n"
            f"  --weight {FEATURE}={START} --docs {name}.docids \\\n"
            f'  --scorer {FEATURE}=document-cache -- "$@"\n',
            program=True,
        )


def shown(lines: list[str]) -> dict[str, list[float]]:
    """Weights by feature of `-show-weights`, as mert-moses.pl reads it."""
    pairs = (line.split("= ") for line in lines if "= " in line)
    return {name: [float(value) for value in values.split()] for name, values in pairs}


def overwrite(weights: Mapping[str, list[float]]) -> str:
    """The value of -weight-overwrite, of L1 norm 1, with the digits of mert-moses.pl."""
    norm = sum(abs(value) for values in weights.values() for value in values)
    return " ".join(
        " ".join([f"{name}=", *(f"{value / norm:.6f}" for value in values)])
        for name, values in weights.items()
    )


def pooled(shell: Shell, runs: int) -> None:
    """pool.nbest: the different lines of all lists so far, by sentence."""
    lines = (line for run in range(1, runs + 1) for line in shell.lines(f"run{run}.best100.out"))
    different = dict.fromkeys(lines)
    by_sentence = sorted(different, key=lambda line: int(line.split(" ", 1)[0]))
    shell.write("pool.nbest", "".join(f"{line}\n" for line in by_sentence))


def tune(shell: Shell, iterations: int) -> list[tuple[str, float]]:
    """Tune the weights into tuned.ini; BLEU of each run on the tuning set."""
    rows = []
    shell.run("./decoder.tune -config tune.ini -show-weights > features.list")
    weights = shown(shell.lines("features.list"))
    for run in range(1, iterations + 1):
        shell.run(
            "./decoder.tune -config tune.ini -inputtype 0 "
            f"-weight-overwrite '{overwrite(weights)}' "
            f"-n-best-list run{run}.best100.out 100 distinct -input-file tune.src > run{run}.out"
        )
        rows.append((f"tuning set, run {run}", bleu(shell, f"run{run}.out", "tune.ref")))
        pooled(shell, run)
        shell.write("start.ini", ini(weights))
        shell.run(
            f"{RERANK} tune-mert --quiet --kbest pool.nbest --no-docs each "
            "--ref tune.ref --start start.ini --base tune.ini --out tuned.ini"
        )
        tuned = read_weights(shell.folder / "tuned.ini", Notices()).dense
        weights = {name: list(tuned[name]) for name in weights}
    return rows


def ini(weights: Mapping[str, list[float]]) -> str:
    """A file of the weights."""
    lines = (" ".join([f"{name}=", *map(repr, values)]) for name, values in weights.items())
    return "\n".join(["[weight]", *lines, ""])


def bleu(shell: Shell, out: str, ref: str) -> float:
    """BLEU of sacrebleu, the words as they are."""
    hypotheses, references = shell.lines(out), shell.lines(ref)
    return float(sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score)


def translate(shell: Shell) -> list[tuple[str, float]]:
    """Translate the test set in three ways; BLEU of each."""
    shell.run("./moses -f test.ini < test.src > moses.out")
    shell.run("./decoder.test -f tuned.test.ini < test.src > decoder.out")
    shell.run(
        "./moses -f test.ini -n-best-list - 100 distinct < test.src | "
        f"{RERANK} decode --quiet --kbest - --docs test.docids --scorer {FEATURE}=document-cache "
        "--weights tuned.ini | tee filter.out | "
        f"{PYTHON} -m sacremoses -q -l en detokenize > filter.txt"
    )
    if shell.lines("filter.out") != shell.lines("decoder.out"):
        sys.exit("run.py: expected the same translations of decoder.py and of the pipeline")
    counts = {len(shell.lines(f"test.{kind}")) for kind in ("src", "docids")}
    if counts != {len(shell.lines("filter.txt"))} or shell.lines("filter.txt")[FAILED]:
        sys.exit("run.py: expected a line for each source sentence, an empty one where Moses fails")
    return [
        ("test set, Moses alone", bleu(shell, "moses.out", "test.ref")),
        ("test set, reranked", bleu(shell, "filter.out", "test.ref")),
    ]


def main() -> None:
    """Run it all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--iterations", type=int, default=3)
    options = parser.parse_args()
    shell = Shell(options.work.resolve())
    prepare(shell, "tune", EMBEDDED.tune)
    prepare(shell, "test", EMBEDDED.test, FAILED)
    programs(shell)
    rows = tune(shell, options.iterations)
    tuned = (shell.folder / "tuned.ini").read_text(encoding="utf-8")
    shell.write("tuned.test.ini", tuned.replace("tune.candidates", "test.candidates"))
    rows += translate(shell)
    print("\n| | BLEU |\n|---|---|")
    for name, score in rows:
        print(f"| {name} | {score:.2f} |")


if __name__ == "__main__":
    main()
