"""Heads against their definitions in float64, tables of hashed features, and normalisers."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lm import heads, normalisers
from lm.backend import Backend
from lm.composition import HEADS, load
from lm.corpus import Corpus
from lm.evaluation import perplexity
from lm.heads import ALPHA, REACH, class_of, hashed_softmax, words_of_class
from lm.heads.hashed_softmax import NONE, HashedLogits, HashTable, hashed_nll
from lm.laws import read_by_words, tiny_model
from lm.model import Config, DocumentLM
from lm.normalisers import log_sums, pair_log_sums
from lm.vocabulary import END
from lm.zoo import ZOO

V = 9
both_ties = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])

every_multiple = pytest.mark.parametrize("columns", [1, 8], indirect=True)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """What numbers of columns are rounded up to: 8 as on CUDA."""
    for module in (heads, normalisers):
        monkeypatch.setattr(module, "column_multiple", lambda device: request.param)
    return int(request.param)


def head_of(
    name: str, words: int, K: int = 4, hidden: int = 3, D: int = 2, *, tied: bool = True
) -> Any:
    """A head with weights that are all drawn."""
    head = load(HEADS[name])(hidden, D, nn.Embedding(words, K), tied=tied)
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    return head


def linear_logits(head: Any, features: Tensor) -> Tensor:
    logits: Tensor = features @ head.weight().T + head.bias
    return logits.double()


def of_classes(head: Any, features: Tensor) -> Tensor:
    """log p of a class and of the word in it: words of rank r have class ⌊√r⌋."""
    logits = linear_logits(head, features)
    of_class = (features @ head.classes.T + head.class_bias).double().log_softmax(dim=1)
    for c in range(of_class.shape[1]):
        own = [word for word in range(logits.shape[1]) if math.isqrt(word) == c]
        logits[:, own] = logits[:, own].log_softmax(dim=1) + of_class[:, c : c + 1]
    return logits


SCORES = {  # of all words, by definition
    "softmax": lambda head, features: linear_logits(head, features).log_softmax(dim=1),
    "self-normalised": linear_logits,
    "classes": of_classes,
}
every_head = pytest.mark.parametrize("name", SCORES)


@every_multiple
@pytest.mark.parametrize("words", [3, 17])
@both_ties
@every_head
@torch.no_grad()
def test_scores_of_words_are_as_defined(name: str, tied: bool, words: int, columns: int) -> None:
    head = head_of(name, words, tied=tied)
    hidden, value = torch.randn(5, 3), torch.randn(5, 2)
    features = head.features(hidden, value)
    truth = SCORES[name](head, features)
    at, own = torch.arange(5).repeat_interleave(words), torch.arange(words).repeat(5)
    into, leave = head.predictor(Backend()).log_probs(features, at, own)
    torch.testing.assert_close(into.double().view(5, -1), truth, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(leave, into.view(5, -1)[:, END], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(head.score(features[at], own), into, rtol=1e-5, atol=1e-5)
    probs = truth.log_softmax(1)  # what is normalised already stays as it is
    nll = head.nll(features[at], own).view(5, -1)
    for found in (-nll, head.log_probabilities(features)):
        torch.testing.assert_close(found.double(), probs, rtol=1e-5, atol=1e-5)
    none = torch.empty(0, dtype=torch.long)
    assert head.predictor(Backend()).log_probs(features, none, none)[0].shape == (0,)
    added = head.features(hidden, value) + head.features(0 * hidden, value)
    torch.testing.assert_close(added, head.features(hidden, 2 * value))  # linear


@every_multiple
@pytest.mark.parametrize("spread", [1.0, 30.0], ids=["a product", "beyond the range of exp"])
@every_head
@torch.no_grad()
def test_scores_in_contexts_are_of_shifted_features(name: str, spread: float, columns: int) -> None:
    """Of more positions than fit in one piece of work."""
    head = head_of(name, 30)
    head.weight().mul_(spread)
    predictor = head.predictor(Backend())
    features, shifts = torch.randn(700, 4), torch.randn(3, 4)
    parents, words = torch.randint(700, (1500,)), torch.randint(3, 30, (1500,))
    reach = (features @ head.weight().T).abs().max() + (shifts @ head.weight().T).abs().max()
    assert (float(reach) > REACH) == (spread > 1)
    pair = predictor.pair(features, shifts)
    ((log_z, recomputed),) = predictor.pair_normalisers([pair])
    if name == "self-normalised":  # none is computed, none is counted
        assert log_z.numel() == recomputed.numel() == 0
    into, leave = predictor.pair_log_probs(pair, log_z, parents, words)
    for n, shift in enumerate(shifts):
        truth = predictor.log_probs(features + shift, parents, words)
        for found, expected in zip((into[:, n], leave[:, n]), truth, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5 * spread)


# Classes
def test_every_word_has_one_class_of_ranks_and_classes_are_about_the_root_of_v() -> None:
    for words in (3, 9, 10, 100, 1999):
        head = load(HEADS["classes"])(1, 1, nn.Embedding(words, 1), tied=True)
        members = [words_of_class(c) for c in range(len(head.sizes))]
        parts = [torch.arange(words)[member].tolist() for member in members]
        assert [word for own in parts for word in own] == list(range(words))
        assert all(math.isqrt(word) == c for c, own in enumerate(parts) for word in own)
        assert head.sizes == [len(part) for part in parts]
        assert len(parts) == math.ceil(math.sqrt(words))
    roots = torch.arange(1, 65_537)  # large ids are exact at squares and next to them
    assert torch.equal(class_of(roots.square()), roots)
    assert torch.equal(class_of(roots.square() - 1), roots - 1)


# Self-normalised softmax
@pytest.mark.parametrize("logits", [40, 1 << 27], ids=["two rows at a time", "at once"])
@both_ties
def test_one_product_with_all_words_has_the_loss_and_gradients_of_a_product_for_each_class(
    tied: bool, logits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 words: the last class, of ids 16 to 19, is cut."""
    monkeypatch.setattr(heads, "LOGITS", logits)
    head = head_of("classes", 20, tied=tied)
    features = torch.randn(20, head.weight().shape[1], requires_grad=True)
    targets = torch.randperm(20)
    given, direction = (features, class_of(targets), targets), torch.randn(20)
    result = []
    for loss in (head.within_by_rows, head.within_by_class):
        within = loss(*given)
        wanted = [features, head.weight(), head.bias]
        result.append([within, *torch.autograd.grad(within @ direction, wanted)])
    for own, expected in zip(*result, strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_the_loss_is_the_nll_and_the_penalty_of_log_z() -> None:
    """Exactly, and with Z estimated from negatives without bias: within 5 standard errors of Z."""
    head, features, targets = head_of("self-normalised", 40), torch.randn(6, 4), torch.arange(6) * 6
    logits = linear_logits(head, features)
    log_z = logits.logsumexp(1)
    truth = log_z - logits[range(6), targets] + ALPHA * log_z**2
    loss = head.loss(features, targets, None, torch.Generator())
    torch.testing.assert_close(loss.double(), truth, rtol=1e-5, atol=1e-5)
    sampler, result = head.sampler(torch.arange(40), 10), []
    for seed in range(400):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.rand(40, generator=generator) < sampler.inclusion
        shares = logits.exp() * drawn / sampler.inclusion
        shares[range(6), targets] = logits.exp()[range(6), targets]
        result.append(shares.sum(dim=1))
        if seed < 20:
            args = (features, head.weight(), head.bias, targets, generator.manual_seed(seed))
            nll = sampler.nll(*args)
            loss = head.loss(features, targets, sampler, generator.manual_seed(seed))
            expected = nll + ALPHA * result[-1].log().square()
            torch.testing.assert_close(loss.double(), expected.double(), rtol=1e-4, atol=1e-5)
    estimates = torch.stack(result)
    error = 5 * estimates.std(dim=0) / math.sqrt(len(result))
    assert bool(((estimates.mean(dim=0) - logits.exp().sum(dim=1)).abs() < error).all())


@torch.no_grad()
def test_evaluation_states_the_mean_and_deviation_of_log_z_word_by_word() -> None:
    model = DocumentLM(Config("rnnlm", 24, 4, 5, head="self-normalised")).eval()
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter))
    sentences, values = [[3, 4], [5], [], [23, 7, 9]], list[float]()
    for words in sentences:
        start = model.context.start(1)
        features = model.features(read_by_words(model, words, start), start)
        values += linear_logits(model.head, features).logsumexp(1).tolist()
    stated = perplexity(model, Corpus.of([sentences])).log_z
    assert stated is not None
    assert (stated.mean, stated.sd) == pytest.approx((np.mean(values), np.std(values)), rel=1e-4)
    assert perplexity(DocumentLM(Config("rnnlm", 24, 4, 5)), Corpus.of([sentences])).log_z is None


