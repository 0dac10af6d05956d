"""What is maximised, end to end: the value told is that of the output, by sacrebleu and by hand.

`tune_mert` tells the value of what its weights decode to. The truth here is what `decode` writes
with the weights that were written, scored by sacrebleu, or by plain sums for a metric of a file.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.base import Score
from support.files import read
from support.tuning import ALONE, PAIRED, first_candidates, tune

from rerank.errors import InputError, RerankError, UsageError
from rerank.metrics.bleu import corpus_bleu
from rerank.notices import Notices
from rerank.pipeline import (
    Lists,
    MertSettings,
    ObjectiveOptions,
    Plan,
    Tuning,
    decode,
)
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import (
    CORPUS_BLEU,
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    Objective,
    ObjectiveSum,
    WorstDocuments,
)

QUICK = MertSettings(random_starts=2, kicks=1)
M = {"m": "dev.m"}
BOTH = (("bleu", 1.0), ("ter", 0.5))
AIMS = {
    "bleu": ObjectiveOptions(),
    "chrf": ObjectiveOptions((("chrf", 1.0),)),
    "ter": ObjectiveOptions((("ter", 1.0),)),
    "file": ObjectiveOptions((("m", 1.0),), M),
    "a weight alone": ObjectiveOptions((("chrf", 0.25),)),
    "bleu + ter": ObjectiveOptions(BOTH),
    "file + chrf": ObjectiveOptions((("m", 10.0), ("chrf", 1.0)), M),
    "ter + bleu": ObjectiveOptions(BOTH[::-1], length="keep"),
    "documents": ObjectiveOptions(documents=True),
    "documents, ter": ObjectiveOptions((("ter", 1.0),), documents=True),
    "documents, file": ObjectiveOptions((("m", 1.0),), M, documents=True),
    "documents, chrf + bleu": ObjectiveOptions((("chrf", 1.0), ("bleu", 0.5)), documents=True),
    "worst": ObjectiveOptions(worst=0.25),
    "worst half, chrf": ObjectiveOptions((("chrf", 1.0),), worst=0.5),
    "worst, file + ter": ObjectiveOptions((("m", 9.0), ("ter", 1.0)), M, worst=0.25),
    "free": ObjectiveOptions(length="free"),
    "keep": ObjectiveOptions(length="keep"),
    "ratio": ObjectiveOptions(length=0.97, price=60.0),
    "dear": ObjectiveOptions((("ter", 1.0),), length="keep", price=200.0),
}


BLEU_ALONE = ("bleu", "free")  # told with two digits


def tuned(
    aims: ObjectiveOptions,
    given: Lists = ALONE,
    said: list[str] | None = None,
    *,
    pools: str = "auto",
    settings: MertSettings = QUICK,
    **options: Any,
) -> Tuning:
    plan = Plan(pools, objective=aims, settings=settings)
    return tune(given, plan, said, **{"start": "start.json", **options})


# The truth


@dataclass
class Lines:
    """Some sentences: hypotheses, references, the numbers of a file that were chosen."""

    hypotheses: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    def scored(self, by: Callable[..., Score], **options: Any) -> Any:
        return by(self.hypotheses, [self.references], **options)

    def score(self, name: str) -> float:
        if name == "m":
            return sum(self.numbers) / max(len(self.numbers), 1)
        if name == "ter":
            return -float(self.scored(sacrebleu.corpus_ter).score)
        if name == "chrf":
            return float(self.scored(sacrebleu.corpus_chrf).score)
        return float(self.scored(sacrebleu.corpus_bleu, tokenize="none", force=True).score)

    @property
    def ratio(self) -> float:
        counted = self.scored(sacrebleu.corpus_bleu, tokenize="none", force=True)
        return float(counted.sys_len / counted.ref_len)


def divided(hypotheses: Sequence[str]) -> tuple[Lines, list[Lines]]:
    """All lines, and those of each document; documents without candidates are one."""
    number: dict[tuple[int, str], float] = {}
    for line, score in zip(read("dev.kbest"), read("dev.m"), strict=True):
        s, text, *_ = line.split(" ||| ")
        number[int(s), text] = float(score)
    docs, whole, parts = read("dev.docs"), Lines(), dict[str, Lines]()
    filled = {docs[t] for t, _ in number}
    for t, (hypothesis, reference) in enumerate(zip(hypotheses, read("dev.ref"), strict=True)):
        part = parts.setdefault(docs[t] if docs[t] in filled else "", Lines())
        for lines in (whole, part):
            lines.hypotheses.append(hypothesis)
            lines.references.append(reference)
            if (t, hypothesis) in number:
                lines.numbers.append(number[t, hypothesis])
    return whole, list(parts.values())


def value(aims: ObjectiveOptions, hypotheses: Sequence[str]) -> float:
    """What is maximised, of an output."""
    whole, parts = divided(hypotheses)
    found = 0.0
    for name, weight in aims.metrics:
        scores = sorted(part.score(name) for part in parts)
        if aims.worst is not None:
            scores = scores[: math.ceil(aims.worst * len(scores))]
        mean = sum(scores) / len(scores)
        found += weight * (whole.score(name) if not aims.documents and not aims.worst else mean)
    if aims.length == "free":
        return found
    ratio = divided(first_candidates())[0].ratio if aims.length == "keep" else aims.length
    return found - aims.price * abs(whole.ratio - float(ratio))


def told(said: Sequence[str]) -> dict[int, tuple[float, float | None]]:
    """Value of each round, and what was predicted; BLEU where nothing else is told."""
    found: dict[int, tuple[float, float | None]] = {}
    for line in said:
        if number := re.match(r"round (\d+): ", line):
            decoded = re.search(r"decoded BLEU ([-\d.]+)", line)
            real = re.search(r"objective (?:predicted ([-\d.]+), )?decoded ([-\d.]+)(?:,|$)", line)
            assert decoded
            before = float(real[1]) if real and real[1] else None
            found[int(number[1])] = (float((real or decoded)[2 if real else 1]), before)
    return found


def kept(said: Sequence[str]) -> int:
    (line,) = [line for line in said if line.startswith("kept: round ")]
    return int(line.removeprefix("kept: round "))


@pytest.mark.parametrize("given", [ALONE, PAIRED], ids=["alone", "pairs"])
@pytest.mark.parametrize("name", AIMS)
def test_the_value_told_is_that_of_the_output(tuning_lists: Path, name: str, given: Lists) -> None:
    aims, said = replace(AIMS[name], shrinkage=0.0), list[str]()
    found = tuned(aims, given, said)
    decode(given, "out.json", "hyp.txt", notices=Notices())
    output, rounds = read("hyp.txt"), told(said)
    best = rounds[kept(said)][0]
    assert best == pytest.approx(value(aims, output), abs=6e-3 if name in BLEU_ALONE else 6e-4)
    assert best == max(v for v, _ in rounds.values())
    whole, _ = divided(output)
    made: Any = found.weights.provenance
    assert made["bleu"] == found.result.bleu == whole.score("bleu")
    assert made["length_ratio"] == whole.ratio
    for metric, _ in aims.metrics:
        if metric != "bleu":
            shown = made["metrics"][{"chrf": "chrF2", "ter": "TER"}.get(metric, metric)]["score"]
            assert (-shown if metric == "ter" else shown) == pytest.approx(whole.score(metric))
    assert all(math.isfinite(v) for vs in found.weights.dense.values() for v in vs)


@pytest.mark.parametrize("pools", ["conditional", "exact"])
@pytest.mark.parametrize("name", ["ter", "file + chrf", "worst, file + ter", "ratio"])
def test_every_kind_of_pool_tells_what_is_decoded(
    tuning_lists: Path, name: str, pools: str
) -> None:
    aims, said = replace(AIMS[name], shrinkage=0.0), list[str]()
    tuned(aims, PAIRED, said, pools=pools)
    decode(PAIRED, "out.json", "hyp.txt", notices=Notices())
    rounds = told(said)
    assert rounds[kept(said)][0] == pytest.approx(value(aims, read("hyp.txt")), abs=6e-4)
    if pools == "exact":  # after the first guess, which is a pool's, nothing is foretold in vain
        for real, before in [*rounds.values()][2:]:
            assert before == real


@pytest.mark.parametrize("pools", ["auto", "exact"])
def test_a_price_on_direction_is_part_of_the_value(tuning_lists: Path, pools: str) -> None:
    """With a price beyond all gains the start stays, and its value is that of the objective."""
    for price, moves in ((1e6, False), (1e-3, True)):
        said: list[str] = []
        dense = tuned(ObjectiveOptions(shrinkage=price), PAIRED, said, pools=pools).weights.dense
        ratio = [w / 0.5 for w in (*dense["LM0"], 2 * dense["TM0"][0], 2 * dense["TM0"][1])]
        assert (max(ratio) - min(ratio) > 1e-3) == moves
        rounds = told(said)
        assert all(
            before == pytest.approx(real, abs=2e-3)
            for real, before in [*rounds.values()][2:]
            if pools == "exact" and before is not None
        )


@pytest.mark.parametrize("name", ["bleu", "file + chrf", "worst"])
def test_weights_are_the_same_for_any_number_of_threads(tuning_lists: Path, name: str) -> None:
    files = []
    for threads in (1, 2):
        settings = MertSettings(random_starts=3, kicks=2, threads=threads)
        tuned(AIMS[name], PAIRED, settings=settings)
        files.append(Path("out.json").read_bytes().replace(b'"threads": 2', b'"threads": 1'))
    assert files[0] == files[1]


def test_numbers_of_a_file_are_maximised(tuning_lists: Path) -> None:
    """One document in one feature that is the metric itself: the best of each list is found."""
    lines = [line.split(" ||| ") for line in read("dev.kbest")]
    best: dict[str, float] = {}
    for parts, number in zip(lines, read("dev.m"), strict=True):
        parts[2] = f"LM0= {number} TM0= 0 0"
        best[parts[0]] = max(best.get(parts[0], -math.inf), float(number))
    Path("dev.kbest").write_text("".join(" ||| ".join(p) + "\n" for p in lines), encoding="utf-8")
    said: list[str] = []
    tuned(ObjectiveOptions((("m", 1.0),), M, length="free"), ALONE, said)
    assert told(said)[kept(said)][0] == pytest.approx(sum(best.values()) / len(best), abs=6e-4)


# Options as objectives and goals


def objective_of(**options: Any) -> Objective:
    asked = ObjectiveOptions(**options)
    asked.check()
    return asked.objective(asked.load_metrics())


def test_options_become_the_objective_that_they_name() -> None:
    assert objective_of(shrinkage=0.0) == CORPUS_BLEU
    assert isinstance(objective_of(documents=True), DocumentMean)
    assert isinstance(objective_of(worst=0.5), WorstDocuments)
    both = objective_of(metrics=(("ter", 2.0), ("chrf", 1.0)))
    assert isinstance(both, ObjectiveSum)
    columns = [(w, o.metric.begin, o.metric.end) for w, o in both.parts]  # type: ignore[attr-defined]
    assert columns == [(2.0, 9, 11), (1.0, 11, 29)]
    alone = objective_of(metrics=(("chrf", 1.0),))
    assert isinstance(alone, CorpusMetric)
    assert (alone.metric.begin, alone.metric.end) == (9, 27)


FIRST = np.array([80, 60, 40, 30, 90, 80, 70, 60, 100])
"""Summed statistics of first candidates that are a tenth shorter than their references."""
START, SCALE = np.array([1.0, -2.0]), np.array([0.5, 3.0])


def goal_of(
    *,
    start: Sequence[float] = (1.0, -2.0),
    scale: Sequence[float] = (0.5, 3.0),
    settled: bool = False,
    objective: Objective = CORPUS_BLEU,
    **options: Any,
) -> SearchGoal:
    asked = ObjectiveOptions(**{"shrinkage": 0.0, **options})
    given = np.array(start)
    return asked.goal(objective, FIRST, given, settled=settled, scale=lambda: np.array(scale))


@pytest.mark.parametrize(("length", "ratio"), [("keep", 0.9), (1.0, 1.0), (0.97, 0.97)])
def test_another_length_costs_its_price(length: Any, ratio: float) -> None:
    goal = goal_of(length=length, price=20.0)
    longer = np.array([[80, 60, 40, 30, 110, 100, 90, 80, 100]])
    expected = corpus_bleu(longer[0]) - 20 * abs(1.1 - ratio)
    assert goal.value(longer, START) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("options", [{"length": "free"}, {"length": "keep", "price": 0.0}])
def test_a_free_length_costs_nothing(options: dict[str, Any]) -> None:
    assert goal_of(**options).objective is CORPUS_BLEU


def test_the_length_is_that_of_words_whatever_the_metric() -> None:
    goal = goal_of(objective=DocumentMean(), length="keep")
    assert goal.objective == LengthPenalty(DocumentMean(), 0.9, 5.0)


def test_the_price_of_direction_is_that_of_the_options() -> None:
    goal, zeros = goal_of(shrinkage=0.3), np.zeros((1, 9), dtype=np.int64)
    assert goal.value(zeros, START) == pytest.approx(0)
    assert goal.value(zeros, -7 * START) == pytest.approx(-0.6)
    assert goal_of(shrinkage=None).shrinkage is not None
    assert goal_of(shrinkage=None, files=M, metrics=(("m", 1.0),)).shrinkage is None


@pytest.mark.parametrize(
    "options",
    [{"start": (0.0, 0.0)}, {"start": (0.0, 3.0), "scale": (1.0, 0.0)}, {"settled": True}],
    ids=["zeros", "weight on a constant feature only", "scale settled"],
)
def test_without_a_direction_the_default_price_is_dropped(options: dict[str, Any]) -> None:
    assert goal_of(shrinkage=None, **options).shrinkage is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": (0.0, 0.0)}, "--shrink 2: all tuned weights start at 0; leave it out"),
        ({"settled": True}, "--shrink 2: a part of the scores is not tuned"),
    ],
)
def test_without_a_direction_a_price_that_was_asked_for_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        goal_of(shrinkage=2.0, **options)


# Refusals


@pytest.mark.parametrize(
    ("aims", "message"),
    [
        (ObjectiveOptions(()), "expected one metric, or two"),
        (
            ObjectiveOptions((("bleu", 1.0),) * 2),
            "--objective bleu bleu: expected one metric, or two diff",
        ),
        (
            ObjectiveOptions((("bleu", 1.0), ("chrf", 1.0), ("ter", 1.0))),
            "expected one metric, or two",
        ),
        (ObjectiveOptions((("bleu", 0.0),)), "--objective bleu=0: expected a weight above 0"),
        (ObjectiveOptions((("bleu", -1.0),)), "--objective bleu=-1: expected a weight above 0"),
        (
            ObjectiveOptions((("bleu", math.nan),)),
            "--objective bleu=nan: expected a weight above 0",
        ),
        (
            ObjectiveOptions((("bleu", math.inf),)),
            "--objective bleu=inf: expected a weight above 0",
        ),
        (ObjectiveOptions(files=M), "--metric m=…: not used; add --objective m"),
        (
            ObjectiveOptions(files={"bleu": "dev.m"}),
            "--metric bleu=…: bleu is a metric of rerank; take another",
        ),
        (
            ObjectiveOptions((("ter", 1.0),), {"ter": "dev.m"}),
            "--metric ter=…: ter is a metric of rerank",
        ),
        (ObjectiveOptions(worst=0.5, documents=True), "--worst and --per-document"),
        (ObjectiveOptions(worst=math.nan), "--worst nan: expected more than 0, at most 100"),
        (ObjectiveOptions(worst=1.5), "--worst 150: expected more than 0, at most 100"),
        (
            ObjectiveOptions(price=math.nan),
            "--length-price nan: expected a finite number, at least 0",
        ),
        (ObjectiveOptions(price=math.inf), "--length-price inf: expected a finite number"),
        (
            ObjectiveOptions(shrinkage=math.nan),
            "--shrink nan: expected a finite number, at least 0",
        ),
        (ObjectiveOptions(shrinkage=-1.0), "--shrink -1: expected a finite number, at least 0"),
        (
            ObjectiveOptions(length=0.9, price=0.0),
            "--length-ratio 0.9: --length-price 0 switches it off",
        ),
        (
            ObjectiveOptions(length="keep", price=0.0),
            "--length-ratio keep: --length-price 0 switches it off",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_maximised_is_refused(aims: ObjectiveOptions, message: str) -> None:
    with pytest.raises(UsageError) as fault:
        aims.check()
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("content", "fault", "message"),
    [
        ("1\n2\n", InputError, r"^other\.m:3: expected \d+ lines as dev\.kbest has, found 2"),
        ("1\nnan\n", InputError, r"^other\.m:2: expected a finite decimal number for m"),
        ("1\n-inf\n", InputError, r"^other\.m:2: expected a finite decimal number for m"),
        ("1\n1,5\n", InputError, r"^other\.m:2: expected a finite decimal number for m"),
        ("1\n-1e101\n", InputError, r"^other\.m:2: expected a number up to 1e\+100 for m"),
        (None, RerankError, r"no file other\.m"),
    ],
    ids=["short", "nan", "infinite", "comma", "huge", "missing"],
)
def test_files_of_numbers_that_are_wrong_are_told_with_their_line(
    tuning_lists: Path, content: str | None, fault: type[RerankError], message: str
) -> None:
    n = len(read("dev.kbest"))
    if content is not None:
        rest = "" if content == "1\n2\n" else "0\n" * (n - 2)
        Path("other.m").write_text(content + rest, encoding="utf-8")
    with pytest.raises(fault, match=message):
        tuned(ObjectiveOptions((("m", 1.0),), {"m": "other.m"}))
    assert not Path("out.json").exists()


def test_an_unknown_metric_is_told_with_those_there_are_and_how_others_are_given(
    tuning_lists: Path,
) -> None:
    with pytest.raises(UsageError) as fault:
        tuned(ObjectiveOptions((("comet", 1.0),)))
    assert str(fault.value) == (
        "--objective comet: no metric 'comet'; there are bleu, chrf, ter; scores of another tool "
        "are given by --metric comet=FILE"
    )


def test_a_price_on_direction_needs_a_direction(tuning_lists: Path) -> None:
    with pytest.raises(
        UsageError, match=r"--shrink 2: there are no start weights .* give some by --start"
    ):
        tuned(ObjectiveOptions(shrinkage=2.0), start=None)


def test_numbers_of_another_tool_may_come_from_standard_input(
    tuning_lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read twice, to be counted first."""
    truth = tuned(ObjectiveOptions((("m", 1.0),), M)).weights.dense
    with open("dev.m", "rb") as numbers:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(numbers))
        assert tuned(ObjectiveOptions((("m", 1.0),), {"m": "-"})).weights.dense == truth


def test_bleu_of_other_words_is_told_beside_that_of_the_words_as_given(tuning_lists: Path) -> None:
    said: list[str] = []
    found = tuned(ObjectiveOptions(), ALONE, said, tokenize="char")
    decode(ALONE, "out.json", "hyp.txt", notices=Notices())
    line = next(line for line in said if line.startswith("decoded: "))
    for tokenizer in ("char", "none"):
        truth = sacrebleu.corpus_bleu(
            read("hyp.txt"), [read("dev.ref")], tokenize=tokenizer, force=True
        )
        assert re.search(rf"BLEU {truth.score:.2f} \(nrefs:1\|[^)]*\|tok:{tokenizer}\|", line)
    assert "tok:char" in str(found.weights.provenance["signature"])
    assert "tok:none" in str(found.weights.provenance["metrics"])
