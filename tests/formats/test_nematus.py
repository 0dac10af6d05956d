"""N-best lists of Nematus, and lists of Moses that look like them."""

import pytest
from support.reading import features, rows_of, texts

from rerank.errors import InputError
from rerank.formats.moses import COSTS, Moses
from rerank.formats.nematus import Nematus
from rerank.notices import Notices

LIST = "0 ||| a lamp ||| 1.5 1.6\n0 ||| the ||| lamp ||| 2 0\n\n2 ||| light ||| 3 -1\n"


def test_costs_are_read_with_their_sign_changed() -> None:
    rows = rows_of(Nematus(), LIST)
    assert texts(rows) == ["a lamp", "the ||| lamp", "light"]
    assert rows.sentences.tolist() == [0, 0, 2]
    assert features(rows) == {"F0": [-1.5, -2, -3], "F1": [-1.6, 0, 1]}
    assert rows.file_lines.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "f:1: expected 'id ||| text ||| cost cost'"),
        ("0 ||| a", "f:1: expected 'id ||| text ||| cost cost'"),
        ("0 ||| a ||| ", "f:1: expected costs in the last column, found none"),
        ("0 ||| a ||| F0= 1", "f:1: expected a decimal number for a cost, found 'F0='"),
        ("0 ||| a ||| inf", "f:1: expected a finite number"),
        ("x ||| a ||| 1", "f:1: expected a sentence id"),
        ("0 ||| a ||| 1\n0 ||| b ||| 1 2", "f:2: expected 1 feature values"),
    ],
)
def test_faults_are_reported_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as fault:
        list(Nematus().read(text.encode().split(b"\n"), Notices(), source="f", clip=None))
    assert str(fault.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("0 ||| a ||| 1.5 1.6\n0 ||| b ||| 2 3", 2),
        ("0 ||| a ||| 1.5 1.6\n\n0 ||| b ||| 2 3 ", 2),
        ("0 ||| a ||| 1.5 1.6\n0 ||| b ||| 2 -3", 0),
        ("0 ||| a ||| 1.5 ||| 2\n0 ||| b ||| 0 ||| 2", 0),
        ("0 ||| a ||| F0= 1.5 ||| 2\n0 ||| b ||| F0= 1 ||| 2", 0),
    ],
    ids=["costs", "blank line", "a negative one", "a zero", "labels"],
)
def test_numbers_without_labels_that_are_all_positive_are_a_notice(text: str, n: int) -> None:
    notices = Notices()
    list(Moses().read(text.encode().split(b"\n"), notices, source="f", clip=None))
    assert [line for line in notices.lines() if COSTS in line] == (
        [f"{n} x {COSTS}, first at f:1"] if n else []
    )
