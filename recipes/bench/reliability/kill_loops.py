"""Commands that are killed at random times, and started again until they are done.

python recipes/bench/reliability/kill_loops.py [--rounds 20] [--control-rounds 4] [--only COMMAND …]

Each round begins without any state, with old files at the names of the outputs. The supervisor
starts the command in a session of its own, sends SIGKILL after a uniformly random time, looks at
every file that has a final name, and starts the same command again, until it ends by itself. Then
its files must have the bytes of a run that nothing disturbed. `in_place.py`, which writes files in
place, must fail.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from tabulate import tabulate

from rerank.files.cache import unpacked

HERE = Path(__file__).parent
OLD = b"of an earlier run\n"
_TEMPORARY = re.compile(r"\..*\.tmp")
_KEPT = re.compile(r"(\d+) documents from the cache|run that was stopped: (\d+) searches")


class Process(Protocol):
    """A command that runs."""

    def kill(self) -> None:
        """Send SIGKILL to it and to its children; nothing if it has ended."""
        ...

    def wait(self) -> tuple[int, str]:
        """Its exit code, below 0 for a signal, and its standard error."""
        ...


Start = Callable[[Sequence[str], Path], Process]
"""Starts `rerank` with arguments in a folder, whose subfolder `cache` is the score cache."""


@dataclass(frozen=True)
class Job:
    """A command, and the files that it makes.

    outputs: of them those that are replaced at the end; folder: of a model, if it makes one;
    writers: temporary files that it may have open at a time
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    folder: str = ""
    writers: int = 1

    def files(self, work: Path) -> dict[str, bytes]:
        """Content of the final files that are there; those of a model by their names."""
        paths = [work / name for name in self.outputs]
        paths += sorted((work / self.folder).glob("[!.]*")) if self.folder else []
        return {path.name: path.read_bytes() for path in paths if path.is_file()}


@dataclass
class Outcome:
    """What happened in some rounds.

    torn: files with a final name that were not whole, seen after a kill or at the end; equal:
    rounds whose files were those of the undisturbed run; temporary: most temporary files that one
    kill left; forgotten: finished units of work on disk that the last start of a round did not use;
    refused: standard error of starts that ended with an error, as on a torn state, and their round
    """

    rounds: int = 0
    kills: int = 0
    torn: int = 0
    equal: int = 0
    temporary: int = 0
    forgotten: int = 0
    seconds: float = 0.0
    refused: list[str] = field(default_factory=list)


def kill_loop(job: Job, start: Start, work: Path, rounds: int, rng: np.random.Generator) -> Outcome:
    """So many rounds of a job in an empty folder `work`."""
    expected, longest = _undisturbed(job, start, work)
    outcome = Outcome(seconds=longest)
    for _ in range(rounds):
        _begin(job, work)
        outcome.rounds += 1
        while True:
            before, units = len(_temporary(work)), len(_shards(work))
            process = start(job.arguments, work)
            time.sleep(rng.uniform(0.02, 1.0) * longest)
            process.kill()
            code, told = process.wait()
            outcome.torn += len(torn_files(job, work, expected))
            if code != -signal.SIGKILL:
                break
            outcome.kills += 1
            outcome.temporary = max(outcome.temporary, len(_temporary(work)) - before)
        if code != 0:
            outcome.refused.append(told)
            continue
        outcome.equal += job.files(work) == expected
        used = sum(int(number) for found in _KEPT.findall(told) for number in found if number)
        outcome.forgotten += max(0, units - used)
    return outcome


def _undisturbed(job: Job, start: Start, work: Path) -> tuple[dict[str, bytes], float]:
    """The files and the seconds of a run that nothing disturbs; the first one may compile."""
    for _ in range(2):
        _begin(job, work)
        began = time.monotonic()
        code, told = start(job.arguments, work).wait()
        if code != 0:
            raise RuntimeError(f"{job.name} ended with {code}: {told}")
    return job.files(work), time.monotonic() - began


