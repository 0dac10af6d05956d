"""The law of formats that plug-in authors call, on the formats that write, and on broken ones."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rerank
from rerank.corpus.kbest import KBest
from rerank.formats.laws import check_format
from rerank.registry import FORMATS

finite = st.floats(-1e100, 1e100)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\t|\0"), max_size=6)
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


@pytest.mark.parametrize(
    ("candidate", "added", "total", "message"),
    [
        (("a ||| b", {"tm": 1.0}), {}, 0.0, r"found 'a \|\|\| b'; .*--escape moses"),
        (("a", {"t m": 1.0}), {}, 0.0, "feature name of letters and digits, found 't m'"),
        (("a", {"tm": 1.0}), {"l m": 1.0}, 0.0, "feature name of letters and digits, found 'l m'"),
        (("a", {"tm": 1.0}), {"lm": math.inf}, 0.0, "finite number to write for lm, found inf"),
        (("a", {"tm": 1.0}), {}, math.nan, "finite number to write for the total, found nan"),
    ],
)
def test_what_moses_could_not_read_back_is_refused(
    candidate: tuple[str, dict[str, float]], added: dict[str, float], total: float, message: str
) -> None:
    kbest, values = KBest.of([[candidate]]), np.array([[*added.values()]])
    with pytest.raises(rerank.RerankError, match=message):
        list(Moses().write(kbest, (*added,), values, np.array([total]), first_id=0))


def test_only_candidates_of_a_file_have_lines() -> None:
    with pytest.raises(ValueError, match="made in memory have no lines"):
        KBest.of([[("a", {"tm": 1.0})]]).line(0)


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
