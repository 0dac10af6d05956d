"""ARPA files: written and read back to the last bit, in every form, and refused with a place."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ngrams import TEXT, golden, model_of

from lm.ngrams import MOST_ORDER
from lm.ngrams.arpa_kernel import WordTable
from lm.ngrams.arpa_lines import ArpaError
from lm.ngrams.arpa_reading import read_arpa
from lm.ngrams.arpa_writing import arpa
from lm.ngrams.model import NGramModel
from lm.ngrams.stupid_backoff import StupidBackoff
from lm.vocabulary import UNKNOWN

MODEL = rb"""\data\
ngram 1=4
ngram 2=2

\1-grams:
-1	<unk>	0
-99	<s>	-0.5
-0.75	</s>
-0.5	a	-0.25

\2-grams:
-0.25	<s> a
-0.125	a </s>

\end\
"""


def lines(model: NGramModel) -> list[bytes]:
    return b"".join(arpa(model)).split(b"\n")


def same(one: NGramModel, other: NGramModel) -> bool:
    """Whether two models are equal in every bit."""
    columns = [
        (m.ngrams.words, m.ngrams.children, m.ngrams.suffixes, m.log10_probs, m.log10_backoffs)
        for m in (one, other)
    ]
    facts = [(m.vocabulary.words, m.ngrams.levels, m.unseen) for m in (one, other)]
    return facts[0] == facts[1] and all(map(np.array_equal, *columns))


@pytest.mark.parametrize("order", range(1, MOST_ORDER + 1))
def test_a_model_is_read_as_it_was_written(order: int) -> None:
    for model in (model_of(TEXT, order), model_of(TEXT, order, StupidBackoff())):
        assert same(read_arpa(lines(model)), model)


def test_files_of_other_programs_are_read_as_they_are_written_again() -> None:
    for name in ("lmplz.arpa", "pruned.arpa"):
        model = golden(name)
        assert same(read_arpa(lines(model)), model)


def test_the_order_of_the_lines_does_not_matter() -> None:
    text = lines(model_of(TEXT, 3))
    marks = [n for n, line in enumerate(text) if line.endswith(b"-grams:") or not line]
    shuffled = list(text)
    for a, b in pairwise(marks):
        shuffled[a + 1 : b] = shuffled[a + 1 : b][::-1] if a > marks[0] else shuffled[a + 1 : b]
    one, other = read_arpa(text), read_arpa(shuffled)
    assert shuffled != text
    assert sorted(one.vocabulary.words) == sorted(other.vocabulary.words)
    assert sorted(one.log10_probs.tolist()) == sorted(other.log10_probs.tolist())


NUMBERS = ("-0.25", "-.25", "-25e-2", "-2.5E-1", "-0.2500000000000000000000", "-0.25e+0", "-00.25")


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_and_blanks_may_have_other_forms(number: str) -> None:
    other = MODEL.replace(b"-0.25\t<s> a", number.encode() + b" \t <s>\ta  ")
    assert other != MODEL
    assert same(read_arpa(other.split(b"\n")), read_arpa(MODEL.split(b"\n")))


@given(st.floats(-300, 0, width=32), st.floats(-300, 300, width=32), st.sampled_from(["g", "e"]))
def test_numbers_are_the_nearest_of_32_bits(prob: float, backoff: float, form: str) -> None:
    text = MODEL.replace(b"ngram 2=2", b"ngram 2=2\nngram 3=0").replace(
        rb"\end", b"\\3-grams:\n\n\\end"
    )
    line = f"{prob:.12{form}}\t<s> a\t{backoff:.12{form}}".encode()
    model = read_arpa(text.replace(b"-0.25\t<s> a", line).split(b"\n"))
    node = model.ngrams.nodes(np.array([[1, 3]], np.int32))[0]
    assert model.log10_probs[node] == prob
    assert model.log10_backoffs[node] == backoff


def test_lines_above_the_data_are_skipped_and_an_upper_case_unknown_is_known() -> None:
    other = b"# made by a program\n\n" + MODEL.replace(b"<unk>", b"<UNK>").replace(b"\n", b"\r\n")
    assert same(read_arpa(other.split(b"\n")), read_arpa(MODEL.split(b"\n")))


def test_without_an_unknown_class_unknown_words_have_the_logarithm_of_kenlm() -> None:
    model = golden("pruned.arpa")
    assert model.unknown_share == 0
    assert model.log10_probs[1 + UNKNOWN] == -100


@given(
    st.dictionaries(st.binary(min_size=1, max_size=4), st.integers(0, 9), min_size=1, max_size=40)
)
def test_the_table_of_words_has_each_word_once(ids: dict[bytes, int]) -> None:
    table = WordTable.of(ids)
    assert sorted(slot for slot in table.slots.tolist() if slot >= 0) == [*range(len(ids))]
    assert table.ids.tolist() == [*ids.values()]


FAULTS: dict[str, tuple[Sequence[bytes], int, str]] = {  # what is changed, line, message
    "no data": ([b"hello"], 1, r"expected \\data\\ in the first 1,000 lines, found none"),
    "empty": ([], 1, r"expected \\data\\"),
    "counts out of order": ((b"ngram 2", b"ngram 3"), 3, "the counts of the orders 1, 2, …"),
    "no counts": ((b"ngram", b"gram"), 2, "expected lines ngram n=count, .* found 'gram 1=4'"),
    "a huge count": (
        (b"ngram 1=4", b"ngram 1=9999999999"),
        10,
        "9,999,999,999 1-grams, .* found 4",
    ),
    "too few": ((b"ngram 2=2", b"ngram 2=3"), 14, "expected 3 2-grams, .* found 2, then a blank"),
    "too many": ((b"ngram 2=2", b"ngram 2=1"), 13, r"expected \\end\\ after 1 2-grams, .* '-0.125"),
    "cut short": (
        (b"-0.125\ta </s>\n\n\\end\\\n", b""),
        13,
        "found 1, then a blank line or the end",
    ),
    "no end": ((b"\\end\\", b""), 15, r"expected \\end\\ .* found the end of the file"),
    "rest": (
        (b"\\end\\", b"\\end\\\nmore"),
        16,
        r"the end of the file after \\end\\, found 'more'",
    ),
    "no number": ((b"-0.25\t<s>", b"x\t<s>"), 12, "logarithm from -300 to 0, found 'x'"),
    "not finite": ((b"-0.25\t<s>", b"-inf\t<s>"), 12, "logarithm from -300 to 0, found '-inf'"),
    "nan": ((b"-0.5\ta", b"nan\ta"), 9, "logarithm from -300 to 0, found 'nan'"),
    "positive": ((b"-0.125\ta", b"0.125\ta"), 13, "logarithm from -300 to 0, found '0.125'"),
    "small": ((b"-0.125\ta", b"-301\ta"), 13, "logarithm from -300 to 0, found '-301'"),
    "back-off": ((b"-0.25\n\n", b"1e9\n\n"), 9, "back-off .* at most 300 in size, found '1e9'"),
    "fields": ((b"<s> a", b"<s> a a a"), 12, "a logarithm and 2 words, found '-0.25"),
    "back-off of the last": ((b"<s> a", b"<s> a\t-1"), 12, "a logarithm and 2 words, found"),
    "unknown word": ((b"<s> a", b"<s> b"), 12, "words that are 1-grams, found 'b'"),
    "word twice": ((b"<unk>", b"a"), 9, "expected each word once, found 'a' again"),
    "n-gram twice": ((b"a </s>", b"<s> a"), 13, "expected each 2-gram once"),
    "no start": ((b"-99\t<s>", b"-99\tb"), 9, "expected <s> among the 1-grams, found none"),
    "no word": ((b"\ta\t-0.25", b""), 9, "a logarithm, 1 word, perhaps a back-off, found '-0.5'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_not_valid_is_refused_with_the_line(fault: str) -> None:
    change, line, message = FAULTS[fault]
    text: Sequence[bytes] = change
    if isinstance(change, tuple):
        old, new = change
        assert old in MODEL
        text = MODEL.replace(old, new, 1).split(b"\n")[:-1]
    with pytest.raises(ArpaError, match=message) as found:
        read_arpa(text)
    assert found.value.line == line
    assert "\n" not in str(found.value)


def test_a_prefix_that_is_missing_is_refused_with_the_line() -> None:
    text = MODEL.replace(b"ngram 2=2", b"ngram 2=2\nngram 3=1")
    text = text.replace(rb"\end", b"\\3-grams:\n-1\ta a </s>\n\n\\end")
    with pytest.raises(ArpaError, match="the first 2 words of this 3-gram among the 2-gr") as found:
        read_arpa(text.split(b"\n"))
    assert found.value.line == 17


def test_orders_above_the_highest_are_refused() -> None:
    counts = b"".join(b"ngram %d=1\n" % n for n in range(1, MOST_ORDER + 2))
    with pytest.raises(ArpaError, match="1, 2, … up to 6 at most, found 'ngram 7=1'"):
        read_arpa((b"\\data\\\n" + counts).split(b"\n"))


def test_a_model_of_stupid_backoff_says_so_above_the_data() -> None:
    first = lines(model_of(TEXT, 2, StupidBackoff()))[0]
    assert first == b"stupid backoff 0.4: scores, not probabilities"
