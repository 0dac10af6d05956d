"""A decoding by 1, 2 and 4 processes, by torchrun and by Ray with a killed worker: a table.

    python recipes/cluster/run.py --data DATA [--work WORK]

DATA holds `tvsub-zh-en/`. A small model is trained into WORK first (a minute or two), on the first
200,000 words. Lists: the first 3,000 test sentences, ten candidates each; the episodes are cut into
documents of 10 to 80 sentences. Every run starts with an empty cache, with one thread a process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import groupby, islice
from pathlib import Path

import numpy as np

SENTENCES, WORDS, MACHINES, DOCUMENTS = 3000, 200_000, 64, 2000
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rerank"]
FEATURES = {"LM0": [0.1], "TranslationModel0": [0.05, 0.06, 0.03, 0.04], "WordPenalty0": [-0.26]}


def main() -> None:
    """Make the data, run all ways, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    prepare(given.data / "tvsub-zh-en", given.work)
    os.chdir(given.work)
    print(f"load of this machine before the runs: {os.getloadavg()}, {os.cpu_count()} CPUs")
    compare()
    simulate()


def prepare(data: Path, work: Path) -> None:
    """Training text, model, lists, documents and weights; those that exist stay."""
    if not (work / "codclm.lm").exists():
        with gzip.open(data / "lm.train.en.gz", "rt", encoding="utf-8") as text:
            lines, words = list[str](), 0
            for line in text:
                lines.append(line)
                words += len(line.split())
                if words > WORDS and not line.strip():
                    break
        (work / "train.en").write_text("".join(lines), encoding="utf-8")
        with gzip.open(data / "lm.valid.en.gz", "rt", encoding="utf-8") as text:
            (work / "valid.en").write_text("".join(islice(text, 1500)), encoding="utf-8")
        options = "train-lm --model codclm --epochs 1 --train train.en --valid valid.en --out"
        finish([*options.split(), "codclm.lm"], work)
    with lzma.open(data / "test.nbest.xz", "rt", encoding="utf-8") as found:
        lines = [one for one in islice(found, SENTENCES * 100) if int(one.split()[0]) < SENTENCES]
    (work / "test.nbest").write_text("".join(lines), encoding="utf-8")
    rng, names = np.random.default_rng(1), list[str]()
    episodes = (data / "test.docids").read_text(encoding="utf-8").split("\n")[:SENTENCES]
    for episode, group in groupby(episodes):
        left, part = len(list(group)), 0
        while left:
            size = min(left, int(rng.integers(10, 81)))
            names += [f"{episode}.{part}"] * size
            left, part = left - size, part + 1
    (work / "test.docids").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    weights = {**FEATURES, "codclm": [0.1], "codclmoov": [-0.1]}
    (work / "w.json").write_text(json.dumps({"schema": 1, "weights": weights}), encoding="utf-8")


def command(cache: str, *more: str) -> list[str]:
    """The decoding, with a cache and a file named after it."""
    files = "--kbest test.nbest --docs test.docids --lm codclm=codclm.lm --weights w.json --top 10"
    options = f"--deterministic --quiet --default-weight 0 --cache {cache} --out {cache}.out"
    return ["decode", *files.split(), *options.split(), *more]


def started(arguments: list[str], *, program: list[str] | None = None) -> subprocess.Popen[bytes]:
    """A process of `rerank` in this environment."""
    way = program or ["-m", "rerank"]
    return subprocess.Popen([sys.executable, *way, *arguments], stdout=sys.stderr)


def finish(arguments: list[str], folder: Path) -> None:
    """A command to its end."""
    subprocess.run([sys.executable, "-m", "rerank", *arguments], check=True, cwd=folder)


def compare() -> None:
    """The table of ways: seconds, efficiency on the cores that it could use, equal bytes."""
    cores = os.cpu_count() or 1
    rows = [("1 process", 1, lambda: side_by_side(1))]
    rows += [(f"{n} processes, --shard", n, lambda n=n: side_by_side(n)) for n in (2, 4)]
    rows += [("torchrun, 2 processes", 2, torchrun)]
    if find_spec("ray") is not None:
        rows += [("Ray, a worker killed", 2, ray_with_a_killed_worker)]
    print("way | seconds to score | seconds in all | efficiency of scoring | CPU seconds | bytes")
    alone, expected = 0.0, b""
    for name, n, way in rows:
        before = cpu_seconds()
        scoring, whole, out = way()
        cpu = cpu_seconds() - before
        expected, alone = expected or out, alone or scoring
        efficiency = alone / (scoring * min(n, cores))
        same = "equal" if out == expected else "DIFFERENT"
        used = "-" if name.startswith("Ray") else f"{cpu:.1f}"  # whose workers are not children
        figures = f"{scoring:.1f} | {whole:.1f} | {efficiency:.0%} | {used} | {same}"
        print(f"{name} | {figures}", flush=True)


