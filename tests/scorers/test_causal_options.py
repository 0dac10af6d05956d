"""Values of `--lm NAME=hf:DIR,…`: folder, window and joiner."""

from pathlib import Path

import pytest

from rerank.errors import UsageError
from rerank.scorers.causal_options import CausalOptions, causal_options, is_causal

FOLDER = Path("models/gpt")


@pytest.mark.parametrize(
    ("value", "expected", "order"),
    [
        ("hf:models/gpt", CausalOptions(FOLDER), None),
        ("hf:models/gpt,sentences=1", CausalOptions(FOLDER, sentences=1), 1),
        ("hf:models/gpt,tokens=0", CausalOptions(FOLDER, 0, 0), 0),
        (
            "hf:models/gpt,tokens=50,sentences=3,join=space,detokenize=de",
            CausalOptions(FOLDER, 3, 50, "space", "de"),
            3,
        ),
        ("hf:models/gpt,old=1/", CausalOptions(Path("models/gpt,old=1")), None),
    ],
)
def test_options_follow_the_folder(value: str, expected: CausalOptions, order: int | None) -> None:
    assert is_causal(value)
    assert is_causal(Path(value))
    found = causal_options("gpt", value)
    assert (found, found.order) == (expected, order)
    assert not is_causal("models/hf:gpt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("sentences=two", "found sentences=two"),
        ("sentences=-1", "found sentences=-1"),
        ("sentences=", "found sentences="),
        ("tokens=99999999", "found tokens=99999999"),
        ("join=comma", "found join=comma"),
        ("sentence=2", "found sentence=2"),
        ("detokenize=english", "found detokenize=english"),
        ("tokens=1,tokens=1", "tokens is given twice"),
    ],
)
def test_other_options_are_refused(options: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        causal_options("gpt", f"hf:models/gpt,{options}")


def test_a_folder_is_needed() -> None:
    with pytest.raises(UsageError, match="expected hf:DIR"):
        causal_options("gpt", "hf:,sentences=2")
