"""Replicates and held-out documents: by their definition, and through `tune_mert`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import sacrebleu
from support.files import read, write, write_weights
from support.tuning import PAIRED, decoded_bleu, first_candidates, noisy_lists, tune

from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, MertSettings, Plan, Tuning, decode
from rerank.tuning.plan import POOLS
from rerank.tuning.replicates import Replicates, held_out, resampled
from rerank.tuning.tuners.table import ALGORITHMS

SIZES = {"a": (4, 4), "b": (3, 0, 4), "void": (0, 0), "c": (4, 4, 3), "d": (4,), "e": (2, 4)}
COUNTS = [size for sizes in SIZES.values() for size in sizes]
FULL = [name for name, sizes in SIZES.items() if any(sizes)]
QUICK = MertSettings(random_starts=1, kicks=1)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists with a feature of their own, and scores of pairs of neighbours.

    A sentence has no candidates, and so has a whole document.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    lists = noisy_lists(8, COUNTS, lost=2)
    lines = [
        f"{t} ||| {c.text} ||| LM0= {c.lm} x= {c.tm[0]} ||| 0"
        for t, own in enumerate(lists)
        for c in own.candidates
    ]
    faults = [[c.faults for c in own.candidates] for own in lists]
    t, pairs = 0, list[str]()
    for name, sizes in SIZES.items():
        before: int | None = None
        for place in range(len(sizes)):
            for k, wrong in enumerate(faults[t + place]):
                for b in [None] if before is None else range(len(faults[t + before])):
                    score = round(float(-2 * wrong + 3 * rng.standard_normal()), 2)
                    ahead = "-" if b is None else b
                    pairs.append(f"{name}\t{place}\t{ahead}\t{k}\t{score}")
            before = place if faults[t + place] else before
        t += len(sizes)
    write("dev.kbest", lines)
    write("dev.docs", [name for name, sizes in SIZES.items() for _ in sizes])
    write("dev.ref", [own.reference for own in lists])
    write("dev.pairs", pairs)
    write_weights("start.json", {"LM0": 1.0, "x": 0.5, "pairs": 0.5})
    return tmp_path


def tuned(
    plan: Plan,
    said: list[str] | None = None,
    lists: Lists = PAIRED,
    start: str | None = "start.json",
) -> Tuning:
    return tune(lists, plan, said, start=start)


def bleu_of(documents: Sequence[str], weights: str = "out.json") -> float:
    """sacrebleu's BLEU, on some documents, of what `decode` writes."""
    decode(PAIRED, weights, "hyp.txt", notices=Notices())
    rows = zip(read("dev.docs"), read("hyp.txt"), read("dev.ref"), strict=True)
    kept = [(hypothesis, line) for name, hypothesis, line in rows if name in documents]
    hypotheses, references = zip(*kept, strict=True)
    truth = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True)
    return float(truth.score)


def dense(found: Tuning) -> list[float]:
    return [value for values in found.weights.dense.values() for value in values]


# All kinds of pools, all algorithms


@pytest.mark.parametrize("pools", POOLS)
@pytest.mark.parametrize("replicates", [1, 2])
def test_what_is_told_is_what_decoding_gives(pools: str, replicates: int) -> None:
    """Lists of order 1; decoding searches them by Viterbi's algorithm."""
    said: list[str] = []
    found = tuned(Plan(pools, settings=QUICK, replicates=replicates), said)
    assert found.result.bleu == bleu_of([*SIZES])
    assert found.weights.provenance["pools"] == pools
    assert sum(line.startswith("kept: round ") for line in said) == replicates
    assert any(line.startswith("maximised: corpus BLEU") for line in said)


