"""A document under a model of unbounded order: scores of its candidates after any history.

A history is what was chosen so far; its key is a digest of the chosen texts. Histories of
one key are scored once, in this run and, with a cache, in later ones. What the model made
of a history is a row of a tensor; where the scores were remembered that row is made up for
only when scores that are not remembered need it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Answer, DocumentProblem, Indices
from lm.scorer import Scorer
from lm.scoring import ScoreError, after
from lm.trie import Candidates
from rerank.errors import RerankError
from rerank.scorers.kept import Arrays, Kept, Memory

if TYPE_CHECKING:
    from torch import Tensor

_KEY_BYTES = 16
_FIRST = bytes(_KEY_BYTES)  # key of the empty history
Scores = NDArray[np.float32]


@dataclass(slots=True, eq=False)
class Histories:
    """N histories before sentence t.

    contexts: (N, C), a row of it meaningful where `known` (N,) says so; `origin`: the
    histories before, and of each the parent among them and the choice, None if all are
    known. Contexts that were made up for are entered.
    """

    t: int
    keys: list[bytes]
    contexts: Tensor
    known: NDArray[np.bool_]
    origin: tuple[Histories, Indices, Indices] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Extended:
    """Histories with what their candidates make of them.

    rows: (N,) of each history in `contexts` (M, C) and `summary` (M, K, U); −1 where the
    scores were remembered.
    """

    histories: Histories
    rows: Indices
    contexts: Tensor
    summary: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """Histories of one problem whose scores are computed: rows (M,) of distinct keys."""

    problem: Contextual
    histories: Histories
    rows: Indices


class Contextual(DocumentProblem):
    """Log-probabilities of a document's candidates in context; a state is a batch of histories.

    `encode` gives the candidates in the model's words once some of them are to be scored.
    Memory: 4 bytes a candidate and history that was asked for or kept.
    """

    order = None

    def __init__(
        self,
        scorer: Scorer,
        kept: Kept,
        encode: Callable[[], Candidates],
        *,
        memory: Memory,
        told: str,
    ) -> None:
        self.scorer, self.told = scorer, told
        self._lengths = tuple(kept.wanted.counts.tolist())
        self._kept, self._encode, self._memory = kept, encode, memory
        self._table = _table(kept)
        self._grown = False
        self._lines = kept.wanted.lists()

    @property
    def lengths(self) -> tuple[int, ...]:
        """K_t of each list."""
        return self._lengths

    @cached_property
    def lists(self) -> Candidates:
        """The candidates in the model's words."""
        return self._encode()

    def initial(self) -> Histories:
        """The empty history, in the start context."""
        start = self.scorer.model.context.start(1).detach()
        return Histories(0, [_FIRST], start, np.ones(1, dtype=np.bool_))

    def extend(self, states: Histories, t: int) -> Answer:
        """Scores (N, K_t) after each history; O(trie nodes) steps for each one not remembered."""
        return self.extend_together([(self, states, t)])[0]

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, Histories, int]]) -> list[Answer]:
        """The same for histories of many documents, in one batch for each model."""
        wanted = [problem._unknown(histories) for problem, histories, _ in requests]
        found: dict[int, Extended] = {}
        for scorer in {id(w.problem.scorer): w.problem.scorer for w in wanted}.values():
            own = [n for n, w in enumerate(wanted) if w.problem.scorer is scorer]
            scored = _scored(scorer, [wanted[n] for n in own])
            found.update(zip(own, scored, strict=True))
        return [
            (problem._scores(histories), found[n])
            for n, (problem, histories, _) in enumerate(requests)
        ]

    def select(self, successors: Extended, parents: Indices, choices: Indices) -> Histories:
        """The histories after the chosen candidates."""
        before, rows = successors.histories, successors.rows[parents]
        lines = self._lines[before.t].split(b"\n")
        keys = [
            hashlib.blake2b(before.keys[p] + lines[c], digest_size=_KEY_BYTES).digest()
            for p, c in zip(parents.tolist(), choices.tolist(), strict=True)
        ]
        known = rows >= 0
        contexts = before.contexts.new_zeros(len(keys), before.contexts.shape[1])
        if known.any():
            of, taken = rows[known], choices[known]
            contexts[known] = _advanced(
                self.scorer, successors.contexts[of], successors.summary[of, taken]
            )
        origin = None if known.all() else (before, parents, choices)
        return Histories(before.t + 1, keys, contexts, known, origin)

    def keep(self) -> None:
        """Put what was scored since the last time into the cache."""
        if not self._grown:
            return
        rows = list(self._table.values())
        arrays: Arrays = {
            "sentence": np.array([t for t, _ in self._table], dtype=np.int32),
            "history": np.frombuffer(b"".join(key for _, key in self._table), dtype=np.uint8),
            "size": np.array(list(map(len, rows)), dtype=np.int32),
            "scores": np.concatenate(rows),
        }
        self._memory.keep(self._kept.held, {**self._kept.arrays, **arrays})
        self._grown = False  # not before: a signal may end the writing

    def _unknown(self, histories: Histories) -> _Wanted:
        """Which histories are to be scored, the first of each key."""
        t, first = histories.t, {key: n for n, key in reversed([*enumerate(histories.keys)])}
        rows = [n for key, n in first.items() if not self._remembers(t, key)]
        return _Wanted(self, histories, np.array(sorted(rows), dtype=np.intp))

    def _remembers(self, t: int, key: bytes) -> bool:
        found = self._table.get((t, key))
        return found is not None and len(found) >= self.lengths[t]

    def _scores(self, histories: Histories) -> Scores:
        """Scores (N, K_t), all of them in the table."""
        t = histories.t
        k = self.lengths[t]
        return np.stack([self._table[t, key][:k] for key in histories.keys])

    def enter(self, t: int, keys: Sequence[bytes], scores: Scores) -> None:
        """Remember the scores (M, K_t) after histories with these keys."""
        self._grown = self._grown or len(keys) > 0
        self._table.update(zip(((t, key) for key in keys), scores, strict=True))


