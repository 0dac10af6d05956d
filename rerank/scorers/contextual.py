"""A document under a language model whose scores depend on context: scored history by history.

Histories that the model cannot tell apart have equal keys, and are scored once: in this run
and, with a cache, in later ones. The context of a history whose scores came from the cache is
computed lazily from its nearest ancestor with a context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Answer, DocumentProblem, Indices
from lm.engine import ScoringEngine
from lm.scoring import ScoreError, after
from lm.trie import Candidates
from rerank.errors import RerankError
from rerank.scorers.cached_scores import Arrays, CachedScores, ScorerCache
from rerank.scorers.histories import (
    KEY_BYTES,
    AllSentences,
    Histories,
    Key,
    Keys,
    LastSentences,
    ScoredHistories,
    digest,
)

if TYPE_CHECKING:
    from lm.rows import Rows

Scores = NDArray[np.float32]
Sums = NDArray[np.float64]


class ContextualProblem(DocumentProblem):
    """Log-probabilities of a document's candidates in context; a state is a batch of histories.

    order: the model's, or None to treat every history as different. `encode` gives the
    candidates in the model's words, once they are needed. Memory: 4 bytes a candidate and
    about 300 for each history that was scored or cached.
    """

    def __init__(
        self,
        engine: ScoringEngine,
        kept: CachedScores,
        encode: Callable[[], Candidates],
        *,
        order: int | None,
        memory: ScorerCache,
        label: str,
    ) -> None:
        self.engine, self.label = engine, label
        self._order = order
        self._lengths = tuple(kept.requested.counts.tolist())
        self._kept, self._encode, self._memory = kept, encode, memory
        self._table = _table(kept)
        self._noted: dict[tuple[int, Key], Rows] = {}
        self._grown = False
        self._keys: Keys
        if order is None:
            self._keys = AllSentences([text.split(b"\n") for text in kept.requested.lists()])
        else:
            self._keys = LastSentences(order, engine.model.context, lambda: self.lists)

    @property
    def lengths(self) -> tuple[int, ...]:
        """K_t of each list."""
        return self._lengths

    @property
    def order(self) -> int | None:
        """Number of earlier sentences a score depends on."""
        return self._order

    @cached_property
    def lists(self) -> Candidates:
        """The candidates in the model's words."""
        return self._encode()

    def initial(self) -> Histories:
        """The empty history, in the start context."""
        start = self.engine.model.context.start(1).detach()
        return Histories(0, [self._keys.first], start, np.zeros(1, dtype=np.intp))

    def extend(self, states: Histories, t: int) -> Answer:
        """Scores (N, K_t) after each history; O(trie nodes) steps for each one not cached."""
        return self.extend_together([(self, states, t)])[0]

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, Histories, int]]) -> list[Answer]:
        """Scores for histories of many documents, in one batch for each model."""
        engines = {id(problem.engine): problem.engine for problem, _, _ in requests}
        found: dict[int, ScoredHistories] = {}
        for engine in engines.values():
            own = [n for n, (problem, _, _) in enumerate(requests) if problem.engine is engine]
            scored = _scored(engine, [requests[n][:2] for n in own])
            found.update(zip(own, scored, strict=True))
        return [
            (problem._scores(histories), found[n])
            for n, (problem, histories, _) in enumerate(requests)
        ]

    def select(self, successors: ScoredHistories, parents: Indices, choices: Indices) -> Histories:
        """The histories after the chosen candidates."""
        following = self.followed(successors.histories, parents, choices)
        k = self.lengths[successors.histories.t]
        rows, taken = successors.candidates(k, parents, choices)
        known = np.flatnonzero(rows >= 0)
        if successors.contexts is not None and successors.summary is not None and known.size:
            contexts, summary = successors.contexts, successors.summary
            given, read = _take(contexts, rows[known]), _take(summary, taken[known])
            following.enter(known, advanced(self.engine, given, read))
        return following

    def followed(self, before: Histories, parents: Indices, choices: Indices) -> Histories:
        """The histories after chosen candidates, their contexts not computed yet."""
        pairs = zip(parents.tolist(), choices.tolist(), strict=True)
        keys = [self._keys.after(before.keys[p], before.t, c) for p, c in pairs]
        unknown = np.full(len(keys), -1, dtype=np.intp)
        return Histories(before.t + 1, keys, None, unknown, (before, parents, choices))

    def average(self, successors: ScoredHistories, weights: Sums) -> Histories:
        """The states after each candidate whose contexts are weighted means, `weights: (N, K_t)`.

        The key is a digest of the context. O(N K_t) contexts beside the cost of the scores,
        which is paid again for those that were cached.
        """
        import torch

        from lm.rows import Rows

        if not self.engine.model.context.averages:
            refused: Histories = super().average(successors, weights)
            return refused
        before, (n, k) = successors.histories, weights.shape
        parents, choices = np.divmod(np.arange(n * k), k)
        rows, taken = successors.candidates(k, parents, choices)
        contexts, summary = successors.contexts, successors.summary
        if contexts is None or summary is None or (rows < 0).any():
            given = self.contexts(before)
            with attributed([(self, before.t)]):
                request = self.lists.part(before.t, before.t + 1), given
                ((_, found),) = after(self.engine, [request])
            given = given.repeat_interleave(k)
        else:
            given, found = _take(contexts, rows), _take(summary, taken)
        pairs = advanced(self.engine, given, found)
        with self.engine.backend.inference():
            means = [
                torch.einsum(
                    "nk,nkc->kc", torch.from_numpy(weights).to(column), column.view(n, k, -1)
                ).view(k, *column.shape[1:])
                for column in pairs.tensors
            ]
        raw = [mean.flatten(1).cpu().contiguous().view(torch.uint8).numpy() for mean in means]
        keys = [(digest(row.tobytes()),) for row in np.concatenate(raw, axis=1)]
        return Histories(before.t + 1, list(keys), Rows.of(*means), np.arange(k))

    def rescore(self, paths: Indices, t: int, horizon: int) -> Sums:
        """Sums (N,) along each path; costs as `rerank.scorers.moves.rescored`."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums along paths of many documents, a sentence at a time."""
        from rerank.scorers.moves import rescored

        return rescored(requests)

    def contexts(self, histories: Histories, places: Indices | None = None) -> Rows:
        """Contexts (M rows) of some histories, or of all."""
        chosen = np.arange(len(histories.keys)) if places is None else places
        return _contexts(self, histories, chosen)

    def note(self, histories: Histories) -> None:
        """Remember the contexts that are computed, for moves to begin from."""
        if histories.contexts is None:
            return
        for place in np.flatnonzero(histories.known).tolist():
            context = _take(histories.contexts, histories.rows[[place]])
            self._noted.setdefault((histories.t, histories.keys[place]), context)

    def keep(self) -> None:
        """Put what was scored since the last call into the cache."""
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

    def recall(self, histories: Histories, places: Indices) -> Indices:
        """Which of some histories still lack a context, once the noted contexts are entered."""
        unknown = places[~histories.known[places]]
        named = [(place, (histories.t, histories.keys[place])) for place in unknown.tolist()]
        noted = [(place, self._noted[name]) for place, name in named if name in self._noted]
        if noted:
            found, contexts = zip(*noted, strict=True)
            histories.enter(np.array(found), contexts[0].cat(contexts))
        return unknown[~histories.known[unknown]]

    def score_keys(self, histories: Histories) -> list[bytes]:
        """Keys of the histories' scores in the table."""
        return list(map(self._keys.score_key, histories.keys))

    def has_scores(self, t: int, key: bytes) -> bool:
        """Whether the scores of sentence t after a history are in the table."""
        found = self._table.get((t, key))
        return found is not None and len(found) >= self.lengths[t]

    def _scores(self, histories: Histories) -> Scores:
        """Scores (N, K_t), all of them in the table."""
        t = histories.t
        k = self.lengths[t]
        return np.stack([self._table[t, key][:k] for key in self.score_keys(histories)])

    def alone(self, t: int, choice: int, contexts: Rows) -> tuple[tuple[Candidates, Rows], int]:
        """A request for one candidate after some contexts, and its place in the answer.

        The candidate alone, but its whole list on a deterministic backend, as it was scored.
        """
        if self.engine.backend.deterministic:
            return (self.lists.part(t, t + 1), contexts), choice
        return (self.lists.one(t, choice), contexts), 0

    def enter(self, t: int, keys: Sequence[bytes], scores: Scores) -> None:
        """Put the scores (M, K_t) after histories with these score keys into the table."""
        self._grown = self._grown or len(keys) > 0
        self._table.update(zip(((t, key) for key in keys), scores, strict=True))


