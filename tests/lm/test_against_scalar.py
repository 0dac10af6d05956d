"""Every published model, its cells included, against scalar code written from its paper."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
import torch
from support.models import entered, nll_one_by_one
from support.scalar import models as scalar
from support.scalar.ji import Document
from support.scalar.models import CELLS, SIDE, V
from torch import Tensor

from lm.composition import ENCODERS, RECURRENCES, RELATION_CLASSIFIERS
from lm.corpus import Corpus, segments
from lm.model import Config, DocumentLM
from lm.reading import read
from lm.scoring import ScoringEngine, after
from lm.side_information import SentenceNumbers, SideText
from lm.trie import Candidates
from lm.zoo import ZOO

DOCUMENT = [[3, 4, 5, 3], [], [6], [8, 3, 0, 4], [5, 7]]
SHORT = [[[3, 4, 6], [5, 8, 4], [6, 3], [], [7, 3]], [[7]]]
CANDIDATES = [[], [3, 4], [3, 4, 8]]
LSTM, TIED, TWO = ("lstm", 1, False), ("lstm", 1, True), ("lstm", 2, True)
CASES: list[tuple[str, tuple[str | None, int, bool | None], dict[str, Any]]] = [
    # Ji et al. 2016: model, (recurrence, layers, tied), other fields of the configuration
    ("rnnlm", TIED, {}),
    ("rnnlm", ("cifg-2015", 3, False), {}),
    ("drnnlm", ("cifg", 2, False), {}),
    ("drnnlm", ("htanh", 2, False), {}),
    ("codclm", ("cifg-2015", 2, False), {}),
    ("ccdclm", ("cifg", 2, True), {}),
    ("ccdclm", ("rnn", 2, False), {}),
    ("adclm", TIED, {"attention": 5}),
    ("adclm", ("cifg", 2, False), {"attention": 5}),
    ("dam", ("cifg", 3, False), {"attention": 5}),
    ("dam", ("rnn", 1, True), {"attention": 5}),
    ("hrnnlm", ("cifg", 2, False), {}),
    # Wang & Cho 2015
    ("rlm", LSTM, {}),
    ("rlm-bow-ef-1", LSTM, {}),
    ("rlm-bow-ef-3", TIED, {}),
    ("rlm-bow-lf-3", LSTM, {}),
    ("rlm-seqbow-ef-3", LSTM, {}),
    ("rlm-seqbow-lf-3", LSTM, {}),
    ("rlm-seqbow-att-ef-2", TIED, {}),
    ("rlm-seqbow-att-ef-4", LSTM, {"attention": 5}),
    ("rlm-seqbow-att-lf-3", TIED, {"attention": 5}),
    # Lin et al. 2015: a table whose gradient is sparse, and one whose pairs share their slots
    *((name, (None, 1, None), {"embed": 4, "hash_size": slots})
        for name in ("rnnslm", "rnnlm-lin", "hrnnlm-lin", "hrnnlm-lin-dual")
        for slots in ((2000, 13) if name == "rnnslm" else (13,))),
    *(("rnnlm", LSTM, {"head": "hashed", "hash_size": slots}) for slots in (2000, 13)),
    # Eisenstein's memo
    ("dclm", ("rnn", 1, False), {"encoder": "bag", "sentence_recurrence": "tanh"}),
    ("dclm", TWO, {"encoder": "sum", "sentence_recurrence": "htanh"}),
    ("dclm", TIED, {"encoder": "cnn"}),
    ("dclm", ("htanh", 1, False), {"encoder": "rnn", "sentence_recurrence": "cifg"}),
    ("dclm-decoupled", ("tanh", 1, False), {"encoder": "sum"}),
    ("dclm-decoupled", TWO, {"encoder": "rnn"}),
    ("dclm-two-sentence", TWO, {}),
    *((name, shape, {"encoder": g, "sentence_recurrence": level, "relation_labels": 6})
        for name, g, level, shape in (
            ("dclm-projection", "bag", "tanh", ("rnn", 1, False)),
            ("dclm-projection", "cnn", "lstm", ("htanh", 2, True)),
            ("dclm-projection-decoupled", "cnn", None, TIED),
            ("dclm-recurrence", "bag", "tanh", ("rnn", 1, False)),
            ("dclm-recurrence", "rnn", "cifg", TWO))),
    *((name, shape, {"encoder": g, "source_words": 8, "source_context": chosen})
        for name, g, chosen, shape in (
            ("dclm-bilingual", "sum", "current", ("rnn", 1, False)),
            ("dclm-right", "bag", "previous", ("rnn", 1, False)), ("dclm-right", "rnn", None, TWO),
            ("dclm-rst", "cnn", None, TIED), ("dclm-rst", "sum", "current", ("htanh", 1, False)))),
    ("dclm-right-target", ("rnn", 1, False), {"encoder": "bag", "sentence_recurrence": "tanh"}),
    ("dclm-right-target", ("htanh", 2, True), {"encoder": "rnn", "sentence_recurrence": "cifg"}),
    ("dclm-auxiliary", TWO, {"encoder": "bag", "relation_labels": 6}),
    ("dclm-auxiliary", ("rnn", 1, False),
        {"encoder": "bag", "relation_labels": 6, "relation_classifier": "mlp"}),
    # Luong et al. 2015
    ("attention", TIED, {"source_words": 8}),
    ("attention", ("cifg", 2, False), {"source_words": 8}),
    ("attention", ("htanh", 1, True), {"source_words": 8, "head": "softmax"}),
    ("attention-gated", TIED, {"source_words": 8}),
    ("attention-gated", ("cifg", 2, False), {"source_words": 8}),
    ("attention-gated", ("htanh", 1, True), {"source_words": 8, "head": "softmax"}),
    # Ghosh et al. 2016
    *((name, ("peephole", 1 + n % 2, n % 2 == 0), {"topics_number": 5})
        for n, name in enumerate(scalar.FEATURES)),
    *((name, ("peephole", 2 - n % 2, n % 2 == 0), {"topics_number": 5, "fusion": "input-initial"})
        for n, name in enumerate(scalar.FEATURES)),
    ("clstm-given-topic", ("cifg", 2, True), {"topic_labels": 6, "fusion": "input-initial"}),
    ("clstm-thought", ("peephole", 2, False), {"thought": 2}),
    ("hlstm", ("peephole", 2, False), {}),
    ("clstm-given-topic", ("peephole", 1, True), {"topic_labels": 6}),
    ("clstm-given-topic-carried", ("peephole", 2, False), {"topic_labels": 6}),
]  # fmt: skip
every_case = pytest.mark.parametrize(
    ("name", "shape", "others"), CASES, ids=[f"{n}-{name}" for n, (name, *_) in enumerate(CASES)]
)
Shape = tuple[str | None, int, bool | None]
# a sequence of one sentence has no transition, and nothing to choose from
TOGETHER = 4  # parameters
IDLE = ("reader.recurrent.0", "query.weight", "annotation.weight", "weight.weight")


def model_of(name: str, shape: Shape, others: dict[str, Any]) -> DocumentLM:
    """A model with weights large enough for every term to matter, biases included."""
    sizes = {"embed": 3, "hidden": 4, **others}
    recurrence, layers, tied = shape
    config = Config(name, V, recurrence=recurrence, layers=layers, tied=tied, **sizes)
    model = DocumentLM.seeded(config, 5).eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.mul_(1.5).add_(0.4 * noise)
    return model


def side_text(kind: str, documents: Sequence[Document]) -> SideText:
    """Side information of documents: that of sentence i of each is entry i of its kind."""
    rows = [(row, len(document)) for document in documents for row in SIDE[kind][: len(document)]]
    if kind == "parents":
        begins = np.repeat(
            [*accumulate(map(len, documents[:-1]), initial=0)], list(map(len, documents))
        )
        result = [
            b + row[0] if row and row[0] < n else -1
            for (row, n), b in zip(rows, begins, strict=True)
        ]
        return SentenceNumbers.of(np.array(result))
    text = Corpus.of([[row for row, _ in rows]])
    return SideText(text.tokens, text.sentences)


def corpus(documents: Sequence[Document]) -> Corpus:
    """Documents as the trainer reads them."""
    text = Corpus.of(documents)
    side = {kind: side_text(kind, documents) for kind in SIDE}
    return Corpus(text.tokens, text.sentences, text.documents, side)


@contextmanager
def float64() -> Iterator[None]:
    """Models in float64 stay so: `Tensor.float`, by which parts leave bfloat16, is `double`.

    Without it the losses, the unrolled LSTM and the attention would round to float32.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "float", Tensor.double)
        yield


