"""Anybody's scorer as a source of features: what a run needs beyond the scoring function.

The author's object has `order` and `score(document)` (`rerank.scorers.Scorer`), or is a function
of order 0. Optional attributes: `error`, the largest error of a sentence's score;
`side_information`, kinds that it needs of every sentence, such as ("source",) for `--source`, and
finds in `Document.side`; and `digest`, a string that changes whenever the scores of the same texts
change. With a digest, scores given as arrays are cached on disk by the texts and the side
information; they must then depend on nothing else.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.problem import (
    DocumentProblem,
    Floats,
    Indices,
    ScoreError,
    States,
    Successors,
    UnsuitedDecoder,
    checked,
)
from rerank.corpus.kbest import Document, KBest
from rerank.errors import ArgumentError, RerankError, UsageError
from rerank.files.cache import Cache
from rerank.files.encoding import LARGEST
from rerank.registry import SIDE_INFORMATION
from rerank.scorers import PlainScorer, Scorer
from rerank.scorers.cached_scores import ListTexts, ScorerCache, flat
from rerank.scorers.features import FeatureSource


class PluginScorer(FeatureSource):
    """The feature `name` computed by a `Scorer` or a function.

    identity: where the scorer comes from, part of its digest; cache: for scorers with a digest.
    """

    seconds: float = 0.0  # spent in the author's code

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
        order, error = getattr(scorer, "order", 0), getattr(scorer, "error", 0.0)
        needed = getattr(scorer, "side_information", ())
        if order is not None and not (isinstance(order, int) and order >= 0):
            raise UsageError(
                f"scorer {name!r}: expected order to be 0, 1, 2, … or None (unbounded), "
                f"found {order!r:.60}"
            )
        if not isinstance(error, int | float | np.number) or not 0 <= error <= LARGEST:
            raise ArgumentError(
                f"scorer {name!r}: expected error to be a number from 0 on, found {error!r:.60}"
            )
        if not isinstance(needed, tuple | list) or not {*needed} <= SIDE_INFORMATION.keys():
            raise ArgumentError(
                f"scorer {name!r}: expected side_information to be a tuple of kinds, of "
                f"{', '.join(SIDE_INFORMATION)}, as ('source',); found {needed!r:.60}"
            )
        self.order, self.error, self.side_information = order, float(error), tuple(needed)
        stated = getattr(scorer, "digest", None)
        self.digest = hashlib.sha256(repr(("scorer", *identity, stated)).encode()).hexdigest()
        self.cacheable = stated is not None and order in (0, 1)
        store = None if stated is None else cache
        self._cache = ScorerCache(store, self.digest[:32], whole=True, order=order)
        self.scored = self.cached = 0

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Scores of a document, from the cache if they are there."""
        texts = ListTexts.of(kbest, self.side_information)
        if (known := self._cache.look_up(texts)) is not None:
            self.cached += 1
            return known.problem(self.order or 0)
        problem = self.document_problem(Document.of(name, kbest))
        self.scored += 1
        if isinstance(problem, Unary | Pairwise):
            arrays = problem.scores if isinstance(problem, Unary) else problem.matrices
            self._cache.save(texts, {"scores": flat(arrays)})
        return problem

    def document_problem(self, document: Document) -> DocumentProblem:
        """Checked scores of a document; RerankError naming scorer, document and sentence."""
        with self.watched(document):
            scores = self._function(document)
        if isinstance(scores, DocumentProblem):
            return _PluginProblem(scores, self, document)
        if self.order is None or not isinstance(scores, Sequence | np.ndarray):
            expected = "a DocumentProblem" if self.order is None else "a list of arrays"
            expected += f" from a scorer of order {self.order}"
            raise self.fault(f"expected {expected}, found {type(scores).__name__}", document)
        if len(scores) != (n := len(document.sentences)):
            expected = f"scores of {n} sentences, those without candidates included"
            raise self.fault(f"expected {expected}, found {len(scores)}", document)
        arrays: list[NDArray[np.float64]] = []
        shape = (1,) * (self.order + 1)
        for s, t in enumerate(document.present):
            shape = (*shape[1:], len(document.sentences[t]))
            with self.watched(document, s):
                arrays.append(checked(np.asarray(scores[t], dtype=np.float64), s, shape=shape))
        if self.order > 1:  # without the axes of sentences before the first one
            tables = [a.reshape(a.shape[max(0, self.order - s) :]) for s, a in enumerate(arrays)]
            return HistoryTable(tables, self.order)
        return Pairwise(arrays) if self.order else Unary(arrays)

    def fault(
        self, message: str, document: Document, s: int | None = None, candidate: int | None = None
    ) -> RerankError:
        """An error at the s-th sentence that has candidates, or of the whole document."""
        where = f"scorer {self.name!r}, document {document.id!r}"
        if s is not None:
            where += f", sentence {document.present[s]}"
            where += "" if candidate is None else f", candidate {candidate}"
            where += " (counted from 0)"
        return RerankError(f"{where}: {message}")

    @contextmanager
    def watched(self, document: Document, s: int | None = None) -> Iterator[None]:
        """A call of the author's code: its time counted, any exception of it an error of ours."""
        began = time.perf_counter()
        try:
            yield
        except (RerankError, UnsuitedDecoder):
            raise
        except ScoreError as fault:
            invalid = "" if fault.candidate is None else "expected a number or -inf, but "
            message = invalid + fault.fault
            raise self.fault(message, document, fault.sentence, fault.candidate) from None
        except (Exception, SystemExit) as fault:
            last = traceback.extract_tb(fault.__traceback__)[-1]
            raised = f"{type(fault).__name__} at {Path(last.filename).name}:{last.lineno}"
            message = " ".join(f"expected scores, found {raised}: {fault}".split()).rstrip(": ")
            raise self.fault(message, document, s) from fault
        finally:
            self.seconds += time.perf_counter() - began

    def report(self) -> str:
        """`short: 3 documents from the cache, 9 documents scored in 0.1 s`."""
        parts = [f"{self.cached:,} documents from the cache"] if self.cached else []
        if self.scored or not parts:
            parts.append(f"{self.scored:,} documents scored in {self.seconds:.1f} s")
        return f"{self.name}: {', '.join(parts)}"


