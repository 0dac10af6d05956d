"""Trie scores against the plain definition: one candidate, one word at a time, in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lm.corpus import Corpus
from lm.evaluation import perplexity
from lm.model import Config, DocumentLM
from lm.scoring import Scorer, after, all_pairs, independent, log_normalisers
from lm.vocabulary import END
from lm.zoo import ZOO

VOCABULARY = 23
SHAPES = [(r, n, tied) for r, n in (("lstm", 1), ("lstm", 2), ("cifg", 2)) for tied in (0, 1)]


def model_of(name: str, recurrence: str = "lstm", layers: int = 1, tied: bool = True) -> DocumentLM:
    torch.manual_seed(5)
    config = Config(name, VOCABULARY, 6, 8, recurrence, layers, tied)
    model = DocumentLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return model.eval()


@torch.no_grad()
def sentence_score(model: DocumentLM, words: list[int], context: Tensor) -> tuple[float, Tensor]:
    """log p(words </s> | context) word by word, and the context after the sentence."""
    state = model.start(context, model.word_inputs())
    value = model.fusion.at_output(model.context.value(context))
    total = 0.0
    for word in [*words, END]:
        features = model.head.features(model.hidden(state), value)
        logits = (features @ model.head.weight().T + model.head.bias).double()
        total += float(torch.log_softmax(logits, dim=1)[0, word])
        if word != END:
            state = model.step(state, torch.tensor([word]), model.word_inputs())
    return total, model.context.advance(context, model.summary(state))


word = st.sampled_from([0, *range(3, VOCABULARY)])  # control ids never stand in a text
sentence = st.lists(word, max_size=6)
k_best = st.lists(sentence, min_size=1, max_size=5)
document = st.lists(k_best, min_size=1, max_size=4)


@pytest.mark.parametrize(("recurrence", "layers", "tied"), SHAPES)
@given(lists=document)
@settings(max_examples=15, deadline=None)
def test_independent_scores_equal_word_by_word_scores(
    lists: list[list[list[int]]], recurrence: str, layers: int, tied: bool
) -> None:
    model = model_of("rnnlm", recurrence, layers, tied)
    scores = independent(Scorer.of(model), lists)
    for candidates, row in zip(lists, scores, strict=True):
        expected = [sentence_score(model, c, model.context.start(1))[0] for c in candidates]
        np.testing.assert_allclose(row, expected, atol=1e-4)


@pytest.mark.parametrize("tied", [False, True])
@given(lists=document)
@settings(max_examples=15, deadline=None)
def test_all_pairs_equal_every_candidate_scored_after_every_other(
    lists: list[list[list[int]]], tied: bool
) -> None:
    model = model_of("codclm", tied=tied)
    contexts = [model.context.start(1)]
    for candidates, matrix in zip(lists, all_pairs(Scorer.of(model), lists), strict=True):
        assert matrix.shape == (len(contexts), len(candidates))
        for row, context in zip(matrix, contexts, strict=True):
            expected = [sentence_score(model, c, context)[0] for c in candidates]
            np.testing.assert_allclose(row, expected, atol=1e-4)
        contexts = [sentence_score(model, c, model.context.start(1))[1] for c in candidates]


@pytest.mark.parametrize("name", sorted(ZOO))
@given(lists=document)
@settings(max_examples=10, deadline=None)
def test_scores_after_any_contexts_equal_word_by_word_scores(
    lists: list[list[list[int]]], name: str
) -> None:
    model = model_of(name)
    scorer, contexts = Scorer.of(model), model.context.start(1)
    for candidates in lists:
        scores, summaries = after(scorer, candidates, contexts)
        following = []
        for row, summary, context in zip(scores, summaries, contexts, strict=True):
            for k, candidate in enumerate(candidates):
                expected, then = sentence_score(model, candidate, context[None])
                assert row[k] == pytest.approx(expected, abs=1e-4)
                ours = model.context.advance(context[None], summary[k : k + 1])
                torch.testing.assert_close(ours, then, atol=1e-5, rtol=1e-4)
                following.append(ours)
        contexts = torch.cat(following)[:3]


@pytest.mark.parametrize(("recurrence", "layers", "tied"), SHAPES)
@pytest.mark.parametrize("name", sorted(ZOO))
def test_perplexity_is_the_score_of_lists_whose_only_candidate_is_the_text(
    name: str, recurrence: str, layers: int, tied: bool
) -> None:
    model = model_of(name, recurrence, layers, tied)
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, size=23)
    tokens = rng.integers(3, VOCABULARY, size=lengths.sum()).astype(np.int32)
    corpus = Corpus(tokens, np.concatenate([[0], np.cumsum(lengths)]), np.array([0, 4, 5, 16, 23]))
    total = 0.0
    for first, last in zip(corpus.documents, corpus.documents[1:], strict=False):
        context = model.context.start(1)
        for s in range(first, last):
            words = tokens[corpus.sentences[s] : corpus.sentences[s + 1]].tolist()
            scores, summary = after(Scorer.of(model), [words], context)
            context = model.context.advance(context, summary[0])
            total += float(scores[0, 0])
    for streams in (1, 3):
        result = perplexity(model, corpus, streams=streams, length=2)
        assert result.nats == pytest.approx(-total, rel=1e-6)
    assert result.tokens == lengths.sum()
    assert result.sentences == 23


@pytest.mark.parametrize("spread", [1.0, 5.0, 25.0, 50.0])
@pytest.mark.parametrize("alike", [True, False], ids=["near-duplicates", "independent"])
def test_the_product_of_exponentials_equals_direct_evaluation_for_peaked_logits(
    spread: float, alike: bool
) -> None:
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(40, 500, generator=generator) * spread
    b = torch.randn(1 if alike else 12, 500, generator=generator) * spread
    if alike:
        b = b + 0.1 * torch.randn(12, 500, generator=generator)
    mean = b.mean(dim=0)
    a, b = a + mean, b - mean
    top = b.amax(dim=1)
    ours = log_normalisers(a, b, torch.exp(b - top[:, None]), top)
    truth = torch.logsumexp(a.double()[:, None] + b.double()[None], dim=2)
    bound = 1e-6 * (a.abs().max() + b.abs().max())
    assert float((ours.double() - truth).abs().max()) <= float(bound)
