"""Training as papers print it: independent segments, stopping, halving, two steps, resumed."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from support.models import config_of, enlarged
from support.training import TRAIN, VALID, VOCABULARY, figures, interrupted, same, tensors, text
from torch import Tensor, nn

from lm.batches import SEGMENTS
from lm.corpus import Corpus
from lm.evaluation import perplexity
from lm.model import Config, DocumentLM
from lm.reading import read
from lm.training import trainer as training
from lm.training.recipes import FAMILIES
from lm.training.trainer import Report, Settings, Trainer

FEW = text(4, 0)
PAPER = Settings(
    epochs=1,
    seed=5,
    streams=1,
    segment=2,
    learning_rate=0.1,
    weight_decay=0.0,
    dropout=0.0,
    context_dropout=0.0,
    negatives=0,
    validations=1,
    optimiser="sgd",
    schedule="constant",
    segments="independent",
)


def trainer_of(name: str = "ccdclm", train: Corpus = TRAIN, **changes: Any) -> Trainer:
    config = config_of(name, len(VOCABULARY), 4, 5, recurrence="lstm", tied=False)
    settings = replace(PAPER, **changes)
    return Trainer(DocumentLM.seeded(config, 5), train, VALID, settings=settings)


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in trainer.model.named_parameters()}


def gradients(trainer: Trainer, *, first: int = 1) -> dict[str, Tensor]:
    """Of −log p summed over the first segments of the epoch, each of which begins a document."""
    model, settings = trainer.model, trainer.settings
    parts = SEGMENTS["independent"](
        trainer.train, streams=1, length=settings.segment, seed=settings.seed, epoch=0
    )
    model.zero_grad()
    for _, part in zip(range(first), parts, strict=False):
        reading = read(model, trainer.train, part, model.context.start(1))
        logits = reading.features @ model.head.weight().T + model.head.bias
        log_p = torch.log_softmax(logits, dim=1)[range(len(logits)), reading.targets]
        torch.autograd.backward(reading.auxiliary_loss - log_p.sum())
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def clipped(found: dict[str, Tensor], norm: float) -> dict[str, Tensor]:
    total = math.sqrt(sum(float(g.square().sum()) for g in found.values()))
    return {name: g * min(1.0, norm / total) for name, g in found.items()}


# One update


@pytest.mark.parametrize(
    ("optimiser", "decay"), [("sgd", 0.0), ("sgd", 0.01), ("adagrad", 0.0), ("adadelta", 0.0)]
)
def test_an_update_is_that_of_the_loss_summed_over_a_segment_and_clipped(
    optimiser: str, decay: float
) -> None:
    trainer = trainer_of(optimiser=optimiser, weight_decay=decay, clip=0.5)
    before, found = weights(trainer), gradients(trainer)
    assert math.sqrt(sum(float(g.square().sum()) for g in found.values())) > 0.5
    next(trainer.run())
    for name, g in clipped(found, 0.5).items():
        steps = {
            "sgd": g + decay * before[name],
            "adagrad": g.sign(),
            "adadelta": g * (1e-6 / (0.05 * g**2 + 1e-6)) ** 0.5,
        }
        moved = before[name] - trainer.model.get_parameter(name).detach()
        sure = (g == 0) | (g.abs() > 1e-6)  # others are rounding errors, whose sign says nothing
        expected = 0.1 * steps[optimiser]
        torch.testing.assert_close(moved[sure], expected[sure], rtol=1e-3, atol=2e-6)


def test_levels_that_are_trained_apart_are_clipped_apart() -> None:
    """The word level's update is as large as if there were no sentence level, and so is that's."""
    trainer = trainer_of("hrnnlm", clip=0.5, levels="separate")
    before, found = weights(trainer), gradients(trainer)
    next(trainer.run())
    upper = ("context.upper.", "context.next_words.")
    for level in (True, False):
        own = {name: g for name, g in found.items() if name.startswith(upper) == level}
        for name, g in clipped(own, 0.5).items():
            moved = before[name] - trainer.model.get_parameter(name)
            torch.testing.assert_close(moved, 0.1 * g, rtol=1e-3, atol=1e-7)


def test_accumulated_segments_are_one_update_of_their_mean_gradient() -> None:
    trainer = trainer_of(accumulate=3, clip=0.0)
    before, found = weights(trainer), gradients(trainer, first=3)
    next(trainer.run())
    for name, g in found.items():
        moved = before[name] - trainer.model.get_parameter(name)
        torch.testing.assert_close(moved, 0.1 * g / 3, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", ["codclm", "hrnnlm"])
def test_accumulated_batches_give_the_run_of_a_larger_batch(name: str) -> None:
    """Two independent segments side by side, or one after the other."""
    runs = []
    for streams, accumulate in ((2, 1), (1, 2)):
        trainer = trainer_of(name, streams=streams, accumulate=accumulate)
        reports = [report for report in trainer.run() if report]
        runs.append((weights(trainer), reports[-1].training_nats, trainer.updates_per_epoch))
    (one, loss, n), (two, other, m) = runs
    assert n == m
    assert loss == pytest.approx(other, rel=1e-5)
    for key, tensor in one.items():
        torch.testing.assert_close(tensor, two[key], rtol=1e-4, atol=1e-6)


# Independent segments


@pytest.mark.parametrize("name", ["ccdclm", "drnnlm", "hrnnlm"])
@pytest.mark.parametrize("length", [1, 2, 10])
def test_independent_segments_are_read_as_documents_of_their_own(name: str, length: int) -> None:
    """At rate zero the loss of an epoch is that of the text with a boundary at each segment."""
    trainer = trainer_of(name, segment=length, learning_rate=0.0)
    enlarged(trainer.model)
    cuts = {
        begin
        for first, end in zip(TRAIN.documents, TRAIN.documents[1:], strict=False)
        for begin in range(first, end, length)
    }
    documents = np.array(sorted({*cuts, TRAIN.n_sentences}))
    apart = Corpus(TRAIN.tokens, TRAIN.sentences, documents)
    (report,) = (report for report in trainer.run() if report)
    expected = perplexity(trainer.model, apart).nats_per_token
    assert report.training_nats == pytest.approx(expected, rel=1e-5)
    whole = perplexity(trainer.model, TRAIN).nats_per_token
    assert (report.training_nats == pytest.approx(whole, rel=1e-5)) == (length == 10)


# When a run ends


def losses(monkeypatch: pytest.MonkeyPatch, found: list[float]) -> None:
    """Let validations measure these nats per token, one after the other."""
    values = iter(found)

    def measured(model: DocumentLM, corpus: Corpus) -> object:
        return replace(perplexity(model, corpus), nats=next(values) * (len(corpus.tokens) + n))

    n = VALID.n_sentences
    monkeypatch.setattr(training, "perplexity", measured)


def test_a_run_ends_when_so_many_validations_have_brought_no_new_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses(monkeypatch, [3.0, 2.0, 2.5, 1.0, 1.0, 1.1, 1.2, 0.5])
    trainer = trainer_of("rnnlm", epochs=50, patience=3, learning_rate=1e-9)
    reports = [report for report in trainer.run() if report]
    assert [report.best for report in reports] == [True, True, False, True, False, False, False]
    assert trainer.progress.finished
    assert trainer.progress.best == pytest.approx(1.0)


def test_the_rate_is_halved_after_an_epoch_of_little_gain_and_the_second_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses(monkeypatch, [3.0, 2.0, 1.999, 1.8, 1.9, 0.1])
    trainer = trainer_of("rnnlm", epochs=50, schedule="halving")
    reports = [report for report in trainer.run() if report]
    assert [report.rate for report in reports] == [0.1, 0.1, 0.1, 0.05, 0.05]
    assert reports[-1].epoch == 5.0
    assert trainer.progress.finished


def test_halving_looks_at_whole_epochs_however_often_it_validates() -> None:
    trainer = trainer_of("rnnlm", epochs=2, schedule="halving", validations=2)
    assert trainer.updates_per_epoch == 15  # half of them: 7
    assert [report.update for report in trainer.run() if report] == [7, 14, 15, 21, 28, 30]


# Two steps


def two_step(**changes: Any) -> Trainer:
    two = {"levels": "two-step", "epochs": 2, "validations": 2}
    return trainer_of("hrnnlm", FEW, **{**two, **changes})


def test_two_steps_train_the_sentence_level_and_freeze_it() -> None:
    trainer = two_step()
    upper = ("context.upper.", "context.next_words.")
    start, snapshots = weights(trainer), []
    reports: list[Report] = []
    for report in trainer.run():
        if report:
            reports.append(report)
            snapshots.append(weights(trainer))
    stages = [report.stage for report in reports]
    assert stages == sorted(stages)
    assert set(stages) == {"sentences", "words"}
    first = snapshots[stages.index("words") - 1]  # when the word level begins
    moved = {name for name in start if not torch.equal(start[name], first[name])}
    assert moved
    assert all(name.startswith(upper) for name in moved)
    changed = {name for name in start if not torch.equal(first[name], snapshots[-1][name])}
    assert changed
    assert not any(name.startswith(upper) for name in changed)
    assert reports[-1].best == (
        reports[-1].valid_perplexity
        == min(report.valid_perplexity for report in reports if report.stage == "words")
    )


def test_the_second_step_begins_from_the_best_weights_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = iter([3.0, 1.0, 2.0, 2.5, 2.6])
    monkeypatch.setattr(training, "sentence_level_nats", lambda model, corpus: next(values))
    trainer = two_step()
    seen = []
    for report in trainer.run():
        if report:
            seen.append((report, weights(trainer)))
        if trainer.progress.stage:
            break
    best, last = seen[1], seen[-1]
    assert best[0].best
    assert last[0].stage == "sentences"
    assert all(torch.equal(best[1][name], tensor) for name, tensor in last[1].items())
    assert not torch.equal(
        seen[2][1]["context.next_words.bias"], last[1]["context.next_words.bias"]
    )


def test_stages_have_equal_parts_of_a_time_limit() -> None:
    trainer = two_step(minutes=1e-9, epochs=10**6)
    assert [report.stage for report in trainer.run() if report] == ["sentences", "words"]
    trainer = two_step(minutes=1.0, epochs=10**6)
    trainer.progress.seconds = 15.0
    assert trainer.share_done() == 0.5
    trainer.progress.stage, trainer.progress.first_seconds = 1, 20.0
    trainer.progress.seconds = 50.0
    assert trainer.share_done() == 0.75


def test_the_perplexity_of_the_sentence_level_is_that_of_words_without_order() -> None:
    trainer = two_step(learning_rate=0.0)
    report = next(report for report in trainer.run() if report)
    model, nats, words = trainer.model, 0.0, 0
    with torch.no_grad():
        for first, end in zip(VALID.documents, VALID.documents[1:], strict=False):
            contexts = model.context.start(1)
            for s in range(first, end):
                ids = torch.from_numpy(VALID.tokens[VALID.sentences[s] : VALID.sentences[s + 1]])
                logits = model.context.next_word_logits(contexts)  # type: ignore[operator]
                if s > first:  # no sentence predicts the first one
                    nats -= float(torch.log_softmax(logits, dim=1)[0, ids.long()].sum())
                words += len(ids)
                total = type(contexts).of(model.embedding(ids.long()).sum(0)[None])
                contexts = model.context.advance(contexts, total)
    assert report.valid_perplexity == pytest.approx(math.exp(nats / words), rel=1e-5)


# Sparse parameters


class Table(nn.Module):
    """Scores of words by a table that is used as a sparse parameter."""

    sparse: ClassVar[bool] = True

    def __init__(self, words: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(words, 1))


def test_beside_sgd_a_sparse_parameter_is_moved_by_it_without_decay_or_clipping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = Config("rnnlm", len(VOCABULARY), 4, 5)
    model = DocumentLM.seeded(config, 5)
    hashed = model.head.hashed = Table(len(VOCABULARY))
    loss = model.head.loss

    def with_table(features: Tensor, targets: Tensor, *rest: Any) -> Tensor:
        own = nn.functional.embedding(targets, hashed.table, sparse=True)
        return loss(features, targets, *rest) - 0.5 * own[:, 0]

    monkeypatch.setattr(model.head, "loss", with_table)
    settings = replace(PAPER, weight_decay=0.1, learning_rate=0.02, clip=1e-3)
    trainer = Trainer(model, TRAIN, VALID, settings=settings)
    part = next(trainer._updates(0))[0]
    sentences = part.sentences[part.sentences >= 0]
    ids = [TRAIN.tokens[TRAIN.sentences[s] : TRAIN.sentences[s + 1]] for s in sentences]
    counts = np.bincount(np.concatenate(ids), minlength=len(VOCABULARY)).astype(float)
    counts[2] = len(sentences)  # </s>
    next(trainer.run())
    found = hashed.table.detach()[:, 0].numpy()
    np.testing.assert_allclose(found, 0.02 * 0.5 * counts, rtol=1e-5)
    assert all(p is not hashed.table for p in trainer.optimiser.param_groups[0]["params"])


# Interrupted runs


def paper(family: str, name: str, **changes: Any) -> Callable[[], Trainer]:
    """Makes a tiny run of a family's recipe."""
    values = {**FAMILIES[family]["paper"], **changes}
    known = {name: values[name] for name in Settings.__slots__ if name in values}
    return lambda: trainer_of(name, FEW, **known)


