"""Log-probabilities of k-best candidates, prefix by prefix.

By what the scores depend on: `independent` (order 0), `pairs` (order 1) and `after` (any model,
in any contexts); `given_each` scores a sentence given each of many other sentences. The recurrence
runs once per trie node, and in `after` once per node and context unless contexts only add to the
logits; the (nodes × V) logits exist only a chunk at a time. A candidate's score is log p of its
words and `</s>`, in nats, float32 from float64 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from threading import Lock
from time import perf_counter
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import Backend
from lm.contexts import Context
from lm.heads import LinearPredictor, Predictor
from lm.model import DocumentLM
from lm.normalisers import Pair
from lm.sentences import PositionStates, ReadSentences, Rows
from lm.trie import Candidates, Forest, Indices, build, build_shared
from lm.vocabulary import END

MOST_CONTEXTS, MOST_ENTRIES = 1024, 1 << 22  # of one product
Result = TypeVar("Result")
LogProbs = NDArray[np.float32]  # (…, K), in nats, of the K candidates of a list
DistinctContexts = tuple[Rows, Indices]  # and the row to which each candidate of a list leads
Requests = Sequence[tuple[Candidates, Rows]]  # a list each, and the contexts before it


@dataclass(slots=True)
class EngineCounts:
    """Seconds of work; tokens, and the trie nodes that held them; normalisers of pairs."""

    seconds: float = 0.0
    tokens: int = 0
    nodes: int = 0
    normalisers: int = 0
    recomputed: int = 0
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def add(self, forest: Forest) -> None:
        """Count a forest that is read, in any thread."""
        tokens = int(np.searchsorted(forest.levels, forest.end, side="right").sum())
        with self._lock:
            self.nodes, self.tokens = self.nodes + len(forest), self.tokens + tokens

    @contextmanager
    def timed(self, backend: Backend) -> Iterator[None]:
        """Time work on a backend, without gradients."""
        began = perf_counter()
        try:
            with backend.inference():
                yield
        finally:
            self.seconds += perf_counter() - began


@dataclass(frozen=True, slots=True, eq=False)
class ScoringEngine:
    """A trained model that scores candidates on a backend.

    inputs: (V, P) every word's input projection; predictor: the head at work.
    """

    model: DocumentLM
    backend: Backend
    inputs: Tensor
    predictor: Predictor
    counts: EngineCounts = field(default_factory=EngineCounts)

    @classmethod
    def of(cls, model: DocumentLM, backend: Backend | None = None) -> ScoringEngine:
        """Engine of a model; what all lists share is computed once."""
        model.eval()
        backend = backend or Backend(model.embedding.weight.device)
        with backend.inference():
            return cls(model, backend, model.word_inputs(), model.head.predictor(backend))

    def run(self, work: Callable[[], Result]) -> Result:
        """`work()`, timed, without gradients, with smaller batches where memory runs out."""
        with self.counts.timed(self.backend):
            return self.backend.with_fewer_tokens(work)

    def read(self, forest: Forest, contexts: Rows) -> ReadSentences:
        """A forest's candidates, read once for each node; contexts: a row for each root."""
        model = self.model
        self.counts.add(forest)
        positions = forest.positions(self.backend.device)
        state, above, states = model.before(contexts), None, []
        for start, stop in pairwise(forest.levels):
            if above is not None:
                state = state.take(positions.before[start:stop] - above)
            words, above = positions.words[start:stop], start
            state = model.step(state, words, self.inputs[words])
            states.append(model.kept(state))
        return ReadSentences(positions, PositionStates.cat(states))

    def path_scores(self, forest: Forest, features: Tensor, contexts: Rows) -> NDArray[np.float64]:
        """Scores (n,) of the candidates; features: (N, R) of the nodes; contexts: of the roots."""
        parents, words = forest.edges(features.device)
        into, leave = self.predictor.log_probs(features, parents, words)
        roots = torch.from_numpy(forest.root).to(features.device)
        ends = torch.full_like(roots, END)
        into = self.model.interpolated(into, words, roots[parents], contexts)
        leave = self.model.interpolated(leave, ends, roots, contexts)
        return forest.sums(into[:, None], leave[:, None])[:, 0]


class LogProbError(ValueError):
    """A score that is not a log-probability: NaN, or above zero.

    `list` and `candidate` count from 0 in the request; None where they are not known.
    """

    def __init__(
        self, fault: str, *, list: int | None = None, candidate: int | None = None
    ) -> None:
        self.list, self.candidate = list, candidate
        super().__init__(fault)


