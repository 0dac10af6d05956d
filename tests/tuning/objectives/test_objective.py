"""Objectives along a line, against summing the statistics of all documents anew at every break."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from support.metrics import random_statistics, statistics_of_lines

from rerank.metrics.bleu import WIDTH, Bleu, corpus_bleu
from rerank.tuning.objectives.objective import (
    BLEU,
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    MetricColumns,
    Objective,
    ObjectiveSum,
    Sums,
    WorstDocuments,
)

ACCURACY = 1e-9  # sums of at most a hundred differences of numbers up to 100


def yield_of(sums: Sums) -> NDArray[np.float64]:
    """A made-up metric of two columns that are no counts: gain for each unit of cost."""
    return np.asarray(sums[..., 0] / (1.0 + sums[..., 1]), dtype=np.float64)


YIELD = MetricColumns("yield", WIDTH, WIDTH + 2, yield_of)
OBJECTIVES: list[Objective] = [
    CorpusMetric(),
    CorpusMetric(YIELD),
    DocumentMean(),
    DocumentMean(YIELD),
    WorstDocuments(0.01),
    WorstDocuments(0.4),
    WorstDocuments(1.0, YIELD),
    ObjectiveSum(((0.25, CorpusMetric()), (-2.0, DocumentMean(YIELD)), (1.0, WorstDocuments(0.5)))),
    LengthPenalty(CorpusMetric(), 0.9, 30.0),
    LengthPenalty(WorstDocuments(0.5), 1.1, 30.0),
]


@dataclass(frozen=True)
class Events:
    """Lists that change the candidate chosen one after another, at first all from none at all."""

    rows: Sums
    lists: list[int]
    of_list: list[int]

    @property
    def n_lists(self) -> int:
        return len(self.of_list)

    @property
    def documents(self) -> NDArray[np.int64]:
        return np.array([self.of_list[s] for s in self.lists], dtype=np.int64)

    def changes(self) -> Sums:
        """What each event adds to the sums."""
        chosen: dict[int, int] = {}
        changes = self.rows.copy()
        for i, s in enumerate(self.lists):
            if s in chosen:
                changes[i] = self.rows[i] - self.rows[chosen[s]]
            chosen[s] = i
        return changes

    def sums_after(self, event: int) -> Sums:
        """Sums of each document (D, W), of the candidate chosen last of each list."""
        chosen = {s: i for i, s in enumerate(self.lists[: event + 1])}
        sums = np.zeros((max(self.of_list) + 1, self.rows.shape[1]), dtype=self.rows.dtype)
        for s, i in chosen.items():
            sums[self.of_list[s]] += self.rows[i]
        return sums


@st.composite
def events(draw: st.DrawFn) -> Events:
    """One to five documents of one to three lists, out of order, of which some change."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_documents = draw(st.integers(1, 5))
    of_list = [*range(n_documents), *rng.integers(0, n_documents, size=rng.integers(0, 6))]
    rng.shuffle(of_list)
    of_list = [int(d) for d in of_list]
    first = rng.permutation(len(of_list))
    later = rng.integers(0, len(of_list), size=draw(st.integers(0, 20)))
    lists = [int(s) for s in (*first, *later)]
    counts = random_statistics(rng, len(lists))
    others = rng.uniform(0, 9, size=(len(lists), 2))
    return Events(np.hstack([counts, others]), lists, of_list)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
@given(events())
def test_every_interval_of_a_line_is_worth_what_its_sums_are(
    objective: Objective, line: Events
) -> None:
    changes, documents = line.changes(), line.documents
    changes.flags.writeable = documents.flags.writeable = False
    values = objective.along(changes, documents)
    assert values.shape == (len(changes),)
    for i in range(line.n_lists - 1, len(changes)):  # before that some list has no candidate yet
        assert values[i] == pytest.approx(objective.value(line.sums_after(i)), abs=ACCURACY)


@given(events(), st.sampled_from([np.int16, np.int32, np.int64]))
def test_whole_statistics_of_any_type_give_corpus_bleu_to_the_bit(
    line: Events, kind: type[np.integer]
) -> None:
    whole = Events(line.rows[:, :WIDTH].astype(kind), line.lists, line.of_list)
    values = CorpusMetric().along(whole.changes(), whole.documents)
    for i in range(len(values)):
        total = whole.sums_after(i).sum(axis=0).astype(np.int64)
        assert values[i] == CorpusMetric().value(total[None]) == float(corpus_bleu(total))


