"""`lm-eval pairs`: items of lists, in their contexts, as `lm-eval contrastive` reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from rerank.cli import run
from rerank.errors import InputError, UsageError
from rerank.formats.contrastive import read_contrastive
from rerank.notices import Notices
from rerank.pipeline import Lists, contrastive_pairs

LISTS = {
    0: ["the lamp is lit", "the lamps are lit"],
    1: ["she burns", "it burns"],
    2: ["i see him", "i see them", "i see he", "i see a lamp"],
    3: ["he may burn", "he can burn"],
}
REFERENCE = ["the lamp is lit now", "it burns", "i see him", "he can burn"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i} ||| {text} ||| LM0= -1 ||| -1" for i, own in LISTS.items() for text in own]
    Path("dev.nbest").write_text("\n".join(lines) + "\n")
    Path("dev.docids").write_text("x\nx\nx\ny\n")
    Path("dev.en").write_text("\n".join(REFERENCE) + "\n")


def items(**options: Any) -> list[dict[str, object]]:
    lists = Lists("dev.nbest", "dev.docids")
    contrastive_pairs(lists, ["dev.en"], "out", notices=Notices(), **options)
    return [json.loads(line) for line in Path("out").read_text().splitlines()]


def test_items_have_the_sentences_of_the_reference_before_them() -> None:
    found = items(context=1)
    assert found == [
        {
            "id": "x:2",
            "context": ["the lamp is lit now"],
            "right": "it burns",
            "wrong": ["she burns"],
            "phenomenon": "pronouns",
            "pronoun": "it",
        },
        {
            "id": "x:3",
            "context": ["it burns"],
            "right": "i see him",
            "wrong": ["i see them", "i see he"],
            "phenomenon": "pronouns",
            "pronoun": "him",
        },
    ]
    assert [own["context"] for own in items(context=0)] == [[], []]
    assert items()[1]["context"] == REFERENCE[:2]
    assert [own.right for own in read_contrastive("out", Notices())] == [b"it burns", b"i see him"]


def test_classes_of_words_and_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = items(word_class="auxiliaries")
    assert (found["id"], found["right"], found["context"]) == ("y:1", "he can burn", [])
    assert "pronoun" not in found
    Path("own").write_text("may\ncan\n")
    assert items(word_class="modal", word_lists={"modal": "own"})[0]["phenomenon"] == "modal"
    command = "lm-eval pairs --kbest dev.nbest --docs dev.docids --ref dev.en --out out"
    assert run([*command.split(), "--context", "2"]) == 0
    assert "2 items of 4 sentences; right words: it 1, him 1" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--class pronoun: did you mean 'pronouns'"):
        items(word_class="pronoun")


def test_lists_without_items_write_nothing() -> None:
    Path("out").unlink(missing_ok=True)
    Path("own").write_text("lamp\n")
    with pytest.raises(InputError, match=r"dev\.nbest: expected candidates that differ in one"):
        items(word_class="own", word_lists={"own": "own"})
    assert not Path("out").exists()
