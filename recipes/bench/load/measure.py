"""Seconds and peak memory of the commands on lists of several sizes.

`python measure.py WORK S M L` makes the lists of each size in WORK, runs the commands on them,
appends a line for each to WORK/results.jsonl, and prints the table of all results there. `--only
check --only first` runs some commands, `--table` none. Lists are kept: remove WORK by hand.

Peak memory is the largest resident set of the child process, as the kernel states it when the
child ends (`ru_maxrss`, as `/usr/bin/time -v`). This process stays small, since a child begins
with its parent's pages. Beside it the largest private memory (`RssAnon`, looked at 20 times a
second) is kept: pages of mapped files, which the kernel drops when it needs the room, are in the
first number and not in the second.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
STREAMING = (
    "check",
    "decode",
    "decode lists",
    "decode cached",
    "convert",
    "first",
)  # memory of a document


@dataclass(frozen=True, slots=True)
class Size:
    """D documents, T sentences each on average, K hypotheses of a sentence, sparse names."""

    documents: int
    sentences: int
    k: int
    sparse: int = 0


FEATURES = 14
SIZES = {
    "XS": Size(5, 6, 5),
    "S": Size(50, 20, 50),
    "M": Size(500, 25, 100),
    "L": Size(3000, 25, 100),
    "XL-doc": Size(1, 100_000, 20),
    "wide": Size(200, 20, 1000),
    "longest": Size(20, 10, 10_000),
    "sparse": Size(500, 20, 100, 1_000_000),
}
# seconds and MB at L (reliability of long runs)
CEILINGS = {
    "check": (120, 300),
    "tune-mert --select none": (900, 3000),
    "tune-mert": (900, 3000),
    "tune-mert --memory 1G": (900, 1024),
    "decode lists": (600, 3000),
    "decode lists --memory 1G": (600, 1024),
    "decode --memory 1G": (600, 1024),
    "decode": (600, 3000),
    "decode cached": (600, 3000),
    "report": (60, 3000),
}


def commands(data: Path) -> dict[str, list[str]]:
    """Arguments of each command, by name, in an order in which each finds what it reads."""
    kbest = ["--kbest", f"{data}/kbest.gz"]
    docs = ["--docs", f"{data}/docids"]
    ref = ["--ref", f"{data}/ref"]
    scorers = ["--ngram", f"ngram={data}/lm.arpa", "--scorer", "hash=text-hash"]
    cache = ["--cache", f"{data}/cache"]
    start = ["--start", f"{data}/weights.json"]
    lists = ["decode", *kbest, *docs, "--weights", f"{data}/weights.json"]
    decode = ["decode", *kbest, *docs, "--weights", f"{data}/weights.json", *scorers, *cache]
    decode += ["--default-weight", "0.1", "--search", "auto"]
    trace = ["--trace", f"{data}/trace", "--summary", f"{data}/summary.json"]
    tune = ["tune-mert", *kbest, *docs, *ref, *start, "--out", f"{data}/tuned.json", "--seed", "1"]
    return {
        "check": ["check", *kbest, *docs, *ref],
        "first": ["first", *kbest, "--out", f"{data}/first"],
        "convert": ["convert", *kbest, *docs, "--to", "jsonl", "--out", f"{data}/converted.gz"],
        "tune-mert --select none": [*tune, "--select", "none"],
        "tune-mert": tune,
        "tune-mert --memory 1G": [*tune, "--memory", "1G"],
        "decode lists": [*lists, "--out", f"{data}/decoded-lists"],
        "decode lists --memory 1G": [*lists, "--out", f"{data}/decoded-lists-1G", "--memory", "1G"],
        "decode": [*decode, "--out", f"{data}/decoded"],
        "decode --memory 1G": [*decode, "--out", f"{data}/decoded-1G", "--memory", "1G"],
        "decode cached": [*decode, "--out", f"{data}/decoded", *trace],
        "evaluate": ["evaluate", *docs, *ref, "--baseline", f"{data}/first", f"{data}/decoded"],
        "report": ["report", *trace, *docs, *ref, "--out", f"{data}/report.html"],
    }


def make(name: str, size: Size, data: Path) -> None:
    """Make the lists of a size, unless they are there."""
    if (data / "lm.arpa").exists():
        return
    shape = (size.documents, size.sentences, size.k, FEATURES, 1)
    sparse = ["--sparse", str(size.sparse)] if size.sparse else []
    began = time.monotonic()
    command = [sys.executable, str(HERE / "generate.py"), str(data), *map(str, shape), *sparse]
    subprocess.run(command, check=True)
    packed = (data / "kbest.gz").stat().st_size / 1e6
    print(f"{name}: made in {time.monotonic() - began:.0f} s, {packed:,.0f} MB of gzip", flush=True)


def register_scorer(folder: Path) -> None:
    """Make the scorer known as `text-hash` to processes with this folder in PYTHONPATH."""
    information = folder / "load_scorer-1.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: load-scorer\nVersion: 1\n")
    entry = "[rerank.scorers]\ntext-hash = load_scorer:TextHash\n"
    (information / "entry_points.txt").write_text(entry)
    shutil.copy(HERE / "load_scorer.py", folder)


@dataclass(frozen=True, slots=True)
class Run:
    """Exit status of a command, its seconds by the clock and of CPU, and its peaks in megabytes."""

    exit: int
    seconds: float
    cpu: float
    megabytes: float
    private: float


class PrivateMemory(threading.Thread):
    """The largest private memory of a process so far, in megabytes."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.status, self.peak = Path(f"/proc/{process}/status"), 0.0

    def run(self) -> None:
        """Look until the process has ended."""
        while True:
            try:
                lines = self.status.read_text().splitlines()
            except OSError:
                return
            result = [line.split()[1] for line in lines if line.startswith("RssAnon")]
            if not result:  # a process that nobody has waited for yet
                return
            self.peak = max(self.peak, int(result[0]) / 1024)
            time.sleep(0.05)


