"""Heads: linear features, numbers of parameters, and scores against log-softmax."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lm.backend import Backend
from lm.heads import LinearPredictor, Softmax, TiedSoftmax
from lm.model import n_parameters
from lm.vocabulary import END

sizes = st.integers(1, 6)
Kind = type[Softmax | TiedSoftmax]
both_heads = pytest.mark.parametrize("kind", [Softmax, TiedSoftmax])


def head_of(kind: Kind, V: int, K: int, H: int, D: int) -> Softmax | TiedSoftmax:
    torch.manual_seed(V + 10 * K + 100 * H)
    head = kind(H, D, nn.Embedding(V, K))
    nn.init.normal_(head.bias)
    return head


@both_heads
@given(V=sizes, K=sizes, H=sizes, D=sizes)
@settings(max_examples=20)
def test_features_are_linear_in_hidden_state_and_context(
    kind: Kind, V: int, K: int, H: int, D: int
) -> None:
    head = head_of(kind, V, K, H, D)
    h, c, d = torch.randn(3, H), torch.randn(3, D), torch.randn(3, D)
    added = head.features(h, c) + head.features(torch.zeros(3, H), d)
    torch.testing.assert_close(added, head.features(h, c + d))


@given(V=sizes, K=sizes, H=sizes, D=st.integers(0, 6))
@settings(max_examples=20)
def test_heads_have_the_stated_numbers_of_parameters(V: int, K: int, H: int, D: int) -> None:
    assert n_parameters(head_of(Softmax, V, K, H, D)) == V * (H + D + 1)
    tied = head_of(TiedSoftmax, V, K, H, D)
    assert n_parameters(tied) - V * K == K * (H + D) + V


def test_a_tied_softmax_predicts_with_the_embeddings_and_trains_them() -> None:
    embedding = nn.Embedding(6, 3)
    head = TiedSoftmax(4, 2, embedding)
    assert head.weight() is embedding.weight
    features = head.features(torch.randn(1, 4), torch.randn(1, 2))
    loss = (features @ head.weight().T).square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.any()


@both_heads
def test_biases_start_at_zero(kind: Kind) -> None:
    assert not kind(4, 2, nn.Embedding(6, 3)).bias.any()


def test_scores_are_the_log_softmax_of_words_and_of_the_end() -> None:
    torch.manual_seed(0)
    predictor = LinearPredictor(torch.randn(9, 4), Backend())
    features = torch.randn(5, 3)
    parents, words = torch.tensor([0, 0, 3]), torch.tensor([3, 8, 2])
    logits = features @ predictor.weight[:, :3].T + predictor.weight[:, 3]
    truth = torch.log_softmax(logits, dim=1)
    into, leave = predictor.log_probs(features, parents, words)
    torch.testing.assert_close(into, truth[parents, words])
    torch.testing.assert_close(leave, truth[:, END])


def test_scores_in_many_contexts_are_those_of_the_shifted_features() -> None:
    torch.manual_seed(1)
    predictor = LinearPredictor(torch.randn(9, 4), Backend())
    features, shifts = torch.randn(5, 3), torch.randn(2, 3)
    parents, words = torch.tensor([1, 4]), torch.tensor([5, 6])
    pair = predictor.pair(features, shifts)
    ((log_z, _),) = predictor.pair_normalisers([pair])
    into, leave = predictor.pair_log_probs(pair, log_z, parents, words)
    for n, shift in enumerate(shifts):
        truth = predictor.log_probs(features + shift, parents, words)
        torch.testing.assert_close(into[:, n], truth[0])
        torch.testing.assert_close(leave[:, n], truth[1])
