"""Checks of a model against scalar code: scores in training and in the engine, and gradients."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import pytest
import torch
from support.models import entered
from support.scalar.ji import Document, Scores
from torch import Tensor

from lm.batches import PackedBatch, segments
from lm.composition import Zoo
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.model import Config, DocumentLM
from lm.reading import read
from lm.scoring import after
from lm.side_information import SentenceNumbers, SideText
from lm.trie import Candidates
from lm.zoo import ZOO

V = 9
DOCUMENT = [[3, 4, 5, 3], [], [6], [8, 3, 0, 4], [5, 7]]
SHORT = [[[3, 4, 6], [5, 8, 4], [6, 3], [], [7, 3]], [[7]]]
CANDIDATES = [[], [3, 4], [3, 4, 8]]
SIDE = {  # of the sentences of every document
    "source": [[3, 4], [5], [], [4, 4, 6], [7]],
    "relations": [[3], [5], [0], [5], [4]],
    "topics": [[4], [0], [3], [4], [5]],
    "parents": [[2], [0], [], [1], [3]],  # index in the document
}

Reference: TypeAlias = Callable[[DocumentLM, Document], Scores]
Loss: TypeAlias = Callable[[DocumentLM, DocumentLM, Document], float]


@dataclass(frozen=True)
class Case:
    """A configuration, its scalar scores, and the scalar loss whose gradient training takes.

    loss: of a document by a model, in nats, given the model as it was for what counts as
    constant; None for −log p, where there are no constants and no auxiliary loss. zoo: the
    table that names the composition. idle: parameters that cannot have an effect.
    """

    config: Config
    reference: Reference
    loss: Loss | None = None
    zoo: Zoo | None = None
    idle: tuple[str, ...] = ()

    def __str__(self) -> str:
        config = self.config
        tied = "tied" if config.tied else "untied"
        return f"{config.model}-{config.recurrence}-{config.layers}-{tied}"

    def model(self) -> DocumentLM:
        """The model, with weights large enough for every term to matter, biases included."""
        model = DocumentLM.seeded(self.config, 5, self.zoo or ZOO).eval()
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for parameter in model.parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.mul_(1.5).add_(0.4 * noise)
        return model

    def scalar_loss(self, model: DocumentLM, before: DocumentLM, document: Document) -> float:
        if self.loss is not None:
            return self.loss(model, before, document)
        return -nats(self.reference(model, document))


def nats(scores: Scores) -> float:
    return sum(map(sum, scores))


def corpus(documents: Sequence[Document]) -> Corpus:
    """Documents as the trainer reads them."""
    sentences = [words for document in documents for words in document]
    tokens = np.array([word for words in sentences for word in words], dtype=np.int32)
    offsets = np.array([0, *accumulate(map(len, sentences))])
    side = {kind: side_text(kind, documents) for kind in SIDE}
    return Corpus(tokens, offsets, np.array([0, *accumulate(map(len, documents))]), side)


def side_text(kind: str, documents: Sequence[Document]) -> SideText:
    """Side information of documents: that of sentence i of each is entry i of its kind."""
    if kind == "parents":
        bounds = accumulate(map(len, documents), initial=0)
        return SentenceNumbers.of(
            np.array(
                [
                    begin + own[0] if own and own[0] < len(document) else -1
                    for document, begin in zip(documents, bounds, strict=False)
                    for own in SIDE[kind][: len(document)]
                ]
            )
        )
    sentences = [words for document in documents for words in SIDE[kind][: len(document)]]
    tokens = np.array([word for words in sentences for word in words], dtype=np.int32)
    return SideText(tokens, np.array([0, *accumulate(map(len, sentences))]))


def check_training_scores(case: Case) -> None:
    """log p of every word and `</s>` by `unroll`, `features` and `head.nll`: 1e-5 nats."""
    model = case.model()
    _compare(training_scores(model, DOCUMENT), case.reference(model, DOCUMENT), 1e-5)


def check_training_scores_in_float64(case: Case) -> None:
    """As `check_training_scores`, to 1e-10 nats, far below what float32 can tell apart."""
    model = case.model().double()
    with float64():
        _compare(training_scores(model, DOCUMENT), case.reference(model, DOCUMENT), 1e-10)


def check_engine_scores(case: Case) -> None:
    """Scores of candidates after each sentence by `after`, over a trie: 1e-5 nats a sentence."""
    model = case.model()
    engine, context = ScoringEngine.of(model), model.context.start(1)
    for t, words in enumerate(DOCUMENT):
        context = entered(model, corpus([DOCUMENT]), context, t)
        candidates = [*CANDIDATES, words]
        ((scores, summary),) = after(engine, [(Candidates.of([candidates]), context)])
        texts = [[*DOCUMENT[:t], candidate, *DOCUMENT[t + 1 :]] for candidate in candidates]
        expected = [sum(case.reference(model, text)[t]) for text in texts]
        assert scores[0].tolist() == pytest.approx(expected, rel=0, abs=1e-5)
        last = slice(len(CANDIDATES), None)
        context = model.context.advance(context, summary.take(last))


def check_gradients(case: Case, *, step: float = 1e-5, tolerance: float = 1e-7) -> None:
    """The gradient of training's loss against central differences of the scalar loss.

    Two documents side by side. Each parameter is moved along one random direction in which
    every entry takes part, so that two scalar losses test all of its entries.
    """
    model, before = case.model().double(), case.model().double()
    with float64():
        torch.autograd.backward(training_loss(model, SHORT))
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        kept = parameter.detach().clone()
        along = torch.randn(kept.shape, generator=generator, dtype=kept.dtype)
        losses = []
        for sign in (1, -1):
            parameter.data.copy_(kept + sign * step * along)
            losses.append(sum(case.scalar_loss(model, before, document) for document in SHORT))
        parameter.data.copy_(kept)
        expected = (losses[0] - losses[1]) / (2 * step)
        assert parameter.grad is not None, f"{name} has no gradient"
        assert abs(expected) > 1e-6 or name in case.idle, (
            f"{name} does not matter in the documents of this test"
        )
        found = float((parameter.grad.to_dense() * along).sum())
        assert found == pytest.approx(expected, rel=tolerance, abs=tolerance / 10), name


@torch.no_grad()
def training_scores(model: DocumentLM, document: Document) -> Scores:
    """log p of the words and of `</s>` of each sentence, read alone."""
    text, context, scores = corpus([document]), model.context.start(1), []
    for t in range(len(document)):
        batch = PackedBatch.of(text, np.array([t]))
        context = entered(model, text, context, t)
        sentences = model.unroll(batch, context)
        nll = model.head.nll(model.features(sentences, context), batch.targets)
        scores.append((-nll).tolist())
        context = model.context.advance(context, model.context.summary(sentences))
    return scores


def training_loss(model: DocumentLM, documents: Sequence[Document]) -> Tensor:
    """Summed −log p of documents that are read side by side, and the auxiliary loss."""
    text = corpus(documents)
    n, longest = len(documents), max(map(len, documents))
    (segment,) = segments(text, range(n), streams=n, length=longest)
    reading = read(model, text, segment, model.context.start(n))
    nll = model.head.loss(reading.features, reading.targets, None, torch.Generator())
    return nll.sum() + reading.auxiliary_loss


@contextmanager
def float64() -> Iterator[None]:
    """Models in float64 stay so: `Tensor.float`, by which parts leave bfloat16, is `double`.

    Without it the losses, the unrolled LSTM and the attention would round to float32.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "float", Tensor.double)
        yield


def _compare(found: Scores, expected: Scores, tolerance: float) -> None:
    assert list(map(len, found)) == list(map(len, expected))
    for t, (own, true) in enumerate(zip(found, expected, strict=True)):
        assert own == pytest.approx(true, rel=0, abs=tolerance), f"sentence {t}"
