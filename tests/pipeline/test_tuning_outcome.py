"""Report and provenance of a tuning run, compared with their definitions and with decoding."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import sacrebleu
from support.files import read, write_weights
from support.tuning import ALONE, decoded_bleu, tune, write_tuning_set

from rerank.corpus.labels import Label, column_names
from rerank.errors import InputError, UsageError
from rerank.formats.weights import read_weights
from rerank.metrics.bleu import Bleu
from rerank.metrics.ter import Ter
from rerank.notices import Notices
from rerank.pipeline import (
    MertSettings,
    ObjectiveOptions,
    Plan,
    TunedWeights,
    Tuning,
    decode,
    tune_mert,
)
from rerank.pipeline.tuning_outcome import by_name, flatness, metric_scores, score_entries
from rerank.scorers.features import FeatureSpace
from rerank.tuning.rounds import describe_bleu
from rerank.tuning.run import HeldOutScores
from rerank.tuning.surface import NEAR, Section

DOCS = ("x",) * 5 + ("y",) * 2 + ("z",) * 5
HOLES = {3, 5, 6}  # the last two are a document
QUICK = MertSettings(random_starts=2, kicks=2)
PLAN = Plan(settings=QUICK)
with_figures = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs the extra `figures`"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists whose better candidates have, on the whole, better features."""
    monkeypatch.chdir(tmp_path)
    write_tuning_set(3, DOCS, HOLES, lost=2)
    return tmp_path


def tuned(out: str = "out.json", plan: Plan = PLAN, **options: Any) -> Tuning:
    return tune(ALONE, plan, out=out, start="start.json", **options)


def decoded(weights: str) -> tuple[float, float]:
    """BLEU and length ratio of what `decode` writes."""
    bleu = decoded_bleu(ALONE, weights)
    return bleu.score, bleu.sys_len / bleu.ref_len


# Told


def test_the_last_line_has_bleu_before_and_after_and_the_price_of_direction(here: Path) -> None:
    found = tuned()
    before, after = (
        (found.result.baseline_bleu, found.result.baseline_ratio),
        (found.result.bleu, found.result.length_ratio),
    )
    assert found.to_text() == (
        "tuned BLEU {:.2f} (length ratio {:.3f}); first candidates {:.2f} ({:.3f}); weights were "
        "kept near the direction of the start weights (--shrink 1; --shrink 0 for BLEU alone)"
    ).format(*after, *before)
    free = tuned(plan=Plan(objective=ObjectiveOptions(shrinkage=0.0), settings=QUICK))
    assert "--shrink" not in free.to_text()


@pytest.mark.parametrize(("after", "change"), [(9.5, "fell"), (10.5, "rose"), (10.0, "stayed")])
def test_a_fall_of_held_out_bleu_is_said_plainly(after: float, change: str) -> None:
    bleu = {"first candidates": 8.0, "start weights": 10.0, "tuned weights": after}
    line = HeldOutScores(("x",), bleu, bleu).to_text()
    assert line == f"held-out BLEU {change}: start weights 10.00, tuned weights {after:.2f}"
    del bleu["start weights"]
    expected = f"held-out BLEU rose: first candidates 8.00, tuned weights {after:.2f}"
    assert HeldOutScores(("x",), bleu, bleu).to_text() == expected


def test_the_last_line_has_the_held_out_bleu(here: Path) -> None:
    assert "; held-out BLEU " in tuned(plan=Plan(settings=QUICK, held_out=0.3)).to_text()


def test_bleu_is_that_of_all_documents() -> None:
    sums = np.array([[200] * 4 + [1000] * 5, [600] * 4 + [1000] * 4 + [2000]])
    told = describe_bleu("here:", sums)
    truth = sacrebleu.BLEU.compute_bleu([800] * 4, [2000] * 4, 2000, 3000).score
    assert told == f"here: BLEU {truth:.2f}, length ratio 0.667"


