"""A document under a language model that is given the next sentence, too: scored along paths.

The score of a sentence is known once the choice of the next one is, so that no decoder can extend
histories by it. It is searched by sweeps, which need `rescore` alone, and the next sentence is that
of the path that they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.problem import (
    Answer,
    DocumentProblem,
    Floats,
    Indices,
    States,
    Successors,
    UnsuitedDecoder,
    check_path,
)
from lm.scoring import ScoringEngine
from lm.sentences import ReadSentences, Rows
from lm.side_information import SideText
from lm.trie import Candidates, build
from rerank.scorers.histories import advanced, by_rows, digest, read, take

Sums = NDArray[np.float64]


class AcausalProblem(DocumentProblem):
    """Log-probabilities of candidates given the earlier sentences and the next one, of a path.

    What the model's context takes from a sentence depends on its words alone, so that contexts
    need no hidden states. lists: candidates of the T sentences in the model's words. Memory: two
    vectors a candidate, and about 130 bytes for each score that was computed.
    """

    lengths: tuple[int, ...] = ()
    order = None
    causal = False

    def __init__(self, engine: ScoringEngine, lists: Candidates, *, label: str) -> None:
        self.engine, self.lists, self.label = engine, lists, label
        self.lengths = lists.counts
        self._vectors: dict[int, tuple[Rows, Rows]] = {}
        self._noted = {_key(np.zeros(0, np.intp), 0): engine.model.context.start(1).detach()}
        self._scores: dict[bytes, float] = {}

    def initial(self) -> States:
        """UnsuitedDecoder: there are no states."""
        raise UnsuitedDecoder("scores depend on the next sentence; search by sweeps")

    def extend(self, states: States, t: int) -> Answer:
        """UnsuitedDecoder: there are no states."""
        return self.initial()  # type: ignore[no-any-return]  # it raises

    def select(self, successors: Successors, parents: Indices, choices: Indices) -> States:
        """UnsuitedDecoder: there are no states."""
        return self.initial()

    def rescore(self, paths: Indices, t: int, horizon: int) -> Sums:
        """Sums (N,) of the scores of sentences t − 1 … t + horizon of each path, cut at both ends.

        O(N) sentences are read for each, those of different beginnings, choices or next choices
        that were not read before.
        """
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums along paths of many documents, read in one batch for each model."""
        wanted = [
            one
            for problem, paths, t, horizon in requests
            for one in problem._unread(paths, *problem._span(t, horizon))
        ]
        answers = read([one.reading() for one in wanted])
        for one, (scores, _) in zip(wanted, answers, strict=True):
            one.problem._scores.update(zip(one.keys, one.own(scores), strict=True))
        return [
            problem._sums(paths, *problem._span(t, horizon))
            for problem, paths, t, horizon in requests
        ]

    def scores_within(self, choices: Sequence[int]) -> list[Floats]:
        """Scores (K_t,) of all candidates of each sentence, given the others of a path."""
        check_path(self, choices)
        if not choices:
            return []
        path, last = np.array([choices], dtype=np.intp), len(choices) - 1
        asked: list[tuple[AcausalProblem, int, Candidates, Rows]] = []
        for t, contexts, _ in self._contexts(path, 0, last):
            entered = self._entered(t, contexts, path[:, t + 1] if t < last else None)
            asked.append((self, t, self.lists.part(t, t + 1), entered))
        return [scores[0] for scores, _ in read(asked)]

    def _span(self, t: int, horizon: int) -> tuple[int, int]:
        """The first and the last sentence whose scores change with sentence t within a horizon."""
        return max(0, t - 1), min(t + horizon, len(self.lengths) - 1)

    def _sums(self, paths: Indices, first: int, last: int) -> Sums:
        """Sums (N,) of scores that were read, from the first sentence to the last."""
        totals = np.zeros(len(paths))
        for t in range(first, last + 1):
            totals += [self._scores[_key(path, t)] for path in paths[:, : t + 2]]
        return totals

    def _unread(self, paths: Indices, first: int, last: int) -> Iterator[_Sentences]:
        """Sentences of paths (N, T) that are still to be read, first … last."""
        check_path(self, paths.max(axis=0).tolist())
        for t, contexts, nodes in self._contexts(paths, first, last):
            rows: dict[bytes, int] = {}
            for n, path in enumerate(paths[:, : t + 2]):
                if (key := _key(path, t)) not in self._scores:
                    rows.setdefault(key, n)
            if rows:
                chosen = np.array([*rows.values()])
                yield from self._readable(t, [*rows], paths[chosen], contexts, nodes[chosen])

    def _readable(
        self, t: int, keys: list[bytes], paths: Indices, contexts: Rows, nodes: Indices
    ) -> Iterator[_Sentences]:
        """Sentence t of paths (M, T) of these keys, in as few lists as contexts or candidates.

        nodes: (M,) row of each path's beginning among the contexts.
        """
        following = paths[:, t + 1] if t + 1 < len(self.lengths) else np.zeros_like(nodes)
        pairs, places = np.unique(np.stack([nodes, following]), axis=1, return_inverse=True)
        places = places.reshape(-1)
        given = take(contexts, pairs[0])
        entered = self._entered(t, given, pairs[1] if t + 1 < len(self.lengths) else None)
        choices, candidates = np.unique(paths[:, t], return_inverse=True)
        whole = self.engine.backend.deterministic or len(choices) > pairs.shape[1]
        # whole lists in one context each, or one candidate each in all of its contexts
        groups = places if whole else candidates
        for group in np.unique(groups).tolist():
            own = np.flatnonzero(groups == group)
            names = [keys[n] for n in own.tolist()]
            if whole:
                context = take(entered, np.array([group]))
                lists, rows = self.lists.part(t, t + 1), np.zeros_like(own)
                yield _Sentences(self, t, names, lists, context, rows, paths[own, t])
            else:
                lists = self.lists.one(t, int(choices[group]))
                context, rows = take(entered, places[own]), np.arange(len(own))
                yield _Sentences(self, t, names, lists, context, rows, np.zeros_like(own))

    def _contexts(
        self, paths: Indices, first: int, last: int
    ) -> Iterator[tuple[int, Rows, Indices]]:
        """Contexts before sentences first … last of paths (N, T), no next sentence entered yet.

        Each: the sentence, the contexts of different beginnings (M rows), and (N,) which of them
        each path has.
        """
        alike = (paths[:, :first] == paths[:1, :first]).all(axis=0)
        shared = first if alike.all() else int(alike.argmin())
        contexts, nodes = self._noted_context(paths[0, :shared]), np.zeros(len(paths), np.intp)
        for t in range(shared, last + 1):
            if t >= first:
                yield t, contexts, nodes
            if t < last:
                branches, nodes = np.unique(
                    nodes * self.lengths[t] + paths[:, t], return_inverse=True
                )
                parents, choices = np.divmod(branches, self.lengths[t])
                contexts = self._advanced(t, take(contexts, parents), choices)

    def _noted_context(self, beginning: Indices) -> Rows:
        """The context, one row, after the beginning of a path; those on the way are remembered."""
        t = len(beginning)
        while (context := self._noted.get(_key(beginning[:t], t))) is None:
            t -= 1
        for s in range(t, len(beginning)):
            context = self._advanced(s, context, beginning[s : s + 1])
            self._noted[_key(beginning[: s + 1], s + 1)] = context
        return context

    def _advanced(self, t: int, contexts: Rows, choices: Indices) -> Rows:
        """Contexts (M rows) after candidates of sentence t."""
        summaries = take(self._vectors_of(t)[0], choices)
        return advanced(self.engine, contexts, summaries)

    def _entered(self, t: int, contexts: Rows, following: Indices | None) -> Rows:
        """Contexts (M rows) of sentence t given the next choices, None where there is no next."""
        context, device = self.engine.model.context, self.engine.backend.device
        if following is None:
            nothing = SideText(np.zeros(0, np.int32), np.zeros(2, np.int64))
            side = self.engine.timed(
                lambda: context.encoded(Rows.of(nothing.rows(np.zeros(1, np.int64), device)))
            ).repeat_interleave(len(contexts))
        else:
            side = take(self._vectors_of(t + 1)[1], following)
        return by_rows(self.engine, context.enter, contexts, side)

    def _vectors_of(self, t: int) -> tuple[Rows, Rows]:
        """What the context takes from each candidate of sentence t: read, and as the next one."""
        if t not in self._vectors:
            self._vectors[t] = self.engine.timed(lambda: self._encoded(self.lists.part(t, t + 1)))
        return self._vectors[t]

    def _encoded(self, candidates: Candidates) -> tuple[Rows, Rows]:
        context, device = self.engine.model.context, self.engine.backend.device
        places = np.arange(len(candidates.offsets) - 1)
        forest = build(candidates, places, np.zeros_like(places), 1)
        unread = self.engine.model.embedding.weight.new_zeros(len(forest), 0)
        summary = context.summary(ReadSentences(forest.positions(device), unread))
        words = SideText(candidates.tokens, candidates.offsets).rows(places, device)
        return summary, context.encoded(Rows.of(words))


@dataclass(frozen=True, slots=True, eq=False)
class _Sentences:
    """Candidates of sentence t of a problem, read in contexts, and which of the scores are wanted.

    keys: of the M scores wanted; rows, columns: (M,) of each its context and its candidate.
    """

    problem: AcausalProblem
    t: int
    keys: list[bytes]
    candidates: Candidates
    contexts: Rows
    rows: Indices
    columns: Indices

    def reading(self) -> tuple[AcausalProblem, int, Candidates, Rows]:
        """The request for the scores of all of them."""
        return self.problem, self.t, self.candidates, self.contexts

    def own(self, scores: NDArray[np.float32]) -> list[float]:
        """Those that are wanted of the scores of all of them."""
        found: list[float] = scores[self.rows, self.columns].tolist()
        return found


def _key(path: Indices, t: int) -> bytes:
    """Digest of the beginning of a path and of a sentence t."""
    return digest(t.to_bytes(8, "little") + path.tobytes())