def independent(
    engine: ScoringEngine, lists: Candidates, side: Rows | None = None
) -> list[LogProbs]:
    """Scores (K_t,) of each list in the start context, which a model of order 0 always sees.

    side: the lists' side information (T rows), which enters the start context of each list.
    Lists share a trie, as many as `Backend.tokens` allows. O(nodes · (H² + V R)) time.
    Errors: LogProbError, MemoryError.
    """
    if side is not None:
        alone = np.ones(len(lists), dtype=np.bool_)
        return [scores[0] for scores in pairs(engine, lists, alone, side)]

    def of_stretch(stretch: tuple[int, int]) -> list[LogProbs]:
        part = lists.part(*stretch)
        forest, contexts = build_shared(part), engine.model.context.start(1)
        features = engine.model.features(engine.read(forest, contexts), contexts)
        scores = engine.path_scores(forest, features, contexts).astype(np.float32)
        return np.split(scores, part.lists[1:-1])

    def attempt() -> list[LogProbs]:
        return list(
            chain.from_iterable(engine.backend.overlapped(of_stretch, _stretches(engine, lists)))
        )

    return _checked(engine, engine.run(attempt), lists.each())


def pairs(
    engine: ScoringEngine, lists: Candidates, first: NDArray[np.bool_], side: Rows | None = None
) -> list[LogProbs]:
    """Scores (K_{t-1}, K_t) of each list after each candidate of the list before (order 0 or 1).

    first: (T,) whether a document begins with a list, which has one row then, after the start
    context; so have all lists at order 0. side: the lists' side information (T rows), for a model
    that needs it. Candidates that leave equal contexts are merged. Where contexts only add to the
    logits, one pass over the tries and one product a list, O(nodes · (H² + V (R + K))) time; else a
    pass for each context, O(K · nodes · (H² + V R)). Errors: LogProbError, MemoryError.
    """
    context, additive = engine.model.context, engine.model.additive

    def trie(stretch: tuple[int, int]) -> tuple[int, Candidates, Forest]:
        part = lists.part(*stretch)
        return stretch[0], part, build_shared(part)

    def attempt() -> list[LogProbs]:
        matrices: list[LogProbs] = []
        start = last = context.start(1), np.zeros(1, dtype=np.int64)
        for begin, part, forest in engine.backend.overlapped(trie, _stretches(engine, lists)):
            if additive or context.reads_states:
                sentences = engine.read(forest, start[0])
            else:
                sentences = ReadSentences.unread(forest.positions(engine.backend.device))
            summary = context.summary(sentences)
            before, encoded = [], None
            if side is not None:  # of these lists alone: states of source words are large
                encoded = context.encoded(side.take(slice(begin, begin + len(part))))
            for t, ends in enumerate(np.split(forest.end, part.lists[1:-1])):
                contexts, rows = start if first[begin + t] else last
                if encoded is not None:
                    own_side = encoded.take(slice(t, t + 1))
                    contexts = context.enter(contexts, own_side.repeat_interleave(len(contexts)))
                before.append((contexts, rows if engine.model.order else rows[:1]))
                of_list = summary.take(slice(int(part.lists[t]), int(part.lists[t + 1])))
                read_in = start[0] if encoded is None else contexts
                last = _distinct_after(context, part.part(t, t + 1), of_list, ends, read_in)
            if additive:
                sums = _products(engine, part, forest, sentences.hidden, before)
            else:
                contexts_of = (contexts for contexts, _ in before)
                requests = list(zip(part.each(), contexts_of, strict=True))
                sums = [scores for scores, _ in _all_after(engine, requests)]
            matrices += [scores[rows] for scores, (_, rows) in zip(sums, before, strict=True)]
        return matrices

    return _checked(engine, engine.run(attempt), lists.each())


def after(engine: ScoringEngine, requests: Requests) -> list[tuple[LogProbs, Rows]]:
    """Scores (N, K) of a list after N contexts, and summaries (N · K rows), for each request.

    The summaries, what the context takes from each candidate, are in the order of the scores.
    Any model. As many contexts advance together as `Backend.tokens` allows; one at a time where the
    backend is deterministic. O(N · nodes · (H² + V R)) time each; where contexts only add to the
    logits, one pass over each trie and one product serve all of them.
    Errors: LogProbError, MemoryError.
    """
    results = engine.run(lambda: _all_after(engine, requests))
    scores = _checked(engine, [s for s, _ in results], [lists for lists, _ in requests])
    return [(s, summary) for s, (_, summary) in zip(scores, results, strict=True)]


