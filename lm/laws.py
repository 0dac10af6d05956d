"""Laws that every composition obeys, for authors of contexts, fusions, cells and heads.

A test of a new part calls `check_composition` on compositions that contain it. The laws are checked
on tiny models of ten words (`tiny_model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, permutations
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import Backend
from lm.composition import Composition, load
from lm.corpus import Corpus, PackedBatch, segments
from lm.model import Config, DocumentLM, options_of
from lm.reading import Reading, read
from lm.scoring import ScoringEngine, after, pairs
from lm.sentences import Positions, PositionStates, ReadSentences, Rows
from lm.side_information import KINDS, LABELS, NUMBERS, SentenceNumbers, SideText, information_of
from lm.training.optimisers import sparse_parameters
from lm.trie import Candidates
from lm.vocabulary import END, SPECIAL, START

Item = TypeVar("Item")
Sentence = list[int]
WORDS = 10  # of a tiny model
DOCUMENT: tuple[Sentence, ...] = ([3, 4, 5], [6, 7], [8, 3, 9, 4], [5, 6, 8], [9, 7, 3], [4, 8])
OTHER: Sentence = [4, 9, 9, 3, 6]
OTHERS: tuple[Sentence, ...] = (OTHER, [5] * 9, [8] * 9)
SENTENCES: list[Sentence] = [[3, 4, 5], [], [8, 3, 9, 4, 0], [9, 7], [6]]


class BrokenLaw(AssertionError):
    """A composition that breaks a law; the message says which and where."""


def check_composition(
    composition: Composition,
    *,
    recurrence: str | None = None,
    layers: int = 1,
    tied: bool | None = None,
    scale: float = 2.0,
) -> None:
    """Check all laws on a tiny model of a composition. Errors: BrokenLaw.

    scale: factor of the initial weights, larger for cells in which influences fade fast, such as
    `rnn`: in float32 a score must change with a sentence five before.
    """
    model = tiny_model(composition, recurrence=recurrence, layers=layers, tied=tied, scale=scale)
    check_shapes(model, composition)
    checks = (check_unroll, check_predictions, check_batches, check_order, check_keys)
    others = (check_side_information, check_causality, check_gradients, check_levels, check_pairs)
    for check in (*checks, *others):
        check(model)


def check_shapes(model: DocumentLM, composition: Composition) -> None:
    """Made without memory, as before a file is read, the model has its names, shapes and types."""
    try:
        twin = DocumentLM.without_memory(model.config, {"composition": composition})
    except Exception as fault:
        raise BrokenLaw(
            f"made without memory: a part needs the values of tensors: {fault}"
        ) from fault
    both = ({n: (t.shape, t.dtype) for n, t in m.state_dict().items()} for m in (model, twin))
    if odd := set.symmetric_difference(*(set(tensors.items()) for tensors in both)):
        raise BrokenLaw(f"made without memory: another tensor {min(name for name, _ in odd)}")


@torch.no_grad()
def check_unroll(model: DocumentLM) -> None:
    """Packed sentences have the states, predictions and summaries of words read singly."""
    contexts = [context_after(model, DOCUMENT[:n]) for n in range(len(SENTENCES))]
    joined = Rows.cat(contexts)
    batch = PackedBatch.of(Corpus.of([SENTENCES]), np.arange(len(SENTENCES)))
    packed = model.unroll(batch, joined)
    log_probs = _log_probs(model, model.features(packed, joined))
    summary = model.context.summary(packed)
    following = entered(model, model.context.advance(joined, summary), len(DOCUMENT))
    for n, (sentence, context) in enumerate(zip(SENTENCES, contexts, strict=True)):
        truth = read_by_words(model, sentence, context)
        at = batch.order[batch.rows] == n
        _close("unroll equals step: hidden states", n, packed.hidden[at], truth.hidden)
        expected = _log_probs(model, model.features(truth, context))
        _close("unroll equals step: probabilities", n, log_probs[at], expected)
        then = model.context.advance(context, model.context.summary(truth))
        then = entered(model, then, len(DOCUMENT))
        ours, theirs = (_scores(model, rows) for rows in (following.take(slice(n, n + 1)), then))
        _close("unroll equals step: scores of the next sentence", n, ours, theirs)


@torch.no_grad()
def check_batches(model: DocumentLM) -> None:
    """Contexts scored together, and advanced together, equal those scored and advanced alone."""
    engine, lists = ScoringEngine.of(model), Candidates.of([SENTENCES])
    contexts = [context_after(model, DOCUMENT[:n]) for n in range(4)]
    joined = Rows.cat(contexts)
    ((scores, summary),) = after(engine, [(lists, joined)])
    repeated = joined.repeat_interleave(len(SENTENCES))
    then = _scores(model, entered(model, model.context.advance(repeated, summary), 5))
    for n, context in enumerate(contexts):
        ((alone, taken),) = after(engine, [(lists, context)])
        _close("batch equals loop: scores", n, torch.tensor(scores[n]), torch.tensor(alone[0]))
        for k in range(len(SENTENCES)):
            following = model.context.advance(context, taken.take(slice(k, k + 1)))
            expected = _scores(model, entered(model, following, 5))[0]
            together = then[n * len(SENTENCES) + k]
            _close("batch equals loop: scores of the next sentence", n, together, expected)


def check_order(model: DocumentLM) -> None:
    """The last score changes with each of the last n sentences before it, and with no other.

    A discrete context, such as a topic, need not change with every other sentence: some are tried.
    """
    order, score = model.order, last_score(model, DOCUMENT)
    for distance in range(1, len(DOCUMENT)):
        change = 0.0
        for sentence in OTHERS:
            other = [*DOCUMENT[: -1 - distance], sentence, *DOCUMENT[len(DOCUMENT) - distance :]]
            if change := abs(last_score(model, other) - score):
                break
        depends = order is None or distance <= order
        if (change > 1e-6) != depends or (change > 0) != depends:
            raise BrokenLaw(
                f"order {order}: expected the score {'' if depends else 'not '}to change with "
                f"the sentence {distance} before, found a change of {change:.3g}"
            )


def check_side_information(model: DocumentLM) -> None:
    """The score of a sentence, or of the next, changes with each kind of side information."""
    kinds = model.context.side_information
    changed: list[Tensor] = []
    for other in ("", *kinds):
        context = entered(model, model.context.start(1), 0, other=other)
        summary = model.context.summary(read_by_words(model, OTHER, context))
        following = entered(model, model.context.advance(context, summary), 1)
        changed.append(torch.cat([_scores(model, context), _scores(model, following)]))
    for kind, scores in zip(kinds, changed[1:], strict=True):
        if torch.equal(scores, changed[0]):
            raise BrokenLaw(f"side information: expected scores to change with {kind}, found none")


@torch.no_grad()
def check_causality(model: DocumentLM) -> None:
    """Scores of a causal model change with no later sentence, others with the next alone."""
    scores = _scores_of_sentences(model, DOCUMENT)
    for t in range(1, len(DOCUMENT)):
        words = [3 + (word - 2) % 7 for word in DOCUMENT[t]]  # as many, and all of them others
        changed = _scores_of_sentences(model, [*DOCUMENT[:t], words, *DOCUMENT[t + 1 :]])
        change = (changed - scores)[:t].abs()
        expected = torch.zeros(t, dtype=torch.bool)
        expected[-1] = not model.causal
        if not torch.equal(change > 1e-5, expected):
            raise BrokenLaw(
                f"{'causal' if model.causal else 'not causal'}: expected the scores of sentences "
                f"{expected.nonzero().flatten().tolist()} of {t} to change with the next one, "
                f"found changes of {change.tolist()}"
            )


def check_keys(model: DocumentLM) -> None:
    """Sentences of equal keys leave equal contexts; histories of equal keys, equal scores."""

    def keys(sentences: Sequence[Sentence]) -> list[bytes]:
        arrays = (np.array(sentence, np.int32) for sentence in sentences)
        return [model.context.sentence_key(words) for words in arrays]

    def equal_scores(law: str, *documents: list[Sentence]) -> None:
        scores = [last_score(model, [*document, OTHER]) for document in documents]
        if abs(scores[0] - scores[1]) > 1e-5:
            raise BrokenLaw(f"{law}: expected the score {scores[0]}, found {scores[1]}")

    before = [OTHER, *DOCUMENT[:3]]
    for words in _reordered(before[-1]):
        if keys([words]) == keys(before[-1:]):
            others = [*before[:-1], words]
            equal_scores("equal sentences", before, others)
            equal_scores("equal sentences", [*before, DOCUMENT[4]], [*others, DOCUMENT[4]])
    if model.order is None:
        return
    last, key = slice(max(0, len(before) - model.order), None), model.context.history_key
    for others in _reordered(before):
        if key(keys(others[last])) == key(keys(before[last])):
            equal_scores("equal histories", before, others)


def _reordered(items: Sequence[Item]) -> list[list[Item]]:
    """The items in some other orders: every fifth permutation, for time."""
    return [list(order) for order in islice(permutations(items), 5, None, 5)]


def check_gradients(model: DocumentLM) -> None:
    """Training a document gives every parameter a finite gradient, all zero only if it is idle.

    An idle parameter has no effect on the loss, as weights of attention over a single sentence.
    """
    gradients = _gradients(model, torch.stack(_losses(model)).sum())
    for name, gradient in gradients.items():
        if name.startswith("context.") and not model.fusion.uses_context:
            continue
        finite = gradient is None or bool(gradient.isfinite().all())
        missing = gradient is None or not gradient.any()
        if not finite or (missing and _changes_loss(model, model.get_parameter(name))):
            raise BrokenLaw(f"finite gradients: {name} has the gradient {gradient}")


@torch.no_grad()
def _changes_loss(model: DocumentLM, parameter: Tensor) -> bool:
    """Whether the training loss depends on a parameter."""
    before, values = torch.stack(_losses(model)).sum(), parameter.clone()
    parameter.mul_(-1.5).add_(0.5)
    after_change = torch.stack(_losses(model)).sum()
    parameter.copy_(values)
    return not torch.equal(before, after_change)


def check_levels(model: DocumentLM) -> None:
    """The auxiliary loss trains the stated parameters; that of the words these only if stated."""
    stated = {id(parameter) for parameter in model.context.auxiliary_parameters()}
    names = {name for name, parameter in model.named_parameters() if id(parameter) in stated}
    if not names:
        return
    loss, auxiliary_loss = _losses(model)
    trained, by_words = (
        {name for name, g in _gradients(model, some).items() if g is not None and g.any()}
        for some in (auxiliary_loss, loss)
    )
    if trained != names:
        raise BrokenLaw(f"auxiliary parameters: expected {sorted(names)}, found {sorted(trained)}")
    reached = names & by_words
    if bool(reached) != model.context.end_to_end:
        raise BrokenLaw(
            f"end to end {model.context.end_to_end}: the loss of the words reaches {reached}"
        )


@torch.no_grad()
def check_predictions(model: DocumentLM) -> None:
    """After every word, probabilities sum to 1, and scores are log-probabilities if so stated."""
    head, context = model.head, context_after(model, DOCUMENT[:1])
    features = model.features(read_by_words(model, OTHER, context), context)
    at, words = _all_words(features)
    table = _log_probs(model, features)
    predicted = table.clone()
    if not head.predicts_end:
        _close("no score of </s>", 0, table[:, END], torch.zeros_like(table[:, END]))
        predicted[:, END] = -torch.inf
    sums = predicted.exp().sum(dim=1)
    _close("probabilities sum to 1", 0, sums, torch.ones_like(sums))
    _close("log_probabilities are those of nll", 0, head.log_probabilities(features), predicted)
    log_probs, scores = table.flatten(), head.score(features[at], words)
    if head.normalised:
        _close("normalised scores are log-probabilities", 0, scores, log_probs)
    into, leave = head.predictor(Backend()).log_probs(features, at, words)
    _close("predictor equals head: scores of words", 0, into, scores)
    _close("predictor equals head: scores of </s>", 0, leave, scores.view(-1, WORDS)[:, END])


@torch.no_grad()
def check_pairs(model: DocumentLM) -> None:
    """Scores at order 1 of all pairs of candidates equal those after a candidate alone."""
    if model.order != 1:
        return
    engine, lists = ScoringEngine.of(model), Candidates.of([SENTENCES, DOCUMENT])
    kinds = model.context.side_information
    side = _side(model, kinds, np.arange(2)) if kinds else None
    scores = pairs(engine, lists, np.array([True, False]), side)[1]
    for n, sentence in enumerate(SENTENCES):
        ((alone, _),) = after(engine, [(lists.part(1, 2), context_after(model, [sentence]))])
        _close("all pairs equal loop: scores", n, torch.tensor(scores[n]), torch.tensor(alone[0]))


def _scores(model: DocumentLM, contexts: Rows, sentences: Sequence[Sentence] = SENTENCES) -> Tensor:
    """Scores (N, K) of sentences after contexts."""
    request = Candidates.of([sentences]), contexts
    return torch.tensor(after(ScoringEngine.of(model), [request])[0][0])


def _scores_of_sentences(model: DocumentLM, document: Sequence[Sentence]) -> Tensor:
    """Scores (T,) of a document's sentences as training reads them."""
    reading = _reading(model, document)
    nll = model.head.nll(reading.features, reading.targets)
    return torch.zeros(len(document)).index_add(0, reading.sentences, -nll)