def _begin(job: Job, work: Path) -> None:
    """An empty folder but for old outputs."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in job.outputs:
        (work / name).write_bytes(OLD)


# Files on disk


def torn_files(job: Job, work: Path, expected: dict[str, bytes]) -> list[str]:
    """Final names at which there is neither an old file nor a whole new one."""
    torn = [
        name
        for name in job.outputs
        if not (path := work / name).exists() or path.read_bytes() not in (OLD, expected[name])
    ]
    for path in _shards(work):
        if unpacked(path.parent.name, path.stem, path.read_bytes()) is None:
            torn.append(path.name)
    if job.folder:
        folder = work / job.folder
        torn += [*_torn_parts(folder), *_torn_parts(folder / "resume")]
    return torn


def _shards(work: Path) -> list[Path]:
    return sorted(work.glob("cache/*/*.scores"))


def _temporary(work: Path) -> list[Path]:
    return [path for path in work.rglob(".*.tmp") if _TEMPORARY.fullmatch(path.name)]


def _torn_parts(folder: Path) -> Iterator[str]:
    """Files of a model or a training state that are not what their names or manifests say."""
    for path in [*folder.glob("*.safetensors"), *folder.glob("vocabulary-*.json")]:
        if not _digest(path).startswith(path.stem.rpartition("-")[2]):
            yield path.name
    for path in [folder / "config.json", folder / "state.json"]:
        if path.exists():
            try:
                shards = json.loads(path.read_bytes())["shards"]
                whole = all(_digest(folder / shard["file"]) == shard["sha256"] for shard in shards)
            except (ValueError, KeyError, FileNotFoundError):
                whole = False
            if not whole:
                yield path.name


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# The long form: processes of their own, on the embedded example


class Session:
    """A program in a session of its own."""

    def __init__(self, program: Sequence[str], arguments: Sequence[str], work: Path) -> None:
        environment = {"OMP_NUM_THREADS": "1", "RERANK_CACHE": str(work / "cache")}
        self.file = open(work.with_suffix(".stderr"), "w+b")  # noqa: SIM115  closed by `wait`
        self.process = subprocess.Popen(
            [*program, *arguments],
            cwd=work,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=self.file,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Send SIGKILL to the session."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> tuple[int, str]:
        """Exit code and standard error."""
        code = self.process.wait()
        with self.file as file:
            file.seek(0)
            return code, file.read().decode()


def jobs(demo: Path) -> list[Job]:
    """The commands, on the files of `rerank demo --out DIR`."""
    data = demo / "data"

    def lists(name: str) -> list[str]:
        files = ["--kbest", str(data / f"{name}.nbest.gz"), "--docs", f"{data}/{name}.docids.gz"]
        return [*files, "--lm", f"codclm={demo}/codclm", "--deterministic", "--threads", "1"]

    decode = ("--weights", str(demo / "weights.codclm.json"), "--out", "out.txt")
    tune = ("--ref", str(data / "tune.ref.gz"), "--start", str(data / "weights.ini"))
    text = ("--train", str(data / "lm.train.txt.gz"), "--valid", str(data / "lm.valid.txt.gz"))
    small = ("--embed", "16", "--hidden", "16", "--epochs", "2", "--validations", "6")
    return [
        Job(
            "decode",
            ("decode", *lists("test"), *decode, "--summary", "out.json", "--kbest-out", "out.gz"),
            ("out.txt", "out.json", "out.gz"),
            writers=4,
        ),
        Job(
            "tune-mert",
            ("tune-mert", *lists("tune"), *tune, "--out", "weights.json"),
            ("weights.json",),
        ),
        Job(
            "train-lm",
            ("train-lm", "--model", "codclm", *text, *small, "--out", "model", "--resume"),
            folder="model",
        ),
    ]


def main() -> None:
    """Print what happened to each command, and to the control."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--control-rounds", type=int, default=4)
    parser.add_argument("--only", nargs="+", default=["decode", "tune-mert", "train-lm"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("build/reliability"))
    options = parser.parse_args()
    demo, rerank = options.work.resolve() / "demo", [sys.executable, "-m", "rerank"]
    if not demo.exists():
        subprocess.run([*rerank, "demo", "--out", str(demo)], check=True, capture_output=True)
    control = [sys.executable, str(HERE / "in_place.py")]
    rows = []
    for name, program, rounds in (
        ("", rerank, options.rounds),
        (" (in place)", control, options.control_rounds),
    ):
        for job in (one for one in jobs(demo) if one.name in options.only):
            rng = np.random.default_rng(options.seed)
            work = options.work.resolve() / job.name
            result = kill_loop(job, partial(Session, program), work, rounds, rng)
            rows.append(
                {
                    "command": job.name + name,
                    "seconds": f"{result.seconds:.1f}",
                    "rounds": result.rounds,
                    "kills": result.kills,
                    "torn files": result.torn,
                    "rounds with equal bytes": result.equal,
                    "temporary files of a kill": f"{result.temporary} of {job.writers}",
                    "finished work forgotten": result.forgotten,
                    "starts refused": len(result.refused),
                }
            )
            sys.stderr.write(f"{rows[-1]}\n")
    print(tabulate(rows, headers="keys"))


if __name__ == "__main__":
    main()
