"""Both heads: the shares of logits add up, and the parameters are where the formulas say."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lm.heads import Softmax, TiedSoftmax
from lm.model import n_parameters

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
@settings(deadline=None, max_examples=20)
def test_features_are_linear_in_hidden_state_and_context(
    kind: Kind, V: int, K: int, H: int, D: int
) -> None:
    head = head_of(kind, V, K, H, D)
    h, c, d = torch.randn(3, H), torch.randn(3, D), torch.randn(3, D)
    added = head.features(h, c) + head.features(torch.zeros(3, H), d)
    torch.testing.assert_close(added, head.features(h, c + d))


@given(V=sizes, K=sizes, H=sizes, D=st.integers(0, 6))
@settings(deadline=None, max_examples=20)
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