def _log_probs(model: DocumentLM, features: Tensor) -> Tensor:
    """Log-probabilities (N, 10) of all words after each position."""
    at, words = _all_words(features)
    return -model.head.nll(features[at], words).view(-1, WORDS)


def _all_words(features: Tensor) -> tuple[Tensor, Tensor]:
    """Position and word of each prediction of a table (N, 10), row by row."""
    table = torch.cartesian_prod(torch.arange(len(features)), torch.arange(WORDS))
    return table[:, 0], table[:, 1]


def _losses(model: DocumentLM) -> tuple[Tensor, Tensor]:
    """Loss of the words and auxiliary loss of a document."""
    reading = _reading(model, [sentence for sentence in (*DOCUMENT, *SENTENCES) if sentence])
    loss = model.head.loss(reading.features, reading.targets, None, torch.Generator())
    return loss.sum(), reading.auxiliary_loss


def _reading(model: DocumentLM, document: Sequence[Sentence]) -> Reading:
    """A document as training reads it, in a single segment."""
    corpus = with_side(model, document)
    (segment,) = segments(corpus, [0], streams=1, length=len(document))
    return read(model, corpus, segment, model.context.start(1))


def _gradients(model: DocumentLM, loss: Tensor) -> dict[str, Tensor | None]:
    """Gradient of every parameter by name."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    dense = (g.to_dense() if g is not None and g.is_sparse else g for g in gradients)
    return dict(zip(names, dense, strict=True))


def _close(law: str, n: int, actual: Tensor, truth: Tensor) -> None:
    """BrokenLaw unless two tensors agree to float32's accuracy."""
    if actual.shape != truth.shape or not torch.allclose(actual, truth, rtol=1e-4, atol=1e-5):
        raise BrokenLaw(f"{law}: sentence or context {n}: expected {truth}, found {actual}")


