"""Log-probabilities of k-best candidates, prefix by prefix.

Three ways, by what the scores depend on: `independent` (order 0), `all_pairs` (order 1
with the context added to the logits) and `after` (any model, from given contexts). In all
of them the recurrence runs once per trie node, and the (nodes × V) logits exist only a
chunk at a time. A candidate's score is log p of its words and `</s>` in nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.model import DocumentLM
from lm.recurrence import select
from lm.trie import Edges, Forest, build, path_sums

ROWS = 128  # nodes whose logits are held at once, so that they stay in the cache
GROUP = 1 << 13  # trie nodes whose hidden states are held at once
Candidates = Sequence[Sequence[int]]


class ScoreError(ValueError):
    """A score that is not a log-probability: NaN, or above zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """A model at work.

    inputs: (V, P) every word's input projection; output: (R + 1, V) transposed output
    matrix, the bias as its last row.
    """

    model: DocumentLM
    inputs: Tensor
    output: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, model: DocumentLM) -> Scorer:
        """Scorer of a trained model; what all lists share is computed once."""
        model.eval()
        output = torch.cat([model.head.weight().T, model.head.bias[None]])
        return cls(model, model.word_inputs(), output.contiguous())


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """Hidden states (N, H) of a forest's nodes and summaries (n, U) of its candidates."""

    hidden: Tensor
    summary: Tensor


def _walk(scorer: Scorer, forest: Forest, contexts: Tensor) -> _Walk:
    """The recurrence over a forest, once per node; contexts: (T, C), one per root."""
    model, device = scorer.model, scorer.inputs.device
    parent, token = (torch.from_numpy(x).to(device) for x in (forest.parent, forest.token))
    state = model.start(contexts, scorer.inputs)
    hidden, summary = [model.hidden(state)], [model.summary(state)]
    for level in range(1, len(forest.levels) - 1):
        start, stop = forest.levels[level : level + 2]
        state = select(state, parent[start:stop] - forest.levels[level - 1])
        state = model.step(state, token[start:stop], scorer.inputs)
        hidden.append(model.hidden(state))
        summary.append(model.summary(state))
    ends = torch.from_numpy(forest.end).to(device)
    return _Walk(torch.cat(hidden), torch.cat(summary)[ends])


def _edge_log_probs(
    scorer: Scorer, hidden: Tensor, values: Tensor | None, edges: Edges
) -> NDArray[np.float64]:
    """Log-probabilities (E,) of the edges' tokens; hidden: (N, H), values: (N, D) of the nodes."""
    head = scorer.model.head
    features = head.features(hidden, values)
    weight, bias = head.weight(), head.bias
    log_z = _log_sums(features, scorer.output)
    node, token = (torch.from_numpy(x).to(hidden.device) for x in (edges.node, edges.token))
    logits = (features[node] * weight[token]).sum(1) + bias[token]
    result: NDArray[np.float64] = (logits - log_z[node]).double().cpu().numpy()
    return result


def _log_sums(features: Tensor, output: Tensor) -> Tensor:
    """(N,) of log Σ_v exp(logits) for features (N, R) and `Scorer.output`; O(ROWS · V) memory.

    Exponentials are summed as they are, which needs no pass for the maximum; rows in which
    that leaves float32's range are done again with it.
    """
    ones = features.new_ones(len(features), 1)
    columns = torch.cat([features, ones], dim=1)
    buffer = features.new_empty(min(ROWS, len(features)), output.shape[1])
    sums = features.new_empty(len(features))
    for begin in range(0, len(features), ROWS):
        part = columns[begin : begin + ROWS]
        logits = torch.mm(part, output, out=buffer[: len(part)])
        torch.sum(logits.exp_(), dim=1, out=sums[begin : begin + len(part)])
    log_z = sums.log_()
    extreme = (~(log_z.abs() < 60)).nonzero()[:, 0]
    for part in torch.split(extreme, ROWS):
        log_z[part] = torch.logsumexp(columns[part] @ output, dim=1)
    return log_z


