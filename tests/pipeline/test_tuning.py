"""`tune_mert` end to end: what it says it reached is what decoding with its weights gives.

BLEU is sacrebleu's, of the lines that `decode` writes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from support.files import read, write, write_weights
from support.tuning import START, decoded_bleu, first_candidates, tune, write_tuning_set

from rerank.errors import InputError, RerankError, UsageError
from rerank.formats.weights import read_weights
from rerank.notices import Notices
from rerank.pipeline import (
    Lists,
    MertSettings,
    ObjectiveOptions,
    Plan,
    Reports,
    Search,
    TunedWeights,
    Tuning,
    decode,
    tune_mert,
)
from rerank.pipeline.kbest_source import KBestSource

DOCS = ("x",) * 7 + ("y",) * 2 + ("z",) * 6
HOLES = {3, 7, 8}  # the last two are a document
QUICK = MertSettings(random_starts=2, kicks=2)
FREE = Plan(
    objective=ObjectiveOptions(length="free", shrinkage=0.0), settings=QUICK, select="none"
)  # nothing but BLEU
with_context = pytest.mark.parametrize("name", ["codclm", "ccdclm"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists whose better candidates have, on the whole, better features."""
    monkeypatch.chdir(tmp_path)
    write_tuning_set(11, DOCS, HOLES)
    return tmp_path


def lists(folder: Path | None = None, **options: Any) -> Lists:
    return Lists("dev.kbest", "dev.docs", lms=(("lm", folder),) if folder else (), **options)


def tuned(
    given: Lists,
    out: str = "out.json",
    said: list[str] | None = None,
    plan: Plan = FREE,
    **options: Any,
) -> Tuning:
    """Tuning for BLEU alone, unless a plan is given."""
    return tune(given, plan, said, out=out, **options)


def kept_round(said: Sequence[str]) -> int:
    """The round that is told to be kept."""
    (number,) = [line.removeprefix("kept: round ") for line in said if line.startswith("kept: ")]
    return int(number)


def bleu_of(given: Lists, weights: str, **options: Any) -> float:
    return float(decoded_bleu(given, weights, **options).score)


# What was reached


@pytest.mark.parametrize("start", [None, "start.json"])
def test_without_context_tuning_never_loses_bleu(here: Path, start: str | None) -> None:
    said: list[str] = []
    found = tuned(lists(), said=said, start=start)
    assert found.result.bleu == bleu_of(lists(), "out.json")
    assert found.result.bleu > found.result.baseline_bleu
    assert found.result.bleu > bleu_of(lists(), "start.json")
    assert kept_round(said) == 1


def test_without_context_tuning_never_loses_bleu_less_the_price_of_another_length(
    here: Path,
) -> None:
    """Five points for a ratio off by 1; BLEU and length are sacrebleu's."""
    every = read("dev.kbest")
    every[1::3] = [re.sub(r"^(\d+ \|\|\| )\w+ \w+ ", r"\1", line) for line in every[1::3]]
    write("dev.kbest", every)

    def value(weights: str) -> float:
        bleu = bleu_of(lists(), weights)
        lengths = [sum(map(len, map(str.split, read(name)))) for name in ("hyp.txt", "dev.ref")]
        return bleu - 5 * abs(lengths[0] / lengths[1] - found.result.baseline_ratio)

    said: list[str] = []
    plan = Plan(
        objective=ObjectiveOptions(length="keep", shrinkage=0.0), settings=QUICK, select="none"
    )
    found = tuned(lists(), said=said, start="start.json", plan=plan)
    assert f"maximised: corpus BLEU − 5 |length ratio − {found.result.baseline_ratio:.3f}|" in said
    assert value("out.json") > value("start.json")
    assert value("out.json") >= found.result.baseline_bleu
    assert any(line.endswith(f"{value('out.json'):.3f}") for line in said if "round 1" in line)


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm"])
@pytest.mark.parametrize("form", ["json", "ini"])
def test_the_bleu_told_is_that_of_decoding_with_the_weights_written(
    here: Path, model_folders: Mapping[str, Path], name: str, form: str
) -> None:
    given = lists(model_folders[name])
    found = tuned(given, f"out.{form}", start="start.json")
    assert found.result.bleu == bleu_of(given, f"out.{form}")
    assert found.to_text().startswith(f"tuned BLEU {found.result.bleu:.2f} (")


