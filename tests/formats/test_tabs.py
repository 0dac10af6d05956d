"""Lines whose hypotheses have TABs between them."""

import pytest
from support.reading import rows_of, texts

from rerank.errors import InputError
from rerank.formats.table import chosen_format, detect
from rerank.formats.tabs import Tabs
from rerank.notices import Notices

TEXT = "a lamp\tthe lamp ||| x\nit\n\t\na\t\tb\n"


def test_a_line_has_the_hypotheses_of_a_sentence() -> None:
    notices = Notices()
    rows = rows_of(Tabs(), TEXT, notices=notices)
    assert texts(rows) == ["a lamp", "the lamp ||| x", "it", "", "a", "b"]
    assert rows.sentences.tolist() == [0, 0, 1, 2, 3, 3]
    assert rows.places is not None
    assert rows.places.tolist() == [1, 1, 2, 3, 4, 4]
    assert rows.labels == ()
    assert notices.lines() == ["2 x blank hypothesis between TABs, skipped, first at f:3"]


def test_it_is_read_only_where_it_is_named() -> None:
    assert isinstance(chosen_format("tabs")[0], Tabs)
    with pytest.raises(InputError, match="--kbest-format tabs"):
        detect(iter([b"a lamp\tthe lamp"]), source="f")
