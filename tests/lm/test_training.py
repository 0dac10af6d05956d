"""Training: updates by their formulas, what is learned, and runs left anywhere and gone on with."""

import json
import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from itertools import accumulate, chain, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.models import config_of, enlarged
from torch import Tensor

from lm.corpus import SEGMENTS, Corpus, encode
from lm.evaluation import perplexity
from lm.model import DocumentLM
from lm.reading import read
from lm.sentences import Rows
from lm.training import trainer as training
from lm.training.processes import ALONE, Processes
from lm.training.settings import FAMILIES, Settings
from lm.training.state import load_training, save_training
from lm.training.trainer import Trainer, Validation
from lm.vocabulary import Vocabulary

WORDS = tuple(b"w%d" % i for i in range(21))
VOCABULARY = Vocabulary(WORDS)


def text(documents: int, seed: int) -> Corpus:
    """Documents of 2–5 sentences, each a stretch of the circle of words, begun at its own word."""
    rng = np.random.default_rng(seed)
    lines: list[bytes] = []
    for _ in range(documents):
        begin = int(rng.integers(21))
        for length in rng.integers(1, 6, size=rng.integers(2, 6)):
            lines.append(b" ".join(WORDS[(begin + i) % 21] for i in range(length)))
        lines.append(b"")
    return encode(lines, VOCABULARY)


TRAIN, VALID = text(8, 0), text(3, 1)
FEW, MANY = text(4, 0), text(9, 0)
QUIET: dict[str, Any] = {"dropout": 0.0, "context_dropout": 0.0, "negatives": 0}
NOISY = Settings(
    epochs=2, seed=5, streams=3, segment=2, learning_rate=1e-2, negatives=6, validations=2
)
NOISY = replace(NOISY, dropout=0.2, context_dropout=0.2)
PLAIN = Settings(
    epochs=1, seed=5, streams=1, segment=2, learning_rate=0.1, weight_decay=0.0, **QUIET
)
PLAIN = replace(PLAIN, validations=1, optimiser="sgd", schedule="constant", segments="independent")
UPPER = ("context.upper.", "context.next_words.")


def trainer_of(
    name: str = "ccdclm",
    settings: Settings = PLAIN,
    train: Corpus = TRAIN,
    *,
    valid: Corpus = VALID,
    processes: Processes = ALONE,
    shape: dict[str, Any] | None = None,
    **changes: Any,
) -> Trainer:
    own = {"recurrence": "lstm", "tied": False, **(shape or {})}
    model = DocumentLM.seeded(config_of(name, len(VOCABULARY), 4, 5, **own), 5)
    settings = replace(settings, **changes)
    return Trainer(model, train, valid, settings=settings, processes=processes)


def finished(trainer: Trainer) -> list[Validation]:
    return [report for report in trainer.run() if report]


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in trainer.model.named_parameters()}


def figures(report: Validation | None) -> tuple[object, ...] | None:
    """A report without what the clock says."""
    return None if report is None else astuple(replace(report, seconds=0, words_per_second=0))


def tensors(trainer: Trainer) -> dict[str, Tensor]:
    """Everything that a run computes."""
    state = dict(trainer.model.state_dict())
    for index, moments in trainer.optimisers["optimiser"].state_dict()["state"].items():
        state |= {f"{index}.{name}": value for name, value in moments.items()}
    if trainer.average is not None:
        averaged = trainer.average.model.state_dict()
        state |= {f"average.{name}": tensor for name, tensor in averaged.items()}
    return {**state, **{f"contexts.{n}": t for n, t in enumerate(trainer.contexts.tensors)}}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def interrupted(
    make: Callable[[], Trainer], folder: Path, updates: int
) -> tuple[Trainer, list[object]]:
    """A run left after so many updates and gone on with by another process's trainer."""
    first = make()
    reports = [figures(report) for _, report in zip(range(updates), first.run(), strict=False)]
    save_training(folder, first)
    torch.manual_seed(99)  # a fresh process has another global generator
    second = make()
    with torch.no_grad():
        for parameter in second.model.parameters():
            parameter.fill_(0.5)
    load_training(folder, second)
    return second, [*reports, *(figures(report) for report in second.run())]