def test_weights_have_the_widths_of_their_features() -> None:
    space = FeatureSpace((Label("LM0", 1), Label("TM0", 3), Label("x", 1)), (), 4, False)
    found = by_name(np.arange(5.0), space)
    assert found == {"LM0": (0.0,), "TM0": (1.0, 2.0, 3.0), "x": (4.0,)}


def test_ends_that_are_none_are_told_as_none() -> None:
    left, values = np.array([-np.inf, 1.0, 2.0]), np.array([5.0, 5.05, 4.0])
    assert flatness([Section(1, 1.5, left, values)], ["a", "b"]) == {"b": [None, 2.0]}


def test_what_was_reached_is_told_of_every_metric_as_people_know_it() -> None:
    """Three errors in twenty words, and one in ten: error rates are positive."""
    sums = np.array([[20] * 4 + [20] * 5 + [3.0, 20.0], [10] * 4 + [10] * 5 + [1.0, 10.0]])
    bleu, ter = Bleu(), Ter()
    scores = metric_scores(sums, [bleu, ter], 2)
    assert scores[1].to_text() == f"TER 13.33 ({ter.signature(2)})"
    found = cast(dict[str, Any], score_entries(sums, scores))
    assert found["bleu"] == pytest.approx(100)
    assert found["length_ratio"] == 1
    assert "nrefs:2" in found["signature"]
    assert found["metrics"]["TER"]["score"] == pytest.approx(100 * 4 / 30)
    assert found["metrics"]["TER"]["signature"] == ter.signature(2)
    assert "metrics" not in score_entries(sums[:, :9], metric_scores(sums[:, :9], [bleu], 2))


# Flatness


def test_weights_within_their_flat_range_lose_little_and_beyond_it_more(here: Path) -> None:
    """Decoded at both ends of each range; there is no context, so ranges are exact."""
    found = tuned()
    flat = cast(dict[str, list[float | None]], found.weights.provenance["flat"])
    assert list(flat) == column_names((Label("LM0", 1), Label("TM0", 2)))
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["provenance"]["flat"] == flat

    def value(weights: Sequence[float]) -> float:
        write_weights("moved.json", {"LM0": weights[:1], "TM0": weights[1:]})
        bleu, ratio = decoded("moved.json")
        return bleu - 5 * abs(ratio - found.result.baseline_ratio)

    dense = [*found.weights.dense["LM0"], *found.weights.dense["TM0"]]
    best, ends = value(dense), 0
    for column, (low, high) in enumerate(flat.values()):
        for end, outwards in ((low, -1e-9), (high, 1e-9)):
            if end is not None:
                inside, beyond = ([*dense] for _ in range(2))
                inside[column], beyond[column] = end - outwards, end + outwards
                assert value(inside) >= best - NEAR
                assert value(beyond) < best - NEAR
                ends += 1
    assert ends >= 3


@with_figures
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_figure_is_drawn_of_the_surface(here: Path, suffix: str) -> None:
    plain = tuned()
    found = tuned(plot=f"surface.{suffix}")
    begin = Path(f"surface.{suffix}").read_bytes()
    magic = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[suffix]
    assert magic in begin
    assert found.weights == plain.weights


@with_figures
@pytest.mark.parametrize(
    ("plot", "message"),
    [
        ("surface.jpg", r"--plot surface\.jpg: expected a file \.svg, \.png, \.pdf"),
        ("no/surface.png", "no"),
    ],
)
def test_a_figure_that_cannot_be_written_is_told_before_any_work(
    here: Path, plot: str, message: str
) -> None:
    with pytest.raises((UsageError, InputError), match=message):
        tuned(plot=plot)
    assert not Path("out.json").exists()


# A moses.ini


MOSES = """# made by hand
[input-factors]
0

[feature]
KENLM name=LM0 order=5
PhraseDictionaryMemory name=TM0 num-features=2
UnknownWordPenalty

[weight]
UnknownWordPenalty0= 1
LM0= 0.5  # of the lists
TM0= 0.2 0.3
"""


