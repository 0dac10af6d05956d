"""The package of document formats: what all of them have in common."""

import pytest

from rerank.formats.documents.table import PLAIN, formats
from rerank.notices import Notices
from rerank.registry import DOCUMENT_FORMATS

NAMED = {"numbered-docids": "docids"}  # formats that have to be named, and what they look like


@pytest.mark.parametrize("name", DOCUMENT_FORMATS.builtin)
def test_the_example_of_a_format_is_recognised_as_it_and_read(name: str) -> None:
    known = DOCUMENT_FORMATS[name]()
    lines = known.example.splitlines()
    first = next(one for one in formats() if one.detect(lines))
    assert (first.name, known.name) == (NAMED.get(name, name), name)
    found = known.read(iter(lines), Notices(), source="", choices=PLAIN)
    assert found.documents.n_lines in (1, 2, 3)
    assert bool(found.texts) is known.has_texts