# One update
def gradients(trainer: Trainer) -> dict[str, Tensor]:
    """Of −log p of the first segment of the epoch, which begins a document."""
    model, settings = trainer.model, trainer.settings
    parts = SEGMENTS["independent"](
        trainer.train, streams=1, length=settings.segment, seed=settings.seed, epoch=0
    )
    model.zero_grad()
    reading = read(model, trainer.train, next(parts), model.context.start(1))
    logits = reading.features @ model.head.weight().T + model.head.bias
    log_p = torch.log_softmax(logits, dim=1)[range(len(logits)), reading.targets]
    torch.autograd.backward(reading.auxiliary_loss - log_p.sum())
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def clipped(found: dict[str, Tensor], norm: float) -> dict[str, Tensor]:
    total = math.sqrt(sum(float(g.square().sum()) for g in found.values()))
    return {name: g * min(1.0, norm / total) for name, g in found.items()}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("ccdclm", {"clip": 0.5, "weight_decay": 0.01}),
        ("hrnnlm", {"clip": 0.5, "levels": "separate"}),  # levels are clipped apart
        ("hrnnlm", {"clip": 0.5}),
        ("ccdclm", {"clip": 0.0}),
    ],
)
def test_an_update_is_of_the_loss_of_a_segment_clipped(name: str, changes: dict[str, Any]) -> None:
    trainer = trainer_of(name, **changes)
    settings = trainer.settings
    before, result = weights(trainer), gradients(trainer)
    next(trainer.run())
    apart = settings.levels == "separate"
    groups = [
        {n: g for n, g in result.items() if n.startswith(UPPER) == own} for own in (True, False)
    ]
    for group in groups if apart else [result]:
        assert not settings.clip or math.hypot(*(float(g.norm()) for g in group.values())) > 0.5
        for place, g in (clipped(group, settings.clip) if settings.clip else group).items():
            moved = before[place] - trainer.model.get_parameter(place).detach()
            expected = 0.1 * (g + settings.weight_decay * before[place])
            torch.testing.assert_close(moved, expected, rtol=1e-3, atol=1e-6)


# What a run reads and reports
@pytest.mark.parametrize(
    ("name", "changes", "length"),
    [
        *((name, {}, None) for name in ("rnnlm", "codclm", "hrnnlm")),
        *((name, {"segments": "independent"}, n) for n, name in enumerate(("drnnlm", "hrnnlm"), 1)),
    ],
)
def test_training_reads_all_text(name: str, changes: dict[str, Any], length: int | None) -> None:
    """At rate zero the loss of an epoch is that of the text, cut where segments are independent."""
    still = replace(NOISY, epochs=1, validations=1, learning_rate=0.0, **QUIET)
    trainer = trainer_of(name, still, segment=length or 2, **changes)
    enlarged(trainer.model)
    bounds, cuts = zip(TRAIN.documents, TRAIN.documents[1:], strict=False), {TRAIN.n_sentences}
    cuts |= {b for first, end in bounds for b in range(first, end, length or 99)}
    expected = perplexity(trainer.model, replace(TRAIN, documents=np.array(sorted(cuts))))
    assert finished(trainer)[-1].training_nats == pytest.approx(expected.nats_per_token, rel=1e-5)


# When a run ends
def measured(monkeypatch: pytest.MonkeyPatch, nats: Iterable[float]) -> None:
    """Let validations measure these nats per token, one after the other."""
    values, n = iter(nats), VALID.n_sentences + len(VALID.tokens)
    monkeypatch.setattr(
        training, "perplexity", lambda m, c: replace(perplexity(m, c), nats=next(values) * n)
    )
    monkeypatch.setattr(training, "sentence_level_nats", lambda *_: next(values))


def test_a_run_ends_after_validations_without_new_best(monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, [3.0, 2.0, 2.5, 1.0, 1.0, 1.1, 1.2, 0.5])
    trainer = trainer_of("rnnlm", epochs=50, patience=3, learning_rate=1e-9)
    best = [True, True, False, True, False, False, False]
    assert [report.best for report in finished(trainer)] == best
    assert trainer.progress.finished
    assert trainer.progress.best == pytest.approx(1.0)


def test_the_rate_is_halved_after_each_epoch_whose_training_loss_has_risen() -> None:
    """Lin et al. 2015, §4.2; updates too large to converge make the loss of some epochs rise."""
    settings: dict[str, Any] = {"learning_rate": 2.0, "optimiser": "sgd", "validations": 1}
    trainer = trainer_of("rnnlm", epochs=8, schedule="halving", **settings)
    reports = finished(trainer)  # one of each epoch
    losses = [report.training_nats for report in reports]
    rises = [False, *(now > before for before, now in pairwise(losses))]
    assert any(rises[:-1])
    assert not all(rises[1:-1])
    made = [0, *accumulate(rises[:-1])]
    assert [report.rate for report in reports] == [2.0 * 0.5**n for n in made]
    assert reports[-1].epoch == 8.0


