"""Histories: which contexts are known, and what is held in memory for the others."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rerank.scorers.histories import FIRST, KEY_BYTES, Histories


def unknown(n: int) -> Histories:
    """Histories before sentence 1, after the empty one."""
    first = Histories(0, [FIRST], torch.zeros(1, 3), np.ones(1, dtype=np.bool_))
    origin = (first, np.zeros(n, np.intp), np.arange(n))
    keys = [bytes([k]) * KEY_BYTES for k in range(n)]
    return Histories(1, keys, None, np.zeros(n, dtype=np.bool_), origin)


@given(st.permutations(range(5)), st.integers(1, 4))
def test_contexts_are_entered_in_any_order_and_stay(order: list[int], first: int) -> None:
    histories = unknown(5)
    truth = torch.arange(15.0).reshape(5, 3)
    for part in (order[:first], order[first:]):
        rows = np.array(part, dtype=np.intp)
        histories.enter(rows, truth[rows])
        assert histories.contexts is not None
        assert torch.equal(histories.contexts[rows], truth[rows])
    assert histories.known.all()
    assert histories.contexts is not None
    assert torch.equal(histories.contexts, truth)


def test_the_histories_before_are_let_go_when_all_contexts_are_known() -> None:
    """Else a search would keep all of its beams."""
    histories = unknown(3)
    histories.enter(np.array([0, 2]), torch.ones(2, 3))
    assert histories.origin is not None
    histories.enter(np.array([1]), torch.ones(1, 3))
    assert histories.origin is None


def test_contexts_that_are_entered_are_copied() -> None:
    histories, given_context = unknown(1), torch.ones(1, 3)
    histories.enter(np.array([0]), given_context)
    given_context.zero_()
    assert histories.contexts is not None
    assert float(histories.contexts.sum()) == 3.0


def test_the_empty_history_has_a_key_of_the_size_of_others() -> None:
    assert len(FIRST) == KEY_BYTES


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_contexts_keep_their_precision(dtype: torch.dtype) -> None:
    histories = unknown(2)
    histories.enter(np.array([1]), torch.full((1, 3), 0.1, dtype=dtype))
    assert histories.contexts is not None
    assert histories.contexts.dtype == dtype
