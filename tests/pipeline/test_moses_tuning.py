"""`tune_moses` end to end, on made-up lists in the files that Moses' extractor would write.

The statistics are `rerank.metrics.bleu`'s, which are sacrebleu's; the other truth is `tune_mert`,
which reads the lists themselves.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from support.files import write, write_weights
from support.metrics import bleu_statistics
from support.tuning import START, noisy_lists

from rerank.cli import run
from rerank.errors import InputError, RerankError, UsageError
from rerank.formats.weights import Weights, read_weights
from rerank.metrics.bleu import corpus_bleu
from rerank.notices import Notices
from rerank.pipeline import (
    Lists,
    MertSettings,
    MosesTuning,
    ObjectiveOptions,
    Plan,
    TunedWeights,
    tune_mert,
    tune_moses,
)

QUICK = MertSettings(random_starts=2, kicks=2)
PLAN = Plan(settings=QUICK, select="none")
LOOSE = ObjectiveOptions(shrinkage=0)
FREE = Plan(objective=LOOSE, settings=QUICK, select="none")
INI = """\
[feature]
KENLM name=LM0
UnknownWordPenalty
[weight]
UnknownWordPenalty0= 1
LM0= 1 # of words
TM0= 0.5 0.25
[threads]
4
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists whose better candidates have, on the whole, better features."""
    monkeypatch.chdir(tmp_path)
    features, scores = "", ""
    lists = noisy_lists(11, [5] * 15)
    for t, own in enumerate(lists):
        counts = bleu_statistics([c.text for c in own.candidates], [own.reference])
        counts = counts[:, [0, 4, 1, 5, 2, 6, 3, 7, 8]]
        features += f"FEATURES_TXT_BEGIN_0 {t} 5 3 LM0_0 TM0_0 TM0_1 \n"
        for c in own.candidates:
            features += f"{c.lm} {c.tm[0]} {c.tm[1]} {'tag_x=1 ' * c.tag}\n"
        features += "FEATURES_TXT_END_0\n"
        scores += f"SCORES_TXT_BEGIN_0 {t} 5 9 BLEU\n"
        scores += "".join(" ".join(map(str, row)) + " \n" for row in counts.tolist())
        scores += "SCORES_TXT_END_0\n"
    write("dev.kbest", [f"{t} ||| {c.line}" for t, own in enumerate(lists) for c in own.candidates])
    write("dev.ref", [own.reference for own in lists])
    Path("features.dat").write_text(features)
    Path("scores.dat").write_text(scores)
    Path("moses.ini").write_text(INI)
    Path("init.opt").write_text("1 0.5 0.25\n0 0 0\n1 1 1\n")
    write_weights("start.json", START, sparse={"tag_x": -4.5})
    return tmp_path


def tuned(
    out: str = "out.json",
    said: list[str] | None = None,
    notices: Notices | None = None,
    n: int = 1,
    init: str | None = None,
    plan: Plan = PLAN,
    **options: Any,
) -> MosesTuning:
    announce = (said if said is not None else list[str]()).append
    return tune_moses(
        ["features.dat"] * n,
        ["scores.dat"] * n,
        TunedWeights(out, **options),
        init=init,
        plan=plan,
        notices=notices or Notices(),
        announce=announce,
    )


def bleu_by_hand(weights: Weights) -> float:
    """BLEU of what weights choose, from the files, in plain Python."""
    sums = np.zeros(9, np.int64)
    known = [*weights.dense["LM0"], *weights.dense["TM0"]]
    files = [
        Path(name).read_text().split("_END_0\n")[:-1] for name in ("features.dat", "scores.dat")
    ]
    for features, scores in zip(*files, strict=True):
        best, chosen = -np.inf, ""
        for row, counts in zip(features.split("\n")[1:-1], scores.split("\n")[1:-1], strict=True):
            dense = [float(token) for token in row.split() if "=" not in token]
            score = weights.sparse.get("tag_x", 0.0) if "tag_x=1" in row else 0.0
            for value, weight in zip(dense, known, strict=True):
                score += value * weight
            if score > best:
                best, chosen = score, counts
        sums += np.array(chosen.split(), np.int64)[[0, 2, 4, 6, 1, 3, 5, 7, 8]]
    return float(corpus_bleu(sums))


@pytest.mark.parametrize(
    "options",
    [{}, {"init": "init.opt"}, {"start": "start.json"}, {"start": "moses.ini"}],
    ids=["zeros", "init.opt", "json with sparse", "moses.ini"],
)
def test_the_bleu_told_is_that_of_the_weights_written(here: Path, options: dict[str, Any]) -> None:
    found = tuned(**options)
    written = read_weights("out.json", Notices())
    assert written == found.weights
    assert found.result.best.bleu == bleu_by_hand(written)
    assert found.result.best.bleu > found.result.start.bleu
    if "start" in options:
        assert found.result.start.bleu == bleu_by_hand(read_weights(options["start"], Notices()))
    assert found.to_text().startswith(f"tuned BLEU {found.result.best.bleu:.2f} (length ratio ")


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        (FREE, {}),
        (PLAN, {"start": "moses.ini"}),
        (
            Plan(objective=ObjectiveOptions(length=0.9, price=20), settings=QUICK, select="none"),
            {"start": "moses.ini"},
        ),
        (replace(FREE, settings=replace(QUICK, seed=4)), {}),
        (FREE, {"ranges": {"LM0": (0.5, 2.0), "TM0_1": (0.0, math.inf)}}),
        (FREE, {"features": ["TM0"]}),
    ],
    ids=["mert", "shrinkage", "length", "seed", "ranges", "some"],
)
def test_lists_and_their_files_lead_to_the_same_weights(
    here: Path, plan: Plan, options: dict[str, Any]
) -> None:
    """Where direction has a price, sparse features would leave the scale to rounding: none here."""
    lists, said = Lists("dev.kbest", no_docs="each"), list[str]()
    options = {"start": "start.json", **options}
    mert = TunedWeights("mert.json", **options)
    truth = tune_mert(lists, ["dev.ref"], mert, plan=plan, notices=Notices())
    assert truth is not None
    found = tuned(plan=plan, said=said, **options)
    assert found.weights.dense.keys() == truth.weights.dense.keys()
    for name, values in truth.weights.dense.items():  # gaps of tune_mert change the last bits
        assert found.weights.dense[name] == pytest.approx(values, rel=1e-9)
    assert found.result.best.bleu == truth.result.bleu
    assert found.weights.alpha == pytest.approx(truth.weights.alpha, rel=1e-9)
    made, same = found.weights.provenance, truth.weights.provenance
    for key in ("algorithm", "objective", "seed", "bleu", "length_ratio", "alpha_lists"):
        assert made[key] == same[key]
    flat, ends = (cast(dict[str, list[float | None]], one["flat"]) for one in (made, same))
    assert flat.keys() == ends.keys()
    for name in flat:
        there, truly = (np.array(one[name], float) for one in (flat, ends))
        assert np.allclose(there, truly, rtol=1e-9, equal_nan=True)
    assert f"maximised: {made['objective']}" in said


def test_the_shell_does_what_the_function_does(here: Path) -> None:
    options = (
        "--length-ratio 0.9 --length-price 20 --shrink 2 --starts 1 "
        "--seed 3 --threads 2 --algorithm mert --select none --quiet "
        "--range LM0=0: --range TM0=-1:1 --init init.opt --out shell.json"
    )
    assert run(f"tune-moses --features features.dat --scores scores.dat {options}".split()) == 0
    settings = MertSettings(random_starts=1, seed=3, threads=2)
    aims = ObjectiveOptions(length=0.9, price=20, shrinkage=2)
    tuned(
        init="init.opt",
        ranges={"LM0": (0, math.inf), "TM0": (-1, 1)},
        plan=Plan(objective=aims, settings=settings, select="none"),
    )
    assert Path("shell.json").read_text() == Path("out.json").read_text()


def test_features_that_are_not_named_keep_their_weights(here: Path) -> None:
    files = "--features features.dat --scores scores.dat --start bad.ini --out out.json"
    Path("bad.ini").write_text("LM0= -1\nTM0= 0.5 0.25\n")
    assert run(f"tune-moses {files} --tune LM0 --select none --quiet".split()) == 0
    dense = read_weights("out.json", Notices()).dense
    assert dense["TM0"] == (0.5, 0.25)
    assert dense["LM0"] > (0.0,)


def test_a_feature_is_named_by_the_option_of_the_command(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--features` are files here."""
    files = "tune-moses --features features.dat --scores scores.dat --out out.json -q"
    assert run(f"{files} --tune LM1".split()) == 2
    assert "rerank: --tune LM1: no such feature; there are LM0, TM0" in capsys.readouterr().err
    assert run(f"{files} --tune LM0 --range TM0=0:1".split()) == 2
    assert "name its feature in --tune\n" in capsys.readouterr().err


