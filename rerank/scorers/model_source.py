"""What the sources of features that run a language model share: counters, and cached scores."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rerank.corpus.kbest import KBest
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.scorers import ContextualSource
from rerank.scorers.cached_scores import ListTexts, ScorerCache

if TYPE_CHECKING:
    from lm.backend import Backend
    from lm.scoring import EngineCounts


class Engine(Protocol):
    """What scores texts on a backend, and counts what it computes."""

    @property
    def backend(self) -> Backend:
        """Device and arithmetic."""

    @property
    def counts(self) -> EngineCounts:
        """Counters of what was computed so far."""


E = TypeVar("E", bound=Engine)
_SHORTAGE = "language model that ran out of memory and went on with smaller batches"


class ModelSource(ContextualSource, Generic[E]):
    """A language model on an engine, whose scores may be kept in a cache.

    errors: largest error of a sentence's score in nats, by the backend's dtype; remembered:
    documents whose scores came from the cache.
    """

    def __init__(self, name: str, engine: E, cache: Cache | None, errors: dict[str, float]) -> None:
        super().__init__(name)
        self._engine, self._cache = engine, cache
        self._lazy = False
        self.remembered = 0
        self.error = errors[engine.backend.dtype]
        self.runs_on = engine.backend.device.type

    @abstractmethod
    def _scorer_cache(self, *, null: bool = False) -> ScorerCache:
        """The cache under a digest of everything that determines the scores of a text.

        null: of the scores without context.
        """

    @cached_property
    def _memory(self) -> ScorerCache:
        return self._scorer_cache()

    @cached_property
    def _null_memory(self) -> ScorerCache:
        return self._scorer_cache(null=True)

    @property
    def work(self) -> EngineCounts:
        """Counters of what was computed so far."""
        return self._engine.counts

    @property
    def seconds(self) -> float:
        """Time that the model has computed so far."""
        return self.work.seconds

    def finish(self, source: str, notices: Notices) -> None:
        """A warning if memory ran out: batches are smaller since then, and scoring is slower."""
        if self._engine.backend.shortages:
            notices.add(_SHORTAGE, source=source, names=[self.name])
        self._engine.backend.shortages = 0

    def lazily(self) -> None:
        """Score only after the histories that a search reaches, if each pair would take a pass."""
        if self.order == 1 and self.passes(2) > 1:
            self._lazy, self.order = True, None
            self._memory = self._scorer_cache()

    def _texts(self, kbest: KBest) -> ListTexts:
        """Hypotheses as scores depend on them."""
        return ListTexts.of(kbest)

    def remembers(self, kbest: KBest) -> bool:
        """Whether some scores of these lists are in the cache."""
        return self._memory.peek(self._texts(kbest)) is not None

    def remembers_null(self, kbest: KBest) -> bool:
        """Whether the null scores of these lists are in the cache."""
        return self._null_memory.peek(self._texts(kbest)) is not None
