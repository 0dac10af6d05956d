"""`rerank tune-mert --objective …`: the value maximised is the documented function of the output.

Truth: sacrebleu's scores of what `rerank decode` writes, of all lines and of each document.
"""

import math
import re

import numpy as np
import pytest
from support.tuned import (
    FROM_START,
    PAIRS,
    Objective,
    bleu,
    columns,
    decoded,
    every_choice,
    first_candidates,
    kept,
    lines_of,
    made,
    rounds,
    two_features,
)
from support.world import World

FREE = f"{FROM_START} --select none --shrink 0"
OBJECTIVES = {
    "bleu": Objective(),
    "chrf": Objective({"chrf": 1.0}),
    "ter": Objective({"ter": 1.0}),
    "file": Objective({"m": 1.0}),
    "a weight alone": Objective({"chrf": 0.25}),
    "bleu + ter": Objective({"bleu": 1.0, "ter": 0.5}),
    "file + chrf": Objective({"m": 10.0, "chrf": 1.0}),
    "keep": Objective(length="keep"),
    "ratio": Objective(length=0.97, price=60.0),
    "dear": Objective({"ter": 1.0}, length="keep", price=200.0),
    "bleu, ratio": Objective({"bleu": 2.0}, length=1.1, price=9.0),
}


@pytest.fixture
def small(world: World) -> World:
    """Three documents, one without candidates, with two features."""
    world.draw(6, "xxxyyvzzz", (3, 5))
    two_features(world)
    return world


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_value_reported_is_that_of_the_output(drawn: World, name: str) -> None:
    objective = OBJECTIVES[name]
    run = drawn.ok(FREE, *PAIRS.split(), *objective.options)
    output, told = decoded(drawn, *PAIRS.split()), rounds(run.err)
    truth, whole = objective.value(drawn, output), lines_of(drawn, output)
    digits = 6e-3 if name == "bleu" else 6e-4
    assert told[kept(run.err)].value == pytest.approx(truth, abs=digits)
    assert told[kept(run.err)].value == max(one.value for one in told)
    assert (made(drawn)["bleu"], made(drawn)["length_ratio"]) == (whole.score("bleu"), whole.ratio)
    shown = {"chrf": ("chrF2", 1), "ter": ("TER", -1), "m": ("m", 1)}
    for metric in objective.metrics.keys() - {"bleu"}:
        label, sign = shown[metric]
        score = made(drawn)["metrics"][label]["score"]
        assert score == pytest.approx(sign * whole.score(metric))
        assert f"{label} {score:.2f} (" in run.err


@pytest.mark.parametrize(
    ("name", "ranges"),
    [*((name, "") for name in ["bleu", *OBJECTIVES][::2]),
     ("bleu", "--range LM0=0.4:0.6 --range TM0=-0.3:0.3")],
)  # fmt: skip
def test_no_weights_of_two_features_are_better(small: World, name: str, ranges: str) -> None:
    """Of order 0 only the direction counts: at most atan(0.3 / 0.4) from the first feature."""
    objective, most = OBJECTIVES[name], math.atan2(0.3, 0.4) if ranges else math.pi
    if ranges:
        small.weights("start.json", {"LM0": 0.5, "TM0": 0.0})
    run = small.ok(FREE, "--starts", 2, *objective.options, *ranges.split())
    every = [objective.value(small, one) for one in every_choice(small, ["LM0", "TM0"], most)]
    last = rounds(run.err)[1]
    assert last.value == pytest.approx(max(every), abs=6e-3 if name == "bleu" else 6e-4)
    assert (last.predicted, last.predicted_value) == (last.decoded, last.value)


@pytest.mark.parametrize("name", ["bleu, ratio", "file + chrf", "dear"])
def test_the_objective_of_held_out_documents_is_that_of_decoding(drawn: World, name: str) -> None:
    """With all digits; the length that is kept is that of their first candidates."""
    objective = OBJECTIVES[name]
    drawn.ok(FREE, "--hold-out", 0.4, *objective.options)
    held = made(drawn)["held_out"]
    truth = objective.value(drawn, decoded(drawn), held["documents"])
    assert held["objective"]["tuned weights"] == pytest.approx(truth, rel=1e-12)
    begin = objective.value(drawn, decoded(drawn, weights="start.json"), held["documents"])
    assert held["objective"]["start weights"] == pytest.approx(begin, rel=1e-12)


