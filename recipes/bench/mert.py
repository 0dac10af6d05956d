"""MERT: CPU seconds of the command, a line search, a start, and to reach a reference's BLEU.

    python recipes/bench/mert.py --data DATA [--set tune1000 dev2010 tune] [--threads 1 2]

DATA holds the lists and `moses-mert-reference.json`: BLEU and CPU seconds that Moses' mert took for
each seed on the same lists, with the same start weights. What is asked is how soon we have the
best BLEU of any of its seeds. The obvious line search, against which ours is timed in the same
run, is that of the textbook in numpy: from break to break of one list after another, then sorted.
CPU seconds are those of this process, threads included; compiled code is compiled before. The whole
command is timed in a process of its own, from the start of Python to the weights file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.files.lines import read_lines
from rerank.formats.translations import read_with_documents
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import vector
from rerank.metrics.bleu import Bleu, corpus_bleu
from rerank.notices import Notices
from rerank.runs.lists import Lists
from rerank.runs.opening import open_run
from rerank.runs.tuning_set import read_set
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import BLEU_GOAL
from rerank.tuning.plan import MertSettings
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.ascent import Axes, Optimum, PoolPoint, coordinates
from rerank.tuning.tuners.mert import optimise

SETS = {
    "tune1000": ("tvsub-zh-en", "tune.nbest.xz", 1000),
    "dev2010": ("ted-zh-en", "dev2010.nbest.gz", None),
    "tune": ("tvsub-zh-en", "tune.nbest.xz", None),
}


@dataclass(frozen=True)
class Task:
    """A pool, weights to start from, and what Moses reached."""

    pool: Pool
    start: NDArray[np.float64]
    reference: float  # BLEU, best of its seeds
    seconds: float  # CPU seconds of that seed
    extractor: float  # CPU seconds of Moses' extractor, which reads the lists and counts statistics


def read(data: Path, name: str) -> Task:
    """A set of the reference, read as `tune-mert` reads it; prints what that costs."""
    folder, kbest, sentences = SETS[name]
    path, notices = data / folder, Notices()
    stem = kbest.split(".")[0]
    began = time.process_time()
    lists = Lists(path / kbest, docs=path / f"{stem}.docids")
    documents, lines = read_with_documents(lists.docs, None, [path / f"{stem}.en"], notices)
    start = path / "moses.rescore.ini"
    given = read_weights(start, notices)
    with open_run(lists, notices, documents=documents) as opened:
        features = TunedFeatures((), given, str(start))
        corpus = read_set(opened, documents.split(lines), [Bleu()], features, lambda line: None)
    space = corpus.documents[0].space
    weights = vector(given, space.labels)
    pool = corpus.pool(corpus.first, np.arange(space.width), weights)
    seconds = time.process_time() - began
    n = len(pool.features)
    print(f"{stem}: {n:,} hypotheses read and counted in {seconds:.1f} s of CPU")
    if sentences:
        pool = head(pool, sentences)
    moses = json.loads((data / "moses-mert-reference.json").read_text())
    runs = [run for run in moses["runs"] if run["set"] == name]
    best = max(runs, key=lambda run: float(run["bleu"]))
    extractor = moses["extractor"][name]["user_s"]
    return Task(pool, weights, 100 * best["bleu"], best["user_s"], extractor)


def head(pool: Pool, sentences: int, k: int | None = None, features: int | None = None) -> Pool:
    """The first sentences, candidates of each, and features of a pool."""
    starts, ends = pool.offsets[:sentences], pool.offsets[1 : sentences + 1]
    ends = ends if k is None else np.minimum(ends, starts + k)
    rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
    return Pool(
        np.concatenate([[0], np.cumsum(ends - starts)]),
        np.ascontiguousarray(pool.features[rows, :features]),
        pool.statistics[rows],
        pool.fixed[rows],
    )


def obvious(pool: Pool, weights: NDArray[np.float64], feature: int) -> float:
    """BLEU of the best interval along a feature: the textbook's line search."""
    scores, slopes = pool.scores(weights), pool.features[:, feature]
    total, events = np.zeros(9, dtype=np.int64), []
    for a, b in zip(pool.offsets, pool.offsets[1:], strict=False):
        y, x = scores[a:b], slopes[a:b]
        if a == b:
            continue
        now, step = min(range(b - a), key=lambda k: (x[k], -y[k])), -np.inf
        total += pool.statistics[a + now]
        while True:
            steeper = x > x[now]
            if not steeper.any():
                break
            meetings = np.full(b - a, np.inf)
            meetings[steeper] = (y[now] - y[steeper]) / (x[steeper] - x[now])
            step = meetings.min()
            tied = np.flatnonzero(meetings == step)
            after = int(tied[x[tied].argmax()])
            events.append((step, pool.statistics[a + after] - pool.statistics[a + now]))
            now = after
    events.sort(key=lambda event: event[0])
    best = float(corpus_bleu(total))
    for i, (step, change) in enumerate(events):
        total = total + change
        if i + 1 == len(events) or events[i + 1][0] > step:
            best = max(best, float(corpus_bleu(total)))
    return best