def test_statistics_of_sixteen_bits_do_not_overflow_along_a_line() -> None:
    changes = np.full((4, WIDTH), 30_000, dtype=np.int16)
    values = DocumentMean().along(changes, np.array([0, 1, 0, 1]))
    assert values[-1] == pytest.approx(100)


def test_documents_are_worth_what_sacrebleu_says_of_each() -> None:
    texts = [
        ["the lamp is lit", "it gives no light at all now"],
        ["she burns the lamp in the evening", "a light"],
        ["no one is there to see the lamp"],
    ]
    truth = [
        ["the lamp is lit now", "it gives no light at all"],
        ["she lit the lamp in the evening", "one light"],
        ["no one was there to see the lamp"],
    ]
    tool = SacreBLEU(tokenize="none")
    scores = [
        tool.corpus_score(text, [reference]).score
        for text, reference in zip(texts, truth, strict=True)
    ]
    sums = np.stack(
        [
            statistics_of_lines(Bleu(), text, [reference]).sum(axis=0)
            for text, reference in zip(texts, truth, strict=True)
        ]
    )
    assert DocumentMean().value(sums) == pytest.approx(np.mean(scores), abs=1e-12)
    assert WorstDocuments(0.34).value(sums) == pytest.approx(np.mean(sorted(scores)[:2]), abs=1e-12)
    assert WorstDocuments(0.33).value(sums) == pytest.approx(min(scores), abs=1e-12)
    whole = tool.corpus_score([*chain(*texts)], [[*chain(*truth)]]).score
    assert CorpusMetric().value(sums) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize(
    ("share", "n_documents", "number"),
    [(0.25, 4, 1), (0.25, 5, 2), (0.1, 30, 3), (0.3, 10, 3), (1.0, 7, 7), (1e-9, 7, 1)],
)
def test_the_worst_share_is_rounded_up_to_whole_documents(
    share: float, n_documents: int, number: int
) -> None:
    rng = np.random.default_rng(1)
    scores = rng.permutation(np.arange(1.0, n_documents + 1))
    sums = np.zeros((n_documents, WIDTH + 2))
    sums[:, WIDTH] = scores
    expected = np.mean(np.arange(1, number + 1))
    assert WorstDocuments(share, YIELD).value(sums) == pytest.approx(expected)
    assert WorstDocuments(share, YIELD).along(sums, np.arange(n_documents))[-1] == pytest.approx(
        expected
    )


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="expected more than 0, at most 1"):
        WorstDocuments(share)


def test_all_documents_being_the_worst_is_their_mean() -> None:
    sums = random_statistics(np.random.default_rng(2), 9)
    assert WorstDocuments(1.0).value(sums) == pytest.approx(DocumentMean().value(sums))


def test_the_price_of_length_is_that_of_the_whole_corpus() -> None:
    sums = np.array([[9, 8, 7, 6, 10, 9, 8, 7, 8], [9, 8, 7, 6, 10, 9, 8, 7, 12]])
    plain = DocumentMean().value(sums)
    assert LengthPenalty(DocumentMean(), 1.0, 7.0).value(sums) == pytest.approx(plain)
    assert LengthPenalty(DocumentMean(), 0.9, 7.0).value(sums) == pytest.approx(plain - 0.7)
    assert LengthPenalty(DocumentMean(), 1.2, 7.0).value(sums) == pytest.approx(plain - 1.4)


def test_names_say_what_is_maximised() -> None:
    assert CorpusMetric().name == "corpus BLEU"
    assert DocumentMean(YIELD).name == "mean document yield"
    assert WorstDocuments(0.25).name == "worst 25 % of documents, BLEU"
    mixed = ObjectiveSum(((0.5, CorpusMetric()), (0.5, CorpusMetric(YIELD))))
    assert mixed.name == "0.5 corpus BLEU + 0.5 corpus yield"
    assert LengthPenalty(mixed, 1.0, 5.0).name.endswith("− 5 |length ratio − 1.000|")


def test_a_metric_scores_its_columns_for_any_leading_shape() -> None:
    rows = np.hstack([random_statistics(np.random.default_rng(3), 6), np.ones((6, 2))])
    scores = BLEU.of(rows.reshape(2, 3, -1))
    np.testing.assert_array_equal(scores.ravel(), corpus_bleu(rows[:, :WIDTH].astype(np.int64)))
    np.testing.assert_array_equal(YIELD.of(rows), np.full(6, 0.5))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_a_line_without_breaks_has_no_values(objective: Objective) -> None:
    values = objective.along(np.zeros((0, WIDTH + 2)), np.zeros(0, dtype=np.int64))
    assert values.shape == (0,)