def test_numbers_of_another_tool_are_maximised(small: World) -> None:
    """They are a feature, too, so that the best choice of each list is within reach."""
    rows = zip(small.lines("dev.kbest"), small.lines("dev.m"), strict=True)
    small.write("dev.kbest", [re.sub(r"TM0= \S+", f"TM0= {m}", line) for line, m in rows])
    small.ok(FREE, "--objective", "m", "--metric", "m=dev.m")
    best: dict[str, float] = {}
    for line, m in zip(small.lines("dev.kbest"), small.lines("dev.m"), strict=True):
        t = line.split(" ", 1)[0]
        best[t] = max(best.get(t, -math.inf), float(m))
    assert made(small)["metrics"]["m"]["score"] == pytest.approx(np.mean([*best.values()]))
    plain = columns(small)
    small.ok(FREE, "--objective=m", "--metric=m=-", stdin=small.content("dev.m"))
    assert columns(small) == plain
    small.ok(FREE, "--objective=m", "--metric=m=dev.m", "--top", 2)
    whole = lines_of(small, decoded(small, "--top", 2))
    assert made(small)["metrics"]["m"]["score"] == pytest.approx(whole.score("m"))


# Prices
def cosine(world: World, weights: list[float]) -> float:
    """Of weights with the start weights that are not 0, in units of deviations within lists."""
    lists = [
        [[float(v) for v in re.findall(r" (-?[\d.]+)", features)] for _, features, _ in own]
        for own in world.lists().values()
    ]
    rows = np.concatenate([np.array(of_list) - np.mean(of_list, axis=0) for of_list in lists])
    start = np.array(columns(world, "start.json"))
    scale = np.sqrt((rows**2).sum(axis=0)) * (start != 0)
    a, b = scale * start, scale * weights
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("tm", [[0.25, 0.25], [0.25, 0]], ids=["all", "one free"])
@pytest.mark.parametrize("price", [0.5, 20.0])
def test_leaving_the_direction_has_a_price(drawn: World, price: float, tm: list[float]) -> None:
    drawn.weights("start.json", {"LM0": 0.5, "TM0": tm})
    run = drawn.ok(FREE.replace("--shrink 0", f"--shrink {price}"))
    truth = bleu(decoded(drawn), drawn.lines("dev.ref")).score
    expected = truth - price * (1 - cosine(drawn, columns(drawn)))
    assert rounds(run.err)[kept(run.err)].value == pytest.approx(expected, abs=6e-4)
    assert f"(--shrink {price:g}; --shrink 0 for BLEU alone)" in run.err


DEFAULTS = [  # and names of objectives
    ("--select none --shrink 0 --objective chrf=0.25", "0.25 corpus chrF2"),
    ("--select none --shrink 0 --objective m=10 --objective chrf --metric m=dev.m",
        "10 corpus m + 1 corpus chrF2"),
    ("--select none", "corpus BLEU − 1 (1 − cosine with the start)"),
    ("--select cv", "corpus BLEU − 5 |length ratio − the start's|"),
    ("--select cv --length-ratio free", "corpus BLEU"),
    ("--select cv --objective bleu --objective chrf",
        "1 corpus BLEU + 1 corpus chrF2 − 20 |length ratio − the start's|"),
    ("--select cv --objective chrf", "corpus chrF2 − 20 |length ratio − the start's|"),
    ("--select cv --shrink 3",
        "corpus BLEU − 5 |length ratio − the start's| − 3 (1 − cosine with the start)"),
    ("--select none --objective m --metric m=dev.m", "corpus m"),
    ("--select none --features TM0", "corpus BLEU"),
    ("--select none --algorithm pro", "corpus BLEU"),
    ("--select none --length-ratio 1",
        "corpus BLEU − 5 |length ratio − 1.000| − 1 (1 − cosine with the start)"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "name"), DEFAULTS, ids=[options for options, _ in DEFAULTS])
def test_a_weights_file_names_objective_and_prices(drawn: World, options: str, name: str) -> None:
    run = drawn.ok(FROM_START, *options.split())
    assert made(drawn)["objective"] == name
    assert f"maximised: {name}\n" in run.err
    files = [one["file"] for one in made(drawn)["inputs"]]
    assert files[4:] == ["dev.m"] * ("dev.m" in options)


def test_a_high_price_on_length_keeps_that_of_the_first_candidates(small: World) -> None:
    """As near to it as any choice of two features is."""
    first = lines_of(small, first_candidates(small)).ratio
    every = [lines_of(small, one).ratio for one in every_choice(small, ["LM0", "TM0"])]
    small.ok(FREE, "--length-ratio", "keep", "--length-price", 1e4)
    least = min(abs(ratio - first) for ratio in every)
    assert abs(made(small)["length_ratio"] - first) == pytest.approx(least, abs=1e-12)
    assert least < max(abs(ratio - first) for ratio in every)
    small.ok(FREE, "--length-ratio", "keep")
    assert made(small)["objective"] == f"corpus BLEU − 5 |length ratio − {first:.3f}|"
