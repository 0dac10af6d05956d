"""Scores of a document in the cache: by the texts of its hypotheses, by histories, by requests.

The key in the cache is the text itself. A shard is found by the first candidates of its document,
so that `--top` finds the scores of longer lists; a hit if each requested list is a prefix of the
cached one. The texts are compared, not only their digests.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from decoders.problem import Answer, DocumentProblem, Indices
from rerank.corpus.columns import offsets_of, places_of
from rerank.corpus.kbest import KBest
from rerank.files.cache import Cache

Arrays: TypeAlias = dict[str, NDArray[Any]]
LogProbs: TypeAlias = NDArray[np.float32]  # (…, K), as of `lm.scoring`, which loads torch
Sums: TypeAlias = NDArray[np.float64]
Choices: TypeAlias = tuple[int, ...]  # of the sentences just before one, within a window
Result = TypeVar("Result")
KEY_BYTES = 16
SAVED_EVERY = 5.0  # seconds after which new scores of a document go to the cache


@dataclass(frozen=True, slots=True, eq=False)
class ListTexts:
    """Hypotheses of a document's S non-empty lists, one LF-ended line each.

    counts: (S,) candidates of each list; chosen: whether these are not the first candidates of
    the lists in the file, but a selection (`--defects drop`) or more (`KBest.with_last`); side:
    side information of the lists on which scores depend, by kind, S LF-ended lines.
    """

    text: bytes
    counts: NDArray[np.int64]
    chosen: bool = False
    side: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, kbest: KBest, kinds: Sequence[str] = ()) -> ListTexts:
        """The hypotheses of k-best lists, with these kinds of their side information.

        Numbers of sentences count those with candidates, and are 0 for others.
        """
        text = b"".join(line + b"\n" for line in kbest.texts.to_list())
        chosen = not np.array_equal(kbest.ranks, places_of(kbest.counts))
        present = np.flatnonzero(kbest.counts)
        places = np.where(kbest.counts > 0, np.cumsum(kbest.counts > 0), 0)
        side = {}
        for kind in kinds:
            from lm.side_information import NUMBERS  # torch

            lines: Sequence[bytes] = kbest.side[kind]
            if kind in NUMBERS:
                lines = [b"%d" % (places[n - 1] if n else 0) for n in map(int, lines)]
            side[kind] = b"".join(lines[t] + b"\n" for t in present.tolist())
        return cls(text, kbest.counts[present], chosen, side)

    @property
    def side_digest(self) -> bytes:
        """Digest of the side information; empty if there is none."""
        if not self.side:
            return b""
        return hashlib.sha256(repr(sorted(self.side.items())).encode()).digest()

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(S + 1,) index of each list's first candidate among all candidates."""
        return offsets_of(self.counts)

    def lists(self) -> list[bytes]:
        """The text of each list."""
        ends = np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n")) + 1
        starts = np.concatenate([[0], ends])[self.offsets]
        return [self.text[a:b] for a, b in pairwise(starts.tolist())]

    def name(self) -> str:
        """Digest of the first candidate of each list; of all candidates if they are `chosen`.

        And of the side information.
        """
        if self.chosen:
            return hashlib.sha256(self.text + self.side_digest).hexdigest()
        first = (part[: part.index(b"\n") + 1] for part in self.lists())
        return hashlib.sha256(b"".join(first) + self.side_digest).hexdigest()

    def equals(self, other: ListTexts) -> bool:
        """Whether the lists are equal, and their side information."""
        same = self.text == other.text and self.side == other.side
        return same and np.array_equal(self.counts, other.counts)

    def is_prefix_of(self, cached: ListTexts) -> bool:
        """Whether each list is a prefix of the cached list at its place."""
        if self.equals(cached):
            return True
        if len(self.counts) != len(cached.counts) or (self.counts > cached.counts).any():
            return False
        pairs = zip(self.lists(), cached.lists(), strict=True)
        return all(other.startswith(text) for text, other in pairs)


