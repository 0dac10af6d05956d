"""A Hugging Face causal language model as a source of features: log-probability `NAME`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lm.backend import Backend
from lm.causal.engine import VERSION, CausalEngine
from lm.causal.folder import CausalModel
from rerank.corpus.detokenisation import detokenised
from rerank.corpus.kbest import KBest
from rerank.errors import RerankError
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.cached_scores import CachedScores, ListTexts, ScorerCache, flat
from rerank.scorers.causal_options import CausalOptions
from rerank.scorers.causal_problem import CausalProblem, complete
from rerank.scorers.causal_texts import CausalTexts
from rerank.scorers.model_source import ModelSource

ERRORS = {"float32": 1e-3, "bfloat16": 2.0}  # in nats a sentence
Named = tuple[str, KBest]


class CausalLM(ModelSource[CausalEngine]):
    """The feature of one causal language model, in nats.

    A sentence's score is log p of its tokens, the newline at its end included, given the earlier
    sentences within the window; with `join=space` log p of its tokens, a space before it included.
    Order 0 and 1: all scores at once; else after each history that a decoder keeps.
    """

    kept = True

    def __init__(
        self,
        name: str,
        model: CausalModel,
        options: CausalOptions,
        backend: Backend | None = None,
        cache: Cache | None = None,
    ) -> None:
        super().__init__(name, CausalEngine(model, backend or Backend()), cache, ERRORS)
        self.model, self.options, self.order = model, options, options.order
        self._null = replace(options, sentences=0, tokens=None)
        self._cut = 0

    def check(self) -> None:
        """ValueError for an architecture or a tokenizer that scores cannot be computed with."""
        if self.options.join == "newline":
            plain, ended = self.model.encode(["a", "a\n"])
            if plain == ended or self.model.tokenizer.unk_token_id in ended[len(plain) :]:
                raise ValueError(
                    "its tokenizer has no newline, which would end each sentence; add ,join=space"
                )
        self._engine.check()

    def _scorer_cache(self, *, null: bool = False) -> ScorerCache:
        """As of `ModelSource`; null scores are those of a window of no sentences."""
        backend, options = self._engine.backend, self._null if null else self.options
        identity: list[object] = ["causal", VERSION, self.model.digest, options.identity]
        identity += [backend.dtype, backend.deterministic]
        identity += ["lazy"] if self._lazy and not null else []
        group = hashlib.sha256(repr(tuple(identity)).encode()).hexdigest()[:32]
        return ScorerCache(self._cache, group, whole=backend.deterministic)

    @property
    def digest(self) -> str:
        """Digest of the model's files, the window and the joiner."""
        identity = repr((self.model.digest, self.options.identity))
        return hashlib.sha256(identity.encode()).hexdigest()

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over lists of k candidates."""
        return 1.0 if self.order is None else k**self.order

    def forgetful(self) -> CausalLM:
        """A copy for measuring time, which neither uses the cache nor counts."""
        twin = copy(self)
        twin._memory, twin._null_memory = ScorerCache(None, ""), ScorerCache(None, "")
        twin._engine = CausalEngine(self.model, self._engine.backend)
        twin.remembered = twin._cut = 0
        return twin

    def score(self, documents: Sequence[Named]) -> list[ScoredDocument]:
        """Problem of each document; there are no static features."""
        if self.order not in (0, 1):
            return [self._contextual(name, kbest) for name, kbest in documents]
        return [
            ScoredDocument(found.problem(self.order or 0), np.zeros((kbest.n, 0)))
            for found, (_, kbest) in zip(
                self._whole(documents, self.options, self._memory), documents, strict=True
            )
        ]

    def null_scores(self, documents: Sequence[Named]) -> list[NDArray[np.float32]]:
        """Scores (n,) of each document's candidates, each as a text of its own: cached."""
        found = self._whole(documents, self._null, self._null_memory)
        return [one.column("scores").astype(np.float32) for one in found]

    def _problem(
        self, name: str, kept: CachedScores, options: CausalOptions, memory: ScorerCache
    ) -> CausalProblem:
        """The problem of a document with its cached scores; counts contexts that were cut."""

        def too_long(t: int, tokens: int) -> RerankError:
            return RerankError(
                f"scorer {self.name!r}, document {name!r}, sentence {t} (counted from 0 among "
                f"those with candidates): a candidate has {tokens:,} tokens, the model has "
                f"positions for {self.model.positions:,}; leave it out, or give a model with more"
            )

        def cut() -> None:
            self._cut += 1

        lines = [self._read_by_people(part) for part in kept.requested.lists()]
        texts = CausalTexts(self.model, lines, options, too_long=too_long, cut=cut)
        order = None if self._lazy and options is self.options else options.order
        return CausalProblem(self._engine, texts, kept, memory, order=order)

    def _read_by_people(self, lines: bytes) -> list[str]:
        """The texts of LF-ended lines, detokenised if the options say so."""
        own = lines.split(b"\n")[:-1]
        if self.options.detokenize is not None:
            own = detokenised(own, self.options.detokenize)
        return [line.decode() for line in own]

    def _contextual(self, name: str, kbest: KBest) -> ScoredDocument:
        """The problem of a document that is scored as a search goes on."""
        texts = ListTexts.of(kbest)
        kept = self._memory.recall(texts)
        self.remembered += kept is not None
        problem = self._problem(
            name, kept or CachedScores(texts, texts, {}), self.options, self._memory
        )
        return ScoredDocument(problem, np.zeros((kbest.n, 0)), problem.keep)

    def _whole(
        self, documents: Sequence[Named], options: CausalOptions, memory: ScorerCache
    ) -> list[CachedScores]:
        """All scores of documents at order 0 or 1, those that are not cached in one batch."""
        texts = [ListTexts.of(kbest) for _, kbest in documents]
        kept = [memory.recall(own) for own in texts]
        self.remembered += sum(one is not None for one in kept) if memory is self._memory else 0
        new: dict[int, CausalProblem] = {}
        for n, ((name, _), own) in enumerate(zip(documents, texts, strict=True)):
            if kept[n] is None:
                new[n] = self._problem(name, CachedScores(own, own, {}), options, memory)
        complete([(p, t, one) for p in new.values() for t, one in _histories(p)])
        found = []
        for n, (own, cached) in enumerate(zip(texts, kept, strict=True)):
            if cached is None:
                problem = new[n]
                arrays = {"scores": flat([problem.pairwise(t) for t in range(len(own.counts))])}
                memory.keep(own, arrays)
                cached = CachedScores(own, own, arrays)
            found.append(cached)
        return found

    def finish(self, source: str, notices: Notices) -> None:
        """Warnings: of memory, and of contexts longer than the model's positions."""
        super().finish(source, notices)
        if self._cut:
            notices.add(
                f"context longer than the {self.model.positions:,} positions of {self.name}: its "
                "earliest sentences were left out; give a window (,sentences=N) to choose it",
                source=source,
                count=self._cut,
            )
        self._cut = 0

    def report(self) -> str:
        """What was computed and what was cached: `gpt: 12 documents from the cache`."""
        parts = [f"{self.remembered:,} documents from the cache"] if self.remembered else []
        if self.work.tokens:
            parts.append(f"{self.work.tokens:,} tokens scored in {self.work.seconds:.1f} s")
        return f"{self.name}: {', '.join(parts) or 'nothing to score'}"

    def details(self) -> str:
        """Tokens that the transformer read for those that were scored."""
        if not self.work.nodes:
            return ""
        share = self.work.tokens / self.work.nodes
        return f"{self.name}: {self.work.nodes:,} tokens read ({share:.2f} scored for each)"


def _histories(problem: CausalProblem) -> list[tuple[int, tuple[int, ...]]]:
    """Sentences and all their histories, at order 0 and 1."""
    if problem.order == 0:
        return [(t, ()) for t in range(len(problem.lengths))]
    before = [1, *problem.lengths[:-1]]
    return [(t, (k,) if t else ()) for t, n in enumerate(before) for k in range(n)]
