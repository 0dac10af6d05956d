"""Training learns, and a run that was interrupted is the run that was not, bit for bit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.models import enlarged
from support.training import (
    TRAIN,
    VALID,
    VOCABULARY,
    WORDS,
    figures,
    interrupted,
    same,
    tensors,
)

from lm.batches import Segment, epoch_order, segments
from lm.corpus import Corpus, encode
from lm.evaluation import perplexity
from lm.model import Config, DocumentLM
from lm.training.trainer import Report, Settings, Trainer

SETTINGS = Settings(
    epochs=2,
    seed=5,
    streams=3,
    segment=2,
    learning_rate=1e-2,
    dropout=0.2,
    context_dropout=0.2,
    negatives=6,
    validations=2,
)


def repetitive(documents: int, seed: int) -> Corpus:
    """Documents of 3–6 sentences of one word, which is the same in all of them: one of four."""
    rng = np.random.default_rng(seed)
    lines: list[bytes] = []
    for _ in range(documents):
        lines += [WORDS[rng.integers(4)]] * int(rng.integers(3, 7)) + [b""]
    return encode(lines, VOCABULARY)


def trainer_of(
    name: str,
    settings: Settings = SETTINGS,
    recurrence: str = "lstm",
    train: Corpus = TRAIN,
    head: str | None = None,
) -> Trainer:
    layers = {"lstm": 1, "cifg": 2}[recurrence]
    config = Config(name, len(VOCABULARY), 6, 8, recurrence, layers, head=head)
    model = DocumentLM.seeded(config, settings.seed)
    return Trainer(model, train, VALID, settings=settings)


@pytest.mark.parametrize(
    ("name", "recurrence", "precision"),
    [
        ("codclm", "lstm", "float32"),
        ("codclm", "lstm", "bfloat16"),
        ("ccdclm", "lstm", "float32"),
        ("ccdclm", "cifg", "float32"),
        ("hrnnlm", "lstm", "bfloat16"),
    ],
)
def test_an_interrupted_run_makes_the_updates_of_an_uninterrupted_one(
    name: str, recurrence: str, precision: str, tmp_path: Path
) -> None:
    def make() -> Trainer:
        return trainer_of(name, replace(SETTINGS, precision=precision), recurrence)

    whole = make()
    expected = [figures(report) for report in whole.run()]
    n = whole.updates_per_epoch
    assert len(expected) == 2 * n
    for updates in (n // 2, n, 2 * n):
        resumed, reports = interrupted(make, tmp_path / str(updates), updates)
        assert same(tensors(resumed), tensors(whole)), f"left after update {updates}"
        assert reports == expected, f"left after update {updates}"


REGULARISED = replace(
    SETTINGS,
    locked_dropout=0.3,
    word_dropout=0.2,
    weight_dropout=0.4,
    context_noise=0.6,
    averaging=0.5,
)


@pytest.mark.parametrize(
    ("name", "recurrence", "precision"),
    [("codclm", "lstm", "bfloat16"), ("ccdclm", "cifg", "float32"), ("hrnnlm", "lstm", "float32")],
)
def test_a_regularised_run_can_be_resumed(
    name: str, recurrence: str, precision: str, tmp_path: Path
) -> None:
    def make() -> Trainer:
        return trainer_of(name, replace(REGULARISED, precision=precision), recurrence)

    whole = make()
    expected = [figures(report) for report in whole.run()]
    resumed, reports = interrupted(make, tmp_path, 3)
    assert same(tensors(resumed), tensors(whole))
    assert reports == expected


@pytest.mark.parametrize(
    "field", ["locked_dropout", "word_dropout", "weight_dropout", "context_noise"]
)
def test_every_kind_of_noise_makes_another_run(field: str) -> None:
    value = getattr(REGULARISED, field)
    ended = []
    for settings in (SETTINGS, replace(SETTINGS, **{field: value})):
        trainer = trainer_of("codclm", replace(settings, epochs=1))
        for _ in trainer.run():
            pass
        ended.append(tensors(trainer))
    assert not same(*ended)


def test_context_noise_costs_and_changes_nothing_without_context() -> None:
    ended = []
    for noise in (0.0, 0.9):
        trainer = trainer_of("rnnlm", replace(SETTINGS, context_noise=noise, epochs=1))
        for _ in trainer.run():
            pass
        ended.append(tensors(trainer))
    assert same(*ended)


def test_averaging_leaves_training_alone_and_the_average_is_validated() -> None:
    plain, averaged = (
        trainer_of("codclm", replace(SETTINGS, averaging=share)) for share in (0.0, 0.5)
    )
    reports = [[report for report in trainer.run() if report] for trainer in (plain, averaged)]
    assert same(plain.model.state_dict(), averaged.model.state_dict())
    assert plain.validated is plain.model
    assert averaged.validated is not averaged.model
    measured = [perplexity(trainer.validated, VALID).perplexity for trainer in (plain, averaged)]
    assert measured == [report[-1].valid_perplexity for report in reports]
    assert measured[0] != measured[1]


def forget_contexts(trainer: Trainer) -> None:
    trainer.contexts = trainer.model.context.start(trainer.streams).detach()


def forget_moments(trainer: Trainer) -> None:
    trainer.optimiser.load_state_dict({**trainer.optimiser.state_dict(), "state": {}})


def forget_position(trainer: Trainer) -> None:
    trainer.progress.position = 0


def forget_noise(trainer: Trainer) -> None:
    trainer.progress.update -= 1


def forget_average(trainer: Trainer) -> None:
    assert trainer.average is not None
    trainer.average.model.load_state_dict(trainer.model.state_dict())


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("codclm", forget_contexts),
        ("ccdclm", forget_contexts),
        ("hrnnlm", forget_contexts),
        ("codclm", forget_moments),
        ("ccdclm", forget_position),
        ("hrnnlm", forget_noise),
        ("codclm", forget_average),
    ],
)
def test_a_resumed_run_that_forgets_anything_is_another_run(
    name: str, damage: Callable[[Trainer], None], tmp_path: Path
) -> None:
    settings = replace(SETTINGS, averaging=0.5)
    whole = trainer_of(name, settings)
    for _ in whole.run():
        pass
    resumed, _ = interrupted(lambda: trainer_of(name, settings), tmp_path, 2, damage)
    assert not same(tensors(resumed), tensors(whole))


@pytest.mark.parametrize("name", ["rnnlm", "drnnlm"])
def test_models_of_every_context_can_be_resumed(name: str, tmp_path: Path) -> None:
    whole = trainer_of(name)
    for _ in whole.run():
        pass
    resumed, _ = interrupted(lambda: trainer_of(name), tmp_path, 3)
    assert same(tensors(resumed), tensors(whole))


@pytest.mark.parametrize(
    ("head", "objective"),
    [
        ("classes", "likelihood"),
        ("self-normalised", "likelihood"),
        ("self-normalised", "nce"),
        ("unbiased", "nce"),
    ],
)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_models_of_every_head_and_objective_can_be_resumed(
    head: str, objective: str, precision: str, tmp_path: Path
) -> None:
    def make() -> Trainer:
        settings = replace(SETTINGS, precision=precision, objective=objective)
        return trainer_of("codclm", settings, head=head)

    whole = make()
    expected = [figures(report) for report in whole.run()]
    resumed, reports = interrupted(make, tmp_path, 3)
    assert same(tensors(resumed), tensors(whole))
    assert reports == expected


def test_a_finished_run_is_not_gone_on_with(tmp_path: Path) -> None:
    trainer = trainer_of("rnnlm")
    reports = list(trainer.run())
    assert reports[-1] is not None
    assert trainer.progress.finished
    assert list(trainer.run()) == []


def learn(name: str, negatives: int, epochs: int) -> tuple[Trainer, list[Report]]:
    """A run without noise over repetitive documents, one report an epoch."""
    settings = Settings(
        epochs=epochs,
        streams=8,
        segment=6,
        learning_rate=0.05,
        dropout=0.0,
        context_dropout=0.0,
        negatives=negatives,
        validations=1,
    )
    model = DocumentLM.seeded(Config(name, len(VOCABULARY), 8, 16), 1)
    trainer = Trainer(model, repetitive(40, 3), repetitive(12, 1), settings=settings)
    return trainer, [report for report in trainer.run() if report]


@pytest.mark.parametrize(
    ("name", "negatives"),
    [("rnnlm", 6), ("drnnlm", 6), ("codclm", 6), ("ccdclm", 6), ("hrnnlm", 6), ("codclm", 0)],
)
def test_the_loss_falls(name: str, negatives: int) -> None:
    trainer, reports = learn(name, negatives, epochs=7)
    assert len(reports) == 7
    assert reports[-1].training_nats < 0.5 * reports[0].training_nats
    assert reports[-1].valid_perplexity < 4 < len(VOCABULARY)
    best = min(reports, key=lambda report: report.valid_perplexity)
    assert best.best
    assert trainer.progress.best == pytest.approx(np.log(best.valid_perplexity))
    measured = perplexity(trainer.model, trainer.valid).perplexity
    assert measured == pytest.approx(reports[-1].valid_perplexity)


def test_a_model_with_context_learns_what_a_model_without_it_cannot_know() -> None:
    """Without context a word costs ln 4 nats and `</s>` nothing: perplexity 2 at best."""
    without, given = (learn(name, 0, epochs=20)[1][-1] for name in ("rnnlm", "codclm"))
    assert 1.9 < without.valid_perplexity < 2.3
    assert given.valid_perplexity < 1.5


@pytest.mark.parametrize(
    ("name", "head"),
    [
        *((name, None) for name in ("rnnlm", "drnnlm", "codclm", "ccdclm", "hrnnlm")),
        ("codclm", "classes"),
    ],
)
def test_training_reads_the_text_as_evaluation_does(name: str, head: str | None) -> None:
    """At rate zero and without noise the loss of an epoch is the text's: no segment forgets."""
    still = replace(
        SETTINGS,
        epochs=1,
        validations=1,
        learning_rate=0.0,
        dropout=0.0,
        context_dropout=0.0,
        negatives=0,
    )
    trainer = trainer_of(name, still, head=head)
    enlarged(trainer.model)
    report = [report for report in trainer.run() if report][-1]
    expected = perplexity(trainer.model, TRAIN).nats_per_token
    assert report.training_nats == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("objective", ["likelihood", "nce"])
