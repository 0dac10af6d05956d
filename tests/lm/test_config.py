"""Shapes that a model can have, and what is written of them."""

import re

import pytest

from lm.config import Config
from lm.model import DocumentLM


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "rnn"}, "no model 'rnn'"),
        ({"recurrence": "gnu"}, "no recurrence 'gnu'"),
        ({"fusion": "late"}, "no fusion 'late' is known; there are input, input-sum, output"),
        ({"fusion": "input"}, "'rnnlm' has no context, found the fusion 'input'"),
        ({"model": "ccdclm", "fusion": "initial"}, "needs a context that carries a recurrent"),
        ({"model": "adclm", "fusion": "initial"}, "needs a context that carries a recurrent"),
        ({"model": "codclm", "attention": 8}, "'codclm' has no attention, found a size 8 of it"),
        ({"model": "adclm", "attention": 0}, "sizes of 1 to 65,536"),
        ({"model": "adclm", "attention": 2.5}, "whole numbers"),
        ({"vocabulary": 2}, "at least 3 words, not 2"),
        ({"hidden": 0}, "sizes of 1 to 65,536"),
        ({"embed": -1}, "sizes of 1 to 65,536"),
        ({"hidden": 10**12}, "sizes of 1 to 65,536"),
        ({"hidden": 5.0}, "whole numbers"),
        ({"layers": 0}, "1 to 64 layers, not 0"),
        ({"layers": 10**9}, "1 to 64 layers"),
    ],
    ids=str,
)
def test_shapes_that_no_model_has_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        DocumentLM(Config(**{"model": "rnnlm", "vocabulary": 10, **fields}))  # type: ignore[arg-type]


def test_fields_without_a_choice_are_not_written() -> None:
    assert Config("codclm", 10, tied=False).as_json() == {
        "model": "codclm",
        "vocabulary": 10,
        "embed": 128,
        "hidden": 256,
        "layers": 1,
        "tied": False,
    }
