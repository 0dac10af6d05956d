"""What sources with a model on an engine share, with an engine that computes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.lists import kbest

from lm.backend import Backend
from lm.engine import EngineCounts
from rerank.cache import Cache
from rerank.corpus.kbest import KBest
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.cached_scores import ListTexts, ScorerCache
from rerank.scorers.model_source import ModelSource

LISTS = kbest([["the lamp", "a lamp"], ["it burns"]])


@dataclass
class Engine:
    backend: Backend = field(default_factory=lambda: Backend(dtype="bfloat16"))
    counts: EngineCounts = field(default_factory=EngineCounts)


class Source(ModelSource[Engine]):
    """Of order 1, with the cost of two candidates after two; its scores are never computed."""

    def __init__(self, cache: Cache | None = None, cost: float = 2.0) -> None:
        super().__init__("own", Engine(), cache, {"float32": 0.1, "bfloat16": 2.0})
        self.order, self.cost = 1, cost

    def passes(self, k: float) -> float:
        return self.cost * k / 2

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[ScoredDocument]:
        raise NotImplementedError

    def null_scores(self, documents: Sequence[tuple[str, KBest]]) -> list[NDArray[np.float32]]:
        raise NotImplementedError

    def forgetful(self) -> Source:
        raise NotImplementedError

    def _scorer_cache(self, *, null: bool = False) -> ScorerCache:
        identity = repr((self.name, self.order, null))
        return ScorerCache(self._cache, hashlib.sha256(identity.encode()).hexdigest())


def test_counters_and_error_are_those_of_the_engine() -> None:
    source = Source()
    source._engine.counts.seconds = 1.5
    assert source.work is source._engine.counts
    assert source.seconds == 1.5
    assert (source.error, source.runs_on, source.remembered) == (2.0, "cpu", 0)


@pytest.mark.parametrize(("cost", "order"), [(2.0, None), (1.0, 1)])
def test_pairs_are_scored_lazily_if_each_takes_a_pass(cost: float, order: int | None) -> None:
    source = Source(cost=cost)
    source.lazily()
    assert source.order == order


def test_scores_with_and_without_context_and_those_of_lazy_searches_have_caches_of_their_own(
    tmp_path: Path,
) -> None:
    cache = Cache(tmp_path / "cache", Notices(), 1 << 30)
    zeros = {"scores": np.zeros(3, np.float32)}
    assert not Source(cache).remembers(LISTS)
    Source(cache)._memory.keep(ListTexts.of(LISTS), zeros)
    assert Source(cache).remembers(LISTS)
    assert not Source(cache).remembers_null(LISTS)
    Source(cache)._null_memory.keep(ListTexts.of(LISTS), zeros)
    assert Source(cache).remembers_null(LISTS)
    lazy = Source(cache)
    lazy.lazily()
    assert not lazy.remembers(LISTS)
    assert not Source().remembers(LISTS)


def test_a_run_that_was_short_of_memory_says_so_once() -> None:
    source, notices = Source(), Notices()
    source.finish("dev.kbest", notices)
    assert notices.lines() == []
    source._engine.backend.shortages = 3
    source.finish("dev.kbest", notices)
    source.finish("dev.kbest", notices)
    (told,) = notices.lines()
    assert "ran out of memory and went on with smaller batches: own" in told
