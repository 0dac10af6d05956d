"""Batches of contexts: rows picked, joined, replaced and padded, as plain tensors say."""

import torch

from lm.rows import Rows


def rows() -> Rows:
    return Rows.of(torch.arange(6.0).view(3, 2), torch.tensor([7, 8, 9]))


def values(found: Rows) -> list[list[object]]:
    return [tensor.tolist() for tensor in found.tensors]


def test_rows_are_taken_from_every_tensor() -> None:
    assert values(rows().take(torch.tensor([2, 0]))) == [[[4, 5], [0, 1]], [9, 7]]
    assert values(rows().take(slice(1, 2))) == [[[2, 3]], [8]]
    assert len(rows().repeat_interleave(2)) == 6


def test_shorter_tensors_are_padded_with_zeros_at_their_end() -> None:
    short = Rows.of(torch.ones(1, 1, 2), torch.ones(1, 1, dtype=torch.bool))
    long = Rows.of(torch.ones(2, 3, 2), torch.ones(2, 3, dtype=torch.bool))
    states, mask = Rows.cat([short, long]).tensors
    assert states.shape == (3, 3, 2)
    assert mask.tolist() == [[True, False, False], [True] * 3, [True] * 3]
    assert states[0].sum() == 2


def test_rows_are_replaced_where_a_mask_or_an_index_says() -> None:
    other = Rows.of(-torch.ones(3, 2), torch.zeros(3, dtype=torch.long))
    mask = torch.tensor([True, False, True])
    assert values(rows().put(mask, other.take(mask)))[1] == [0, 8, 0]
    assert values(rows().put(torch.tensor([2, 0]), other.take(slice(2))))[1] == [0, 8, 0]
    assert values(rows().put(torch.tensor([1]), rows().take(slice(1))))[1] == [7, 7, 9]


def test_a_clone_has_separate_memory_and_detached_rows_have_no_gradient() -> None:
    one = rows()
    other = one.clone()
    one.tensors[0].zero_()
    assert other.tensors[0].sum() == 15
    weight = torch.ones(2, 2, requires_grad=True)
    assert not Rows.of(weight * 2).detach().to(torch.device("cpu")).tensors[0].requires_grad
