"""`rerank tune-mbr`: the scores of its spreads are those of what `rerank decode` writes under them.

Truth: sacrebleu on decoded lines; the documented rule of choice with a jackknife written again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from support.tuned import LISTS, bleu, decoded, made
from support.world import World

MBR = f"tune-mbr {LISTS} --ref dev.ref --weights w.json --out mbr.json"
DOCUMENTS = "vvvvvwwwwxxxxxxxyyzzzzzz"
DEFAULT = 1.4


@pytest.fixture
def drawn(world: World) -> World:
    world.draw(5, DOCUMENTS, (3, 16, 17))  # the last two are a document
    weigh(world)
    return world


def weigh(world: World, **others: object) -> None:
    world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.25]}, **others)


def score(world: World, lines: Sequence[str], metric: str = "bleu") -> float:
    if metric == "chrf":
        return float(sacrebleu.corpus_chrf([*lines], [world.lines("dev.ref")]).score)
    return float(bleu(lines, world.lines("dev.ref")).score)


@pytest.mark.parametrize(("name", "metric"), [("", "chrf"), ("codclm", "bleu"), ("ccdclm", "bleu")])
def test_scores_are_those_of_decoding(
    drawn: World, model_folders: Mapping[str, Path], name: str, metric: str
) -> None:
    sources = ["--lm", f"lm={model_folders[name]}"] if name else []
    if name:
        drawn.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.25], "lm": 0.25, "lmoov": -0.5})
    few = ",particles=8" if name == "ccdclm" else ""
    found = drawn.ok(
        MBR, *sources, "--search", f"mbr:lag=5{few}" if few else "mbr", "--metric", metric
    )
    of_mbr, label = made(drawn, "mbr.json")["mbr"], {"chrf": "chrF2", "bleu": "BLEU"}[metric]
    assert of_mbr["objective"] == f"corpus {label}"
    plain = score(drawn, decoded(drawn, *sources, weights="w.json"), metric)
    assert of_mbr["held_out"]["highest_score"] == pytest.approx(plain, rel=1e-12)
    for spread in (DEFAULT, 0.35, 4):
        options = ["--search", f"mbr:spread={spread}{few}"]
        truth = score(drawn, decoded(drawn, *sources, *options, weights="w.json"), metric)
        assert of_mbr["by_spread"][f"{spread:g}"] == pytest.approx(truth, rel=1e-12)
    listed = ", ".join(f"{name}: {one:.2f}" for name, one in of_mbr["by_spread"].items())
    assert f"{label} by spread: {listed}\n" in found.err


def chosen(values: Sequence[float], without: np.ndarray) -> int:
    """The first, or the best of those better by more than a standard error of the difference.

    values: (C,) scores; without: (C, G) scores without one fold each
    """
    n = without.shape[1]
    gains = without - without[0]
    errors = np.sqrt((n - 1) / n * ((gains - gains.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    rows = [v if v - values[0] > e else values[0] for v, e in zip(values, errors, strict=True)]
    return int(np.argmax(rows))


@pytest.mark.parametrize(("seed", "metric"), [(6, "bleu"), (5, "ter")])
def test_the_spread_is_the_best_of_those_that_are_surely_better(
    world: World, seed: int, metric: str
) -> None:
    """Folds are documents; what is said of held-out folds is of spreads that others chose."""
    world.draw(seed, DOCUMENTS, (3,))
    weigh(world)
    options = "utility=linear-bleu,word-reward=0.25"
    world.ok(MBR, "--metric", metric, "--search", f"mbr:{options}")
    of_mbr, weights = made(world, "mbr.json")["mbr"], world.json("mbr.json")
    spreads = sorted(map(float, of_mbr["by_spread"]), key=lambda one: (one != DEFAULT, one))
    assert len(spreads) == 12
    outputs = [
        decoded(world, "--search", f"mbr:spread={s},{options}", weights="w.json") for s in spreads
    ]
    plain, references = decoded(world, weights="w.json"), world.lines("dev.ref")
    sign = -1 if metric == "ter" else 1
    names = [*dict.fromkeys(DOCUMENTS)]

    def of(lines: Sequence[str], documents: set[str]) -> float:
        rows = zip(DOCUMENTS, lines, references, strict=True)
        texts, own = zip(*((text, ref) for d, text, ref in rows if d in documents), strict=True)
        if metric == "ter":
            return -float(sacrebleu.corpus_ter([*texts], [[*own]]).score)
        return float(bleu(texts, own).score)

    def choice(documents: set[str]) -> int:
        without = [[of(one, documents - {d}) for d in names if d in documents] for one in outputs]
        return chosen([of(one, documents) for one in outputs], np.array(without))

    everything = {*DOCUMENTS}
    held = [""] * len(DOCUMENTS)
    for document in names:
        best = outputs[choice(everything - {document})]
        held = [best[t] if d == document else held[t] for t, d in enumerate(DOCUMENTS)]
    mbr, highest = of(held, everything), of(plain, everything)
    found = of_mbr["held_out"]
    assert (found["mbr"], found["highest_score"], found["gain"]) == (
        pytest.approx(sign * mbr),
        pytest.approx(sign * highest),
        pytest.approx(mbr - highest),
    )
    left = np.array([of(held, everything - {d}) - of(plain, everything - {d}) for d in names])
    error = np.sqrt((len(names) - 1) / len(names) * ((left - left.mean()) ** 2).sum())
    assert found["gain_error"] == pytest.approx(error)
    assert found["folds"] == len(names)
    assert of_mbr["verdict"].startswith("mbr against the paths of highest score, held out")
    assert "not tested: fewer than 10 documents (" in of_mbr["verdict"]
    best_spread = spreads[choice(everything)] if mbr > of(outputs[0], everything) else DEFAULT
    assert weights["mbr_spread"] == best_spread
    assert (of_mbr["utility"], of_mbr["word_reward"]) == ("linear-bleu", 0.25)


@pytest.mark.parametrize(
    ("documents", "folds"),
    [("vwxyyzz", 5), ("x" * 24, 10), ("".join(map(chr, range(97, 122))), 20), ("x", 2)],
    ids=["documents", "blocks of lines", "groups of documents", "a line and the gaps"],
)
def test_folds_are_documents_or_blocks_of_lines(world: World, documents: str, folds: int) -> None:
    world.draw(5, documents, ())
    weigh(world)
    world.ok(MBR)
    assert made(world, "mbr.json")["mbr"]["held_out"]["folds"] == folds


def test_decode_takes_the_spread_of_the_weights_file(drawn: World) -> None:
    weigh(drawn, alpha=3.0, provenance={"seed": 4})
    for out in ("mbr.json", "mbr.ini"):
        found = drawn.ok(MBR.replace("mbr.json", out))
        (spread,) = re.findall(r"BLEU: spread ([\d.]+), ", found.err)
        of_option = decoded(drawn, "--search", f"mbr:spread={spread}", weights="w.json")
        assert decoded(drawn, "--search", "mbr", weights=out) == of_option
    one = drawn.json("mbr.json")
    assert (one["weights"], one["alpha"]) == (drawn.json("w.json")["weights"], 3.0)
    assert one["mbr_spread"] == float(spread)
    assert one["provenance"]["seed"] == 4
    assert "3.0" in drawn.text("mbr.ini")


def test_lists_that_the_weights_were_tuned_on_are_a_warning(drawn: World) -> None:
    digest = f"sha256:{sha256(drawn.content('dev.kbest')).hexdigest()}"
    for own, warned in ((digest, True), (digest[:15], True), ("sha256:01234567", False)):
        weigh(drawn, provenance={"inputs": [{"file": "dev.kbest", "digest": own}]})
        assert ("the weights were tuned on these lists" in drawn.ok(MBR).err) == warned
