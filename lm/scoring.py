"""Log-probabilities of k-best candidates, prefix by prefix.

Three ways, by what the scores depend on: `independent` (order 0), `pairs` (order 1) and
`after` (any model, from given contexts). In all of them the recurrence runs once per trie
node, level by level over many lists and contexts, and the (nodes × V) logits exist only a
chunk at a time. A candidate's score is log p of its words and `</s>`, in nats, float32
from float64 sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.normalisers import log_sums, pair_log_sums
from lm.scorer import Scorer, Walk, along_paths, walk, with_last
from lm.trie import Candidates, Forest, Indices, build

VERSION = 3  # of the scores: another where the same model and text get others
MOST_CONTEXTS, MOST_ENTRIES = 1024, 1 << 22  # of one product
Scores = NDArray[np.float32]


class ScoreError(ValueError):
    """A score that is not a log-probability: NaN, or above zero.

    `list` and `candidate` count from 0 among those that were asked for, where they are known.
    """

    def __init__(
        self, fault: str, *, list: int | None = None, candidate: int | None = None
    ) -> None:
        self.list, self.candidate = list, candidate
        super().__init__(fault)


def independent(scorer: Scorer, lists: Candidates) -> list[Scores]:
    """Scores (K_t,) of each list under a model that sees no context (order 0).

    Lists share one trie, as many as `Machine.tokens` allows. O(nodes · (H² + V R)) time.
    Errors: ScoreError, MemoryError.
    """

    def attempt() -> list[Scores]:
        scores: list[Scores] = []
        for begin, end in _spans(scorer, lists):
            part = lists.part(begin, end)
            forest = _shared(scorer, part)
            walked = walk(scorer, forest, scorer.model.context.start(1))
            columns = with_last(scorer.model.head.features(walked.hidden, None), 1.0)
            log_z = log_sums(columns, scorer.weight, scorer.machine)
            sums = along_paths(forest, columns, scorer.weight, log_z[:, None])
            scores += [s[:, 0].astype(np.float32) for s in _split(sums, part)]
        return scores

    return [_checked(scorer, s, lists, t) for t, s in enumerate(scorer.at_work(attempt))]


def pairs(scorer: Scorer, lists: Candidates, first: NDArray[np.bool_]) -> list[Scores]:
    """Scores (K_{t-1}, K_t) of each list after each candidate of the list before (order 1).

    (1, K_t) after the start context where `first` (T,) says that a document begins. Equal
    candidates are one context. Where fusion adds to the logits, one pass over the tries
    and one product a list, O(nodes · (H² + V (R + K))) time; other fusions take a pass for
    each context, O(K · nodes · (H² + V R)). Errors: ScoreError, MemoryError.
    """
    score = _passes if scorer.model.fusion.touches_hidden else _products

    def attempt() -> list[Scores]:
        matrices: list[Scores] = []
        start = last = _Given(scorer.model.context.start(1), np.zeros(1, dtype=np.int64))
        for begin, end in _spans(scorer, lists):
            part = lists.part(begin, end)
            forest = _shared(scorer, part)
            walked = walk(scorer, forest, start.contexts)
            following = [
                _Given.after(scorer, walked.summary[part.lists[t] : part.lists[t + 1]], ends)
                for t, ends in enumerate(_split(forest.end, part))
            ]
            given = [
                start if alone else before
                for alone, before in zip(first[begin:end], [last, *following], strict=False)
            ]
            found = score(scorer, part, forest, walked, given)
            matrices += [sums[own.rows] for sums, own in zip(found, given, strict=True)]
            last = following[-1]
        return matrices

    return [_checked(scorer, s, lists, t) for t, s in enumerate(scorer.at_work(attempt))]


def after(
    scorer: Scorer, requests: Sequence[tuple[Candidates, Tensor]]
) -> list[tuple[Scores, Tensor]]:
    """Scores (N, K) of one list each after N contexts (N, C), and summaries (N, K, U).

    Any model. The requests advance together, as many contexts as `Machine.tokens` allows;
    one at a time where the machine is deterministic. O(N · nodes · (H² + V R)) time each.
    Errors: ScoreError, MemoryError.
    """
    found = scorer.at_work(lambda: _all_after(scorer, requests))
    for i, ((lists, _), (scores, _)) in enumerate(zip(requests, found, strict=True)):
        _checked(scorer, scores, lists, 0, place=i)
    return [(np.minimum(scores, np.float32(0.0)), summary) for scores, summary in found]


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """Distinct contexts (n, C) of a list, and which of them each candidate before leads to."""

    contexts: Tensor
    rows: Indices

    @classmethod
    def after(cls, scorer: Scorer, summary: Tensor, ends: Indices) -> _Given:
        """The contexts after candidates with these summaries; those of one end are equal."""
        _, chosen, rows = np.unique(ends, return_index=True, return_inverse=True)
        context = scorer.model.context
        distinct = summary[torch.from_numpy(chosen).to(summary.device)]
        return cls(context.advance(context.start(len(distinct)), distinct), rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """A list's trie, features (N, R + 1) of its nodes, and of the contexts added to them."""

    forest: Forest
    columns: Tensor
    shifts: Tensor


