"""Detokenised text is that of the Moses detokenizer, and text that looks detokenised is noticed."""

import pytest
from sacremoses import MosesDetokenizer

from rerank.corpus.detokenisation import detokenised, note_detokenised
from rerank.errors import UsageError
from rerank.notices import Notices


def test_detokenised_texts_are_those_of_sacremoses() -> None:
    lines = ["hello , it &apos;s ( really ) fine .", "do n't you ?", ""]
    truth = [MosesDetokenizer(lang="en").detokenize(line.split()) for line in lines]
    assert detokenised([line.encode() for line in lines], "en") == [t.encode() for t in truth]
    assert truth[0] == "hello, it's (really) fine."
    with pytest.raises(UsageError, match="two letters"):
        detokenised([], "english")


@pytest.mark.parametrize(
    ("lines", "noticed"),
    [
        (["it is lit."] * 10, 10),
        (["it is lit."] * 9 + ["it is lit ."] * 3, 0),  # too few
        (["it is lit."] * 10 + ["it is lit ."] * 10, 0),
        (["it is lit."] * 10 + ["no"] * 50, 10),
        (["it is lit ..."] * 20 + ["?"] * 5, 0),
    ],
)
def test_lines_that_look_detokenised_are_counted(lines: list[str], noticed: int) -> None:
    notices = Notices()
    note_detokenised([line.encode() for line in lines], notices, source="hyp")
    expected = f"{noticed} x line that looks detokenised" if noticed else ""
    assert [line.startswith(expected) for line in notices.lines()] == [True] * bool(noticed)