def run(arguments: list[str], folder: Path, log: Path) -> Run:
    """What a command took."""
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    began = time.monotonic()
    with open(log, "wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "rerank", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path},
        )
        private = PrivateMemory(child.pid)
        private.start()
        _, status, used = os.wait4(child.pid, 0)
    seconds = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu = used.ru_utime + used.ru_stime
    return Run(child.returncode, seconds, cpu, used.ru_maxrss / 1024, private.peak)


def table(lines: list[str]) -> str:
    """The latest result of each command and size, in Markdown: seconds of CPU, and peak MB.

    Of a command with `--memory` the private memory follows in brackets, and is what a ceiling is
    for. Slopes are of memory: megabytes from S to M, and from M to L. `!`: above a ceiling at L.
    Seconds of CPU, unlike those of the clock, hardly depend on what else the machine does.
    """
    results = {}
    for line in lines:
        one = json.loads(line)
        results[one["command"], one["size"]] = one
    sizes = [size for size in SIZES if any(key[1] == size for key in results)]
    head = ["command", *(f"{size}: CPU s, MB" for size in sizes), "MB, M − S", "MB, L − M"]
    rows = [head, ["---", *(["--:"] * (len(head) - 1))]]
    for name in commands(Path()):
        result = {size: results[name, size] for size in sizes if (name, size) in results}
        row = [f"`{name}`"]
        for size in sizes:
            if size not in result:
                row.append("–")
                continue
            one = result[size]
            text, most_held = f"{one['cpu']:.1f}, {one['megabytes']:,.0f}", one["megabytes"]
            if "--memory" in name:
                most_held = one["private"]
                text += f" ({most_held:,.0f})"
            if one["exit"]:
                text += f" (exit {one['exit']})"
            most = CEILINGS.get(name, (float("inf"),) * 2)
            if size == "L" and (one["cpu"] > most[0] or most_held > most[1]):
                text += " !"
            row.append(text)
        for small, large in (("S", "M"), ("M", "L")):
            if small in result and large in result:
                slope = result[large]["megabytes"] - result[small]["megabytes"]
                mark = " !" if name in STREAMING and slope > 200 else ""
                row.append(f"{slope:,.0f}{mark}")
            else:
                row.append("–")
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Measure what the command line names, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=", ".join(SIZES))
    parser.add_argument("--only", action="append", metavar="COMMAND", help="of the table")
    parser.add_argument("--table", action="store_true", help="print the table, run nothing")
    options = parser.parse_args()
    if unknown := set(options.sizes) - set(SIZES):
        parser.error(f"unknown size {', '.join(sorted(unknown))}: expected {', '.join(SIZES)}")
    if unknown := set(options.only or ()) - set(commands(Path())):
        parser.error(
            f"unknown command {', '.join(unknown)}; expected {', '.join(commands(Path()))}"
        )
    options.work.mkdir(parents=True, exist_ok=True)
    results = options.work / "results.jsonl"
    register_scorer(options.work / "scorer")
    for name in () if options.table else options.sizes:
        data = options.work / name
        make(name, SIZES[name], data)
        for command, arguments in commands(data).items():
            if options.only and command not in options.only:
                continue
            log = data / f"{command.replace(' ', '_')}.log"
            done = run(arguments, options.work / "scorer", log)
            load = os.getloadavg()[0]
            print(
                f"{name} {command}: {done.seconds:.1f} s ({done.cpu:.1f} s of CPU, load "
                f"{load:.1f}), {done.megabytes:,.0f} MB ({done.private:,.0f} MB private), exit "
                f"{done.exit}",
                flush=True,
            )
            with open(results, "a", encoding="utf-8") as file:
                one = {"command": command, "size": name, **asdict(done), "load": load}
                file.write(json.dumps(one) + "\n")
    if results.exists():
        print(table(results.read_text(encoding="utf-8").splitlines()))


if __name__ == "__main__":
    main()
