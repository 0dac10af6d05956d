"""The walk over documents in segments of many streams, against one word at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.models import beside, config_of, enlarged, entered, without_padding

from lm.corpus import SEGMENTS, Corpus, segments
from lm.laws import read_by_words
from lm.model import DocumentLM
from lm.reading import Copies, Corruption, Noise, read
from lm.sentences import Rows
from lm.vocabulary import END

V = 13
RIGHT = ("dclm-right", "dclm-right-target", "dclm-rst")  # their side information is not dropped
MODELS = ["rnnlm", "dam", "hrnnlm-lin", "rnnslm", "dclm-two-sentence", *RIGHT]
MODELS += ["clstm-given-topic", "clstm-paraseg", "rlm-seqbow-att-ef-2", "attention-gated"]
every_model = pytest.mark.parametrize("name", MODELS)


def corpus() -> Corpus:
    """Documents of 4, 1, 6, 2 and 3 sentences with side information."""
    rng = np.random.default_rng(0)
    sizes = [rng.integers(1, 6, size=n) for n in (4, 1, 6, 2, 3)]
    return beside(Corpus.of([[rng.integers(3, V, n).tolist() for n in size] for size in sizes]))


def sentences_of(text: Corpus) -> list[list[int]]:
    return [words.tolist() for words in np.split(text.tokens, text.sentences[1:-1])]


def model_of(name: str) -> DocumentLM:
    torch.manual_seed(1)
    return enlarged(DocumentLM(config_of(name, V, 4, 5, layers=2)), 2.0).eval()


Found = tuple[list[float], list[Rows]]  # −log p of all words, sorted; last contexts of documents


@torch.no_grad()
def walked(
    model: DocumentLM, text: Corpus, streams: int, length: int, noise: Noise | None = None
) -> Found:
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
def by_hand(model: DocumentLM, text: Corpus, left: Sequence[list[int]]) -> Found:
    """Word by word; left: what stands for each sentence in the contexts after it."""
    nll, ends = [], []
    for first, stop in zip(text.documents, text.documents[1:], strict=False):
        context = model.context.start(1)
        for s in range(first, stop):
            words = sentences_of(text)[s]
            context = entered(model, text, context, s)
            features = model.features(read_by_words(model, words, context), context)
            nll.extend(model.head.nll(features, torch.tensor([*words, END])).tolist())
            summary = model.context.summary(read_by_words(model, left[s], context))
            context = model.context.advance(context, summary)
        ends.append(context)
    return sorted(nll), ends


def check_equal(found: Found, truth: Found) -> None:
    np.testing.assert_allclose(found[0], truth[0], rtol=1e-4, atol=1e-5)
    for a, b in zip(found[1], truth[1], strict=True):
        torch.testing.assert_close(without_padding(a), without_padding(b), rtol=1e-4, atol=1e-5)


@every_model
def test_segments_and_streams_change_nothing_of_one_long_walk(name: str) -> None:
    model, text = model_of(name), corpus()
    truth = by_hand(model, text, sentences_of(text))
    for streams, length in ((1, 1), (3, 2), (5, 9)):
        check_equal(walked(model, text, streams, length), truth)


class Recorded(Corruption):
    """Corruption that keeps the words that stand for each sentence in the contexts after it."""

    left: ClassVar[list[list[int]]] = []

    def copies(self, corpus: Corpus, chosen: NDArray[np.int64]) -> Copies:
        made = Corruption.copies(self, corpus, chosen)
        self.left.extend(sentences_of(made.text)[n] for n in made.left)
        return made


@every_model
def test_corrupted_copies_take_the_place_of_sentences_in_contexts_alone(name: str) -> None:
    model, text = model_of(name), corpus()
    for share, length in ((0.5, 2), (1.0, 9)):
        Recorded.left.clear()
        corruption = Recorded(share, np.random.default_rng(7))
        noise = Noise(0.0, 0.0, torch.Generator(), corruption=corruption)
        result = walked(model, text, 1, length, noise)
        check_equal(result, by_hand(model, text, Recorded.left or sentences_of(text)))
        assert (Recorded.left == []) == (model.order == 0)


@every_model
def test_with_every_context_dropped_each_sentence_is_a_document_of_its_own(name: str) -> None:
    """And noise is a function of its generator."""
    model, text = model_of(name), corpus()
    dropped, _ = walked(model, text, 2, 3, Noise(0.0, 1.0, torch.Generator()))
    if name not in RIGHT:
        apart = replace(text, documents=np.arange(text.n_sentences + 1))
        np.testing.assert_allclose(dropped, walked(model, apart, 2, 3)[0], rtol=1e-5, atol=1e-6)
        of_its_own_label = name == "clstm-given-topic"  # given, whatever context is dropped
        alone = model.order == 0 and (of_its_own_label or not model.context.side_information)
        kept = walked(model, text, 2, 3)[0]
        assert np.allclose(dropped, kept, rtol=1e-5, atol=1e-6) == alone
    noises = [Noise(0.4, 0.4, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    one, same, other = (walked(model, text, 2, 3, noise)[0] for noise in noises)
    assert one == same != other


# Batches and segments
def test_the_order_of_an_epoch_is_a_permutation_that_seed_and_epoch_decide() -> None:
    text = Corpus.of([[[3]]] * 30)

    def order(seed: int, epoch: int) -> tuple[int, ...]:
        parts = SEGMENTS["carried"](text, streams=1, length=1, seed=seed, epoch=epoch)
        return tuple(int(part.sentences[0, 0]) for part in parts)

    orders = {(s, e): order(s, e) for s in range(3) for e in range(3)}
    assert all(sorted(order) == list(range(30)) for order in orders.values())
    assert len(set(orders.values())) == len(orders)
    assert order(1, 2) == orders[1, 2]
