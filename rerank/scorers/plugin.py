"""Anybody's scorer as a source of features: what a run needs beyond the scoring function.

The author's object has `order` and `score(document)` (`rerank.scorers.Scorer`), or is a function
of order 0. Optional attributes: `error`, the largest error of a sentence's score, and `digest`, a
string that changes whenever the scores of the same texts change. With a digest, scores given as
arrays are cached on disk by the texts; they must then depend on nothing but the texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from decoders.problem import DocumentProblem
from decoders.problem import checked as checked_scores
from rerank.cache import Cache
from rerank.corpus.document import Document
from rerank.corpus.kbest import KBest
from rerank.errors import RerankError, UsageError
from rerank.scorers import FeatureSource, PlainScorer, Scorer, Scores, ZeroScores
from rerank.scorers.cached_scores import ListTexts, ScorerCache, flat
from rerank.scorers.checked_problem import Calls, CheckedProblem, Clock


class PluginScorer(FeatureSource):
    """The feature `name` computed by a `Scorer` or a function.

    identity: where the scorer comes from, part of its digest; cache: for scorers with a digest.
    """

    def __init__(
        self,
        name: str,
        scorer: Scorer | PlainScorer,
        *,
        identity: Sequence[str] = (),
        cache: Cache | None = None,
    ) -> None:
        super().__init__(name)
        self._function: Any = getattr(scorer, "score", scorer)
        if not callable(self._function):
            raise UsageError(
                f"scorer {name!r}: expected a function, or an object with order and "
                f"score(document), found {scorer!r:.60}"
            )
        order = getattr(scorer, "order", 0)
        if order is not None and not (isinstance(order, int) and order >= 0):
            raise UsageError(
                f"scorer {name!r}: expected order to be 0, 1, 2, … or None (unbounded), "
                f"found {order!r:.60}"
            )
        self.order, self.error = order, float(getattr(scorer, "error", 0.0))
        own = getattr(scorer, "digest", None)
        self._digest = hashlib.sha256(repr(("scorer", *identity, own)).encode()).hexdigest()
        self._cache = ScorerCache(None if own is None else cache, self._digest[:32], whole=True)
        self._clock, self.scored, self.cached = Clock(), 0, 0

    @property
    def digest(self) -> str:
        """Digest of where the scorer comes from and of the digest that it states."""
        return self._digest

    @property
    def seconds(self) -> float:
        """Time spent in the scorer."""
        return self._clock.seconds

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Checked scores of a document; RerankError naming scorer, document and sentence."""
        texts = ListTexts.of(kbest)
        found = self._cache.recall(texts)
        if found is not None:
            self.cached += 1
            return found.problem(self.order or 0)
        self.scored += 1
        calls = Calls(self.name, name, np.flatnonzero(kbest.counts).tolist(), self._clock)
        with calls.watched():
            scores = self._function(Document.of(name, kbest))
        if DocumentProblem in type(scores).__mro__:
            return CheckedProblem(scores, calls, texts.counts.tolist(), self.order)
        arrays = self._arrays(scores, kbest, calls)
        self._cache.keep(texts, {"scores": flat(arrays)})
        return Pairwise(arrays) if self.order else Unary(arrays)

    def _arrays(self, scores: Scores, kbest: KBest, calls: Calls) -> list[NDArray[np.float64]]:
        """Scores given as a list of arrays, of the sentences that have candidates."""
        wanted = "a list of arrays" if self.order in (0, 1) else "a DocumentProblem"
        if wanted != "a list of arrays" or not isinstance(scores, Sequence | np.ndarray):
            raise calls.error(
                f"expected {wanted} from a scorer of order {self.order}, "
                f"found {type(scores).__name__}"
            )
        if len(scores) != len(kbest):
            raise calls.error(
                f"expected scores of {len(kbest)} sentences, those without candidates included, "
                f"found {len(scores)}"
            )
        arrays: list[NDArray[np.float64]] = []
        before = 1
        for t, k in enumerate(kbest.counts.tolist()):
            if not k:
                continue
            shape = (before, k) if self.order else (k,)
            with calls.watched(len(arrays)):
                array = np.asarray(scores[t], dtype=np.float64)
                arrays.append(checked_scores(array, len(arrays), shape=shape))
            before = k
        return arrays

    def remembers(self, kbest: KBest) -> bool:
        """Whether the scores of these lists are in the cache."""
        return self._cache.peek(ListTexts.of(kbest)) is not None

    def forgetful(self) -> FeatureSource:
        """A copy for measuring time, which neither uses the cache nor counts."""
        return _Trial(self)

    def report(self) -> str:
        """`short: 3 documents from the cache, 9 documents scored in 0.1 s`."""
        parts = [f"{self.cached:,} documents from the cache"] if self.cached else []
        if self.scored or not parts:
            parts.append(f"{self.scored:,} documents scored in {self.seconds:.1f} s")
        return f"{self.name}: {', '.join(parts)}"


class _Trial(FeatureSource):
    """A scorer that is tried on the beginning of a document; if it fails, its scores are zeros.

    A scorer may refuse an incomplete document, for instance if it looks scores up by the id.
    """

    def __init__(self, source: PluginScorer) -> None:
        super().__init__(source.name)
        self.order, self._source = source.order, copy(source)
        self._source._cache, self._source._clock = ScorerCache(None, ""), Clock()

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """The scorer's problem, or zeros."""
        try:
            return self._source.problem(name, kbest)
        except RerankError:
            return ZeroScores(self.name, (), self.order).problem(name, kbest)
