"""The laws hold for scorers that keep them, and each of them is broken by one that does not."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from decoders.arrays import Pairwise
from rerank.corpus.document import Document
from rerank.scorers.laws import LawError, check_scorer


def document(name: str, *sentences: list[str]) -> Document:
    return Document(name, [[(text, {}) for text in candidates] for candidates in sentences])


DOCUMENTS = [
    document("talk", ["a b", "a", "c d e"], [], ["b", "b c", "d"], ["a b c", "e"]),
    document("news", ["e", "b a"], ["c", "a b c d"], ["d d", "a"]),
    document("one", ["a", "b b"]),
]


class Custom:
    def __init__(self, order: int | None, score: Callable[[Document], Any]) -> None:
        self.order, self.score = order, score


def lengths(document: Document) -> list[list[int]]:
    return [[-len(text.split()) for text in sentence] for sentence in document.texts]


def repeats(document: Document) -> Pairwise:
    lists = [[""], *filter(None, document.texts)]
    return Pairwise(
        [
            np.array([[float(len({*a.split()} & {*b.split()})) for b in own] for a in before])
            for before, own in pairwise(lists)
        ]
    )


@pytest.mark.parametrize(
    "scorer", [lengths, Custom(1, repeats), Custom(2, repeats), Custom(None, repeats)]
)
def test_honest_scorers_keep_the_laws(scorer: Any) -> None:
    check_scorer(scorer, DOCUMENTS)


def counting() -> Callable[[Document], list[list[float]]]:
    """Scores that grow from call to call."""
    calls: list[str] = []

    def score(document: Document) -> list[list[float]]:
        calls.append(document.id)
        return [[float(len(calls))] * len(texts) for texts in document.texts]

    return score


def looking_back(document: Document) -> list[list[float]]:
    firsts = [texts[0] if texts else "" for texts in document.texts]
    total = [len(" ".join(firsts[:t])) for t in range(len(firsts))]
    lasts = [len(texts[-1]) if texts else 0 for texts in document.texts]
    return [[float(total[t] + sum(lasts[:t]))] * len(own) for t, own in enumerate(document.texts)]


def looking_ahead(document: Document) -> Pairwise:
    words = sum(len(texts) for texts in document.texts)
    problem = repeats(document)
    return Pairwise([matrix + words for matrix in problem.matrices])


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (counting(), "do not depend on other documents"),
        (looking_back, "sentence 1 .* do not depend on sentences other than 1"),
        (Custom(0, repeats), "expected a problem of order 0"),
        (Custom(None, looking_ahead), "sentence 0 .* do not depend on sentences other than 0"),
        (lambda document: [[0.0]], "expected scores of "),
    ],
    ids=["state", "past", "order", "future", "shape"],
)
def test_every_law_is_checked(scorer: Any, message: str) -> None:
    with pytest.raises(LawError, match=message):
        check_scorer(scorer, DOCUMENTS)


def test_rounding_is_tolerated_if_allowed() -> None:
    rng = np.random.default_rng(1)

    def rounded(document: Document) -> list[Any]:
        return [rng.uniform(-1e-7, 1e-7, len(texts)) for texts in document.texts]

    check_scorer(rounded, DOCUMENTS, tolerance=1e-6)
    with pytest.raises(LawError, match="other documents"):
        check_scorer(rounded, DOCUMENTS)
