"""The survey of lists that are read in full, beside plain counting."""

from rerank.formats.format import Survey, survey_rows
from rerank.formats.moses import read_rows
from rerank.notices import Notices

LINES = [
    b"3 ||| a b ||| A= 1",
    b"",
    b"1 ||| c ||| A= 1",
    b"3 |||  ||| A= 1",
    b"3 ||| d ||| A= 1",
    b"",
]


def test_a_survey_counts_the_first_candidates_of_each_sentence() -> None:
    assert survey_rows(read_rows(LINES, Notices()), None) == Survey(4, 4, 3, 5)
    assert survey_rows(read_rows(LINES, Notices()), 1) == Survey(2, 3, 3, 5)
    assert survey_rows([], 1) == Survey(0, 0, 0, 0)
