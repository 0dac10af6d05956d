"""Consensus by document BLEU: against sacrebleu's counts and all swaps of one sentence."""

import math
import statistics
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from rerank.metrics import bleu
from rerank.metrics.document_consensus import EPSILON, OUTLIER, document_consensus
from rerank.pipeline.systems import kbest_of

COUNTS = BLEU(tokenize="none", force=True)
Texts = Sequence[Sequence[str | None]]
words = st.lists(st.sampled_from("abc"), max_size=6).map(" ".join)


@st.composite
def outputs(draw: st.DrawFn) -> list[list[str | None]]:
    """Outputs [t][m] of two to four systems; some, but not all, are missing."""
    m, t = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    line = st.lists(st.one_of(words, words, st.none()), min_size=m, max_size=m)
    lines = st.lists(line, min_size=t, max_size=t)
    return draw(lines.filter(lambda found: any(set(one) != {None} for one in found)))


def values_of(texts: Texts, start: NDArray[np.float64] | None = None) -> list[dict[str, float]]:
    """The value of each different text, of each sentence."""
    lines = [[None if one is None else one.encode() for one in line] for line in texts]
    labels = [f"sys{m}" for m in range(len(texts[0]))]
    kbest = kbest_of(lines, labels)
    indicators, utility = kbest.dense[:, : len(labels)], kbest.dense[:, -3]
    values = document_consensus(kbest, indicators, utility if start is None else start[: kbest.n])
    return [
        {kbest.text(row).decode(): float(values[row]) for row in kbest.rows(t)}
        for t in range(len(texts))
    ]


def log_bleu(outputs: Sequence[str | None], references: Sequence[str | None]) -> float:
    """Smoothed ln BLEU from sacrebleu's counts, of sentences that both have."""
    pairs = [(x, y) for x, y in zip(outputs, references, strict=True) if None not in (x, y)]
    if not pairs:
        return 0.0
    hypotheses, expected = map(list, zip(*pairs, strict=True))
    found = COUNTS.corpus_score(hypotheses, [expected])
    precisions = [
        math.log((matches + EPSILON) / (ngrams + EPSILON))
        for matches, ngrams in zip(found.counts, found.totals, strict=True)
    ]
    return sum(precisions) / 4 + min(
        0.0, 1.0 - int(found.ref_len) / max(int(found.sys_len), EPSILON)
    )


def kept_systems(texts: Texts) -> list[Sequence[str | None]]:
    """Outputs of the systems that have any and are no outliers."""
    systems = [one for one in zip(*texts, strict=True) if set(one) != {None}]
    means = [
        sum(
            math.exp(log_bleu(x, y)) + math.exp(log_bleu(y, x))
            for i, x in enumerate(systems)
            if i != j
        )
        for j, y in enumerate(systems)
    ]
    least = OUTLIER * statistics.median(means)
    return [one for one, mean in zip(systems, means, strict=True) if mean >= least - 1e-12]


def utility_of(choices: Sequence[str | None], texts: Texts) -> float:
    """Mean ln BLEU of choices."""
    return statistics.mean(log_bleu(choices, outputs) for outputs in kept_systems(texts))


def mean_words(texts: Texts) -> float:
    """Mean number of words of a document."""
    return statistics.mean(
        sum(len((one or "").split()) for one in outputs) for outputs in kept_systems(texts)
    )


@given(outputs(), st.integers(0, 2**32 - 1))
def test_values_are_gains_over_choices_that_no_change_of_one_sentence_betters(
    texts: list[list[str | None]], seed: int
) -> None:
    """From any first choices; utilities are those of sacrebleu's counts."""
    values = values_of(texts, np.random.default_rng(seed).random(16))
    chosen = [max(one, key=lambda text: one[text]) if one else None for one in values]
    base, size = utility_of(chosen, texts), mean_words(texts)
    for t, one in enumerate(values):
        assert max(one.values(), default=0.0) <= 1e-9
        for text, value in one.items():
            other = [*chosen[:t], text, *chosen[t + 1 :]]
            assert value == pytest.approx(size * (utility_of(other, texts) - base), abs=1e-8)


def test_lengths_are_balanced_over_the_document() -> None:
    """Of two sentences, each system has one long output: so have the choices."""
    long, short = "a b c d e f g h", "a b c d e f"
    alone = values_of([[long, short]])[0]
    assert alone[short] > alone[long]
    values = values_of([[long, short], [short, long]])
    assert sorted(max(one, key=lambda text: one[text]) for one in values) == [short, long]


@pytest.mark.parametrize("size", [1, 2, 20])
def test_a_system_that_translates_unlike_all_others_is_never_chosen(size: int) -> None:
    texts = [[f"{n} b c d e", f"{n} b c d x", "y z y z y"] for n in range(size)]
    assert all(one["y z y z y"] < -0.1 for one in values_of(texts))


@pytest.mark.parametrize(
    "outputs",
    [("Yes", "Yes", ""), ("Yes", "Yes .", ""), ("Thank you", "Many thanks", "")],
    ids=["one word", "two lengths", "two words"],
)
def test_an_empty_output_is_no_translation_of_a_short_document(outputs: tuple[str, ...]) -> None:
    values = values_of([outputs])[0]
    assert values.pop("") < -1.0
    assert max(values.values()) == 0.0


def test_of_two_systems_the_longer_is_no_outlier() -> None:
    lines = ["the cat sat on the mat today", "it was a good day for it"]
    assert all(one[""] < -1.0 for one in values_of([[line, ""] for line in lines]))


def test_a_system_without_outputs_of_a_document_changes_nothing_there() -> None:
    texts: list[list[str | None]] = [["a b c d", "a b c e", "a b d", "y z"], ["a", "b", "a b", "z"]]
    assert values_of([[*line, None, None] for line in texts]) == values_of(texts)


def test_memory_is_that_of_the_statistics_of_each_candidate_and_system() -> None:
    size, n_systems = 300, 12
    lines = [[b"a b %d %d" % (t, m) for m in range(n_systems)] for t in range(size)]
    kbest = kbest_of(lines, [f"sys{m}" for m in range(n_systems)])
    indicators, utility = kbest.dense[:, :n_systems], kbest.dense[:, -3]
    tracemalloc.start()
    document_consensus(kbest, indicators, utility)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 4 * bleu.WIDTH * kbest.n * n_systems  # integers of four bytes


def test_documents_of_equal_outputs_or_none_have_zeros() -> None:
    assert values_of([["a b", "a b"], ["", ""]]) == [{"a b": 0.0}, {"": 0.0}]
    assert values_of([[None, None]]) == [{}]
