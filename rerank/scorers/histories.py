"""Documents under our own models: histories, and their contexts as rows of tensors.

Histories that a model cannot tell apart have equal keys, and are scored once. The context of a
history whose scores came from the cache is computed lazily from its nearest ancestor with a
context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from decoders.problem import Answer, Indices, check_path
from lm.backend import on_device
from lm.scoring import LogProbError, ScoringEngine, after
from lm.sentences import Rows
from lm.trie import Candidates
from rerank.errors import RerankError
from rerank.scorers.cached_scores import (
    KEY_BYTES,
    Arrays,
    HistoryProblem,
    ListScores,
    LogProbs,
    ScorerCache,
    Sums,
    by_engine,
    digest,
    unscored,
)

Reading: TypeAlias = "tuple[ContextualProblem, int, Candidates, Rows]"


@dataclass(slots=True, eq=False)
class History:
    """A history before sentence t; equal keys, equal contexts; equal score keys, equal scores.

    before, choice: the history that it goes on from, and the candidate that follows, as long as
    its context is not computed; number: its place among the histories that were made with it. rows,
    row: the context is this row of a batch, if it is computed.
    """

    t: int
    key: tuple[bytes, ...]
    score_key: bytes
    before: History | None = None
    choice: int = 0
    number: int = 0
    rows: Rows | None = None
    row: int = 0


def take(rows: Rows, places: Sequence[int] | Indices) -> Rows:
    """A copy of the rows at some places."""
    return rows.take(*on_device((np.asarray(places, np.int64),), rows.device))


def enter(histories: Sequence[History], contexts: Rows) -> None:
    """Set the contexts (M rows) of M histories, so that earlier ones need not stay in memory."""
    for row, history in enumerate(histories):
        history.rows, history.row, history.before = contexts, row, None


def gathered(histories: Sequence[History]) -> Rows:
    """Copies of the contexts of histories, all of them computed."""
    batches: dict[int, list[int]] = {}
    for n, history in enumerate(histories):
        batches.setdefault(id(history.rows), []).append(n)
    parts: list[Rows] = []
    for numbers in batches.values():
        if (rows := histories[numbers[0]].rows) is None:
            raise ValueError("histories without an ancestor that has a context")
        parts.append(take(rows, [histories[n].row for n in numbers]))
    order = np.argsort([n for numbers in batches.values() for n in numbers])
    return parts[0] if len(parts) == 1 else take(Rows.cat(parts), order)


class ScoredHistories(NamedTuple):
    """Histories after which the candidates of sentence t were scored.

    places: (N,) number of each among M histories of different score keys that were scored now, −1
    if its scores were known before. summary: (M · K rows) what the context takes from each
    candidate after these; None if there are none.
    """

    t: int
    histories: Sequence[History]
    places: Indices
    summary: Rows | None = None

    def pairs(
        self, parents: Indices, choices: Indices, k: int
    ) -> tuple[Indices, Rows, Rows] | None:
        """Contexts and summaries (M rows) of the pairs of history and candidate that have both.

        First the numbers (M,) of these pairs. None if there are no such pairs.
        """
        have = np.array([history.rows is not None for history in self.histories])
        both = np.flatnonzero((have & (self.places >= 0))[parents])
        if self.summary is None or not both.size:
            return None
        contexts = gathered([self.histories[p] for p in parents[both].tolist()])
        return both, contexts, take(self.summary, self.places[parents[both]] * k + choices[both])


class ContextualProblem(HistoryProblem):
    """A document under a model of our own; a state is a list of histories.

    order: the model's, or None to treat every history as different. `encode` gives the
    candidates in the model's words, always the same ones, and counts of these; side: side
    information of the S sentences, if the model needs it.
    """

    def __init__(
        self,
        engine: ScoringEngine,
        known: ListScores,
        cache: ScorerCache,
        encode: Callable[[], tuple[Candidates, Arrays]],
        *,
        order: int | None,
        label: str,
        side: Rows | None = None,
    ) -> None:
        super().__init__(known, cache, order=order)
        self.engine = engine
        self.label, self._encode, self._side = label, encode, side
        # contexts that changes inside paths begin from
        self._noted: dict[tuple[int, tuple[bytes, ...]], Rows] = {}
        self._beginnings: dict[bytes, History] = {}  # of paths, by their choices
        self._texts: list[list[bytes]] | None = None
        if order is None and not engine.model.context.merges_sentences:
            self._texts = [text.split(b"\n") for text in known.requested.lists()]

    def sentence(self, t: int, choice: int | None = None) -> Candidates:
        """The candidates of sentence t in the model's words, or one of them."""
        lists, _ = self._encode()
        return lists.part(t, t + 1) if choice is None else lists.one(t, choice)

    def score_key(self, t: int, history: History) -> bytes:
        """That of the history."""
        return history.score_key

    def _history(self, t: int, key: tuple[bytes, ...]) -> History:
        if self.order is None:
            return History(t, key, key[0])
        return History(t, key, digest(self.engine.model.context.history_key(key)))

    def initial(self) -> list[History]:
        """The empty history, in the start context."""
        context, side = self.engine.model.context, self._sides[0]
        start = context.start(1).detach()
        if side is not None:
            with self.engine.backend.inference():
                start = context.enter(start, side)
        empty = self._history(0, (bytes(KEY_BYTES),) if self.order is None else ())
        enter([empty], start)
        return [empty]

    def _sentence_key(self, t: int, choice: int) -> bytes:
        """Bytes by which the model tells a candidate from others in a history."""
        if self._texts is not None:
            return self._texts[t][choice]
        words = self.sentence(t, choice).tokens
        key: bytes = self.engine.model.context.sentence_key(words)
        return key

    @cached_property
    def _sides(self) -> list[Rows | None]:
        """Side information of each sentence as the context takes it, a row; None after the last."""
        n = len(self.lengths)
        if self._side is None:
            return [None] * (n + 1)
        with self.engine.backend.inference():
            encoded = self.engine.model.context.encoded(self._side)
        return [*(encoded.take(slice(t, t + 1)) for t in range(n)), None]

    def advanced(self, t: int, contexts: Rows, summaries: Rows) -> Rows:
        """Contexts (M rows) in which sentence t + 1 is read, after summaries (M rows) of t."""
        context, side = self.engine.model.context, self._sides[t + 1]

        def following(before: Rows, summary: Rows) -> Rows:
            after: Rows = context.advance(before, summary)
            if side is not None:
                after = context.enter(after, side.repeat_interleave(len(after)))
            return after

        return by_rows(self.engine, following, contexts, summaries)

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, list[History], int]]) -> list[Answer]:
        """Scores for histories of many documents, in one batch for each model."""
        work = unscored(requests)
        answers = read([(p, t, p.sentence(t), p.contexts([*new.values()])) for p, t, new in work])
        scored: dict[tuple[int, int], tuple[dict[bytes, History], Rows]] = {}
        for (problem, t, new), (scores, summary) in zip(work, answers, strict=True):
            problem.enter(t, new, scores)
            problem.keep()
            scored[id(problem), t] = new, summary
        return [
            problem._answer(t, states, *scored.get((id(problem), t), ({}, None)))
            for problem, states, t in requests
        ]

    def _answer(
        self, t: int, histories: list[History], new: Mapping[bytes, History], summary: Rows | None
    ) -> Answer:
        """Scores after histories, of which those of the `new` score keys were scored now.

        Equal histories share a context, those of equal scores need not.
        """
        numbers = {key: n for n, key in enumerate(new)}
        places = np.array([numbers.get(history.score_key, -1) for history in histories])
        for history in histories:
            scored = new.get(history.score_key)
            if scored is not None and history.rows is None and scored.key == history.key:
                history.rows, history.row, history.before = scored.rows, scored.row, None
        scores = self.scores_after(t, (history.score_key for history in histories))
        return scores, ScoredHistories(t, histories, places, summary)

    def select(
        self, successors: ScoredHistories, parents: Indices, choices: Indices
    ) -> list[History]:
        """The histories after the chosen candidates."""
        t, histories, *_ = successors
        children = self.children(histories, parents, choices)
        if pairs := successors.pairs(parents, choices, self.lengths[t]):
            known, contexts, summaries = pairs
            enter([children[n] for n in known.tolist()], self.advanced(t, contexts, summaries))
        return children

    def children(
        self, histories: Sequence[History], parents: Indices, choices: Indices
    ) -> list[History]:
        """Histories with one more candidate each, their contexts not computed yet."""
        children: list[History] = []
        for parent, choice in zip(parents.tolist(), choices.tolist(), strict=True):
            before = histories[parent]
            sentence = self._sentence_key(before.t, choice)
            if self.order is None:
                key: tuple[bytes, ...] = (digest(before.key[0] + sentence),)
            else:
                key = (*before.key, sentence)[-self.order :]
            history = self._history(before.t + 1, key)
            history.before, history.choice, history.number = before, choice, len(children)
            children.append(history)
        return children

    def average(self, successors: ScoredHistories, weights: Sums) -> list[History]:
        """The states after each candidate whose contexts are weighted means, `weights: (N, K_t)`.

        The key is a digest of the context. O(N K_t) contexts beside the cost of the scores,
        which is paid again for those that were cached.
        """
        import torch

        if not self.engine.model.context.averages:
            refused: list[History] = super().average(successors, weights)
            return refused
        (n, k), t = weights.shape, successors.t
        parents, choices = np.divmod(np.arange(n * k), k)
        known = successors.pairs(parents, choices, k)
        if known is not None and len(known[0]) == n * k:
            _, contexts, summaries = known
        else:
            contexts = self.contexts(successors.histories)
            ((_, summaries),) = read([(self, t, self.sentence(t), contexts)])
            contexts = contexts.repeat_interleave(k)
        pairs = self.advanced(t, contexts, summaries)
        with self.engine.backend.inference():
            means = [
                torch.einsum(
                    "nk,nkc->kc", torch.from_numpy(weights).to(column), column.view(n, k, -1)
                ).view(k, *column.shape[1:])
                for column in pairs.tensors
            ]
        raw = [mean.flatten(1).cpu().contiguous().view(torch.uint8).numpy() for mean in means]
        keys = [digest(row.tobytes()) for row in np.concatenate(raw, axis=1)]
        histories = [self._history(t + 1, (key,)) for key in keys]
        enter(histories, Rows.of(*means))
        return histories

    def contexts(self, histories: Sequence[History]) -> Rows:
        """Contexts (M rows) of histories.

        They are computed from the nearest ancestors that have one, in a short pass for each
        history on the way that has none, all of a sentence together.
        """
        chain, lacking = [], self._lacking(histories)
        while lacking:
            chain.append(lacking)
            before = [history.before for history in lacking if history.before is not None]
            lacking = self._lacking(sorted(before, key=lambda history: history.number))
        for lacking in reversed(chain):
            self._follow(lacking)
        return gathered(histories)

    def _follow(self, histories: list[History]) -> None:
        """Compute the contexts of histories from those before them."""
        follow([(self, histories)])

    def _lacking(self, histories: Sequence[History]) -> list[History]:
        """Those that have no context, once the noted contexts are entered."""
        for history in histories:
            noted = self._noted.get((history.t, history.key)) if history.rows is None else None
            if noted is not None:
                enter([history], noted)
        return [history for history in dict.fromkeys(histories) if history.rows is None]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums along paths of many documents, which advance together, a sentence at a time.

        O(t) for the histories before t, whose contexts are stored; then a list for each
        distinct history, which is cached, and a candidate for each distinct history of every
        further sentence, each once for all the contexts in which it stands.
        """
        walks = [problem.walk(paths, t, horizon) for problem, paths, t, horizon in requests]
        if walking := [walk for walk in walks if walk.t <= walk.last]:
            answers = cls.extend_together([(w.problem, w.histories, w.t) for w in walking])
            for walk, (scores, successors) in zip(walking, answers, strict=True):
                walk.totals += scores[walk.nodes, walk.paths[:, walk.t]]
                parents, choices, of_path = walk.branches()
                walk.advance(walk.problem.select(successors, parents, choices), of_path)
        while walking := [walk for walk in walks if walk.t <= walk.last]:
            for walk in walking:
                walk.problem.contexts(walk.histories)
            stepped = [walk.children() for walk in walking]
            scored = follow(
                [(walk.problem, new) for walk, (new, _) in zip(walking, stepped, strict=True)]
            )
            for walk, (histories, of_path), scores in zip(walking, stepped, scored, strict=True):
                walk.totals += scores[of_path]
                walk.advance(histories, of_path)
        return [walk.totals for walk in walks]

    def walk(self, paths: Indices, t: int, horizon: int) -> Walk:
        """Paths followed up to sentence t, the contexts of their histories computed."""
        check_path(self, paths.max(axis=0).tolist())
        last = min(t + horizon, len(self.lengths) - 1)
        alike = (paths[:, :t] == paths[0, :t]).all(axis=0)
        shared = t if alike.all() else int(alike.argmin())
        begin = shared
        while (known := self._beginnings.get(paths[0, :begin].tobytes())) is None and begin:
            begin -= 1
        histories = self.initial() if known is None else [known]
        n = len(paths)
        walk = Walk(self, paths, last, begin, histories, np.zeros(n, np.intp), np.zeros(n))
        passed = [*walk.histories]
        while passed[-1].before is not None:
            passed.append(passed[-1].before)
        while walk.t < t:
            walk.advance(*walk.children())
            passed += walk.histories
            if walk.t <= shared:
                self._beginnings[paths[0, : walk.t].tobytes()] = walk.histories[0]
        if walk.t <= last:
            self.contexts(walk.histories)
            for history in passed:  # with contexts computed on the way, too
                place = history.t, history.key
                if history.rows is not None and place not in self._noted:
                    self._noted[place] = gathered([history])
        return walk


@dataclass(slots=True, eq=False)
class Walk:
    """Paths (N, S) of a problem, followed up to sentence t.

    histories: M distinct ones before sentence t; nodes: (N,) which of them each path has; totals:
    (N,) scores so far; last: the last sentence that counts.
    """

    problem: ContextualProblem
    paths: Indices
    last: int
    t: int
    histories: list[History]
    nodes: Indices
    totals: Sums

    def branches(self) -> tuple[Indices, Indices, Indices]:
        """Distinct pairs of candidate of sentence t and history: their parents and choices (B,).

        In the order of the candidates. Last the pair (N,) of each path.
        """
        chosen = self.paths[:, self.t]
        if (self.nodes == self.nodes[0]).all() and (chosen == chosen[0]).all():
            return self.nodes[:1], chosen[:1], np.zeros_like(chosen)
        n = len(self.histories)
        pairs, of_path = np.unique(chosen * n + self.nodes, return_inverse=True)
        choices, parents = np.divmod(pairs, n)
        return parents, choices, of_path

    def children(self) -> tuple[list[History], Indices]:
        """The distinct histories after sentence t, and which of them each path has."""
        parents, choices, of_path = self.branches()
        return self.problem.children(self.histories, parents, choices), of_path

    def advance(self, histories: list[History], nodes: Indices) -> None:
        """Go to the next sentence, before which these are the histories."""
        self.histories, self.nodes = histories, nodes
        self.t += 1


# Work of the scoring engine


def read(requests: Sequence[Reading]) -> list[tuple[LogProbs, Rows]]:
    """Scores (M, K) of K candidates after M contexts, and summaries (M · K rows) of these.

    Each request: problem, sentence t for messages, candidates, contexts. One batch for each model.
    RerankError naming scorer, document and sentence.
    """

    def score(engine: ScoringEngine, numbers: list[int]) -> list[tuple[LogProbs, Rows]]:
        try:
            return after(engine, [requests[n][2:] for n in numbers])
        except LogProbError as fault:
            problem, t, *_ = requests[numbers[fault.list or 0]]
            raise RerankError(f"{problem.label}: {located(fault, t)}") from None
        except MemoryError as fault:
            advice = "keep fewer candidates with --top, or a narrower --beam"
            raise RerankError(f"{requests[numbers[0]][0].label}: {fault}; {advice}") from None

    return by_engine([problem.engine for problem, *_ in requests], score)


def located(fault: LogProbError, t: int) -> str:
    """An error with its place in the document; t counts sentences that have candidates."""
    return f"sentence {t}, candidate {fault.candidate} (counted from 0): {fault}"


def follow(work: Sequence[tuple[ContextualProblem, list[History]]]) -> list[LogProbs]:
    """Scores (M,) of the last candidates of M histories, whose contexts are computed.

    The contexts before them are known. Only these candidates are read, each run of equal choices
    together; but whole lists on a deterministic backend, as for a search.
    """
    requests: list[Reading] = []
    owners: list[tuple[int, int]] = []  # of each: its request, and the candidate's place in it
    before: list[Rows] = []
    for n, (problem, histories) in enumerate(work):
        contexts = gathered([h.before for h in histories if h.before is not None])
        before.append(contexts)
        t, choices = histories[0].t - 1, np.array([history.choice for history in histories])
        whole = problem.engine.backend.deterministic
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(choices)) + 1), len(choices)]):
            choice = int(choices[begin])
            candidates = problem.sentence(t, None if whole else choice)
            requests.append((problem, t, candidates, contexts.take(slice(begin, end))))
            owners.append((n, choice if whole else 0))
    scores: list[list[LogProbs]] = [[] for _ in work]
    summaries: list[list[Rows]] = [[] for _ in work]
    for (n, place), (of_lists, summary) in zip(owners, read(requests), strict=True):
        scores[n].append(of_lists[:, place])
        summaries[n].append(summary.take(slice(place, None, of_lists.shape[1])))
    for (problem, histories), contexts, parts in zip(work, before, summaries, strict=True):
        enter(histories, problem.advanced(histories[0].t - 1, contexts, Rows.cat(parts)))
    return [np.concatenate(parts) for parts in scores]


def by_rows(engine: ScoringEngine, function: Callable[..., Rows], *batches: Rows) -> Rows:
    """What a function makes of batches of M rows each.

    One row at a time on a deterministic backend: the bits of a row of a product may depend on how
    many rows there are, and on where in memory it lies, hence the copies that `take` makes.
    """
    with engine.backend.inference():
        if not engine.backend.deterministic:
            return function(*batches)
        places = (np.array([n]) for n in range(len(batches[0])))
        return Rows.cat([function(*(take(rows, place) for rows in batches)) for place in places])
