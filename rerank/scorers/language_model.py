"""A document language model as a source of features: log-probability `NAME`, and `NAMEoov`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lm.backend import Backend
from lm.checkpoint import SavedModel
from lm.document_cache import WithDocumentCache
from lm.scoring import VERSION, EngineCounts, ScoreError, Scores, ScoringEngine, independent, pairs
from lm.sentences import Rows
from lm.side_information import information_of
from lm.trie import Candidates
from lm.vocabulary import UNKNOWN
from rerank.corpus.kbest import KBest
from rerank.errors import RerankError
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.acausal import AcausalProblem
from rerank.scorers.cached_scores import Arrays, CachedScores, ListTexts, ScorerCache, flat
from rerank.scorers.contextual import ContextualProblem
from rerank.scorers.following import located
from rerank.scorers.model_source import ModelSource
from rerank.scorers.model_work import counters, work_done
from rerank.scorers.side_rows import side_rows
from rerank.scorers.unknown_words import UnknownWords

ERRORS = {"float32": 1.2e-4, "bfloat16": 0.5}  # in nats a sentence: recipes/bench/errors.py
Named = tuple[str, KBest]
ListScoring = Callable[[Candidates, NDArray[np.int64], Rows | None], list[Scores]]


class LanguageModel(ModelSource[ScoringEngine]):
    """The features of one model folder.

    Order 0: each candidate is scored once. Order 1: after each candidate of the previous sentence,
    4 · K² bytes a sentence. Unbounded: after each history that a decoder keeps. The documents of
    one call are scored in one batch, and looked up in the cache one by one. A model that is not
    causal scores paths (`rerank.scorers.acausal`), which are not cached.

    document_cache: weight λ of a document cache that the model is interpolated with
    (`lm.document_cache`), which makes the order unbounded; None for the model alone.
    """

    def __init__(
        self,
        name: str,
        saved: SavedModel,
        backend: Backend | None = None,
        cache: Cache | None = None,
        *,
        document_cache: float | None = None,
    ) -> None:
        model = saved.model
        if document_cache is not None:
            model = WithDocumentCache(model, document_cache)
        super().__init__(name, ScoringEngine.of(model, backend), cache, ERRORS)
        self.columns = (f"{name}oov",)
        self.side_information = information_of(saved.model.context, training=False)
        self.saved, self.order, self.document_cache = saved, model.order, document_cache
        self.causal = self.kept = model.causal
        self.unknown = UnknownWords()

    def _scorer_cache(self, *, null: bool = False) -> ScorerCache:
        """As of `ModelSource`.

        Null scores are those in the start context, where a document cache is empty; those of a
        model of order 0 are its only scores.
        """
        backend = self._engine.backend
        identity: list[object] = [VERSION, self.saved.digest, backend.dtype, backend.deterministic]
        if null:
            identity += (
                [] if self.saved.model.order == 0 and not self.side_information else ["null"]
            )
        else:
            identity += ["lazy"] if self._lazy else []
            identity += [] if self.document_cache is None else ["cache", self.document_cache]
        group = hashlib.sha256(repr(tuple(identity)).encode()).hexdigest()[:32]
        return ScorerCache(self._cache, group, whole=backend.deterministic)

    @property
    def digest(self) -> str:
        """Digest of the model, and of the weight of its document cache."""
        if self.document_cache is None:
            return self.saved.digest
        identity = repr((self.saved.digest, self.document_cache))
        return hashlib.sha256(identity.encode()).hexdigest()[: len(self.saved.digest)]

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over the tries of lists of k candidates."""
        if self.order is None:
            return 1.0
        # one pass serves all candidates of a sentence before, if they only add to the logits
        return k ** max(0, self.order - int(self._engine.model.additive))

    def forgetful(self) -> LanguageModel:
        """A copy for measuring time, which neither uses the cache nor counts."""
        twin = copy(self)
        twin._memory, twin._null_memory = ScorerCache(None, ""), ScorerCache(None, "")
        twin._engine = replace(self._engine, counts=EngineCounts())
        twin.remembered, twin.unknown = 0, UnknownWords()
        return twin

    def finish(self, source: str, notices: Notices) -> None:
        """Warnings: of memory, and of far more unknown words than the training text has."""
        super().finish(source, notices)
        self.unknown.warn(self.name, self.saved.about, notices, source=source)
        self.unknown = UnknownWords()

    def report(self) -> str:
        """What was computed and what was cached: `codclm: 12 documents from the cache`."""
        return work_done(self.name, self.saved, self.work, self.remembered)

    def details(self) -> str:
        """Counters of the scoring engine: nodes of the tries, normalisers of all pairs."""
        return counters(self.name, self.work)

    def _texts(self, kbest: KBest) -> ListTexts:
        """Hypotheses and side information as scores depend on them; ValueError without these."""
        if missing := [kind for kind in self.side_information if kind not in kbest.side]:
            raise ValueError(f"scorer {self.name!r} needs side information: {', '.join(missing)}")
        return ListTexts.of(kbest, self.side_information)

    def score(self, documents: Sequence[Named]) -> list[ScoredDocument]:
        """Problem of each document, and (n, 1) counts of out-of-vocabulary words."""
        texts = [self._texts(kbest) for _, kbest in documents]
        if not self.causal:
            return [
                self._acausal(name, own) for (name, _), own in zip(documents, texts, strict=True)
            ]
        kept = [self._memory.recall(own) for own in texts]
        if self.order not in (0, 1):
            return [
                self._contextual(name, own, found)
                for (name, _), own, found in zip(documents, texts, kept, strict=True)
            ]
        self.remembered += sum(found is not None for found in kept)
        how = self._pairs if self.order else self._in_document
        scored = self._completed(documents, texts, kept, how, self._memory)
        order = self.order or 0
        return [
            ScoredDocument(found.problem(order), self._unknown(own, found))
            for own, found in zip(texts, scored, strict=True)
        ]

    def null_scores(self, documents: Sequence[Named]) -> list[NDArray[np.float32]]:
        """Scores (n,) of each document's candidates in the start context: one pass, cached."""
        texts = [self._texts(kbest) for _, kbest in documents]
        kept = [self._null_memory.recall(own) for own in texts]
        scored = self._completed(documents, texts, kept, self._independent, self._null_memory)
        return [found.column("scores") for found in scored]

    def _completed(
        self,
        documents: Sequence[Named],
        texts: Sequence[ListTexts],
        kept: Sequence[CachedScores | None],
        how: ListScoring,
        memory: ScorerCache,
    ) -> list[CachedScores]:
        """Cached scores of each document, computed where there were none."""
        new = [n for n, found in enumerate(kept) if found is None]
        names, missing = [documents[n][0] for n in new], [texts[n] for n in new]
        scored = iter(self._computed(names, missing, how, memory))
        return [next(scored) if found is None else found for found in kept]

    def _computed(
        self,
        names: Sequence[str],
        texts: Sequence[ListTexts],
        how: ListScoring,
        memory: ScorerCache,
    ) -> list[CachedScores]:
        """Scores of whole documents, cached: in one batch, but one by one if `deterministic`."""
        if self._engine.backend.deterministic and len(names) > 1:
            alone = zip(names, texts, strict=True)
            return [self._computed([n], [t], how, memory)[0] for n, t in alone]
        if not names:
            return []
        encoded = [self._encoded(own) for own in texts]
        starts = np.cumsum([0, *(len(own.counts) for own in texts)])
        lists = Candidates.joined([lists for lists, _ in encoded])
        with self._attributed(names, starts):
            scores = how(lists, starts, side_rows(self.saved, texts, self._engine.backend.device))
        found = []
        for (a, b), own, (_, columns) in zip(pairwise(starts), texts, encoded, strict=True):
            arrays = {**columns, "scores": flat(scores[a:b])}
            memory.keep(own, arrays)
            found.append(CachedScores(own, own, arrays))
        return found

    def _independent(
        self, lists: Candidates, starts: NDArray[np.int64], side: Rows | None
    ) -> list[Scores]:
        """Scores (K_t,) of each list in the start context."""
        return independent(self._engine, lists, side)

    def _in_document(
        self, lists: Candidates, starts: NDArray[np.int64], side: Rows | None
    ) -> list[Scores]:
        """Scores (K_t,) of each list under a model of order 0."""
        if side is None:
            return independent(self._engine, lists)
        return [scores[0] for scores in self._pairs(lists, starts, side)]

    def _pairs(
        self, lists: Candidates, starts: NDArray[np.int64], side: Rows | None
    ) -> list[Scores]:
        """Scores (K_{t-1}, K_t) of each list after the one before; `starts` begin documents."""
        first = np.zeros(len(lists), dtype=np.bool_)
        first[starts[:-1][np.diff(starts) > 0]] = True
        return pairs(self._engine, lists, first, side)

    def _contextual(self, name: str, texts: ListTexts, kept: CachedScores | None) -> ScoredDocument:
        """The problem of a document at unbounded order, with its cached scores if any."""
        self.remembered += kept is not None
        if kept is None:
            lists, columns = self._encoded(texts)
            kept = CachedScores(texts, texts, columns)
        else:
            lists = None
        problem = ContextualProblem(
            self._engine,
            kept,
            lambda: self._encoded(texts)[0] if lists is None else lists,
            order=self.order,
            memory=self._memory,
            label=self._label(name),
            side=side_rows(self.saved, [texts], self._engine.backend.device),
        )
        return ScoredDocument(problem, self._unknown(texts, kept), problem.keep)

    def _acausal(self, name: str, texts: ListTexts) -> ScoredDocument:
        """The problem of a document under a model that is given the next sentence, too."""
        lists, columns = self._encoded(texts)
        problem = AcausalProblem(self._engine, lists, label=self._label(name))
        return ScoredDocument(problem, self._unknown(texts, CachedScores(texts, texts, columns)))

    def _unknown(self, texts: ListTexts, kept: CachedScores) -> NDArray[np.float64]:
        """Number of out-of-vocabulary words of each candidate, (n, 1), added to the totals."""
        return self.unknown.add_candidates(texts, kept, self.saved.vocabulary.ids)[:, None]

    def _encoded(self, texts: ListTexts) -> tuple[Candidates, Arrays]:
        """Candidates as ids of words, and the number of words and unknown words of each."""
        tokens, offsets = self.saved.encode_lines(texts.text)
        unknown = np.concatenate([[0], np.cumsum(tokens == UNKNOWN)])[offsets]
        columns = {
            "words": np.diff(offsets).astype(np.int32),
            "unknown": np.diff(unknown).astype(np.int32),
        }
        return Candidates(tokens, offsets, texts.offsets), columns

    def _label(self, name: str) -> str:
        """Scorer and document in messages, and how sentences are counted in them."""
        reverse = self.saved.model.config.reverse_documents
        counted = ", its sentences counted from the last" if reverse else ""
        return f"scorer {self.name!r}, document {name!r}{counted}"

    @contextmanager
    def _attributed(self, names: Sequence[str], starts: NDArray[np.int64]) -> Iterator[None]:
        """Invalid scores, and lack of memory, as errors naming the scorer and the documents.

        starts: index of each document's first list among all lists.
        """
        try:
            yield
        except ScoreError as fault:
            place = fault.list or 0
            d = int(np.searchsorted(starts, place, side="right")) - 1
            where = located(fault, place - int(starts[d]))
            raise RerankError(f"{self._label(names[d])}: {where}") from None
        except MemoryError as fault:
            to = f" to {names[-1]!r}" if len(names) > 1 else ""
            raise RerankError(
                f"{self._label(names[0])}{to}: {fault}; keep fewer candidates with --top"
            ) from None
