"""The laws of formats, on the formats of the table and on one that breaks them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.kbest import KBest
from rerank.formats.format import KBestFormat, Survey
from rerank.formats.laws import check_format
from rerank.formats.moses import Moses
from rerank.formats.table import formats

finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\n|"), max_size=6)
features = st.fixed_dictionaries({"tm": finite, "LM0": finite}, optional={"tag_a": finite})
lists = st.lists(st.tuples(texts, features), max_size=3)
full = st.lists(st.tuples(texts, features), min_size=1, max_size=3)
documents = st.tuples(full, st.lists(lists, max_size=2), full).map(
    lambda parts: KBest.of([parts[0], *parts[1], parts[2]], sparse={"tag_a"})
)


@pytest.mark.parametrize("known", formats(), ids=lambda known: known.name)
@settings(deadline=None, max_examples=60)
@given(documents)
def test_what_a_format_writes_it_reads_back(known: KBestFormat, kbest: KBest) -> None:
    check_format(known, kbest)


@pytest.mark.parametrize("known", formats(), ids=lambda known: known.name)
def test_a_format_recognises_its_own_example_and_nothing_plain(known: KBestFormat) -> None:
    assert known.detect(known.example.splitlines())
    assert not known.detect([b"", b"a line of text"])


class Blind(Moses):
    """Never recognises a file."""

    def detect(self, head: Sequence[bytes]) -> bool:
        return False


class Altering(Moses):
    """Replaces letters of what it reads."""

    def read(self, lines: Iterable[bytes], *others: Any, **options: Any) -> Iterator[Any]:
        return super().read((line.replace(b"a", b"b") for line in lines), *others, **options)


class Miscounting(Moses):
    """Counts one candidate too many."""

    def survey(self, lines: Iterable[bytes], *, source: str, top: int | None) -> Survey:
        found = super().survey(lines, source=source, top=top)
        return Survey(found.candidates + 1, found.words, found.last_id, found.last_line)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Blind, "detect does not recognise"),
        (Altering, "texts read back differ"),
        (Miscounting, "does not fit the rows"),
    ],
)
def test_a_format_that_breaks_a_law_is_found_out(
    broken: Callable[[], KBestFormat], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_format(broken(), KBest.of([[("a", {"tm": 1.0})]]))
