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

import pytest
import sacrebleu
from rerank.tuning.objectives.criterion import PRICE, Criterion
from sacrebleu.metrics.base import Score

from rerank.errors import InputError, RerankError, UsageError
from rerank.metrics.bleu import Tokenizer
from rerank.notices import Notices
from rerank.pipeline import (
    Aims,
    Lists,
    MertSettings,
    Plan,
    TunedWeights,
    Tuning,
    decode,
    tune_mert,
)
from rerank.tuning.objectives.goal import CORPUS_BLEU, BleuGoal
from rerank.tuning.objectives.objective import Corpus, MeanOfDocuments, WeightedSum, WorstDocuments

ALONE = Lists("dev.kbest", "dev.docs")
PAIRED = Lists("dev.kbest", "dev.docs", outside={"pair-scores": (("pairs", Path("dev.pairs")),)})
QUICK = MertSettings(random_starts=2, kicks=1)
M = {"m": "dev.m"}
BOTH = (("bleu", 1.0), ("ter", 0.5))
AIMS = {
    "bleu": Aims(),
    "chrf": Aims((("chrf", 1.0),)),
    "ter": Aims((("ter", 1.0),)),
    "file": Aims((("m", 1.0),), M),
    "a weight alone": Aims((("chrf", 0.25),)),
    "bleu + ter": Aims(BOTH),
    "file + chrf": Aims((("m", 10.0), ("chrf", 1.0)), M),
    "ter + bleu": Aims(BOTH[::-1], length="keep"),
    "documents": Aims(documents=True),
    "documents, ter": Aims((("ter", 1.0),), documents=True),
    "documents, file": Aims((("m", 1.0),), M, documents=True),
    "documents, chrf + bleu": Aims((("chrf", 1.0), ("bleu", 0.5)), documents=True),
    "worst": Aims(worst=0.25),
    "worst half, chrf": Aims((("chrf", 1.0),), worst=0.5),
    "worst, file + ter": Aims((("m", 9.0), ("ter", 1.0)), M, worst=0.25),
    "free": Aims(length="free"),
    "keep": Aims(length="keep"),
    "ratio": Aims(length=0.97, price=60.0),
    "dear": Aims((("ter", 1.0),), length="keep", price=200.0),
    "window": Aims(window=2),
    "window, ter": Aims((("ter", 1.0),), window=2),
    "window, least": Aims((("chrf", 1.0),), window=1, window_of="min"),
}


BLEU_ALONE = ("bleu", "free", "window")  # told with two digits


