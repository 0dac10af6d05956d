import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from support.metrics import bleu_statistics, corpora, statistics_of_lines

from rerank.errors import UsageError
from rerank.metrics import bleu

# Few words, so that n-grams repeat and match; white space of every kind, what 13a takes apart.
WORDS = st.sampled_from(["a", "b", "c", "a,b", "&amp;", "1.5", "(x)", "é", "中文", "\U0001f600"])
SPACES = st.sampled_from([" ", " ", " ", "  ", "\t", "\xa0", "\u3000", "\u2028", "\x85"])
SENTENCES = st.lists(st.tuples(WORDS, SPACES), max_size=9).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


@given(corpora(SENTENCES), st.sampled_from(["none", "13a", "char", "intl"]))
def test_corpus_score_equals_sacrebleu_to_the_last_bit(
    corpus: tuple[list[str], list[list[str]]], name: str
) -> None:
    summed = statistics_of_lines(bleu.Bleu(name), *corpus).sum(axis=0)
    assert bleu.corpus_bleu(summed) == BLEU(tokenize=name).corpus_score(*corpus).score


@given(corpora(SENTENCES))
def test_sentence_scores_equal_sacrebleu_to_the_last_bit(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    truth = BLEU(tokenize="none", effective_order=True)
    hypotheses, references = corpus
    scores = bleu.corpus_bleu(statistics_of_lines(bleu.Bleu(), *corpus), effective_order=True)
    assert scores.tolist() == [
        truth.sentence_score(hypothesis, lines).score
        for hypothesis, *lines in zip(hypotheses, *references, strict=True)
    ]


def test_every_statistic_equals_sacrebleus_on_long_sentences_of_many_words() -> None:
    rng = random.Random(1)
    words = [str(i) for i in range(2000)]
    texts = [[" ".join(rng.choices(words[:k], k=k)) for k in range(1, 600, 7)] for _ in range(4)]
    truth = BLEU(tokenize="none")._extract_corpus_statistics(texts[0], texts[1:])
    ours = statistics_of_lines(bleu.Bleu(), texts[0], texts[1:])
    assert ours.tolist() == [[*row[2:], row[1]] for row in truth]


@settings(max_examples=25)
@given(st.lists(SENTENCES, max_size=6), st.lists(SENTENCES, min_size=1, max_size=3))
def test_a_list_is_counted_as_its_hypotheses_one_by_one(
    hypotheses: list[str], references: list[str]
) -> None:
    rows = bleu_statistics(hypotheses, references)
    assert rows.shape == (len(hypotheses), bleu.WIDTH)
    assert rows.dtype == np.int64
    alone = [bleu_statistics([line], references)[0].tolist() for line in hypotheses]
    assert rows.tolist() == alone


def test_a_match_is_clipped_at_the_largest_count_in_one_reference() -> None:
    # By hand: "a" twice in the first reference, once in the second, never three times in one.
    row = bleu_statistics(["a a a"], ["a b a", "c a"])[0]
    assert row.tolist() == [2, 0, 0, 0, 3, 2, 1, 0, 3]


@pytest.mark.parametrize(
    ("lengths", "closest"),
    [
        pytest.param([5, 3], 3, id="shorter of two as close"),
        pytest.param([3, 5], 3, id="in any order"),
        pytest.param([9, 6], 6, id="nearest"),
        pytest.param([0], 0, id="empty reference"),
    ],
)
def test_reference_length_is_the_closest(lengths: list[int], closest: int) -> None:
    row = bleu_statistics(["a a a a"], ["b " * length for length in lengths])[0]
    assert row[8] == closest


def test_many_sums_score_as_each_alone() -> None:
    rng = np.random.default_rng(1)
    totals = rng.integers(5, 50, size=(3, 7, 4))
    summed = np.concatenate(
        [rng.integers(0, totals), totals, rng.integers(1, 60, size=(3, 7, 1))], axis=-1
    )
    summed.flags.writeable = False
    scores = bleu.corpus_bleu(summed)
    assert scores.shape == (3, 7)
    assert scores.tolist() == [[float(bleu.corpus_bleu(row)) for row in rows] for rows in summed]


def test_a_corpus_equal_to_its_reference_scores_100() -> None:
    summed = bleu_statistics(["one two three four five"], ["one two three four five"]).sum(axis=0)
    # exp(log 100) is not 100 to the last bit; sacrebleu prints the same 100.00000000000004
    assert bleu.corpus_bleu(summed) == pytest.approx(100, rel=1e-15)


def test_no_hypotheses_have_no_statistics_and_score_zero() -> None:
    rows = bleu.Bleu().statistics([], [])
    assert rows.shape == (0, bleu.WIDTH)
    assert bleu.corpus_bleu(rows.sum(axis=0)) == 0
    assert bleu.length_ratio(rows.sum(axis=0)) == 0


def test_statistics_of_hypotheses_and_references_must_be_of_the_same_sentences() -> None:
    with pytest.raises(ValueError, match="hypotheses of 1 sentences, references of 2"):
        bleu.Bleu().statistics([[b"a"]], [[b"a"], [b"b"]])
    with pytest.raises(ValueError, match="without a reference"):
        bleu.Bleu().statistics([[b"a"], [b"b"]], [[b"a"], []])


def test_fractional_statistics_are_refused() -> None:
    with pytest.raises(TypeError):
        bleu.corpus_bleu(np.full(9, 0.5))


@given(corpora(SENTENCES))
def test_length_ratio_equals_sacrebleus(corpus: tuple[list[str], list[list[str]]]) -> None:
    summed = statistics_of_lines(bleu.Bleu(), *corpus).sum(axis=0)
    assert bleu.length_ratio(summed) == BLEU(tokenize="none").corpus_score(*corpus).ratio


@pytest.mark.parametrize("name", ["none", "13a", "zh"])
def test_signature_is_sacrebleus(name: str) -> None:
    metric = BLEU(tokenize=name)
    metric.corpus_score(["a"], [["a"], ["b"]])
    assert bleu.Bleu(name).signature(2) == str(metric.get_signature())


def test_unknown_tokenizer_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no tokenizer '13b'; sacrebleu has none, zh, 13a"):
        bleu.Bleu("13b")


def test_a_tokenizer_is_never_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(UsageError, match="download it there from https://"):
        bleu.Bleu("flores200")


def test_a_tokenizer_whose_packages_are_absent_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(UsageError, match=r"'ja-mecab' cannot be loaded: .*sacrebleu\[ja\]"):
        bleu.Bleu("ja-mecab")