def test_the_bleu_told_is_of_the_references_and_the_tokenizer_given(here: Path) -> None:
    lines = read("dev.ref")
    write("other.ref", [f"{line.replace('the', 'a')}, one!" for line in lines])
    options: dict[str, Any] = {"references": ["dev.ref", "other.ref"], "tokenize": "13a"}
    found = tuned(lists(), **options)
    assert found.result.bleu == bleu_of(lists(), "out.json", **options)
    assert "nrefs:2" in str(found.weights.provenance["signature"])
    assert "tok:13a" in str(found.weights.provenance["signature"])


@with_context
def test_with_context_the_round_with_the_best_decoded_bleu_is_kept(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    said: list[str] = []
    found = tuned(lists(model_folders[name]), said=said, start="start.json")
    rounds = [re.fullmatch(r"round (\d+): .*decoded BLEU ([\d.]+), .*", line) for line in said]
    decoded = {int(r[1]): float(r[2]) for r in rounds if r}
    assert list(decoded) == list(range(len(decoded)))
    assert round(found.result.bleu, 2) == max(decoded.values()) == decoded[kept_round(said)]
    assert said[-1].startswith("time ")
    start = {**START, "lm": [0.0], "lmoov": [0.0]}
    write_weights("start.json", start)
    assert decoded[0] == round(bleu_of(lists(model_folders[name]), "start.json"), 2)


def test_the_baseline_is_the_first_candidates(here: Path) -> None:
    found = tuned(lists())
    truth = sacrebleu.corpus_bleu(
        first_candidates(), [read("dev.ref")], tokenize="none", force=True
    )
    assert found.result.baseline_bleu == truth.score
    assert found.result.baseline_ratio == truth.sys_len / truth.ref_len


def test_first_candidates_that_cannot_be_bettered_still_give_weights(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    """Weights of zeros choose the first candidates too, but decoding would refuse them."""
    write("dev.ref", first_candidates())
    for given in (lists(), lists(model_folders["codclm"])):
        found = tuned(given)
        assert found.result.bleu == bleu_of(given, "out.json")


# The scale


def slope(alpha: float, found: str, reference: str) -> float:
    """Of the log-likelihood of each list's best candidates, by sacrebleu; totals of a file."""
    truth = BLEU(tokenize="none", effective_order=True)
    targets = read(reference)
    lists: dict[int, list[tuple[float, float]]] = {}
    for line in read(found):
        t, text, _, total = line.split(" ||| ")
        quality = truth.sentence_score(text, [targets[int(t)]]).score
        lists.setdefault(int(t), []).append((quality, float(total)))
    sums = 0.0
    for candidates in lists.values():
        best, worst = max(candidates)[0], min(candidates)[0]
        totals = np.array([total for _, total in candidates])
        if best > worst:
            powers = np.exp(alpha * (totals - totals.max()))
            sums += float(np.mean([total for quality, total in candidates if quality == best]))
            sums -= powers @ totals / powers.sum()
    return float(sums)


@pytest.mark.parametrize("name", [None, "rnnlm", "codclm", "ccdclm"])
def test_the_scale_is_the_most_likely_one_under_the_path_of_the_weights(
    here: Path, model_folders: Mapping[str, Path], name: str | None
) -> None:
    """Decoding writes all candidates with their totals under the decoded path."""
    said: list[str] = []
    given = lists(model_folders[name] if name else None)
    alpha = tuned(given, said=said, start="start.json").weights.alpha
    assert alpha is not None
    assert read_weights("out.json", Notices()).alpha == alpha
    assert any(line.startswith(f"alpha {alpha:.3g} ± ") for line in said)
    decode(given, "out.json", "hyp.txt", reports=Reports("all.kbest"), notices=Notices())
    below, there, above = (slope(alpha * f, "all.kbest", "dev.ref") for f in (0.99, 1, 1.01))
    assert below > 0 > above
    assert abs(there) < 1e-5 * (below - above)  # totals are written with nine digits


def test_without_a_most_likely_scale_there_is_a_notice_and_none_is_written(here: Path) -> None:
    """The references are the first candidates, and a feature that is read off them is tuned."""
    texts: dict[int, str] = {}
    lines = []
    for line in read("dev.kbest"):
        t, text, _, total = line.split(" ||| ")
        first = texts.setdefault(int(t), text)
        lines.append(f"{t} ||| {text} ||| same= {float(text == first)} ||| {total}")
    write("dev.kbest", lines)
    write("dev.ref", [texts.get(t, "") for t in range(len(DOCS))])
    notices, said = Notices(), list[str]()
    found = tune_mert(
        lists(),
        ["dev.ref"],
        TunedWeights("out.json"),
        plan=FREE,
        notices=notices,
        announce=said.append,
    )
    assert found is not None
    assert found.result.bleu == pytest.approx(100)
    assert found.weights.alpha is None
    assert read_weights("out.json", Notices()).alpha is None
    told = [notice.kind for notice in notices if "alpha" in notice.kind]
    assert len(told) == 1
    assert told[0].startswith("no alpha is fitted: the best candidates score highest, at any scale")
    assert not any(line.startswith("alpha") for line in said)


# Weights that stay


def test_features_that_are_not_named_keep_their_weights(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    given = lists(model_folders["codclm"])
    start = {"LM0": (-1.0,), "TM0": (-0.5, 0.25), "lm": (-0.25,)}  # on the whole for worse ones
    write_weights("other.json", start)
    for features in (["TM0"], ["lm", "LM0"]):
        found = tuned(given, features=features, start="other.json")
        dense = found.weights.dense
        moved = {
            name for name, weights in {**start, "lmoov": (0.0,)}.items() if dense[name] != weights
        }
        assert moved
        assert moved <= set(features)
        assert found.result.bleu == bleu_of(given, "out.json")


def test_sparse_weights_are_used_and_kept(here: Path) -> None:
    write_weights("start.json", START, sparse={"tag_x": 2.5})
    found = tuned(lists(), start="start.json")
    assert found.weights.sparse == {"tag_x": 2.5}
    assert found.result.bleu == bleu_of(lists(), "out.json")


def test_features_without_a_start_weight_are_told(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    said: list[str] = []
    tuned(lists(model_folders["rnnlm"]), said=said, start="start.json")
    assert "features without a weight in start.json begin at 0: lm, lmoov" in said


def test_the_total_is_tuned_if_it_is_named(here: Path) -> None:
    assert "total" not in tuned(lists()).weights.dense
    lines = read("dev.kbest")
    write("dev.kbest", [f"{line[:-1]}{-(n % 4)}" for n, line in enumerate(lines)])
    found = tuned(lists(), features=["total"], start="start.json")
    assert found.weights.dense["total"] != (0.0,)
    assert found.result.bleu == bleu_of(lists(), "out.json")


def test_a_moses_ini_is_a_start(here: Path) -> None:
    """Every moses.ini has a weight of UnknownWordPenalty0, which no list holds."""
    content = ("[weight]", "UnknownWordPenalty0= 1", "LM0= 1.0", "TM0= 0.5 0.25")
    write("moses.ini", ("[input-factors]", "0", "", *content))
    one, two = (tuned(lists(), start=start) for start in ("moses.ini", "start.json"))
    assert one.weights.dense == two.weights.dense


def test_lists_that_say_nothing_leave_the_start_weights_and_without_them_there_are_none(
    here: Path,
) -> None:
    write("dev.ref", ["unheard"] * len(DOCS))
    assert tuned(lists(), start="start.json").weights.dense == {"LM0": (1.0,), "TM0": (0.5, 0.25)}
    Path("out.json").unlink()
    with pytest.raises(RerankError, match=r"all-zero weights, .* --start"):
        tuned(lists())
    assert not Path("out.json").exists()


# What is written


def test_both_forms_of_the_file_hold_the_weights_returned(here: Path) -> None:
    for form in ("json", "ini"):
        found = tuned(lists(), f"out.{form}", start="start.json")
        assert read_weights(f"out.{form}", Notices()).dense == found.weights.dense
    text = Path("out.ini").read_text(encoding="utf-8")
    assert "\n[weight]\nLM0= " in text
    assert f"# bleu: {found.result.bleu}\n" in text


def test_weights_say_how_they_came_about(here: Path, model_folders: Mapping[str, Path]) -> None:
    found = tuned(lists(model_folders["rnnlm"], top=3), start="start.json")
    said = json.loads(Path("out.json").read_text(encoding="utf-8"))["provenance"]
    assert said == found.weights.provenance
    assert (said["algorithm"], said["objective"]) == ("mert", "corpus BLEU")
    assert (said["bleu"], said["length_ratio"]) == (found.result.bleu, found.result.length_ratio)
    assert (said["seed"], said["random_starts"], said["top"]) == (1, 2, 3)
    files = [read["file"] for read in said["inputs"]]
    assert files == ["dev.kbest", "dev.docs", "dev.ref", "start.json"]
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", read["digest"]) for read in said["inputs"])
    assert said["models"]["lm"]["folder"] == model_folders["rnnlm"].name
    assert re.fullmatch("[0-9a-f]{16}", said["models"]["lm"]["digest"])


@with_context
def test_a_seed_decides_the_weights_whatever_the_number_of_threads(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    files = []
    for threads in (1, 2, 1):
        plan = replace(FREE, settings=replace(QUICK, threads=threads))
        tuned(lists(model_folders[name]), start="start.json", plan=plan)
        content = Path("out.json").read_bytes()
        files.append(content.replace(b'"threads": 2', b'"threads": 1'))
    assert files[0] == files[1] == files[2]
    plan = replace(FREE, settings=replace(QUICK, seed=2))
    tuned(lists(model_folders[name]), start="start.json", plan=plan)
    assert Path("out.json").read_bytes() != files[0]


# Refusals, with nothing written


@pytest.mark.parametrize(
    ("options", "fault", "told"),
    [
        ({"out": "out.txt"}, UsageError, "--out out.txt: expected .* .json or .ini"),
        ({"out": "dev.ref"}, UsageError, "also the input"),
        ({"features": ["LM1"]}, UsageError, "--features LM1: .* LM0, TM0"),
        ({"start": "odd.json"}, InputError, r"odd\.json: .*'LM9'; did you mean 'LM0'"),
        ({"start": "short.json"}, InputError, r"short\.json: expected 2 weights for 'TM0'"),
        ({"references": ["dev.kbest"]}, InputError, "expected 15 lines"),
        ({"search": Search("viterbi")}, UsageError, "--search viterbi: .*beam"),
    ],
    ids=str,
)
def test_what_cannot_be_tuned_is_told(
    here: Path,
    model_folders: Mapping[str, Path],
    options: dict[str, Any],
    fault: type[RerankError],
    told: str,
) -> None:
    write_weights("odd.json", {**START, "LM9": [1.0]})
    write_weights("short.json", {**START, "TM0": [1.0]})
    before = sorted(here.iterdir())
    with pytest.raises(fault, match=told):
        tuned(lists(model_folders["ccdclm"]), **options)
    assert sorted(here.iterdir()) == before


def test_a_feature_that_is_none_is_told_before_anything_is_scored(
    here: Path, model_folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def scoring(*_: object) -> None:
        raise AssertionError("scored")

    monkeypatch.setattr(KBestSource, "prepared", scoring)
    with pytest.raises(UsageError, match="--features LM1: no such feature"):
        tuned(lists(), features=["LM1"])


def test_lists_without_any_candidate_are_refused(here: Path) -> None:
    write("dev.kbest", [])
    with pytest.raises(InputError, match=r"dev\.kbest: expected .*found no hypotheses"):
        tuned(lists())


@pytest.mark.parametrize("plan", [FREE, Plan(settings=QUICK)], ids=["none", "cv"])
@pytest.mark.parametrize("algorithm", ["mert", "pro", "expected-bleu"])
def test_a_tuning_in_files_gives_the_bytes_of_one_in_memory(
    here: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan, algorithm: str
) -> None:
    if algorithm != "mert":
        plan = Plan(algorithm=algorithm, select=plan.select)
    said: list[str] = []
    tuned(lists(), "a.json", plan=plan, start="start.json")
    monkeypatch.setattr("rerank.files.arrays.SMALL", 0)
    given = lists()
    tune_mert(
        replace(given, scoring=replace(given.scoring, memory=1)),
        ["dev.ref"],
        TunedWeights("b.json", start="start.json"),
        plan=plan,
        notices=Notices(),
        announce=said.append,
    )
    assert Path("b.json").read_bytes() == Path("a.json").read_bytes()
    assert any(line.startswith("candidates that did not fit into memory: ") for line in said)
