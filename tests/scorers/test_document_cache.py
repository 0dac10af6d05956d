"""The document cache as a feature: its formula word by word, and the laws of scorers."""

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoders.batching import conditional_scores
from decoders.problem import DocumentProblem
from rerank.corpus.document import Document
from rerank.errors import UsageError
from rerank.registry import SCORERS
from rerank.scorers.document_cache import DocumentCache
from rerank.scorers.laws import check_scorer
from rerank.scorers.plugin import PluginScorer

texts = st.lists(st.sampled_from(["a", "b", "c", "d", "é"]), max_size=4).map(" ".join)
documents = st.lists(st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=4)


def document(lists: Sequence[Sequence[str]]) -> Document:
    return Document("talk", [[(text, {}) for text in own] for own in lists])


def by_hand(before: Sequence[str], text: str, share: float) -> float:
    """Σ log(1 − λ + λ V c / n), word by word."""
    cached = [word for sentence in before for word in sentence.split()]
    if not cached:
        return 0.0
    return sum(
        math.log(1 - share + share * 10_000 * cached.count(word) / len(cached))
        for word in text.split()
    )


@given(documents, st.sampled_from([0.1, 0.5, 0.9]), st.data())
def test_every_word_scores_by_its_share_of_the_document_so_far(
    lists: list[list[str]], share: float, data: st.DataObject
) -> None:
    path = [data.draw(st.integers(0, len(own) - 1)) for own in lists]
    chosen = [own[k] for own, k in zip(lists, path, strict=True)]
    problem = DocumentCache(share).score(document(lists))
    for t, scores in enumerate(conditional_scores(problem, path)):
        expected = [by_hand(chosen[:t], text, share) for text in lists[t]]
        np.testing.assert_allclose(scores, expected, atol=1e-9)


@given(documents, st.data())
def test_changes_inside_a_path_are_scored_as_whole_paths(
    lists: list[list[str]], data: st.DataObject
) -> None:
    problem = DocumentCache().score(document(lists))
    draw = st.tuples(*(st.integers(0, len(own) - 1) for own in lists))
    paths = np.array(data.draw(st.lists(draw, min_size=1, max_size=3)))
    t, horizon = data.draw(st.integers(0, len(lists) - 1)), data.draw(st.integers(0, 3))
    truth = DocumentProblem.rescore(problem, paths, t, horizon)
    np.testing.assert_allclose(problem.rescore(paths, t, horizon), truth, atol=1e-9)


def test_it_keeps_the_laws_of_scorers() -> None:
    lists = [["a b", "c"], [], ["a a", "b c d"], ["b a", "e", ""], ["c b", "a"]]
    check_scorer(DocumentCache(), [document(lists), document([["a", "b"], ["b"], ["a b c", "b"]])])


def test_the_shell_names_it_with_or_without_a_weight() -> None:
    factory = SCORERS.named("document-cache")
    lists = [["a b"], ["a", "c"]]
    for arguments, share in (((), 0.5), (("0.25",), 0.25)):
        scorer = PluginScorer("cache", factory(*arguments))
        assert scorer.order is None
        scores = conditional_scores(scorer.document_problem(document(lists)), (0, 0))[1]
        expected = [math.log(1 - share + share * 5000), math.log(1 - share)]
        np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize("share", ["0", "1", "1.5", "-0.5", "nan", "inf", "", "half", "0_5"])
def test_another_weight_is_refused(share: str) -> None:
    told = f"expected a weight of the document cache above 0 and below 1, found {share!r}"
    with pytest.raises(UsageError, match=re.escape(told)):
        DocumentCache(share)