def two_step(**changes: Any) -> Trainer:
    return trainer_of(
        "hrnnlm", train=FEW, **{"levels": "two-step", "epochs": 2, "validations": 2, **changes}
    )


# Stages
def test_two_steps_freeze_the_sentence_level_at_best(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = two_step(learning_rate=0.0)
    report, model, nats = finished(trainer)[0], trainer.model, 0.0
    with torch.no_grad():  # the perplexity of the first stage is that of words without order
        for first, end in zip(VALID.documents, VALID.documents[1:], strict=False):
            contexts = model.context.start(1)
            for s in range(first, end):
                ids = torch.from_numpy(
                    VALID.tokens[VALID.sentences[s] : VALID.sentences[s + 1]]
                ).long()
                logits = model.context.next_word_logits(contexts)  # type: ignore[operator]
                if s > first:  # no sentence predicts the first one
                    nats -= float(torch.log_softmax(logits, dim=1)[0, ids].sum())
                own = Rows.of(model.embedding(ids).sum(0)[None])
                contexts = model.context.advance(contexts, own)
    assert report.valid_perplexity == pytest.approx(math.exp(nats / len(VALID.tokens)), rel=1e-5)
    measured(monkeypatch, chain([3.0, 1.0, 2.0, 2.5], repeat(2.6)))
    trainer = two_step()
    start, seen = weights(trainer), []
    for one in trainer.run():
        if one:
            seen.append((one.stage, weights(trainer)))
    stages = [stage for stage, _ in seen]
    assert stages == sorted(stages)
    n = stages.index("words")
    second, last = seen[n - 1][1], seen[-1][1]  # the word level begins from the best
    moved = {place for place in start if not torch.equal(start[place], second[place])}
    assert moved
    assert all(place.startswith(UPPER) for place in moved)
    assert all(torch.equal(second[place], seen[1][1][place]) for place in moved)
    changed = {place for place in start if not torch.equal(second[place], last[place])}
    assert changed
    assert not any(place.startswith(UPPER) for place in changed)


# Interrupted runs
def noisy(name: str, shape: dict[str, Any] | None = None, **changes: Any) -> Callable[[], Trainer]:
    return lambda: trainer_of(name, NOISY, shape=shape, **changes)


REGULARISED = {"context_noise": 0.6, "averaging": 0.5}
LIN: dict[str, Any] = {
    n: v for n, v in FAMILIES["lin"].recipes["paper"].items() if n in Settings.__slots__
}
LIN |= {"epochs": 2, "streams": 2}
RUNS: dict[str, Callable[[], Trainer]] = {
    "rnnlm": noisy("rnnlm"),
    "bfloat16": noisy("hrnnlm", precision="bfloat16"),
    "regularised": noisy("codclm", {"recurrence": "cifg", "tied": True}, **REGULARISED),
    "muon": noisy("codclm", {"head": "classes"}, optimiser="muon"),
    "nce": noisy("codclm", {"head": "self-normalised"}, objective="nce"),
    "lin": lambda: trainer_of("hrnnlm-lin", train=FEW, **{**LIN, "averaging": 0.5}),
    "patience": lambda: trainer_of("rnnlm", train=FEW, epochs=9, patience=1, validations=3,
        learning_rate=3.0, optimiser="adagrad"),
    "two steps": lambda: two_step(optimiser="adagrad", schedule="annealed"),
    "halving": lambda: two_step(schedule="halving", learning_rate=1e-3),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_a_run_left_anywhere_makes_the_same_updates(run: str, tmp_path: Path) -> None:
    whole = RUNS[run]()
    expected = [figures(report) for report in whole.run()]
    if run == "bfloat16":
        assert {tensor.dtype for tensor in tensors(whole).values()} == {torch.float32}
    for updates in {1, whole.updates_per_epoch, len(expected) - 1}:
        if updates < len(expected):
            torch.rand(1)  # nothing depends on the global generator
            resumed, reports = interrupted(RUNS[run], tmp_path / str(updates), updates)
            assert same(tensors(resumed), tensors(whole)), f"left after update {updates}"
            assert reports == expected, f"left after update {updates}"


def test_every_kind_of_noise_and_every_seed_makes_another_run() -> None:
    ended = []
    kinds: list[dict[str, Any]] = [
        {name: value} for name, value in REGULARISED.items() if name != "averaging"
    ]
    for changes in [{}, {}, {"seed": 6}, *kinds]:
        trainer = noisy("codclm", epochs=1, **changes)()
        finished(trainer)
        ended.append(tensors(trainer))
    assert [same(ended[0], other) for other in ended[1:]] == [True] + [False] * (1 + len(kinds))


NEWER = ["optimiser", "schedule", "segments", "levels", "patience", "initialisation"]
NEWER += REGULARISED


def test_a_state_of_before_there_was_a_setting_is_resumed_with_its_default(tmp_path: Path) -> None:
    plain = Settings(epochs=1, streams=2, segment=2, negatives=0)
    trainer = trainer_of("ccdclm", plain)
    next(trainer.run())
    save_training(tmp_path, trainer)
    path = tmp_path / "state.json"
    content = json.loads(path.read_bytes())
    assert "head" not in content["run"]  # only where one was chosen
    for name in NEWER:
        del content["run"][name]
    for name in ("stage", "first_update", "first_seconds", "failures", "halvings", "last_loss"):
        del content["progress"][name]
    path.write_text(json.dumps(content))
    other = trainer_of("ccdclm", plain)
    load_training(tmp_path, other)
    assert other.progress == trainer.progress
    assert same(tensors(other), tensors(trainer))


# Several processes
class Threads(Processes):
    """Threads of one process as processes: what they add and gather goes through a list."""

    def __init__(self, rank: int, values: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.number = rank, len(values)
        self.values, self.barrier = values, barrier

    def gather(self, value: Any) -> list[Any]:
        self.values[self.rank] = value
        self.barrier.wait(60)
        result = list(self.values)
        self.barrier.wait(60)
        return result

    def add(self, tensor: Tensor) -> None:
        tensor.copy_(sum(self.gather(tensor.clone())))


def together(number: int, work: Callable[[Processes], Any]) -> list[Any]:
    """What every one of so many processes returns."""
    values, barrier = [None] * number, threading.Barrier(number)
    with ThreadPoolExecutor(number) as pool:
        return [*pool.map(lambda rank: work(Threads(rank, values, barrier)), range(number))]


SEEDING = threading.Lock()  # torch's generator is one for all threads
SHARED = replace(PLAIN, streams=3, optimiser="adamw", schedule="annealed", segments="carried")
SHARED = replace(SHARED, validations=2, learning_rate=Settings().learning_rate)


def shared_trainer(name: str, processes: Processes, **changes: Any) -> Trainer:
    with SEEDING:
        return trainer_of(name, SHARED, MANY, processes=processes, **changes)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("codclm", {}),
        ("rnnlm-lin", {"optimiser": "adagrad"}),  # of sparse gradients
        ("hrnnlm", {"levels": "two-step"}),
    ],
)
def test_two_processes_make_the_run_of_one(name: str, changes: dict[str, Any]) -> None:
    def trained(processes: Processes) -> tuple[dict[str, Tensor], list[Any]]:
        trainer = shared_trainer(name, processes, **changes)
        reports = [(r.update, r.training_nats, r.valid_perplexity) for r in finished(trainer)]
        return weights(trainer), reports

    (alone, reports), *others = trained(ALONE), *together(2, trained)
    for found, own in others:
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-6)
        for one, other in zip(own, reports, strict=True):
            assert one == pytest.approx(other, rel=1e-5)


def test_a_state_of_two_processes_is_that_of_one_and_is_resumed_by_both(tmp_path: Path) -> None:
    """Contexts differ by stream: a process that took another's would go on differently."""
    alone = shared_trainer("codclm", ALONE)
    finished(alone)

    def begun(processes: Processes) -> None:
        trainer = shared_trainer("codclm", processes)
        for _ in zip(range(3), trainer.run(), strict=False):
            pass
        save_training(tmp_path, trainer)

    def resumed(processes: Processes) -> dict[str, Tensor]:
        trainer = shared_trainer("codclm", processes)
        load_training(tmp_path, trainer)
        finished(trainer)
        return weights(trainer)

    together(2, begun)
    for found in [resumed(ALONE), *together(2, resumed)]:
        torch.testing.assert_close(found, weights(alone), rtol=1e-4, atol=1e-6)
