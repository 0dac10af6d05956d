"""Traces of decodings are read back; other lines are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from rerank.errors import InputError
from rerank.formats.trace import Choice, read_trace
from rerank.notices import Notices

LINE: dict[str, Any] = {
    "document": "evening",
    "sentence": 2,
    "source": None,
    "chosen": 1,
    "first": 0,
    "texts": {"chosen": "it is lit", "first": "it is", "runner_up": "it"},
    "weighted": {"LM0": -1.5, "lm": -2.0},
    "over_first": {"LM0": 0.5, "lm": None},
    "over_runner_up": {"LM0": 0.25, "lm": -0.125},
    "margin": 0.125,
    "alone": {"chosen": 0, "text": "it is", "lead": 0.5},
}


def read(tmp_path: Path, *lines: dict[str, Any] | str) -> list[Choice]:
    path = tmp_path / "trace"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(text + "\n" for text in texts))
    return list(read_trace(path, "t", Notices()))


def test_a_line_is_a_choice(tmp_path: Path) -> None:
    first, second = read(tmp_path, {**LINE, "later": 1}, {**LINE, "alone": None, "chosen": 0})
    assert (first.document, first.sentence, first.chosen) == ("evening", 2, 1)
    assert first.changed
    assert first.by_context
    assert not second.by_context
    same = {**LINE["texts"], "chosen": "it is"}
    (third,) = read(tmp_path, {**LINE, "texts": same})
    assert not third.changed
    assert not third.by_context


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "1e999",
        "[" * 100_000,
        *({name: value for name, value in LINE.items() if name != gone} for gone in LINE),
        {**LINE, "texts": {"chosen": 1, "first": "a", "runner_up": None}},
        {**LINE, "over_first": {"LM0": "0.5"}},
        {**LINE, "over_first": 3},
        {**LINE, "alone": {"chosen": 1}},
        {**LINE, "sentence": "2"},
        {**LINE, "document": None},
    ],
)
def test_another_line_is_refused_with_its_place(tmp_path: Path, line: Any) -> None:
    with pytest.raises(InputError, match=r"^t:2: expected a line of a trace, found .*--trace"):
        read(tmp_path, LINE, line)