def test_runs_with_one_seed_are_one_run_and_another_seed_is_another(objective: str) -> None:
    ended = []
    for seed in (5, 5, 6):
        trainer = trainer_of("ccdclm", replace(SETTINGS, seed=seed, objective=objective))
        for _ in trainer.run():
            torch.rand(1)  # nothing depends on the global generator
        ended.append(tensors(trainer))
    assert same(ended[0], ended[1])
    assert not same(ended[0], ended[2])


def test_every_epoch_reads_every_sentence_in_a_different_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    trainer = trainer_of("rnnlm", replace(SETTINGS, epochs=3))
    update = trainer._update

    def watched(segments: Sequence[Segment]) -> None:
        for segment in segments:
            read.extend(segment.sentences[segment.sentences >= 0].tolist())
        update(segments)

    monkeypatch.setattr(trainer, "_update", watched)
    for _ in trainer.run():
        pass
    n = TRAIN.n_sentences
    epochs = [read[i * n : (i + 1) * n] for i in range(2)]
    assert all(sorted(epoch) == list(range(n)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_the_learning_rate_rises_to_its_peak_and_falls_towards_zero() -> None:
    trainer = trainer_of("rnnlm", replace(SETTINGS, epochs=12))
    rates = []
    for _ in trainer.run():
        rates.append(trainer.optimiser.param_groups[0]["lr"])
    peak = rates.index(max(rates))
    assert 0 < peak < len(rates) / 10
    assert rates[0] < 0.5 * SETTINGS.learning_rate < max(rates) <= SETTINGS.learning_rate
    assert all(a > b for a, b in zip(rates[peak:], rates[peak + 1 :], strict=False))
    assert rates[-1] < 0.05 * SETTINGS.learning_rate


def test_a_time_limit_ends_a_run_with_a_report() -> None:
    trainer = trainer_of("rnnlm", replace(SETTINGS, epochs=10**6, minutes=1e-9))
    (report,) = list(trainer.run())
    assert report is not None
    assert report.update == 1
    assert trainer.share_done() == 1.0


def test_half_precision_keeps_weights_and_contexts_in_float32() -> None:
    trainer = trainer_of("hrnnlm", replace(SETTINGS, precision="bfloat16"))
    for _ in zip(range(3), trainer.run(), strict=False):
        pass
    assert {tensor.dtype for tensor in tensors(trainer).values()} == {torch.float32}


def test_validation_leaves_no_trace_in_the_training() -> None:
    often, seldom = (trainer_of("ccdclm", replace(SETTINGS, validations=v)) for v in (9, 1))
    counts = [sum(report is not None for report in t.run()) for t in (often, seldom)]
    assert counts[0] > counts[1]
    assert same(tensors(often), tensors(seldom))


def test_a_report_tells_the_loss_since_the_report_before_it() -> None:
    """A mean over the updates between: reports of single updates average to that of all."""
    each, whole = (
        trainer_of("codclm", replace(SETTINGS, epochs=1, validations=v)) for v in (10**6, 1)
    )
    order = epoch_order(TRAIN.n_documents, SETTINGS.seed, 0)
    parts = segments(TRAIN, order, streams=each.streams, length=SETTINGS.segment)
    lengths = np.diff(TRAIN.sentences) + 1
    counts = [lengths[part.sentences[part.sentences >= 0]].sum() for part in parts]
    losses = [report.training_nats for report in each.run() if report]
    (report,) = (report for report in whole.run() if report)
    assert report.training_nats == pytest.approx(np.average(losses, weights=counts))


def test_a_text_without_sentences_is_refused() -> None:
    empty = encode([], VOCABULARY)
    with pytest.raises(ValueError, match="at least one sentence"):
        trainer_of("rnnlm", train=empty)


def test_of_passages_the_loss_is_that_of_the_last_sentence_given_the_others() -> None:
    """Before the first update, it is what evaluation counts of the same passages."""
    passages = TRAIN.in_passages(2)
    settings = replace(SETTINGS, dropout=0.0, context_dropout=0.0, negatives=0, validations=1)
    settings = replace(settings, epochs=1, streams=100, learning_rate=0.0)
    trainer = trainer_of("drnnlm", settings, train=passages)
    enlarged(trainer.model)
    expected = perplexity(trainer.model, passages)
    reports = [report for report in trainer.run() if report is not None]
    assert trainer.updates_per_epoch > 1
    assert reports[-1].training_nats == pytest.approx(expected.nats_per_token, rel=1e-5)
    assert expected.nats_per_token != pytest.approx(
        perplexity(trainer.model, replace(passages, predicted=None)).nats_per_token, rel=1e-3
    )