@dataclass(slots=True, eq=False)
class _Request:
    """Histories before sentence t of a problem that are to be scored.

    rows: place of each score key among them; keys: theirs; contexts: theirs, in pieces.
    """

    problem: ContextualProblem
    t: int
    rows: dict[bytes, int]
    keys: list[Key]
    contexts: list[Rows]


def _scored(
    engine: ScoringEngine, asked: Sequence[tuple[ContextualProblem, Histories]]
) -> list[ScoredHistories]:
    """All histories that are not in a table scored and entered, those of one score key once."""
    requests: dict[tuple[int, int], _Request] = {}
    owners = []
    for problem, histories in asked:
        t = histories.t
        own = requests.setdefault((id(problem), t), _Request(problem, t, {}, [], []))
        owners.append(own)
        new: dict[bytes, int] = {}
        for n, key in enumerate(problem.score_keys(histories)):
            if key not in own.rows and not problem.has_scores(t, key):
                new.setdefault(key, n)
        if new:
            own.rows.update(zip(new, range(len(own.rows), len(own.rows) + len(new)), strict=True))
            own.keys += [histories.keys[n] for n in new.values()]
            own.contexts.append(_contexts(problem, histories, np.array([*new.values()])))
    work = [own for own in requests.values() if own.rows]
    contexts = [own.contexts[0].cat(own.contexts) for own in work]
    with attributed([(own.problem, own.t) for own in work]):
        lists = [own.problem.lists.part(own.t, own.t + 1) for own in work]
        answers = after(engine, list(zip(lists, contexts, strict=True)))
    found: dict[int, tuple[Rows, Rows]] = {}
    for own, given, (scores, summary) in zip(work, contexts, answers, strict=True):
        own.problem.enter(own.t, list(own.rows), scores)
        found[id(own)] = given, summary
    return [
        _with_answers(own, histories, *found.get(id(own), (None, None)))
        for own, (_, histories) in zip(owners, asked, strict=True)
    ]