def test_weights_keep_to_their_ranges(here: Path) -> None:
    ranges = {"LM0": (0.75, 1.25), "TM0": (0.25, 0.5)}
    weights = tuned(init="init.opt", ranges=ranges).weights
    assert weights.provenance["ranges"] == {"LM0": [0.75, 1.25], "TM0": [0.25, 0.5]}
    dense = weights.dense
    assert 0.75 <= dense["LM0"][0] <= 1.25
    assert all(0.25 <= weight <= 0.5 for weight in dense["TM0"])


def test_pairs_that_come_again_change_nothing(here: Path) -> None:
    said: list[str] = []
    assert tuned(n=3, init="init.opt", said=said).weights.dense == (
        tuned(init="init.opt").weights.dense
    )
    assert said[0] == "75 hypotheses of 15 sentences, 150 duplicates left out"


def test_a_moses_ini_comes_back_with_other_weights_alone(here: Path) -> None:
    found = tuned("tuned.ini", start="moses.ini", base="moses.ini")
    old, new = INI.splitlines(), Path("tuned.ini").read_text().splitlines()
    assert new[3] == f"# alpha: {found.weights.alpha}"
    del new[3]
    assert [line for n, line in enumerate(new) if n not in (5, 6)] == [
        line for n, line in enumerate(old) if n not in (5, 6)
    ]
    assert new[5].endswith(" # of words")
    back = read_weights("tuned.ini", Notices())
    assert back.dense == {"UnknownWordPenalty0": (1.0,), **found.weights.dense}
    assert back.alpha == found.weights.alpha