# Tiny models of ten words, a document for them, and sentences read word by word


def tiny_model(
    composition: Composition,
    *,
    recurrence: str | None = None,
    layers: int = 1,
    tied: bool | None = None,
    scale: float = 2.0,
) -> DocumentLM:
    """A model of ten words, whose weights are large enough for contexts to matter."""
    embed = 8 if composition.one_size else 6
    config = Config("composition", WORDS, embed, 8, recurrence, layers, tied)
    hashed = "hash_size" in options_of(config, composition)
    config = replace(config, hash_size=13 if hashed else None)  # with collisions
    kinds = information_of(load(composition.context))
    sizes: dict[str, Any] = {KINDS[kind]: 8 for kind in kinds if kind in KINDS}
    config = replace(config, **sizes)
    model = DocumentLM.seeded(config, 3, {"composition": composition}).eval()
    sparse = {id(parameter) for parameter in sparse_parameters(model)}
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gate = name.startswith("context.") and not parameter.any()
            if id(parameter) in sparse or gate:  # zero at first
                parameter.uniform_(-0.5, 0.5, generator=generator)
            else:
                parameter.mul_(scale)
    return model


def with_side(model: DocumentLM, document: Sequence[Sentence]) -> Corpus:
    """A document with side information that follows from the numbers of its sentences.

    Three words each, or a label; of numbers of sentences, none for every fourth.
    """
    side: dict[str, SideText] = {}
    numbers = np.arange(len(document))
    for kind in information_of(model.context):
        if kind in NUMBERS:
            others = np.where(numbers % 4 == 3, -1, (numbers + 2) % len(numbers))
            side[kind] = SentenceNumbers.of(others)
        else:
            words = np.arange(1 if kind in LABELS else 3)
            tokens = len(SPECIAL) + (7 * numbers[:, None] + words * (words + 1)) % 5
            offsets = np.arange(len(tokens) + 1) * len(words)
            side[kind] = SideText(tokens.astype(np.int32).ravel(), offsets)
    return replace(Corpus.of([document]), side=side)


