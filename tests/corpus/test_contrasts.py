"""Contrasts in k-best lists, against all pairs of candidates one by one."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.contrasts import Contrast, contrast_of

KIND = frozenset({"he", "she", "it", "i'm"})
words = st.lists(st.sampled_from(["he", "She", "it", "lamp", "burns", "i&apos;m"]), max_size=4)


def of(*lines: str) -> list[list[bytes]]:
    return [line.encode().split() for line in lines]


def plain(word: str) -> str:
    return word.lower().replace("&apos;", "'")


def true(one: Sequence[str], other: Sequence[str], references: Sequence[Sequence[str]]) -> bool:
    """Whether a candidate is right where another one is wrong, word by word."""
    if len(one) != len(other):
        return False
    differ = [(plain(a), plain(b)) for a, b in zip(one, other, strict=True) if a != b]
    if len(differ) != 1 or not KIND.issuperset(differ[0]):
        return False
    ((right, wrong),) = differ
    times = [plain(word) for word in one].count(right)
    counts = [[plain(word) for word in own] for own in references]
    return any(own.count(right) >= times for own in counts) and not any(
        wrong in own for own in counts
    )


@given(st.lists(words, max_size=6), st.lists(words, min_size=1, max_size=2))
def test_items_are_pairs_of_candidates_that_differ_in_a_word_of_the_reference(
    candidates: list[list[str]], references: list[list[str]]
) -> None:
    encoded = [[word.encode() for word in own] for own in candidates]
    others = [[word.encode() for word in own] for own in references]
    found = contrast_of(encoded, others, KIND)
    pairs = [(a, b) for a in candidates for b in candidates if true(a, b, references)]
    assert (found is None) == (not pairs)
    if found is not None:
        right = found.right.decode().split()
        wrong = [own.decode().split() for own in found.wrong]
        assert wrong
        assert all((right, own) in pairs for own in wrong)
        assert found.word in map(plain, right)


def test_all_wrong_words_of_one_place_are_variants() -> None:
    lists = of("he burns", "the lamp burns", "she burns", "It burns", "he burns it", "he burns")
    found = contrast_of(lists, of("it burns ."), KIND)
    assert found == Contrast(b"It burns", (b"he burns", b"she burns"), "it")
    assert contrast_of(lists, of("he burns and she burns and it"), KIND) is None
    assert contrast_of(lists, of("a lamp"), KIND) is None
    escaped = of("i&apos;m lit", "he lit")
    assert contrast_of(escaped, of("i'm lit"), KIND) == Contrast(
        b"i&apos;m lit", (b"he lit",), "i'm"
    )
