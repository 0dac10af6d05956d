"""A run whose scores are computed by several processes, and which one process finishes.

The score cache is what the processes have in common: each puts the scores of its shard of the
documents into it, and writes nothing else. The run that finishes finds them there, and does what
a run of one process does. Who starts the processes decides how they wait for each other: the user,
by `--shard`; `torchrun`, whose first process finishes; or Ray (`rerank.pipeline.ray_cluster`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias, TypeVar

from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists
from rerank.pipeline.shards import Shard
from rerank.pipeline.sources import Printer
from rerank.torchrun import number_of_processes, others_alive, process_number, sharing_documents

T = TypeVar("T")
Run: TypeAlias = Callable[[Lists, Notices, Printer, Printer], T]
"""A run on lists, with notices and printers of lines and details; with a shard, only scores."""


def distributed(
    run: Run[T], lists: Lists, notices: Notices, announce: Printer, details: Printer
) -> T | None:
    """The result of a run that several processes share, where they do.

    None in processes of `torchrun` other than the first, which finishes from the cache. UsageError
    for processes that cannot share the run, RerankError if one of them ends too early.
    """
    scoring, several = lists.scoring, number_of_processes()
    if several == 1 and scoring.shard is None and scoring.ray is None:
        return run(lists, notices, announce, details)
    _check(lists, several)
    if scoring.ray is not None:
        from rerank.pipeline.ray_cluster import run_shards

        lists = replace(lists, scoring=replace(scoring, ray=None))
        run_shards(run, lists, scoring.ray, announce, details)
    elif scoring.shard is None:
        with sharing_documents(lists.files) as group:
            run(of_shard(lists, Shard(group.rank + 1, several)), Notices(), details, details)
            details(f"waiting for {several - 1} other processes")
            with others_alive():
                group.wait()
        if process_number() > 0:
            return None
        announce(f"scores of {several} processes are in the cache")
    return run(lists, notices, announce, details)


def of_shard(lists: Lists, shard: Shard) -> Lists:
    """The lists, of which only the documents of a shard are scored."""
    return replace(lists, scoring=replace(lists.scoring, shard=shard))


@contextmanager
def scoring_shard(source: KBestSource, announce: Printer) -> Iterator[None]:
    """Scoring of a source's shard: announced, and an error if its scores are not in the cache."""
    shard, own = source.lists.scoring.shard, source.sharded
    if shard is None or own is None:
        raise ValueError("expected a source with a shard")
    if not any(scorer.kept for scorer in source.scorers):
        raise UsageError(
            "there is nothing to share: the score cache has scores of language models and of "
            "scorers with a digest, and this run has none; run it in one process"
        )
    costs = source.costs
    share = sum(costs[d] for d in own) / max(1, sum(costs))
    announce(f"shard {shard}: {len(own):,} of {len(costs):,} documents, {share:.1%} of the work")
    for scorer in source.scorers:
        if not scorer.kept and scorer.runs_on != "file":
            announce(f"{scorer.name}: not in the score cache; computed again by the run at the end")
    yield
    if source.cache is not None and not source.cache.writable:
        faults = "; ".join(notice.kind for notice in source.notices if "cache" in notice.kind)
        raise RerankError(f"shard {shard}: {faults}; its scores are lost")
    announce(f"shard {shard}: the scores are in the cache")


def _check(lists: Lists, several: int) -> None:
    """UsageError for options that contradict each other, and without a cache."""
    scoring = lists.scoring
    asked = {
        f"--shard {scoring.shard}": scoring.shard is not None,
        f"--ray {scoring.ray}": scoring.ray is not None,
        "torchrun": several > 1,
    }
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both share out the documents; take one")
    if scoring.no_cache:
        raise UsageError(
            f"{given[0]}: the processes hand on their scores by the score cache; leave out "
            "--no-cache, or name a folder that all of them see with --cache DIR"
        )
    if "-" in map(str, lists.files):
        raise UsageError(
            f"{given[0]}: several processes cannot share standard input; name files instead of -"
        )
