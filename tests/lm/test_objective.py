"""Sampled softmax against its definition by autograd, and in the limit against the exact one."""

import torch

from lm.objective import Proposal, chunked_nll, exact_nll, sampled_nll


def test_gradients_of_the_sampled_form_equal_those_of_autograd() -> None:
    torch.manual_seed(1)
    features, weight = torch.randn(9, 4), torch.randn(6, 4)
    shifts, positive = torch.randn(6), torch.randn(9)
    hits = torch.tensor([-1, 2, -1, 5, 0, -1, -1, 3, 3])
    inputs = [t.requires_grad_() for t in (features, weight, shifts, positive)]

    logits = torch.cat([features @ weight.T + shifts, positive[:, None]], dim=1)
    masked = logits.clone()
    for row, place in enumerate(hits.tolist()):
        if place >= 0:
            masked[row, place] = -torch.inf
    expected = torch.logsumexp(masked, dim=1) - positive
    ours = sampled_nll(features, weight, shifts, positive, hits)
    torch.testing.assert_close(ours, expected)
    direction = torch.randn(9)
    for a, b in zip(
        torch.autograd.grad((ours * direction).sum(), inputs),
        torch.autograd.grad((expected * direction).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_with_every_word_sampled_the_loss_is_the_exact_one() -> None:
    generator = torch.Generator().manual_seed(2)
    features = torch.randn(5, 3, generator=generator)
    weight, bias = torch.randn(20, 3, generator=generator), torch.randn(20, generator=generator)
    targets = torch.tensor([0, 3, 19, 7, 7])
    proposal = Proposal.from_counts(torch.arange(20), 20)
    sampled = proposal.nll(features, weight, bias, targets, generator)
    torch.testing.assert_close(sampled, exact_nll(features, weight, bias, targets))


def test_an_update_for_which_no_negative_is_drawn_changes_nothing() -> None:
    """The target is the only word that the sampled softmax sums over: log 1, whatever its logit."""
    features = torch.randn(5, 3, requires_grad=True)
    weight, bias = torch.randn(20, 3, requires_grad=True), torch.randn(20, requires_grad=True)
    targets, generator = torch.tensor([0, 3, 19, 7, 7]), torch.Generator().manual_seed(2)
    found = Proposal(torch.full((20,), 1e-9)).nll(features, weight, bias, targets, generator)
    assert found.tolist() == [0] * 5
    (gradient,) = torch.autograd.grad(found.sum(), [features])
    assert not gradient.any()


def test_chances_add_up_to_the_number_of_samples_and_rise_with_the_counts() -> None:
    counts = torch.tensor([0, 1, 10, 100, 1000, 10_000])
    inclusion = Proposal.from_counts(counts, 3).inclusion
    assert abs(float(inclusion.sum()) - 3) < 1e-4
    assert (inclusion.diff() >= 0).all()
    assert float(inclusion[0]) > 0


def test_chunks_change_nothing() -> None:
    torch.manual_seed(3)
    features, weight, bias = torch.randn(50, 3), torch.randn(1 << 18, 3), torch.randn(1 << 18)
    targets = torch.randint(0, 1 << 18, (50,))
    whole = exact_nll(features, weight, bias, targets)
    torch.testing.assert_close(chunked_nll(features, weight, bias, targets), whole)