def timed(work: Callable[[], Any], repeat: int = 5) -> tuple[float, Any]:
    """Least CPU seconds of several runs, and the last answer."""
    seconds = []
    for _ in range(repeat):
        began = time.process_time()
        answer = work()
        seconds.append(time.process_time() - began)
    return min(seconds), answer


def line_search(pool: Pool, weights: NDArray[np.float64]) -> tuple[float, list[float]]:
    """CPU seconds of a search, mean over the features; best BLEU along each."""
    axes = Axes.of(pool)
    point = PoolPoint(axes, weights, BLEU_GOAL)
    seconds, steps = timed(lambda: [point.search(axis) for axis in range(len(axes.features))])
    return seconds / len(steps), [step.value for step in steps]


def searches(name: str, task: Task) -> None:
    """A line of the table of single searches and starts, against the obvious one."""
    ours, values = line_search(task.pool, task.start)
    part = task.pool if len(task.pool.offsets) < 2000 else head(task.pool, 1000)
    scale = len(task.pool.features) / len(part.features)
    theirs, best = timed(lambda: obvious(part, task.start, 7), 1)
    if scale == 1 and abs(best - values[7]) > 1e-9:
        raise SystemExit(f"the obvious search finds {best}, ours {values[7]}")
    axes = Axes.of(task.pool)
    start, result = timed(lambda: coordinates(PoolPoint(axes, task.start, BLEU_GOAL)), 3)
    shape = f"{len(task.pool.features):,} × {task.pool.features.shape[1]}"
    print(
        f"| {name} | {shape} | {1e3 * ours:.2f} | {1e3 * theirs * scale:.0f} | "
        f"{theirs * scale / ours:.0f} | {start:.2f} | {result.searches} |"
    )


def to_reference(task: Task, seed: int, threads: int) -> tuple[float | None, float, float]:
    """CPU seconds until the reference's BLEU was found, of the whole search, and BLEU found."""
    began, reached = time.process_time(), []

    def report(optimum: Optimum) -> None:
        if optimum.bleu >= task.reference:
            reached.append(time.process_time() - began)

    settings = MertSettings(seed=seed, threads=threads)
    result = optimise(task.pool, task.start, settings=settings, report=report)
    best = max(optimum.bleu for optimum in result.optima)
    return min(reached, default=None), time.process_time() - began, best


def written(data: Path, name: str, folder: Path, sentences: int | None) -> list[str | Path]:
    """Arguments of the command for the first sentences of a set, whose files are in `folder`."""
    where, kbest, _ = SETS[name]
    stem = kbest.split(".")[0]
    source = [data / where / f"{stem}.{ending}" for ending in ("docids", "en")]
    lists = data / where / kbest
    if sentences is not None:
        for path in source:
            lines = path.read_bytes().splitlines(keepends=True)[:sentences]
            (folder / path.name).write_bytes(b"".join(lines))
        source = [folder / path.name for path in source]
        with gzip.open(folder / f"{stem}.nbest.gz", "wb") as file:
            for line in read_lines(lists, Notices()):
                if int(line.split(b" ", 1)[0]) >= sentences:
                    break
                file.write(line + b"\n")
        lists = folder / f"{stem}.nbest.gz"
    start = data / where / "moses.rescore.ini"
    return ["--kbest", lists, "--docs", source[0], "--ref", source[1], "--start", start]


