"""Capitals at the beginning of sentences; sacremoses is the truth."""

from pathlib import Path

import pytest
from sacremoses import MosesDetruecaser, MosesTruecaser

from rerank.corpus.casing import detruecased, truecased
from rerank.errors import InputError

LINES = ["The lamp is in Rome .", "rome . the END", "", "( a lamp ) ! it is"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "truecase.model"
    text = [line.split() for line in ["in Rome the lamp is lit .", "so the lamp , in Rome ."] * 3]
    MosesTruecaser().train(text, save_to=str(path))
    return path


def test_words_have_the_case_of_the_model(model: Path) -> None:
    change = MosesTruecaser(load_from=str(model)).truecase
    found = truecased([line.encode() for line in LINES], model)
    assert found == [change(line, return_str=True).encode() for line in LINES]
    assert found[:2] == [b"the lamp is in Rome .", b"Rome . the END"]


def test_sentences_begin_with_capitals() -> None:
    change = MosesDetruecaser().detruecase
    found = detruecased([line.encode() for line in LINES])
    assert found == [change(line, return_str=True).encode() for line in LINES]
    assert found[1] == b"Rome . The END"


@pytest.mark.parametrize("content", [b"the (1/2) The\n", b"the lamp\n", b"\xff\xfe (1/1)\n", None])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"model: expected .*truecase model"):
        truecased([b"a"], path)
