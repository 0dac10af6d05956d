"""Documents of JSON lines; json.dumps makes them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.corpus.evaluation_set import EvaluationSet
from rerank.errors import InputError
from rerank.formats.documents.json_lines import JsonLines
from rerank.formats.documents.table import DocumentFile, ReadingChoices, read_documents
from rerank.notices import Notices

texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"))


def read(lines: list[bytes], field: str | None = None) -> EvaluationSet:
    choices = ReadingChoices(field)
    return JsonLines().read(iter(lines), Notices(), source="docs", choices=choices)


@given(st.lists(st.tuples(st.integers(1, 3), texts, texts), min_size=1))
def test_texts_read_back(rows: list[tuple[int, str, str]]) -> None:
    rows.sort()
    lines = [
        json.dumps({"doc_id": d, "src": source, "references": [target, "second"]}).encode()
        for d, source, target in rows
    ]
    found = read(lines)
    assert JsonLines().detect(lines)
    assert found.documents.ids == tuple(map(str, dict.fromkeys(d for d, *_ in rows)))
    assert found.text("source") == {"": [source.encode() for _, source, _ in rows]}
    first, second = found.text("reference").values()
    assert (first, set(second)) == ([target.encode() for *_, target in rows], {b"second"})


def test_another_key_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text('{"talk": "a"}\n{"talk": "b"}\n')
    chosen = DocumentFile(tmp_path / "docs", field="talk")
    assert read_documents(chosen, Notices()).documents == Documents(("a", "b"), (0, 1, 2))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "docs:2: expected a JSON object with the key 'document', found '{'"),
        (b"[" * 100_000, "docs:2: expected a JSON object"),
        (b'{"document": ' + b"1" * 5000 + b"}", "docs:2: expected a JSON object"),
        (b'["a"]', "docs:2: expected a JSON object"),
        (b'{"documents": "a"}', "docs:2: .*found none; did you mean 'documents'.*--docs-field"),
        (b'{"document": null}', "docs:2: expected a text or whole number as 'document', found N"),
        (b'{"document": true}', "docs:2: expected a text or whole number"),
        (b'{"document": "a\\nb"}', "docs:2: expected one line as 'document'"),
        (b'{"document": "\\ud800"}', "docs:2: found half a surrogate pair in 'document'"),
        (b'{"document": "a", "refs": [1]}', "docs:2: expected texts in 'refs', found int"),
    ],
)
def test_other_lines_are_refused(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read([b'{"document": "a"}', line])
    assert len(str(caught.value)) < 300
