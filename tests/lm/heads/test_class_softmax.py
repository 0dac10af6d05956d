"""The class-factored softmax against its definition, word by word in float64, and its classes
against the best partition by dynamic programming."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lm.backend import Backend
from lm.heads.class_softmax import REACH, ClassPredictor, ClassSoftmax, class_of, words_of_class
from lm.model import n_parameters
from lm.vocabulary import END

sizes = st.integers(1, 6)


def head_of(V: int, K: int = 4, H: int = 3, D: int = 2, *, tied: bool = True) -> ClassSoftmax:
    torch.manual_seed(V + K)
    head = ClassSoftmax(H, D, nn.Embedding(V, K), tied=tied)
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    return head


def members(V: int) -> list[list[int]]:
    """The words of each class, as Mikolov's ranks under Zipf's law say."""
    return [[w for w in range(V) if math.isqrt(w) == c] for c in range(math.isqrt(V - 1) + 1)]


def defined(head: ClassSoftmax, features: Tensor, word: int) -> float:
    """log p of one word after features (R,): both softmaxes in Python's floats."""
    x = [float(value) for value in features]

    def logits(weight: Tensor, bias: Tensor, rows: Sequence[int]) -> list[float]:
        return [
            sum(a * float(b) for a, b in zip(x, weight[row], strict=True)) + float(bias[row])
            for row in rows
        ]

    own = members(len(head.bias))[math.isqrt(word)]
    classes = logits(head.classes, head.class_bias, range(len(head.class_bias)))
    words = logits(head.weight(), head.bias, own)
    of_class = classes[math.isqrt(word)] - math.log(sum(map(math.exp, classes)))
    return of_class + words[own.index(word)] - math.log(sum(map(math.exp, words)))


# Classes


@given(V=st.integers(3, 2000))
def test_every_word_has_one_class_of_ranks_and_classes_are_about_the_root_of_v(V: int) -> None:
    head = head_of(V, 1, 1, 1)
    words = torch.arange(V)
    assert class_of(words).tolist() == [math.isqrt(word) for word in range(V)]
    parts = [words[words_of_class(c)].tolist() for c in range(len(head.sizes))]
    assert parts == members(V)
    assert head.sizes == [len(part) for part in parts]
    assert len(parts) == math.ceil(math.sqrt(V))
    assert max(head.sizes) <= 2 * math.sqrt(V)


def test_classes_of_large_ids_are_exact_at_squares_and_next_to_them() -> None:
    roots = torch.arange(1, 65_537)
    assert torch.equal(class_of(roots.square()), roots)
    assert torch.equal(class_of(roots.square() - 1), roots - 1)


def test_the_classes_are_within_3_percent_of_the_best_ones_for_words_after_zipf() -> None:
    """Of all partitions of the ranks into √V ranges, by dynamic programming over Σ p(c) · |c|."""
    V, n_classes = 400, 20
    chance = 1 / np.arange(1, V + 1)
    chance /= chance.sum()
    mass = np.concatenate([[0.0], np.cumsum(chance)])
    ends = np.arange(V + 1)
    cost = (mass[None] - mass[:, None]) * (ends[None] - ends[:, None])  # of ranks i … j − 1
    cost[ends[None] < ends[:, None]] = np.inf
    best = cost[0]
    for _ in range(n_classes - 1):
        best = (best[:, None] + cost).min(axis=0)
    ours = sum(chance[part].sum() * len(part) for part in members(V))
    equal = sum(chance[part].sum() * len(part) for part in np.array_split(ends[:-1], n_classes))
    assert best[V] <= ours <= 1.03 * best[V]
    assert ours < 0.7 * equal


@given(V=st.integers(3, 40), K=sizes, H=sizes, D=sizes, tied=st.booleans())
@settings(max_examples=20)
def test_the_head_has_the_stated_number_of_parameters(
    V: int, K: int, H: int, D: int, tied: bool
) -> None:
    columns = K if tied else H + D
    own = n_parameters(head_of(V, K, H, D, tied=tied)) - math.ceil(math.sqrt(V)) * (columns + 1)
    assert own == (V * K + K * (H + D) + V if tied else V * (H + D + 1))


# Scores


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("V", [3, 4, 17, 50])
@torch.no_grad()
def test_probabilities_of_all_words_are_the_definition_and_sum_to_1(V: int, tied: bool) -> None:
    head = head_of(V, tied=tied).double()
    features = head.features(torch.randn(5, 3).double(), torch.randn(5, 2).double())
    at = torch.arange(5).repeat_interleave(V)
    words = torch.arange(V).repeat(5)
    into, leave = head.predictor(Backend()).log_probs(features, at, words)
    truth = [defined(head, features[n], w) for n, w in zip(at, words.tolist(), strict=True)]
    np.testing.assert_allclose(into, truth, atol=1e-9)
    np.testing.assert_allclose(into.view(5, V).exp().sum(dim=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(leave, into.view(5, V)[:, END])
    np.testing.assert_allclose(head.nll(features[at], words), -into, atol=1e-5)
    loss = head.loss(features[at], words, head.sampler(torch.ones(V), 1), torch.Generator())
    np.testing.assert_allclose(loss, -into, atol=1e-5)


@pytest.mark.parametrize("spread", [1.0, 30.0], ids=["a product", "beyond the range of exp"])
@torch.no_grad()
def test_scores_in_many_contexts_are_those_of_the_shifted_features(spread: float) -> None:
    """Of more positions than fit in one piece of work; the second one cannot use a product."""
    head = head_of(30)
    with torch.no_grad():
        head.weight().mul_(spread)
    predictor = head.predictor(Backend())
    features, shifts = torch.randn(700, 4), torch.randn(3, 4)
    parents = torch.randint(700, (1500,))
    words = torch.randint(3, 30, (1500,))
    reach = (features @ head.weight().T).abs().max() + (shifts @ head.weight().T).abs().max()
    assert (float(reach) > REACH) == (spread > 1)
    pair = predictor.pair(features, shifts)
    ((log_z, _),) = predictor.pair_normalisers([pair])
    into, leave = predictor.pair_log_probs(pair, log_z, parents, words)
    for n, shift in enumerate(shifts):
        truth = predictor.log_probs(features + shift, parents, words)
        for found, expected in zip((into[:, n], leave[:, n]), truth, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5 * spread)


@torch.no_grad()
def test_scores_have_the_same_bits_for_any_number_of_threads() -> None:
    head, features = head_of(200), torch.randn(3000, 4)
    parents, words = torch.arange(3000), torch.randint(3, 200, (3000,))
    threads, found = torch.get_num_threads(), []
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            found.append(head.predictor(Backend()).log_probs(features, parents, words))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(*both) for both in zip(*found, strict=True))


@torch.no_grad()
def test_no_words_but_the_end_are_scored_too() -> None:
    head, none = head_of(10), torch.empty(0, dtype=torch.long)
    predictor = head.predictor(Backend())
    assert isinstance(predictor, ClassPredictor)
    features = torch.randn(2, 4)
    into, leave = predictor.log_probs(features, none, none)
    assert into.shape == (0,)
    truth = [defined(head, features[n], END) for n in range(2)]
    np.testing.assert_allclose(leave, truth, atol=1e-5)
