"""The walk over documents against one sentence, one word at a time."""

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.models import beside, config_of, enlarged, entered, without_padding

from lm.batches import Segment, segments
from lm.composition import Composition
from lm.contexts.bag import BagOfWords
from lm.corpus import Corpus
from lm.corruption import Copies, Corruption
from lm.model import Config, DocumentLM
from lm.noise import Noise
from lm.reading import read
from lm.rows import Rows
from lm.tiny_models import read_by_words
from lm.vocabulary import END
from lm.zoo import ZOO

V = 13
LENGTHS = [4, 1, 6, 2, 3]  # sentences of each document
LARGER = ["rlm-bow-lf-2", "rlm-seqbow-att-ef-2"]
RIGHT = [
    "dclm-right",
    "dclm-right-target",
    "dclm-rst",
]  # of other sentences, their side information is not dropped
every_model = pytest.mark.parametrize("name", [*sorted(ZOO), *LARGER])


def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    words = rng.integers(1, 6, size=sum(LENGTHS))
    tokens = rng.integers(3, V, size=words.sum()).astype(np.int32)
    bounds = [np.concatenate([[0], np.cumsum(column)]) for column in (words, LENGTHS)]
    sentences, documents = bounds
    return beside(Corpus(tokens, sentences, documents))


def as_documents_of_one_sentence(text: Corpus) -> Corpus:
    return replace(text, documents=np.arange(text.n_sentences + 1))


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
            context = entered(model, text, context, s)
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
        torch.testing.assert_close(without_padding(a), without_padding(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in [*sorted(ZOO), *LARGER] if name not in RIGHT])
def test_with_every_context_dropped_each_sentence_is_a_document_of_its_own(name: str) -> None:
    model, text = model_of(name), corpus()
    noise = Noise(0.0, 1.0, torch.Generator().manual_seed(0))
    dropped, _ = losses(model, text, 2, 3, noise)
    single, _ = losses(model, as_documents_of_one_sentence(text), 2, 3)
    np.testing.assert_allclose(dropped, single, rtol=1e-5, atol=1e-6)
    kept, _ = losses(model, text, 2, 3)
    of_its_own_label = name == "clstm-given-topic"  # given, whatever context is dropped
    alone = model.order == 0 and (of_its_own_label or not model.context.side_information)
    assert np.allclose(dropped, kept, rtol=1e-5, atol=1e-6) == alone


@pytest.mark.parametrize(
    ("name", "context"),
    [("hrnnlm", None), ("bag", partial(BagOfWords, sentences=2))],
    ids=["sentence recurrence", "bags"],
)
def test_a_dropped_context_does_not_end_the_history_that_needs_no_hidden_states(
    name: str, context: partial[BagOfWords] | None
) -> None:
    """All contexts dropped, documents end in the contexts in which they end without noise."""
    zoo = ZOO if context is None else {name: Composition(context, "lm.fusions:Output", "", "")}
    torch.manual_seed(1)
    model, text = DocumentLM(Config(name, V, 4, 5, "lstm", 2), zoo).eval(), corpus()
    noise = Noise(0.0, 1.0, torch.Generator().manual_seed(0))
    _, dropped = losses(model, text, 2, 3, noise)
    _, kept = losses(model, text, 2, 3)
    for a, b in zip(dropped, kept, strict=True):
        torch.testing.assert_close(a.tensors, b.tensors)


def test_the_sentence_level_is_taught_with_its_true_history_where_contexts_are_dropped() -> None:
    model, text = model_of("hrnnlm"), corpus()
    part = next(segments(text, range(5), streams=5, length=6))
    noises = (Noise(0.0, 1.0, torch.Generator()), None)
    one, two = (read(model, text, part, model.context.start(5), noise) for noise in noises)
    torch.testing.assert_close(one.auxiliary_loss, two.auxiliary_loss)
    assert not torch.allclose(one.features, two.features)


def test_dropped_contexts_are_as_many_as_asked_for() -> None:
    noise = Noise(0.0, 0.3, torch.Generator().manual_seed(1))
    contexts, null = Rows.of(torch.ones(10_000, 3)), Rows.of(torch.zeros(10_000, 3))
    (kept,) = noise.forget(contexts, null).tensors
    assert set(kept.sum(dim=1).tolist()) == {0.0, 3.0}  # whole rows
    share = 1 - float(kept.mean())
    assert abs(share - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 10_000)


@every_model
def test_noise_is_a_function_of_its_generator(name: str) -> None:
    model, text = model_of(name), corpus()
    seeds = (3, 3, 4)
    noises = [Noise(0.4, 0.4, torch.Generator().manual_seed(seed)) for seed in seeds]
    one, same, other = (losses(model, text, 2, 3, noise)[0] for noise in noises)
    assert one == same
    assert one != other


