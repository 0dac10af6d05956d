"""A model interpolated with a document cache, against counts and probabilities taken one by one."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from support.models import OF_TEXT_ALONE, config_of, enlarged

from lm.corpus import encode
from lm.document_cache import CachedWords, WithDocumentCache
from lm.engine import ScoringEngine
from lm.evaluation import perplexity
from lm.laws import check_batches, check_keys, check_order, check_unroll
from lm.model import DocumentLM
from lm.rows import Rows
from lm.scoring import after, independent
from lm.tiny_models import context_after, read_by_words
from lm.trie import Candidates
from lm.vocabulary import END, UNKNOWN, Vocabulary

V, SHARE = 10, 0.3
DOCUMENT = [[3, 4, 4, 5], [UNKNOWN, 6], [], [4, 9]]
LIST = [[4, 3, 8], [], [UNKNOWN, 4, 4], [7]]
every_model = pytest.mark.parametrize("name", OF_TEXT_ALONE)


def model_of(name: str, head: str | None = None) -> DocumentLM:
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
        if word == END and not model.head.predicts_end:
            continue
        p = math.exp(log_p)
        total += math.log((1 - SHARE) * p + SHARE * counts[word] / n) if n else log_p
    return total


@every_model
@pytest.mark.parametrize("n", range(len(DOCUMENT) + 1))
def test_every_word_is_mixed_with_the_words_of_the_document_so_far(name: str, n: int) -> None:
    """`<unk>` and `</s>` are never in the cache."""
    model = model_of(name)
    cached = WithDocumentCache(model, SHARE)
    request = Candidates.of([LIST]), context_after(cached, DOCUMENT[:n])
    ((scores, _),) = after(ScoringEngine.of(cached), [request])
    expected = [truth(model, DOCUMENT[:n], words) for words in LIST]
    np.testing.assert_allclose(scores[0], expected, atol=1e-4)


@pytest.mark.parametrize("head", ["softmax", "classes"])
@torch.no_grad()
def test_probabilities_of_all_words_sum_to_one(head: str) -> None:
    cached = WithDocumentCache(model_of("ccdclm", head), SHARE)
    context = context_after(cached, DOCUMENT)
    features = cached.features(read_by_words(cached, [3], context), context)[1:].expand(V, -1)
    words = torch.arange(V)
    plain = -cached.head.nll(features, words)
    mixed = cached.interpolated(plain, words, torch.zeros_like(words), context)
    assert mixed.exp().sum() == pytest.approx(1, abs=1e-6)
    counts = np.array([0, 0, 0, 1, 3, 1, 1, 0, 0, 1])
    expected = (1 - SHARE) * plain.exp().numpy() + SHARE * counts / 7
    np.testing.assert_allclose(mixed.exp().numpy(), expected, atol=1e-6)


@every_model
def test_an_empty_cache_changes_no_bit(name: str) -> None:
    model, lists = model_of(name), Candidates.of([LIST, LIST[:2]])
    found = [
        independent(ScoringEngine.of(one), lists)
        for one in (model, WithDocumentCache(model, SHARE))
    ]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every_model
def test_the_laws_of_compositions_hold(name: str) -> None:
    cached = WithDocumentCache(model_of(name), SHARE)
    assert (cached.order, cached.additive) == (None, False)
    for check in (check_unroll, check_batches, check_order, check_keys):
        check(cached)


def test_what_a_context_trains_and_merges_is_that_of_the_other_context() -> None:
    model = model_of("hrnnlm-lin")
    own, cached = model.context, CachedWords(model.context)
    assert {*map(id, cached.auxiliary_parameters())} == {*map(id, own.auxiliary_parameters())}
    assert (cached.end_to_end, cached.averaged, cached.merges_sentences) == (False, True, True)
    keys = [cached.sentence_key(np.array(words, np.int32)) for words in ([3, 4], [4, 3], [4, 4])]
    assert keys[0] == keys[1] != keys[2]
    ordered = CachedWords(model_of("ccdclm").context)
    keys = [ordered.sentence_key(np.array(words, np.int32)) for words in ([3, 4], [4, 3])]
    assert keys[0] != keys[1]


def test_the_model_itself_stays_as_it_is() -> None:
    model = model_of("codclm")
    context, names = model.context, [name for name, _ in model.named_parameters()]
    cached = WithDocumentCache(model, SHARE)
    assert (model.context, model.order, model.additive) == (context, 1, True)
    assert [name for name, _ in model.named_parameters()] == names
    assert {*map(id, cached.parameters())} == {*map(id, model.parameters())}


def test_contexts_of_caches_of_different_sizes_are_joined() -> None:
    cached = WithDocumentCache(model_of("codclm"), SHARE)
    rows = [context_after(cached, DOCUMENT[:n]) for n in range(4)]
    joined = Rows.cat(rows)
    words = torch.tensor([4, 4, 4, 4])
    found = cached.interpolated(torch.full((4,), -5.0), words, torch.arange(4), joined)
    shares = [None, 2 / 4, 2 / 5, 2 / 5]
    expected = [
        -5.0 if share is None else math.log((1 - SHARE) * math.exp(-5) + SHARE * share)
        for share in shares
    ]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


@every_model
def test_perplexity_is_that_of_the_scores_with_the_cache_emptied_for_each_document(
    name: str,
) -> None:
    text = [b"a b b", b"b zebra", b"", b"c", b"a c a zoo b", b"c b c", b"a", b"", b"b"]
    vocabulary = Vocabulary(tuple(b"abcdefg"[i : i + 1] for i in range(V - 3)))
    corpus, model = encode(text, vocabulary), model_of(name)
    total = ends = 0.0
    documents = np.split(np.arange(corpus.n_sentences), corpus.documents[1:-1])
    for document in documents:
        ids = [
            corpus.tokens[corpus.sentences[s] : corpus.sentences[s + 1]].tolist() for s in document
        ]
        total += sum(truth(model, ids[:n], words) for n, words in enumerate(ids))
    for streams, length in ((1, 1), (2, 2), (32, 8)):
        found = perplexity(WithDocumentCache(model, SHARE), corpus, streams=streams, length=length)
        assert found.nats == pytest.approx(-total, rel=1e-5)
        ends = found.nats - found.word_nats
        assert (0 < ends < found.nats) == model.head.predicts_end
        assert ends == 0 or model.head.predicts_end


def test_log_normalisers_are_still_those_of_the_head() -> None:
    corpus = encode([b"a b a", b"b a"], Vocabulary(tuple(b"abcdefg"[i : i + 1] for i in range(7))))
    model = model_of("rnnlm", "self-normalised")
    plain, mixed = perplexity(model, corpus), perplexity(WithDocumentCache(model, SHARE), corpus)
    assert plain.log_z == mixed.log_z
    assert plain.nats != mixed.nats


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_the_weight_of_a_cache_lies_between_zero_and_one(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        WithDocumentCache(model_of("rnnlm"), share)
