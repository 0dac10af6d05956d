"""Changes of words between two texts."""

from hypothesis import given
from hypothesis import strategies as st

from rerank.report.word_changes import marked_changes, word_changes

words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8).map(" ".join)


def test_changes_are_runs_of_words() -> None:
    before, after = "the old lamp is lit", "a very old lamp burns brightly now"
    assert list(word_changes(before, after)) == [
        ("the", "a very"),
        ("is lit", "burns brightly now"),
    ]
    assert list(word_changes("it is", "it")) == [("is", "")]
    assert list(word_changes("it", "it is")) == [("", "is")]
    assert marked_changes(before, after) == (
        "[-the-] {+a very+} old lamp [-is lit-] {+burns brightly now+}"
    )


@given(words, words)
def test_what_is_marked_holds_both_texts(before: str, after: str) -> None:
    old, new = [], []
    rest = marked_changes(before, after).replace("-]", "\0").replace("+}", "\0")
    for part in rest.replace("[-", "\0-").replace("{+", "\0+").split("\0"):
        if part.strip() == "":
            continue
        if not part.startswith("+"):
            old += part.removeprefix("-").split()
        if not part.startswith("-"):
            new += part.removeprefix("+").split()
    assert (" ".join(old), " ".join(new)) == (before, after)
    assert (list(word_changes(before, after)) == []) == (before == after)
