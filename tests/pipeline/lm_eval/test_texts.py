"""Texts read once for several models: ids of each, sentences as they were."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from lm.checkpoint import SavedModel
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline.lm_eval.texts import EvaluationText

LINES = b"the lamp is  caf\xc3\xa9\n\nit burns\nunheard\n"


def test_a_text_has_the_ids_of_each_model_and_its_own_sentences(
    tmp_path: Path, saved: Mapping[str, SavedModel]
) -> None:
    path = tmp_path / "text"
    path.write_bytes(LINES)
    text = EvaluationText.read(path, "blank", Notices())
    assert [text.sentence(s) for s in range(3)] == ["the lamp is café", "it burns", "unheard"]
    one, notices = saved["codclm"], Notices()
    corpus, oov = text.encoded(one, "m", notices)
    truth = one.encode(LINES.split(b"\n")[:-1])
    assert corpus.tokens.tolist() == truth.tokens.tolist()
    assert corpus.documents.tolist() == truth.documents.tolist() == [0, 1, 3]
    assert oov == 2 / 7
    assert notices.lines() == []  # its training text had 25 %


def test_a_text_without_words_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\n\n")
    with pytest.raises(InputError, match="found no words"):
        EvaluationText.read(path, "blank", Notices())