def test_weights_without_names_go_by_place(here: Path) -> None:
    Path("weights.txt").write_text("1 0.5 0.25 \n")
    Path("mira.out").write_text("F0 1\nF1 0.5\nF2 0.25\ntag_x -4.5\n")
    dense = tuned(start="moses.ini").weights.dense
    assert tuned(start="weights.txt").weights.dense == dense
    assert tuned(start="mira.out").weights.dense == tuned(start="start.json").weights.dense


def test_ranges_that_are_not_kept_to_are_told_of(here: Path) -> None:
    notices = Notices()
    tuned(init="init.opt", notices=notices)
    assert not any("ranges" in line for line in notices.lines())
    Path("init.opt").write_text("1 0.5 0.25\n-1 0 0\n1 1 1\n")
    tuned(init="init.opt", notices=notices)
    (line,) = (line for line in notices.lines() if "ranges" in line)
    assert line.startswith("1 x ranges other than 0 to 1, which weights may leave")
    assert line.endswith("first at init.opt")


def test_what_the_start_leaves_open_is_said(here: Path) -> None:
    said: list[str] = []
    notices = Notices()
    Path("part.ini").write_text("LM0= 1\n")
    tuned(start="part.ini", init="init.opt", said=said, notices=notices)
    assert "start weights are those of part.ini, not of init.opt" in said
    assert "features without a weight in part.ini begin at 0: TM0" in said
    assert "1 x sparse feature without weight, counted as 0, first at part.ini" in notices.lines()
    notices = Notices()
    tuned(notices=notices)
    assert "1 x sparse feature without weight, counted as 0, first at features.dat" in (
        notices.lines()
    )


def test_what_made_the_weights_is_written_with_them(here: Path) -> None:
    found = tuned(init="init.opt")
    made = json.loads(Path("out.json").read_text())["provenance"]
    assert [one["file"] for one in made["inputs"]] == ["features.dat", "scores.dat", "init.opt"]
    assert made["bleu"] == found.result.best.bleu
    assert made["seed"] == QUICK.seed
    assert made["objective"] == "corpus BLEU − 1 (1 − cosine with the start)"
    assert made["statistics"] == "Moses' extractor"
    assert made["tuned"] == ["LM0", "TM0_0", "TM0_1"]
    assert made["ranges"] == {}
    assert made["flat"].keys() == {"LM0", "TM0_0", "TM0_1"}
    least, middle, most = made["optima"]["bleu"]
    assert least <= middle <= most
    assert found.result.best.bleu <= most + 1e-9
    n_climbs = (1 + QUICK.kicks) + (1 + QUICK.random_starts) + 1 + QUICK.kicks
    assert made["optima"]["found"] <= n_climbs