def cpu_seconds() -> float:
    """CPU time of all processes that have ended: a figure that other work hardly changes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def side_by_side(n: int) -> tuple[float, float, bytes]:
    """Several shards at the same time, then the run that finishes."""
    cache = fresh(f"shards{n}")
    began = time.monotonic()
    shards = [command(cache, "--threads", "1", "--shard", f"{i}/{n}") for i in range(1, n + 1)]
    codes = [program.wait() for program in [started(shard) for shard in shards]]
    scored = time.monotonic() - began
    finish(command(cache, "--threads", "1"), Path())
    if any(codes):
        raise SystemExit(f"exit codes of the shards: {codes}")
    return scored, time.monotonic() - began, Path(f"{cache}.out").read_bytes()


def torchrun() -> tuple[float, float, bytes]:
    """Two processes of torchrun, which share the cores by themselves."""
    cache = fresh("torchrun")
    began = time.monotonic()
    if started(command(cache), program=TORCHRUN).wait():
        raise SystemExit("torchrun failed")
    whole = time.monotonic() - began
    return whole, whole, Path(f"{cache}.out").read_bytes()


def ray_with_a_killed_worker() -> tuple[float, float, bytes]:
    """A cluster of this machine, one of whose workers is killed with its first shard half done."""
    cache = fresh("ray")
    began = time.monotonic()
    program, killed = started(command(cache, "--ray", "local")), None
    while program.poll() is None:
        found = subprocess.run(
            ["pgrep", "-f", "^ray::shard_task"], capture_output=True, check=False
        )
        if killed is None and found.stdout and any(Path(cache).rglob("*.scores")):
            killed = int(found.stdout.split()[0])
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.1)
    whole = time.monotonic() - began
    if program.returncode or killed is None:
        raise SystemExit(f"ray: exit code {program.returncode}, killed worker {killed}")
    return whole, whole, Path(f"{cache}.out").read_bytes()


def fresh(name: str) -> str:
    """A cache without entries."""
    shutil.rmtree(name, ignore_errors=True)
    return name


def simulate() -> None:
    """What 64 machines would take, from the measured cost of every document."""
    from rerank.notices import Notices
    from rerank.options import settings_of
    from rerank.runs.distribution import deal
    from rerank.runs.opening import open_run
    from rerank.runs.options import RunOptions
    from rerank.scorers.features import prepare
    from rerank.scorers.model_options import LanguageModelOption

    options = settings_of(
        RunOptions,
        kbest="test.nbest",
        docs="test.docids",
        top=10,
        lm=(LanguageModelOption.of("codclm", "codclm.lm"),),
        device="cpu",
        deterministic=True,
        no_cache=True,
        threads=1,
    )
    seconds: list[float] = []
    with open_run(options.inputs(), Notices(), options) as source:
        predicted = source.costs
        for named in source.read():
            space = source.space(named[1], total=False)
            if not seconds:
                prepare([named], source.scorers, space, {})  # the first one warms up
            began = time.process_time()
            prepare([named], source.scorers, space, {})
            seconds.append(time.process_time() - began)
    fit = np.corrcoef(predicted, seconds)[0, 1]
    print(
        f"\n{len(seconds)} documents: {sum(seconds):.1f} s of CPU, the largest {max(seconds):.2f}"
        f" s; correlation of predicted and measured cost {fit:.3f}"
    )
    drawn = np.random.default_rng(1).integers(0, len(seconds), DOCUMENTS)
    costs, truth = [predicted[d] for d in drawn], np.array(seconds)[drawn]
    ideal = max(float(truth.sum()) / MACHINES, float(truth.max()))
    print(f"{DOCUMENTS} documents drawn from these on {MACHINES} machines, ideal {ideal:.2f} s:")
    deals = {"by predicted cost": deal(costs, MACHINES)}
    deals["in equal numbers"] = [list(range(i, DOCUMENTS, MACHINES)) for i in range(MACHINES)]
    for name, shards in deals.items():
        longest = max(float(truth[shard].sum()) for shard in shards)
        print(f"dealt {name}: the slowest machine {longest:.2f} s, {longest / ideal:.3f} x ideal")


if __name__ == "__main__":
    main()
