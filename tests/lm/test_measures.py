"""Orders of sentences, variants, missing words, sampled texts, and relations between sentences."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from support.models import enlarged

from lm import discourse
from lm.comparisons import distinct_orders, scores_in_contexts
from lm.composition import HEADS, Composition
from lm.contexts.attention import PreviousWords
from lm.contexts.states import LastHidden
from lm.corpus import Corpus
from lm.discourse import SLOTS, Pair, RelationClassifier, features, fit
from lm.fusions import Input, Output
from lm.laws import DOCUMENT, last_score, tiny_model, with_side
from lm.model import Config, DocumentLM
from lm.reading import contexts_after
from lm.sampling import SampledDocument, sample
from lm.scoring import LogProbError, ScoringEngine
from lm.vocabulary import END, SPECIAL
from lm.zoo import ZOO

Text = list[list[int]]

# Orders of the sentences of a document


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def texts_of(document: Text, orders: Any) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(tuple(document[i]) for i in order) for order in orders.tolist()]


def test_every_other_text_is_equally_likely_and_no_more_are_drawn_than_asked_for() -> None:
    document, generator = [[3], [4], [3], [5]], rng(4)
    corpus = Corpus.of([document])
    drawn = (distinct_orders(corpus, 0, 1, generator) for _ in range(1100))
    found = Counter(texts_of(document, orders)[0] for orders in drawn)
    assert len(found) == 4 * 3 - 1
    assert chisquare([*found.values()]).pvalue > 0.001
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

    sources = [[source(text) for text in own] for own in CONTEXTS]
    found = scores_in_contexts(engine, VARIANTS, CONTEXTS, sources)
    for scores, variants, contexts in zip(found, VARIANTS, CONTEXTS, strict=True):
        for row, text in zip(scores, contexts, strict=True):
            truth = [last_score(model, [*text, words]) for words in variants]
            assert row.tolist() == pytest.approx(truth, abs=2e-5)
    alike = [[source(DOCUMENT[:3]), [*source(())[:-1], *source(DOCUMENT[:3])[-1:]]]]
    (scores,) = scores_in_contexts(engine, VARIANTS[:1], [[DOCUMENT[:3], ()]], alike)
    assert np.array_equal(scores[0], scores[1]) == (name == "attention")


# Sampled texts
WORDS = range(len(SPECIAL), 10)  # of the tiny models
START = Corpus.of([DOCUMENT[:2]])
SAMPLED = {
    **{name: ZOO[name] for name in ("rnnlm", "codclm", "hrnnlm", "rnnlm-lin")},
    "attention": Composition(PreviousWords, Input, "", ""),
    "classes": Composition(LastHidden, Output, "", "", HEADS["classes"]),
}


def drawn(model: DocumentLM, n: int, **options: Any) -> list[SampledDocument]:
    return [*sample(model, **{"documents": n, "sentences": 2, "seed": 5, "longest": 6, **options})]


@pytest.mark.parametrize("name", SAMPLED)
def test_the_batch_changes_nothing_but_the_seed_and_the_start_do(name: str) -> None:
    model = tiny_model(SAMPLED[name])
    whole = drawn(model, 7, together=7, start=START)
    assert drawn(model, 7, together=3, start=START) == whole
    assert drawn(model, 2, together=1, start=START) == whole[:2]
    assert drawn(model, 7, together=7, start=START, seed=6) != whole
    assert (drawn(enlarged(model), 7) == drawn(model, 7, start=START)) == (model.order == 0)


def frequencies(model: DocumentLM, before: Corpus, temperature: float = 1.0) -> list[float]:
    """Probabilities of the words with which a sentence begins, `</s>` excluded."""
    context = contexts_after(model, before)
    hidden = model.hidden(model.start(context, model.word_inputs()))
    value = model.context.value(context) if model.context.width else None
    log_p = model.head.log_probabilities(model.head.features(hidden, value))[0, list(WORDS)]
    found: list[float] = (log_p.double() / temperature).softmax(0).tolist()
    return found


def test_words_are_drawn_by_their_probabilities_in_the_context_of_what_was_drawn() -> None:
    """χ², fixed seed: first words, second sentences after the most frequent first one."""
    model = enlarged(tiny_model(ZOO["codclm"]), 4.0)
    documents = drawn(model, 3_000, longest=1, together=3_000, seed=6)
    begun = Counter(d.sentences[0][0] for d in documents)
    truth = [3_000 * p for p in frequencies(model, Corpus.of([[]]))]
    assert chisquare([begun[w] for w in WORDS], truth).pvalue > 0.01
    first, most = begun.most_common(1)[0]
    following = Counter(d.sentences[1][0] for d in documents if d.sentences[0][0] == first)
    truth = [most * p for p in frequencies(model, Corpus.of([[[first]]]))]
    assert chisquare([following[w] for w in WORDS], truth).pvalue > 0.01
    other = [most * begun[w] / 3_000 for w in WORDS]
    assert chisquare([following[w] for w in WORDS], other).pvalue < 1e-4


@torch.no_grad()
def test_sentences_end_as_often_as_the_model_says_and_are_cut_off_and_counted() -> None:
    model = tiny_model(ZOO["codclm"])
    model.head.bias[:3] = 4.0  # `<unk>` and `<s>` are never drawn, nor `</s>` as the first word
    sentences = [s for d in drawn(model, 200, longest=2) for s in d.sentences]
    assert {len(s) for s in sentences} == {1, 2}
    assert {word for s in sentences for word in s} <= {*WORDS}
    for bias, ends in ((-100.0, False), (100.0, True)):
        model.head.bias[END] = bias
        documents = drawn(model, 3, sentences=4, longest=5)
        assert {len(s) for d in documents for s in d.sentences} == {1 if ends else 5}
        assert [document.cut for document in documents] == [0 if ends else 4] * 3


def test_temperatures_decide_what_is_drawn() -> None:
    model = enlarged(tiny_model(ZOO["rnnlm"]), 4.0)
    best = WORDS[int(np.argmax(frequencies(model, Corpus.of([[]]))))]
    cold = drawn(model, 50, sentences=1, longest=1, temperature=0.01)
    assert {document.sentences[0][0] for document in cold} == {best}
    hot = drawn(model, 2000, sentences=1, longest=1, temperature=100.0, together=2000)
    counts = Counter(document.sentences[0][0] for document in hot)
    truth = [2000 * p for p in frequencies(model, Corpus.of([[]]), 100.0)]
    assert chisquare([counts[w] for w in WORDS], truth).pvalue > 0.01


@torch.no_grad()
def test_what_cannot_be_drawn_is_refused() -> None:
    model = tiny_model(ZOO["rnnlm"])
    model.head.bias[4] = torch.nan
    with pytest.raises(LogProbError, match="a language model returned NaN"):
        drawn(model, 1)
    with pytest.raises(ValueError, match="without words"):
        drawn(DocumentLM(Config("rnnlm", 3, 2, 2)), 1)
    with pytest.raises(ValueError, match="a model of bags of words draws no sentences"):
        drawn(tiny_model(ZOO["rnnslm"]), 1)


# Relations between sentences
PAIRS: list[Pair] = [([b"it", b"is"], [word, b"it"]) for word in (b"but", b"so", b"But", b"and")]
LABELS = [b"Comparison", b"Contingency", b"Comparison", b"none"]


def test_probabilities_of_relations_are_at_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """∂/∂b of the mean −log p is the mean of p minus the frequency of each label: 0."""
    generator = torch.Generator().manual_seed(1)
    weight, bias = (torch.randn(n, 2, generator=generator) for n in (SLOTS, 1))
    slots = features(*PAIRS[1])
    logits = bias[0] + weight[slots].sum(0) / len(slots) ** 0.5
    found = RelationClassifier((b"a", b"b"), weight, bias[0]).log_probs(PAIRS)[1]
    torch.testing.assert_close(found, logits - logits.logsumexp(0))
    assert features(*PAIRS[0]).tolist() == features(*PAIRS[2]).tolist()  # case does not count
    assert features(*PAIRS[0]).tolist() != features(*PAIRS[0][::-1]).tolist()
    assert len(features([], [])) > 0
    monkeypatch.setattr(discourse, "SLOTS", 1 << 8)
    classifier = fit(PAIRS, LABELS, penalty=0.01, steps=200)
    probabilities = classifier.log_probs(PAIRS).exp().mean(0)
    shares = torch.tensor([LABELS.count(label) / 4 for label in classifier.labels])
    torch.testing.assert_close(probabilities, shares, atol=1e-3, rtol=0)
    assert classifier.accuracy(PAIRS, LABELS) == 1.0
