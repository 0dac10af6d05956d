"""N-gram models: counts, smoothing, scores and ARPA files.

Truth: the papers' formulas over dictionaries (`support.scalar.ngrams`), and KenLM 0.3.0:
`lmplz.arpa` is what its `lmplz -o 3` makes of the made-up text `lmplz.txt`.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ngrams import TEXT, counts_of, golden, log10_of_words, model_of, scores
from support.scalar.ngrams import ScalarKneserNey, ScalarStupidBackoff, adjusted, counted

from lm.corpus import encode
from lm.evaluation import perplexity_of_ngrams
from lm.ngrams import (
    FALLBACK,
    MOST_ORDER,
    KneserNey,
    NGramCounts,
    NGramError,
    NGramModel,
    NGrams,
    StupidBackoff,
)
from lm.ngrams.arpa import ArpaError, arpa, read_arpa
from lm.vocabulary import START, UNKNOWN, Vocabulary

Words = tuple[str, ...]


def texts(words: str, most: int) -> st.SearchStrategy[list[str]]:
    line = st.lists(st.sampled_from(words.split()), min_size=1, max_size=5).map(" ".join)
    return st.lists(line, min_size=1, max_size=most)


def names(ngrams: NGrams, vocabulary: Vocabulary, start: int) -> Words:
    """The words of a node."""
    node, words, parents = start, list[int](), ngrams.parents()
    while node:
        words.append(int(ngrams.words[node]))
        node = int(parents[node])
    return tuple(w.decode() for w in vocabulary.decode(reversed(words)))


def table(
    counts: NGramCounts, vocabulary: Vocabulary, n: int, *, of_contexts: bool
) -> Counter[Words]:
    """The counts of order n that are not 0; those that smoothing is estimated from, or all."""
    result = (counts.continuations() if of_contexts else counts.counts)[n - 1]
    nodes = enumerate(result.tolist(), counts.ngrams.levels[n])
    return +Counter({names(counts.ngrams, vocabulary, node): count for node, count in nodes})


@given(texts("a b c d", 6), st.integers(1, 5))
def test_every_ngram_is_counted_as_often_as_it_occurs(text: list[str], order: int) -> None:
    counts, vocabulary = counts_of(text, order)
    assert counts.ngrams.order == order
    for n in range(1, order + 1):
        assert table(counts, vocabulary, n, of_contexts=False) == counted(text, n)
        assert table(counts, vocabulary, n, of_contexts=True) == adjusted(text, n, order)
    ngrams, parents = counts.ngrams, counts.ngrams.parents()
    for node in range(ngrams.levels[2] if order > 1 else len(ngrams), len(ngrams)):
        suffix = ngrams.suffixes[node]  # without the first word
        assert ngrams.words[suffix] == ngrams.words[node]
        assert parents[suffix] == ngrams.suffixes[parents[node]]


# Kneser–Ney and stupid back-off
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_are_those_of_chen_and_goodman(order: int) -> None:
    text, fallback = (
        (TEXT, order == 1) if order < 4 else (["the king", "the lamp in the lamp", "king"], True)
    )
    model, truth = (
        model_of(text, order),
        ScalarKneserNey(text, order, [FALLBACK] * order * fallback),
    )
    for words in itertools.product(("the", "lamp", "king", "in", "unheard"), repeat=3):
        said = [word if word in truth.words else "<unk>" for word in (*words, "</s>")]
        expected = [math.log10(truth.prob(word, ("<s>", *said[:k]))) for k, word in enumerate(said)]
        assert log10_of_words(model, " ".join(words)) == pytest.approx(expected, abs=2e-6)
    assert model.unknown_share == pytest.approx(truth.prob("<unk>", ()), rel=1e-6)


@settings(max_examples=15)
@given(texts("a b c <unk>", 8), st.integers(1, 4))
def test_probabilities_sum_to_1_after_every_history(text: list[str], order: int) -> None:
    model = model_of(text, order)
    words = [*(word.decode() for word in model.vocabulary.words), "unheard"]
    for history in itertools.chain(*(itertools.product(words, repeat=n) for n in range(3))):
        begun = " ".join(history)
        longer = scores(model, [begun, *(f"{begun} {word}" for word in words)])
        total = math.exp(longer[0, 1]) + np.exp(longer[1:, 0] - longer[0, 0]).sum()
        assert total == pytest.approx(1, abs=2e-6)


def test_texts_without_discounts_are_refused_or_get_those_of_the_fallback() -> None:
    counts = counts_of(["a", "b b", "c c c", *["d e f g"] * 4], 1)
    with pytest.raises(NGramError, match=r"at least 0 for 1-grams, found .* small counts: 1 of 1"):
        KneserNey().estimate(*counts)
    model, notes = KneserNey(FALLBACK).estimate(*counts)
    assert notes == ("1-grams D1 0.500, D2 1.000, D3+ 1.500 (fallback)",)
    total = np.delete(10.0 ** model.log10_probs[1:].astype(float), START).sum()
    assert total == pytest.approx(1, abs=1e-6)
    _, notes = KneserNey(FALLBACK).estimate(*counts_of(TEXT, 5))
    assert [("fallback" in note) for note in notes] == [False, False, False, False, True]


@settings(max_examples=15)
@given(texts("a b c", 6), st.integers(1, 5))
def test_stupid_backoff_is_its_recursion(text: list[str], order: int) -> None:
    """Brants et al. 2007, eq. 5; a step over a context that was not seen has a price too."""
    model, truth = model_of(text, order, StupidBackoff()), ScalarStupidBackoff(text, order)
    known = {word for sentence in text for word in sentence.split()}
    for words in itertools.product([*sorted(known), "unheard"], repeat=3):
        said = [*(word if word in known else "<unk>" for word in words), "</s>"]
        expected = [
            math.log10(truth.score(word, ("<s>", *said[:k]))) for k, word in enumerate(said)
        ]
        assert log10_of_words(model, " ".join(words)) == pytest.approx(expected, abs=3e-6)
    assert not model.normalised


# Scores: base-10 logarithms of words and </s>, from KenLM 0.3.0 (`full_scores` of its module)

PRUNED = {  # without <unk>, and without the suffix (b, c) of (a, b, c)
    "a b c": [-0.25, -0.125, -0.1875, -0.25],
    "": [-1.25],
    "b": [-1.375, -0.3125],
    "c": [-1.75, -0.25],
    "a a b": [-0.25, -1.0, -0.75, -0.375],
    "a b c a": [-0.25, -0.125, -0.1875, -1.125, -1.0],
    "b c b a a b": [-1.375, -1.375, -0.375, -1.5, -0.4375, -0.75, -0.375],
    "d": [-100.5, -0.75],
    "a d b": [-0.25, -100.625, -0.875, -0.3125],
    "c c b": [-1.75, -0.5625, -0.125, -0.3125],
}
LMPLZ = {
    "the lamp burns the boat": -5.287442,
    "a old king sees": -5.378151,
    "zug1 zug1": -6.981891,
    "the unheard lamp is in the sea on the town": -13.037915,
    "": -2.476956,
    "a no the in sees": -8.843366,
}


def test_words_and_sentences_have_the_scores_that_kenlm_gives_them() -> None:
    for sentence, expected in PRUNED.items():
        assert log10_of_words(golden("pruned.arpa"), sentence) == pytest.approx(expected, abs=1e-6)
    result = scores(golden("lmplz.arpa"), [*LMPLZ]).sum(axis=1) / np.log(10)
    assert result == pytest.approx([*LMPLZ.values()], abs=5e-6)  # KenLM adds float32s
    pruned = golden("pruned.arpa")
    assert (pruned.unknown_share, pruned.log10_probs[1 + UNKNOWN]) == (0, -100)


@given(st.lists(st.sampled_from([*TEXT[:5], "", "unheard of", "zug1"]), max_size=6))
def test_a_sentence_scores_among_others_as_alone_to_the_last_bit(chosen: list[str]) -> None:
    model = model_of(TEXT, 3)
    alone = [scores(model, [sentence])[0].tolist() for sentence in chosen]
    assert scores(model, chosen).tolist() == alone


def test_a_text_without_probability_has_no_perplexity() -> None:
    model = golden("pruned.arpa")
    model.log10_backoffs[:] = -300
    with pytest.raises(NGramError, match="no probability left"):
        perplexity_of_ngrams(model, encode([b"d d"], model.vocabulary))


# ARPA files
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


def parsed(text: bytes) -> NGramModel:
    return read_arpa(text.split(b"\n"))


def same(one: NGramModel, other: NGramModel) -> bool:
    """Whether two models are equal in every bit."""
    columns = [
        (m.ngrams.words, m.ngrams.children, m.ngrams.suffixes, m.log10_probs, m.log10_backoffs)
        for m in (one, other)
    ]
    facts = [(m.vocabulary.words, m.ngrams.levels, m.unseen) for m in (one, other)]
    return facts[0] == facts[1] and all(map(np.array_equal, *columns))


def test_a_model_is_read_as_it_was_written() -> None:
    for order in range(1, MOST_ORDER + 1):
        for model in (model_of(TEXT, order), model_of(TEXT, order, StupidBackoff())):
            assert same(read_arpa(lines(model)), model)
    for name in ("lmplz.arpa", "pruned.arpa"):  # of other programs
        assert same(read_arpa(lines(golden(name))), golden(name))
    assert lines(model)[0] == b"stupid backoff 0.4: scores, not probabilities"


def test_numbers_blanks_and_marks_may_have_other_forms() -> None:
    for number in ("-.25", "-25e-2", "-2.5E-1", "-0.2500000000000000000000", "-0.25e+0", "-00.25"):
        other = MODEL.replace(b"-0.25\t<s> a", number.encode() + b" \t <s>\ta  ")
        assert same(parsed(other), parsed(MODEL))
    other = b"# made by a program\n\n" + MODEL.replace(b"<unk>", b"<UNK>").replace(b"\n", b"\r\n")
    assert same(parsed(other), parsed(MODEL))


@given(st.floats(-300, 0, width=32), st.floats(-300, 300, width=32), st.sampled_from(["g", "e"]))
def test_numbers_are_the_nearest_of_32_bits(prob: float, backoff: float, form: str) -> None:
    text = MODEL.replace(b"2=2", b"2=2\nngram 3=0").replace(rb"\end", b"\\3-grams:\n\n\\end")
    line = f"{prob:.12{form}}\t<s> a\t{backoff:.12{form}}".encode()
    model = parsed(text.replace(b"-0.25\t<s> a", line))
    node = model.ngrams.nodes(np.array([[1, 3]], np.int32))[0]
    assert (model.log10_probs[node], model.log10_backoffs[node]) == (prob, backoff)


FAULTS: list[tuple[bytes, bytes, int, str]] = [  # what is replaced in MODEL, line, message
    (MODEL, b"hello\n", 1, r"expected \\data\\ in the first 1,000 lines, found none"),
    (b"ngram 2", b"ngram 3", 3, "the counts of the orders 1, 2, …"),
    (b"ngram", b"gram", 2, "expected lines ngram n=count, .* found 'gram 1=4'"),
    (b"ngram 1=4", b"ngram 1=9999999999", 10, "9,999,999,999 1-grams, .* found 4"),
    (b"ngram 2=2", b"ngram 2=1", 13, r"expected \\end\\ after 1 2-grams, .* '-0.125"),
    (b"\\end\\", b"\\end\\\nmore", 16, r"the end of the file after \\end\\, found 'more'"),
    (b"-0.25\t<s>", b"x\t<s>", 12, "logarithm from -300 to 0, found 'x'"),
    (b"-0.125\ta", b"-301\ta", 13, "logarithm from -300 to 0, found '-301'"),
    (b"-0.25\n\n", b"1e9\n\n", 9, "back-off .* from -300 to 300, found '1e9'"),
    (b"<s> a", b"<s> a a a", 12, "a logarithm and 2 words, found '-0.25"),
    (b"<s> a", b"<s> b", 12, "words that are 1-grams, found 'b'"),
    (b"<unk>", b"a", 9, "expected each word once, found 'a' again"),
    (b"a </s>", b"<s> a", 13, "expected each 2-gram once"),
    (b"-99\t<s>", b"-99\tb", 9, "expected <s> among the 1-grams, found none"),
    (b"\ta\t-0.25", b"", 9, "a logarithm, 1 word, perhaps a back-off, found '-0.5'"),
    (b"2=2", b"2=2" + b"".join(b"\nngram %d=1" % n for n in range(3, 8)), 8, "up to 6 at most"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), FAULTS, ids=[f[3][:30] for f in FAULTS])
def test_an_invalid_file_has_its_line(old: bytes, new: bytes, line: int, message: str) -> None:
    assert old in MODEL
    text: Sequence[bytes] = MODEL.replace(old, new, 1).split(b"\n")[:-1]
    with pytest.raises(ArpaError, match=message) as found:
        read_arpa(text)
    assert found.value.line == line
    assert "\n" not in str(found.value)


def test_a_prefix_that_is_missing_is_refused_with_the_line() -> None:
    text = MODEL.replace(b"2=2", b"2=2\nngram 3=1").replace(
        rb"\end", b"\\3-grams:\n-1\ta a </s>\n\n\\end"
    )
    with pytest.raises(ArpaError, match="the first 2 words of this 3-gram among the 2-gr") as found:
        parsed(text)
    assert found.value.line == 17
