"""Expected utilities: plain Python over all candidates, and sacrebleu, are the truth."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from support.lists import kbest

from rerank.metrics.consensus import AggregateBleu, AggregateChrf, ExpectedUtility, LinearBleu
from rerank.registry import UTILITIES, attribute

# Few words, so that n-grams repeat and match; white space that is none to ASCII, long characters.
WORDS = st.sampled_from(["a", "b", "ab", "ba", "é", "中文", "\U0001f600", "\u3000", "x\xa0y"])
LISTS = st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=1, max_size=6)
SEEDS = st.integers(0, 2**32 - 1)


def distribution(seed: int, k: int) -> NDArray[np.float64]:
    """Probabilities (k,), some of them 0; not to be written to."""
    rng = np.random.default_rng(seed)
    marginals = rng.dirichlet(np.ones(k)) * (rng.random(k) < 0.7)
    marginals = marginals / (marginals.sum() or 1.0)
    marginals.flags.writeable = False
    return marginals


def utility(name: str, texts: list[str]) -> ExpectedUtility:
    """A utility of one list."""
    found: ExpectedUtility = attribute(UTILITIES[name])(kbest([texts]))
    return found


def ngrams(text: str) -> list[tuple[str, ...]]:
    """The word n-grams of orders 1 to 4 of a text."""
    words = text.split()
    return [tuple(words[i : i + n]) for n in range(1, 5) for i in range(len(words) - n + 1)]


def linear_bleu(text: str, right: str, p: float, r: float) -> float:
    """Tromble et al.'s gain of a text if another one is right, by its definition (T = 1)."""
    held = set(ngrams(right))
    gains = [1 / (4 * p * r ** (len(w) - 1)) for w in ngrams(text) if w in held]
    return sum(gains) - len(text.split())


@given(LISTS, SEEDS, st.floats(0.3, 1), st.floats(0.3, 1))
def test_expected_linear_bleu_is_the_sum_over_all_pairs(
    texts: list[str], seed: int, p: float, r: float
) -> None:
    marginals = distribution(seed, len(texts))
    found = LinearBleu(kbest([texts]), precision=p, decay=r).expected(0, marginals)
    truth = [
        sum(m * linear_bleu(text, right, p, r) for m, right in zip(marginals, texts, strict=True))
        - (1 - marginals.sum()) * len(text.split())
        for text in texts
    ]
    assert found == pytest.approx(truth, rel=1e-9, abs=1e-9)


def aggregate_bleu(text: str, texts: list[str], marginals: NDArray[np.float64]) -> float:
    """BLEU of a text against expected counts, by its formula (smoothed as sacrebleu's `exp`)."""
    right: Counter[tuple[str, ...]] = Counter()
    for m, other in zip(marginals.tolist(), texts, strict=True):
        for ngram, times in Counter(ngrams(other)).items():
            right[ngram] += m * times
    own = Counter(ngrams(text))
    correct = [sum(min(c, right[w]) for w, c in own.items() if len(w) == n) for n in range(1, 5)]
    total = [sum(c for w, c in own.items() if len(w) == n) for n in range(1, 5)]
    length = sum(m * len(t.split()) for m, t in zip(marginals.tolist(), texts, strict=True))
    if not any(correct):
        return 0.0
    precisions, misses = list[float](), 0
    for c, t in zip(correct, total, strict=True):
        if t:
            misses += c == 0
            precisions.append(c / t if c else 1 / (2**misses * t))
    brevity = min(1.0, math.exp(1 - length / total[0]))
    return 100 * brevity * math.prod(precisions) ** (1 / len(precisions))


@given(LISTS, SEEDS)
def test_aggregate_bleu_is_the_formula_of_bleu_on_expected_counts(
    texts: list[str], seed: int
) -> None:
    for marginals in (distribution(seed, len(texts)), np.full(len(texts), 1 / len(texts))):
        truth = [aggregate_bleu(text, texts, marginals) for text in texts]
        found = AggregateBleu(kbest([texts])).expected(0, marginals)
        assert found == pytest.approx(truth, rel=1e-9, abs=1e-9)


@given(LISTS)
def test_against_a_candidate_that_is_surely_right_the_utility_is_sacrebleus_chrf(
    texts: list[str],
) -> None:
    """To the last bit: the same operations run in the same order."""
    for name in ("chrf", "aggregate-chrf"):
        found = utility(name, texts).expected(0, np.eye(len(texts)))
        truth = [[CHRF().sentence_score(text, [right]).score for text in texts] for right in texts]
        assert found.tolist() == truth