class Recorded(Corruption):
    """Corruption that keeps the words that stand for each sentence in the contexts after it."""

    left: ClassVar[list[list[int]]] = []

    def copies(self, corpus: Corpus, chosen: NDArray[np.int64]) -> Copies:
        made = Corruption.copies(self, corpus, chosen)
        bounds = made.text.sentences
        self.left.extend(made.text.tokens[bounds[n] : bounds[n + 1]].tolist() for n in made.left)
        return made


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("length", [1, 3, 9])
@every_model
def test_corrupted_copies_take_the_place_of_sentences_in_contexts_and_nowhere_else(
    name: str, length: int, share: float
) -> None:
    """Against each sentence, and the copy that is left of it, read word by word in one context."""
    model, text = model_of(name), corpus()
    Recorded.left.clear()
    corruption = Recorded(share, np.random.default_rng(7))
    noise = Noise(0.0, 0.0, torch.Generator(), corruption=corruption)
    ours, our_ends = losses(model, text, 1, length, noise)
    truth, ends, left = [], [], iter(Recorded.left or sentences_of(text))
    with torch.no_grad():
        for first, stop in zip(text.documents, text.documents[1:], strict=False):
            context = model.context.start(1)
            for s, words in enumerate(sentences_of(text)[first:stop], first):
                context = entered(model, text, context, s)
                sentence = read_by_words(model, words, context)
                targets = torch.tensor([*words, END])
                features = model.features(sentence, context)
                truth.extend(model.head.nll(features, targets).tolist())
                summary = model.context.summary(read_by_words(model, next(left), context))
                context = model.context.advance(context, summary)
            ends.append(context)
    assert next(left, None) is None
    np.testing.assert_allclose(ours, sorted(truth), rtol=1e-4, atol=1e-5)
    for a, b in zip(our_ends, ends, strict=True):
        torch.testing.assert_close(without_padding(a), without_padding(b), rtol=1e-4, atol=1e-5)
    assert (Recorded.left == []) == (model.order == 0)


def sentences_of(text: Corpus) -> list[list[int]]:
    bounds = zip(text.sentences, text.sentences[1:], strict=False)
    return [text.tokens[a:b].tolist() for a, b in bounds]


@every_model
def test_corrupted_contexts_leave_targets_and_the_loss_between_sentences_alone(name: str) -> None:
    """Targets are the words of the text, in the order in which they stand without corruption."""
    model, text = model_of(name), corpus()
    part = next(segments(text, [0, 2], streams=2, length=4))
    found = []
    for share, seed in ((0.0, 7), *((1.0, seed) for seed in range(7, 15))):
        corruption = Corruption(share, np.random.default_rng(seed))
        noise = Noise(0.0, 0.0, torch.Generator(), corruption=corruption)
        found.append(read(model, text, part, model.context.start(2), noise))
    clean = read(model, text, part, model.context.start(2))
    assert all(torch.equal(reading.targets, clean.targets) for reading in found)
    assert torch.equal(found[0].features, clean.features)
    assert torch.equal(found[0].auxiliary_loss, clean.auxiliary_loss)
    changed = [not torch.equal(reading.features, clean.features) for reading in found[1:]]
    assert any(changed) == (model.fusion.uses_context and model.context.sentences != 0)


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
def test_the_sentence_level_is_asked_for_every_word_after_the_first_sentence(length: int) -> None:
    """There is no sentence before the first one: nothing from which to predict its words."""
    model, text = model_of("hrnnlm"), corpus()
    context = model.context
    expected, asked = 0.0, 0.0
    with torch.no_grad():
        for first, stop in zip(text.documents, text.documents[1:], strict=False):
            state = context.start(1)
            for s in range(first, stop):
                words = torch.from_numpy(text.tokens[text.sentences[s] : text.sentences[s + 1]])
                if s > first:
                    logits = context.next_word_logits(state)  # type: ignore[operator]
                    expected -= float(torch.log_softmax(logits, dim=1)[0, words.long()].sum())
                state = context.advance(state, Rows.of(model.embedding(words).sum(0)[None]))
        contexts = context.start(2)
        for part in segments(text, range(text.n_documents), streams=2, length=length):
            reading = read(model, text, part, contexts)
            contexts = reading.contexts
            asked += float(reading.auxiliary_loss)
    assert asked == pytest.approx(expected, rel=1e-5)


@every_model
def test_models_without_a_sentence_level_have_no_loss_of_their_own_between_sentences(
    name: str,
) -> None:
    model, text = model_of(name), corpus()
    part = next(segments(text, [0], streams=1, length=4))
    reading = read(model, text, part, model.context.start(1))
    found = float(reading.auxiliary_loss.detach()), float(reading.auxiliary_nats)
    assert (found == (0.0, 0.0)) == (not model.context.auxiliary_parameters())


@pytest.mark.parametrize("name", ["hrnnlm", "hrnnlm-lin"])
def test_nats_of_a_sentence_level_are_summed_also_where_training_takes_means(name: str) -> None:
    model, text = model_of(name), corpus()
    for s in range(1, 3):  # of the first document
        part = next(segments(text, [0], streams=1, length=s + 1))
        until, before = (
            read(model, text, Segment(part.sentences[:n], part.begins), model.context.start(1))
            for n in (s + 1, s)
        )
        words = int(text.sentences[s + 1] - text.sentences[s])
        loss, own = (
            float((one - other).detach())
            for one, other in (
                (until.auxiliary_loss, before.auxiliary_loss),
                (until.auxiliary_nats, before.auxiliary_nats),
            )
        )
        assert own > 0
        assert loss == pytest.approx(own / (words if name == "hrnnlm-lin" else 1), rel=1e-4)
