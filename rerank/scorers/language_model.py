"""A document language model as a scorer: `NAME`, its log-probability, and `NAMEoov`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from decoders.problem import DocumentProblem
from lm.checkpoint import Saved
from lm.machine import Machine
from lm.scorer import Scorer, Work
from lm.scoring import VERSION, ScoreError, independent, pairs
from lm.trie import Candidates
from lm.vocabulary import UNKNOWN
from rerank.cache import Cache
from rerank.corpus.kbest import KBest
from rerank.errors import RerankError
from rerank.notices import Notices
from rerank.scorers import Scored
from rerank.scorers.contextual import told
from rerank.scorers.kept import Arrays, Kept, Memory, Texts
from rerank.scorers.moves import Movable

ERRORS = {"float32": 1.2e-4, "bfloat16": 0.5}  # in nats a sentence: recipes/bench/errors.py
Named = tuple[str, KBest]


class LanguageModel:
    """The scorer of one model folder.

    Order 0: every candidate once. Order 1: after every candidate of the sentence before,
    4 · K² bytes a sentence. Unbounded: after each of the histories that a decoder keeps.
    Documents of one call are scored together, and looked up in the cache one by one.
    """

    def __init__(
        self, name: str, saved: Saved, machine: Machine | None = None, cache: Cache | None = None
    ) -> None:
        self.name = name
        self.columns = (f"{name}oov",)
        self.saved = saved
        self.oov = self.words = self.remembered = 0
        self._scorer = Scorer.of(saved.model, machine)
        self._cache, self._lazy = cache, False
        self._memory = self._remembering()

    def _remembering(self) -> Memory:
        """What is kept of the scores as they are made now."""
        return Memory(self._cache, self._group(), whole=self._scorer.machine.deterministic)

    def _group(self) -> str:
        """Digest of all that decides on the scores of a text."""
        machine = self._scorer.machine
        identity = [VERSION, self.saved.digest, machine.dtype, machine.deterministic]
        identity += ["lazy"] if self._lazy else []
        return hashlib.sha256(repr(tuple(identity)).encode()).hexdigest()[:32]

    @property
    def order(self) -> int | None:
        """The model's order; None, as far as searches are concerned, once it is `lazily` scored."""
        return None if self._lazy else self.saved.model.order

    @property
    def error(self) -> float:
        """Largest error of the score of one sentence, in nats: the precision's."""
        return ERRORS[self._scorer.machine.dtype]

    @property
    def digest(self) -> str:
        """That of the model."""
        return self.saved.digest

    @property
    def runs_on(self) -> str:
        """`cpu` or `cuda`, wherever the model is."""
        return self._scorer.machine.device.type

    @property
    def seconds(self) -> float:
        """Time that the model has worked so far."""
        return self.work.seconds

    @property
    def work(self) -> Work:
        """What was computed so far."""
        return self._scorer.work

    def passes(self, k: float) -> float:
        """Exact search's cost in passes over lists of k candidates; 1 scores a trie once."""
        return k if self.order == 1 and self.saved.model.fusion.touches_hidden else 1.0

    def lazily(self) -> None:
        """Score after each history that a search asks for, where all pairs take a pass each."""
        if self.passes(2) > 1:
            self._lazy = True
            self._memory = self._remembering()

    def remembers(self, kbest: KBest) -> bool:
        """Whether something about a document's lists is in the cache."""
        return self._memory.peek(Texts.of(kbest)) is not None

    def forgetful(self) -> LanguageModel:
        """The same model that neither remembers nor counts."""
        twin = copy(self)
        twin._memory, twin._scorer = Memory(None, ""), replace(self._scorer, work=Work())
        twin.oov = twin.words = twin.remembered = 0
        return twin

    def finish(self, source: str, notices: Notices) -> None:
        """A notice if far more words are unknown to the model than in its training."""
        known = self.saved.about.get("oov_rate", 0.0)
        trained = float(known) if isinstance(known, float | int) else 0.0
        rate = self.oov / max(1, self.words)
        if rate > 2 * trained + 0.01:
            notices.add(
                f"word unknown to {self.name} ({rate:.1%} of the list's words, {trained:.1%} "
                "of its training text's): check case, escaping (&apos;), tokenisation and "
                "subwords; the lists must look like the training text",
                source=source,
                count=self.oov,
            )

    def report(self) -> str:
        """What it computed and what it remembered: `codclm: 12 documents from the cache`."""
        told = [f"{self.remembered} documents from the cache"] if self.remembered else []
        work = self.work
        if work.nodes:
            told.append(
                f"{work.tokens:,} tokens read as {work.nodes:,} trie nodes "
                f"({work.tokens / work.nodes:.2f} a node) in {work.seconds:.1f} s"
            )
        if work.normalisers:
            share = work.recomputed / work.normalisers
            told.append(
                f"{work.normalisers:,} normalisers of pairs, {share:.2%} of them formed twice"
            )
        return f"{self.name}: {', '.join(told) or 'nothing to score'}"

    def score(self, documents: Sequence[Named]) -> list[Scored]:
        """The model's problem on each document, and the (n, 1) out-of-vocabulary counts."""
        texts = [Texts.of(kbest) for _, kbest in documents]
        kept = [self._memory.recall(own) for own in texts]
        if self.order is None:
            return [
                self._contextual(name, own, found)
                for (name, _), own, found in zip(documents, texts, kept, strict=True)
            ]
        new = [n for n, found in enumerate(kept) if found is None]
        scored = self._computed([documents[n][0] for n in new], [texts[n] for n in new])
        for n, found in zip(new, scored, strict=True):
            kept[n] = found
        self.remembered += len(documents) - len(new)
        return [self._scored(found) for found in kept if found is not None]

    def _computed(self, names: Sequence[str], texts: Sequence[Texts]) -> list[Kept]:
        """Documents of order 0 or 1 scored and kept: together, or each alone where that matters."""
        if self._scorer.machine.deterministic and len(names) > 1:
            return [self._computed([n], [t])[0] for n, t in zip(names, texts, strict=True)]
        if not names:
            return []
        encoded = [self._encoded(own) for own in texts]
        starts = np.cumsum([0, *(len(own.counts) for own in texts)])
        lists = Candidates.joined([lists for lists, _ in encoded])
        with self._blamed(names, starts):
            if self.order == 0:
                scores = independent(self._scorer, lists)
            else:
                first = np.zeros(len(lists), dtype=np.bool_)
                first[starts[:-1][np.diff(starts) > 0]] = True
                scores = pairs(self._scorer, lists, first)
        found = []
        for (a, b), own, (_, columns) in zip(pairwise(starts), texts, encoded, strict=True):
            flat = np.concatenate([np.zeros(0, np.float32), *(s.ravel() for s in scores[a:b])])
            arrays = {**columns, "scores": flat}
            self._memory.keep(own, arrays)
            found.append(Kept(own, own, arrays))
        return found

    def _scored(self, kept: Kept) -> Scored:
        problem: DocumentProblem
        problem = Unary(kept.scores(0)) if self.order == 0 else Pairwise(kept.scores(1))
        return Scored(problem, self._unknown(kept))

    def _contextual(self, name: str, texts: Texts, kept: Kept | None) -> Scored:
        """The problem of a document at unbounded order, with what is kept of it."""
        self.remembered += kept is not None
        if kept is None:
            lists, columns = self._encoded(texts)
            kept = Kept(texts, texts, columns)
        else:
            lists = None
        problem = Movable(
            self._scorer,
            kept,
            lambda: self._encoded(texts)[0] if lists is None else lists,
            memory=self._memory,
            told=self._told(name),
        )
        return Scored(problem, self._unknown(kept), problem.keep)

    def _unknown(self, kept: Kept) -> NDArray[np.float64]:
        """Words outside the vocabulary of each candidate, (n, 1), which are counted."""
        unknown = kept.column("unknown")
        self.oov += int(unknown.sum())
        self.words += int(kept.column("words").sum())
        return unknown.astype(np.float64)[:, None]

    def _encoded(self, texts: Texts) -> tuple[Candidates, Arrays]:
        """Candidates in the model's words, and how many words, and unknown ones, each has."""
        tokens, offsets = self.saved.vocabulary.encode_lines(texts.text)
        unknown = np.concatenate([[0], np.cumsum(tokens == UNKNOWN)])[offsets]
        columns = {
            "words": np.diff(offsets).astype(np.int32),
            "unknown": np.diff(unknown).astype(np.int32),
        }
        return Candidates(tokens, offsets, texts.offsets), columns

    def _told(self, name: str) -> str:
        return f"scorer {self.name!r}, document {name!r}"

    @contextmanager
    def _blamed(self, names: Sequence[str], starts: NDArray[np.int64]) -> Iterator[None]:
        """A fault in the scores, or want of memory, told with the scorer and the documents.

        starts: of the documents' lists among those of all.
        """
        try:
            yield
        except ScoreError as fault:
            place = fault.list or 0
            d = int(np.searchsorted(starts, place, side="right")) - 1
            where = told(fault, place - int(starts[d]))
            raise RerankError(f"{self._told(names[d])}: {where}") from None
        except MemoryError as fault:
            to = f" to {names[-1]!r}" if len(names) > 1 else ""
            raise RerankError(
                f"{self._told(names[0])}{to}: {fault}; keep fewer candidates with --top"
            ) from None
