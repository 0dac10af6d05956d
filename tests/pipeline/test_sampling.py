"""`rerank sample`: what is written, counted and refused."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from support.words import WORDS

from lm.checkpoint import load_model, save_model
from lm.model import Config, DocumentLM
from lm.sampling import sample as draw
from lm.vocabulary import END, Vocabulary
from rerank.errors import InputError, RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Sampling, perplexity, sample
from rerank.pipeline.sampling import SampledText


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    return tmp_path


def sampled(folder: Path, *, start: str | None = None, **options: float) -> tuple[SampledText, str]:
    given = Sampling(**options)  # type: ignore[arg-type]
    found = sample(folder, "out.txt", given, notices=Notices(), start=start, device="cpu")
    return found, Path("out.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "hrnnlm"])
def test_documents_are_written_as_a_text_that_can_be_read_again(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    found, text = sampled(model_folders[name], documents=4, sentences=3, longest=8)
    documents = [document.splitlines() for document in text.split("\n\n")]
    assert [len(document) for document in documents] == [3] * 4
    assert {word for line in text.split("\n") for word in line.split()} <= set(WORDS)
    read = perplexity(model_folders[name], "out.txt", notices=Notices(), per_document=True)
    assert (read.sentences, read.tokens, read.oov) == (found.sentences, found.words, 0)
    assert (found.documents, found.sentences) == (4, 12)
    assert read.documents is not None
    assert len(read.documents) == 4


def test_the_text_is_what_was_drawn(here: Path, model_folders: Mapping[str, Path]) -> None:
    saved = load_model(model_folders["ccdclm"])
    (drawn,) = draw(saved.model, documents=1, sentences=2, seed=7, longest=9)
    truth = "".join(f"{' '.join(WORDS[i - 3] for i in words)}\n" for words in drawn.sentences)
    assert sampled(model_folders["ccdclm"], sentences=2, seed=7, longest=9)[1] == truth


def test_a_text_is_continued_and_not_written(here: Path, model_folders: Mapping[str, Path]) -> None:
    Path("start.txt").write_text("the lamp is lit\nshe burns\n", encoding="utf-8")
    folder = model_folders["codclm"]
    _, plain = sampled(folder, documents=5, sentences=1)
    _, continued = sampled(folder, start="start.txt", documents=5, sentences=1)
    assert plain != continued
    assert continued.count("\n") == 9


def test_sentences_that_were_cut_off_are_told(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    saved = load_model(model_folders["rnnlm"])
    with torch.no_grad():
        saved.model.head.get_parameter("bias")[END] = -100.0
    save_model(Path("endless"), saved.model, saved.vocabulary, {})
    found, text = sampled(Path("endless"), documents=1, sentences=2, longest=3)
    assert [len(line.split()) for line in text.splitlines()] == [3, 3]
    assert found.to_text() == (
        "1 document, 2 sentences, 6 words; 2 sentences cut off at --longest 3 words"
    )
    assert "cut" not in SampledText(1, 2, 6, 0, 3).to_text()


def test_a_start_of_several_documents_or_of_none_is_refused(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    Path("two.txt").write_text("the lamp\n\nit is\n", encoding="utf-8")
    Path("none.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"two\.txt: expected one document to continue, found 2"):
        sampled(model_folders["rnnlm"], start="two.txt")
    with pytest.raises(InputError, match=r"none\.txt:1: .*found no words"):
        sampled(model_folders["rnnlm"], start="none.txt")
    with pytest.raises(UsageError, match="is also the input"):
        sample(model_folders["rnnlm"], "two.txt", Sampling(), notices=Notices(), start="two.txt")
    assert not Path("out.txt").exists()


def test_a_broken_model_and_one_without_words_are_told(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    saved = load_model(model_folders["rnnlm"])
    with torch.no_grad():
        saved.model.head.get_parameter("bias").fill_(torch.nan)
    save_model(Path("broken"), saved.model, saved.vocabulary, {})
    with pytest.raises(RerankError, match="broken: a language model returned NaN"):
        sampled(Path("broken"))
    save_model(Path("empty"), DocumentLM(Config("rnnlm", 3, 2, 2)), Vocabulary(()), {})
    with pytest.raises(UsageError, match="empty: this model knows no word"):
        sampled(Path("empty"))
    assert not Path("out.txt").exists()
