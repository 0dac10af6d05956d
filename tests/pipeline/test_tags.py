"""Tags of words from a file: figures of each tag, and files that do not fit the text."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.language_models import QUICK, trained, with_texts

from rerank.cli import run
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline import TaggedText, perplexity

WORDS = "the lamp is\nit\n\nis lit the\n"
TAGS = "D N V\nP\n\nV A D\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with texts to train on, a text and its tags."""
    folder = with_texts(tmp_path, monkeypatch)
    Path("text").write_text(WORDS, encoding="utf-8")
    Path("tags").write_text(TAGS, encoding="utf-8")
    return folder


def test_tags_of_all_words_add_up_to_the_figures_of_the_text(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    for folder in model_folders.values():
        for twice in (False, True):
            options: dict[str, Any] = {
                "notices": Notices(),
                "duplicate_last_word": twice,
                "device": "cpu",
            }
            plain = perplexity(folder, "text", **options)
            found = perplexity(folder, TaggedText("text", tags="tags"), **options)
            assert replace(found, tags=None) == plain
            counts = {tag: own.tokens for tag, own in (found.tags or {}).items()}
            if twice:
                assert counts == {"D": 3, "V": 3, "P": 2, "A": 1, "N": 1}
            else:
                assert counts == {"D": 2, "V": 2, "A": 1, "N": 1, "P": 1}
            nats = sum(own.nats for own in (found.tags or {}).values())
            assert nats == pytest.approx(plain.word_nats, rel=1e-6)


@pytest.mark.parametrize("options", [{"backward": True}, {"reverse_documents": True}])
def test_tags_follow_their_words_where_a_model_reads_in_another_order(
    options: dict[str, Any], here: Path
) -> None:
    """A tag for each kind of word: figures of a tag are those of its words, one by one."""
    trained(replace(QUICK, model="ccdclm", **options))
    Path("kinds").write_text(WORDS.replace("the", "D").replace("is", "V"), encoding="utf-8")
    named: dict[str, Any] = {"notices": Notices(), "device": "cpu"}
    kinds = perplexity(Path("lm"), TaggedText("text", tags="kinds"), **named).tags
    tags = perplexity(Path("lm"), TaggedText("text", tags="tags"), **named).tags
    assert kinds is not None
    assert tags is not None
    for tag, kind in (("D", "D"), ("V", "V"), ("N", "lamp"), ("P", "it"), ("A", "lit")):
        assert (tags[tag].tokens, tags[tag].oov) == (kinds[kind].tokens, kinds[kind].oov)
        assert tags[tag].nats == pytest.approx(kinds[kind].nats, rel=1e-9)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("D N\nP\n\nV A D\n", "tags:1: expected 3 tags, one for each word of sentence 1 of text"),
        ("D N V\nP\n\nV A D D\n", "tags:4: expected 3 tags, one for each word of sentence 3"),
        ("D N V\nP\n", "tags: expected 3 sentences in 2 documents as in text, found 2 sentences"),
        ("D N V\nP\nV A D\n", "tags: expected 3 sentences in 2 documents as in text, found 3"),
        (TAGS + "D\n", "tags: expected 3 sentences in 2 documents as in text, found 4"),
        ("D N </s>\nP\n\nV A D\n", "tags:1: expected tags of words, found </s>"),
        ("", "tags: expected 3 sentences in 2 documents as in text, found 0"),
    ],
    ids=["short", "long", "missing", "documents", "more", "end", "empty"],
)
def test_tags_that_do_not_fit_are_refused_with_their_place(
    content: str,
    message: str,
    here: Path,
    model_folders: Mapping[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("tags").write_text(content, encoding="utf-8")
    folder = model_folders["rnnlm"]
    with pytest.raises(InputError, match=re.escape(message)):
        perplexity(folder, TaggedText("text", tags="tags"), notices=Notices(), device="cpu")
    command = ["perplexity", "--lm", str(folder), "text", "--tags", "tags", "--device", "cpu"]
    assert run(command) == 3
    assert capsys.readouterr().err.startswith(f"rerank: {message}")


def test_one_tsv_has_one_table(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["perplexity", "--lm", str(model_folders["rnnlm"]), "text", "--tags", "tags"]
    assert run([*command, "--device", "cpu", "--format", "tsv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("\t")[0] for row in rows] == ["tag", "D", "V", "A", "N", "P", "</s>"]
    assert run([*command, "--per-document", "--format", "tsv"]) == 2
    assert "leave out --tags or --per-document" in capsys.readouterr().err


def test_an_n_gram_model_has_no_tags(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["perplexity", "--ngram", "x.arpa", "text", "--tags", "tags"]) == 2
    assert "--tags: not for the n-gram model of --ngram" in capsys.readouterr().err
