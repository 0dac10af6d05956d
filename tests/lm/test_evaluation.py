"""Perplexity, of tags and documents too, and document caches, in closed form and word by word."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.models import beside, config_of, enlarged, entered

from lm.corpus import Corpus, PackedBatch, encode
from lm.document_cache import WithDocumentCache
from lm.evaluation import Tags, perplexity
from lm.laws import (
    check_batches,
    check_keys,
    check_levels,
    check_order,
    check_unroll,
    context_after,
    read_by_words,
    tiny_model,
)
from lm.model import DocumentLM
from lm.scoring import LogProbError, ScoringEngine, after, independent
from lm.trie import Candidates
from lm.vocabulary import END, UNKNOWN, Vocabulary
from lm.zoo import ZOO

TEXT = [b"a b c", b"b zebra", b"", b"c", b"a a a zoo b", b"c b", b"", b"b"]
VOCABULARY = Vocabulary((b"a", b"b", b"c", b"never"))
MODELS = ["rnnlm", "codclm", "dam", "hrnnlm", "rnnslm", "dclm-right", "dclm-right-target", "hlstm"]


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
    ("name", "head"), [*((name, None) for name in MODELS), ("ccdclm", "self-normalised")]
)
def test_perplexity_is_the_sum_of_sentences_one_by_one(name: str, head: str | None) -> None:
    """Of each document as of a text of its own; the model is left as it was found."""
    model, corpus = model_of(name, head=head), text()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    totals = []
    with torch.no_grad():
        for first, stop in zip(corpus.documents, corpus.documents[1:], strict=False):
            context, total = model.context.start(1), 0.0
            for s in range(first, stop):
                context = entered(model, corpus, context, s)
                batch = PackedBatch.of(corpus, np.array([s]))
                read = model.unroll(batch, context)
                total += float(model.head.nll(model.features(read, context), batch.targets).sum())
                context = model.context.advance(context, model.context.summary(read))
            totals.append(total)
    for streams, length in ((1, 100), (1, 1), (2, 2), (32, 8)):
        found = perplexity(model, corpus, per_document=True, streams=streams, length=length)
        assert found.documents is not None
        assert [own.nats for own in found.documents] == pytest.approx(totals, rel=1e-5)
        assert found.nats == pytest.approx(sum(totals), rel=1e-5)
        documents = found.documents
        expected = perplexity(model, corpus, streams=streams, length=length)
        assert replace(found, documents=None) == expected
    for figure, values in (("sentences", [2, 3, 1]), ("tokens", [5, 8, 1]), ("oov", [1, 1, 0])):
        assert [getattr(own, figure) for own in documents] == values
    assert sum(own.word_nats for own in documents) == pytest.approx(found.word_nats)
    normalised = model.head.normalised
    assert [own.log_z is None for own in (found, *documents)] == [normalised] * 4
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
    found = perplexity(model, corpus, tags=Tags(np.array([0, 1, 0, 0, 0]), ["x", "y"], words)).tags
    assert found is not None
    assert (found["x"].tokens, found["y"].tokens) == (4, 1)
    assert found["y"].nats > 1000
    given = [{name for name in one.as_json() if "perplexity" in name} for one in found.values()]
    assert [len(names) for names in given] == [4, 0]


# Document caches, against counts and probabilities taken one by one
V, SHARE = 10, 0.3
CACHED = ("rnnlm", "codclm", "adclm", "rnnslm", "hrnnlm-lin")
DOCUMENT = [[3, 4, 4, 5], [UNKNOWN, 6], [], [4, 9]]
LIST = [[4, 3, 8], [], [UNKNOWN, 4, 4], [7]]


def plain_model(name: str, head: str | None = None) -> DocumentLM:
    return enlarged(DocumentLM.seeded(config_of(name, V, 5, 4, head=head), 1), 2.0).eval()


@torch.no_grad()
def truth(model: DocumentLM, before: Sequence[Sequence[int]], words: Sequence[int]) -> float:
    """Log p of a sentence after others: the plain model's probabilities, mixed word by word."""
    context = context_after(model, [list(sentence) for sentence in before])
    features = model.features(read_by_words(model, words, context), context)
    plain = -model.head.nll(features, torch.tensor([*words, END])).double()
    counts = Counter(w for sentence in before for w in sentence if w != UNKNOWN)
    n, total = sum(counts.values()), 0.0
    for word, log_p in zip([*words, END], plain.tolist(), strict=True):
        if word != END or model.head.predicts_end:
            p = (1 - SHARE) * math.exp(log_p) + SHARE * counts[word] / max(1, n)
            total += math.log(p) if n else log_p
    return total


@pytest.mark.parametrize("name", CACHED)
def test_every_word_is_mixed_with_the_words_of_the_document_so_far(name: str) -> None:
    """`<unk>` and `</s>` are never in the cache; an empty one changes no bit; the laws hold."""
    model = plain_model(name)
    cached = WithDocumentCache(model, SHARE)
    for n in range(len(DOCUMENT) + 1):
        request = Candidates.of([LIST]), context_after(cached, DOCUMENT[:n])
        ((scores, _),) = after(ScoringEngine.of(cached), [request])
        expected = [truth(model, DOCUMENT[:n], words) for words in LIST]
        np.testing.assert_allclose(scores[0], expected, atol=1e-4)
    corpus = Corpus.of([DOCUMENT, [[4]]])
    total = sum(
        truth(model, own[:n], words) for own in (DOCUMENT, [[4]]) for n, words in enumerate(own)
    )
    for streams, length in ((1, 1), (2, 3)):
        found = perplexity(cached, corpus, streams=streams, length=length)
        assert found.nats == pytest.approx(-total, rel=1e-5)
        assert (found.nats > found.word_nats) == model.head.predicts_end
    lists = Candidates.of([LIST, LIST[:2]])
    ours, theirs = (independent(ScoringEngine.of(one), lists) for one in (model, cached))
    assert all(np.array_equal(*both) for both in zip(ours, theirs, strict=True))
    assert (cached.order, cached.additive) == (None, False)
    assert {*map(id, cached.parameters())} == {*map(id, model.parameters())}
    for check in (check_unroll, check_batches, check_order, check_keys):
        check(cached)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("clstm-given-topic-carried", check_unroll),
        ("clstm-sentseg", check_unroll),
        ("hrnnlm", check_levels),
    ],
)
def test_any_context_stands_beside_a_cache(name: str, check: Callable[[DocumentLM], None]) -> None:
    check(WithDocumentCache(tiny_model(ZOO[name]), SHARE))
