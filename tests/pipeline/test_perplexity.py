"""`perplexity` on texts that are read in another way than line by line."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import start
from support.language_models import QUICK, trained, with_texts
from support.torchrun import started
from torch import Tensor

from lm import evaluation
from lm.checkpoint import load_model
from lm.corpus import Corpus
from lm.evaluation import Share
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import perplexity

TEXT = ("the lamp is lit", "it gives light", "she burns the lamp", "a light", "it is")


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


def test_processes_of_torchrun_share_the_documents(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    text = "".join(f"{line}\n" + "\n" * (i % 4 == 0) for i, line in enumerate(TEXT * 3))
    Path("text").write_text(text, encoding="utf-8")
    Path("tags").write_text("".join("a " * len(t.split()) + "\n" for t in text.splitlines()))
    folder = str(model_folders["codclm"])
    given = ["perplexity", "--lm", folder, "text", "--per-document", "--device=cpu", "--tags=tags"]
    given += ["--format", "json"]
    alone = start(*given, stdout=subprocess.PIPE).communicate(timeout=120)[0]
    programs = started(2, *given)
    (first, said), other = [program.communicate(timeout=120) for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    assert other == (b"", b"")
    for ours, truth in zip(numbers(json.loads(first)), numbers(json.loads(alone)), strict=True):
        assert ours == pytest.approx(truth, rel=1e-6)


def numbers(value: object) -> list[float]:
    """All numbers in a JSON value, in order."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    return [float(value)] if isinstance(value, int | float) else []


@pytest.mark.parametrize("n_documents", [1, 3])
def test_more_processes_than_documents_read_what_there_is(
    here: Path, model_folders: Mapping[str, Path], n_documents: int
) -> None:
    """The sums of shares, added by hand, are those of one process."""
    saved = load_model(model_folders["ccdclm"])
    ids = [[[4, 5], [6]], [[5, 4, 6, 7]], [[7, 7]]][:n_documents]
    corpus = Corpus.of(ids)
    parts: list[list[Tensor]] = []
    for rank in range(4):
        seen: list[Tensor] = []
        share = Share(rank, 4, seen.append)
        evaluation.perplexity_by_document(saved.model, corpus, share=share)
        parts.append(seen)
    truth = evaluation.perplexity_by_document(saved.model, corpus)
    assert truth.documents is not None
    total, of_documents, _ = (sum(column) for column in zip(*parts, strict=True))
    assert float(total[0]) == pytest.approx(truth.nats, rel=1e-6)
    nats = [document.nats for document in truth.documents]
    assert of_documents[:, 0].tolist() == pytest.approx(nats, rel=1e-6)