@every_case
def test_training_has_the_scalar_numbers(name: str, shape: Shape, others: dict[str, Any]) -> None:
    model = model_of(name, shape, others).double()
    with float64():
        result = nll_one_by_one(model, corpus([DOCUMENT]))
    for own, true in zip(result, scalar.scores(model, DOCUMENT), strict=True):
        assert (-own).tolist() == pytest.approx(true, rel=0, abs=1e-10)


@every_case
def test_the_engine_gives_the_scalar_sums(name: str, shape: Shape, others: dict[str, Any]) -> None:
    """Candidates after each sentence, over a trie, in float32."""
    model = model_of(name, shape, others)
    engine, context = ScoringEngine.of(model), model.context.start(1)
    own = scalar.scores(model, DOCUMENT)
    of_the_past = model.causal and "source" not in model.context.side_information
    for t, words in enumerate(DOCUMENT):
        context = entered(model, corpus([DOCUMENT]), context, t)
        candidates = [*CANDIDATES, words]
        ((scores, summary),) = after(engine, [(Candidates.of([candidates]), context)])
        rest = [] if of_the_past else DOCUMENT[t + 1 :]
        texts = [[*DOCUMENT[:t], candidate, *rest] for candidate in CANDIDATES]
        expected = [sum(scores[t]) for scores in (*(scalar.scores(model, x) for x in texts), own)]
        assert scores[0].tolist() == pytest.approx(expected, rel=0, abs=1e-5)
        context = model.context.advance(context, summary.take(slice(len(CANDIDATES), None)))


