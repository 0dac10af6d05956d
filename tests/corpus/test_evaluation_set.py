"""Evaluation sets: segments matched by document and id; a dictionary is the truth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.corpus.evaluation_set import EvaluationSet, EvaluationSetBuilder, aligned
from rerank.errors import InputError
from rerank.notices import Notices

Names = list[tuple[str, str]]
names = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123")), unique=True, min_size=1)


def made(segments: Names) -> EvaluationSet:
    builder = EvaluationSetBuilder("f")
    for document, number in segments:
        builder.add("system", "x", (document, number), f"{document}{number}".encode())
    return builder.finish(Notices())


@given(names, names)
def test_lines_are_matched_by_document_and_segment(one: Names, other: Names) -> None:
    found, target = made(one), made(other)
    lines = found.text("system")["x"]
    wanted = [
        (name, target.documents.segments[t])  # type: ignore[index]
        for d, name in enumerate(target.documents.ids)
        for t in range(*target.documents.span(d))
    ]
    expected = [f"{a}{b}".encode() if (a, b) in one else None for a, b in wanted]
    assert aligned(lines, found, target.documents) == expected


def test_without_segment_ids_sentences_are_matched_by_their_number() -> None:
    found = made([("b", "7"), ("a", "5"), ("a", "9")])
    lines = found.text("system")["x"]
    assert aligned(lines, found, Documents(("a", "b"), (0, 2, 3))) == [b"a5", b"a9", b"b7"]
    with pytest.raises(InputError, match="f: expected 3 segments of document 'a' as the documents"):
        aligned(lines, found, Documents(("a", "b"), (0, 3, 4)))


def test_a_text_that_is_not_there_is_named_with_those_that_are() -> None:
    found = made([("a", "1")])
    with pytest.raises(InputError, match="f: expected a reference, found system 'x'; give the fi"):
        found.text("reference")
    with pytest.raises(InputError, match="expected the system 'y', found system 'x'; name one of"):
        found.text("system", "y")
