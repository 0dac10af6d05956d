"""Predictors of topics against scalar code written from the paper, and laws of all of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.scalar import names
from support.scalar import topic_prediction as scalar
from support.scalar.comparison import float64
from support.topic_prediction import (
    DOCUMENTS,
    LABELS,
    TOPICS,
    V,
    configs,
    labelled,
    name_of,
    predictor,
)

from lm.batches import segments
from lm.model import n_parameters
from lm.recurrences import LSTM
from lm.recurrences.peephole import Peephole
from lm.topics.prediction import (
    NONE,
    LabelledText,
    Predictions,
    PredictorConfig,
    TopicPredictor,
    make,
)

every_config = pytest.mark.parametrize("config", configs(), ids=name_of)
C = LABELS - 2


def parameters(model: TopicPredictor) -> dict[str, Any]:
    """Parameters of `support.scalar.topic_prediction`."""
    of = {name: tensor.detach().double() for name, tensor in model.state_dict().items()}
    cell = model.config.recurrence or "peephole"
    weights: dict[str, Any] = {
        key: of[name].tolist() if name in of else None
        for key, name in {
            "X": "embedding.weight",
            "T": "topics.weight",
            "W_t": "thought.projection.weight",
            "W": "output.weight",
            "b": "output.bias",
            "W_o": "words.weight",
            "b_o": "words.bias",
        }.items()
    }
    if recurrence := names.part(of, "recurrence."):
        weights["g"] = names.stack(recurrence, cell)
    numbers = range(model.config.layers)
    weights["layers"] = [
        tuple(of[f"layers.{n}.{kind}"].tolist() for kind in ("weight", "bias"))
        for n in numbers
        if f"layers.{n}.weight" in of
    ]
    return weights


def expected(model: TopicPredictor) -> tuple[list[list[float]], list[int], float]:
    """log p of the topics at each prediction, the targets, and the words' nats, by scalar code."""
    config, p = model.config, parameters(model)
    log_probs, targets, nats = [], [], 0.0
    for sentences, topics in zip(DOCUMENTS, TOPICS, strict=True):
        known: list[int | None] = [*topics]
        if config.given_next_words:
            known = [None, *topics[:-1]] if topics else []
        if config.architecture == "bow-dnn":
            read = scalar.bow_dnn(p, sentences, known)
        else:
            rolled_up = config.architecture == "rolled-up"
            read = scalar.lstm(p, sentences, known, rolled_up=rolled_up)
            if config.target == "joint":
                words = scalar.lstm_word_nats(p, sentences, known, rolled_up=rolled_up)
                nats += sum(words)
        log_probs += read[1:] if config.given_next_words else read[:-1]
        targets += topics[1:]
    return log_probs, targets, nats


def predictions(
    model: TopicPredictor, *, streams: int, length: int
) -> tuple[list[list[float]], list[int], float]:
    """log p and targets in the order of the text, and the words' nats, in segments."""
    corpus = labelled(DOCUMENTS, TOPICS)
    text = LabelledText.of(corpus, model.config)
    contexts, nats = model.start(streams), 0.0
    order = np.arange(corpus.n_sentences)
    found: dict[int, tuple[list[float], int]] = {}
    for segment in segments(corpus, range(corpus.n_documents), streams=streams, length=length):
        read: Predictions = model.read(text, segment, contexts)
        contexts, nats = read.contexts, nats + float(read.word_nll)
        # rows of a grid one after the other: the order in which all architectures predict
        chosen = segment.sentences[segment.sentences >= 0]
        predicted = order[chosen][text.targets[chosen] != NONE].tolist()
        rows = torch.log_softmax(read.logits, 1).tolist()
        found |= dict(zip(predicted, zip(rows, read.targets.tolist(), strict=True), strict=True))
    pairs = [found[n] for n in sorted(found)]
    return [row for row, _ in pairs], [target for _, target in pairs], nats


@every_config
@torch.no_grad()
def test_topics_and_words_have_the_scalar_log_probabilities(config: PredictorConfig) -> None:
    with float64():
        model = predictor(config).double()
        rows, targets, nats = expected(model)
        for streams, length in ((1, 1), (2, 2), (5, 9)):
            found = predictions(model, streams=streams, length=length)
            np.testing.assert_allclose(found[0], rows, atol=1e-10)
            assert found[1] == targets
            assert found[2] == pytest.approx(nats, abs=1e-9)


@every_config
def test_gradients_are_those_of_finite_differences(config: PredictorConfig) -> None:
    with float64():
        model = predictor(config).double()
        corpus = labelled(DOCUMENTS, TOPICS)
        text = LabelledText.of(corpus, config)
        (segment,) = segments(corpus, range(corpus.n_documents), streams=5, length=9)
        read = model.read(text, segment, model.start(5))
        torch.autograd.backward(read.nll().sum() + read.word_nll)
        generator = torch.Generator().manual_seed(1)
        for name, parameter in model.named_parameters():
            kept = parameter.detach().clone()
            along = torch.randn(kept.shape, generator=generator, dtype=kept.dtype)
            losses = []
            for sign in (1, -1):
                parameter.data.copy_(kept + sign * 1e-5 * along)
                rows, targets, nats = expected(model)
                pairs = zip(rows, targets, strict=True)
                losses.append(nats - sum(row[target] for row, target in pairs))
            parameter.data.copy_(kept)
            slope = (losses[0] - losses[1]) / 2e-5
            assert parameter.grad is not None
            # a single step from the state of zeros
            idle = (config.architecture, config.inputs) == ("unrolled", "topics")
            idle = idle and name.startswith("recurrence.recurrent")
            assert abs(slope) > 1e-6 or idle, f"{name} does not matter"
            found = float((parameter.grad * along).sum())
            assert found == pytest.approx(slope, rel=1e-6, abs=1e-8), name


