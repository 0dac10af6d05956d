"""What is measured: a task a model, by our engine and by scripts in PyTorch, on the same weights.

`rnnlm` scores each candidate once, `attention` too, given the source, `codclm` after each candidate
of the sentence before, and `ccdclm` after each of the 8 paths of a beam. A hypothesis is a
candidate scored in one context.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import attentive
import best
import good
import numpy as np
import obvious
import torch
from lists import KBest, Set
from numpy.typing import NDArray
from obvious import ContextLM
from torch import Tensor

from decoders.beam import beam
from decoders.problem import DocumentProblem
from lm.model import Config, DocumentLM
from lm.scoring import ScoringEngine, after, independent, pairs
from lm.sentences import Rows
from lm.trie import Candidates

WIDTH = 8
ALONE = ("rnnlm", "attention")  # models that see no earlier sentence
SPREAD = 2.5
Scores = list[NDArray[Any]]  # log-probabilities of each list, or of each document's best path


def seeded(config: Config, seed: int = 1) -> DocumentLM:
    """A model with random weights whose logits have a standard deviation of `SPREAD`.

    The recurrence keeps its small first weights: with large ones it is chaotic, and the
    last bit of a context decides on whole nats of the sentences after it.
    """
    model = DocumentLM.seeded(config, seed).eval()
    dice = torch.Generator().manual_seed(seed)
    words = torch.randint(3, config.vocabulary, (20, 64), generator=dice)
    with torch.no_grad():
        inputs = model.word_inputs()
        state = model.start(model.context.start(64), inputs)
        for column in words:
            state = model.step(state, column, inputs[column])
        hidden = model.hidden(state)
        features = model.head.features(
            *model.fusion.output(hidden, lambda: hidden.flip(0), lambda: model.embedding(column))
        )
        layer = getattr(model.head, "layer", model.head)  # of a class-factored softmax
        last = layer.projection.weight if config.tied else model.head.output
        last.mul_(SPREAD / (features @ model.head.weight().T).std())
    return model


@dataclass(frozen=True, slots=True, eq=False)
class InContext(DocumentProblem):
    """A document's candidates under a model of unbounded order; a state is N contexts."""

    scorer: ScoringEngine
    lists: Sequence[Candidates]
    order: None = None
    lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(of_list.counts[0] for of_list in self.lists))

    def initial(self) -> Rows:
        """The start context."""
        return self.scorer.model.context.start(1).detach()

    def extend(self, states: Rows, t: int) -> tuple[NDArray[Any], tuple[Rows, Rows]]:
        """Scores (N, K_t) after each context."""
        [(scores, summaries)] = after(self.scorer, [(self.lists[t], states)])
        return scores, (states, summaries)

    @torch.no_grad()
    def select(
        self,
        successors: tuple[Rows, Rows],
        parents: NDArray[np.intp],
        choices: NDArray[np.intp],
    ) -> Rows:
        """The contexts after the chosen candidates."""
        states, summaries = successors
        k = len(summaries) // len(states)
        rows, taken = (
            torch.from_numpy(x).to(states.device) for x in (parents, parents * k + choices)
        )
        return self.scorer.model.context.advance(states.take(rows), summaries.take(taken))


def beam_scores(scorer: ScoringEngine, data: Set) -> Scores:
    """Score of each document's best path, by `decoders.beam`."""
    problems = (InContext(scorer, [Candidates.of([c]) for c in d]) for d in data.documents())
    return [np.array([beam(problem, width=WIDTH)[0].score]) for problem in problems]


def _numpy(tensors: Sequence[Tensor]) -> Scores:
    return [tensor.float().numpy() for tensor in tensors]


def _each_document(
    score: Callable[[Any, Sequence[KBest], int | None], list[Tensor]],
) -> Callable[[Any, Set, int | None], Scores]:
    def scores(model: Any, data: Set, limit: int | None) -> Scores:
        return _numpy([matrix for d in data.documents() for matrix in score(model, d, limit)])

    return scores


def _each_beam(
    search: Callable[[Any, Sequence[KBest], int], tuple[float, Any, int]],
) -> Callable[[Any, Set, int | None], Scores]:
    def scores(model: Any, data: Set, _: int | None) -> Scores:
        return [np.array([search(model, d, WIDTH)[0]]) for d in data.documents()]

    return scores


