"""Comparison of batches of contexts."""

import torch

from lm.rows import Rows


def assert_equal_rows(found: Rows, truth: Rows) -> None:
    """Both have the same rows to float32's accuracy, whatever their padding."""
    assert len(found) == len(truth)
    both = Rows.cat([found, truth])
    ours, theirs = both.take(slice(0, len(found))), both.take(slice(len(found), None))
    torch.testing.assert_close(ours.tensors, theirs.tensors, atol=1e-5, rtol=1e-4)
