"""`rerank tune-mert`: what it reports is what `rerank decode` reaches with the weights it writes.

Truth: sacrebleu's scores of decoded lines, enumeration of all choices, closed forms.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from support.tuned import (
    FROM_START,
    LISTS,
    PAIRS,
    TUNE,
    bleu,
    columns,
    decoded,
    dense,
    first_candidates,
    kept,
    lines_of,
    made,
    mark_references,
    rounds,
)
from support.world import WORDS, Folders, World, without_command

PLAIN = f"{FROM_START} --select none --shrink 0"
every_algorithm = pytest.mark.parametrize("algorithm", ["mert", "pro", "expected-bleu"])


def draw_long_lists(world: World, sentences: int, candidates: int) -> None:
    """Lists of many candidates, of which each has some words of its reference."""
    rng, lines = np.random.default_rng(7), list[str]()
    references = rng.choice(WORDS, (sentences, 8))
    for t, reference in enumerate(references):
        kept = rng.random((candidates, 8)) < rng.random((candidates, 1))
        texts = np.where(kept, reference, rng.choice(WORDS, (candidates, 8)))
        values = kept.sum(axis=1)[:, None] + 3 * rng.standard_normal((candidates, 3))
        for text, (lm, x, y) in zip(texts, values.round(3).tolist(), strict=True):
            lines.append(f"{t} ||| {' '.join(text)} ||| LM0= {lm} TM0= {x} {y} ||| 0")
    world.write("dev.kbest", lines)
    world.write("dev.ref", [" ".join(words) for words in references])
    world.write("dev.docs", [f"d{t // 2}" for t in range(sentences)])
    world.weights("start.json", {"LM0": 0.1, "TM0": [0.5, -0.25]})


# What is reported
LISTS_OF = {"alone": "", "pairs": PAIRS, "codclm": "--lm lm={codclm}", "ccdclm": "--lm lm={ccdclm}"}
REPORTED = [
    ("alone", "--start start.json"),
    ("alone", "--select none --out out.ini"),
    ("alone", "--select none --algorithm pro"),
    ("alone", "--select none --algorithm expected-bleu --start start.json"),
    ("pairs", "--start start.json"),
    ("pairs", "--select none --start start.json"),
    ("codclm", "--select none --algorithm pro"),
    ("ccdclm", "--select none --replicates 2"),
    ("ccdclm", "--search beam --beam 2 --start start.json"),
]


@pytest.mark.parametrize(("lists", "options"), REPORTED, ids=lambda value: value)
def test_the_bleu_reported_is_that_of_decoding_with_the_weights_written(
    drawn: World, model_folders: Folders, lists: str, options: str
) -> None:
    sources = LISTS_OF[lists].format_map(model_folders).split()
    run = drawn.ok(TUNE, *sources, *options.split())
    search = ["--search", "beam", "--beam", "2"] if "beam" in options else []
    out = "out.ini" if ".ini" in options else "out.json"
    truth = bleu(decoded(drawn, *sources, *search, weights=out), drawn.lines("dev.ref"))
    ratio = truth.sys_len / truth.ref_len
    first = bleu(first_candidates(drawn), drawn.lines("dev.ref"))
    of_first = first.sys_len / first.ref_len
    assert (
        f"tuning documents: BLEU {truth.score:.2f} (length ratio {ratio:.3f}), first candidates "
        f"{first.score:.2f} ({of_first:.3f})"
    ) in run.err
    ours = f"first candidates BLEU {first.score:.2f}, length ratio {of_first:.3f}"
    assert ours in run.err.splitlines()
    if out == "out.json":
        assert (made(drawn)["bleu"], made(drawn)["length_ratio"]) == (truth.score, ratio)
        assert "tok:none" in made(drawn)["signature"]
    else:
        assert f"# bleu: {truth.score}\n" in drawn.text(out)


def test_the_bleu_reported_is_of_all_references_and_of_the_tokenizer_given(drawn: World) -> None:
    references = [line.replace("the", "a") + ", one!" for line in drawn.lines("dev.ref")]
    drawn.write("other.ref", references)
    run = drawn.ok(PLAIN, "--ref", "other.ref", "--tokenize", "13a")
    both, output = (drawn.lines("dev.ref"), references), decoded(drawn)
    assert made(drawn)["bleu"] == bleu(output, *both, tokenize="13a").score
    assert {"nrefs:2", "tok:13a"} <= {*made(drawn)["signature"].split("|")}
    plain = f"BLEU {bleu(output, *both).score:.2f} (nrefs:2|case:mixed|eff:no|tok:none|"
    assert plain in next(line for line in run.err.splitlines() if line.startswith("decoded: "))


@pytest.mark.parametrize(
    ("sources", "options"),
    [("", ""), (PAIRS, ""), (PAIRS, "--algorithm expected-bleu")],
    ids=["alone", "pairs", "expected-bleu"],
)
def test_the_round_of_the_best_value_is_kept(drawn: World, sources: str, options: str) -> None:
    run = drawn.ok(PLAIN.replace(" --shrink 0", ""), *sources.split(), *options.split())
    told = rounds(run.err)
    best = told[kept(run.err)]
    assert best.value == max(one.value for one in told)
    begin = decoded(drawn, *sources.split(), "--default-weight", 0, weights="start.json")
    assert told[0].decoded == round(bleu(begin, drawn.lines("dev.ref")).score, 2)
    assert best.decoded == round(made(drawn)["bleu"], 2)
    if not options:
        reason = "no weight moves" if sources else "the pool is complete"
        assert f"\nstopped: {reason}\n" in run.err


# What is found
PLANTED = np.array([1.0, 2.0, -1.0])


def plant(world: World, labels: str) -> None:
    """Lists of which the more words are right, the larger the features times `PLANTED` are.

    labels: format of the three features
    """
    rng, lines = np.random.default_rng(3), list[str]()
    for t in range(30):
        for values in rng.standard_normal((20, 3)):
            right = round(24 / (1 + np.exp(-values @ PLANTED)))
            text = " ".join(f"w{i}" if i < right else "x" for i in range(24))
            features = labels.format(*values, fixed=values[0] + 2 * values[1])
            lines.append(f"{t} ||| {text} ||| {features} ||| 0")
    world.write("dev.kbest", lines)
    world.write("dev.ref", [" ".join(f"w{i}" for i in range(24))] * 30)
    world.write("dev.docs", [f"d{t // 3}" for t in range(30)])


@pytest.mark.parametrize("select", ["none", "cv"])
@every_algorithm
def test_a_planted_direction_is_recovered(world: World, algorithm: str, select: str) -> None:
    plant(world, "A= {} B= {} C= {}")
    world.ok(TUNE, "--select", select, "--algorithm", algorithm)
    result = np.array(columns(world))
    cosine = result @ PLANTED / np.linalg.norm(result) / np.linalg.norm(PLANTED)
    assert cosine > (0.97 if algorithm == "mert" else 0.99)


@pytest.mark.parametrize("size", [1e-3, 1e3])
@every_algorithm
def test_fixed_scores_settle_the_scale(world: World, algorithm: str, size: float) -> None:
    """Two thirds of what is planted are fixed: the weight of the other feature fits in."""
    plant(world, "fixed= {fixed} C= {2}")
    world.weights("start.json", {"fixed": size, "C": 0.0})
    world.ok(FROM_START, "--features", "C", "--select", "none", "--algorithm", algorithm)
    assert dense(world)["fixed"] == (size,)
    assert dense(world)["C"][0] == pytest.approx(-size, rel=0.5 if algorithm == "mert" else 0.2)


@every_algorithm
def test_a_feature_in_other_units_has_the_weight_in_other_units(
    drawn: World, algorithm: str
) -> None:
    """A power of two, which rounds nothing."""
    command = f"{FROM_START} --select none --algorithm {algorithm} --out"
    drawn.ok(command, "plain.json")
    lines = drawn.lines("dev.kbest")
    scaled = [re.sub(r"LM0= (\S+)", lambda m: f"LM0= {float(m[1]) / 64!r}", line) for line in lines]
    drawn.write("dev.kbest", scaled)
    drawn.weights("start.json", {"LM0": 32.0, "TM0": [0.25, 0.25]})
    drawn.ok(command, "out.json")
    plain, (lm, *tm) = np.array(columns(drawn, "plain.json")), columns(drawn)
    other = np.array([lm / 64, *tm])
    assert other / np.abs(other).sum() == pytest.approx(plain / np.abs(plain).sum(), rel=1e-6)
    assert made(drawn)["bleu"] == made(drawn, "plain.json")["bleu"]


# Which weights move
def test_features_that_are_not_named_keep_their_weights(drawn: World) -> None:
    drawn.weights("bad.json", {"LM0": -1.0, "TM0": [-0.5, 0.25], "pairs": -0.25})
    for names, fixed in (("TM0,pairs", "LM0"), ("LM0", "TM0")):
        command = f"{TUNE} --start bad.json --select none --features {names}"
        drawn.ok(command, *PAIRS.split())
        before, after = dense(drawn, "bad.json"), dense(drawn)
        moved = {name for name in before if before[name] != after[name]}
        assert moved
        assert moved <= {*names.split(",")}
        assert after[fixed] == before[fixed]
        expected = bleu(decoded(drawn, *PAIRS.split()), drawn.lines("dev.ref")).score
        assert made(drawn)["bleu"] == expected


def test_the_total_of_the_list_is_tuned_where_it_is_named(drawn: World) -> None:
    lines = drawn.lines("dev.kbest")
    drawn.write("dev.kbest", [f"{line[:-1]}{-(n % 4)}" for n, line in enumerate(lines)])
    drawn.ok(PLAIN, "--features", "total")
    assert dense(drawn)["total"] != (0.0,)
    assert dense(drawn)["LM0"] == (0.5,)
    assert made(drawn)["bleu"] == bleu(decoded(drawn), drawn.lines("dev.ref")).score
    drawn.ok(PLAIN)
    assert "total" not in dense(drawn)


BOXES = [
    {"LM0": (0.4, 0.6), "TM0": (0.1, 0.3)},
    {"LM0": (-np.inf, 0.7), "TM0_1": (0.2, 0.3)},
    {"TM0_0": (0.25, 0.25)},
]


@pytest.mark.parametrize("box", BOXES, ids=["boxed", "half open", "a point"])
@pytest.mark.parametrize("sources", ["", "--objective chrf", PAIRS], ids=["alone", "chrF", "pairs"])
def test_weights_stay_within_their_ranges_and_gain(
    drawn: World, sources: str, box: dict[str, tuple[float, float]]
) -> None:
    ends = {
        name: [f"{end:g}" if np.isfinite(end) else "" for end in own] for name, own in box.items()
    }
    options = [f"--range={name}={low}:{high}" for name, (low, high) in ends.items()]
    run = drawn.ok(PLAIN, *sources.split(), "--starts", 2, *options)
    weights = dict(zip(("LM0", "TM0_0", "TM0_1", "pairs"), columns(drawn), strict=False))
    for name, (low, high) in box.items():
        for column, weight in weights.items():
            assert low <= weight <= high or not column.startswith(name), column
    shown = {n: [e if np.isfinite(e) else None for e in own] for n, own in box.items()}
    assert made(drawn)["ranges"] == shown
    values = [one.value for one in rounds(run.err)]
    assert values[kept(run.err)] == max(values)


def test_the_mean_of_replicates_is_within_the_ranges(drawn: World) -> None:
    ranges = ["--range", "LM0=0.4:0.6", "--range", "TM0=0.1:0.3"]
    drawn.ok(PLAIN, "--replicates", 3, *ranges)
    lm, *tm = columns(drawn)
    assert 0.4 <= lm <= 0.6
    assert all(0.1 <= weight <= 0.3 for weight in tm)


@pytest.mark.parametrize(
    "options", ["--range LM0=0:", "--replicates 2"], ids=["sign", "replicates"]
)
def test_if_the_scale_is_free_absolute_weights_sum_to_one(drawn: World, options: str) -> None:
    drawn.ok(PLAIN, *PAIRS.split(), *options.split())
    assert np.abs(columns(drawn)).sum() == pytest.approx(1)
    assert dense(drawn)["LM0"][0] >= 0 or "range" not in options
    drawn.ok(FROM_START, "--select", "none", "--algorithm", "pro", *PAIRS.split())
    assert np.abs(columns(drawn)).sum() == pytest.approx(1)


# What is written
def test_weights_say_how_they_were_made(drawn: World, model_folders: Folders) -> None:
    lm = ["--lm", f"lm={model_folders['rnnlm']}"]
    drawn.ok(f"{FROM_START} --select none --starts 2 --seed 7 --top 3 --beam 5 --search beam", *lm)
    result = made(drawn)
    expected = {
        **{"algorithm": "mert", "select": "none", "seed": 7, "random_starts": 2, "threads": 1},
        **{"top": 3, "ranges": {}, "objective": "corpus BLEU − 1 (1 − cosine with the start)"},
        "tuned": ["LM0", "TM0_0", "TM0_1", "lm", "lmoov"],
    }
    assert {name: result[name] for name in expected} == expected
    assert result["search"] == {"method": "beam", "width": 5}
    files = ["dev.kbest", "dev.docs", "dev.ref", "start.json"]
    assert result["inputs"] == [
        {"file": name, "digest": f"sha256:{sha256(drawn.content(name)).hexdigest()[:8]}"}
        for name in files
    ]
    assert result["models"]["lm"]["folder"] == model_folders["rnnlm"].name
    assert re.fullmatch("[0-9a-f]{16}", result["models"]["lm"]["digest"])


@pytest.mark.parametrize("algorithm", ["pro", "expected-bleu"])
def test_other_tuners_maximise_corpus_bleu_and_nothing_else(world: World, algorithm: str) -> None:
    """The seed decides what pro draws, and nothing of expected BLEU."""
    draw_long_lists(world, 4, 300)
    weights = []
    for seed in (3, 4, 3):
        world.ok(FROM_START, "--select", "none", "--algorithm", algorithm, "--seed", seed)
        result = made(world)
        assert (result["algorithm"], result["objective"]) == (algorithm, "corpus BLEU")
        assert "random_starts" not in result
        weights.append(columns(world))
    assert weights[0] == weights[2]
    assert (weights[0] == weights[1]) == (algorithm == "expected-bleu")


@pytest.mark.parametrize(
    "options",
    [
        f"{PAIRS} --select none --hold-out 0.3 --starts 3",
        "--replicates 2 --objective chrf",
        "--start start.json --shrink 2",
    ],
    ids=["pairs", "replicates", "cv"],
)
def test_threads_change_no_byte_but_their_number(drawn: World, options: str) -> None:
    files = []
    for n in (1, 3):
        drawn.ok(TUNE, *options.split(), "--threads", n)
        result = without_command(drawn.content("out.json"))
        files.append(result.replace(b'"threads": 3', b'"threads": 1'))
    assert files[0] == files[1]


# The scale of the weights
def slope(world: World, alpha: float, scored: str) -> tuple[float, float]:
    """First two derivatives of the log-likelihood of each list's best candidates, at a scale."""
    metric = BLEU(tokenize="none", effective_order=True)
    first = second = 0.0
    for t, own in world.lists(scored).items():
        reference, totals = world.lines("dev.ref")[t], np.array([float(row[-1]) for row in own])
        scores = np.array([metric.sentence_score(text, [reference]).score for text, *_ in own])
        if scores.max() > scores.min():
            powers = np.exp(alpha * (totals - totals.max()))
            p = powers / powers.sum()
            first += float(totals[scores == scores.max()].mean() - p @ totals)
            second -= float(p @ totals**2 - (p @ totals) ** 2)
    return first, second