def contexts(name: str, data: Set, most: int | None = None, width: int = WIDTH) -> list[int]:
    """In how many contexts each list is scored; `most`: only that many of codclm's."""
    given, n = [], 1
    for candidates, begins in zip(data.lists, data.first, strict=True):
        n = 1 if begins or name in ALONE else n
        given.append(n)
        n = len(candidates) if name == "codclm" else min(width, n * len(candidates))
        n = n if most is None or name != "codclm" else min(n, most)
    return given


def hypotheses(name: str, data: Set, most: int | None = None, width: int = WIDTH) -> int:
    """Candidates times contexts."""
    given = contexts(name, data, most, width)
    return sum(len(c) * n for c, n in zip(data.lists, given, strict=True))


def flops(config: Config, data: Set, width: int = WIDTH) -> float:
    """Floating-point operations of our matrix products, 2 for a multiplication with its sum.

    A step of the recurrence is 8H², the features of a tied head 2HE, logits 2VR (R = E if
    tied, else H); the words' input projections belong to loading. A node costs all three once
    (rnnlm: over all sentences together) or in each context (ccdclm, whose contexts cost 8H²
    each). codclm: steps over all sentences together, features and logits a list, 2V a node
    and context for the product of exponentials, features and logits a context. attention: two
    recurrences a source word; three steps' worth a node, and two words under classes, with as many
    words as `lm.heads` expects.
    """
    h, e, v = config.hidden, config.embed, config.vocabulary
    step = 8 * h * h
    predict = (2 * h * e if config.tied else 0) + 2 * v * (e if config.tied else h)
    if config.model == "rnnlm":
        return data.nodes() * (step + predict)
    if config.model == "attention":
        source = sum(map(len, data.sources)) * (2 * step + 2 * 4 * h * (2 * e) + 4 * h * h)
        upper, merge = 2 * step + 8 * h * h, 4 * h * h
        words = 2 * e * (math.isqrt(v) + 4 * math.sqrt(v) / math.log(v))
        return source + sum(data.list_nodes()) * (step + upper + merge + 2 * h * e + 2 * words)
    given = list(zip(data.list_nodes(), contexts(config.model, data, None, width), strict=True))
    if config.model == "codclm":
        products = sum(nodes * (predict + 2 * v * n) + n * predict for nodes, n in given)
        return data.nodes() * step + products
    return sum(n * (nodes * (step + predict) + step) for nodes, n in given)


@dataclass(frozen=True, slots=True)
class Peer:
    """A script that scores what our engine does.

    ready: the script's model of the task's, untimed; scores: of a set's lists, with
    `limit` in that many contexts of each list alone; limited: whether it is to be so limited,
    since its time grows with the number of contexts.
    """

    scores: Callable[[Any, Set, int | None], Scores]
    ready: Callable[[Any], Any] = lambda model: model
    limited: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """One model's scores: by our engine, and by scripts in PyTorch, which have its weights."""

    ours: Callable[[ScoringEngine, Set], Scores]
    peers: Mapping[str, Peer]
    script: Callable[[DocumentLM], Any] = ContextLM.of


TASKS = {
    "rnnlm": Task(
        lambda scorer, data: independent(scorer, Candidates.of(data.lists)),
        {
            "script": Peer(lambda model, data, _: _numpy(obvious.independent(model, data.lists))),
            "good": Peer(lambda model, data, _: _numpy(good.independent(model, data.lists))),
            "best": Peer(
                lambda model, data, _: _numpy(best.independent(model, data.lists)),
                best.PrefixLM.of,
            ),
        },
    ),
    "codclm": Task(
        lambda scorer, data: pairs(scorer, Candidates.of(data.lists), np.array(data.first)),
        {
            "script": Peer(_each_document(obvious.pairs)),
            "loop": Peer(_each_document(obvious.loop_pairs)),
            "good": Peer(_each_document(good.pairs)),
            "best": Peer(
                _each_document(lambda model, lists, _: best.pairs(model, lists)),
                best.PrefixLM.of,
                limited=False,
            ),
        },
    ),
    "attention": Task(
        lambda scorer, data: independent(scorer, Candidates.of(data.lists), data.side()),
        {
            "good": Peer(
                lambda model, data, _: _numpy(attentive.scores(model, data.lists, data.sources))
            )
        },
        attentive.TrainedAttention.of,
    ),
    "ccdclm": Task(
        beam_scores,
        {
            "script": Peer(_each_beam(obvious.beam)),
            "good": Peer(_each_beam(good.beam)),
            "best": Peer(_each_beam(best.beam), best.PrefixLM.of),
        },
    ),
}
