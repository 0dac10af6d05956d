"""N-best lists of documents, against all combinations of candidates."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lists import kbest_of_lines

from rerank.errors import InputError
from rerank.formats.document_nbest import best_documents, document_lines

LINES = (
    "0 ||| a lamp ||| LM0= -1 TM0= 1 2 ||| -1",
    "0 ||| lamp ||| LM0= -2 TM0= 3 4 t_a= 1 ||| -4",
    "2 ||| light ||| LM0= -4 TM0= 5 6 t_a= 2 ||| -2",
    "2 ||| lights ||| LM0= -8 TM0= 7 8 ||| -3",
)


@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=3), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_the_best_documents_are_those_of_all_combinations(totals: list[list[int]], n: int) -> None:
    lines = [
        f"{t} ||| w{k} ||| A= 0 ||| {total}"
        for t, of_sentence in enumerate(totals)
        for k, total in enumerate(of_sentence)
    ]
    found = best_documents(kbest_of_lines(lines, len(totals)), n)
    expected = sorted(map(sum, product(*totals)), reverse=True)[:n]
    assert [choice.total for choice in found] == expected
    assert len({choice.rows for choice in found}) == len(found)
    flat = [total for of_sentence in totals for total in of_sentence]
    assert [sum(flat[row] for row in choice.rows) for choice in found] == expected


def test_lines_have_a_separator_after_each_sentence_and_sums() -> None:
    assert list(document_lines(7, kbest_of_lines(LINES, 3), 2)) == [
        rb"7 ||| a lamp \n \n light \n  ||| LM0= -5 TM0= 6 8 t_a= 2 ||| -3",
        rb"7 ||| a lamp \n \n lights \n  ||| LM0= -9 TM0= 8 10 ||| -4",
    ]


def test_without_totals_the_first_candidates_are_a_document() -> None:
    kbest = kbest_of_lines([line.rpartition(" |||")[0] for line in LINES], 3)
    assert [choice.rows for choice in best_documents(kbest, 1)] == [(0, 2)]
    with pytest.raises(InputError, match="expected totals"):
        best_documents(kbest, 2)


def test_a_sentence_with_the_separator_is_refused() -> None:
    kbest = kbest_of_lines([r"0 ||| a \n b ||| A= 1 ||| 1"], 1)
    with pytest.raises(InputError, match="--escape moses"):
        list(document_lines(0, kbest, 1))
    assert np.array_equal(kbest.counts, [1])
