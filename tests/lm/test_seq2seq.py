"""Sequence-to-sequence transformers of Hugging Face against their own loss in float64."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import seq2seq

from lm.backend import Backend
from lm.seq2seq import SourceAndTarget, TranslationEngine, TranslationModel, open_translation_model

SOURCES = ["the lamp is lit", "no sea", "she is old . he reads at night"]
TARGETS = ["it gives light", "it gives", "", "it reads", "it gives light at night", "no E<s>"]


def opened(folder: Path, kind: str) -> TranslationModel:
    languages = seq2seq.LANGUAGES[kind].split(",")[1:]
    given: dict[str, Any] = dict(language.split("=") for language in languages)
    given.pop("prefix", None)
    return open_translation_model(folder, **given)


@pytest.fixture(scope="module", params=seq2seq.LANGUAGES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seq2seq.save(tmp_path_factory.mktemp(kind), kind)


def pairs(model: TranslationModel, source: str, targets: list[str]) -> list[SourceAndTarget]:
    (ids,) = model.encode([source])
    framed = [model.target.around([one]) for one in model.encode(targets, target=True)]
    return [SourceAndTarget(model.source.around([ids]), one) for one in framed]


@pytest.mark.parametrize("deterministic", [False, True], ids=["batched", "deterministic"])
def test_scores_are_the_loss_of_the_model(
    folder: Path, kind: str, deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(folder, kind)
    engine = TranslationEngine(model, Backend(deterministic=deterministic))
    engine.check()
    languages = seq2seq.LANGUAGES[kind].replace(",prefix=put into English:", "")
    requests = [pairs(model, source, TARGETS) for source in SOURCES]
    requests += [pairs(model, source, TARGETS[:1]) for source in TARGETS]  # a translation of each
    result = engine.scores(requests)
    for source, scores in zip(SOURCES, result[:3], strict=True):
        truth = [seq2seq.log_p(folder, languages, [source], [target]) for target in TARGETS]
        np.testing.assert_allclose(scores, truth, atol=1e-4)
    truth = [seq2seq.log_p(folder, languages, [target], TARGETS[:1]) for target in TARGETS]
    np.testing.assert_allclose(np.concatenate(result[3:]), truth, atol=1e-4)
    assert engine.counts.tokens == sum(len(one.target) for request in requests for one in request)
    assert engine.counts.nodes < engine.counts.tokens
    monkeypatch.setattr("lm.seq2seq.STORED", 0)  # lists may be parted
    again = TranslationEngine(model, Backend()).scores(requests)
    np.testing.assert_allclose(np.concatenate(again), np.concatenate(result), atol=1e-5)