@given(LISTS)
def test_against_a_candidate_that_is_surely_right_the_utility_is_sacrebleus_sentence_bleu(
    texts: list[str],
) -> None:
    metric = BLEU(tokenize="none", effective_order=True)
    for name in ("bleu", "aggregate-bleu"):
        found = utility(name, texts).expected(0, np.eye(len(texts)))
        truth = [[metric.sentence_score(text, [right]).score for text in texts] for right in texts]
        assert found == pytest.approx(np.array(truth), rel=1e-12)


@given(LISTS, SEEDS)
def test_chrf_is_that_of_sacrebleus_formula_on_expected_counts(texts: list[str], seed: int) -> None:
    marginals = distribution(seed, len(texts))
    counters = [
        [Counter(line[i : i + n] for i in range(len(line) - n + 1)) for n in range(1, 7)]
        for line in ("".join(text.split()) for text in texts)
    ]
    truth = []
    for counts in counters:
        statistics: list[float] = []
        for n in range(6):
            right: Counter[str] = Counter()
            for m, other in zip(marginals.tolist(), counters, strict=True):
                for ngram, times in other[n].items():
                    right[ngram] += m * times
            match = sum(min(times, right[ngram]) for ngram, times in counts[n].items())
            statistics += [sum(counts[n].values()), sum(right.values()), match]
        truth.append(CHRF()._compute_f_score(statistics))  # type: ignore[arg-type]
    found = AggregateChrf(kbest([texts])).expected(0, marginals)
    assert found == pytest.approx(truth, rel=1e-9, abs=1e-9)


def test_long_lists_of_many_ngrams_are_counted_right() -> None:
    """More n-grams than the hash table has room for at first."""
    rng = random.Random(1)
    words = [str(i) for i in range(500)]
    texts = [" ".join(rng.choices(words, k=k)) for k in range(1, 120, 3)]
    marginals = distribution(3, len(texts))
    truth = [
        sum(
            m * linear_bleu(text, right, 0.8, 0.6)
            for m, right in zip(marginals, texts, strict=True)
        )
        for text in texts
    ]
    found = LinearBleu(kbest([texts])).expected(0, marginals)
    assert found == pytest.approx(truth, rel=1e-9)
    scores = [CHRF().sentence_score(text, [texts[30]]).score for text in texts]
    surely = np.eye(len(texts))[30]
    assert AggregateChrf(kbest([texts])).expected(0, surely).tolist() == scores


@pytest.mark.parametrize("name", UTILITIES)
def test_sentences_without_candidates_are_not_counted(name: str) -> None:
    lists = [[], ["a b", "a c"], [], [], ["x y z", "x y", "q"]]
    whole: ExpectedUtility = attribute(UTILITIES[name])(kbest(lists))
    for t, texts in enumerate([lists[1], lists[4]]):
        marginals, alone = distribution(t, len(texts)), utility(name, texts)
        assert whole.expected(t, marginals).tolist() == alone.expected(0, marginals).tolist()
        assert whole.words(t).tolist() == [len(text.split()) for text in texts]


@pytest.mark.parametrize("name", UTILITIES)
def test_several_distributions_at_once_give_what_each_gives(name: str) -> None:
    texts = ["a b a b c", "b a b", "", "c c c c", "a b a b c"]
    each = np.array([distribution(seed, len(texts)) for seed in range(4)])
    found = utility(name, texts)
    assert found.expected(0, each).tolist() == [found.expected(0, p).tolist() for p in each]


@pytest.mark.parametrize("name", UTILITIES)
def test_the_candidate_that_is_most_like_the_others_is_worth_most(name: str) -> None:
    texts = ["the lamp is out", "the lamp is lit", "a lamp is lit", "no lamps"]
    found = utility(name, texts).expected(0, np.array([0.3, 0.25, 0.25, 0.2]))
    assert int(found.argmax()) == 1


@pytest.mark.parametrize("name", UTILITIES)
def test_the_only_candidate_is_as_good_as_itself(name: str) -> None:
    """Closed form: 100, or Σ θ_n (L − n + 1) − L; of an empty text 0."""
    best = 7 * 1 / 3.2 + 6 / 1.92 + 5 / 1.152 + 4 / 0.6912 - 7 if name == "linear-bleu" else 100.0
    assert utility(name, ["a a b a a b c"]).expected(0, np.ones(1)) == pytest.approx(best)
    assert utility(name, [""]).expected(0, np.ones(1)).tolist() == [0.0]


@pytest.mark.parametrize("name", UTILITIES)
def test_marginals_of_another_list_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"marginals \(3,\) of 2 candidates"):
        utility(name, ["a", "b"]).expected(0, np.full(3, 1 / 3))
