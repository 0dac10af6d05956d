"""What a training run saves, and how its failures are told."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.training import TRAIN, VALID, VOCABULARY

from lm.checkpoint import load_model
from lm.evaluation import LogNormalisers
from lm.model import Config, DocumentLM
from lm.training.settings import Report
from lm.training.trainer import Settings, Trainer
from rerank.errors import RerankError, StoppedEarly
from rerank.files.interrupts import Interrupts
from rerank.pipeline.curves import LearningCurve
from rerank.pipeline.training import _measured, validations
from rerank.pipeline.training_texts import TrainingTexts

TEXTS = TrainingTexts(TRAIN, VALID, VOCABULARY)
REPORT = Report(3, 0.5, 1.0, 10.0, 4.0, 60.0, True)


def trainer_of(**changes: object) -> Trainer:
    model = DocumentLM.seeded(Config("hrnnlm", len(VOCABULARY), 4, 5), 1)
    settings = Settings(**{"epochs": 1, "streams": 2, "negatives": 0, **changes})  # type: ignore[arg-type]
    return Trainer(model, TRAIN, VALID, settings=settings)


def test_the_folder_has_the_best_model_of_the_last_stage(tmp_path: Path) -> None:
    trainer = trainer_of(levels="two-step")
    curve = LearningCurve(tmp_path / "curve")
    reports = list(validations(trainer, tmp_path / "lm", TEXTS, {"by": "us"}, curve))
    best = min((r.valid_perplexity, r.update) for r in reports if r.stage == "words")
    about = load_model(tmp_path / "lm").about
    assert (about["valid_perplexity"], about["update"], about["by"]) == (*best, "us")
    assert "stage" not in about
    assert len((tmp_path / "curve").read_bytes().splitlines()) == 1 + len(reports)
    assert (tmp_path / "lm" / "resume" / "state.json").exists()


def test_what_is_saved_of_a_validation_is_its_figures() -> None:
    figures = {"valid_perplexity": 60.0, "update": 3}
    assert _measured(REPORT) == figures
    other = replace(REPORT, log_z=LogNormalisers(0.5, 0.25), stage="sentences")
    log_z = {"mean": 0.5, "sd": 0.25}
    assert _measured(other) == {**figures, "log_z": log_z, "stage": "sentences"}


def test_a_run_that_is_asked_to_stop_saves_its_state_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(self: Interrupts) -> Interrupts:
        self.asked = True
        return self

    monkeypatch.setattr(Interrupts, "__enter__", asked)
    with pytest.raises(StoppedEarly, match="stopped, state saved"):
        list(validations(trainer_of(), tmp_path, TEXTS, {}, None))
    assert (tmp_path / "resume" / "state.json").exists()


def test_a_model_that_cannot_be_saved_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lm.checkpoint.save_model", full)
    with pytest.raises(RerankError, match="the model cannot be saved: no space left on device"):
        list(validations(trainer_of(), tmp_path, TEXTS, {}, None))