# Tables of hashed features
GOLDEN, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1  # 2^64 / φ


@given(word=st.integers(0, 10**6), size=st.integers(V, 10**7))
def test_slots_are_those_of_the_definition(word: int, size: int) -> None:
    """The row of a word begins where it, multiplied modulo 2^64 and its halves xored, says."""
    result = int(HashTable(V, size).first_slots(torch.tensor([word]))[0])
    mixed = (word + 1) * GOLDEN & MASK
    mixed ^= mixed >> 32
    assert result == mixed % (1 << 62) % (size - V + 1)
    assert 0 <= result <= size - V  # no row leaves the table


def hashed_inputs(size: int) -> tuple[list[Tensor], Tensor, Tensor]:
    """Features, weight, bias and table that are trained; slots, equal rows among them; targets."""
    generator = torch.Generator().manual_seed(0)
    trained = [torch.randn(*n, generator=generator) for n in ((5, 3), (V, 3), (V,), (size,))]
    slots = torch.randint(0, size - V + 1, (5, 3), generator=generator)
    trained[0][3], slots[3] = trained[0][1], slots[1]
    slots[0, 2] = slots[2, 0] = slots[2, 1] = NONE
    slots[4, 1] = slots[4, 0]  # a row twice
    return [tensor.requires_grad_() for tensor in trained], slots, torch.tensor([3, 0, 6, 2, 6])


