"""A document under a language model that is given the next sentence, too: scored along paths.

The score of a sentence is known once the choice of the next one is, so that no decoder can extend
histories by it. It is searched by sweeps, which need `rescore` alone, and the next sentence is that
of the path that they change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from decoders.problem import Answer, Floats, Indices, States, UnsuitedDecoder, check_path
from lm.scoring import ScoringEngine
from lm.sentences import PositionStates, ReadSentences, Rows
from lm.side_information import SideText
from lm.trie import Candidates, build
from rerank.scorers.cached_scores import Arrays, ListScores, ScorerCache, Sums, digest
from rerank.scorers.histories import (
    ContextualProblem,
    History,
    Reading,
    by_rows,
    enter,
    gathered,
    read,
    take,
)


class _Sentences(NamedTuple):
    """Candidates read in contexts, and which M of the scores are wanted, (M,) by row and column."""

    reading: Reading
    keys: list[bytes]
    rows: Indices
    columns: Indices


class AcausalProblem(ContextualProblem):
    """Log-probabilities of candidates given the earlier sentences and the next one, of a path.

    What the model's context takes from a sentence depends on its words alone, so that contexts
    need no hidden states. Memory: two vectors a candidate, and about 130 bytes for each score that
    was computed.
    """

    causal = False

    def __init__(
        self,
        engine: ScoringEngine,
        known: ListScores,
        encode: Callable[[], tuple[Candidates, Arrays]],
        *,
        label: str,
    ) -> None:
        super().__init__(engine, known, ScorerCache(), encode, order=None, label=label)
        self._vectors: dict[int, tuple[Rows, Rows]] = {}
        self._read: dict[bytes, float] = {}

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, States, int]]) -> list[Answer]:
        """UnsuitedDecoder: there are no scores of histories."""
        raise UnsuitedDecoder("scores depend on the next sentence; search by sweeps")

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums (N,) of sentences t − 1 … t + horizon of paths of many documents, cut at both ends.

        One batch for each model. O(N) sentences are read for each, those of different beginnings,
        choices or next choices that were not read before.
        """
        spans = [
            (problem, paths, max(0, t - 1), min(t + horizon, len(problem.lengths) - 1))
            for problem, paths, t, horizon in requests
        ]
        wanted = [sentences for problem, *span in spans for sentences in problem._unread(*span)]
        answers = read([sentences.reading for sentences in wanted])
        for (reading, keys, rows, columns), (scores, _) in zip(wanted, answers, strict=True):
            reading[0]._read.update(zip(keys, scores[rows, columns].tolist(), strict=True))
        return [problem._sums(*span) for problem, *span in spans]

    def scores_within(self, choices: Sequence[int]) -> list[Floats]:
        """Scores (K_t,) of all candidates of each sentence, given the others of a path."""
        check_path(self, choices)
        if not choices:
            return []
        path, asked = np.array([choices], dtype=np.intp), []
        walk = self.walk(path, 0, len(choices) - 1)
        for t in range(len(choices)):
            following = path[:, t + 1] if t + 1 < len(choices) else None
            entered = self._entered(t, self.contexts(walk.histories), following)
            asked.append((self, t, self.sentence(t), entered))
            walk.advance(*walk.children())
        return [scores[0] for scores, _ in read(asked)]

    def _sums(self, paths: Indices, first: int, last: int) -> Sums:
        """Sums (N,) of scores that were read, from the first sentence to the last."""
        totals = np.zeros(len(paths))
        for t in range(first, last + 1):
            totals += [self._read[_key(path, t)] for path in paths[:, : t + 2]]
        return totals

    def _unread(self, paths: Indices, first: int, last: int) -> Iterator[_Sentences]:
        """Sentences of paths (N, S) that are still to be read, first … last."""
        walk = self.walk(paths, first, last - first)
        for t in range(first, last + 1):
            contexts = self.contexts(walk.histories)
            rows: dict[bytes, int] = {}
            for n, path in enumerate(paths[:, : t + 2]):
                if (key := _key(path, t)) not in self._read:
                    rows.setdefault(key, n)
            if rows:
                chosen = np.array([*rows.values()])
                yield from self._readable(t, [*rows], paths[chosen], contexts, walk.nodes[chosen])
            walk.advance(*walk.children())

    def _readable(
        self, t: int, keys: list[bytes], paths: Indices, contexts: Rows, nodes: Indices
    ) -> Iterator[_Sentences]:
        """Sentence t of paths (M, S) of these keys, in as few lists as contexts or candidates.

        nodes: (M,) row of each path's beginning among the contexts.
        """
        last = t + 1 == len(self.lengths)
        following = np.zeros_like(nodes) if last else paths[:, t + 1]
        pairs, places = np.unique(np.stack([nodes, following]), axis=1, return_inverse=True)
        places = places.reshape(-1)
        entered = self._entered(t, take(contexts, pairs[0]), None if last else pairs[1])
        choices, candidates = np.unique(paths[:, t], return_inverse=True)
        whole = self.engine.backend.deterministic or len(choices) > pairs.shape[1]
        # whole lists in one context each, or one candidate each in all of its contexts
        groups = places if whole else candidates
        for group in np.unique(groups).tolist():
            members = np.flatnonzero(groups == group)
            if whole:
                lists, columns = self.sentence(t), paths[members, t]
                context, rows = take(entered, [group]), np.zeros_like(members)
            else:
                lists, columns = self.sentence(t, int(choices[group])), np.zeros_like(members)
                context, rows = take(entered, places[members]), np.arange(len(members))
            names = [keys[n] for n in members.tolist()]
            yield _Sentences((self, t, lists, context), names, rows, columns)

    def _sentence_key(self, t: int, choice: int) -> bytes:
        """The choice itself."""
        return choice.to_bytes(8, "little")

    def _follow(self, histories: list[History]) -> None:
        """Compute the contexts of histories from those before them; nothing is read."""
        t = histories[0].t - 1
        contexts = gathered([h.before for h in histories if h.before is not None])
        summaries = take(self._vectors_of(t)[0], [history.choice for history in histories])
        enter(histories, self.advanced(t, contexts, summaries))

    def _entered(self, t: int, contexts: Rows, following: Indices | None) -> Rows:
        """Contexts (M rows) of sentence t given the next choices, None where there is no next."""
        context, device = self.engine.model.context, self.engine.backend.device
        if following is None:
            nothing = SideText(np.zeros(0, np.int32), np.zeros(2, np.int64))
            with self.engine.counts.timed(self.engine.backend):
                side = context.encoded(Rows.of(nothing.rows(np.zeros(1, np.int64), device)))
            side = side.repeat_interleave(len(contexts))
        else:
            side = take(self._vectors_of(t + 1)[1], following)
        return by_rows(self.engine, context.enter, contexts, side)

    def _vectors_of(self, t: int) -> tuple[Rows, Rows]:
        """What the context takes from each candidate of sentence t: read, and as the next one."""
        if t not in self._vectors:
            backend = self.engine.backend
            with self.engine.counts.timed(backend):
                self._vectors[t] = backend.with_fewer_tokens(lambda: self._encoded(t))
        return self._vectors[t]

    def _encoded(self, t: int) -> tuple[Rows, Rows]:
        context, device = self.engine.model.context, self.engine.backend.device
        candidates = self.sentence(t)
        places = np.arange(len(candidates.offsets) - 1)
        forest = build(candidates, places, np.zeros_like(places), 1)
        unread = PositionStates(self.engine.model.embedding.weight.new_zeros(len(forest), 0))
        summary = context.summary(ReadSentences(forest.positions(device), unread))
        words = SideText(candidates.tokens, candidates.offsets).rows(places, device)
        return summary, context.encoded(Rows.of(words))


def _key(path: Indices, t: int) -> bytes:
    """Digest of the beginning of a path and of a sentence t."""
    return digest(t.to_bytes(8, "little") + path.tobytes())
