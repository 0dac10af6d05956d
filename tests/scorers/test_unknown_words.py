"""Unknown words: counts, and from which share on they are a warning."""

from rerank.notices import Notices
from rerank.scorers.unknown_words import UnknownWords


def test_words_are_counted_and_the_most_frequent_unknown_ones_named() -> None:
    found = UnknownWords()
    assert found.share == 0.0
    found.add([b"a", b"x", b"x", b"y"], {b"a": 3})
    found.add([b"a", b"a", b"x", b"\xff"], {b"a": 3})
    assert (found.words, found.oov, found.share) == (8, 5, 0.625)
    notices = Notices()
    found.warn("lm", {"oov_rate": 0.25}, notices, source="set.jsonl", text="item")
    (line,) = notices.lines()
    assert line.startswith(
        "5 x word unknown to lm (62.5% of the item's words, 25.0% of its training text's; "
        "most frequent: 'x', 'y', '\ufffd'): check case"
    )
    assert "the items must look like the training text, first at set.jsonl" in line


def test_a_share_up_to_twice_that_of_training_and_a_hundredth_is_no_warning() -> None:
    notices = Notices()
    for about in ({"oov_rate": 0.25}, {"oov_rate": "?"}):
        found = UnknownWords()
        found.add([b"x"] * (51 if about["oov_rate"] == 0.25 else 1), {})
        found.add([b"a"] * (49 if about["oov_rate"] == 0.25 else 99), {b"a": 3})
        found.warn("lm", about, notices, source="set.jsonl")
    assert notices.lines() == []