def _products(
    scorer: Scorer, lists: Candidates, forest: Forest, walked: Walk, given: Sequence[_Given]
) -> list[Scores]:
    """Scores (n, K_t) of each list after its n contexts, whose values are added to the logits."""
    head, machine, work = scorer.model.head, scorer.machine, scorer.work

    def blocks(item: tuple[Indices, _Given]) -> list[_Block]:
        nodes, own = forest.restricted(item[0])
        hidden = walked.hidden[torch.from_numpy(nodes).to(machine.device)]
        found = []
        most = min(MOST_CONTEXTS, max(64, MOST_ENTRIES // len(nodes)))
        for values in torch.split(scorer.model.context.value(item[1].contexts), most):
            mean = values.mean(dim=0, keepdim=True)
            columns = head.features(hidden, mean.expand(len(hidden), -1))
            none = hidden.new_zeros(len(values), hidden.shape[1])
            shifts = head.features(none, values - mean)
            found.append(_Block(own, with_last(columns, 1.0), with_last(shifts, 0.0)))
        return found

    def along(item: tuple[_Block, tuple[Tensor, Tensor]]) -> tuple[Scores, int]:
        block, (log_z, weak) = item
        sums = along_paths(block.forest, block.columns, scorer.weight, log_z, block.shifts)
        return sums.T.astype(np.float32), int(weak.sum())

    of_lists = machine.map(blocks, zip(_split(forest.end, lists), given, strict=True))
    flat = [block for found in of_lists for block in found]
    log_sums = pair_log_sums([(b.columns, b.shifts) for b in flat], scorer.weight, machine)
    done = machine.map(along, zip(flat, log_sums, strict=True))
    work.normalisers += sum(log_z.numel() for log_z, _ in log_sums)
    work.recomputed += sum(again for _, again in done)
    scores = iter(scores for scores, _ in done)
    return [np.concatenate(list(islice(scores, len(found)))) for found in of_lists]


def _passes(
    scorer: Scorer, lists: Candidates, forest: Forest, walked: Walk, given: Sequence[_Given]
) -> list[Scores]:
    """The same with a pass over each list's trie for each of its contexts."""
    requests = [(lists.part(t, t + 1), own.contexts) for t, own in enumerate(given)]
    return [scores for scores, _ in _all_after(scorer, requests)]


def _all_after(
    scorer: Scorer, requests: Sequence[tuple[Candidates, Tensor]]
) -> list[tuple[Scores, Tensor]]:
    """Scores (N, K) and summaries (N, K, U) of each request, a batch after the other."""
    found: list[list[tuple[Scores, Tensor]]] = [[] for _ in requests]
    for batch in _batches(scorer, requests):
        parts = [(requests[i][0], requests[i][1][rows]) for i, rows in batch]
        for (i, _), piece in zip(batch, _after(scorer, parts), strict=True):
            found[i].append(piece)
    return [
        (np.concatenate([s for s, _ in pieces]), torch.cat([u for _, u in pieces]))
        for pieces in found
    ]


def _after(
    scorer: Scorer, requests: Sequence[tuple[Candidates, Tensor]]
) -> list[tuple[Scores, Tensor]]:
    """The same all at once: a trie for each request and context."""
    model = scorer.model
    contexts = torch.cat([contexts for _, contexts in requests])
    lists = Candidates.joined([lists for lists, _ in requests])
    copies = np.repeat(np.arange(len(requests)), [len(c) for _, c in requests])
    sizes = np.diff(lists.lists)[copies]
    roots = np.repeat(np.arange(len(copies)), sizes)
    begins = np.cumsum(sizes) - sizes  # of each copy's candidates among all of them
    rows = np.arange(len(roots)) + np.repeat(lists.lists[copies] - begins, sizes)
    forest = build(lists, rows, roots, len(copies))
    scorer.work.nodes += len(forest)
    scorer.work.tokens += int((np.diff(lists.offsets)[rows] + 1).sum())
    walked = walk(scorer, forest, contexts)
    value = model.fusion.at_output(model.context.value(contexts))
    if value is not None:
        value = value[torch.from_numpy(forest.root).to(value.device)]
    columns = with_last(model.head.features(walked.hidden, value), 1.0)
    log_z = log_sums(columns, scorer.weight, scorer.machine)
    sums = along_paths(forest, columns, scorer.weight, log_z[:, None])
    scores = sums[:, 0].astype(np.float32)
    found, done = [], 0
    for own, given in requests:
        n, k = len(given), len(own.offsets) - 1
        piece = slice(done, done + n * k)
        found.append((scores[piece].reshape(n, k), walked.summary[piece].reshape(n, k, -1)))
        done += n * k
    return found


def _shared(scorer: Scorer, lists: Candidates) -> Forest:
    """One trie of all lists."""
    n = len(lists.offsets) - 1
    forest = build(lists, np.arange(n), np.zeros(n, dtype=np.int64), 1)
    scorer.work.nodes += len(forest)
    scorer.work.tokens += len(lists.tokens) + n
    return forest


def _split(values: NDArray[Any], lists: Candidates) -> list[NDArray[Any]]:
    """Values (n, …) of candidates, a list at a time."""
    return np.split(values, lists.lists[1:-1])


def _spans(scorer: Scorer, lists: Candidates) -> Iterator[tuple[int, int]]:
    """Runs of lists with at most `Machine.tokens` tokens, or of one list with more."""
    most = scorer.machine.tokens(scorer.model.config.hidden)
    begins = lists.offsets[lists.lists]
    begin = 0
    while begin < len(lists):
        end = int(np.searchsorted(begins, begins[begin] + most, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def _batches(
    scorer: Scorer, requests: Sequence[tuple[Candidates, Tensor]]
) -> Iterator[list[tuple[int, slice]]]:
    """Contexts of the requests, at most `Machine.tokens` tokens at a time or one context."""
    machine = scorer.machine
    most = room = machine.tokens(scorer.model.config.hidden)
    batch: list[tuple[int, slice]] = []
    for i, (lists, contexts) in enumerate(requests):
        cost = len(lists.tokens) + 1
        at_once = 1 if machine.deterministic else max(1, most // cost)
        for begin in range(0, len(contexts), at_once):
            piece = slice(begin, min(begin + at_once, len(contexts)))
            need = cost * (piece.stop - begin)
            if batch and (need > room or machine.deterministic):
                yield batch
                batch, room = [], most
            batch.append((i, piece))
            room -= need
    if batch:
        yield batch


def _checked(
    scorer: Scorer, scores: Scores, lists: Candidates, t: int, place: int | None = None
) -> Scores:
    """Scores (…, K_t) of list t, at most 0: rounding may lift them by `Machine.tolerance` a word.

    `place`: what the list is called in an error, if not t.
    """
    lengths = np.diff(lists.offsets[lists.lists[t] : lists.lists[t + 1] + 1]) + 1
    wrong = ~(scores <= scorer.machine.tolerance * lengths)
    if wrong.any():
        fault = "a language model returned NaN or a positive log-probability"
        candidate = int(np.argwhere(wrong)[0, -1])
        raise ScoreError(fault, list=t if place is None else place, candidate=candidate)
    return np.minimum(scores, np.float32(0.0))