def test_a_moses_ini_keeps_its_lines_and_gets_the_weights(here: Path) -> None:
    Path("moses.ini").write_text(MOSES, encoding="utf-8")
    plain = tuned()
    found = tuned("tuned.ini", base="moses.ini")
    assert found.weights.dense == plain.weights.dense
    read = read_weights("tuned.ini", Notices())
    assert read.alpha == found.weights.alpha
    assert read.dense == {**found.weights.dense, "UnknownWordPenalty0": (1.0,)}
    lines = Path("tuned.ini").read_text(encoding="utf-8").splitlines()
    head = MOSES.split("[weight]", maxsplit=1)[0].splitlines()
    assert [line for line in lines if line in head][: len(head)] == head
    inputs = cast(list[dict[str, str]], found.weights.provenance["inputs"])
    assert "moses.ini" in [one["file"] for one in inputs]


@pytest.mark.parametrize(
    ("out", "base", "message"),
    [
        ("out.json", "moses.ini", r"--out out\.json: expected a weights file \.ini, like --base"),
        ("moses.ini", "moses.ini", r"also the input"),
        ("out.ini", "none.ini", r"none\.ini"),
    ],
)
def test_a_base_that_cannot_be_followed_is_told_before_any_work(
    here: Path, out: str, base: str, message: str
) -> None:
    Path("moses.ini").write_text(MOSES, encoding="utf-8")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    with pytest.raises((UsageError, InputError), match=message):
        tuned(out, base=base)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[weight]", "[weights]", r"moses\.ini: expected a section \[weight\]"),
        ("TM0= 0.2 0.3", "TM0= 0.2", r"moses\.ini:13: expected 2 weights of TM0 .*, found 1"),
    ],
    ids=["no section", "another number of weights"],
)
def test_a_base_of_another_system_is_told_before_tuning(
    here: Path, old: str, new: str, message: str
) -> None:
    Path("moses.ini").write_text(MOSES.replace(old, new), encoding="utf-8")
    said: list[str] = []
    weights = TunedWeights("out.ini", start="start.json", base="moses.ini")
    with pytest.raises(InputError, match=message):
        tune_mert(ALONE, ["dev.ref"], weights, notices=Notices(), announce=said.append)
    assert not any(line.startswith("round") for line in said)
    assert not Path("out.ini").exists()


# Provenance


@pytest.mark.parametrize("algorithm", ["mert", "pro"])
def test_weights_say_what_was_maximised_by_which_tuner(here: Path, algorithm: str) -> None:
    settings = QUICK if algorithm == "mert" else MertSettings(seed=7, threads=3)
    found = tuned("out.ini", plan=Plan(algorithm=algorithm, settings=settings))
    said = found.weights.provenance
    assert said["algorithm"] == algorithm
    assert said["pools"] == "auto"
    if algorithm == "mert":
        assert said["objective"] == "corpus BLEU − 1 (1 − cosine with the start)"
        assert (said["seed"], said["random_starts"], said["threads"]) == (1, 2, 1)
    else:
        assert said["objective"] == "corpus BLEU"
        assert (said["seed"], said["threads"]) == (7, 3)
        assert "random_starts" not in said
    text = Path("out.ini").read_text(encoding="utf-8")
    assert f'# algorithm: "{algorithm}"\n' in text
    assert math.isfinite(found.result.bleu)
    assert (found.result.bleu, found.result.length_ratio) == decoded("out.ini")


def test_weights_say_what_every_metric_reached(here: Path) -> None:
    aims = ObjectiveOptions((("bleu", 1.0), ("ter", 0.5)))
    found = tuned(plan=Plan(objective=aims, settings=QUICK))
    metrics = cast(dict[str, Any], found.weights.provenance["metrics"])
    decode(ALONE, "out.json", "hyp.txt", notices=Notices())
    truth = sacrebleu.corpus_ter(read("hyp.txt"), [read("dev.ref")]).score
    assert metrics["TER"]["score"] == pytest.approx(truth)
