"""Thought vectors: rounded in training alone."""

import torch

from lm.contexts.thought import STEPS, ThoughtVector


def test_numbers_are_rounded_in_training_alone() -> None:
    torch.manual_seed(1)
    vector, hidden = ThoughtVector(9, None), torch.randn(5, 9)
    exact = torch.tanh(hidden @ vector.projection.weight.T)
    assert vector.width == exact.shape[1] == 2
    assert torch.equal(vector.eval()(hidden), exact)
    rounded = vector.train()(hidden)
    torch.testing.assert_close(rounded, torch.round(exact * STEPS) / STEPS)
    assert 0 < float((rounded - exact).detach().abs().max()) <= 0.5 / STEPS + 1e-6


def test_the_gradient_of_rounded_numbers_is_that_of_the_exact_ones() -> None:
    torch.manual_seed(1)
    vector, hidden = ThoughtVector(9, 3), torch.randn(5, 9)
    gradients = []
    for training in (True, False):
        (found,) = torch.autograd.grad(
            vector.train(training)(hidden).sum(), vector.projection.weight
        )
        gradients.append(found)
    assert torch.equal(*gradients)


def test_no_sentence_leaves_no_thought() -> None:
    assert not ThoughtVector(9, 3).train()(torch.zeros(2, 9)).any()