RUNS: dict[str, Callable[[], Trainer]] = {
    "ji": paper("ji", "hrnnlm", epochs=1, segment=3),
    "code": lambda: trainer_of("codclm", FEW, weight_decay=1e-5, accumulate=2),
    "wang-cho": paper("wang-cho", "codclm", epochs=1, streams=2),
    "lin": paper("lin", "hrnnlm", epochs=2),
    "lin's own": paper("lin", "hrnnlm-lin", epochs=2, streams=2),
    "both losses": paper("lin-dual", "hrnnlm-lin-dual", epochs=2, optimiser="muon"),
    "patience": lambda: trainer_of(
        "rnnlm", FEW, epochs=9, patience=1, validations=3, learning_rate=3.0, optimiser="adagrad"
    ),
    "two steps": lambda: two_step(optimiser="adagrad", schedule="annealed"),
    "halving": lambda: two_step(schedule="halving", learning_rate=1e-3),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_left_anywhere_makes_the_updates_of_an_uninterrupted_one(
    run: str, tmp_path: Path
) -> None:
    whole = RUNS[run]()
    expected = [figures(report) for report in whole.run()]
    n = whole.updates_per_epoch
    for updates in {1, n, len(expected) - 1}:
        if updates < len(expected):
            resumed, reports = interrupted(RUNS[run], tmp_path / str(updates), updates)
            assert same(tensors(resumed), tensors(whole)), f"left after update {updates}"
            assert reports == expected, f"left after update {updates}"


def test_a_resumed_run_that_forgets_its_best_weights_is_another_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first validation of the sentence level is its best, and the run is left after it."""

    def forget(trainer: Trainer) -> None:
        trainer.kept = {}

    ended = []
    damages: tuple[Callable[[Trainer], None], ...] = (lambda trainer: None, forget)
    for n, damage in enumerate(damages):
        nats = chain([1.0], repeat(2.0))
        monkeypatch.setattr(training, "sentence_level_nats", lambda *_, nats=nats: next(nats))
        resumed, _ = interrupted(two_step, tmp_path / str(n), 5, damage)
        ended.append(tensors(resumed))
    assert not same(*ended)
