"""Totals of a list against weights: which lines are counted, and as how wrong."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.columns import SparseColumns, TextColumn, offsets_of, places_of
from rerank.corpus.kbest import KBest
from rerank.corpus.labels import Label
from rerank.corpus.totals import Disagreement
from rerank.notices import Notices


def lists(counts: list[int], totals: list[float] | None) -> KBest:
    """Lists of these sizes with these totals; the rest does not matter."""
    n = sum(counts)
    return KBest(
        source="dev.kbest",
        first=0,
        offsets=offsets_of(np.array(counts, np.int64)),
        texts=TextColumn.of([b""] * n),
        line_numbers=np.arange(1, n + 1),
        ranks=places_of(np.array(counts, np.int64)),
        dense=np.zeros((n, 1)),
        totals=None if totals is None else np.array(totals),
        sparse=SparseColumns.empty(n),
        labels=(Label("LM0", 1),),
    )


def told(*documents: tuple[KBest, list[float]]) -> list[str]:
    notices = Notices()
    found = Disagreement("dev.kbest")
    for kbest, sums in documents:
        found.add(kbest, np.array(sums))
    found.report(notices)
    return notices.lines()


def test_a_wrong_total_is_counted_alone_wherever_it_stands_in_its_list() -> None:
    for wrong in range(3):
        totals = [-3.0, -4.0, -5.0, -6.0]
        totals[wrong] += 0.5
        (text,) = told((lists([3, 0, 1], totals), [-3.0, -4.0, -5.0, -6.0]))
        assert text.startswith("1 x total that is not weights")
        assert text.endswith(f"the largest difference is 0.5, first at dev.kbest:{wrong + 1}")


def test_documents_are_told_of_together() -> None:
    wrong = lists([3], [0.0, 1.0, 2.0])
    (text,) = told((wrong, [0.0, 1.0, 4.0]), (wrong, [0.0, 1.0, 2.0]), (wrong, [0.0, 1.0, 5.0]))
    assert text.startswith("2 x ")
    assert "difference is 3, first at dev.kbest:3" in text


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 4), max_size=5),
    st.floats(-1e3, 1e3),
    st.floats(-1e-7, 1e-7),
)
def test_a_constant_of_a_sentence_and_the_rounding_of_totals_do_not_count(
    counts: list[int], constant: float, rounding: float
) -> None:
    sums = [float(row) for row in range(sum(counts))]
    shifts = np.repeat(np.arange(len(counts)) * constant, np.array(counts, np.int64))
    totals = [total * (1 + rounding) + shift for total, shift in zip(sums, shifts, strict=True)]
    assert told((lists(counts, totals), sums)) == []


def test_a_list_without_totals_has_none_that_are_wrong() -> None:
    assert told((lists([2], None), [1.0, 2.0])) == []
