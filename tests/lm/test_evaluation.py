"""Perplexity: what is counted, in closed form and by hand; its sum over sentences is checked
against the scoring engine in `test_scoring.py`."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.models import beside, config_of

from lm.corpus import Corpus, encode
from lm.evaluation import Perplexity, Tags, perplexity, perplexity_by_document
from lm.model import DocumentLM
from lm.scoring import ScoreError
from lm.tiny_models import tiny_model
from lm.vocabulary import END, Vocabulary
from lm.zoo import ZOO

TEXT = [b"a b c", b"b zebra", b"", b"c", b"a a a zoo b", b"c b", b"", b"b"]
VOCABULARY = Vocabulary((b"a", b"b", b"c", b"never"))


def text() -> Corpus:
    return beside(encode(TEXT, VOCABULARY))


def model_of(name: str = "ccdclm") -> DocumentLM:
    torch.manual_seed(0)
    return DocumentLM(config_of(name, len(VOCABULARY), 4, 5))


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_model_that_knows_nothing_is_as_perplexed_as_its_vocabulary_is_large(name: str) -> None:
    model = model_of(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    result = perplexity(model, text())
    ends = model.head.predicts_end  # else </s> has no probability, and is not counted
    assert result.perplexity == pytest.approx(6 + ends, rel=1e-6)
    assert result.perplexity_without_eos == pytest.approx(6 + ends, rel=1e-6)
    assert result.nats == pytest.approx((14 + 6 * ends) * math.log(6 + ends), rel=1e-6)


def test_without_the_end_of_sentences_there_are_nats_per_word_of_a_bag_alone() -> None:
    result = perplexity(model_of("rnnslm"), text())
    assert not result.predicts_end
    assert result.nats == result.word_nats
    assert result.as_json() == {
        "sentences": 6,
        "tokens": 14,
        "oov": 2,
        "nats": result.nats,
        "nats_per_word_of_a_bag": result.nats / 14,
    }


def test_only_the_end_of_sentences_separates_the_two_perplexities() -> None:
    """Logits are a bias alone: p(</s>) = 1/2, every word 1/12."""
    model = model_of()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.head.get_parameter("bias")[END] = math.log(6)
    result = perplexity(model, text())
    assert result.perplexity_without_eos == pytest.approx(12, rel=1e-5)
    assert result.nats == pytest.approx(14 * math.log(12) + 6 * math.log(2), rel=1e-6)
    assert result.nats_per_token == pytest.approx(result.nats / 20)
    assert result.perplexity == pytest.approx(math.exp(result.nats / 20))


def test_sentences_words_and_unknown_words_are_counted() -> None:
    result = perplexity(model_of(), text())
    assert (result.sentences, result.tokens, result.oov) == (6, 14, 2)
    figures = result.as_json()
    assert figures["perplexity"] == result.perplexity
    assert figures["perplexity_without_eos"] == result.perplexity_without_eos


@pytest.mark.parametrize("name", sorted(ZOO))
def test_streams_and_segments_change_nothing(name: str) -> None:
    model = model_of(name)
    whole = perplexity(model, text(), streams=1, length=100)
    for streams, length in ((1, 1), (2, 2), (32, 8)):
        other = perplexity(model, text(), streams=streams, length=length)
        assert other.nats == pytest.approx(whole.nats, rel=1e-6)
        assert other.word_nats == pytest.approx(whole.word_nats, rel=1e-6)


@pytest.mark.parametrize("name", ["codclm", "ccdclm", "drnnlm", "hrnnlm"])
def test_sentences_are_read_in_the_context_of_their_document(name: str) -> None:
    lines = [line for line in TEXT if line]
    alone = encode([part for line in lines for part in (line, b"")], VOCABULARY)
    assert alone.n_documents == 6
    model = model_of(name)
    assert perplexity(model, alone).nats != pytest.approx(perplexity(model, text()).nats, rel=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_a_model_is_left_as_it_was_found(training: bool) -> None:
    model = model_of().train(training)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    perplexity(model, text())
    assert model.training == training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_nothing_but_words_and_ends_enters_the_mean() -> None:
    figures = Perplexity(sentences=2, tokens=8, oov=1, nats=20.0, word_nats=16.0)
    assert figures.nats_per_token == 2.0
    assert figures.perplexity == math.exp(2.0)
    assert figures.perplexity_without_eos == math.exp(2.0)


@pytest.mark.parametrize("head", [None, "self-normalised"])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_documents_have_the_perplexity_of_each_alone_and_add_up_to_the_text(
    name: str, head: str | None
) -> None:
    model = DocumentLM.seeded(config_of(name, len(VOCABULARY), 4, 5, head=head), 3)
    found = perplexity_by_document(model, text(), streams=2, length=2)
    assert found.documents is not None
    assert replace(found, documents=None) == perplexity(model, text(), streams=2, length=2)
    documents = b"\n".join(TEXT).split(b"\n\n")
    for document, own in zip(documents, found.documents, strict=True):
        alone = perplexity(model, beside(encode(document.split(b"\n"), VOCABULARY)))
        assert own.documents is None
        assert (own.sentences, own.tokens, own.oov) == (alone.sentences, alone.tokens, alone.oov)
        assert own.nats == pytest.approx(alone.nats, rel=1e-6)
        assert own.word_nats == pytest.approx(alone.word_nats, rel=1e-6)
        assert own.predicts_end == alone.predicts_end
        assert (own.log_z is None) == model.head.normalised
        if own.log_z is not None and alone.log_z is not None:
            assert own.log_z.mean == pytest.approx(alone.log_z.mean, abs=1e-5)
            assert own.log_z.sd == pytest.approx(alone.log_z.sd, abs=1e-5)
    for figure in ("sentences", "tokens", "oov", "nats", "word_nats"):
        total = sum(getattr(own, figure) for own in found.documents)
        assert total == pytest.approx(getattr(found, figure), rel=1e-12)


def test_a_single_document_without_probability_is_an_error_even_if_the_text_has_some() -> None:
    model = model_of()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.head.get_parameter("bias")[5] = -1500.0  # the word c
    lines = [*[b"a b"] * 20, b"", b"c"]
    assert perplexity(model, encode(lines, VOCABULARY)).perplexity > 1e9
    with pytest.raises(ScoreError, match="no probability left"):
        perplexity_by_document(model, encode(lines, VOCABULARY))


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_the_nats_of_a_tag_are_those_of_its_words(name: str, streams: int) -> None:
    """Logits are a bias alone where the head has one, else 0: −log p of a word in closed form."""
    model, logits = model_of(name), torch.zeros(len(VOCABULARY))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        if "bias" in dict(model.head.named_parameters()):
            logits[3:6] = torch.tensor([1.0, -1.0, 2.0])
            model.head.get_parameter("bias")[:] = logits
    if not model.head.predicts_end:
        logits[END] = -math.inf
    nats = -logits.log_softmax(0)
    corpus = text()
    ids = np.arange(len(corpus.tokens)) % 3
    tags = Tags(ids, ["x", "y", "z", "absent"])
    found = perplexity(model, corpus, tags=tags, streams=streams, length=2)
    assert replace(found, tags=None) == perplexity(model, corpus, streams=streams, length=2)
    of_tags = dict(found.tags or {})
    assert list(of_tags) == ["x", "y", "z"]
    for i, own in enumerate(of_tags.values()):
        words = corpus.tokens[ids == i]
        assert (own.tokens, own.oov) == (len(words), int((words == 0).sum()))
        assert own.nats_per_token == pytest.approx(float(nats[words].mean()), rel=1e-5)
    by_document = perplexity_by_document(model, corpus, tags=tags, streams=streams, length=2)
    assert by_document.tags == found.tags
    assert sum(own.nats for own in of_tags.values()) == pytest.approx(found.word_nats, rel=1e-6)


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm", "adclm", "drnnlm"])
def test_each_word_has_what_it_adds_to_the_nats_of_the_text_up_to_it(name: str) -> None:
    model = DocumentLM.seeded(config_of(name, len(VOCABULARY), 4, 5), 3)
    sentences = [[3, 4, 5], [4, 0], [3], [3, 5, 4]]
    words = [(s, i) for s, sentence in enumerate(sentences) for i in range(len(sentence))]
    names = [f"{s} {i}" for s, i in words]
    corpus = Corpus.of([sentences, [[5, 5], [3]]])
    tags = Tags(np.array([*range(len(words)), *[len(words)] * 3]), [*names, "other"])
    found = perplexity(model, corpus, tags=tags, length=2).tags
    assert found is not None
    before = 0.0
    for (s, i), tag in zip(words, names, strict=True):
        prefix = [*sentences[:s], sentences[s][: i + 1]]
        nats = perplexity(model, Corpus.of([prefix])).word_nats
        assert found[tag].nats == pytest.approx(nats - before, abs=1e-5)
        before = nats


def test_a_tag_without_probability_is_an_error() -> None:
    model = model_of()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.head.get_parameter("bias")[5] = -1500.0  # the word c
    corpus = encode([*[b"a b"] * 20, b"c"], VOCABULARY)
    tags = Tags((corpus.tokens == 5).astype(np.int64), ["other", "odd"])
    with pytest.raises(ScoreError, match="no probability left for words of tag 'odd'"):
        perplexity(model, corpus, tags=tags)


@pytest.mark.parametrize("name", ["drnnlm", "codclm", "rnnlm"])
def test_of_passages_the_last_sentence_is_counted_given_the_others(name: str) -> None:
    """−log p of each last sentence is that of the passage less that of the passage without it."""
    model = tiny_model(ZOO[name])
    rng = np.random.default_rng(4)
    text = Corpus.of([[rng.integers(3, 10, n).tolist() for n in (3, 1, 2, 4, 2, 5)]])
    found = perplexity_by_document(model, text.in_passages(3))
    whole = [Corpus.of([sentences_of(text)[k : k + 3]]) for k in (0, 3)]
    before = [Corpus.of([sentences_of(text)[k : k + 2]]) for k in (0, 3)]
    expected = [
        perplexity(model, a).nats - perplexity(model, b).nats
        for a, b in zip(whole, before, strict=True)
    ]
    assert found.documents is not None
    assert [own.nats for own in found.documents] == pytest.approx(expected, rel=1e-5)
    assert found.nats == pytest.approx(sum(expected), rel=1e-5)
    assert (found.sentences, found.tokens) == (2, 2 + 5)
    assert [own.tokens for own in found.documents] == [2, 5]
    assert perplexity(model, text.in_passages(3)).nats == found.nats


def sentences_of(text: Corpus) -> list[list[int]]:
    """The sentences of a corpus, as lists of ids."""
    return [words.tolist() for words in np.split(text.tokens, text.sentences[1:-1])]
