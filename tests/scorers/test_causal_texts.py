"""Sentences and contexts in a model's tokens, told apart from those of the whole text."""

from pathlib import Path
from typing import Any

import pytest
from support import causal

from lm.causal.folder import CausalModel, open_causal_model
from rerank.scorers.causal_options import CausalOptions
from rerank.scorers.causal_texts import CausalTexts

LINES = [["the lamp is lit", "it"], ["", "it gives light"], ["she is old"]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    return open_causal_model(causal.save(tmp_path_factory.mktemp("models") / "gpt"))


def texts(model: CausalModel, **options: Any) -> CausalTexts:
    def too_long(t: int, tokens: int) -> Exception:
        return ValueError(f"{t}: {tokens}")

    chosen = CausalOptions(Path("gpt"), **options)
    return CausalTexts(model, LINES, chosen, too_long=too_long, cut=lambda: None)


@pytest.mark.parametrize(
    ("join", "whole"),
    [
        ("newline", "the lamp is lit\nit gives light\nshe is old\n"),
        ("space", "the lamp is lit it gives light she is old"),
    ],
)
def test_a_document_is_the_tokens_of_its_joined_text(
    model: CausalModel, join: str, whole: str
) -> None:
    own = texts(model, join=join)
    context = own.context(2, (0, 1))
    last = own.sentence(2, 0, first=False)
    assert [model.begin, *model.encode([whole])[0]] == [*context.ids, *last]
    assert context.ends[-1] == len(context.ids)


def test_an_empty_sentence_is_a_newline_or_nothing(model: CausalModel) -> None:
    assert texts(model).sentence(1, 0, first=False) == tuple(model.encode(["\n"])[0])
    assert texts(model, join="space").sentence(1, 0, first=False) == ()


def test_a_context_holds_the_last_whole_sentences_that_fit(model: CausalModel) -> None:
    whole = texts(model).context(2, (0, 1))
    sizes = [end - begin for begin, end in zip((1, *whole.ends), whole.ends, strict=False)]
    for tokens, kept in ((sum(sizes), 2), (sum(sizes) - 1, 1), (sizes[1], 1), (sizes[1] - 1, 0)):
        assert len(texts(model, tokens=tokens).context(2, (0, 1)).ends) == kept