class _PluginProblem(DocumentProblem):
    """The problem that a scorer returned for a document, each call of it watched."""

    lengths: tuple[int, ...] = ()
    order: int | None = None
    causal: bool = True

    def __init__(self, problem: DocumentProblem, scorer: PluginScorer, document: Document) -> None:
        self._problem, self._scorer, self._document = problem, scorer, document
        with self._watched():
            self.lengths, self.order = tuple(problem.lengths), problem.order
            self.causal = problem.causal
        counts = tuple(len(document.sentences[t]) for t in document.present)
        if self.lengths != counts:
            expected = f"lengths {counts}, the numbers of candidates of the sentences that have any"
            raise scorer.fault(
                f"expected a problem with {expected}, found {self.lengths}", document
            )
        if scorer.order is not None and (self.order is None or self.order > scorer.order):
            expected = f"order {scorer.order}, as the scorer states"
            raise scorer.fault(f"expected a problem of {expected}, found {self.order}", document)

    def _watched(self, s: int | None = None) -> AbstractContextManager[None]:
        return self._scorer.watched(self._document, s)

    def initial(self) -> States:
        with self._watched():
            return self._problem.initial()

    def extend(self, states: States, t: int) -> tuple[Floats, Successors]:
        with self._watched(t):
            scores, successors = self._problem.extend(states, t)
            array = np.asarray(scores)
            return checked(array, t, shape=(*array.shape[:1], self.lengths[t])), successors

    def select(self, successors: Successors, parents: Indices, choices: Indices) -> States:
        with self._watched():
            return self._problem.select(successors, parents, choices)

    def average(self, successors: Successors, weights: NDArray[np.float64]) -> States:
        with self._watched():
            return self._problem.average(successors, weights)

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        with self._watched(t):
            return self._problem.rescore(paths, t, horizon)

    def scores_within(self, choices: Sequence[int]) -> Sequence[Floats]:
        with self._watched():
            return self._problem.scores_within(choices)

    def unary(self, t: int) -> Floats:
        with self._watched(t):
            return checked(np.asarray(self._problem.unary(t)), t, shape=(self.lengths[t],))

    def pairwise(self, t: int) -> Floats:
        with self._watched(t):
            shape = (self.lengths[t - 1] if t else 1, self.lengths[t])
            return checked(np.asarray(self._problem.pairwise(t)), t, shape=shape)
