"""`rerank evaluate`: comparisons, names, roles, and what is changed before scoring.

Scores, intervals and tests have their origins in `tests/golden`; here is what its world has not.
"""

import csv
import random
import sys
import unicodedata
from io import StringIO
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from support.world import EVALUATE, TUNE, World

import rerank

TRUTH: dict[str, Any] = {"bleu": BLEU(tokenize="none"), "chrf": CHRF(), "ter": TER()}


def drafts(n: int, n_texts: int, seed: int = 1) -> list[list[str]]:
    """Parallel texts that resemble each other: edits of n common lines, some of them empty."""
    rng = random.Random(seed)
    lines = [rng.choices("abcdef", k=rng.randint(0, 12)) for _ in range(n)]
    return [
        [" ".join(w if rng.random() < 0.8 else rng.choice("abcdef") for w in x) for x in lines]
        for _ in range(n_texts)
    ]


def systems(world: World, command: str, *more: object) -> Any:
    """The systems of an evaluation, as JSON."""
    return world.ok(f"evaluate {command} --format json", *more).json["systems"]


def write(world: World, n: int, *names: str, size: int = 3) -> str:
    """Drawn texts of documents of some sentences, and the options that name them."""
    for name, lines in zip(("ref", *names), drafts(n * size, 1 + len(names)), strict=True):
        world.write(name, lines)
    world.write("docs", [f"d{t // size}" for t in range(n * size)])
    return "--docs docs --ref ref"


def test_a_system_is_judged_alike_in_any_company_and_gains_nothing_on_itself(world: World) -> None:
    files = write(world, 25, "base", "other", "ours")
    *_, alone = systems(world, f"{files} --baseline base ours")
    _, same, _, beside = systems(world, f"{files} --baseline base base other ours")
    assert alone == beside
    assert (same["difference"], same["difference_interval"]) == (0, [0, 0])
    assert same["p_values"] == {"sign_flip": 1, "bootstrap": 1, "sign_test": 1}
    assert same["documents"]["equal"] == 25
    again, other = (systems(world, f"{files} --baseline base ours --seed {s}") for s in (1, 2))
    assert again[1] == alone != other[1]
    text = world.ok(f"evaluate {files} --baseline base ours").out
    assert "sign-flip test over documents, 10,000 random patterns" in text


def test_a_document_is_better_only_if_strictly_better(world: World) -> None:
    world.write("ref", ["a b c d e", "f g h i j", "k l m n o", "p q r s t"])
    world.write("base", ["a b c d x", "f g h i x", "k l m n x", "p q r s x"])
    world.write("ours", ["a b c d e", "f g h i y", "k l m x x", "p q r s x"])
    _, ours = systems(world, "--no-docs each --ref ref --baseline base ours")
    counts = ours["documents"]
    assert [counts[name] for name in ("better", "equal", "worse")] == [1, 2, 1]
    assert counts["increase_ratio"] == 0.25


def test_one_document_has_no_interval_and_few_have_no_p(world: World) -> None:
    files = write(world, 1, "base", "ours")
    base, ours = systems(world, f"{files} --baseline base ours")
    assert base["interval"] is None
    assert ours["difference_interval"] is None
    assert ours["p_values"] == {"sign_flip": None, "bootstrap": None, "sign_test": 1}
    text = world.ok(f"evaluate {files} --baseline base ours").out
    assert "p: not computed for fewer than 10 documents" in text
    assert "bootstrap" not in text
    each = systems(world, "--no-docs each --ref ref --baseline base ours")
    assert each[1]["p_values"]["bootstrap"] is None
    assert each[1]["interval"] is not None


def test_the_oracle_is_that_of_the_list_as_the_options_read_it(world: World) -> None:
    lines = (world.text("dev.kbest")).replace("||| LM0= ", "||| LM0= -inf X0= ").splitlines()
    world.write("one.kbest", [f"{int(line[0]) + 1}{line[1:]}" for line in lines])
    read = "--kbest one.kbest --first-id 1 --clip-inf 9"
    whole = world.ok(f"{EVALUATE} {read} --format json").json
    first = world.ok(f"{EVALUATE} {read} --top 1 --format json").json
    assert first["oracle"] == first["anti_oracle"]
    assert first["oracle"]["bleu"] == first["systems"][0]["bleu"]  # base.txt has the first ones
    assert whole["oracle"] != whole["anti_oracle"]


