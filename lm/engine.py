"""The scoring engine: a recurrence run over tries, log-probabilities summed along paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import Backend
from lm.heads import Predictor
from lm.model import DocumentLM
from lm.rows import Rows
from lm.sentences import PositionStates, ReadSentences
from lm.trie import Forest
from lm.vocabulary import END

Result = TypeVar("Result")


@dataclass(slots=True)
class EngineCounts:
    """Seconds of work; tokens, and the trie nodes that held them; normalisers of pairs."""

    seconds: float = 0.0
    tokens: int = 0
    nodes: int = 0
    normalisers: int = 0
    recomputed: int = 0


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
            predictor = model.head.predictor(backend)
            return cls(model, backend, model.word_inputs(), predictor)

    def timed(self, work: Callable[[], Result]) -> Result:
        """`work()` on the backend, timed; with smaller batches where memory runs out."""
        began = perf_counter()
        try:
            with self.backend.inference():
                return self.backend.with_fewer_tokens(work)
        finally:
            self.counts.seconds += perf_counter() - began

    def read(self, forest: Forest, contexts: Rows) -> ReadSentences:
        """A forest's candidates, read once for each node; contexts: a row for each root."""
        model = self.model
        positions = forest.positions(self.backend.device)
        state = model.start(contexts, self.inputs)
        states = [model.kept(state)]
        for level in range(1, len(forest.levels) - 1):
            start, stop = forest.levels[level : level + 2]
            state = state.take(positions.before[start:stop] - forest.levels[level - 1])
            state = model.step(state, positions.words[start:stop], self.inputs)
            states.append(model.kept(state))
        return ReadSentences.of(positions, PositionStates.cat(states))

    def path_scores(self, forest: Forest, features: Tensor, contexts: Rows) -> NDArray[np.float64]:
        """Scores (n,) of the candidates: sums over their words and `</s>`.

        features: (N, R) of the nodes; contexts: a row for each root.
        """
        parents, words = forest.edges(features.device)
        into, leave = self.predictor.log_probs(features, parents, words)
        roots = torch.from_numpy(forest.root).to(features.device)
        ends = torch.full_like(roots, END)
        into = self.model.interpolated(into, words, roots[parents], contexts)
        leave = self.model.interpolated(leave, ends, roots, contexts)
        return forest.sums(into[:, None], leave[:, None])[:, 0]