def given_each(
    engine: ScoringEngine, sentences: Candidates, side: Rows, groups: Indices
) -> list[LogProbs]:
    """Scores (M_t,) of a sentence given each of M_t rows of side information, for T sentences.

    sentences: T lists of one candidate; side: rows of all groups; groups: (T + 1,) their offsets.
    For contexts that are `alone`. O(Σ M_t L_t · (H² + V R)) time for sentences of L_t words: no
    prefixes are shared, since contexts differ. Errors: LogProbError, whose candidate is the row of
    the group, MemoryError.
    """
    context, longest = engine.model.context, side.tensors[0].shape[1]

    def attempt() -> list[LogProbs]:
        scores: list[LogProbs] = []
        begin, most = 0, engine.backend.tokens(engine.model.config.hidden) // (longest + 1)
        while begin < len(sentences):
            last = np.searchsorted(groups, groups[begin] + most, side="right")
            end = max(int(last) - 1, begin + 1)
            first, *bounds = groups[begin : end + 1].tolist()
            encoded = context.encoded(side.take(slice(first, bounds[-1])))
            entered = context.enter(context.start(len(encoded)), encoded)
            requests = [
                (sentences.part(t, t + 1), entered.take(slice(a - first, b - first)))
                for t, (a, b) in enumerate(pairwise([first, *bounds]), begin)
            ]
            scores += [matrix[:, 0] for matrix, _ in _all_after(engine, requests)]
            begin = end
        return scores

    return _checked(engine, engine.run(attempt), sentences.each())


def _distinct_after(
    context: Context, candidates: Candidates, summary: Rows, ends: Indices, before: Rows
) -> DistinctContexts:
    """The contexts after a list's candidates, which end in the nodes `ends`."""
    first: dict[bytes, int] = {}
    keys = map(context.sentence_key, candidates.texts())
    equal = [first.setdefault(key, k) for k, key in enumerate(keys)]
    _, chosen, rows = np.unique(ends[equal], return_index=True, return_inverse=True)
    distinct = summary.take(torch.from_numpy(chosen).to(summary.device))
    repeated = before.take(slice(0, 1)).repeat_interleave(len(distinct))
    return context.advance(repeated, distinct), rows


