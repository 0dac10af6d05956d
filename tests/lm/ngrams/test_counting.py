"""Counts of n-grams against dictionaries of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.ngrams import counts_of
from support.scalar.ngrams import adjusted, counted

from lm.ngrams.counting import NGramCounts
from lm.vocabulary import Vocabulary

sentences = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=6
)


def by_words(
    counts: NGramCounts, vocabulary: Vocabulary, n: int, *, of_contexts: bool
) -> Counter[tuple[str, ...]]:
    """The counts of order n that are not 0; those that smoothing is estimated from, or all."""
    ngrams, parents = counts.ngrams, counts.ngrams.parents()
    found = (counts.continuations() if of_contexts else counts.counts)[n - 1]
    table = Counter[tuple[str, ...]]()
    for node, count in enumerate(found.tolist(), ngrams.levels[n]):
        words = list[int]()
        while node:
            words.append(int(ngrams.words[node]))
            node = int(parents[node])
        table[tuple(w.decode() for w in vocabulary.decode(reversed(words)))] = count
    return +table


@given(sentences, st.integers(1, 5))
def test_every_ngram_is_counted_as_often_as_it_occurs(text: list[str], order: int) -> None:
    counts, vocabulary = counts_of(text, order)
    assert counts.ngrams.order == order
    for n in range(1, order + 1):
        assert by_words(counts, vocabulary, n, of_contexts=False) == counted(text, n)


@given(sentences, st.integers(1, 4))
def test_adjusted_counts_are_numbers_of_words_before(text: list[str], order: int) -> None:
    counts, vocabulary = counts_of(text, order)
    for n in range(1, order + 1):
        assert by_words(counts, vocabulary, n, of_contexts=True) == adjusted(text, n, order)


@given(sentences, st.integers(2, 5))
def test_suffixes_are_the_ngrams_without_their_first_word(text: list[str], order: int) -> None:
    ngrams = counts_of(text, order)[0].ngrams
    parents = ngrams.parents()
    for node in range(ngrams.levels[2], len(ngrams)):
        suffix = ngrams.suffixes[node]
        assert ngrams.words[suffix] == ngrams.words[node]
        assert parents[suffix] == ngrams.suffixes[parents[node]]


def test_words_outside_the_vocabulary_are_one_class() -> None:
    counts, vocabulary = counts_of(["a b a", "a c <unk>"], 2, size=1)
    assert vocabulary.words == (b"a",)
    found = by_words(counts, vocabulary, 2, of_contexts=False)
    assert found[("a", "<unk>")] == 2
    assert found[("<unk>", "<unk>")] == 1
    assert counts.counts[0].tolist() == [3, 2, 2, 3]
