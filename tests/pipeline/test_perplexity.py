"""`perplexity` on texts that are read in another way than line by line."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.language_models import QUICK, trained, with_texts

from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import perplexity


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with 200 sentences to train on and 50 held out."""
    return with_texts(tmp_path, monkeypatch)


def test_blank_lines_among_equals_lines_are_told(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    Path("text").write_text("the lamp\n\nit is\n=\n\n", encoding="utf-8")
    notices = Notices()
    folder = model_folders["ccdclm"]
    found = perplexity(folder, "text", notices=notices, documents="equals", device="cpu")
    assert (found.sentences, found.tokens) == (4, 4)
    assert notices.lines() == [
        "2 x blank line read as a sentence without words, as --documents equals says, first at text"
    ]
    Path("text").write_text("=\n\n=\n", encoding="utf-8")
    with pytest.raises(InputError, match="found no words"):
        perplexity(folder, "text", notices=Notices(), documents="equals", device="cpu")


def test_last_words_are_read_and_counted_twice_where_that_is_asked_for(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    Path("once.txt").write_text("the lamp\nit is lit\n", encoding="utf-8")
    Path("twice.txt").write_text("the lamp lamp\nit is lit lit\n", encoding="utf-8")
    for folder in model_folders.values():
        found, plain = (
            perplexity(folder, name, notices=Notices(), duplicate_last_word=twice, device="cpu")
            for name, twice in (("once.txt", True), ("twice.txt", False))
        )
        assert found == plain
        assert (found.sentences, found.tokens) == (2, 7)


def test_last_words_twice_are_refused_for_a_model_that_reads_backward(here: Path) -> None:
    trained(replace(QUICK, model="rnnlm", backward=True))
    with pytest.raises(UsageError, match="lm reads sentences from right to left; leave it out"):
        perplexity(Path("lm"), "valid.txt", notices=Notices(), duplicate_last_word=True)