@pytest.mark.parametrize("sources", ["", PAIRS], ids=["alone", "pairs"])
def test_alpha_is_the_most_likely_scale_under_the_decoded_path(drawn: World, sources: str) -> None:
    """Decoding writes all candidates with their totals under the decoded path, in nine digits."""
    run = drawn.ok(FROM_START, "--select", "none", *sources.split())
    alpha, error = drawn.json("out.json")["alpha"], made(drawn)["alpha_error"]
    decoded(drawn, *sources.split(), "--kbest-out", "all.kbest")
    below, above = (slope(drawn, alpha * factor, "all.kbest")[0] for factor in (0.99, 1.01))
    assert below > 0 > above
    there, curvature = slope(drawn, alpha, "all.kbest")
    assert abs(there) < 1e-5 * (below - above)
    assert error == pytest.approx((-curvature) ** -0.5, rel=1e-4)
    lists = made(drawn)["alpha_lists"]
    told = f"alpha {alpha:.3g} ± {error:.2g} (likelihood of the best candidates of {lists} lists)\n"
    assert told in run.err


NO_ALPHA = {
    "highest": (1.0, "the best candidates score highest, at any scale"),
    "lowest": (-1.0, "the best candidates do not score above the others"),
}


@pytest.mark.parametrize("case", NO_ALPHA)
def test_without_a_most_likely_scale_none_is_written(drawn: World, case: str) -> None:
    weight, message = NO_ALPHA[case]
    mark_references(drawn, weight)
    ranges = ["--range", "same=:0"] if weight < 0 else []
    run = drawn.ok(f"{FROM_START} --select none --features same", *ranges)
    assert drawn.json("out.json")["alpha"] is None
    assert f"no alpha is fitted: {message}" in run.err
    assert "alpha_error" not in made(drawn)