def read(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").splitlines()


def tuned(
    aims: Aims, given: Lists = ALONE, said: list[str] | None = None, **options: Any
) -> Tuning:
    tokenize = options.pop("tokenize", "none")
    plan = Plan(options.pop("pools", "auto"), aims=aims, settings=options.pop("settings", QUICK))
    return tune_mert(
        given,
        ["dev.ref"],
        TunedWeights("out.json", **{"start": "start.json", **options}),
        plan=plan,
        tokenize=tokenize,
        notices=Notices(),
        announce=(said if said is not None else list[str]()).append,
    )


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


def first_candidates() -> list[str]:
    first: dict[int, str] = {}
    for line in read("dev.kbest"):
        t, text, *_ = line.split(" ||| ")
        first.setdefault(int(t), text)
    return [first.get(t, "") for t in range(len(read("dev.docs")))]


def value(aims: Aims, hypotheses: Sequence[str]) -> float:
    """What is maximised, of an output."""
    whole, parts = divided(hypotheses)
    found = 0.0
    for name, weight in aims.objectives:
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
            real = re.search(r"objective (?:predicted ([-\d.]+), )?([-\d.]+)(?:,|$)", line)
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
    if not aims.window:
        assert best == max(v for v, _ in rounds.values())
    whole, _ = divided(output)
    made: Any = found.weights.provenance
    assert made["bleu"] == found.bleu == whole.score("bleu")
    assert made["length_ratio"] == whole.ratio
    for metric, _ in aims.objectives:
        if metric != "bleu":
            shown = made["metrics"][{"chrf": "chrF2", "ter": "TER"}.get(metric, metric)]["score"]
            assert (-shown if metric == "ter" else shown) == pytest.approx(whole.score(metric))
    assert all(math.isfinite(v) for vs in found.weights.dense.values() for v in vs)


@pytest.mark.parametrize("pools", ["conditional", "documents", "exact"])
@pytest.mark.parametrize(
    "name", ["ter", "file + chrf", "worst, file + ter", "ratio", "window, ter"]
)
def test_every_kind_of_pool_tells_what_is_decoded(
    tuning_lists: Path, name: str, pools: str
) -> None:
    aims, said = replace(AIMS[name], shrinkage=0.0), list[str]()
    if pools == "documents":
        aims = replace(aims, window=0)  # is refused there
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
        dense = tuned(Aims(shrinkage=price), PAIRED, said, pools=pools).weights.dense
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
        files.append(Path("out.json").read_bytes())
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
    tuned(Aims((("m", 1.0),), M, length="free"), ALONE, said)
    assert told(said)[kept(said)][0] == pytest.approx(sum(best.values()) / len(best), abs=6e-4)


# The criterion of some aims


def test_aims_become_the_objective_that_they_name() -> None:
    def of(aims: Aims) -> Criterion:
        aims.check()
        return aims.criterion(aims.metrics(Tokenizer("none"), _nothing, Path, Notices()))

    assert of(Aims(shrinkage=0.0)) == Criterion()
    assert isinstance(of(Aims(documents=True)).objective, MeanOfDocuments)
    assert isinstance(of(Aims(worst=0.5)).objective, WorstDocuments)
    both = of(Aims((("ter", 2.0), ("chrf", 1.0)), length=0.9, price=3.0, shrinkage=1.5))
    assert isinstance(both.objective, WeightedSum)
    columns = [(w, o.metric.begin, o.metric.end) for w, o in both.objective.parts]  # type: ignore[attr-defined]
    assert columns == [(2.0, 9, 11), (1.0, 11, 29)]
    assert (both.length, both.price, both.shrinkage) == (0.9, 3.0, 1.5)
    alone = of(Aims((("chrf", 1.0),))).objective
    assert isinstance(alone, Corpus)
    assert (alone.metric.begin, alone.metric.end) == (9, 27)


def _nothing() -> Any:
    raise AssertionError("no list is asked for")


def test_the_goal_has_a_price_on_length_only_where_there_is_one() -> None:
    import numpy as np

    first, zeros = np.array([5, 4, 3, 2, 9, 8, 7, 6, 10]), np.zeros(2)
    kept = Criterion(length="keep")
    assert kept.goal(first, zeros, zeros) == BleuGoal(0.9, PRICE)
    assert Criterion(length="free").goal(first, zeros, zeros) == CORPUS_BLEU
    assert Criterion(length="keep", price=0.0).goal(first, zeros, zeros) == CORPUS_BLEU
    assert Criterion(length=1.25, price=2.0).goal(first, zeros, zeros) == BleuGoal(1.25, 2.0)
    shrunk = Criterion(length="keep", shrinkage=1.0)
    pulled = shrunk.goal(first, np.ones(2), np.ones(2))
    assert isinstance(pulled, BleuGoal)
    assert pulled.shrinkage
    assert shrunk.goal(first, zeros, np.ones(2)) == BleuGoal(0.9, PRICE)  # no direction to keep


# Refusals


@pytest.mark.parametrize(
    ("aims", "message"),
    [
        (Aims(()), "expected one metric, or two"),
        (Aims((("bleu", 1.0),) * 2), "--objective bleu bleu: expected one metric, or two diff"),
        (Aims((("bleu", 1.0), ("chrf", 1.0), ("ter", 1.0))), "expected one metric, or two"),
        (Aims((("bleu", 0.0),)), "--objective bleu=0: expected a weight above 0"),
        (Aims((("bleu", -1.0),)), "--objective bleu=-1: expected a weight above 0"),
        (Aims((("bleu", math.nan),)), "--objective bleu=nan: expected a weight above 0"),
        (Aims((("bleu", math.inf),)), "--objective bleu=inf: expected a weight above 0"),
        (Aims(files=M), "--metric m=…: not used; add --objective m"),
        (Aims(files={"bleu": "dev.m"}), "--metric bleu=…: bleu is counted here; take another"),
        (Aims((("ter", 1.0),), {"ter": "dev.m"}), "--metric ter=…: ter is counted here"),
        (Aims(worst=0.5, documents=True), "--worst and --per-document"),
        (Aims(worst=math.nan), "--worst nan: expected more than 0, at most 100"),
        (Aims(worst=1.5), "--worst 150: expected more than 0, at most 100"),
        (Aims(price=math.nan), "--length-price nan: expected a finite number, at least 0"),
        (Aims(price=math.inf), "--length-price inf: expected a finite number"),
        (Aims(shrinkage=math.nan), "--shrink nan: expected a finite number, at least 0"),
        (Aims(shrinkage=-1.0), "--shrink -1: expected a finite number, at least 0"),
        (Aims(length=0.9, price=0.0), "--length-ratio 0.9: nothing is paid for it"),
        (Aims(length="keep", price=0.0), "--length-ratio keep: nothing is paid for it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_maximised_is_refused(aims: Aims, message: str) -> None:
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
        tuned(Aims((("m", 1.0),), {"m": "other.m"}))
    assert not Path("out.json").exists()


def test_an_unknown_metric_is_told_with_those_there_are_and_how_others_are_given(
    tuning_lists: Path,
) -> None:
    with pytest.raises(UsageError) as fault:
        tuned(Aims((("comet", 1.0),)))
    assert str(fault.value) == (
        "--objective comet: no metric 'comet'; there are bleu, chrf, ter; numbers of another tool "
        "are given by --metric comet=FILE"
    )


def test_a_price_on_direction_needs_a_direction(tuning_lists: Path) -> None:
    with pytest.raises(UsageError, match=r"--shrink 2: no start weights .* give some by --start"):
        tuned(Aims(shrinkage=2.0), start=None)


def test_numbers_of_another_tool_may_come_from_standard_input(
    tuning_lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read twice, to be counted first."""
    truth = tuned(Aims((("m", 1.0),), M)).weights.dense
    with open("dev.m", "rb") as numbers:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(numbers))
        assert tuned(Aims((("m", 1.0),), {"m": "-"})).weights.dense == truth


def test_bleu_of_other_words_is_told_beside_that_of_the_words_as_given(tuning_lists: Path) -> None:
    said: list[str] = []
    found = tuned(Aims(), ALONE, said, tokenize="char")
    decode(ALONE, "out.json", "hyp.txt", notices=Notices())
    line = next(line for line in said if line.startswith("decoded: "))
    for tokenizer in ("char", "none"):
        truth = sacrebleu.corpus_bleu(
            read("hyp.txt"), [read("dev.ref")], tokenize=tokenizer, force=True
        )
        assert re.search(rf"BLEU {truth.score:.2f} \(nrefs:1\|[^)]*\|tok:{tokenizer}\|", line)
    assert "tok:char" in str(found.weights.provenance["signature"])
    assert "tok:none" in str(found.weights.provenance["metrics"])
