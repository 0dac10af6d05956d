"""Documents with permuted sentences: which permutations there are, and their log-probabilities."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare
from support.models import OF_TEXT_ALONE, scores_of_sentences

from lm import coherence
from lm.checkpoint import SavedModel
from lm.coherence import distinct_orders, log_probs_of_orders
from lm.corpus import Corpus, encode
from lm.engine import ScoringEngine
from lm.evaluation import Perplexity, perplexity_by_document
from lm.model import DocumentLM
from lm.scoring import after
from lm.tiny_models import context_after
from lm.trie import Candidates

TEXTS = [
    ["the lamp is lit", "it burns", "she gives light", "unheard is it"],
    ["it is", "it burns and burns", "the light"],
    ["she burns", "the lamp", "it is"],
]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def texts_of(document: list[list[int]], orders: np.ndarray) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(tuple(document[i]) for i in order) for order in orders.tolist()]


@pytest.mark.parametrize(
    "document",
    [
        [[3], [4]],
        [[3], [4], [5]],
        [[3], [4], [3]],
        [[3, 4], [3], [4], [3]],
        [[], [3], [], [3], [3]],
        [[3]],
        [[5, 6], [5, 6]],
        [],
    ],
    ids=str,
)
def test_where_there_are_few_other_texts_each_is_there_once(document: list[list[int]]) -> None:
    """The truth: all permutations, listed."""
    corpus = Corpus.of([[[9], [8]], document])
    found = texts_of(document, distinct_orders(corpus, 1, 100, rng()))
    own = tuple(map(tuple, document))
    truth = set(permutations(own)) - {own}
    assert set(found) == truth
    assert len(found) == len(truth)


@pytest.mark.parametrize("most", [1, 3, 11])
def test_there_are_no_more_than_the_number_asked_for(most: int) -> None:
    document = [[3], [4], [5], [3], [6]]
    found = texts_of(document, distinct_orders(Corpus.of([document]), 0, most, rng()))
    assert len(found) == len(set(found)) == most
    assert tuple(map(tuple, document)) not in found


def test_every_other_text_is_equally_likely() -> None:
    document, generator = [[3], [4], [3], [5]], rng(4)
    corpus = Corpus.of([document])
    found = Counter(
        texts_of(document, distinct_orders(corpus, 0, 1, generator))[0] for _ in range(2200)
    )
    assert len(found) == 4 * 3 - 1
    assert chisquare([*found.values()]).pvalue > 0.001


def encoded(saved: SavedModel) -> Corpus:
    lines = [line.encode() for text in TEXTS for line in (*text, "")]
    return encode(lines, saved.vocabulary)


@pytest.mark.parametrize("name", OF_TEXT_ALONE)
def test_log_probabilities_are_sums_over_sentences_one_by_one(
    name: str, saved: dict[str, SavedModel]
) -> None:
    """Each sentence scored alone after the context that those before leave, word by word."""
    one = saved[name]
    engine = ScoringEngine.of(one.model)
    text = encoded(one)
    orders = {d: distinct_orders(text, d, 2, rng(d)) for d in (0, 2)}
    found = [*log_probs_of_orders(one, text, orders)]
    assert [own.shape for own in found] == [(3,), (3,)]
    for (d, others), own in zip(orders.items(), found, strict=True):
        for order, log_prob in zip([range(len(TEXTS[d])), *others.tolist()], own, strict=True):
            ids = [one.vocabulary.encode(TEXTS[d][i].encode().split()) for i in order]
            truth = 0.0
            for t, sentence in enumerate(ids):
                request = Candidates.of([[sentence]]), context_after(one.model, ids[:t])
                truth += float(after(engine, [request])[0][0][0, 0])
            assert log_prob == pytest.approx(truth, abs=1e-3)


@pytest.mark.parametrize("tokens", [1, 30])
def test_the_words_held_at_once_change_nothing(
    tokens: int, saved: dict[str, SavedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = saved["ccdclm"]
    text = encoded(one)
    orders = {d: distinct_orders(text, d, 4, rng(d)) for d in range(3)}
    truth = [*log_probs_of_orders(one, text, orders)]
    sizes = []

    def measured(model: DocumentLM, corpus: Corpus, *, streams: int) -> Perplexity:
        sizes.append(len(corpus.tokens) + corpus.n_sentences)
        return perplexity_by_document(model, corpus, streams=streams)

    monkeypatch.setattr(coherence, "TOKENS", tokens)
    monkeypatch.setattr(coherence, "perplexity_by_document", measured)
    for own, expected in zip(log_probs_of_orders(one, text, orders), truth, strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-4)
    assert max(sizes) <= max(tokens, 4 + 12)  # the longest document by itself


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "hrnnlm", "clstm-sentseg"])
def test_only_models_of_order_0_give_all_orders_the_same_bits(
    name: str, saved: dict[str, SavedModel]
) -> None:
    text = encoded(saved[name])
    orders = {d: distinct_orders(text, d, 5, rng()) for d in range(3)}
    for own in log_probs_of_orders(saved[name], text, orders):
        assert len(own) == 6
        assert (len(set(own.tolist())) == 1) == (saved[name].model.order == 0)


def test_the_first_log_probability_is_that_of_the_document(saved: dict[str, SavedModel]) -> None:
    one = saved["drnnlm"]
    text = encoded(one)
    orders = {d: distinct_orders(text, d, 1, rng()) for d in range(3)}
    for own, lines in zip(log_probs_of_orders(one, text, orders), TEXTS, strict=True):
        assert own[0] == pytest.approx(sum(scores_of_sentences(one, lines)), abs=1e-4)
