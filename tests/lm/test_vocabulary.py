"""Words, ids, and the three ids that no text can spell."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary, words_of

word = st.binary(min_size=1, max_size=4).filter(lambda w: b" " not in w and w not in SPECIAL)


def test_words_are_split_on_ascii_space_only() -> None:
    line = "a  b\tc\u00a0d\u3000e\u2028f ".encode()
    assert words_of(line) == [b"a", "b\tc\u00a0d\u3000e\u2028f".encode()]
    assert words_of(b"") == words_of(b"   ") == []


@given(st.lists(word, unique=True, max_size=8), st.lists(word, max_size=8))
def test_known_words_have_an_id_each_and_all_others_share_one(
    words: list[bytes], text: list[bytes]
) -> None:
    vocabulary = Vocabulary(tuple(words))
    assert len(vocabulary) == len(words) + 3
    assert vocabulary.encode(words) == list(range(3, len(vocabulary)))
    back = dict(enumerate(words, start=3))
    for given_word, i in zip(text, vocabulary.encode(text), strict=True):
        assert back.get(i) == given_word if given_word in words else i == UNKNOWN


def test_control_words_spelled_out_in_a_text_are_unknown_words() -> None:
    assert (UNKNOWN, START, END) == (0, 1, 2)
    assert Vocabulary((b"a",)).encode([b"<s>", b"a", b"</s>", b"<unk>"]) == [0, 3, 0, 0]


@pytest.mark.parametrize(
    "words", [(b"a", b"a"), (b"<s>",), (b"</s>",), (b"<unk>",), (b"a", b"")], ids=str
)
def test_repeated_control_and_empty_words_are_refused(words: tuple[bytes, ...]) -> None:
    with pytest.raises(ValueError, match="a vocabulary holds"):
        Vocabulary(words)


def test_the_most_frequent_words_are_kept_and_equal_counts_keep_their_order() -> None:
    words, counts = [b"d", b"c", b"<unk>", b"b", b"a"], [2, 5, 9, 2, 2]
    assert Vocabulary.most_frequent(words, counts, 3).words == (b"c", b"d", b"b")
    assert Vocabulary.most_frequent(words, counts, 0).words == ()
    assert Vocabulary.most_frequent(words, counts, 99).words == (b"c", b"d", b"b", b"a")


@given(st.lists(st.text("ab <>\x00é", max_size=8)))
def test_lines_are_encoded_as_each_of_them_alone(lines: list[str]) -> None:
    vocabulary = Vocabulary((b"a", b"b", "é".encode()))
    raw = [line.encode() for line in lines]
    tokens, offsets = vocabulary.encode_lines(b"".join(line + b"\n" for line in raw))
    rows = [tokens[a:b].tolist() for a, b in pairwise(offsets)]
    assert rows == [vocabulary.encode(words_of(line)) for line in raw]


def test_ids_are_words_again_and_special_ones_are_spelled_out() -> None:
    vocabulary = Vocabulary((b"a", b"b"))
    assert vocabulary.decode([4, 0, 3, 2, 1]) == [b"b", b"<unk>", b"a", b"</s>", b"<s>"]
