"""Sources of documents: orders and sizes that searches are chosen by, names that collide."""

import re

import pytest

from rerank.corpus.document import Document
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline.memory import MemorySource
from rerank.pipeline.sources import DocumentSource
from rerank.scorers import ZeroScores


@pytest.mark.parametrize(
    ("orders", "order"), [((), 0), ((0, 2, 1), 2), ((1, None, 0), None)], ids=str
)
def test_the_order_is_the_largest_of_the_scorers(
    orders: tuple[int | None, ...], order: int | None
) -> None:
    scorers = [ZeroScores("s", ("soov",), one) for one in orders]
    assert DocumentSource((), scorers, Notices()).order == order


@pytest.mark.parametrize("label", ["s", "soov"])
def test_a_scorer_shares_no_label_with_the_lists(label: str) -> None:
    document = Document("d", [[("a", {label: 1.0})]])
    ((_, kbest),) = MemorySource([document], []).read()
    source = DocumentSource(
        (), [ZeroScores("s", ("soov",), 0)], Notices(), origins={"s": "--scores s=…"}
    )
    with pytest.raises(
        UsageError, match=re.escape(f"--scores s=…: d already has a feature '{label}'")
    ):
        source.space(kbest, total=False)
