"""Portage's lists, made up and real."""

import gzip
from pathlib import Path

import pytest
from support.reading import features, rows_of, texts

from rerank.corpus.grouping import ReadingOptions
from rerank.errors import UsageError
from rerank.formats.portage import Portage
from rerank.formats.table import Survey, survey_of

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "fixtures"


def test_values_are_in_the_other_file() -> None:
    known = Portage().configured(2, [b"-8\t-34.5", b"0\t-36"], "ffvals")
    rows = rows_of(known, "the lamp\na lamp\n")
    assert (texts(rows), features(rows)) == (
        ["the lamp", "a lamp"],
        {"F0": [-8, 0], "F1": [-34.5, -36]},
    )


def test_the_other_file_is_needed() -> None:
    with pytest.raises(UsageError, match="--kbest-scores FILE"):
        Portage().configured(2, None, "")


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
def test_a_real_list_is_read_once_it_is_in_utf8(tmp_path: Path) -> None:
    with gzip.open(DATA / "portage-hansard.100best.gz", "rt", encoding="cp1252") as file:
        (tmp_path / "nbest").write_text(file.read(), encoding="utf-8")
    values = DATA / "portage-hansard.ffvals.gz"
    options = ReadingOptions(kbest_format="portage:100", kbest_scores=values)
    found = survey_of(tmp_path / "nbest", options)
    assert found == Survey(10_000, found.words, 99, 10_000)
