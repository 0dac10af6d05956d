"""A run whose scores are computed by several processes, and which one process finishes.

Each process puts the scores of its shard of the documents into the score cache, and writes nothing
else; the run that finishes finds them there. The processes are started by the user (`--shard`), by
`torchrun`, whose first process finishes, or by Ray, on machines that share a file system. A task of
Ray whose worker is killed is run again, and finds in the cache what was finished.

Shards are dealt by cost, in the same way by every process. The cache finds scores by content:
shards of other lists, models or options cannot be mixed.
"""

from __future__ import annotations

import heapq
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rerank.corpus.kbest import KBest
from rerank.errors import RerankError, StoppedEarly, UsageError
from rerank.files.cache import cache_folder
from rerank.files.outputs import atomic_all
from rerank.files.paths import FilePath
from rerank.files.terminal import Terminated, local_number, number_of_processes, process_number
from rerank.notices import Notices, Printer
from rerank.runs.options import Messages, RunOptions
from rerank.runs.run import Run, Shard
from rerank.runs.search import Search, row_of

if TYPE_CHECKING:
    import torch

    from lm.training.processes import Processes

LONGEST_SHARD = timedelta(days=30)  # torch ends a process that has waited for longer
LOCAL = "local"
SHARDS_PER_WORKER = 4  # the last workers wait for a quarter of a share, not for a whole one
RETRIES = 3  # of a task whose worker was killed
Done = tuple[list[str], int, str]  # lines about a shard; exit code and message of an error


def deal(costs: Sequence[int], n: int) -> list[list[int]]:
    """Documents (numbers from 0) of n shards, longest first, each to the shard of least cost.

    Graham (1969), https://doi.org/10.1137/0117039: the largest sum is at most 4/3 − 1/(3n) of the
    least possible one. Ties go to the lower document and the lower shard. O(D log(D n)).
    """
    shards: list[list[int]] = [[] for _ in range(n)]
    loads = [(0, shard) for shard in range(n)]
    for document in sorted(range(len(costs)), key=lambda d: (-costs[d], d)):
        load, shard = loads[0]
        shards[shard].append(document)
        heapq.heapreplace(loads, (load + costs[document], shard))
    return shards


def cost(kbest: KBest, order: int | None) -> int:
    """Predicted cost of scoring a document: words of its candidates, for each context of theirs.

    At a bounded order above 0, the contexts of a sentence are the candidates of the one before;
    otherwise their number does not depend on the lists.
    """
    words = np.array([len(text.split()) + 1 for text in kbest.texts.to_list()], np.int64)
    if order:
        counts = kbest.counts[kbest.counts > 0]
        contexts = np.array([1, *counts], np.int64)[: len(counts)]
        words *= np.repeat(contexts, counts)
    return int(words.sum())


def shard_of(run: Run[Any], number: int, total: int) -> Shard:
    """A shard of a run's documents."""
    with run.watch.lap("shard"):
        costs = [cost(kbest, run.scorers_by_kind.order) for _, kbest in run.read_unreported()]
        documents = deal(costs, total)[number - 1]
    work = sum(costs[d] for d in documents) / max(1, sum(costs))
    return Shard(number, total, frozenset(documents), work)


@contextmanager
def _scoring(run: Run[Any], shard: Shard, announce: Printer) -> Iterator[None]:
    """Scoring of a shard: announced, and an error if its scores are not in the cache."""
    if not any(scorer.cacheable for scorer in run.scorers):
        raise UsageError(
            "there is nothing to share: the score cache has scores of language models and of "
            "scorers with a digest, and this run has none; run it in one process"
        )
    announce(
        f"{shard}: {len(shard.documents):,} of {len(run.source):,} documents, {shard.work:.1%} of "
        "the work"
    )
    for scorer in run.scorers:
        if not scorer.cacheable and scorer.runs_on != "file":
            announce(f"{scorer.name}: not in the score cache; computed again by the run at the end")
    yield
    if run.cache is not None and not run.cache.writable:
        faults = "; ".join(n.sentence for n in run.notices if "cache" in n.kind.name)
        raise RerankError(f"{shard}: {faults}; its scores are lost")
    announce(f"{shard}: the scores are in the cache")


@contextmanager
def outputs(
    run: Run[Any], paths: Mapping[str, FilePath], announce: Printer
) -> Iterator[dict[str, BinaryIO]]:
    """Files to write, by name, which appear when the block ends; those of a shard do not."""
    shard = run.shard
    places = [*paths.values()] if shard is None else [os.devnull] * len(paths)
    scored = nullcontext() if shard is None else _scoring(run, shard, announce)
    with scored, atomic_all(places) as files:
        yield dict(zip(paths, files, strict=True))