def _scored(scorer: Scorer, wanted: Sequence[_Wanted]) -> list[Extended]:
    """Scores of all wanted histories, entered, and what they were computed from."""
    contexts = [_contexts(w) for w in wanted]
    requests = [
        (w.problem.lists.part(w.histories.t, w.histories.t + 1), c)
        for w, c in zip(wanted, contexts, strict=True)
        if len(w.rows)
    ]
    asked = [w for w in wanted if len(w.rows)]
    try:
        answers = iter(after(scorer, requests))
    except ScoreError as fault:
        told = asked[fault.list].problem.told if fault.list is not None else ""
        raise RerankError(f"{told}: {fault}") from None
    found = []
    for w, c in zip(wanted, contexts, strict=True):
        rows = np.full(len(w.histories.keys), -1)
        summary = c[:, None]
        if len(w.rows):
            scores, summary = next(answers)
            keys = [w.histories.keys[n] for n in w.rows]
            w.problem.enter(w.histories.t, keys, scores)
            place = {key: m for m, key in enumerate(keys)}
            rows = np.array([place.get(key, -1) for key in w.histories.keys])
        found.append(Extended(w.histories, rows, c, summary))
    return found


def _contexts(wanted: _Wanted) -> Tensor:
    """Contexts (M, C) of the wanted histories, made up for from the nearest known ancestors.

    O(T) short passes for histories whose ancestors were all remembered, once each.
    """
    import torch

    problem, histories, rows = wanted.problem, wanted.histories, wanted.rows
    chain: list[tuple[Histories, Indices, Indices]] = []
    while not histories.known[rows].all() and histories.origin is not None:
        before, parents, choices = histories.origin
        chain.append((histories, rows, choices[rows]))
        histories, rows = before, parents[rows]
    contexts = histories.contexts[rows]
    for histories, rows, choices in reversed(chain):
        requests = [
            (problem.lists.one(histories.t - 1, choice), contexts[m : m + 1])
            for m, choice in enumerate(choices.tolist())
        ]
        summaries = torch.cat([summary[:, 0] for _, summary in after(problem.scorer, requests)])
        contexts = _advanced(problem.scorer, contexts, summaries)
        histories.contexts[rows], histories.known[rows] = contexts, True
    return contexts


def _advanced(scorer: Scorer, contexts: Tensor, summaries: Tensor) -> Tensor:
    """Contexts (M, C) after sentences with summaries (M, U)."""
    import torch

    with torch.no_grad():
        return scorer.model.context.advance(contexts, summaries)


def _table(kept: Kept) -> dict[tuple[int, bytes], Scores]:
    """Scores by sentence and history, of as many candidates as they were kept."""
    if "history" not in kept.arrays:
        return {}
    sizes, sentences = kept.arrays["size"], kept.arrays["sentence"].tolist()
    rows = np.split(kept.arrays["scores"], np.cumsum(sizes)[:-1])
    raw = kept.arrays["history"].tobytes()
    keys = [raw[i : i + _KEY_BYTES] for i in range(0, len(raw), _KEY_BYTES)]
    return dict(zip(zip(sentences, keys, strict=True), rows, strict=True))
