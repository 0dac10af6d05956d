"""Hypotheses collected one by one: columns, their order, and lists that are not sorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.labels import Label
from rerank.corpus.rows import KBestRows
from rerank.errors import InputError
from rerank.formats import hypotheses
from rerank.formats.hypotheses import Hypotheses, by_sentence, sentence_id
from rerank.notices import Notices


def collected(sentences: list[int], size: int = 3) -> list[KBestRows]:
    """Chunks of hypotheses h0, h1, … of these sentences."""
    found = Hypotheses(Notices(), "f", None)
    chunks = []
    for i, sentence in enumerate(sentences):
        found.at(i + 10)
        found.add(sentence, b" h%d " % i, ("A", "B", "A"), [i, 2 * i, 3 * i], kept=b"!")
        if len(found) == size:
            chunks.append(found.rows())
    return [*chunks, *([found.rows()] if len(found) else [])]


def test_values_of_one_name_are_a_label() -> None:
    (rows,) = collected([0, 0, 1])
    assert rows.labels == (Label("A", 2), Label("B", 1))
    assert rows.dense.tolist() == [[0, 0, 0], [1, 3, 2], [2, 6, 4]]
    assert rows.lines.to_list() == [b"h0!", b"h1!", b"h2!"]
    assert rows.texts.to_list() == [b"h0", b"h1", b"h2"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_sorted_hypotheses_are_those_of_a_stable_sort(sentences: list[int]) -> None:
    found = list(by_sentence(collected(sentences), Notices(), source="f"))
    texts = [text for rows in found for text in rows.texts.to_list()]
    order = sorted(range(len(sentences)), key=sentences.__getitem__)
    assert texts == [b"h%d" % i for i in order]
    lines = np.concatenate([rows.file_lines for rows in found]).tolist()
    assert lines == [i + 10 for i in order]


def test_a_list_too_large_to_sort_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypotheses, "_SORTED", 8)
    with pytest.raises(InputError, match=r"^f:12: expected at most 1 GiB"):
        list(by_sentence(collected([0] * 20), Notices(), source="f"))


def test_chunks_are_bounded() -> None:
    found = Hypotheses(Notices(), "f", None)
    found.add(0, b"a" * (1 << 20), (), [])
    assert not found.full
    found.add(0, b"a", (), [])
    assert found.full
    assert len(found.rows()) == 2
    assert not found.full


@pytest.mark.parametrize("token", [b"", b"-1", b"1_0", b"2147483648", "١".encode(), b"9" * 5000])
def test_ids_are_plain_digits(token: bytes) -> None:
    with pytest.raises(InputError, match="expected a sentence id"):
        sentence_id(token)
    assert sentence_id(b"0042") == 42