def announce_work(
    run: Run[Any],
    search: Search | None,
    announce: Printer,
    *,
    passes: int = 0,
    dry_run: bool = False,
) -> None:
    """Announce, from counting alone, how much slow scorers are asked; all in a dry run.

    search: None for a run that only scores the path of first candidates; passes: over the lists
    in other contexts than those of the search.
    """
    if not (dry_run or any(scorer.slow_unit for scorer in run.scorers)):
        return
    (counts, words, sentences), most = run.sizes, math.inf
    candidates = run.n_candidates
    if search is not None and search.method != "auto":
        most = row_of(search.method).histories(search.options)
    scored = []
    for scorer in run.scorers:
        unit, texts = scorer.slow_unit, float(candidates)
        if scorer.order is None:
            unit += " for each history" * bool(unit)
        else:
            texts *= len(scorer.columns) + (passes if scorer.order else 0)
            texts += sum(scorer.n_asked(lists, most + 1) for lists in counts)
        price = scorer.price(texts, run.read_unreported()) if unit else ""
        named = f"{scorer.name} (at most {texts:,.0f} {unit}{price})"
        scored.append(named if unit else scorer.name)
    by = f"; scored by {', '.join(scored)}" if scored else ""
    announce(
        f"{len(counts):,} documents, {sentences:,} sentences, "
        f"{candidates:,} candidates, {words:,} words{by}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardMessages(Messages):
    """Messages about the scoring of a shard; the run that finishes gives the warnings."""

    say: Printer

    def announce(self, lines: str) -> None:
        """Hand lines on."""
        self.say(lines)

    @contextmanager
    def warnings(self) -> Iterator[Notices]:
        """A collector whose warnings are not printed."""
        yield Notices()


def share_scores(work: Callable[[Any], object], options: Any) -> bool:
    """Have several processes put their scores into the cache; whether this one then does the work.

    work: of a command; options: its record, with `run: RunOptions` and `messages: Messages`.
    UsageError for processes that cannot share the run, RerankError if one of them ends too early.
    """
    run, messages, several = options.run, options.messages, number_of_processes()
    alone = several == 1 and run.sharing.shard is None and run.sharing.ray is None
    if alone or isinstance(messages, ShardMessages):
        return True
    _check(run, several)
    if run.sharing.ray is not None:
        run_shards(work, options)
    elif run.sharing.shard is None:
        with sharing_documents(run.files) as group:
            threads = run.machine.threads
            _score_shard(work, options, (group.rank + 1, several), threads, messages.detail)
            messages.detail(f"waiting for {several - 1} other processes")
            with others_alive():
                group.wait()
        if process_number() > 0:
            return False
        messages.announce(f"scores of {several} processes are in the cache")
    return True


def _score_shard(
    work: Callable[[Any], object],
    options: Any,
    shard: tuple[int, int],
    threads: int | None,
    say: Printer,
) -> None:
    """Have the work of a command put the scores of a shard into the cache."""
    run = options.run.with_threads(threads)
    run = replace(run, sharing=replace(run.sharing, shard=shard, ray=None))
    work(replace(options, run=run, messages=ShardMessages(say=say, verbose=True)))


def _check(run: RunOptions, several: int) -> None:
    """UsageError for options that contradict each other, and without a cache."""
    shard, ray = run.sharing.shard, run.sharing.ray
    asked = {
        "" if shard is None else f"--shard {shard[0]}/{shard[1]}": shard is not None,
        f"--ray {ray}": ray is not None,
        "torchrun": several > 1,
    }
    options = [name for name, value in asked.items() if value]
    if len(options) > 1:
        raise UsageError(f"{options[0]} and {options[1]} both share out the documents; take one")
    if run.machine.no_cache:
        raise UsageError(
            f"{options[0]}: the processes hand on their scores by the score cache; leave out "
            "--no-cache, or name a folder that all of them see with --cache DIR"
        )
    if "-" in map(str, run.files):
        raise UsageError(
            f"{options[0]}: several processes cannot share standard input; name files instead of -"
        )


def run_shards(work: Callable[[Any], object], options: Any) -> None:
    """Have a cluster of Ray put the scores of all documents into the cache.

    `--ray` is its address, or `local`, which starts one here for as long as this takes. UsageError
    without Ray, or if a machine does not see the folder of the cache; RerankError if a worker is
    killed again and again; other errors are those of the tasks.
    """
    run, announce = options.run, options.messages.announce
    threads, device = run.machine.threads or 1, run.machine.device
    with _connected(run.sharing.ray) as ray, _probe(run.machine.cache) as probe:
        resources = ray.cluster_resources()
        gpu = resources.get("GPU", 0) >= 1 and device != "cpu"
        if device.startswith("cuda") and not gpu:
            raise UsageError(f"--device {device}: the Ray cluster has no GPU; use --device cpu")
        slots = max(1, int(resources["GPU"] if gpu else resources.get("CPU", 1) // threads))
        total = slots * SHARDS_PER_WORKER
        announce(f"ray: {total} shards for {slots} workers at a time, {threads} threads each")
        task = ray.remote(num_cpus=threads, num_gpus=int(gpu), max_retries=RETRIES)(shard_task)
        shared = ray.put((work, options, threads, probe, os.getcwd()))
        waiting = {task.remote(shared, (n, total)): n for n in range(1, total + 1)}
        try:
            while waiting:
                (first, *_), _ = ray.wait(list(waiting))
                number = waiting.pop(first)
                lines, code, message = ray.get(first)
                for line in lines:
                    options.messages.detail(line)
                if code:
                    error = RerankError(message)
                    error.exit_code = code
                    raise error
                announce(f"ray: shard {number} of {total} is done, {len(waiting)} left")
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as fault:
            raise RerankError(
                f"the workers of a shard ended {RETRIES + 1} times, most likely for lack of memory "
                f"({type(fault).__name__}); finished shards are in the cache; keep fewer "
                "candidates with --top, or give each worker more --threads, so that fewer run"
            ) from None
        except (KeyboardInterrupt, Terminated):
            raise StoppedEarly(
                "stopped, scores of finished shards kept in the cache: the same command goes on "
                "from there"
            ) from None


def shard_task(
    shared: tuple[Callable[[Any], object], Any, int, tuple[Path, str], str], shard: tuple[int, int]
) -> Done:
    """Score a shard in a worker: lines about it, and exit code 0 or the error, not raised.

    Ray would run a task that raises again on another worker, as one whose worker was killed.
    """
    work, options, threads, (probe, token), folder = shared
    lines: list[str] = []
    try:
        try:
            seen = probe.read_text(encoding="ascii") == token
            os.chdir(folder)
        except OSError:
            seen = False
        if not seen:
            raise UsageError(
                f"a worker of Ray does not see {probe.parent}: the machines need a common file "
                "system for inputs, models and score cache; give --cache DIR on one"
            )
        _score_shard(work, options, shard, threads, lines.append)
    except RerankError as fault:
        return lines, fault.exit_code, str(fault)
    return lines, 0, ""


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """The package `ray`, connected to a cluster, or one of this machine, which ends with it."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise UsageError(
            "--ray needs the package ray: install it with pip install 'rerank-mt[ray]'"
        ) from None
    options = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        ray.init(address, include_dashboard=False if address == LOCAL else None, **options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as fault:
        reason = " ".join(str(fault).split())
        raise UsageError(
            f"--ray {address}: no cluster is reached there ({reason:.120}); start one with `ray "
            "start --head`, or give --ray local"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _probe(cache: str | Path | None) -> Iterator[tuple[Path, str]]:
    """A file in the folder of the cache, by which workers find out whether they share it."""
    folder = cache_folder(cache).absolute()
    token = secrets.token_hex(16)
    path = folder / f".shared-{token}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(token, encoding="ascii")
    except OSError as fault:
        raise RerankError(f"{folder}: score cache not written: {fault.strerror}") from None
    try:
        yield path, token
    finally:
        path.unlink(missing_ok=True)


# Processes of torchrun


@contextmanager
def processes(
    device: torch.device, inputs: Sequence[FilePath], patience: timedelta | None = None
) -> Iterator[tuple[torch.device, Processes]]:
    """The device of this process, and the processes among which it is.

    Each of several processes on one machine has a CUDA device of its own, and all of them read the
    inputs: UsageError for standard input. patience: how long each waits for the others.
    """
    import torch

    from lm.training.processes import joined

    if number_of_processes() > 1:
        if "-" in map(str, inputs):
            raise UsageError(
                "several processes cannot share standard input; name files instead of -"
            )
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", local_number())
    with joined(device, patience) as group:
        yield device, group


@contextmanager
def sharing_documents(inputs: Sequence[FilePath]) -> Iterator[Processes]:
    """The processes of `torchrun` that share the documents of a run.

    They send numbers and short messages to each other over the CPU, wherever the models are.
    RerankError if another one ends before its part of the work is done.
    """
    import torch

    with processes(torch.device("cpu"), inputs, LONGEST_SHARD) as (_, group):
        yield group


@contextmanager
def others_alive(
    after: str = "the scores so far are in the cache, and the same command goes on from there",
) -> Iterator[None]:
    """A wait for the other processes: RerankError in place of torch's error if one has ended.

    after: what the error says of the work so far.
    """
    try:
        yield
    except RuntimeError as fault:
        reason = str(fault).split("\n", 1)[0]
        raise RerankError(
            f"another process has ended before its documents were scored; {after} (torch: "
            f"{reason:.120})"
        ) from None