@every_case
def test_gradients_are_finite_differences(name: str, shape: Shape, others: dict[str, Any]) -> None:
    """The gradient of training's loss against central differences of the scalar loss.

    Two documents side by side. Some parameters at a time are moved along one random direction in
    which every entry takes part, so that two scalar losses test all of their entries.
    """
    model, before = (model_of(name, shape, others).double() for _ in range(2))
    text = corpus(SHORT)
    (segment,) = segments(text, range(2), streams=2, length=5)
    with float64():
        reading = read(model, text, segment, model.context.start(2))
        nll = model.head.loss(reading.features, reading.targets, None, torch.Generator())
        torch.autograd.backward(nll.sum() + reading.auxiliary_loss)
    generator = torch.Generator().manual_seed(1)
    named = [*model.named_parameters()]
    for some in (named[n : n + TOGETHER] for n in range(0, len(named), TOGETHER)):
        moved, found = [], 0.0
        for place, parameter in some:
            kept = parameter.detach().clone()
            along = torch.randn(kept.shape, generator=generator, dtype=kept.dtype)
            moved.append((parameter, kept, along))
            assert parameter.grad is not None, f"{place} has no gradient"
            own = float((parameter.grad.to_dense() * along).sum())
            idle = name.endswith("-1") and place.startswith("context.") and place.endswith(IDLE)
            assert abs(own) > 1e-6 or idle, f"{place} does not matter in the documents of this test"
            found += own
        losses = []
        for step in (1e-5, -1e-5, 0.0):
            for parameter, kept, along in moved:
                parameter.data.copy_(kept + step * along)
            if step:
                losses.append(sum(scalar.loss(model, before, document) for document in SHORT))
        expected = (losses[0] - losses[1]) / 2e-5
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7), [place for place, _ in some]


def test_every_part_that_can_be_chosen_has_scalar_code() -> None:
    assert RECURRENCES.keys() <= CELLS.keys()
    assert ENCODERS.keys() == scalar.ENCODERS.keys()
    classifiers = {more.get("relation_classifier", "bilinear") for _, _, more in CASES}
    assert classifiers == RELATION_CLASSIFIERS.keys()
    named = {
        name.rpartition("-")[0] + "-N" if name.startswith("rlm-") else name for name, *_ in CASES
    }
    assert named >= {*ZOO, *ZOO.families} - {"dclm-bilingual-decoupled"}  # of two other contexts