def _groups(lists: Sequence[Candidates]) -> Iterator[tuple[int, int]]:
    """Runs of sentences whose tries together stay near `GROUP` nodes."""
    begin = tokens = 0
    for t, candidates in enumerate(lists):
        tokens += sum(map(len, candidates))
        if tokens > 3 * GROUP:
            yield begin, t + 1
            begin, tokens = t + 1, 0
    if begin < len(lists):
        yield begin, len(lists)


def _forest(lists: Sequence[Candidates]) -> tuple[Forest, NDArray[np.int64]]:
    """Forest of several lists, and the (T + 1,) offsets of their candidates."""
    counts = [len(candidates) for candidates in lists]
    sentence = np.repeat(np.arange(len(lists)), counts)
    flat = [candidate for candidates in lists for candidate in candidates]
    return build(flat, sentence, len(lists)), np.concatenate([[0], np.cumsum(counts)])


@torch.no_grad()
def independent(scorer: Scorer, lists: Sequence[Candidates]) -> list[NDArray[np.float64]]:
    """Scores (K_t,) of each list under a model that sees no context (order 0).

    O(nodes · (H² + V · R)) time.
    """
    scores: list[NDArray[np.float64]] = []
    for begin, end in _groups(lists):
        forest, offsets = _forest(lists[begin:end])
        walk = _walk(scorer, forest, scorer.model.context.start(end - begin))
        edges = Edges.of(forest)
        log_probs = _edge_log_probs(scorer, walk.hidden, None, edges)
        sums = checked(path_sums(forest, edges, log_probs))
        scores.extend(sums[a:b] for a, b in pairwise(offsets))
    return scores


@torch.no_grad()
def after(
    scorer: Scorer, candidates: Candidates, contexts: Tensor
) -> tuple[NDArray[np.float64], Tensor]:
    """Scores (N, K) of a list after each of N contexts (N, C), and summaries (N, K, U).

    Any model. O(N · nodes · (H² + V · R)) time.
    """
    model, copies = scorer.model, len(contexts)
    forest = build(candidates, np.zeros(len(candidates), dtype=np.int64), 1).repeat(copies)
    walk = _walk(scorer, forest, contexts)
    owner = torch.from_numpy(forest.sentence).to(contexts.device)
    value = model.fusion.at_output(model.context.value(contexts))
    edges = Edges.of(forest)
    log_probs = _edge_log_probs(scorer, walk.hidden, None if value is None else value[owner], edges)
    scores = checked(path_sums(forest, edges, log_probs)).reshape(copies, len(candidates))
    return scores, walk.summary.reshape(copies, len(candidates), -1)


@torch.no_grad()
def all_pairs(scorer: Scorer, lists: Sequence[Candidates]) -> list[NDArray[np.float32]]:
    """Scores (K_{t-1}, K_t) of each list after each candidate of the list before.

    The first matrix is (1, K_0), after the start context. For models of order 1 whose
    context is added to the logits: one pass over the tries, then one matrix product a
    sentence. O(nodes · V · (R + K)) time.
    """
    model = scorer.model
    previous = model.context.start(1)
    columns: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    matrices: list[NDArray[np.float32]] = []
    for begin, end in _groups(lists):
        forest, offsets = _forest(lists[begin:end])
        walk = _walk(scorer, forest, model.context.start(end - begin))
        for t in range(begin, end):
            nodes = np.flatnonzero(forest.sentence == t - begin)
            rows = slice(offsets[t - begin], offsets[t - begin + 1])
            own = _restrict(forest, nodes, forest.end[rows])
            hidden = walk.hidden[torch.from_numpy(nodes).to(walk.hidden.device)]
            edges = Edges.of(own)
            log_probs = _pair_log_probs(scorer, hidden, model.context.value(previous), edges)
            sums = checked(path_sums(own, edges, log_probs)).T[columns]
            matrices.append(sums.astype(np.float32))
            _, first, columns = np.unique(own.end, return_index=True, return_inverse=True)
            chosen = torch.from_numpy(rows.start + first).to(walk.summary.device)
            summary = walk.summary[chosen]
            previous = model.context.advance(model.context.start(len(summary)), summary)
    return matrices


