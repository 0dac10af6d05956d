"""The search of one document, and what is said of it."""

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from decoders.problem import DocumentProblem, Pairwise, Unary
from rerank.errors import RerankError, UsageError
from rerank.features import Document, Space
from rerank.formats.moses import Label
from rerank.pipeline.searching import Search, say_search, searched


def document(problem: DocumentProblem) -> Document:
    """Two sentences of two candidates each: one feature of the list, one of a scorer."""
    space = Space((Label("LM0", 1), Label("x", 1)), (1,), 1, False)
    static = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    return Document(
        "talk-1", space, static, np.zeros(4), (problem,), np.array([0, 2, 4]), np.arange(2)
    )


def test_the_path_found_is_the_best_and_is_compared_with_that_of_first_candidates() -> None:
    pairs = Pairwise([np.array([[0.0, -1.0]]), np.array([[-9.0, -1.0], [0.0, -9.0]])])
    (found,) = searched([document(pairs)], np.array([0.5, 1.0]), Search())
    assert found.choices == (1, 0)
    assert found.score == -1.0 + 0.0 + 0.5
    assert found.baseline_score == 0.5 - 9.0 + 0.5
    assert (found.exact, found.decoder) == (True, "viterbi")


def test_scores_that_are_none_are_told_with_the_document() -> None:
    poisoned = Unary([np.array([0.0, np.nan]), np.zeros(2)])
    with pytest.raises(RerankError, match=r"document .talk-1.: .*NaN"):
        searched([document(poisoned)], np.ones(2), Search())


def test_a_decoder_that_cannot_serve_is_refused_with_those_that_can() -> None:
    pairs = Pairwise([np.zeros((1, 2)), np.zeros((2, 2))])
    with pytest.raises(UsageError, match=re.escape("--search nothing: ")):
        searched([document(pairs)], np.ones(2), Search("nothing"))


@dataclass
class Priced:
    """A scorer of order 1 whose exact search takes so many passes over lists of k candidates."""

    exponent: int
    order: int = 1

    def passes(self, k: float) -> float:
        return k**self.exponent


@pytest.mark.parametrize(
    ("exponent", "k", "method", "chosen"),
    [
        (0, 100, "auto", "viterbi"),
        (1, 32, "auto", "viterbi"),
        (1, 33, "auto", "beam"),
        (1, 100, "viterbi", "viterbi"),
    ],
)
def test_auto_is_exact_unless_that_takes_four_times_the_passes_of_a_beam_of_eight(
    exponent: int, k: int, method: str, chosen: str
) -> None:
    opened: Any = SimpleNamespace(
        scorers=[Priced(exponent)],
        survey=SimpleNamespace(lines=10 * k),
        documents=SimpleNamespace(n_lines=10),
    )
    said: list[str] = []
    how = say_search(opened, Search(method), said.append)
    assert said[0].startswith(f"search: {chosen}")
    assert ("is exact, in 33 passes over the lists" in said[0]) == (chosen == "beam")
    assert how.method == ("beam" if chosen == "beam" else method)


def test_a_beam_without_width_is_refused() -> None:
    with pytest.raises(UsageError, match="--beam 0"):
        Search("beam", 0)
