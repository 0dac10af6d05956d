"""The walk over documents against one sentence, one word at a time."""

import math

import numpy as np
import pytest
import torch
from support.models import config_of, enlarged
from support.rows import assert_equal_rows

from lm.batches import segments
from lm.corpus import Corpus
from lm.laws import read_by_words
from lm.model import Config, DocumentLM
from lm.reading import Noise, read
from lm.rows import Rows
from lm.vocabulary import END
from lm.zoo import ZOO

V = 13
LENGTHS = [4, 1, 6, 2, 3]  # sentences of each document
every_model = pytest.mark.parametrize("name", sorted(ZOO))


def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    words = rng.integers(1, 6, size=sum(LENGTHS))
    tokens = rng.integers(3, V, size=words.sum()).astype(np.int32)
    bounds = [np.concatenate([[0], np.cumsum(column)]) for column in (words, LENGTHS)]
    return Corpus(tokens, *bounds)


def as_documents_of_one_sentence(text: Corpus) -> Corpus:
    return Corpus(text.tokens, text.sentences, np.arange(text.n_sentences + 1))


def model_of(name: str) -> DocumentLM:
    torch.manual_seed(1)
    return enlarged(DocumentLM(config_of(name, V, 4, 5, layers=2)), 2.0).eval()


@torch.no_grad()
def losses(
    model: DocumentLM, text: Corpus, streams: int, length: int, noise: Noise | None = None
) -> tuple[list[float], list[Rows]]:
    """−log p of all words, sorted, and the context with which each document ends."""
    contexts = model.context.start(streams)
    nll, ends = [], {}
    for part in segments(text, range(text.n_documents), streams=streams, length=length):
        reading = read(model, text, part, contexts, noise)
        contexts = reading.contexts
        nll.extend(model.head.nll(reading.features, reading.targets).tolist())
        for stream, last in enumerate(part.sentences.max(axis=0)):
            if last >= 0 and last + 1 in text.documents:
                ends[int(last)] = contexts.take(torch.tensor([stream]))
    return sorted(nll), [ends[last] for last in sorted(ends)]


@torch.no_grad()
def by_hand(model: DocumentLM, text: Corpus) -> tuple[list[float], list[Rows]]:
    """−log p of all words, sorted, and last contexts, word by word."""
    nll, ends = [], []
    for first, stop in zip(text.documents, text.documents[1:], strict=False):
        context = model.context.start(1)
        for s in range(first, stop):
            words = text.tokens[text.sentences[s] : text.sentences[s + 1]].tolist()
            sentence = read_by_words(model, words, context)
            targets = torch.tensor([*words, END])
            nll.extend(model.head.nll(model.features(sentence, context), targets).tolist())
            context = model.context.advance(context, model.context.summary(sentence))
        ends.append(context)
    return sorted(nll), ends


@pytest.mark.parametrize("streams", [1, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 9])
@every_model
def test_segments_and_streams_change_nothing_of_one_long_walk(
    name: str, streams: int, length: int
) -> None:
    model, text = model_of(name), corpus()
    ours, our_ends = losses(model, text, streams, length)
    truth, true_ends = by_hand(model, text)
    np.testing.assert_allclose(ours, truth, rtol=1e-4, atol=1e-5)
    for a, b in zip(our_ends, true_ends, strict=True):
        assert_equal_rows(a, b)


@every_model
def test_with_every_context_dropped_each_sentence_is_a_document_of_its_own(name: str) -> None:
    model, text = model_of(name), corpus()
    noise = Noise(0.0, 1.0, torch.Generator().manual_seed(0))
    dropped, _ = losses(model, text, 2, 3, noise)
    alone, _ = losses(model, as_documents_of_one_sentence(text), 2, 3)
    np.testing.assert_allclose(dropped, alone, rtol=1e-5, atol=1e-6)
    kept, _ = losses(model, text, 2, 3)
    assert np.allclose(dropped, kept, rtol=1e-5, atol=1e-6) == (model.order == 0)


def test_dropped_contexts_are_as_many_as_asked_for() -> None:
    noise = Noise(0.0, 0.3, torch.Generator().manual_seed(1))
    contexts, null = Rows.of(torch.ones(10_000, 3)), Rows.of(torch.zeros(10_000, 3))
    (kept,) = noise.forget(contexts, null).tensors
    assert set(kept.sum(dim=1).tolist()) == {0.0, 3.0}  # whole rows
    share = 1 - float(kept.mean())
    assert abs(share - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 10_000)


def test_dropout_keeps_the_expected_value() -> None:
    noise = Noise(0.25, 0.0, torch.Generator().manual_seed(2))
    dropped = noise.drop(torch.ones(100, 100))
    assert set(dropped.flatten().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert abs(float(dropped.mean()) - 1) < 4 * math.sqrt(0.25 / 0.75 / 10_000)
    whole = torch.randn(3, 3)
    assert torch.equal(Noise(0.0, 0.0, torch.Generator()).drop(whole), whole)


@every_model
def test_noise_is_a_function_of_its_generator(name: str) -> None:
    model, text = model_of(name), corpus()
    seeds = (3, 3, 4)
    noises = [Noise(0.4, 0.4, torch.Generator().manual_seed(seed)) for seed in seeds]
    one, same, other = (losses(model, text, 2, 3, noise)[0] for noise in noises)
    assert one == same
    assert one != other


@pytest.mark.parametrize("name", ["codclm", "ccdclm", "drnnlm"])
def test_the_loss_of_a_sentence_teaches_the_one_before_it_within_a_segment(name: str) -> None:
    """Two sentences in a document; the second alone is asked, the first's first word moves."""
    model = DocumentLM(Config(name, V, 4, 5, tied=False))
    text = Corpus(np.array([3, 4, 5, 6], dtype=np.int32), np.array([0, 1, 4]), np.array([0, 2]))
    (part,) = segments(text, [0], streams=1, length=2)
    reading = read(model, text, part, model.context.start(1))
    nll = model.head.loss(reading.features, reading.targets, None, torch.Generator())
    loss = nll[(reading.targets == 5) | (reading.targets == 6)].sum()
    (gradient,) = torch.autograd.grad(loss, model.embedding.weight)
    assert gradient[3].any()  # word 3 stands in the first sentence only


@pytest.mark.parametrize("length", [1, 3])
def test_the_sentence_level_is_asked_for_every_word_of_every_sentence(length: int) -> None:
    model, text = model_of("hrnnlm"), corpus()
    context = model.context
    expected, asked = 0.0, 0.0
    with torch.no_grad():
        for first, stop in zip(text.documents, text.documents[1:], strict=False):
            state = context.start(1)
            for s in range(first, stop):
                words = torch.from_numpy(text.tokens[text.sentences[s] : text.sentences[s + 1]])
                logits = context.next_word_logits(state)  # type: ignore[operator]
                expected -= float(torch.log_softmax(logits, dim=1)[0, words.long()].sum())
                state = context.advance(state, Rows.of(model.embedding(words).sum(0)[None]))
        contexts = context.start(2)
        for part in segments(text, range(text.n_documents), streams=2, length=length):
            reading = read(model, text, part, contexts)
            contexts = reading.contexts
            asked += float(reading.auxiliary_loss)
    assert asked == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm", "drnnlm"])
def test_other_models_have_no_loss_of_their_own_between_sentences(name: str) -> None:
    model, text = model_of(name), corpus()
    part = next(segments(text, [0], streams=1, length=4))
    assert float(read(model, text, part, model.context.start(1)).auxiliary_loss) == 0.0
