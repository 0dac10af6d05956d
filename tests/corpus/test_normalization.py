"""Texts in NFC: the truth is `unicodedata`, and for lists a file that was in NFC before."""

import json
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus import normalization
from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions
from rerank.corpus.kbest import KBest
from rerank.corpus.normalization import nfc, nfc_lines, nfc_rows
from rerank.formats.moses import read_rows
from rerank.formats.table import read_documents
from rerank.notices import Notices

TEXTS = ("un café crème", "le plan", "hélas", "e\u0301tude à Đà Nẵng", "각 나", "\u0338 ≠")
words = st.text(st.sampled_from("ae \u0301\u0327\u0338é각ㄱ\u1100\u1161\u11a8>="), max_size=8)


@given(st.text(st.characters(exclude_categories=["Cs"])) | words)
def test_any_text_becomes_its_normal_form(text: str) -> None:
    assert nfc(text.encode()) == normalize("NFC", text).encode()


@pytest.mark.parametrize("text", [b"", b"the cat", "café".encode(), "각".encode()])
def test_a_text_in_normal_form_is_not_copied(text: bytes) -> None:
    assert nfc(text) is text


def test_texts_of_sentences_are_put_into_it_one_by_one() -> None:
    found = nfc_lines([["e\u0301".encode(), b"a"], [b"b", b""]])
    assert found == [["é".encode(), b"a"], [b"b", b""]]


@given(st.lists(words, min_size=1, max_size=6), st.sampled_from([1, 9, 1 << 20]))
def test_hypotheses_become_those_of_a_list_in_normal_form(texts: list[str], part: int) -> None:
    """part: bytes that are looked at together."""
    own, truth = (
        [f"{t} ||| {text} ||| A= 1 ||| 2 ||| 0-0".encode() for t, text in enumerate(spelled)]
        for spelled in (texts, [normalize("NFC", text) for text in texts])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalization, "_PART", part)
        (found,) = map(nfc_rows, read_rows(own, Notices()))
    (expected,) = read_rows(truth, Notices())
    assert found.texts.to_list() == expected.texts.to_list()
    assert found.lines.to_list() == expected.lines.to_list()
    assert found.dense.tolist() == expected.dense.tolist()


@pytest.mark.parametrize("text", ["the cat", "un café"])
def test_hypotheses_in_normal_form_stay_the_same_object(text: str) -> None:
    (rows,) = read_rows([f"0 ||| {text} ||| A= 1 ||| 2".encode()], Notices())
    assert nfc_rows(rows) is rows


def columns(kbest: KBest) -> tuple[object, ...]:
    assert kbest.lines is not None
    return kbest.texts.to_list(), kbest.lines.to_list(), kbest.dense.tolist(), kbest.ranks.tolist()


def moses() -> str:
    return "".join(f"{t} ||| {text} ||| A= 1 ||| 2\n" for t, text in enumerate(TEXTS))


def fairseq() -> str:
    lines = [
        f"S-{t}\tx\nH-{t}\t-1\t{text}\nD-{t}\t-1\t{text}\nP-{t}\t-1 -1\n"
        for t, text in enumerate(TEXTS)
    ]
    return "".join(lines)


def jsonl(*, escaped: bool = False) -> str:
    """With escapes of JSON (`\\u0301`) the bytes of the file are ASCII."""
    found = []
    for text in TEXTS:
        one = {"text": text, "score": -1.0, "more": "kept"}
        found.append(json.dumps({"candidates": [one]}, ensure_ascii=escaped) + "\n")
    return "".join(found)


@pytest.mark.parametrize("content", [moses, fairseq, jsonl])
def test_files_of_any_format_are_read_in_it(content: Callable[[], str], tmp_path: Path) -> None:
    found = []
    for form, option in (("NFC", "none"), ("NFD", "nfc"), ("NFC", "nfc")):
        path = tmp_path / "list"
        path.write_bytes(normalize(form, content()).encode())  # type: ignore[arg-type]
        options = ReadingOptions(normalize=option)
        (kbest,) = read_documents(path, Documents.one(len(TEXTS)), Notices(), options)
        found.append(columns(kbest))
    assert found[0] == found[1] == found[2]


def test_escapes_of_json_are_characters_before(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(jsonl(escaped=True), encoding="ascii")
    options = ReadingOptions(normalize="nfc")
    (kbest,) = read_documents(path, Documents.one(len(TEXTS)), Notices(), options)
    assert kbest.texts.to_list() == [normalize("NFC", text).encode() for text in TEXTS]


def test_by_default_every_byte_stays(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(normalize("NFD", moses()).encode())
    (kbest,) = read_documents(path, Documents.one(len(TEXTS)), Notices())
    assert kbest.texts.to_list() == [normalize("NFD", text).encode() for text in TEXTS]
