"""Training texts as Ji et al. have them."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.language_models import QUICK, trained, with_texts

from lm.checkpoint import load_model
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline import perplexity


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with 200 sentences to train on and 50 held out."""
    return with_texts(tmp_path, monkeypatch)


def as_of_ji(name: str) -> str:
    """A text with lines of `=` in place of blank ones, and its word `old` as `UNK`."""
    blank = Path(name).read_text(encoding="utf-8")
    Path(f"ji-{name}").write_text(
        blank.replace("\n\n", "\n====\n").replace("old", "UNK"), encoding="utf-8"
    )
    Path(f"unk-{name}").write_text(blank.replace("old", "<unk>"), encoding="utf-8")
    return f"ji-{name}"


def test_data_files_with_equals_lines_and_unk_train_the_model_of_blank_lines_and_the_class(
    here: Path,
) -> None:
    own = replace(QUICK, documents="equals", unknown="UNK")
    files = {name: as_of_ji(f"{name}.txt") for name in ("train", "valid")}
    report = trained(own, "ji", **files)
    plain = trained(QUICK, "plain", train="unk-train.txt", valid="unk-valid.txt")
    assert report.valid_perplexity == plain.valid_perplexity
    vocabulary = load_model(Path("ji")).vocabulary
    assert b"UNK" not in vocabulary.ids
    assert vocabulary == load_model(Path("plain")).vocabulary
    found = perplexity(Path("ji"), files["valid"], notices=Notices(), documents="equals")
    assert found.perplexity == pytest.approx(report.valid_perplexity, rel=1e-6)
    assert found.oov == Path("valid.txt").read_text(encoding="utf-8").count("old")


def test_a_word_for_unknown_words_that_no_text_has_is_refused(here: Path) -> None:
    with pytest.raises(InputError, match=r"train\.txt.*expected the word 'UNK' of --unknown"):
        trained(replace(QUICK, unknown="UNK"))


def test_training_text_without_a_closing_line_is_one_document(here: Path) -> None:
    Path("train.txt").write_text("the lamp is lit\n" * 30, encoding="utf-8")
    notices = Notices()
    trained(replace(QUICK, documents="equals"), valid="train.txt", notices=notices)
    assert "close documents with lines that begin with =" in notices.lines()[0]