def _products(
    engine: ScoringEngine,
    lists: Candidates,
    forest: Forest,
    hidden: Tensor,
    before: Sequence[DistinctContexts],
) -> list[LogProbs]:
    """Scores (n, K_t) of each list after its n contexts, whose values are added to the logits.

    hidden: (N, H) states of the forest's nodes.
    """
    head, context, backend = engine.model.head, engine.model.context, engine.backend
    predictor = cast(LinearPredictor, engine.predictor)  # of every linear head

    def blocks(item: tuple[Indices, DistinctContexts]) -> list[tuple[Forest, Pair]]:
        ends, (contexts, _) = item
        nodes, trie = forest.restricted(ends)
        rows = hidden[torch.from_numpy(nodes).to(backend.device)]
        most = min(MOST_CONTEXTS, max(64, MOST_ENTRIES // len(nodes)))
        of_list = []
        for values in torch.split(context.value(contexts), most):
            mean = values.mean(dim=0, keepdim=True)  # centred: then products do not cancel
            columns = head.features(rows, mean.expand(len(rows), -1))
            zeros = rows.new_zeros(len(values), rows.shape[1])
            of_list.append((trie, predictor.pair(columns, head.features(zeros, values - mean))))
        return of_list

    def along(item: tuple[tuple[Forest, Pair], tuple[Tensor, Tensor]]) -> LogProbs:
        (trie, pair), (log_z, _) = item
        terms = predictor.pair_log_probs(pair, log_z, *trie.edges(log_z.device))
        return trie.sums(*terms).T.astype(np.float32)

    ends = np.split(forest.end, lists.lists[1:-1])
    of_lists = backend.map(blocks, zip(ends, before, strict=True))
    flat = list(chain.from_iterable(of_lists))
    log_sums = predictor.pair_normalisers([pair for _, pair in flat])
    scores = iter(backend.map(along, zip(flat, log_sums, strict=True)))
    engine.counts.normalisers += sum(log_z.numel() for log_z, _ in log_sums)
    if log_sums:
        engine.counts.recomputed += int(torch.stack([weak.sum() for _, weak in log_sums]).sum())
    return [np.concatenate(list(islice(scores, len(of_list)))) for of_list in of_lists]


def _all_after(engine: ScoringEngine, requests: Requests) -> list[tuple[LogProbs, Rows]]:
    """Scores (N, K) and summaries (N · K rows) of each request, batch by batch."""
    results: list[list[tuple[LogProbs, Rows]]] = [[] for _ in requests]
    for batch in _batches(engine, requests):
        parts = [(requests[i][0], requests[i][1].take(rows)) for i, rows in batch]
        many = any(len(contexts) > 1 for _, contexts in parts)
        score = _batch_products if many and engine.model.additive else _batch_after
        for (i, _), result in zip(batch, score(engine, parts), strict=True):
            results[i].append(result)
    return [
        (np.concatenate([s for s, _ in pieces]), Rows.cat([u for _, u in pieces]))
        for pieces in results
    ]


def _batch_after(engine: ScoringEngine, requests: Requests) -> Iterator[tuple[LogProbs, Rows]]:
    """Scores and summaries of a batch: a trie for each request and context."""
    contexts = Rows.cat([contexts for _, contexts in requests])
    lists = Candidates.joined([lists for lists, _ in requests])
    copies = np.repeat(np.arange(len(requests)), [len(c) for _, c in requests])
    sizes = np.diff(lists.lists)[copies]
    roots = np.repeat(np.arange(len(copies)), sizes)
    begins = np.cumsum(sizes) - sizes  # of each copy's candidates among all of them
    rows = np.arange(len(roots)) + np.repeat(lists.lists[copies] - begins, sizes)
    forest = build(lists, rows, roots, len(copies))
    sentences = engine.read(forest, contexts)
    summary = engine.model.context.summary(sentences)
    features = engine.model.features(sentences, contexts)
    scores = engine.path_scores(forest, features, contexts).astype(np.float32)
    done = 0
    for candidates, before in requests:
        n, k = len(before), candidates.n_candidates
        piece = slice(done, done + n * k)
        yield scores[piece].reshape(n, k), summary.take(piece)
        done += n * k


def _batch_products(engine: ScoringEngine, requests: Requests) -> Iterator[tuple[LogProbs, Rows]]:
    """Scores and summaries of a batch whose contexts only add to the logits: by a shared trie."""
    lists = Candidates.joined([lists for lists, _ in requests])
    forest, context = build_shared(lists), engine.model.context
    sentences = engine.read(forest, context.start(1))
    summary = context.summary(sentences)
    before = [(contexts, np.arange(len(contexts))) for _, contexts in requests]
    matrices = _products(engine, lists, forest, sentences.hidden, before)
    places = torch.arange(len(summary), device=summary.device)
    for scores, (begin, end) in zip(matrices, pairwise(lists.lists.tolist()), strict=True):
        yield scores, summary.take(places[begin:end].repeat(len(scores)))


def _stretches(engine: ScoringEngine, lists: Candidates) -> Iterator[tuple[int, int]]:
    """Stretches of lists, begin and end: at most `Backend.tokens` tokens, or a list with more."""
    most = engine.backend.tokens(engine.model.config.hidden)
    begins = lists.offsets[lists.lists]
    begin = 0
    while begin < len(lists):
        end = int(np.searchsorted(begins, begins[begin] + most, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def _batches(engine: ScoringEngine, requests: Requests) -> Iterator[list[tuple[int, slice]]]:
    """Contexts of the requests: at most `Backend.tokens` tokens at a time, or a single context."""
    backend = engine.backend
    most = room = backend.tokens(engine.model.config.hidden)
    batch: list[tuple[int, slice]] = []
    for i, (lists, contexts) in enumerate(requests):
        cost = len(lists.tokens) + 1
        at_once = 1 if backend.deterministic else max(1, most // cost)
        for begin in range(0, len(contexts), at_once):
            piece = slice(begin, min(begin + at_once, len(contexts)))
            need = cost * (piece.stop - begin)
            if batch and (need > room or backend.deterministic):
                yield batch
                batch, room = [], most
            batch.append((i, piece))
            room -= need
    if batch:
        yield batch


def _checked(
    engine: ScoringEngine, scores: Sequence[LogProbs], lists: Sequence[Candidates]
) -> list[LogProbs]:
    """Scores (…, K_t) of each list, checked and cut off at 0, which rounding may exceed."""
    normalised = engine.model.head.normalised
    checked = []
    for t, (of_list, candidates) in enumerate(zip(scores, lists, strict=True)):
        tokens = np.diff(candidates.offsets) + 1
        limit = engine.backend.tolerance * tokens if normalised else np.finfo(np.float32).max
        wrong = ~(of_list <= limit)
        if wrong.any():
            # of a group of contexts for a single candidate, the number of the context
            column = int(np.argwhere(wrong)[0, -1])
            fault = "a language model returned NaN or a positive log-probability"
            raise LogProbError(fault, list=t, candidate=column)
        checked.append(np.minimum(of_list, np.float32(0.0)) if normalised else of_list)
    return checked