def test_texts_are_truecased_before_and_get_capitals_if_detokenised(world: World) -> None:
    text = "The lamp is lit ."
    world.write("ref", [text] * 4)
    world.write("ours", [text.lower()] * 4)
    world.write("truecase", ["the (1/1)", "lamp (1/1)", "is (1/1)", "lit (1/1)"])

    def bleu(options: str) -> list[float]:
        (result,) = systems(world, f"--no-docs one --ref ref --baseline ours {options}", "ours")[1:]
        readable = result["detokenised"].get("bleu", {})
        return [result["bleu"], *([readable["score"]] if readable else [])]

    apart = TRUTH["bleu"].corpus_score([text.lower()] * 4, [[text] * 4]).score
    assert bleu("") == [apart]
    assert bleu("--truecase truecase") == pytest.approx([100])
    world.write("list", [f"{t} ||| {text} ||| F= 0 ||| 0" for t in range(4)])
    command = "evaluate --no-docs one --ref ref --truecase truecase --kbest list --baseline ours"
    assert world.ok(f"{command} ours --format json").json["oracle"]["bleu"] == pytest.approx(100)
    assert bleu("--detokenize en")[1] < 99
    assert bleu("--detokenize en --detruecase") == pytest.approx([apart, 100])


def test_texts_are_put_into_one_normal_form_where_that_is_asked_for(world: World) -> None:
    world.write("ref", ["le café est fermé"] * 4)
    world.write("ours", [unicodedata.normalize("NFD", "le café est fermé")] * 4)
    command = "--no-docs one --ref ref --baseline ours ours"
    assert systems(world, command)[1]["bleu"] < 50
    assert systems(world, f"{command} --normalize nfc")[1]["bleu"] == pytest.approx(100)


def test_scores_alone_are_a_line_for_each_system_but_the_baseline(world: World) -> None:
    reference, ours = world.lines("dev.ref"), world.lines("hyp.txt")
    expected = [TRUTH[name].corpus_score(ours, [reference]).score for name in ("bleu", "chrf")]
    printed = world.ok(f"{EVALUATE} base.txt -m chrf -b -w 4").lines
    assert printed[0] == "\t".join(f"{score:.4f}" for score in expected)
    assert len(printed) == 2
    assert world.ok(f"{EVALUATE} -m chrf -b").lines == ["\t".join(f"{x:.2f}" for x in expected)]


def test_a_table_of_documents_stands_beside_the_others(world: World) -> None:
    files = write(world, 12, "base", "ours")
    plain = world.ok(f"evaluate {files} --baseline base ours").out
    documents, rest = world.ok(f"evaluate {files} --baseline base ours --per-document").out.split(
        "\n\n", 1
    )
    assert rest == plain
    result = world.ok(f"evaluate {files} --baseline base ours --format json").json
    for line, one in zip(documents.splitlines()[2:], result["documents"], strict=True):
        first, other = one["bleu"]
        expected = [one["id"], "3", f"{first:.2f}", f"{other:.2f}", f"{other - first:+.2f}"]
        assert line.split() == expected
    table = world.ok(f"evaluate {files} --baseline base ours --per-document --format tsv").lines
    rows = [line.split("\t") for line in table]
    assert rows[0] == ["document", "lines", "base", "ours", "ours gain"]
    assert [float(row[3]) for row in rows[1:]] == [one["bleu"][1] for one in result["documents"]]


def test_documents_as_one_line_and_lower_case_are_scored_as_by_sacrebleu(world: World) -> None:
    files = write(world, 5, "base", "ours")
    texts = [world.lines(name) for name in ("base", "ref")]
    joined = [[" ".join(text[i : i + 3]) for i in range(0, len(text), 3)] for text in texts]
    expected = [
        BLEU(tokenize="none").corpus_score(texts[0], [texts[1]]).score,
        BLEU(tokenize="none").corpus_score(joined[0], [joined[1]]).score,
        BLEU(tokenize="none", lowercase=True).corpus_score(texts[0], [texts[1]]).score,
    ]
    command = f"evaluate {files} -m d-bleu -m bleu-lc -b -w 6"
    line = "\t".join(f"{score:.6f}" for score in expected)
    assert world.ok(f"{command} base").lines == [line]  # one system needs no baseline
    assert world.ok(f"{command} ours base").lines[1] == line


