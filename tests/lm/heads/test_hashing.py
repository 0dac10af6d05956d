"""Tables of hashed features: slots against whole numbers, losses and gradients against autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hashing import first_slot
from torch import Tensor

from lm.heads import hashing
from lm.heads.hashing import NONE, HashedLogits, HashTable, distinct, hashed_nll

V, R = 7, 3


@given(words=st.lists(st.integers(0, 10**6), min_size=1, max_size=3), size=st.integers(V, 10**7))
@settings(max_examples=50)
def test_slots_are_those_of_the_definition(words: list[int], size: int) -> None:
    table = HashTable(V, size)
    found = int(table.first_slots(torch.tensor([words]))[0])
    assert found == first_slot(words, size, V)
    assert 0 <= found <= size - V  # no row leaves the table


def test_histories_of_different_lengths_and_orders_have_different_slots() -> None:
    table = HashTable(V, 10**7)
    histories = [[1], [2], [1, 2], [2, 1], [1, 1], [0], [0, 0], [2, 1, 0]]
    slots = [int(table.first_slots(torch.tensor([words]))[0]) for words in histories]
    assert len(set(slots)) == len(slots)


def test_a_history_without_a_word_has_no_row() -> None:
    table = HashTable(V, 50)
    found = table.first_slots(torch.tensor([[3, -1], [-1, 3], [3, 4]]))
    assert found.tolist()[:2] == [NONE, NONE]
    assert found[2] >= 0


def test_rows_are_spread_over_the_whole_table() -> None:
    """Ten thousand words in ten parts of the table: χ² with 9 degrees of freedom, p > 0.001."""
    slots = HashTable(V, 10**6).first_slots(torch.arange(10_000)[:, None])
    counts = torch.bincount(slots * 10 // 10**6, minlength=10).double()
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 27.9


def test_a_table_has_a_slot_for_each_word_and_is_zero_at_first() -> None:
    assert not HashTable(V, V).weight.any()
    with pytest.raises(
        ValueError, match="expected a hash size of at least 7, a slot for each word, found 6"
    ):
        HashTable(V, V - 1)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=9))
def test_distinct_rows_are_found(rows: list[list[int]]) -> None:
    matrix = torch.tensor(rows, dtype=torch.int32)
    first, own = distinct(matrix)
    assert len(first) == len({tuple(row) for row in rows})
    assert torch.equal(matrix[first][own], matrix)
    assert all(rows.index(rows[place]) == place for place in first.tolist())


def test_where_a_hash_confuses_rows_none_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_MIX", 0)
    first, own = distinct(torch.tensor([[1], [2], [1]], dtype=torch.int32))
    assert first.tolist() == own.tolist() == [0, 1, 2]


def inputs(size: int, seed: int = 0) -> tuple[list[Tensor], Tensor, Tensor]:
    """Features, weight, bias and table that are trained; slots, equal rows among them; targets."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(5, R, generator=generator)
    features[3] = features[1]
    trained = [features, *(torch.randn(*n, generator=generator) for n in ((V, R), (V,), (size,)))]
    slots = torch.randint(0, size - V + 1, (5, 3), generator=generator)
    slots[3] = slots[1]
    slots[0, 2] = slots[2, 0] = slots[2, 1] = NONE
    slots[4, 1] = slots[4, 0]  # a row twice
    for tensor in trained:
        tensor.requires_grad_()
    return trained, slots, torch.tensor([3, 0, 6, 2, 6])


def by_definition(trained: list[Tensor], slots: Tensor, targets: Tensor) -> Tensor:
    """−log p with a row of the table added at a time, for autograd."""
    features, weight, bias, table = trained
    rows = [
        features[n] @ weight.T + bias + sum(table[s : s + V] for s in slots[n].tolist() if s >= 0)
        for n in range(len(slots))
    ]
    return -torch.log_softmax(torch.stack(rows), dim=1)[range(len(slots)), targets]


@pytest.mark.parametrize("chunk", [1, 1 << 23], ids=["row by row", "at once"])
@pytest.mark.parametrize("size", [V + 2, 10_000], ids=["dense", "sparse"])
def test_losses_and_gradients_are_those_of_the_definition(
    size: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "CHUNK", chunk)
    trained, slots, targets = inputs(size)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.25])
    found = hashed_nll(trained[0], slots, targets, HashedLogits(*trained[1:]))
    truth = by_definition(trained, slots, targets)
    torch.testing.assert_close(found, truth)
    ours = torch.autograd.grad((weights * found).sum(), trained)
    theirs = torch.autograd.grad((weights * truth).sum(), trained)
    assert ours[3].is_sparse == (size == 10_000)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.to_dense() if one.is_sparse else one, other)


def test_a_sparse_gradient_has_only_the_slots_that_were_read() -> None:
    trained, slots, targets = inputs(10_000)
    loss = hashed_nll(trained[0], slots, targets, HashedLogits(*trained[1:])).sum()
    (gradient,) = torch.autograd.grad(loss, trained[3:])
    read = {s + word for s in slots.flatten().tolist() if s >= 0 for word in range(V)}
    assert set(gradient.coalesce().indices()[0].tolist()) == read


def test_no_targets_have_no_loss() -> None:
    trained, slots, targets = inputs(V + 2)
    parts = trained[0][:0], slots[:0], targets[:0]
    assert hashed_nll(*parts, HashedLogits(*trained[1:])).shape == (0,)


def test_logits_of_a_range_of_words_are_a_part_of_all() -> None:
    trained, slots, targets = inputs(30)
    logits = HashedLogits(*trained[1:])
    whole = logits.of_all(trained[0], slots)
    torch.testing.assert_close(logits.of_all(trained[0], slots, slice(2, 5)), whole[:, 2:5])
    expected = whole.gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(logits.of_targets(trained[0], slots, targets), expected)
