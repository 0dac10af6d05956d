"""`rerank cloze`: answers in order, from texts that ask for one word a document."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.files import write
from support.words import WORDS

from lm.checkpoint import load_model
from lm.tiny_models import last_score
from rerank.cli import run
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline import cloze

TEXT = ["the lamp is lit", "it ___ light", "", "", "no one ___"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder, with a text."""
    monkeypatch.chdir(tmp_path)
    write("text", TEXT)


def test_answers_are_the_words_whose_completed_sentences_score_highest(
    model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folders["ccdclm"]
    saved = load_model(folder)
    command = ["cloze", "--lm", str(folder), "text", "-q", "--answers"]
    assert run([*command, "12", "--format", "json"]) == 0
    one, other = json.loads(capsys.readouterr().out)["queries"]
    assert (one["line"], other["line"]) == (2, 5)
    for query, lines in ((one, TEXT[:2]), (other, TEXT[4:])):
        scores = [
            last_score(
                saved.model,
                [
                    saved.vocabulary.encode(line.replace("___", word).encode().split())
                    for line in lines
                ],
            )
            for word in WORDS
        ]
        best = [WORDS[k] for k in np.argsort(scores)[::-1]]
        assert list(query["answers"]) == best
        assert np.exp([*query["answers"].values()]).sum() == pytest.approx(1, abs=1e-6)
    assert run([*command, "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows[:2]] == [["2", word] for word in list(one["answers"])[:2]]
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["it is", "the lamp"], "text:2: expected 1 ___ in the last sentence .* found 0; end each"),
        (["___ is ___"], "text:1: expected 1 ___ in the last sentence of a document, found 2"),
        (["it ___", "the ___"], "text:1: expected 0 ___ in a sentence before the last, found 1"),
        ([" ", ""], "text:1: expected sentences, found no words"),
    ],
)
def test_a_text_that_asks_for_no_word_or_several_is_refused(lines: list[str], told: str) -> None:
    write("text", lines)
    with pytest.raises(InputError, match=told):
        cloze(Path("no model"), "text", notices=Notices())
