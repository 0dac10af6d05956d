"""Start weights of a tuning on several systems: the rule by its words, on means of made-up values.

Each document is a sentence with a candidate of each system, and one on which they agree.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.objectives import Mean
from support.tasks import viterbi

from rerank.corpus.labels import Label
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.plan import Plan
from rerank.tuning.pools.tuning_set import TuningSet
from rerank.tuning.system_start import Alternatives, start_of_systems, values_of_systems
from rerank.tuning.task import Task

LABELS = ("sysA", "sysB", "agreement")
SPACE = FeatureSpace(tuple(Label(name, 1) for name in LABELS), (), 3, False)


def task(values: list[list[float]], agreement: float = 1.0) -> Task:
    """A task on documents of these values: of A, of B, and of the consensus, by its feature."""
    documents, statistics = [], []
    for d, own in enumerate(values):
        present = np.zeros(1, np.int64)
        document = DocumentFeatures(
            f"d{d}",
            SPACE,
            np.diag([1.0, 1.0, agreement]),
            np.zeros(3),
            (),
            np.array([0, 3]),
            present,
        )
        documents.append(document)
        statistics.append(np.column_stack([own, np.ones((3, 8))]))
    corpus = TuningSet((tuple(documents),), tuple(statistics), np.zeros((len(values), 9)))
    alternatives = Alternatives({"sysA": "A", "sysB": "B"}, "agreement")
    features = TunedFeatures(alternatives=alternatives)
    return Task(corpus, features, Mean(), Plan(), viterbi, Notices())


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        ([[1, 2, 0], [1, 2, 0]], {"sysB": 1}),
        ([[3, 2, 0], [3, 2, 0]], {"sysA": 1}),
        ([[1, 1, 1], [1, 1, 1]], {"agreement": 1, "sysA": 1}),
        ([[1, 2, 3], [1, 2, 3]], {"agreement": 1, "sysB": 1}),
        # B has the best mean, but of the first document alone; elsewhere A, with 1, is chosen
        ([[0, 9, 1], [1, 0, 1], [1, 0, 1]], {"agreement": 1, "sysB": 1}),
        ([[0, 9, 8.9]], {"sysB": 1}),
        ([[0, 9, 9]], {"agreement": 1, "sysB": 1}),
    ],
    ids=["better", "first", "equal", "agreed", "luck", "one", "one-agreed"],
)
def test_the_start_is_the_best_system_unless_the_consensus_is_as_good_on_held_out_documents(
    values: list[list[float]], weights: dict[str, float]
) -> None:
    """Systems are far from the consensus: their weight beside it changes nothing."""
    found = start_of_systems(task(values, agreement=9.0))
    assert found.given is not None
    assert found.given.dense == {name: (weight,) for name, weight in weights.items()}
    assert found.start(SPACE).tolist() == [weights.get(name, 0) for name in LABELS]


def test_the_best_system_counts_beside_the_consensus() -> None:
    """Where its candidate is less than a word from it, and held-out values are judged with it."""
    said: list[str] = []
    for agreement, value in ((0.9, 5.0), (1.1, 4.0)):
        start_of_systems(task([[1.0, 5.0, 4.0]] * 2, agreement=agreement), said.append)
        assert said[-1].endswith(f"5.00, together with the consensus {value:.2f}")


def test_the_values_of_all_systems_are_said_best_first() -> None:
    said: list[str] = []
    found = start_of_systems(task([[1, 3, 0], [2, 3, 1]], agreement=9.0), said.append)
    assert said == [
        "mean of each system on these documents: B 3.00, A 1.50",
        "start: the system B; held-out mean of the system that is best on other documents 3.00, "
        "together with the consensus 0.50",
    ]
    assert found.source == "the system B"
    assert values_of_systems(task([[1, 3, 0], [2, 3, 1]])) == {"A": 1.5, "B": 3.0}


def test_a_system_is_judged_on_documents_that_it_was_not_chosen_on() -> None:
    """Of eleven documents in ten folds, the first and the last are held out together."""
    values = [[0.0, 2.0, 0.0], *[[1.0, 0.9, 0.0]] * 9, [0.0, 2.0, 0.0]]
    said: list[str] = []
    start_of_systems(task(values, agreement=9.0), said.append)
    # B is best on all, and without any single of the nine; without the two others A is
    expected = (0.0 + 0.0 + 9 * 0.9) / 11
    assert f"best on other documents {expected:.2f}, together" in said[-1]
