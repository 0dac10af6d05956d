"""Pairwise utilities: sacrebleu's sentence scores of every pair, one after the other."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from support.lists import kbest

from rerank.metrics.pairwise import PairwiseBleu, PairwiseChrf, leave_one_out

SENTENCE_BLEU = BLEU(tokenize="none", effective_order=True)
WORDS = st.sampled_from(["a", "b", "ab", "ba", "é", "中文", "\U0001f600"])
LISTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=7)


def distribution(seed: int, k: int) -> np.ndarray:
    """Probabilities (k,), some of them 0."""
    rng = np.random.default_rng(seed)
    marginals = rng.dirichlet(np.ones(k)) * (rng.random(k) < 0.7)
    return np.asarray(marginals / (marginals.sum() or 1.0))


def check(texts: list[str], seed: int) -> None:
    """Both utilities equal Σ_l p_l · metric(k, l) of sacrebleu."""
    marginals = distribution(seed, len(texts))
    for utility, metric in ((PairwiseBleu, SENTENCE_BLEU), (PairwiseChrf, CHRF())):
        truth = [
            sum(
                p * metric.sentence_score(k, [r]).score
                for p, r in zip(marginals, texts, strict=True)
            )
            for k in texts
        ]
        found = utility(kbest([texts])).expected(0, marginals)
        assert found == pytest.approx(truth, rel=1e-11, abs=1e-11)


@settings(deadline=None, max_examples=60)
@given(LISTS, st.integers(0, 2**32 - 1))
def test_the_utility_is_the_expectation_of_sacrebleus_score_over_all_pairs(
    texts: list[str], seed: int
) -> None:
    check(texts, seed)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=2, max_size=7))
def test_left_out_of_its_own_expectation_each_system_has_its_mean_score_against_the_others(
    outputs: list[str],
) -> None:
    texts = list(dict.fromkeys(outputs))
    votes = np.array([float(outputs.count(text)) for text in texts])
    for utility, metric in ((PairwiseBleu, SENTENCE_BLEU), (PairwiseChrf, CHRF())):
        truth = []
        for text in texts:
            others = list(outputs)
            others.remove(text)
            scores = [metric.sentence_score(text, [other]).score for other in others]
            truth.append(sum(scores) / len(scores))
        found = leave_one_out(utility(kbest([texts])), 0, votes)
        assert found == pytest.approx(truth, rel=1e-11, abs=1e-10)


def test_a_single_output_has_no_others_to_agree_with() -> None:
    assert leave_one_out(PairwiseBleu(kbest([["a b"]])), 0, np.ones(1)).tolist() == [0.0]


def test_many_ngrams_fill_several_words_of_bits() -> None:
    """Variants of one long sentence with repeated words, as in a k-best list."""
    rng = random.Random(2)
    words = [str(rng.randrange(40)) for _ in range(150)]
    texts = []
    for _ in range(9):
        text = list(words)
        for _ in range(12):
            text[rng.randrange(len(text))] = str(rng.randrange(40))
        del text[: rng.randrange(4)]
        texts.append(" ".join(text))
    check(texts, 4)


def test_equal_candidates_share_their_probability() -> None:
    texts = ["a b c", "a b d", "a b c"]
    for utility in (PairwiseBleu, PairwiseChrf):
        apart = utility(kbest([texts])).expected(0, np.array([0.2, 0.5, 0.3]))
        merged = utility(kbest([texts[:2]])).expected(0, np.array([0.5, 0.5]))
        assert apart == pytest.approx([merged[0], merged[1], merged[0]])