# The objective around the weights
def test_weights_lose_little_in_flat_ranges(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded just inside and just outside of both ends; without context, ranges are exact."""
    around: list[Any] = []
    monkeypatch.setattr("rerank.files.outputs.check_matplotlib", lambda option: None)
    monkeypatch.setattr(
        "rerank.report.figures.plot_sections", lambda _, found, **named: around.extend(found)
    )
    drawn.ok(PLAIN, "--plot", "surface.png")
    flat = {section.name: section.flat() for section in around}
    weights, best, ends = columns(drawn), made(drawn)["bleu"], 0
    assert list(flat) == ["LM0", "TM0_0", "TM0_1"]

    def value(moved: list[float]) -> float:
        drawn.weights("moved.json", {"LM0": moved[0], "TM0": moved[1:]})
        return bleu(decoded(drawn, weights="moved.json"), drawn.lines("dev.ref")).score

    for column, (low, high) in enumerate(flat.values()):
        for end, out in ((low, -1e-9), (high, 1e-9)):
            if np.isfinite(end):
                inside, beyond = ([*weights] for _ in range(2))
                inside[column], beyond[column] = end - out, end + out
                assert value(inside) >= best - 0.1 > value(beyond)
                ends += 1
    assert ends >= 3


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs the extra `figures`")
def test_a_plot_changes_no_weight(world: World) -> None:
    world.draw(3, "yyyvvzzzz", (3, 4, 6))
    world.ok(PLAIN)
    plain = without_command(world.content("out.json"))
    world.ok(PLAIN, "--plot", "surface.png")
    assert without_command(world.content("out.json")) == plain
    assert world.content("surface.png").startswith(b"\x89PNG")


# Lists that tell little
def test_constant_features_keep_their_share_of_the_weights(drawn: World) -> None:
    content = [line.replace(" LM0=", " C0= 7 LM0=") for line in drawn.lines("dev.kbest")]
    drawn.write("dev.kbest", content)
    drawn.weights("start.json", {"C0": 2.0, "LM0": 1.0, "TM0": [4.0, 1.0]})
    for select in ("none", "cv"):
        run = drawn.ok(FROM_START, "--shrink", 0, "--select", select)
        assert run.err.count("constant feature, whose weight stays as given: C0") == 1
    drawn.ok(PLAIN)
    assert dense(drawn)["C0"][0] == pytest.approx(0.25)
    assert np.abs(columns(drawn)).sum() == pytest.approx(1)
    drawn.weights("start.json", {"C0": 2.0})
    drawn.ok(f"{FROM_START} --select none")
    alone = without_command(drawn.content("out.json"))
    drawn.ok(PLAIN)  # by default a start has a price of leaving it
    assert without_command(drawn.content("out.json")) == alone


def test_features_that_are_equal_are_named(drawn: World) -> None:
    lines = [re.sub(r"LM0= (\S+)", r"LM0= \1 X0= \1", line) for line in drawn.lines("dev.kbest")]
    drawn.write("dev.kbest", lines)
    run = drawn.ok(PLAIN)
    assert "only the sum of their weights counts: X0 = LM0" in run.err


@every_algorithm
def test_lists_without_a_match_leave_the_start(drawn: World, algorithm: str) -> None:
    drawn.write("dev.ref", ["unheard"] * 15)
    for select in ("none", "cv"):
        run = drawn.ok(FROM_START, "--select", select, "--algorithm", algorithm)
        assert dense(drawn) == {"LM0": (0.5,), "TM0": (0.25, 0.25)}
        assert "without a 4-gram match, where BLEU is nothing but its smoothing" in run.err
    assert "no alpha is fitted: in no list do both BLEU and the score differ" in run.err


# Memory
@every_algorithm
def test_a_tuning_in_files_gives_the_bytes_of_one_in_memory(world: World, algorithm: str) -> None:
    """Arrays of 64 KiB go to files: the process is larger than the memory it may take."""
    draw_long_lists(world, 16, 300)
    command = f"{FROM_START} --algorithm {algorithm}"
    world.ok(command, "--memory", "1T")
    plain = without_command(world.content("out.json"))
    run = world.ok(command, "--memory", "256M")
    assert without_command(world.content("out.json")) == plain
    assert "candidates that did not fit into memory: " in run.err


# The start where none is given
LINEAR = {"LM0": (0.5,), "TM0": (-0.25, 1.5)}


def with_totals(world: World, totals: Sequence[float] | None = None) -> None:
    """Lists whose totals are those of `LINEAR`, plus others; None: without totals, in that order.

    Numbers are written in full.
    """
    lists: dict[int, list[tuple[float, str]]] = {}
    for i, line in enumerate(world.lines("dev.kbest")):
        row = line.rpartition(" ||| ")[0]
        values = np.array(
            [float(v) for v in re.findall(r" (-?[\d.]+)(?= |$)", row.split("|||")[2])]
        )
        total = float(values @ [0.5, -0.25, 1.5]) + (totals[i] if totals is not None else 0)
        lists.setdefault(int(row.split()[0]), []).append((total, row))
    rows = [one for of_list in lists.values() for one in sorted(of_list, key=lambda one: -one[0])]
    end = "" if totals is None else " ||| {!r}"
    world.write("dev.kbest", [row + end.format(total) for total, row in rows])


@pytest.mark.parametrize("penalised", [0.0, 0.1], ids=str)
def test_linear_totals_give_the_start_weights_exactly(world: World, penalised: float) -> None:
    """Also where a penalty of 100, which is no feature, lies on some of the candidates."""
    world.draw(5, "xxxxxxxxyyyyyyyyvvvvvvvvwwwwwwwwzzzzzzzz", ())
    n = len(world.lines("dev.kbest"))
    with_totals(world, (-100.0 * (np.random.default_rng(3).random(n) < penalised)).tolist())
    run = world.ok(TUNE)
    start = "weights fitted to the totals of the lists"
    assert f"start: {start}; they choose the largest total in " in run.err
    assert made(world)["start"] == made(world)["selection"]["start"] == start
    world.weights("w.json", LINEAR)
    own, own_length = made(world)["selection"], made(world)["length"]
    world.ok(TUNE, "--start", "w.json")
    other = made(world)["selection"]
    assert own["candidates"] == other["candidates"]
    assert own_length["start"] == made(world)["length"]["start"]
    # of all documents the tuner finds nothing: what is kept are the fitted weights
    world.write("dev.ref", ["no match"] * len(world.lines("dev.ref")))
    world.ok(TUNE)
    assert columns(world) == pytest.approx([0.5, -0.25, 1.5], rel=1e-6)
    world.ok(TUNE, "--range", "LM0=0:0.1", "--range", "TM0_1=0:")  # in direction
    assert columns(world) == pytest.approx([0.1, -0.05, 0.3], rel=1e-6)


def test_without_totals_the_order_of_the_lists_gives_the_start(world: World) -> None:
    """In direction; the features are of a normal distribution, for which that is a theorem.

    Li and Duan 1989, https://doi.org/10.1214/aos/1176347254
    """
    world.draw(5, "x" * 100 + "y" * 100, ())
    with_totals(world)
    run = world.ok(TUNE, "--select", "none", "--algorithm", "pro")
    assert "start: weights fitted to the order of the lists; they choose the first" in run.err
    world.write("dev.ref", ["no match"] * 200)
    world.ok(TUNE)
    cosine = np.dot(columns(world), [0.5, -0.25, 1.5]) / np.linalg.norm(columns(world))
    assert cosine > 0.99 * np.linalg.norm([0.5, -0.25, 1.5])


def test_the_first_candidates_are_kept_where_no_weights_are_better(world: World) -> None:
    """The first candidates are the references, and features and totals say nothing of them."""
    world.draw(5, "xxxyyyvvvzzzwww", ())
    rng, references = np.random.default_rng(1), world.lines("dev.ref")
    lines = list[str]()
    for line in world.lines("dev.kbest"):
        t, text, *_ = line.split(" ||| ")
        text = text if lines and lines[-1].startswith(f"{t} ") else references[int(t)]
        a, b, c, d = rng.standard_normal(4).round(3)
        lines.append(f"{t} ||| {text} ||| LM0= {a} TM0= {b} {c} ||| {d}")
    world.write("dev.kbest", lines)
    run = world.ok(TUNE)
    assert made(world)["kept"] == "first candidates"
    assert not any(columns(world))
    assert decoded(world) == references
    selection = made(world)["selection"]["beside_first_candidates"]
    assert selection["held_out"] - selection["difference"] == pytest.approx(100)
    kept = "held out: corpus BLEU 100.00 with the first candidates, "
    (last,) = [line for line in run.err.splitlines() if line.startswith(kept)]
    assert f"tuning: {last}\n" in world.ok(f"check {LISTS} --ref dev.ref --tune").out
    cure = last.partition("to tune the totals of the lists, too, give ")[2]
    assert cure == "--features total,LM0,TM0"
    assert world.ok(TUNE, *cure.split())
    assert [*dense(world)] == ["LM0", "TM0", "total"]
    world.write("moses.ini", ["[weight]", "LM0= 1", "TM0= 1 1"])
    refused = world.refused(TUNE.replace("out.json", "out.ini"), "--base", "moses.ini", exit=1)
    assert "give others with --start, or keep the first candidates by --out FILE.json" in refused
    world.weights("w.json", LINEAR)
    world.ok(TUNE.replace("out.json", "out.ini"), "--base", "moses.ini", "--start", "w.json")


def test_the_spread_of_tuning_is_that_of_the_folds(world: World) -> None:
    world.draw(2, "vvvwwxxxyyyzzz", ())
    world.weights("bad.json", {"LM0": -0.5, "TM0": [1.0, -0.25]})
    run = world.ok(TUNE, "--start", "bad.json")
    values = made(world)["replicates"]["bleu"]
    assert len(values) == made(world)["selection"]["folds"] == 5
    assert (
        f"spread of tuning: BLEU {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f} "
        f"({min(values):.2f} to {max(values):.2f}) of 5 tunings"
    ) in run.err
    assert [*made(world)["replicates"]["spread"]] == ["LM0", "TM0_0", "TM0_1"]


# Held-out documents and replicates
def test_scores_of_held_out_documents_are_those_of_decoding_them(drawn: World) -> None:
    run = drawn.ok(PLAIN, *PAIRS.split(), "--hold-out", 0.4, "--seed", 3)
    held = made(drawn)["held_out"]
    assert len(held["documents"]) == 2
    output = decoded(drawn, *PAIRS.split())
    begin = decoded(drawn, *PAIRS.split(), "--default-weight", 0, weights="start.json")
    expected = {
        name: lines_of(drawn, lines, held["documents"]).score("bleu")
        for name, lines in (
            ("first candidates", first_candidates(drawn)),
            ("start weights", begin),
            ("tuned weights", output),
        )
    }
    assert held["bleu"] == held["objective"] == expected
    rest = {*"xyzw"} - {*held["documents"]}
    assert made(drawn)["bleu"] == lines_of(drawn, output, rest).score("bleu")
    start, end = expected["start weights"], expected["tuned weights"]
    change = "fell" if end < start else "rose" if end > start else "stayed"
    told = f"; held-out BLEU {change}: start weights {start:.2f}, tuned weights {end:.2f}"
    assert told in run.err
    assert f"held out: {', '.join(held['documents'])}\n" in run.err


@pytest.mark.parametrize("options", ["--select none --replicates 2", ""])
def test_weights_do_not_depend_on_held_out_documents(drawn: World, options: str) -> None:
    drawn.ok(TUNE, "--hold-out", 0.4, *options.split())
    plain, held = drawn.json("out.json"), made(drawn)["held_out"]
    assert list(held["bleu"]) == ["first candidates", "start weights", "tuned weights"]
    rows = zip(drawn.lines("dev.docs"), drawn.lines("dev.ref"), strict=True)
    lines = ["no one burns" if name in held["documents"] else line for name, line in rows]
    drawn.write("dev.ref", lines)
    drawn.ok(TUNE, "--hold-out", 0.4, *options.split())
    other = drawn.json("out.json")
    assert (other["weights"], other["alpha"]) == (plain["weights"], plain["alpha"])
    assert other["provenance"]["bleu"] == plain["provenance"]["bleu"]
    assert other["provenance"]["held_out"]["bleu"] != held["bleu"]


def test_weights_of_replicates_are_the_mean_of_tunings_on_resampled_documents(drawn: World) -> None:
    """Documents and seeds as numpy draws them from the seed; each with as much effort."""
    drawn.ok(PLAIN, "--replicates", 2, "--seed", 5)
    result, spread = columns(drawn), made(drawn)["replicates"]["spread"]
    kbest, docs, refs = (drawn.lines(f"dev.{end}") for end in ("kbest", "docs", "ref"))
    documents = [[t for t, name in enumerate(docs) if name == d] for d in "xyzw"]
    rng, weights = np.random.default_rng(5), list[Any]()
    for seed in np.random.SeedSequence(5).generate_state(2).tolist():
        chosen = sorted(rng.integers(4, size=4).tolist())
        sentences = [(f"{place}", t) for place, d in enumerate(chosen) for t in documents[d]]
        rows = {
            t: [one.split(" ", 1)[1] for one in kbest if one.split()[0] == str(t)]
            for t in range(15)
        }
        content = [f"{n} {row}" for n, (_, t) in enumerate(sentences) for row in rows[t]]
        drawn.write("drawn.kbest", content)
        drawn.write("drawn.docs", [name for name, _ in sentences])
        drawn.write("drawn.ref", [refs[t] for _, t in sentences])
        command = PLAIN.replace("dev.", "drawn.").replace("out.json", "one.json")
        drawn.ok(command, "--seed", seed)
        one = np.array(columns(drawn, "one.json"))
        weights.append(one / np.abs(one).sum())
    mean = np.mean(weights, axis=0)
    norm = np.abs(mean).sum()
    assert result == pytest.approx(mean / norm, rel=1e-9)
    deviations = np.std(weights, axis=0, ddof=1) / norm
    assert [*spread.values()] == pytest.approx(deviations, rel=1e-9, abs=1e-12)