def entered(model: DocumentLM, contexts: Rows, number: int, *, other: str = "") -> Rows:
    """Contexts in which sentence `number` of a document is read, with its side information.

    other: a kind whose side information is that of another sentence.
    """
    kinds = model.context.side_information
    if not kinds:
        return contexts
    side = [
        _side(model, [kind], np.full(len(contexts), number + 3 * (kind == other))).tensors[0]
        for kind in kinds
    ]
    return model.context.enter(contexts, model.context.encoded(Rows.of(*side)))


def _side(model: DocumentLM, kinds: Sequence[str], numbers: NDArray[np.int64]) -> Rows:
    """Side information of sentences of a document of twelve, each of a single word."""
    corpus = with_side(model, [[len(SPECIAL) + n % 7] for n in range(12)])
    return corpus.side_rows(kinds, numbers, model.embedding.weight.device)


def read_by_words(model: DocumentLM, sentence: Sequence[int], context: Rows) -> ReadSentences:
    """A sentence read word by word in a context: the definition of all other ways."""
    inputs = model.word_inputs()
    states = [model.start(context, inputs)]
    for word in sentence:
        states.append(model.step(states[-1], torch.tensor([word]), inputs[[word]]))
    words, place = torch.tensor([START, *sentence]), torch.arange(len(sentence) + 1)
    positions = Positions(words, place - 1, torch.zeros_like(place), place[-1:], len(sentence))
    return ReadSentences(positions, PositionStates.cat([model.kept(s) for s in states]))


@torch.no_grad()
def context_after(model: DocumentLM, document: Sequence[Sentence]) -> Rows:
    """The context after a document's sentences, in which the next is read."""
    context = entered(model, model.context.start(1), 0)
    for t, sentence in enumerate(document, 1):
        summary = model.context.summary(read_by_words(model, sentence, context))
        context = entered(model, model.context.advance(context, summary), t)
    return context


def last_score(model: DocumentLM, document: Sequence[Sentence]) -> float:
    """Score of the last sentence after the others."""
    return float(_scores(model, context_after(model, document[:-1]), document[-1:]))