@pytest.mark.parametrize("chunk", [1, 1 << 23], ids=["row by row", "at once"])
@pytest.mark.parametrize("size", [V + 2, 10_000], ids=["dense", "sparse"])
def test_hashed_gradients_are_right(size: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the table added at a time; a sparse gradient has the slots that were read."""
    monkeypatch.setattr(hashed_softmax, "CHUNK", chunk)
    trained, slots, targets = hashed_inputs(size)
    features, weight, bias, table = trained
    rows = [sum(table[s : s + V] for s in own if s >= 0) for own in slots.tolist()]
    logits = features @ weight.T + bias + torch.stack(rows)  # type: ignore[arg-type]
    truth = -torch.log_softmax(logits, dim=1)[range(5), targets]
    result = hashed_nll(features, slots, targets, HashedLogits(*trained[1:]))
    torch.testing.assert_close(result, truth)
    direction = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.25])
    ours = torch.autograd.grad((direction * result).sum(), trained)
    theirs = torch.autograd.grad((direction * truth).sum(), trained)
    assert ours[3].is_sparse == (size == 10_000)
    for our, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our.to_dense() if our.is_sparse else our, other)
    if ours[3].is_sparse:
        read = {s + word for s in slots.flatten().tolist() if s >= 0 for word in range(V)}
        assert set(ours[3].coalesce().indices()[0].tolist()) == read
    own = HashedLogits(*trained[1:])
    torch.testing.assert_close(own.of_all(features, slots, slice(2, 5)), logits[:, 2:5])
    torch.testing.assert_close(own.of_targets(features, slots, targets), logits[range(5), targets])
    assert hashed_nll(features[:0], slots[:0], targets[:0], own).shape == (0,)


@pytest.mark.parametrize("floats", [1, 40, 1 << 19])
@pytest.mark.parametrize("name", ["rnnlm-lin", "rnnslm"])
@torch.no_grad()
def test_hashed_normalisers_are_those_of_the_loss_however_few_words_fit_in_memory(
    name: str, floats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(ZOO[name])
    start = model.context.start(1)
    features = model.features(read_by_words(model, [4, 4, 9], start), start)
    backend = Backend()
    backend.floats = floats
    at, words = torch.arange(4).repeat_interleave(10), torch.arange(10).repeat(4)
    predictor: Any = model.head.predictor(backend)
    log_sums_of, seen = type(predictor)._log_sums, []
    monkeypatch.setattr(
        type(predictor),
        "_log_sums",
        lambda *args: seen.append(len(args[1])) or log_sums_of(*args),  # type: ignore[func-returns-value]
    )
    into, leave = predictor.log_probs(features, at, words)
    torch.testing.assert_close(into, -model.head.nll(features[at], words))
    torch.testing.assert_close(leave, into.view(4, 10)[:, END])
    assert sum(seen) == (1 if name == "rnnslm" else 4)  # equal features have one normaliser


# Normalisers against log-sum-exp in float64 of the same logits
def as_features(*logits: Tensor) -> tuple[Tensor, ...]:
    """Rows of features for each matrix, and a weight that makes exactly these logits of them."""
    weight = torch.cat(logits).T
    return *torch.split(torch.eye(weight.shape[1]), [len(x) for x in logits]), weight


@pytest.mark.parametrize("spread", [1.0, 50.0])
@pytest.mark.parametrize("offset", [0.0, 200.0, -200.0])
def test_log_sums_are_those_of_float64_for_any_logits(spread: float, offset: float) -> None:
    logits = torch.randn(40, 500) * spread + offset
    truth = torch.logsumexp(logits.double(), dim=1)
    features, weight = as_features(logits)
    error = (log_sums(features, weight, Backend()).double() - truth).abs().max()
    assert float(error) <= 1e-6 * float(logits.abs().max())


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 10.0, 40.0]), st.floats(-90, 90))
@settings(max_examples=15)
def test_no_offset_of_a_node_deceives_the_guard(seed: int, spread: float, offset: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(7, 60, generator=generator) * spread
    b = torch.randn(5, 60, generator=generator) * spread
    a[2:4] += offset
    b[1:3] -= offset
    of_a, of_b, weight = as_features(a, b)
    log_z, _ = pair_log_sums([(of_a, of_b)], weight, Backend())[0]
    truth = torch.logsumexp(a.double()[:, None] + b.double()[None], dim=2)
    largest = max(1.0, float(a.abs().max() + b.abs().max()))
    assert float((log_z.double() - truth).abs().max()) <= 1e-6 * largest