def flat(scores: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Scores of all lists in one array, as `ListScores.problem` reads them."""
    return np.concatenate([np.zeros(0, np.float32), *(array.ravel() for array in scores)])


@dataclass(frozen=True, slots=True, eq=False)
class ListScores:
    """Arrays about the candidates of `scored` lists, for `requested` lists that begin them.

    From the cache, or of scores that were computed just now; then both are the same lists.
    """

    scored: ListTexts
    requested: ListTexts
    arrays: Arrays

    def column(self, name: str) -> NDArray[Any]:
        """One value for each requested candidate, (n,)."""
        counts = self.requested.counts
        rows = np.repeat(self.scored.offsets[:-1], counts) + places_of(counts)
        column: NDArray[Any] = self.arrays[name][rows]
        return column

    def problem(self, order: int) -> DocumentProblem:
        """The search problem of order 0 or 1 with the scores of the requested candidates."""
        blocks = self.blocks(order)
        return Pairwise(blocks) if order else Unary([block[0] for block in blocks])

    def blocks(self, order: int) -> list[LogProbs]:
        """Scores (K_{t-1}, K_t) of requested candidates at order 1, (1, K_t) at order 0."""
        scores, blocks, begin, before = self.arrays["scores"], [], 0, (1, 1)
        for counts in zip(self.scored.counts.tolist(), self.requested.counts.tolist(), strict=True):
            end = begin + before[0] * counts[0]
            block = scores[begin:end].reshape(before[0], counts[0])
            blocks.append(block[: before[1], : counts[1]])
            begin, before = end, counts if order else (1, 1)
        return blocks


@dataclass(slots=True, eq=False)
class ScorerCache:
    """A cache as one scorer uses it; `group` identifies the scorer. No `cache`: always a miss.

    whole: only lists of the same length are a hit, not prefixes of longer ones, whose scores may
    differ in the last bits; order: that of the scores, which from 2 on are by histories; columns:
    names of further arrays, a number for each candidate; least: a number below all scores.
    """

    cache: Cache | None = None
    group: str = ""
    whole: bool = False
    order: int | None = 0
    columns: Sequence[str] = ()
    least: float | None = None

    def look_up(self, requested: ListTexts) -> ListScores | None:
        """Cached arrays for these lists; None is a miss."""
        if self.cache is None:
            return None
        arrays = self.cache.get(self.group, requested.name())
        if arrays is None:
            return None
        if not self._is_sound(arrays):
            self.cache.refuse(self.group, requested.name())
            return None
        cached = ListTexts(arrays["text"].tobytes(), arrays["counts"], side=requested.side)
        if arrays.get("side", np.zeros(0, np.uint8)).tobytes() != requested.side_digest:
            return None
        hit = requested.equals(cached) if self.whole else requested.is_prefix_of(cached)
        return ListScores(cached, requested, arrays) if hit else None

    def _is_sound(self, arrays: Arrays) -> bool:
        """Whether arrays, which may be anybody's, have the types and sizes of those of `save`."""
        kinds = {"text": "u", "counts": "i", "scores": "f", **dict.fromkeys(self.columns, "i")}
        if self.order not in (0, 1):
            kinds |= {"history": "u", "size": "i", "sentence": "i"}
        read = {name: arrays.get(name, np.zeros(())) for name in kinds}
        if any(read[key].ndim != 1 or read[key].dtype.kind != kinds[key] for key in kinds):
            return False
        counts, scores = read["counts"], read["scores"]
        n, lines = int(counts.sum()), read["text"].tobytes()
        if not (counts > 0).all() or lines.count(b"\n") != n or not lines.endswith(b"\n"):
            return n == len(lines) == len(scores) == 0
        low = self.least is not None and (scores <= self.least).any()
        if low or not (scores < np.inf).all() or any(len(read[key]) != n for key in self.columns):
            return False  # NaN, too
        if self.order in (0, 1):
            before = np.append(1, counts[:-1]) if self.order else 1
            return len(scores) == int((counts * before).sum())
        size, sentence = read["size"], read["sentence"]
        sizes = len(sentence), len(read["history"]), len(scores)
        whole = sizes == (len(size), KEY_BYTES * len(size), int(size.sum()))
        return whole and bool(((sentence >= 0) & (sentence < len(counts)) & (size > 0)).all())

    def save(self, texts: ListTexts, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write arrays of these lists to the cache."""
        if self.cache is not None:
            text = np.frombuffer(texts.text, dtype=np.uint8)
            key: Arrays = {"text": text, "counts": texts.counts}
            if texts.side:
                key["side"] = np.frombuffer(texts.side_digest, dtype=np.uint8)
            self.cache.put(self.group, texts.name(), {**arrays, **key})


def digest(text: bytes) -> bytes:
    """`KEY_BYTES` bytes that identify a text."""
    return hashlib.blake2b(text, digest_size=KEY_BYTES).digest()


def split_keys(keys: NDArray[np.uint8]) -> list[bytes]:
    """The keys in an array of a shard."""
    raw = keys.tobytes()
    return [raw[i : i + KEY_BYTES] for i in range(0, len(raw), KEY_BYTES)]


class GrowingShard:
    """Scores that are computed as a search goes on, and written to the cache now and then."""

    def __init__(self) -> None:
        self._grown, self._saved_at = False, monotonic()

    @abstractmethod
    def _write(self) -> None:
        """Write all scores to the cache."""

    def keep(self) -> None:
        """As `save`, if that was not done for a while."""
        if monotonic() - self._saved_at >= SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Put what was scored since the last call into the cache."""
        self._saved_at = monotonic()
        if self._grown:
            self._write()
            self._grown = False  # not before: a signal may end the writing


class HistoryProblem(GrowingShard, DocumentProblem):
    """Log-probabilities of a document's candidates after histories, by sentence and score key.

    engine: of the model; known: scores of earlier runs, if there are any. What was cached may be of
    longer lists, and is as good. Memory: 4 bytes a candidate and about 300 for each history that
    was scored or cached.
    """

    lengths: tuple[int, ...] = ()
    order: int | None = None
    on_demand = False

    engine: Any

    def __init__(self, known: ListScores, cache: ScorerCache, *, order: int | None) -> None:
        super().__init__()
        self.order = order
        self.lengths = tuple(known.requested.counts.tolist())
        self.known, self._score_cache = known, cache
        self._scores: dict[tuple[int, bytes], LogProbs] = {}
        if "history" in known.arrays:
            sizes, sentences = known.arrays["size"], known.arrays["sentence"].tolist()
            rows = np.split(known.arrays["scores"], np.cumsum(sizes)[:-1])
            keys = split_keys(known.arrays["history"])
            self._scores = dict(zip(zip(sentences, keys, strict=True), rows, strict=True))

    @abstractmethod
    def score_key(self, t: int, history: Any) -> bytes:
        """`KEY_BYTES` bytes that are equal for histories after which sentence t scores equally."""

    def extend(self, states: Any, t: int) -> Answer:
        """Scores (N, K_t) after each history; a pass over the list for each that was not scored."""
        return self.extend_together([(self, states, t)])[0]

    def rescore(self, paths: Indices, t: int, horizon: int) -> Sums:
        """Sums (N,) along each path."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    def has_scores(self, t: int, key: bytes) -> bool:
        """Whether the scores of sentence t after a history are known."""
        scores = self._scores.get((t, key))
        return scores is not None and len(scores) >= self.lengths[t]

    def scores_after(self, t: int, keys: Iterable[bytes]) -> LogProbs:
        """Scores (N, K_t) after histories, all of them known."""
        k = self.lengths[t]
        return np.stack([self._scores[t, key][:k] for key in keys])

    def enter(self, t: int, keys: Iterable[bytes], scores: LogProbs) -> None:
        """Add the scores (M, K_t) of sentence t after M >= 1 histories."""
        self._grown = True
        self._scores.update(zip(((t, key) for key in keys), scores, strict=True))

    def _write(self) -> None:
        rows = list(self._scores.values())
        arrays: Arrays = {
            "sentence": np.array([t for t, _ in self._scores], dtype=np.int32),
            "history": np.frombuffer(b"".join(key for _, key in self._scores), dtype=np.uint8),
            "size": np.array(list(map(len, rows)), dtype=np.int32),
            "scores": np.concatenate(rows),
        }
        self._score_cache.save(self.known.scored, {**self.known.arrays, **arrays})


class WindowStates:
    """States of a problem that are the choices of the sentences just before one.

    sentences: how many of them scores depend on, None for all.
    """

    sentences: int | None = None

    def initial(self) -> list[Choices]:
        """The empty history."""
        return [()]

    def select(
        self, successors: list[Choices], parents: Indices, choices: Indices
    ) -> list[Choices]:
        """The histories after the chosen candidates."""
        pairs = zip(parents.tolist(), choices.tolist(), strict=True)
        return [self.recent((*successors[p], c)) for p, c in pairs]

    def recent(self, choices: Choices) -> Choices:
        """The choices that scores depend on."""
        window = self.sentences
        return choices if window is None else choices[max(0, len(choices) - window) :]


class Unscored(NamedTuple):
    """Histories before sentence t of a problem that are to be scored, by score key."""

    problem: Any
    t: int
    histories: dict[bytes, Any]


def unscored(requests: Iterable[tuple[HistoryProblem, Iterable[Any], int]]) -> list[Unscored]:
    """The histories of requests (problem, histories, t) whose scores are not known.

    Those of one sentence of a problem together, and those of a score key once.
    """
    groups: dict[tuple[int, int], Unscored] = {}
    for problem, histories, t in requests:
        group = groups.setdefault((id(problem), t), Unscored(problem, t, {}))
        for history in histories:
            key = problem.score_key(t, history)
            if key not in group.histories and not problem.has_scores(t, key):
                group.histories[key] = history
    return [group for group in groups.values() if group.histories]


def in_time(items: Sequence[Result]) -> Iterator[Sequence[Result]]:
    """Parts of the items, in order: few at first, then as many as take a part of `SAVED_EVERY`."""
    begin, size = 0, 4
    while begin < len(items):
        began = monotonic()
        yield items[begin : begin + size]
        begin += size
        share = SAVED_EVERY / 2 / max(1e-3, monotonic() - began)
        size = max(1, min(int(size * share), 4 * size))


def by_engine(
    engines: Sequence[Any], score: Callable[[Any, list[int]], Sequence[Result]]
) -> list[Result]:
    """Results for requests to these engines, those of one engine by one call with their numbers."""
    results: dict[int, Result] = {}
    for engine in {id(engine): engine for engine in engines}.values():
        numbers = [n for n, other in enumerate(engines) if other is engine]
        results.update(zip(numbers, score(engine, numbers), strict=True))
    return [results[n] for n in range(len(engines))]