@pytest.mark.parametrize("pools", ["auto", "sentences"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_finds_weights_that_decode_as_told(algorithm: str, pools: str) -> None:
    said: list[str] = []
    plan = Plan(pools, algorithm=algorithm, settings=MertSettings(seed=2))
    found = tuned(plan, said)
    first = Path("out.json").read_bytes()
    values = [
        float(re.findall(r"decoded BLEU ([\d.]+)", line)[0])
        for line in said
        if "round" in line and "decoded" in line
    ]
    assert found.result.bleu == bleu_of([*SIZES])
    assert found.result.bleu >= values[0] - 0.1  # less at most for the sake of length
    assert found.weights.provenance["algorithm"] == algorithm
    tuned(plan)
    assert Path("out.json").read_bytes() == first


# Replicates


def test_the_mean_of_replicates_is_that_of_tunings_on_documents_drawn_anew() -> None:
    """Each replicate is tuned again, on lists in which its documents are written out."""
    plan = Plan(settings=replace(QUICK, seed=5), replicates=3)
    found = tuned(plan)
    rng, weights = np.random.default_rng(5), []
    seeds = np.random.SeedSequence(5).generate_state(3).tolist()
    originals = {name: read(name) for name in ("dev.kbest", "dev.docs", "dev.ref", "dev.pairs")}
    for seed in seeds:
        write_documents([FULL[d] for d in resampled(len(FULL), rng)], originals)
        lists = Lists(
            "drawn.kbest",
            "drawn.docs",
            score_files={"pair-scores": (("pairs", Path("drawn.pairs")),)},
        )
        Path("dev.ref").write_text(Path("drawn.ref").read_text("utf-8"), "utf-8")
        one = Plan(settings=replace(QUICK, seed=seed))
        found_there = np.array(dense(tuned(one, lists=lists)))
        weights.append(found_there / np.abs(found_there).sum())  # a start that is kept has any norm
    mean = np.mean(weights, axis=0)
    np.testing.assert_allclose(dense(found), mean / np.abs(mean).sum(), rtol=1e-9)
    said = cast(dict[str, Any], found.weights.provenance["replicates"])
    np.testing.assert_allclose(
        list(said["spread"].values()),
        np.std(weights, axis=0, ddof=1) / np.abs(mean).sum(),
        rtol=1e-9,
        atol=1e-12,
    )


def write_documents(names: Sequence[str], originals: Mapping[str, list[str]]) -> None:
    """Lists in which these documents follow each other, each time under another name."""
    starts, begin = dict[str, int](), 0
    for name, sizes in SIZES.items():
        starts[name] = begin
        begin += len(sizes)
    kbest, docs, references, pairs = list[str](), list[str](), list[str](), list[str]()
    for i, name in enumerate(names):
        for t in range(starts[name], starts[name] + len(SIZES[name])):
            rows = [line.partition(" ") for line in originals["dev.kbest"]]
            kbest += [f"{len(docs)} {rest}" for number, _, rest in rows if int(number) == t]
            docs.append(f"{name}{i}")
            references.append(originals["dev.ref"][t])
        for line in originals["dev.pairs"]:
            owner, _, rest = line.partition("\t")
            if owner == name:
                pairs.append(f"{name}{i}\t{rest}")
    for file, lines in zip(
        ("kbest", "docs", "ref", "pairs"), (kbest, docs, references, pairs), strict=True
    ):
        write(f"drawn.{file}", lines)


def test_replicates_are_told_and_written() -> None:
    said: list[str] = []
    found = tuned(Plan(settings=QUICK, replicates=3), said)
    content = json.loads(Path("out.json").read_text(encoding="utf-8"))["provenance"]
    assert content == found.weights.provenance
    bleu = content["replicates"]["bleu"]
    assert list(content["replicates"]["spread"]) == ["LM0", "x", "pairs"]
    told = [line for line in said if "all documents:" in line]
    assert [f"BLEU {value:.2f}," in line for value, line in zip(bleu, told, strict=True)] == [
        True
    ] * 3
    assert [line for line in said if line.startswith("replicate ") and " of " in line] == [
        f"replicate {r} of 3" for r in (1, 2, 3)
    ]
    (mean,) = [line for line in said if line.startswith("mean of 3 replicates: ")]
    for name, weight in zip(("LM0", "x", "pairs"), dense(found), strict=True):
        spread = content["replicates"]["spread"][name]
        assert f"{name} {weight:.4f} ± {spread:.4f}" in mean


def test_spreads_of_replicates_are_told() -> None:
    found = Replicates(np.array([[0.25, 0.5], [0.75, 0.5]]), (30.0, 31.0))
    root = 0.5**0.5 / 2
    assert (
        found.to_text(["a", "b"])
        == f"mean of 2 replicates: a 0.5000 ± {root:.4f}, b 0.5000 ± 0.0000"
    )
    spread = {"a": pytest.approx(root), "b": 0.0}
    assert found.to_dict(["a", "b"]) == {"bleu": [30.0, 31.0], "spread": spread}


@pytest.mark.parametrize("pools", ["auto", "exact"])
def test_replicates_and_held_out_documents_do_not_depend_on_threads(pools: str) -> None:
    files = []
    for threads in (1, 2):
        settings = replace(QUICK, threads=threads, random_starts=3)
        tuned(Plan(pools, settings=settings, replicates=2, held_out=0.3))
        files.append(Path("out.json").read_bytes().replace(b'"threads": 2', b'"threads": 1'))
    assert files[0] == files[1]


def test_documents_drawn_twice_are_searched_twice_in_models_without_a_bound(
    model_folders: Mapping[str, Path],
) -> None:
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["ccdclm"]),))
    found = tuned(Plan(settings=QUICK, replicates=2), lists=lists, start=None)
    assert found.result.bleu == decoded_bleu(lists, "out.json").score


