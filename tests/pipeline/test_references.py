"""References of lists: whose documents they have, and what does not fit them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.files import write

from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline.lists import Lists
from rerank.pipeline.references import read_targets

TEXTS = ("the lamp is lit", "it gives light", "she left us", "who knows", "it is cold")
DOCS = ("a", "a", "c", "d", "d")
LISTS = Lists("dev.kbest")


def write_set(name: str, docs: Sequence[str], role: str = "ref") -> None:
    """JSON lines of the documents with these ids of sentences."""
    lines = [{"document": d, role: text} for d, text in zip(docs, TEXTS, strict=False)]
    write(name, map(json.dumps, lines))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", [f"{t} ||| {text} ||| LM0= 0 ||| 0" for t, text in enumerate(TEXTS)])
    write("docs", DOCS)
    write("dev.ref", TEXTS)
    write_set("ref.jsonl", DOCS)
    return tmp_path


def test_documents_that_only_the_reference_has_are_announced() -> None:
    said: list[str] = []
    documents, _ = read_targets(LISTS, ["ref.jsonl"], Notices(), said.append)
    assert (documents.ids, documents.starts) == (("a", "c", "d"), (0, 2, 3, 5))
    assert said == [
        "documents: those of ref.jsonl, in its order, which must be that of the list's source; "
        "otherwise give --docs FILE"
    ]
    read_targets(Lists("dev.kbest", "docs"), ["ref.jsonl"], Notices(), said.append)
    assert len(said) == 1


def test_references_are_of_each_sentence_in_the_order_of_the_files() -> None:
    write("other.ref", map(str.upper, TEXTS))
    lists = Lists("dev.kbest", no_docs="one")
    documents, targets = read_targets(lists, ["dev.ref", "other.ref"], Notices())
    assert documents.ids == ("all",)
    assert targets == [[text.encode(), text.upper().encode()] for text in TEXTS]


@pytest.mark.parametrize(
    ("docs", "message"),
    [
        ("caadd", "document 'c' where it has 'a'"),
        ("aac", "2 documents, not 3"),
        ("aaccd", "2 sentences of document 'c', not 1"),
    ],
)
def test_a_source_with_other_documents_than_the_reference_is_refused(
    docs: str, message: str
) -> None:
    write_set("source.jsonl", docs, "source")
    lists = Lists("dev.kbest", side={"source": "source.jsonl"})
    with pytest.raises(InputError, match=f"source.jsonl: expected the documents of .*{message}"):
        read_targets(lists, ["ref.jsonl"], Notices())