def test_one_system_is_scored_without_gains(world: World) -> None:
    reference, base = ([x[d : d + 3] for d in range(0, 36, 3)] for x in drafts(36, 2))
    alone = rerank.evaluate({"base": base}, reference)
    for text in (alone.to_text(), alone.to_markdown()):
        assert "increase" not in text
        assert "p: " not in text
    with pytest.raises(rerank.RerankError, match="texts of 12 documents, found those of 11"):
        rerank.evaluate({"base": base[1:]}, reference)


def test_names_of_systems_may_hold_colons_tabs_and_bars(world: World) -> None:
    names = ("base", "base:ours", "a|b\tc")
    for name, first in zip(names, (0.5, 1, 0), strict=True):
        world.write(name, world.content("hyp.txt"))
        world.write(f"{name}.qe", [f" {first}\t", "+5e-1", 0, 0.5, "", " "])
    given = [f"--scores=qe={name}:{name}.qe" for name in names]
    files = ["--docs", "dev.docs", "--ref", "dev.ref", "--baseline", *names, "base"]
    command = ["evaluate", *files, *given, "--format"]
    result = world.ok(command, "json").json["systems"]
    assert [one["scores"]["qe"]["score"] for one in result] == [0.375, 0.5, 0.25, 0.375]
    header, *rows = (line.split("\t") for line in world.ok(command, "tsv").lines)
    assert [len(row) for row in rows] == [len(header)] * 4
    assert r"a\|b" in world.ok(command, "markdown").out


def test_tables_for_papers_have_gain_interval_and_p_beside_each_score(world: World) -> None:
    command = f"evaluate {write(world, 12, 'base', 'ours')} --baseline base ours --format"
    world.write("qe", [t / 10 for t in range(36)])
    command = command.replace("ours", "ours --scores qe=base:qe --scores qe=ours:qe")
    _, ours = world.ok(command, "json").json["systems"]
    expected = []
    for name, score in (ours["metrics"] | ours["scores"]).items():
        form = ".4f" if name == "qe" else ".2f"
        ends = [f"{x:+{form}}" for x in score["difference_interval"]]
        mark = "*" if score["p_value"] < 0.05 else ""
        expected += [f"{score['score']:{form}}{mark}"]
        expected += [f"{score['difference']:+{form}} [{', '.join(ends)}]"]
        expected += [f"{score['p_value']:.4f}"]
    for form, mark in (("markdown", "|"), ("latex", "&")):
        (row,) = (x for x in world.ok(command, form).lines if x.strip("| ").startswith("ours"))
        cells = [x.strip() for x in row.replace("$-$", "-").strip("| ").split(mark)]
        assert [cells[1], *cells[3:]][: len(expected)] == expected
    _, figures = csv.DictReader(StringIO(world.ok(command, "tsv").out), delimiter="\t")
    result = [float(figures[f"bleu_gain_{end}"]) for end in ("low", "high")]
    assert result == ours["difference_interval"]


LONG = ["lamplighters burning windows tonight", "shoemakers carrying lanterns downtown"]
NEAR = ["lamplightery burninq windowz tonighz", "shoemakerz carryinq lanternz downtowm"]
SHORT = [" ".join(text.split()[:2]) for text in LONG]
ALL_OF_THEM = "significant in BLEU, chrF and TER"
OURS_OF = {  # texts of 12 documents of the baseline, and of ours, some of them of another kind
    "the same": (NEAR, NEAR, [], "no difference"),
    "all": (NEAR, LONG, [], f"better, {ALL_OF_THEM}"),
    "all, worse": (LONG, NEAR, [], f"worse, {ALL_OF_THEM}"),
    "shorter": (NEAR, SHORT, [],
        "better, significant in BLEU and TER; chrF worse, significant; the output is shorter"),
    "not all": (NEAR, SHORT, [LONG] * 4, "better, significant in BLEU and TER, not in chrF"),
    "unsure": (*(NEAR, SHORT, [LONG]),
        "better, significant in BLEU and TER; chrF worse, not significant; the output is shorter"),
}  # fmt: skip
FEW = "BLEU, chrF and TER better; not tested: fewer than 10 documents"


