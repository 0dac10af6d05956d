"""The laws of formats, on the formats of the table and on one that breaks them."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.corpus import LARGEST
from rerank.corpus.columns import SparseColumns, TextColumn
from rerank.corpus.kbest import KBest
from rerank.corpus.labels import Label
from rerank.corpus.rows import KBestRows
from rerank.formats.hypotheses import ReadOnlyFormat
from rerank.formats.laws import check_format
from rerank.formats.moses import Moses
from rerank.formats.table import KBestFormat, formats
from rerank.notices import Notices


class JsonLines:
    """A format whose texts are no spans of the file: JSON escapes them.

    Each entry that `read` keeps is the line of the file, and after it the text.
    """

    name = "jsonl"
    description = "A JSON object per hypothesis."
    suffixes = (".jsonl",)
    example = b'{"id": 0, "text": "a", "dense": {"tm": 1.0}, "sparse": {}}'

    def detect(self, head: Sequence[bytes]) -> bool:
        return next(line for line in head if line.strip()).startswith(b"{")

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        content = list(lines)
        found = [json.loads(line) for line in content]
        texts = [one["text"].encode() for one in found]
        entries = TextColumn.of([line + text for line, text in zip(content, texts, strict=True)])
        ends = entries.spans[:, 1]
        yield KBestRows(
            labels=tuple(Label(name, 1) for name in found[0]["dense"]),
            lines=entries,
            text_spans=np.stack([ends - list(map(len, texts)), ends], axis=1),
            line_numbers=np.arange(1, len(content) + 1),
            sentences=np.array([one["id"] for one in found]),
            dense=np.array([list(one["dense"].values()) for one in found], float),
            totals=np.full(len(content), np.nan),
            sparse=SparseColumns.of([one["sparse"] for one in found]),
        )

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int,
    ) -> Iterator[bytes]:
        labels = [label.name for label in kbest.labels]
        for t in range(len(kbest)):
            for row in kbest.rows(t):
                one = {
                    "id": first_id + kbest.first + t,
                    "text": kbest.texts[row].decode(),
                    "dense": dict(zip(labels, kbest.dense[row].tolist(), strict=True)),
                    "sparse": kbest.sparse.row(row),
                }
                if kbest.lines is not None:
                    line = kbest.lines[row].removesuffix(kbest.texts[row])
                    assert json.loads(line) == one
                yield json.dumps(one).encode()


WRITTEN = [known for known in formats() if not isinstance(known, ReadOnlyFormat)]
finite = st.floats(-LARGEST, LARGEST)
of_files = st.characters(codec="utf-8", exclude_characters="\n|\0")  # no file has a NUL
texts = st.text(of_files, max_size=6)
features = st.fixed_dictionaries({"tm": finite, "LM0": finite}, optional={"tag_a": finite})
lists = st.lists(st.tuples(texts, features), max_size=3)
full = st.lists(st.tuples(texts, features), min_size=1, max_size=3)
documents = st.tuples(full, st.lists(lists, max_size=2), full).map(
    lambda parts: KBest.of([parts[0], *parts[1], parts[2]], sparse={"tag_a"})
)


@pytest.mark.parametrize("known", [*WRITTEN, JsonLines()], ids=lambda known: known.name)
@given(documents)
def test_what_a_format_writes_it_reads_back(known: KBestFormat, kbest: KBest) -> None:
    check_format(known, kbest)


@pytest.mark.parametrize("known", formats(), ids=lambda known: known.name)
def test_a_format_recognises_its_own_example_and_nothing_plain(known: KBestFormat) -> None:
    flat = known.name in ("flat", "portage", "tabs", "nematus")  # which are never recognised
    assert known.detect(known.example.splitlines()) is not flat
    assert not known.detect([b"", b"a line of text"])


class Blind(Moses):
    """Never recognises a file."""

    def detect(self, head: Sequence[bytes]) -> bool:
        return False


class Altering(Moses):
    """Replaces letters of what it reads."""

    def read(self, lines: Iterable[bytes], *others: Any, **options: Any) -> Iterator[Any]:
        return super().read((line.replace(b"a", b"b") for line in lines), *others, **options)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Blind, "detect does not recognise"),
        (Altering, "texts read back differ"),
    ],
)
def test_a_format_that_breaks_a_law_is_found_out(
    broken: Callable[[], KBestFormat], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_format(broken(), KBest.of([[("a", {"tm": 1.0})]]))
