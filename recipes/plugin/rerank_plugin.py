"""Two scorers and a metric for rerank."""

from rerank.metrics import SentenceMetric


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
        found, expected = {*hypothesis.split()}, [{*reference.split()} for reference in references]
        return max(len(found & words) / max(1, len(words)) for words in expected)
