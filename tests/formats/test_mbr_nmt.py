"""Candidates of mbr-nmt."""

import pytest
from support.reading import rows_of, texts

from rerank.errors import InputError
from rerank.formats.mbr_nmt import MbrNmt
from rerank.formats.table import detect

TEXT = "NC=2\na lamp\n\nNC=1\nNC=3\n"


def test_numbers_of_candidates_part_the_sentences() -> None:
    assert detect(iter(TEXT.encode().splitlines()))[0].name == "mbr-nmt"
    rows = rows_of(MbrNmt(), TEXT)
    assert texts(rows) == ["a lamp", "", "NC=3"]
    assert rows.sentences.tolist() == [0, 0, 1]
    assert rows.labels == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [(TEXT + "more\n", "f:6: expected NC=n"), ("NC=3\na\n", "f:2: expected 2 more candidates")],
)
def test_faults_are_said_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        rows_of(MbrNmt(), text)
