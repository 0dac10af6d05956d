"""Test sets of sacrebleu in a cache that the test makes; nothing may be downloaded."""

from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from rerank.errors import UsageError
from rerank.formats.documents.sacrebleu_sets import (
    CachedSet,
    cached_docids,
    cached_references,
    cached_source,
)

NAME = "sacrebleu:wmt23/ru-en"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(DATASETS["wmt23"], "_outdir", str(tmp_path / "wmt23"))
    (tmp_path / "wmt23").mkdir()
    for field in ("src", "ref-refA", "ref-refB", "docid", "reference-notes"):
        (tmp_path / "wmt23" / f"wmt23.ru-en.{field}").write_text("x\n")
    (tmp_path / "wmt23" / "wmt23.ru-en.ref").write_text("")  # a download that was broken off
    (tmp_path / "wmt23" / "wmt23.en-ru.ref").write_text("x\n")
    return tmp_path / "wmt23"


def test_fields_are_the_files_of_the_cache(cache: Path) -> None:
    start = f"{cache}/wmt23.ru-en."
    assert cached_source(NAME) == f"{start}src"
    assert cached_docids(NAME) == CachedSet("wmt23", "ru-en").docids() == f"{start}docid"
    assert cached_references(NAME) == [f"{start}ref-refA", f"{start}ref-refB"]
    assert cached_references(NAME, "refB") == [f"{start}ref-refB"]
    assert CachedSet("wmt23", "ru-en").references() == cached_references(NAME)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sacrebleu:wmt23", r"expected sacrebleu:TESTSET/PAIR, as sacrebleu:wmt23/ru-en, found"),
        ("sacrebleu:wmt232/ru-en", r"no test set 'wmt232'; did you mean wmt23\? there are \d+"),
        ("sacrebleu:wmt23/ru-xx", "no language pair 'ru-xx'; it has .*ru-en"),
        (
            "sacrebleu:wmt23/en-de",
            r"not in the cache of sacrebleu \(.*\); fetch it with: sacrebleu -t wmt23 -l en-de <",
        ),
    ],
)
def test_what_is_not_there_is_one_line(cache: Path, name: str, message: str) -> None:
    for find in (cached_source, cached_docids, cached_references):
        with pytest.raises(UsageError, match=message):
            find(name)


def test_a_set_without_documents_or_another_translator_is_one_line(cache: Path) -> None:
    (cache / "wmt23.ru-en.docid").unlink()
    with pytest.raises(UsageError, match="has no document ids; give --docs or --no-docs"):
        cached_docids(NAME)
    with pytest.raises(UsageError, match="no reference 'C'; there are: refA, refB"):
        cached_references(NAME, "C")
