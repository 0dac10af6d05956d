"""A document under a model of unbounded order: scores of its candidates after any history.

A history is what was chosen so far; its key is a digest of the chosen texts. Histories of
one key are scored once, in this run and, with a cache, in later ones. What the model made
of a history is a row of a tensor; where the scores were remembered that row is made up for
only when scores that are not remembered need it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from rerank.scorers.cached_scores import Arrays, CachedScores, ScorerCache
from rerank.scorers.histories import FIRST, KEY_BYTES, Extended, Histories

if TYPE_CHECKING:
    from torch import Tensor

Scores = NDArray[np.float32]


class Contextual(DocumentProblem):
    """Log-probabilities of a document's candidates in context; a state is a batch of histories.

    `encode` gives the candidates in the model's words once some of them are to be scored.
    ScorerCache: of each history that was asked for or kept, 4 bytes a candidate and about 300.
    """

    order = None

    def __init__(
        self,
        scorer: Scorer,
        kept: CachedScores,
        encode: Callable[[], Candidates],
        *,
        memory: ScorerCache,
        told: str,
    ) -> None:
        self.scorer, self.told = scorer, told
        self._lengths = tuple(kept.requested.counts.tolist())
        self._kept, self._encode, self._memory = kept, encode, memory
        self._table = _table(kept)
        self._noted: dict[tuple[int, bytes], Tensor] = {}
        self._grown = False
        self._lines = [text.split(b"\n") for text in kept.requested.lists()]

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
        return Histories(0, [FIRST], start, np.ones(1, dtype=np.bool_))

    def extend(self, states: Histories, t: int) -> Answer:
        """Scores (N, K_t) after each history; O(trie nodes) steps for each one not remembered."""
        return self.extend_together([(self, states, t)])[0]

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, Histories, int]]) -> list[Answer]:
        """The same for histories of many documents, in one batch for each model."""
        scorers = {id(problem.scorer): problem.scorer for problem, _, _ in requests}
        found: dict[int, Extended] = {}
        for scorer in scorers.values():
            own = [n for n, (problem, _, _) in enumerate(requests) if problem.scorer is scorer]
            scored = _scored(scorer, [requests[n][:2] for n in own])
            found.update(zip(own, scored, strict=True))
        return [
            (problem._scores(histories), found[n])
            for n, (problem, histories, _) in enumerate(requests)
        ]

    def select(self, successors: Extended, parents: Indices, choices: Indices) -> Histories:
        """The histories after the chosen candidates."""
        rows = successors.rows[parents]
        following = self.followed(successors.histories, parents, choices)
        known = np.flatnonzero(rows >= 0)
        if successors.contexts is not None and successors.summary is not None and known.size:
            of, taken = rows[known], choices[known]
            contexts = advanced(self.scorer, successors.contexts[of], successors.summary[of, taken])
            following.enter(known, contexts)
        return following

    def followed(self, before: Histories, parents: Indices, choices: Indices) -> Histories:
        """The histories after chosen candidates, their contexts not known yet."""
        lines = self._lines[before.t]
        keys = [
            hashlib.blake2b(before.keys[p] + lines[c], digest_size=KEY_BYTES).digest()
            for p, c in zip(parents.tolist(), choices.tolist(), strict=True)
        ]
        unknown = np.zeros(len(keys), dtype=np.bool_)
        return Histories(before.t + 1, keys, None, unknown, (before, parents, choices))

    def average(self, successors: Extended, weights: NDArray[np.float64]) -> Histories:
        """The states after each candidate whose contexts are weighted means, `weights: (N, K_t)`.

        The key is a digest of the context. O(N K_t) contexts beside the scores' own cost, which is
        paid again for those that were remembered.
        """
        import torch

        before = successors.histories
        contexts, summary = successors.contexts, successors.summary
        if contexts is None or summary is None or (successors.rows < 0).any():
            given = self.contexts(before)
            with blamed([(self, before.t)]):
                ((_, found),) = after(
                    self.scorer, [(self.lists.part(before.t, before.t + 1), given)]
                )
        else:
            given, found = contexts[successors.rows], summary[successors.rows]
        n, k, _ = found.shape
        pairs = advanced(self.scorer, given.repeat_interleave(k, dim=0), found.flatten(0, 1))
        shares = torch.from_numpy(weights).to(pairs)
        with self.scorer.machine.at_work():
            means = torch.einsum("nk,nkc->kc", shares, pairs.view(n, k, -1))
        rows = means.cpu().contiguous().view(torch.uint8).numpy()
        keys = [hashlib.blake2b(row.tobytes(), digest_size=KEY_BYTES).digest() for row in rows]
        return Histories(before.t + 1, keys, means, np.ones(k, dtype=np.bool_))

    def contexts(self, histories: Histories, rows: Indices | None = None) -> Tensor:
        """Contexts (M, C) of some histories, or of all."""
        return _contexts(self, histories, np.arange(len(histories.keys)) if rows is None else rows)

    def note(self, histories: Histories) -> None:
        """Keep the contexts that are known at hand, 4 C bytes each, for moves to begin from."""
        if histories.contexts is None:
            return
        rows = np.flatnonzero(histories.known)
        for row, context in zip(rows.tolist(), histories.contexts[rows], strict=True):
            self._noted.setdefault((histories.t, histories.keys[row]), context)

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
        self._memory.keep(self._kept.cached, {**self._kept.arrays, **arrays})
        self._grown = False  # not before: a signal may end the writing

    def recall(self, histories: Histories, rows: Indices) -> Indices:
        """Which of some histories are still unknown, once contexts that were noted are entered."""
        import torch

        unknown = rows[~histories.known[rows]]
        named = [(row, (histories.t, histories.keys[row])) for row in unknown.tolist()]
        noted = [(row, self._noted[name]) for row, name in named if name in self._noted]
        if noted:
            found, contexts = zip(*noted, strict=True)
            histories.enter(np.array(found), torch.stack(contexts))
        return unknown[~histories.known[unknown]]

    def remembers(self, t: int, key: bytes) -> bool:
        """Whether the scores of sentence t after a history are in the table."""
        found = self._table.get((t, key))
        return found is not None and len(found) >= self.lengths[t]

    def _scores(self, histories: Histories) -> Scores:
        """Scores (N, K_t), all of them in the table."""
        t = histories.t
        k = self.lengths[t]
        return np.stack([self._table[t, key][:k] for key in histories.keys])

    def alone(self, t: int, choice: int, context: Tensor) -> tuple[tuple[Candidates, Tensor], int]:
        """What to ask for a choice's summary after a context, and its place in the answer.

        The candidate alone; but the whole list, as it is scored, where bits matter.
        """
        if self.scorer.machine.deterministic:
            return (self.lists.part(t, t + 1), context), choice
        return (self.lists.one(t, choice), context), 0

    def enter(self, t: int, keys: Sequence[bytes], scores: Scores) -> None:
        """Remember the scores (M, K_t) after histories with these keys."""
        self._grown = self._grown or len(keys) > 0
        self._table.update(zip(((t, key) for key in keys), scores, strict=True))


@dataclass(slots=True, eq=False)
class _Wanted:
    """Histories before sentence t of a problem that are to be scored.

    rows: place of each key among them; contexts: theirs, in pieces (…, C).
    """

    problem: Contextual
    t: int
    rows: dict[bytes, int]
    contexts: list[Tensor]


def _scored(scorer: Scorer, asked: Sequence[tuple[Contextual, Histories]]) -> list[Extended]:
    """Scores of all histories that are not remembered, entered, and what they come from.

    Histories of one key are scored once, whoever asked for them.
    """
    import torch

    wanted: dict[tuple[int, int], _Wanted] = {}
    owners = []
    for problem, histories in asked:
        t = histories.t
        own = wanted.setdefault((id(problem), t), _Wanted(problem, t, {}, []))
        owners.append(own)
        new: dict[bytes, int] = {}
        for n, key in enumerate(histories.keys):
            if key not in own.rows and not problem.remembers(t, key):
                new.setdefault(key, n)
        if new:
            own.rows.update(zip(new, range(len(own.rows), len(own.rows) + len(new)), strict=True))
            rows = np.array(list(new.values()), dtype=np.intp)
            own.contexts.append(_contexts(problem, histories, rows))
    work = [own for own in wanted.values() if own.rows]
    contexts = [torch.cat(own.contexts) for own in work]
    requests = [
        (own.problem.lists.part(own.t, own.t + 1), c) for own, c in zip(work, contexts, strict=True)
    ]
    with blamed([(own.problem, own.t) for own in work]):
        answers = after(scorer, requests)
    made = {}
    for own, c, (scores, summary) in zip(work, contexts, answers, strict=True):
        own.problem.enter(own.t, list(own.rows), scores)
        made[id(own)] = (c, summary)
    return [
        Extended(
            histories,
            np.array([own.rows.get(key, -1) for key in histories.keys]),
            *made.get(id(own), (None, None)),
        )
        for own, (_, histories) in zip(owners, asked, strict=True)
    ]


def _contexts(problem: Contextual, histories: Histories, rows: Indices) -> Tensor:
    """Contexts (M, C) of some histories, made up for from the nearest known ancestors.

    One short pass for each history on the way that is not known, all of a sentence together.
    """
    own = histories
    chain: list[tuple[Histories, Indices]] = []
    unknown = problem.recall(histories, rows)
    while unknown.size and histories.origin is not None:
        chain.append((histories, unknown))
        histories, parents, _ = histories.origin
        unknown = problem.recall(histories, np.unique(parents[unknown]))
    for following, unknown in reversed(chain):
        _make_up(problem, following, unknown)
    if own.contexts is None or not own.known[rows].all():
        raise ValueError("histories without a known ancestor")
    contexts: Tensor = own.contexts[rows]
    return contexts


def _make_up(problem: Contextual, histories: Histories, rows: Indices) -> None:
    """Enter the contexts of some histories, those before them being known."""
    import torch

    if histories.origin is None:
        raise ValueError("histories without a known ancestor")
    before, parents, choices = histories.origin
    t, contexts = before.t, problem.contexts(before, parents[rows])
    requests = [
        problem.alone(t, choice, contexts[m : m + 1])
        for m, choice in enumerate(choices[rows].tolist())
    ]
    with blamed([(problem, t)] * len(requests)):
        found = after(problem.scorer, [request for request, _ in requests])
    summaries = [
        summary[:, place] for (_, summary), (_, place) in zip(found, requests, strict=True)
    ]
    histories.enter(rows, advanced(problem.scorer, contexts, torch.cat(summaries)))


@contextmanager
def blamed(asked: Sequence[tuple[Contextual, int]]) -> Iterator[None]:
    """A fault in the scores, or want of memory, told with scorer, document and sentence."""
    try:
        yield
    except ScoreError as fault:
        problem, t = asked[fault.list or 0]
        raise RerankError(f"{problem.told}: {told(fault, t)}") from None
    except MemoryError as fault:
        raise RerankError(
            f"{asked[0][0].told}: {fault}; keep fewer candidates with --top, or a narrower --beam"
        ) from None


def told(fault: ScoreError, t: int) -> str:
    """A fault with its place in the document, whose sentences without candidates do not count."""
    return f"sentence {t}, candidate {fault.candidate} (counted from 0): {fault}"


def advanced(scorer: Scorer, contexts: Tensor, summaries: Tensor) -> Tensor:
    """Contexts (M, C) after sentences with summaries (M, U).

    One at a time where the machine is deterministic: the bits of a row of a product may depend
    on how many rows there are, and on where in memory it lies, hence the copies.
    """
    import torch

    advance = scorer.model.context.advance
    with scorer.machine.at_work():
        if not scorer.machine.deterministic:
            return advance(contexts, summaries)
        rows = zip(torch.split(contexts, 1), torch.split(summaries, 1), strict=True)
        return torch.cat([advance(context.clone(), summary.clone()) for context, summary in rows])


def _table(kept: CachedScores) -> dict[tuple[int, bytes], Scores]:
    """Scores by sentence and history, of as many candidates as they were kept."""
    if "history" not in kept.arrays:
        return {}
    sizes, sentences = kept.arrays["size"], kept.arrays["sentence"].tolist()
    rows = np.split(kept.arrays["scores"], np.cumsum(sizes)[:-1])
    raw = kept.arrays["history"].tobytes()
    keys = [raw[i : i + KEY_BYTES] for i in range(0, len(raw), KEY_BYTES)]
    return dict(zip(zip(sentences, keys, strict=True), rows, strict=True))
