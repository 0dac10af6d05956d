"""Orders of sentences, variants in contexts, and relations between sentences."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from lm import discourse
from lm.comparisons import distinct_orders, scores_in_contexts
from lm.corpus import Corpus
from lm.discourse import SLOTS, Pair, RelationClassifier, features, fit
from lm.laws import DOCUMENT, last_score, tiny_model, with_side
from lm.scoring import ScoringEngine
from lm.zoo import ZOO


# Orders of the sentences of a document
def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def texts_of(document: list[list[int]], orders: Any) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(tuple(document[i]) for i in order) for order in orders.tolist()]


def test_every_other_text_is_equally_likely_and_no_more_are_drawn_than_asked_for() -> None:
    document, generator = [[3], [4], [3], [5]], rng(4)
    corpus = Corpus.of([document])
    drawn = (distinct_orders(corpus, 0, 1, generator) for _ in range(1100))
    result = Counter(texts_of(document, orders)[0] for orders in drawn)
    assert len(result) == 4 * 3 - 1
    assert chisquare([*result.values()]).pvalue > 0.001
    for most in (1, 3, 11):
        own = texts_of(document, distinct_orders(corpus, 0, most, rng()))
        assert len(own) == len(set(own)) == most
        assert tuple(map(tuple, document)) not in own


# Variants of a sentence in several contexts
VARIANTS = [[[3, 4], [3, 5]], [[6], [7, 8], [], [6]], [[9, 0, 9], [9, 9]], [[4], [5]]]
TEXTS: list[Any] = [DOCUMENT[:2], (), DOCUMENT[1:4], DOCUMENT[:2]]
CONTEXTS: list[Any] = [[text, (), TEXTS[(i + 2) % 4]] for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("name", ["attention", "attention-gated", "dclm-bilingual"])
def test_models_that_read_the_source_are_given_that_of_contexts_and_of_the_item(name: str) -> None:
    """Without a document context, contexts of one source sentence give equal bits."""
    model = tiny_model(ZOO[name])
    engine = ScoringEngine.of(model)

    def source(text: Any) -> list[list[int]]:
        side = with_side(model, [*text, []]).side["source"]
        return [side.tokens[a:b].tolist() for a, b in pairwise(side.sentences.tolist())]

    sources = [[source(text) for text in context] for context in CONTEXTS]
    result = scores_in_contexts(engine, VARIANTS, CONTEXTS, sources)
    for scores, variants, contexts in zip(result, VARIANTS, CONTEXTS, strict=True):
        for row, text in zip(scores, contexts, strict=True):
            truth = [last_score(model, [*text, words]) for words in variants]
            assert row.tolist() == pytest.approx(truth, abs=2e-5)
    alike = [[source(DOCUMENT[:3]), [*source(())[:-1], *source(DOCUMENT[:3])[-1:]]]]
    (scores,) = scores_in_contexts(engine, VARIANTS[:1], [[DOCUMENT[:3], ()]], alike)
    assert np.array_equal(scores[0], scores[1]) == (name == "attention")


# Relations between sentences
PAIRS: list[Pair] = [([b"it", b"is"], [word, b"it"]) for word in (b"but", b"so", b"But", b"and")]
LABELS = [b"Comparison", b"Contingency", b"Comparison", b"none"]


def test_probabilities_of_relations_are_at_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """∂/∂b of the mean −log p is the mean of p minus the frequency of each label: 0."""
    generator = torch.Generator().manual_seed(1)
    weight, bias = (torch.randn(n, 2, generator=generator) for n in (SLOTS, 1))
    slots = features(*PAIRS[1])
    logits = bias[0] + weight[slots].sum(0) / len(slots) ** 0.5
    result = RelationClassifier((b"a", b"b"), weight, bias[0]).log_probs(PAIRS)[1]
    torch.testing.assert_close(result, logits - logits.logsumexp(0))
    assert features(*PAIRS[0]).tolist() == features(*PAIRS[2]).tolist()  # case does not count
    assert features(*PAIRS[0]).tolist() != features(*PAIRS[0][::-1]).tolist()
    assert len(features([], [])) > 0
    monkeypatch.setattr(discourse, "SLOTS", 1 << 8)
    classifier = fit(PAIRS, LABELS, penalty=0.01, steps=200)
    probabilities = classifier.log_probs(PAIRS).exp().mean(0)
    shares = torch.tensor([LABELS.count(label) / 4 for label in classifier.labels])
    torch.testing.assert_close(probabilities, shares, atol=1e-3, rtol=0)
    assert classifier.accuracy(PAIRS, LABELS) == 1.0
