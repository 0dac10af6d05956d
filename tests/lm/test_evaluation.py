"""Perplexity, of tags and documents too, and document caches, in closed form and word by word."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from support.models import beside, config_of, enlarged, nll_one_by_one

from lm.corpus import Corpus, encode
from lm.document_cache import WithDocumentCache
from lm.evaluation import Tags, perplexity
from lm.laws import (
    check_batches,
    check_keys,
    check_levels,
    check_order,
    check_unroll,
    tiny_model,
)
from lm.model import DocumentLM
from lm.scoring import LogProbError, ScoringEngine, independent
from lm.trie import Candidates
from lm.vocabulary import END, UNKNOWN, Vocabulary
from lm.zoo import ZOO

TEXT = [b"a b c", b"b zebra", b"", b"c", b"a a a zoo b", b"c b", b"", b"b"]
VOCABULARY = Vocabulary((b"a", b"b", b"c", b"never"))


def text() -> Corpus:
    return beside(encode(TEXT, VOCABULARY))


def model_of(name: str = "ccdclm", seed: int = 3, **others: Any) -> DocumentLM:
    config = config_of(name, len(VOCABULARY), 4, 5, **others)
    return enlarged(DocumentLM.seeded(config, seed), 2.0).eval()


def blank(name: str = "ccdclm", bias: dict[int, float] | None = None) -> DocumentLM:
    """A model whose logits are these biases alone, where the head has any."""
    model = model_of(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for word, value in (bias or {}).items():
            if "bias" in dict(model.head.named_parameters()):
                model.head.get_parameter("bias")[word] = value
    return model


def test_only_the_end_of_sentences_separates_the_two_perplexities() -> None:
    """Logits are a bias alone: p(</s>) = 1/2, every word 1/12."""
    result = perplexity(blank(bias={END: math.log(6)}), text())
    assert result.perplexity_without_eos == pytest.approx(12, rel=1e-5)
    assert result.nats == pytest.approx(14 * math.log(12) + 6 * math.log(2), rel=1e-6)
    assert result.nats_per_token == pytest.approx(result.nats / 20)


@pytest.mark.parametrize(
    ("name", "head"), [("hlstm", None), ("rnnslm", None), ("ccdclm", "self-normalised")]
)
def test_perplexity_is_the_sum_of_sentences_one_by_one(name: str, head: str | None) -> None:
    """In streams and segments of any size; the model is left as it was found."""
    model, corpus = model_of(name, head=head), text()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    nats = [float(nll.sum()) for nll in nll_one_by_one(model, corpus)]
    totals = [sum(nats[first:stop]) for first, stop in pairwise(corpus.documents.tolist())]
    for streams, length in ((1, 100), (1, 1), (2, 2), (32, 8)):
        result = perplexity(model, corpus, per_document=True, streams=streams, length=length)
        assert result.documents is not None
        assert [document.nats for document in result.documents] == pytest.approx(totals, rel=1e-5)
        assert result.nats == pytest.approx(sum(totals), rel=1e-5)
        documents = result.documents
        expected = perplexity(model, corpus, streams=streams, length=length)
        assert replace(result, documents=None) == expected
    for figure, values in (("sentences", [2, 3, 1]), ("tokens", [5, 8, 1]), ("oov", [1, 1, 0])):
        assert [getattr(document, figure) for document in documents] == values
    assert sum(document.word_nats for document in documents) == pytest.approx(result.word_nats)
    normalised = model.head.normalised
    assert [own.log_z is None for own in (result, *documents)] == [normalised] * 4
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not model.training


def test_a_document_or_a_tag_without_probability_is_an_error_even_if_the_text_has_some() -> None:
    model = blank(bias={5: -1500.0})  # the word c
    corpus = encode([*[b"a b"] * 20, b"", b"c"], VOCABULARY)
    assert perplexity(model, corpus).perplexity > 1e9
    with pytest.raises(LogProbError, match="no probability left"):
        perplexity(model, corpus, per_document=True)
    ids = (corpus.tokens == 5).astype(np.int64)
    tags = Tags(ids, ["other", "odd"], np.arange(len(ids)))
    with pytest.raises(LogProbError, match="no probability left for tag 'odd'"):
        perplexity(model, corpus, tags=tags)


def test_a_word_of_many_pieces_may_be_too_improbable_for_a_perplexity() -> None:
    """e to the nats of its pieces together is no float: its tag has nats, and no perplexity."""
    model, corpus = blank(bias={5: -60.0}), encode([b"a " + b"c " * 20 + b"b", b"a b"], VOCABULARY)
    words = np.array([0, *[1] * 20, 2, 3, 4])  # a, a word of twenty pieces, b; a, b
    result = perplexity(model, corpus, tags=Tags(np.array([0, 1, 0, 0, 0]), ["x", "y"], words)).tags
    assert result is not None
    assert (result["x"].tokens, result["y"].tokens) == (4, 1)
    assert result["y"].nats > 1000
    given = [{name for name in one.as_json() if "perplexity" in name} for one in result.values()]
    assert [len(names) for names in given] == [4, 0]


# Document caches; their numbers: test_perplexity and agreement/test_models
SHARE = 0.3
LIST = [[4, 3, 8], [], [UNKNOWN, 4, 4], [7]]


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "adclm", "rnnslm", "hrnnlm-lin"])
def test_an_empty_document_cache_changes_no_bit_and_the_laws_hold(name: str) -> None:
    model = enlarged(DocumentLM.seeded(config_of(name, 10, 5, 4), 1), 2.0).eval()
    cached = WithDocumentCache(model, SHARE)
    corpus = Corpus.of([[[3, 4, 4, 5], [UNKNOWN, 6], [], [4, 9]], [[4]]])
    expected = perplexity(cached, corpus, streams=1, length=1).nats
    assert perplexity(cached, corpus, streams=2, length=3).nats == pytest.approx(expected, rel=1e-5)
    lists = Candidates.of([LIST, LIST[:2]])
    ours, theirs = (independent(ScoringEngine.of(one), lists) for one in (model, cached))
    assert all(np.array_equal(*both) for both in zip(ours, theirs, strict=True))
    assert (cached.order, cached.additive) == (None, False)
    assert {*map(id, cached.parameters())} == {*map(id, model.parameters())}
    for check in (check_unroll, check_batches, check_order, check_keys):
        check(cached)


def test_any_context_stands_beside_a_cache() -> None:
    """The laws raise LawError for a model that breaks them."""
    for name in ("clstm-given-topic-carried", "clstm-sentseg"):
        check_unroll(WithDocumentCache(tiny_model(ZOO[name]), SHARE))
    check_levels(WithDocumentCache(tiny_model(ZOO["hrnnlm"]), SHARE))