def test_the_objective_around_the_weights_is_drawn(here: Path) -> None:
    pytest.importorskip("matplotlib")
    tuned(init="init.opt", plot="around.svg")
    assert Path("around.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    "plan",
    [
        Plan("exact", select="none"),
        Plan(replicates=2, select="none"),
        Plan(held_out=0.5, select="none"),
        Plan(objective=ObjectiveOptions((("chrf", 1.0),)), select="none"),
        Plan(objective=ObjectiveOptions(documents=True), select="none"),
        Plan(objective=ObjectiveOptions(worst=0.5), select="none"),
    ],
)
def test_plans_for_more_than_the_files_know_are_refused(here: Path, plan: Plan) -> None:
    with pytest.raises(UsageError, match="neither documents nor other metrics: objectives, pools"):
        tuned(plan=plan)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(algorithm="mert2", select="none"), "'mert2'"),
        (
            Plan(algorithm="pro", settings=QUICK, select="none"),
            "--algorithm pro maximises corpus BLEU in its own way",
        ),
        (
            Plan(algorithm="pro", objective=ObjectiveOptions(length=0.9), select="none"),
            "--algorithm pro maximises corpus BLEU",
        ),
    ],
)
def test_tuners_that_heed_no_such_plan_are_refused(here: Path, plan: Plan, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tuned(plan=plan)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"out": "w.txt"}, UsageError, "--out w.txt: expected a weights file .json or .ini"),
        ({"base": "moses.ini"}, UsageError, "--out out.json: .* .ini, like --base"),
        ({"out": "moses.ini", "base": "moses.ini"}, UsageError, "moses.ini is also the input"),
        ({"ranges": {"LM1": (0, 1)}}, UsageError, "--range LM1=…: no such feature; .* LM0, TM0_0"),
        ({"init": "init.opt", "ranges": {"LM0": (2, 3)}}, UsageError, "start weight of LM0 is 1;"),
        (
            {"plan": Plan(objective=ObjectiveOptions(shrinkage=2), select="none")},
            UsageError,
            "--shrink 2: there are no start weights",
        ),
        (
            {
                "plan": Plan(objective=ObjectiveOptions(shrinkage=2), select="none"),
                "start": "start.json",
            },
            UsageError,
            "--shrink 2: a part of the scores is not tuned",
        ),
        (
            {
                "plan": Plan(objective=ObjectiveOptions(shrinkage=2), select="none"),
                "init": "zeros.opt",
            },
            UsageError,
            "--shrink 2: all tuned weights start at 0",
        ),
        ({"start": "short.ini"}, InputError, "short.ini: expected 2 weights for 'TM0'"),
        ({"start": "columns.ini"}, InputError, "columns.ini: .* found TM0_1 and no TM0_0"),
        ({"start": "two.txt"}, InputError, "two.txt: expected 3 weights without names"),
        ({"init": "two.txt"}, InputError, "two.txt:1: expected 3 values, for LM0 … TM0_1, found 2"),
        (
            {"base": "short.ini", "out": "out.ini"},
            InputError,
            "short.ini:2: expected 2 weights of TM0 as tuned, found 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_the_work(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    error: type[RerankError],
    message: str,
) -> None:
    Path("short.ini").write_text("[weight]\nTM0= 1\n")
    Path("columns.ini").write_text("LM0= 1\nTM0_1= 1\n")
    Path("two.txt").write_text("1 2\n")
    Path("zeros.opt").write_text("0 0 0\n0 0 0\n1 1 1\n")
    monkeypatch.setattr("rerank.tuning.tuners.pool_tuner.optimise", None)
    before = sorted(here.iterdir())
    with pytest.raises(error, match=message):
        tuned(**options)
    assert sorted(here.iterdir()) == before


def test_weights_are_not_made_up_where_bleu_says_nothing(here: Path) -> None:
    scores = Path("scores.dat")
    lines = [
        "0 8 0 7 0 6 0 5 8" if line[0].isdigit() else line
        for line in scores.read_text().splitlines()
    ]
    scores.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(RerankError, match=r"all-zero weights, .* give start weights with --start"):
        tuned()
    assert not Path("out.json").exists()
    notices = Notices()
    assert tuned(start="moses.ini", notices=notices).weights.dense == {
        "LM0": (1.0,),
        "TM0": (0.5, 0.25),
    }
    assert any("without a 4-gram match" in line for line in notices.lines())