@every_config
def test_parameters_are_those_of_the_formula(config: PredictorConfig) -> None:
    K, H, L = config.embed, config.hidden, config.layers
    words, topics, thought = (config.reads(kind) for kind in ("words", "topics", "thought"))
    joint = config.target == "joint"
    D = 1  # H/8, rounded up
    d = words * K + topics * K + thought * D
    tables = words * V * K + topics * C * K + thought * D * H
    softmax = (H + 1) * C + joint * (H + 1) * V
    if config.architecture == "bow-dnn":
        layers = H * (d + 1) + (L - 1) * H * (H + 1)
    else:
        peepholes = 3 * H * (config.recurrence is None)
        layers = 4 * H * (d + H + 1) + (L - 1) * 4 * H * (2 * H + 1) + L * peepholes
    assert n_parameters(make(config)) == tables + layers + softmax


def test_thought_vectors_have_the_size_that_is_asked_for() -> None:
    config = PredictorConfig(V, LABELS, inputs="words+thought", embed=3, hidden=4, thought=3)
    d = 3 + 3
    expected = V * 3 + 3 * 4 + (4 + 1) * C + 4 * 4 * (d + 4) + 7 * 4
    assert n_parameters(make(config)) == expected


def test_the_cell_is_that_of_the_paper_unless_another_one_is_chosen() -> None:
    config = PredictorConfig(V, LABELS, embed=3, hidden=4)
    assert type(make(config).recurrence) is Peephole
    assert type(make(replace(config, recurrence="lstm")).recurrence) is LSTM


@pytest.mark.parametrize("given", [False, True])
def test_what_is_known_and_what_is_predicted(given: bool) -> None:
    config = PredictorConfig(V, LABELS, given_next_words=given)
    text = LabelledText.of(labelled(DOCUMENTS, TOPICS), config)
    if given:
        assert text.known.tolist() == [-1, 1, 3, -1, -1, 4, 1, 0, 2, -1, 3]
        assert text.targets.tolist() == [-1, 3, 1, -1, -1, 1, 0, 2, 1, -1, 4]
    else:
        assert text.known.tolist() == [1, 3, 1, 2, 4, 1, 0, 2, 1, 3, 4]
        assert text.targets.tolist() == [3, 1, -1, -1, 1, 0, 2, 1, -1, 4, -1]


@pytest.mark.parametrize("architecture", ["unrolled", "rolled-up", "bow-dnn"])
@torch.no_grad()
def test_only_rolled_up_models_and_thought_vectors_remember_earlier_sentences(
    architecture: str,
) -> None:
    for inputs in ("words", "topics", "words+topics", "words+thought"):
        if architecture == "bow-dnn" and inputs == "words+thought":
            continue
        config = PredictorConfig(V, LABELS, architecture, inputs, embed=3, hidden=4)
        model = predictor(config)
        last = []
        for first, topic in (([3, 4], 1), ([8], 4)):
            corpus = labelled([[first, [5], [6]]], [[topic, 2, 3]])
            (segment,) = segments(corpus, [0], streams=1, length=3)
            read = model.read(LabelledText.of(corpus, config), segment, model.start(1))
            last.append(read.logits[1])
        remembers = architecture == "rolled-up" or inputs == "words+thought"
        assert torch.equal(*last) != remembers, inputs


@torch.no_grad()
def test_without_words_the_words_of_a_text_do_not_matter() -> None:
    config = PredictorConfig(V, LABELS, "rolled-up", "topics", embed=3, hidden=4)
    model, found = predictor(config), []
    for documents in ([[[3, 4], [5]]], [[[], [6, 7, 8]]]):
        corpus = labelled(documents, [[1, 2]])
        (segment,) = segments(corpus, [0], streams=1, length=3)
        found.append(model.read(LabelledText.of(corpus, config), segment, model.start(1)).logits)
    assert torch.equal(*found)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"architecture": "x"}, "no architecture 'x' is known; there are unrolled, rolled-up"),
        ({"inputs": "thought"}, "no inputs 'thought' is known; there are words, topics"),
        ({"target": "words"}, "no target 'words' is known; there are topic, joint"),
        ({"recurrence": "x"}, "no recurrence 'x' is known"),
        ({"words": 2}, "a vocabulary has 3 to"),
        ({"hidden": 0}, "sizes of 1 to 65,536"),
        ({"layers": 65}, "1 to 64 layers"),
        ({"inputs": "topics", "given_next_words": True}, "have no words of the next sentence"),
        ({"inputs": "topics", "target": "joint"}, "have no words for a joint target"),
        ({"thought": 2}, "words.topics have no thought vector of a size"),
        ({"architecture": "bow-dnn", "inputs": "words+thought"}, "bow-dnn has no inputs 'thought'"),
        ({"architecture": "bow-dnn", "target": "joint"}, "has no target 'joint', but topic"),
        ({"architecture": "bow-dnn", "recurrence": "lstm"}, "has no recurrence, found 'lstm'"),
    ],
    ids=str,
)
def test_shapes_that_are_not_possible_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(PredictorConfig(**{"words": V, "labels": LABELS, **values}))