@pytest.mark.parametrize("case", OURS_OF)
def test_a_verdict_says_in_words_what_the_tests_say(case: str, world: World) -> None:
    base, ours, more, expected = OURS_OF[case]
    texts = [*([ours] * (12 - len(more))), *more]
    for name, own in {"ref": [LONG] * 12, "base": [base] * 12, "ours": texts}.items():
        world.write(name, map(" ".join, own))
    command = "evaluate --no-docs each --ref ref --baseline base ours"
    assert world.ok(command).lines[-1] == f"verdict: ours against base: {expected}"
    result = [system["verdict"] for system in world.ok(f"{command} --format json").json["systems"]]
    assert result == [None, expected]
    if case == "all":
        run = world.ok("evaluate --no-docs one --ref ref --baseline base ours")
        assert run.lines[-1] == f"verdict: ours against base: {FEW}"
    if case == "shorter":
        world.weights("w.json", {"LM0": 1}, provenance={"objective": "corpus chrF2"})
        other = "worse, significant in chrF; BLEU and TER better, significant"
        run = world.ok(f"{command} --weights w.json")
        assert run.lines[-1] == f"verdict: ours against base: {other}; the output is shorter"


def test_what_the_references_have_is_named_once_for_all_systems(world: World) -> None:
    """For the system that lacks most of it, whichever comes first, with the count of one text."""
    world.write("ref", ["\u201cit\u201d is the cat\u2019s ."] * 12)
    world.write("a", ['" it " is the cat s .'] * 12)
    world.write("b", ['" it " is the cat \'s .'] * 12)
    result = world.run("evaluate --no-docs each --ref ref -m bleu --baseline a b a").err
    named = [line for line in result.splitlines() if "references have" in line]
    assert len(named) == 1
    assert "12 x references have \u2019 \u201c \u201d in place of" in named[0]
    assert "first at b " in named[0]


def test_the_best_system_is_the_baseline_where_that_is_asked_for(world: World) -> None:
    files = write(world, 12, "a", "b", "ours")
    world.write("best", world.content("a"))
    result = {
        name: TRUTH["chrf"].corpus_score(world.lines(name), [world.lines("ref")]).score
        for name in ("a", "b", "ours")
    }
    first = max(result, key=result.__getitem__)

    def names(options: str) -> list[str]:
        return [one["name"] for one in systems(world, f"{files} -m chrf {options}")]

    assert names("--baseline best a b ours")[0] == first
    assert names("--baseline best ours b a")[0] == first
    assert names("--baseline ./best ours") == ["./best", "ours"]
    single, other = sorted("ab", key=lambda name: -result[name])
    beside = "--systems a=a --systems b=b ours"
    assert names(beside) == names(f"--baseline best {beside}") == [single, "ours", other]
    told = world.ok(f"evaluate {files} -m chrf --baseline best {beside}")
    assert f"baseline: {single}, the best of 2 systems by chrf\n" in told.err
    scores = [f"{result[name]:.2f}" for name in ("ours", "b")]
    alone = world.ok(f"evaluate {files} -m chrf --baseline best ours b -b").lines
    assert [line.split("\t")[-1] for line in alone] == scores
    for name in "ab":
        world.write(f"{name}.qe", [ord(name)] * 36)
    values = "--scores qe=a:a.qe --scores qe=b:b.qe --scores qe=ours:b.qe"
    for one in systems(world, f"{files} -m chrf {beside} {values}"):
        assert one["scores"]["qe"]["score"] == ord(one["name"].replace("ours", "b"))


def test_values_of_a_single_text_are_compared_with_nothing(world: World) -> None:
    files = write(world, 4, "base")
    world.write("values", range(12))
    text = world.ok(f"evaluate {files} base --scores qe=base:values").out
    heading = next(line for line in text.splitlines() if line.startswith("metric"))
    assert heading.split() == ["metric", "system", "mean", "95%"]