def _restrict(forest: Forest, nodes: NDArray[np.int64], end: NDArray[np.int64]) -> Forest:
    """The trie of one sentence: its nodes (ascending) renumbered from 0."""
    levels = np.searchsorted(nodes, forest.levels)
    depth = int(np.searchsorted(levels, len(nodes))) + 1
    return Forest(
        tuple(levels[:depth].tolist()),
        np.searchsorted(nodes, forest.parent[nodes]),
        forest.token[nodes],
        np.zeros(len(nodes), dtype=np.int64),
        np.searchsorted(nodes, end),
    )


def _pair_log_probs(
    scorer: Scorer, hidden: Tensor, values: Tensor, edges: Edges
) -> NDArray[np.float64]:
    """Log-probabilities (E, C) of the edges' tokens in each of C contexts, values (C, D).

    With A the logits of the nodes and B the shifts of the contexts, centred:
    log Z[n, c] = log(exp(a_n − max a_n) · exp(b_c − max b_c)) + max a_n + max b_c.
    """
    head = scorer.model.head
    shift = head.shift(values)
    mean = shift.mean(dim=0)
    shift -= mean
    top = shift.amax(dim=1)
    factor = torch.exp(shift - top[:, None])
    features = head.hidden_features(hidden)
    columns = torch.cat([features, features.new_ones(len(features), 1)], dim=1)
    output = torch.cat([scorer.output[: features.shape[1]], scorer.output[-1:] + mean])
    buffer = features.new_empty(min(ROWS, len(features)), len(mean))
    node, token = (torch.from_numpy(x).to(hidden.device) for x in (edges.node, edges.token))
    parts = []
    for begin in range(0, len(columns), ROWS):
        part = columns[begin : begin + ROWS]
        logits = torch.mm(part, output, out=buffer[: len(part)])
        a, b = np.searchsorted(edges.node, [begin, begin + len(part)])
        own, words = node[a:b] - begin, token[a:b]
        numerators = logits[own, words][:, None] + shift[:, words].T
        parts.append(numerators - log_normalisers(logits, shift, factor, top)[own])
    result: NDArray[np.float64] = torch.cat(parts).double().cpu().numpy()
    return result


def log_normalisers(a: Tensor, b: Tensor, exp_b: Tensor, max_b: Tensor) -> Tensor:
    """(N, C) of log Σ_v exp(a[n, v] + b[c, v]), by one product of positive numbers.

    a: (N, V) logits with the mean context added; b: (C, V) shifts less their mean; exp_b:
    exp(b − max_b[:, None]). No cancellation: relative error about V-independent 1e-6,
    guarded below by recomputing directly every entry of the product under
    3V · 2⁻¹²⁶ / 1e-6, where a factor or the product may have underflowed.
    """
    max_a = a.amax(dim=1)
    product = torch.exp(a - max_a[:, None]) @ exp_b.T
    log_z = product.log() + max_a[:, None] + max_b
    floor = 3 * a.shape[1] * 2.0**-126 / 1e-6
    weak = (product < floor).nonzero()
    for part in torch.split(weak, ROWS):
        n, c = part[:, 0], part[:, 1]
        log_z[n, c] = torch.logsumexp(a[n] + b[c], dim=1)
    return log_z


def checked(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores, at most 0 (rounding may leave +1e-6); ScoreError for NaN or a real excess."""
    if np.isnan(scores).any() or (scores > 1e-3).any():
        raise ScoreError("a language model returned NaN or a positive log-probability")
    return np.minimum(scores, 0.0)