# Held-out documents


def held(found: Tuning) -> dict[str, Any]:
    return cast(dict[str, Any], found.weights.provenance["held_out"])


@pytest.mark.parametrize("pools", ["auto", "exact"])
def test_bleu_of_held_out_documents_is_that_of_decoding_them(pools: str) -> None:
    said: list[str] = []
    found = tuned(Plan(pools, settings=replace(QUICK, seed=3), held_out=0.4), said)
    chosen = [FULL[d] for d in held_out(len(FULL), 0.4, np.random.default_rng(3))]
    assert held(found)["documents"] == chosen
    assert f"held out: {', '.join(chosen)}" in said
    bleu = held(found)["bleu"]
    assert bleu["tuned weights"] == bleu_of(chosen)
    assert bleu["start weights"] == bleu_of(chosen, "start.json")
    assert any(
        line.startswith(f"held out, tuned weights: BLEU {bleu['tuned weights']:.2f}")
        for line in said
    )
    rest = [name for name in FULL if name not in chosen]
    assert found.result.bleu == bleu_of(rest)


def test_first_candidates_of_held_out_documents_are_told_and_no_start_where_there_is_none() -> None:
    found = tuned(Plan(settings=QUICK, held_out=0.4), start=None)
    bleu = held(found)["bleu"]
    assert list(bleu) == ["first candidates", "tuned weights"]
    kept = [t for t, name in enumerate(read("dev.docs")) if name in held(found)["documents"]]
    references = [[read("dev.ref")[t] for t in kept]]
    texts = [first_candidates()[t] for t in kept]
    truth = sacrebleu.corpus_bleu(texts, references, tokenize="none", force=True)
    assert bleu["first candidates"] == truth.score


@pytest.mark.parametrize("pools", ["auto", "exact"])
@pytest.mark.parametrize("replicates", [1, 2])
def test_weights_do_not_know_of_held_out_documents(pools: str, replicates: int) -> None:
    plan = Plan(pools, settings=QUICK, replicates=replicates, held_out=0.4)
    one = tuned(plan)
    names = read("dev.docs")
    lines = [
        "one no burns it" if name in held(one)["documents"] else line
        for name, line in zip(names, read("dev.ref"), strict=True)
    ]
    write("dev.ref", lines)
    other = tuned(plan)
    assert other.weights.dense == one.weights.dense
    assert other.weights.alpha == one.weights.alpha
    assert (other.result.bleu, other.result.length_ratio) == (
        one.result.bleu,
        one.result.length_ratio,
    )
    assert other.result.baseline_bleu == one.result.baseline_bleu
    assert held(other)["documents"] == held(one)["documents"]
    assert held(other)["bleu"] != held(one)["bleu"]


def test_a_seed_decides_which_documents_are_held_out() -> None:
    chosen = {
        tuple(held(tuned(Plan(settings=replace(QUICK, seed=s), held_out=0.4)))["documents"])
        for s in range(4)
    }
    assert len(chosen) > 1


# Refusals


def test_no_document_left_to_tune_on_is_told() -> None:
    with pytest.raises(UsageError, match=r"--hold-out 0.95: 5 of 5 documents held out leave none"):
        tuned(Plan(settings=QUICK, held_out=0.95))
    assert not Path("out.json").exists()


def test_replicates_that_find_no_weights_are_told() -> None:
    write("dev.ref", ["unheard"] * len(COUNTS))
    with pytest.raises(RerankError, match=r"all-zero weights, .* --start"):
        tuned(Plan(settings=QUICK, replicates=2), start=None)
    assert not Path("out.json").exists()