# Roles of metrics
def test_the_objective_of_the_weights_says_which_metrics_were_optimised(world: World) -> None:
    write(world, 4, "base", "ours")
    for name in ("base", "ours"):
        world.write(f"{name}.comet", range(12))
    objective = "0.5 corpus chrF2 + 2 corpus comet − 5 |length ratio − 0.980|"
    made = {"objective": objective}
    world.weights("w.json", {"LM0": 1}, provenance=made)
    command = (
        "evaluate --docs docs --ref ref --baseline base ours --weights w.json "
        "--scores comet=base:base.comet --scores comet=ours:ours.comet --detokenize en"
    )
    result = world.ok(f"{command} --format json").json
    assert result["objective"] == objective
    tuned = {
        **dict.fromkeys(("bleu", "ter"), "not optimised"),
        **dict.fromkeys(("chrf", "comet"), "optimised"),
    }
    for system in result["systems"]:
        scores = {**system["metrics"], **system["scores"]}
        assert {name: score["role"] for name, score in scores.items()} == tuned
        expected = {name: tuned[name] for name in TRUTH}
        assert {name: one["role"] for name, one in system["detokenised"].items()} == expected
    text = world.ok(command).out
    assert f"\noptimised: in the objective of tuning, {objective}; not optimised" in text
    assert world.ok(f"{command} --format markdown").lines[0].count("(not optimised)") == 2
    rows = [*csv.DictReader(StringIO(world.ok(f"{command} --format tsv").out), delimiter="\t")]
    assert [rows[1][f"{name}_role"] for name in ("bleu", "chrf")] == ["not optimised", "optimised"]
    world.weights("w.json", {"LM0": 1}, provenance={"objective": "corpus BLEU"})
    (_, ours) = world.ok(f"{command} --format json").json["systems"]
    assert ours["metrics"]["bleu"]["role"] == "optimised"


@pytest.mark.parametrize(("off", "far"), [(0.0, False), (0.04, False), (0.06, True), (-0.1, True)])
def test_the_length_ratio_is_compared_with_tuning(world: World, off: float, far: bool) -> None:
    write(world, 4, "base", "ours")
    command = "evaluate --docs docs --ref ref --baseline base ours"
    base, ours = (
        system["length_ratio"] for system in world.ok(f"{command} --format json").json["systems"]
    )
    tuned = ours - off
    made = {"objective": "corpus BLEU", "length_ratio": tuned}
    world.weights("w.json", {"LM0": 1}, provenance=made)
    run = world.ok(f"{command} --weights w.json")
    line = f"length ratio in tuning: {tuned:.3f}; here base {base - tuned:+.3f}, ours {off:+.3f}\n"
    assert line in run.out
    warned = f"warning: 1 x length ratio {ours:.3f}, in tuning {tuned:.3f}: "
    assert (warned in run.err) == far
    assert "first at base" not in run.err
    assert (
        world.ok(f"{command} --weights w.json --format json").json["tuning_length_ratio"] == tuned
    )


@pytest.mark.parametrize(
    ("package", "command", "message"),
    [
        ("MeCab", f"{EVALUATE} --tokenize ja-mecab", "tokenizer 'ja-mecab' cannot be loaded: "),
        ("matplotlib", f"{TUNE} --plot w.svg", "--plot needs matplotlib: pip install 'rerank-mt"),
    ],
)
def test_a_package_that_is_missing_is_named(
    package: str, command: str, message: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert f"rerank: {message}" in world.refused(command)


def test_a_reference_that_is_blank_for_whole_documents_lacks_them(world: World) -> None:
    world.write("ids", [f"d{t // 4}" for t in range(16)])
    lines = [f"this is line {t} of the text ." for t in range(16)]
    world.write("hyp", lines)
    world.write("ref", [*lines[:4], *[""] * 4, *lines[8:13], "", *lines[14:]])
    refused = world.refused("evaluate --docs ids --ref ref hyp", exit=3)
    assert "found none of 4, the first is segment 1 of document 'd1'" in refused
    assert "--drop-unreferenced" in refused
    dropped = world.ok("evaluate --docs ids --ref ref hyp --drop-unreferenced")
    assert "4 x sentence without reference" in dropped.err
    assert "1 x blank reference" in dropped.err  # a single one may be the translation


def test_chinese_of_the_other_form_is_named(world: World) -> None:
    world.write("simplified", ["这个 国家 的 历史 很 长 。", "他们 说 这里 的 书 很 贵 。"] * 8)
    world.write("traditional", ["這個 國家 的 歷史 很 長 。", "他們 說 這裡 的 書 很 貴 。"] * 8)
    run = world.ok("evaluate --no-docs each --ref simplified traditional")
    assert "hypotheses have traditional Chinese characters in place of simplified ones" in run.err
