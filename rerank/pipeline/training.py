"""A training run from update to update: what is saved of it, and when it stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.run import progress
from rerank.errors import RerankError, StoppedEarly
from rerank.files.interrupts import Interrupts

if TYPE_CHECKING:
    from lm.training.trainer import Report, Trainer
    from rerank.commands.texts import TrainingTexts
    from rerank.pipeline.curves import LearningCurve

SAVE_SECONDS = 300.0


def validations(
    trainer: Trainer,
    out: Path,
    texts: TrainingTexts,
    about: dict[str, object],
    rows: LearningCurve | None,
) -> Iterator[Report]:
    """Reports of a run, whose best model, learning curve and state the first process saves."""
    from lm.checkpoint import save_model
    from lm.training.state import save_training

    group, state, first = trainer.processes, out / "resume", trainer.processes.rank == 0
    with _failures(out):
        out.mkdir(parents=True, exist_ok=True)
    updates, saved = trainer.run(), trainer.progress.seconds
    if first:
        updates = progress(updates, label="training", unit="updates", total=trainer.updates_left())
    with Interrupts() as interrupts, _failures(out):
        if not trainer.progress.update:  # a folder with a model has a state, whenever it is killed
            save_training(state, trainer)
        for item in updates:
            if item is not None:
                yield item
            if first and item is not None and item.best:
                own = {**about, **_measured(item)}
                save_model(out, trainer.validated, texts.vocabulary, own, texts.side)
            if first and item is not None and rows:
                rows.add(item)
            if item is not None or trainer.progress.seconds - saved > SAVE_SECONDS:
                save_training(state, trainer)
                saved = trainer.progress.seconds
            if group.any(interrupts.asked) and not trainer.progress.finished:
                save_training(state, trainer)
                raise StoppedEarly(
                    f"{out}: stopped, state saved; to continue, run the same command with --resume"
                )


@contextmanager
def _failures(out: Path) -> Iterator[None]:
    """Errors of a run as RerankError with its folder: failed saving, diverged training."""
    from lm.scoring import ScoreError

    try:
        yield
    except ScoreError as fault:
        raise RerankError(f"{out}: training diverged: {fault}; lower --learning-rate") from None
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise RerankError(
            f"{out}: the model cannot be saved: {(fault.strerror or str(fault)).lower()}"
        ) from None


def _measured(report: Report) -> dict[str, object]:
    """What is saved of the validation of a model."""
    stage = {} if report.stage == "words" else {"stage": report.stage}
    log_z = {} if report.log_z is None else {"log_z": asdict(report.log_z)}
    return {
        "valid_perplexity": report.valid_perplexity,
        "update": report.update,
        **stage,
        **log_z,
    }
