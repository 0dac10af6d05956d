"""A model at work: its recurrence walked over tries, its log-probabilities summed along paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.machine import Machine
from lm.model import DocumentLM
from lm.recurrence import select
from lm.trie import Forest, path_sums
from lm.vocabulary import END

Floats = NDArray[np.floating[Any]]
Result = TypeVar("Result")


@dataclass(slots=True)
class Work:
    """What was done: seconds, tokens and trie nodes, normalisers of pairs, those formed again."""

    seconds: float = 0.0
    tokens: int = 0
    nodes: int = 0
    normalisers: int = 0
    recomputed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """A model at work on a machine.

    inputs: (V, P) every word's input projection; weight: (V, R + 1) output matrix, the bias
    as its last column.
    """

    model: DocumentLM
    machine: Machine
    inputs: Tensor
    weight: Tensor
    work: Work = field(default_factory=Work)

    @classmethod
    def of(cls, model: DocumentLM, machine: Machine | None = None) -> Scorer:
        """Scorer of a trained model; what all lists share is computed once."""
        model.eval()
        head = model.head
        machine = machine or Machine(head.bias.device)
        with machine.at_work():
            weight = torch.cat([head.weight(), head.bias[:, None]], dim=1)
            return cls(model, machine, model.word_inputs(), weight)

    def at_work(self, work: Callable[[], Result]) -> Result:
        """`work()` by the machine, its time counted; with less at once where memory runs out."""
        began = perf_counter()
        try:
            with self.machine.at_work():
                return self.machine.with_fewer_tokens(work)
        finally:
            self.work.seconds += perf_counter() - began


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Hidden states (N, H) of a forest's nodes and summaries (n, U) of its candidates."""

    hidden: Tensor
    summary: Tensor


def walk(scorer: Scorer, forest: Forest, contexts: Tensor) -> Walk:
    """The recurrence over a forest, once per node; contexts: (T, C), one per root."""
    model, device = scorer.model, scorer.machine.device
    parent, token, end = (
        torch.from_numpy(x).to(device) for x in (forest.parent, forest.token, forest.end)
    )
    state = model.start(contexts, scorer.inputs)
    hidden, summary = [model.hidden(state)], [model.summary(state)]
    for level in range(1, len(forest.levels) - 1):
        start, stop = forest.levels[level : level + 2]
        state = select(state, parent[start:stop] - forest.levels[level - 1])
        state = model.step(state, token[start:stop], scorer.inputs)
        hidden.append(model.hidden(state))
        summary.append(model.summary(state))
    return Walk(torch.cat(hidden), torch.cat(summary)[end])


def along_paths(
    forest: Forest, columns: Tensor, weight: Tensor, log_z: Tensor, shifts: Tensor | None = None
) -> Floats:
    """Sums (n, C) over the candidates' words and `</s>`.

    columns: (N, R + 1) of the nodes; weight: (V, R + 1); log_z: (N, C); shifts: (C, R + 1)
    of contexts, to be added to the nodes'.
    """
    inner = forest.levels[1]
    parent, token = (
        torch.from_numpy(x[inner:]).to(columns.device) for x in (forest.parent, forest.token)
    )
    into = (columns[parent] * weight[token]).sum(dim=1)[:, None] - log_z[parent]
    leave = (columns @ weight[END])[:, None] - log_z
    if shifts is not None:
        into += weight[token] @ shifts.T
        leave += shifts @ weight[END]
    into = torch.cat([into.new_zeros(inner, into.shape[1]), into])
    return path_sums(forest, into.cpu().numpy(), leave.cpu().numpy())


def with_last(features: Tensor, value: float) -> Tensor:
    """(N, R + 1): the bias has a feature of its own, 1 where it counts."""
    return torch.cat([features, features.new_full((len(features), 1), value)], dim=1)