def _with_answers(
    own: _Request, histories: Histories, contexts: Rows | None, summary: Rows | None
) -> ScoredHistories:
    """Histories with their contexts, which histories of equal scores need not share."""
    if contexts is None:
        nothing = np.full(len(histories.keys), -1)
        return ScoredHistories(histories, nothing, nothing)
    scored = np.array([own.rows.get(k, -1) for k in own.problem.score_keys(histories)])
    shared = np.array(
        [row >= 0 and own.keys[row] == k for row, k in zip(scored, histories.keys, strict=True)]
    )
    rows = np.where(shared, scored, -1)
    if histories.contexts is not None and (~shared & histories.known).any():
        rows = np.where(~shared & histories.known, histories.rows + len(contexts), rows)
        contexts = contexts.cat([contexts, histories.contexts])
    return ScoredHistories(histories, rows, scored, contexts, summary)


def _contexts(problem: ContextualProblem, histories: Histories, places: Indices) -> Rows:
    """Contexts (M rows) of some histories, computed from the nearest ancestors that have one.

    One short pass for each history on the way that has none, all of a sentence together.
    """
    own = histories
    chain: list[tuple[Histories, Indices]] = []
    unknown = problem.recall(histories, places)
    while unknown.size and histories.origin is not None:
        chain.append((histories, unknown))
        histories, parents, _ = histories.origin
        unknown = problem.recall(histories, np.unique(parents[unknown]))
    for following, unknown in reversed(chain):
        _compute(problem, following, unknown)
    if own.contexts is None or not own.known[places].all():
        raise ValueError("histories without an ancestor that has a context")
    return _take(own.contexts, own.rows[places])


def _compute(problem: ContextualProblem, histories: Histories, places: Indices) -> None:
    """Enter the contexts of some histories whose parents have theirs."""
    if histories.origin is None:
        raise ValueError("histories without an ancestor that has a context")
    before, parents, choices = histories.origin
    t, contexts = before.t, problem.contexts(before, parents[places])
    requests = [
        problem.alone(t, choice, contexts.take(slice(m, m + 1)))
        for m, choice in enumerate(choices[places].tolist())
    ]
    with attributed([(problem, t)] * len(requests)):
        found = after(problem.engine, [request for request, _ in requests])
    summaries = [
        summary.take(slice(place, place + 1))
        for (_, summary), (_, place) in zip(found, requests, strict=True)
    ]
    histories.enter(places, advanced(problem.engine, contexts, contexts.cat(summaries)))


@contextmanager
def attributed(asked: Sequence[tuple[ContextualProblem, int]]) -> Iterator[None]:
    """Errors of scoring with the names of scorer, document and sentence."""
    try:
        yield
    except ScoreError as fault:
        problem, t = asked[fault.list or 0]
        raise RerankError(f"{problem.label}: {located(fault, t)}") from None
    except MemoryError as fault:
        raise RerankError(
            f"{asked[0][0].label}: {fault}; keep fewer candidates with --top, or a narrower --beam"
        ) from None


def located(fault: ScoreError, t: int) -> str:
    """An error with its place in the document; t counts sentences that have candidates."""
    return f"sentence {t}, candidate {fault.candidate} (counted from 0): {fault}"


def advanced(engine: ScoringEngine, contexts: Rows, summaries: Rows) -> Rows:
    """Contexts (M rows) after sentences with summaries (M rows).

    One at a time on a deterministic backend: the bits of a row of a product may depend on how
    many rows there are, and on where in memory it lies, hence the copies that `_take` makes.
    """
    advance = engine.model.context.advance
    with engine.backend.inference():
        if not engine.backend.deterministic:
            return advance(contexts, summaries)
        rows = (np.array([n]) for n in range(len(contexts)))
        return contexts.cat([advance(_take(contexts, n), _take(summaries, n)) for n in rows])


def _take(rows: Rows, places: Indices) -> Rows:
    """A copy of the rows at some places."""
    import torch

    return rows.take(torch.from_numpy(places).to(rows.device))


def _table(kept: CachedScores) -> dict[tuple[int, bytes], Scores]:
    """Scores by sentence and score key, of as many candidates as were cached."""
    if "history" not in kept.arrays:
        return {}
    sizes, sentences = kept.arrays["size"], kept.arrays["sentence"].tolist()
    rows = np.split(kept.arrays["scores"], np.cumsum(sizes)[:-1])
    raw = kept.arrays["history"].tobytes()
    keys = [raw[i : i + KEY_BYTES] for i in range(0, len(raw), KEY_BYTES)]
    return dict(zip(zip(sentences, keys, strict=True), rows, strict=True))
