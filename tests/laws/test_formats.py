"""The law of formats that plug-in authors call, on the formats that write, and on broken ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.kbest import KBest
from rerank.formats.laws import check_format
from rerank.registry import FORMATS

finite = st.floats(-1e100, 1e100)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\n|\0"), max_size=6)
features = st.fixed_dictionaries({"tm": finite, "LM0": finite}, optional={"tag_a": finite})
lists = st.lists(st.tuples(texts, features), max_size=3)
full = st.lists(st.tuples(texts, features), min_size=1, max_size=3)
documents = st.tuples(full, st.lists(lists, max_size=2), full).map(
    lambda parts: KBest.of([parts[0], *parts[1], parts[2]], sparse={"tag_a"})
)
Moses: Any = FORMATS["moses"]


@pytest.mark.parametrize("name", ["moses", "jsonl"])
@given(documents)
def test_what_a_format_writes_it_reads_back(name: str, kbest: KBest) -> None:
    check_format(FORMATS[name](), kbest)


class Blind(Moses):  # type: ignore[misc]
    """Never recognises a file."""

    def detect(self, head: Sequence[bytes]) -> bool:
        return False


class Altering(Moses):  # type: ignore[misc]
    """Replaces letters of what it reads."""

    def read(self, lines: Iterable[bytes], *others: Any, **options: Any) -> Iterator[Any]:
        found: Iterator[Any] = Moses.read(
            (line.replace(b"a", b"b") for line in lines), *others, **options
        )
        return found


@pytest.mark.parametrize(
    ("broken", "message"),
    [(Blind, "detect does not recognise"), (Altering, "texts read back differ")],
)
def test_a_format_that_breaks_the_law_is_found_out(broken: Callable[[], Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_format(broken(), KBest.of([[("a", {"tm": 1.0})]]))
