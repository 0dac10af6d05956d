"""Statistics and scores of chrF: sacrebleu's are the truth, to the last bit."""

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF
from support.metrics import corpora, statistics_of_lines

from rerank.metrics.chrf import WIDTH, Chrf

# Few letters, so that n-grams repeat and match; characters of 1 to 4 bytes, white space of all
# kinds, and what is almost white space; then text of any kind.
LETTERS = st.sampled_from([*"aaabbc", "é", "\x80", "\u200b", "中", "文", "\U0001f600", "\0"])
SPACES = st.sampled_from([" ", " ", "\t", "\x1c", "\x85", "\xa0", "\u2003", "\u2028", "\u3000"])
LINES = st.one_of(
    st.text(st.one_of(LETTERS, LETTERS, LETTERS, SPACES), max_size=16),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)


@given(corpora(LINES))
def test_statistics_and_corpus_score_equal_sacrebleus(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    rows = statistics_of_lines(Chrf(), *corpus)
    assert rows.dtype == np.int64
    assert rows.tolist() == CHRF()._extract_corpus_statistics(*corpus)
    assert Chrf().scores(rows.sum(axis=0)) == CHRF().corpus_score(*corpus).score


@given(corpora(LINES))
def test_scores_of_single_rows_equal_sacrebleus_sentence_scores(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    scores = Chrf().scores(statistics_of_lines(Chrf(), *corpus))
    assert scores.tolist() == [
        CHRF().sentence_score(hypothesis, lines).score
        for hypothesis, *lines in zip(corpus[0], *corpus[1], strict=True)
    ]


@settings(max_examples=25)
@given(st.lists(LINES, max_size=6), st.lists(LINES, min_size=1, max_size=3))
def test_a_list_is_counted_as_its_hypotheses_one_by_one(
    hypotheses: list[str], references: list[str]
) -> None:
    lines = [line.encode() for line in hypotheses]
    sources = [line.encode() for line in references]
    rows = Chrf().statistics([lines, [], lines], [sources, sources, sources])
    assert rows.shape == (2 * len(lines), WIDTH)
    alone = [Chrf().statistics([[line]], [sources])[0].tolist() for line in lines]
    assert rows.tolist() == alone * 2


def test_long_sentences_of_many_characters_are_counted_right() -> None:
    rng = random.Random(1)
    letters = [chr(c) for c in [*range(97, 123), *range(0x4E00, 0x4F00), 32]]
    texts = [["".join(rng.choices(letters, k=k)) for k in range(1, 900, 60)] for _ in range(3)]
    truth = CHRF()._extract_corpus_statistics(texts[0], texts[1:])
    assert statistics_of_lines(Chrf(), texts[0], texts[1:]).tolist() == truth


def test_of_references_equally_good_the_first_counts() -> None:
    # By hand: no n-gram matches, so that both score 0; the first has two characters.
    rows = statistics_of_lines(Chrf(), ["a"], [["bb"], ["ccc"]])
    assert rows[0, :6].tolist() == [1, 2, 0, 0, 1, 0]


def test_many_sums_score_as_each_alone_and_nothing_scores_zero() -> None:
    rows = statistics_of_lines(Chrf(), ["ab cd", "x", ""], [["ab ce", "y", "z"]])
    sums = np.stack([rows, rows[::-1]])
    sums.flags.writeable = False
    assert Chrf().scores(sums).shape == (2, 3)
    assert Chrf().scores(sums)[1].tolist() == Chrf().scores(rows).tolist()[::-1]
    assert Chrf().scores(np.zeros(WIDTH, np.int64)) == 0


def test_a_corpus_equal_to_its_reference_scores_100() -> None:
    rows = statistics_of_lines(Chrf(), ["one two", "three"], [["one two", "three"]])
    assert Chrf().scores(rows.sum(axis=0)) == pytest.approx(100, rel=1e-15)


def test_a_line_of_200_000_characters_takes_linear_time() -> None:
    line = b"ab " * 100_000
    started = time.perf_counter()
    row = Chrf().statistics([[line]], [[line]])[0]
    assert row[:4].tolist() == [200_000, 200_000, 200_000, 199_999]
    assert time.perf_counter() - started < 5  # a quadratic count would take minutes


def test_fractional_statistics_and_other_sentences_are_refused() -> None:
    with pytest.raises(TypeError):
        Chrf().scores(np.full(WIDTH, 0.5))
    with pytest.raises(ValueError, match="hypotheses of 1 sentences, references of 0"):
        Chrf().statistics([[b"a"]], [])


@pytest.mark.parametrize("n", [1, 2])
def test_signature_is_sacrebleus(n: int) -> None:
    truth = CHRF()
    truth.corpus_score(["a"], [["a"]] * n)
    assert Chrf().signature(n) == str(truth.get_signature())
    assert Chrf().name == truth.corpus_score(["a"], [["a"]]).name