def whole_command(arguments: Sequence[str | Path], folder: Path, seed: int) -> float:
    """CPU seconds of a process `rerank tune-mert` for BLEU alone; its weights go to `folder`."""
    out = folder / "weights.json"
    command = [sys.executable, "-m", "rerank", "tune-mert", "-q", "--out", out]
    plan = ["--select", "none", "--shrink", "0", "--seed", str(seed)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, *plan, *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processes(data: Path, tasks: dict[str, Task], seeds: int) -> None:
    """The table of whole commands beside the search alone, against Moses' mert and extractor."""
    columns = "set|Moses' mert, CPU s|its extractor|whole command, CPU s, each seed|search alone"
    columns += "|five sentences|mert ÷ command|extractor and mert ÷ command|mert ÷ search"
    heading(columns)
    for name, task in tasks.items():
        with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as all_of_them:
            small = written(data, name, Path(few), 5)
            empty = [whole_command(small, Path(few), 1) for _ in range(3)]
            arguments = written(data, name, Path(all_of_them), SETS[name][2])
            command = [whole_command(arguments, Path(few), seed + 1) for seed in range(seeds)]
        search = [to_reference(task, seed + 1, 1)[1] for seed in range(seeds)]
        shown = (" ".join(f"{s:.1f}" for s in one) for one in (command, search))
        both = task.seconds + task.extractor
        print(
            f"| {name} | {task.seconds:.1f} | {task.extractor:.1f} | {' | '.join(shown)} | "
            f"{min(empty):.2f} | {task.seconds / max(command):.0f} | {both / max(command):.0f} | "
            f"{task.seconds / max(search):.0f} |",
            flush=True,
        )


def race(tasks: dict[str, Task], threads: Sequence[int], seeds: int) -> None:
    """The table of the race with the reference."""
    columns = "set|threads|Moses' best BLEU|its CPU, s|ours: CPU s to reach it, each seed"
    heading(f"{columns}|times less|whole search, CPU s|BLEU")
    for name, task in tasks.items():
        for n_threads in threads:
            runs = [to_reference(task, seed, n_threads) for seed in range(1, seeds + 1)]
            reached = [seconds for seconds, _, _ in runs]
            missed = any(seconds is None for seconds in reached)
            worst = "not reached by all" if missed else f"{task.seconds / max(reached):.0f}"  # type: ignore[type-var]
            shown = " ".join("–" if s is None else f"{s:.2f}" for s in reached)
            whole = [seconds for _, seconds, _ in runs]
            best = [bleu for _, _, bleu in runs]
            print(
                f"| {name} | {n_threads} | {task.reference:.3f} | {task.seconds:.1f} | {shown} | "
                f"{worst} (worst seed) | {min(whole):.1f}–{max(whole):.1f} | "
                f"{min(best):.2f}–{max(best):.2f} |",
                flush=True,
            )


def growth(task: Task) -> None:
    """Milliseconds of a search at two sizes of each dimension."""
    n = len(task.pool.offsets) - 1
    heading("grown|ms a line search|ratio")
    for what, small, large in (
        (f"sentences {n // 2} → {n}", head(task.pool, n // 2), task.pool),
        ("candidates 50 → 100", head(task.pool, n, 50), head(task.pool, n, 100)),
        ("features 7 → 14", head(task.pool, n, features=7), task.pool),
    ):
        seconds = [line_search(p, task.start[: p.features.shape[1]])[0] for p in (small, large)]
        a, b = seconds
        print(f"| {what} | {1e3 * a:.2f} → {1e3 * b:.2f} | {b / a:.2f} |", flush=True)


def heading(columns: str) -> None:
    """The head of a Markdown table, after an empty line."""
    names = columns.split("|")
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", nargs="*", default=list(SETS), choices=list(SETS), dest="sets")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    tasks = {name: read(options.data, name) for name in options.sets}
    for task in tasks.values():  # compile
        quick = replace(task, pool=head(task.pool, 50))
        to_reference(quick, 1, 1)
    heading("set|hypotheses × features|line search, ms|obvious, ms|ratio|a start, s|searches")
    for name, task in tasks.items():
        searches(name, task)
    processes(options.data, tasks, options.seeds)
    race(tasks, options.threads, options.seeds)
    growth(next(iter(tasks.values())))


if __name__ == "__main__":
    main()
