"""Two scorers, a metric, a utility and a decoder for rerank."""

import numpy as np

from decoders.batching import path_score
from decoders.problem import Path
from decoders.table import Decoder
from rerank.metrics import SentenceMetric
from rerank.metrics.consensus import PairUtility


def length(words="20"):
    """Make a scorer of order 0: distance from a number of words."""

    def score(document):
        return [[-abs(len(t.split()) - int(words)) for t in texts] for texts in document.texts]

    return score


class Cohesion:
    """A scorer of order 1: words that the sentence before has as well."""

    order, digest = 1, "1"

    def score(self, document):
        matrices, before = [], [""]
        for texts in document.texts:
            matrices.append([[len({*a.split()} & {*b.split()}) for b in texts] for a in before])
            before = texts or before
        return matrices


class WordRecall(SentenceMetric):
    """Share of the words of a reference that a hypothesis has."""

    name = "recall"

    def score(self, hypothesis, references):
        result, expected = {*hypothesis.split()}, [{*reference.split()} for reference in references]
        return max(len(result & words) / max(1, len(words)) for words in expected)


class Overlap(PairUtility):
    """Share of the words of two candidates that both have."""

    def pairs(self, texts):
        words = [{*text.split()} for text in texts]
        return [[len(a & b) / max(1, len(a | b)) for b in words] for a in words]


def climb(problem):
    """Path that three rounds of changes of single sentences reach from the first candidates."""
    path = np.zeros(len(problem.lengths), int)
    for t in 3 * [*range(len(path))]:
        changed = np.tile(path, (problem.lengths[t], 1))
        changed[:, t] = range(len(changed))
        path = changed[problem.rescore(changed, t, len(path)).argmax()]
    return Path(tuple(path.tolist()), path_score(problem, path))


CLIMB = Decoder("climb", "rerank_plugin:climb", cost="O(T² K)", source="recipes/adapters/plugin")
