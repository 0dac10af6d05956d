"""Choices without weights: outputs of systems, and lists and samples without scores, by agreement.

The truth is sacrebleu's sentence chrF of all pairs.
"""

import json
import re
import shlex
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF
from support.world import World

import rerank
from rerank import Document, Reranker

SAMPLES = [["a b c d", "a b c e", "a b c d", ""], ["q r", "z", "q r"], ["x y z w", "x y w z v"]]
TEXTS = st.lists(st.sampled_from(["a b c", "c b a", "a b", "b a", "a", ""]), min_size=3, max_size=3)
CHOSEN = "without --weights, candidates are chosen by agreement: "
WEIGHTED = "--weights w.json --default-weight 0 --no-docs each"
UTILITIES = ("bleu", "chrf", "aggregate-bleu", "aggregate-chrf")


def agreement(texts: list[str], k: int, beta: float = 1.25) -> float:
    """Mean sentence chrF of a text against the others."""
    others = [text for i, text in enumerate(texts) if i != k]
    metric = CHRF(beta=beta)  # type: ignore[arg-type]  # a whole number by default
    scores = [float(metric.sentence_score(texts[k], [other]).score) for other in others]
    return sum(scores) / len(others)


def lines(samples: list[list[str]], **more: object) -> str:
    """JSON lines of lists, one for each sentence."""
    return "".join(json.dumps({"hypotheses": sample, **more}) + "\n" for sample in samples)


def test_samples_without_scores_are_chosen_by_agreement_which_is_said(world: World) -> None:
    world.write("s.jsonl", lines(SAMPLES))
    run = world.ok("decode --kbest s.jsonl --kbest-out out -v")
    of_all = [[agreement(sample, k) for k in range(len(sample))] for sample in SAMPLES]
    best = [values.index(max(values)) for values in of_all]
    assert run.lines == [sample[k] for sample, k in zip(SAMPLES, best, strict=True)]
    assert run.err.startswith(CHOSEN)
    assert "each sentence is a document" in run.err
    chrf2 = [[agreement(sample, k, 2) for k in range(len(sample))] for sample in SAMPLES]
    chosen = sum(values[k] for values, k in zip(chrf2, best, strict=True)) / 3
    means = sum(sum(values) / len(values) for values in chrf2) / 3
    assert f"a mean chrF of {chosen:.1f} against the others of their sentence" in run.err
    assert f"all candidates {means:.1f}" in run.err
    assert "|w:agreement|" in run.err
    written = [json.loads(line)["candidates"] for line in world.lines("out")]
    for sample, values, candidates in zip(SAMPLES, of_all, written, strict=True):
        features = [candidate["features"] for candidate in candidates]
        assert [feature["votes"] for feature in features] == [sample.count(text) for text in sample]
        assert [feature["agreement"] for feature in features] == pytest.approx(values, abs=1e-6)
    world.write("flat", [text for sample in SAMPLES for text in sample[:2]])
    assert len(world.ok("decode --kbest flat --kbest-format flat:2 --no-docs one").lines) == 3


@pytest.mark.parametrize(
    "search", ["", "--search beam", *(f"--search mbr:utility={u}" for u in UTILITIES)]
)
def test_equal_scores_and_empty_or_repeated_samples_are_fine(search: str, world: World) -> None:
    equal = [lines([sample], scores=[t] * len(sample)) for t, sample in enumerate(SAMPLES)]
    for content in (lines(SAMPLES), "".join(equal)):
        world.write("s.jsonl", content)
        expected = ["a b c d", "q r"]
        assert world.ok(f"decode --kbest s.jsonl {search} --no-docs one").lines[:2] == expected
    assert Reranker({}, search="mbr").decode(
        [Document("d", [[(text, {"s": float(k)}) for k, text in enumerate(SAMPLES[0])]])]
    )[0].texts == ("a b c d",)


@pytest.mark.parametrize("search", ["", *(f"--search mbr:utility={u}" for u in UTILITIES)])
def test_the_outputs_of_systems_are_voters_like_samples(search: str, world: World) -> None:
    for m in range(3):
        world.write(f"s{m}", [sample[m] if m < len(sample) else sample[-1] for sample in SAMPLES])
    world.write("s.jsonl", lines([[*sample, sample[-1]][:3] for sample in SAMPLES]))
    systems = " ".join(f"--systems s{m}=s{m}" for m in range(3))
    expected = world.ok(f"decode --kbest s.jsonl {search}").lines
    assert world.ok(f"decode {systems} {search}").lines == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    st.lists(TEXTS, min_size=24, max_size=24),
    st.permutations(range(1, 4)),
    st.permutations(["B", "a", "z-1"]),
    st.sampled_from(["", "--search mbr:utility=chrf", "--no-docs one", WEIGHTED]),
)
def test_order_and_names_of_all_engines_but_the_first_decide_exact_ties_alone(
    world: World, texts: list[list[str]], order: list[int], names: list[str], more: str
) -> None:
    """Engine 3 is a copy of engine 2 in all but the first sentence."""
    texts = [[*own, own[2] if t else "a b c d"] for t, own in enumerate(texts)]
    for m in range(4):
        world.write(f"s{m}", [own[m] for own in texts])
    world.weights("w.json", {"agreement": 1.0, "consensuschrf": 0.5, "sysm": 0.25})
    runs = []
    for others in ([(1, "b"), (2, "c"), (3, "d")], [*zip(order, names, strict=True)]):
        systems = " ".join(f"--systems {name}=s{m}" for m, name in [(0, "m"), *others])
        run = world.ok(f"decode {systems} {more} --trace t --out out")
        assert "(m, the first engine: " in run.err
        runs.append([json.loads(line) for line in world.lines("t")])
    for own, *choices in zip(texts, *runs, strict=True):
        assert [choice["first_engine"] for choice in choices] == ["m", "m"]
        assert [choice["texts"]["first"] for choice in choices] == [own[0], own[0]]
        one, other = (choice["texts"]["chosen"] for choice in choices)
        assert choices[0]["total"] == pytest.approx(choices[1]["total"], abs=1e-6)
        if one != other and "mbr" in more:
            values = [agreement([*own, text], 4, 2) for text in (one, other)]
            assert values[0] == pytest.approx(values[1], abs=1e-6)
        elif one != other:
            assert [choice["margin"] for choice in choices] == pytest.approx([0, 0], abs=1e-6)


def test_of_equal_choices_that_of_the_engine_given_first_is_taken_everywhere(world: World) -> None:
    """With weights and without, in the shell, in Python, and in the lists that convert writes."""
    world.write("one", ["a b c d", "e f"])
    world.write("two", ["a b d c", "e g"])
    world.weights("w.json", {"sysA": 0.0, "sysZ": 0.0, "votes": 1.0})
    for names in ("AZ", "ZA"):
        files = dict(zip(names, ("one", "two"), strict=True))
        systems = " ".join(f"--systems {name}={file}" for name, file in files.items())
        for more in ("", WEIGHTED, "--search mbr"):
            run = world.ok(f"decode {systems} {more} --trace t --summary s")
            assert run.lines == world.lines("one")
            assert f"({names[0]}, the first engine: " in run.err
            assert json.loads(world.text("s"))["first_engine"] == names[0]
            explained = world.ok("explain t").out
            assert f"2 sentences, 0 changed from {names[0]}, the first engine" in explained
            page = world.ok("report --trace t").out
            assert f"Compared with: <b>{names[0]}, the first engine</b>" in page
        paths = {name: world.folder / file for name, file in files.items()}
        chosen = rerank.choose(rerank.read(systems=paths, no_docs="one"))
        assert [*chosen[0].texts] == world.lines("one")
        world.write("whole", ["a b c d e f"])
        aligned = f"--systems W=whole,align=yes {systems} --no-docs one"
        assert "(W, the first engine: " in world.ok(f"decode {aligned}").err
        checked = world.ok(f"check {systems} --no-docs one --ref one").out
        assert re.search(rf"^{names[0]}, the first engine +100.00$", checked, re.MULTILINE)
        world.ok(f"convert {systems} --to jsonl --out list")
        assert world.ok("first --kbest list").lines == world.lines("one")


def test_scores_of_a_list_need_weights_and_agreement_is_added_to_any_list(world: World) -> None:
    refused = world.run("decode --kbest dev.kbest --docs dev.docs")
    assert (refused.exit, refused.out) == (2, "")
    assert "dev.kbest has scores, which nothing but weights can use" in refused.err
    assert CHOSEN not in refused.err  # it is not what happens
    alone = world.ok("decode --kbest dev.kbest --docs dev.docs --agreement")
    assert CHOSEN in alone.err
    assert "the scores of dev.kbest are not used" in alone.err
    uniform = world.ok("decode --kbest dev.kbest --docs dev.docs --search mbr:utility=chrf")
    assert "as likely as they have votes" in uniform.err
    rows = world.ok("score --kbest dev.kbest --docs dev.docs --agreement").lines
    texts = [row.split(" ||| ")[1] for row in rows]
    values = [float(re.search(r"consensuschrf= (\S+)", row)[1]) for row in rows]  # type: ignore[index]
    for a, b in ((0, 2), (2, 5), (5, 7), (7, 9)):
        own = texts[a:b]
        assert values[a:b] == pytest.approx([agreement(own, k, 2) for k in range(b - a)], abs=1e-6)
    world.write("k", [*rows])
    twice = world.refused("score --kbest k --docs dev.docs --agreement")
    assert "k already has the feature 'agreement'; leave the o" in twice
    world.weights("w.json", {"agreement": 1.0})
    best = world.ok(
        "decode --kbest dev.kbest --docs dev.docs --agreement --weights w.json --default-weight 0"
    )
    assert best.lines[1] == max(texts[2:5], key=lambda text: values[texts.index(text)])
    assert best.lines == alone.lines


def test_tuning_on_samples_with_scores_says_that_agreement_counts_votes(world: World) -> None:
    right = [f"{name} goes to the house by the river today" for name in "abcdefgh"]
    wrong = [text.replace("goes to the", "went into a") for text in right]
    own = [[no, yes, yes] for yes, no in zip(right, wrong, strict=True)]
    scores = [[-3.0, -2.0, -1.0] if t % 2 else [-1.0, -2.0, -3.0] for t in range(8)]
    rows = zip("aabbccdd", own, scores, strict=True)
    world.write("s", "".join(lines([texts], document=d, scores=each) for d, texts, each in rows))
    world.write("ref", right)
    equal = "8 x equal texts of a sentence, kept; --agreement counts each sample as a vote, first"
    assert equal in world.ok("tune-mert --kbest s --ref ref --out w.json").err
    note = "the choice by agreement alone is better: BLEU 100.00; tune-mert --agreement"
    assert note in world.ok("check --tune --kbest s --ref ref").out


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # an empty candidate
def test_lists_and_outputs_merge_by_text_with_the_scores_of_each(world: World) -> None:
    world.write("s.jsonl", lines([*SAMPLES, ["nobody"]]))
    world.write("a.out", ["a  b c d", "it gives light", "x y z w", "nobody comes"])
    given = "--kbest s.jsonl --kbest base=dev.kbest --systems A=a.out --docs dev.docs"
    rows = [json.loads(line)["candidates"] for line in world.ok(f"score {given}").lines]
    whole = {one["text"]: one["features"] for row in rows for one in row}
    assert [len(row) for row in rows] == [5, 5, 4, 3]
    found = whole["a b c d"]
    assert [found[name] for name in ("sysA", "syss", "sysbase", "votes")] == [1, 2, 0, 3]
    assert (found["baseLM0"], found["baseTM0"], found["basetotal"]) == (0, [0, 0], 0)
    found = whole["it gives light"]
    assert [found[name] for name in ("sysA", "syss", "sysbase", "votes")] == [1, 0, 1, 2]
    assert (found["baseLM0"], found["baseTM0"], found["basetotal"]) == (-7, [-1, -1.25], -3.53125)
    voters = ["it gives light"] * 2 + ["she gives a light", "it lights", "q r", "z", "q r"]
    assert found["consensuschrf"] == pytest.approx(agreement(voters, 0, 2))
    world.weights(
        "w.json", {"baseLM0": 0.5, "baseTM0": [0.25, 0.125], "baseWP0": -0.125, "sysbase": 99}
    )
    merged = world.ok(f"decode {given} --weights w.json --default-weight 0").out
    assert merged == world.ok("decode --kbest dev.kbest --docs dev.docs --weights w.ini").out
    turned = " ".join(
        f"{a} {b}" for a, b in reversed([*zip(*[iter(given.split())] * 2, strict=True)])
    )
    assert "has scores, which nothing but weights" in world.refused(f"decode {given}")
    mbr = [world.ok(f"decode {own} --search mbr:utility=chrf").out for own in (given, turned)]
    assert mbr[0] == mbr[1]
    texts = [[one["text"] for one in row] for row in rows]
    files = ["s.jsonl", "base=dev.kbest"]
    (evening, town) = rerank.read(files, "dev.docs", systems={"A": "a.out"})
    assert [[text for text, _ in own] for own in [*evening.sentences, *town.sentences]] == texts
    tuned = world.ok(f"tune-mert {given} --ref dev.ref --out t.json --starts 1")
    assert "of each system on these documents: " in tuned.err


def test_utilities_of_another_tool_come_from_a_file(world: World) -> None:
    """The utilities of bleu in a file choose what `bleu` chooses; others what they say."""
    world.write("s.jsonl", lines(SAMPLES))
    arrays: dict[str, Any] = {}
    for t, sample in enumerate(SAMPLES):
        pairs = [[CHRF().sentence_score(a, [b]).score for b in sample] for a in sample]
        arrays[str(t)] = np.array(pairs)
    np.savez(world.folder / "U.npz", **arrays)
    command = "decode --kbest s.jsonl --search mbr:utility="
    assert world.ok(f"{command}file:U.npz").out == world.ok(f"{command}chrf").out
    arrays["1"][1] = 200.0
    np.savez(world.folder / "V.npz", **arrays)
    assert world.ok(f"{command}file:V.npz").lines[1] == "z"
    np.savez(world.folder / "W.npz", **{name: arrays[name] for name in "0"})
    refused = world.refused(f"{command}file:W.npz", exit=3)
    assert "W.npz: expected an array '1' of finite numbers, (3, 3)" in refused


def test_a_table_has_the_engine_of_each_segment_and_last_lines_have_shares(world: World) -> None:
    """Hostile texts stay in their cells, and a segment without candidates has a line."""
    texts = {
        "A\tone": ["it is lit", "=cmd()\x1b[2J a\u2028b", "", '"no'],
        "B": ["it is lit", "it is not", "", "oh no"],
        "C": ["it was lit", "it is not", "", "oh no"],
    }
    for place, lines in enumerate(texts.values()):
        world.write(f"s{place}", lines)
    world.write("docs", ["d\x0b1", "d\x0b1", "e", "e"])
    systems = [w for i, n in enumerate(texts) for w in ("--systems", f"{n}=s{i}")]
    command = ["decode", *systems, "--docs", "docs", "--out", "out", "--summary", "s.json"]
    command += ["--table", "out.tsv", "--trace", "t"]
    told = world.ok(command).err.splitlines()
    line, made = world.text("out.tsv").split("\n")[:2]
    assert shlex.split(line.replace("A\\tone", "A\tone")) == ["#", "rerank", *command]
    assert re.fullmatch(r"# rerank [\d.]+(; (s\d|docs) sha256:[0-9a-f]{8}){4}", made)
    table = world.table("out.tsv")
    assert table["document"] == ["d\x0b1", "d\x0b1", "e", "e"]
    assert table["segment"] == ["0", "1", "0", "1"]
    assert table["text"] == table["final"] == world.lines("out")
    assert table["engine"] == ["A one, B", "B, C", "A one, B, C", "B, C"]
    assert table["text of A one"] == texts["A\tone"]
    assert table["changed"] == ["no", "yes", "no", "yes"]
    trace = [json.loads(line) for line in world.lines("t")]
    assert [float(value) for value in table["score"]] == [entry["total"] for entry in trace]
    of_others = [entry["features"]["consensuschrf"] for entry in trace]
    assert [float(value) for value in table["agreement"]] == pytest.approx(of_others)
    summary = world.json("s.json")
    assert summary["agreement"]["chosen"] == pytest.approx(sum(of_others) / 4)
    assert summary["engines"] == {"A\tone": 2, "B": 4, "C": 3}
    assert summary["documents"][0]["engines"] == {"A\tone": 1, "B": 2, "C": 1}
    assert "4 sentences, 2 changed (50.0%); " in told[-2]
    assert told[-1].startswith("chosen: B 100.0%, C 75.0%, A")
    world.write("one", ["=cmd()\x1b[2J a\u2028b\\"] * 4)
    two = world.ok("decode --systems A=one --systems B=one --docs docs --out out --table out.tsv")
    assert "; of two candidates neither agrees more than the other: take three or more" in two.err
    assert world.table("out.tsv")["text"] == ["=cmd()\x1b[2J a\u2028b\\"] * 4
    world.draw(5, "xxy", (1,))
    world.weights("w.json", {"LM0": 1.0, "TM0": [0.0, 0.0]})
    world.ok("decode --kbest dev.kbest --docs dev.docs --weights w.json --out out --table out.tsv")
    table = world.table("out.tsv")
    assert {name for name, cells in table.items() if cells[1]} == {"line", "document", "segment"}
    assert table["text"] == world.lines("out")
    assert {*table["engine"]} == {""}
    for t, (text, value) in enumerate(zip(table["text"], table["agreement"], strict=True)):
        own = [x.split(" ||| ")[1] for x in world.lines("dev.kbest") if x.startswith(f"{t} |")]
        if own:  # also of lists with scores
            assert float(value) == pytest.approx(agreement(own, own.index(text), 2))


def test_tabs_of_a_system_are_blanks_and_its_line_is_named(world: World) -> None:
    """A list of Moses could not hold a text that begins with one."""
    options = "score --systems A=base.txt --systems B=hyp.txt --docs dev.docs"
    world.ok(f"{options} --out plain")
    world.write(
        "hyp.txt", "a lamp burns\n\tit\tgives light\t\n\tthe café is closed\nno one is coming\n"
    )
    said = world.ok(f"{options} --out tabs").err
    assert "2 x TAB inside a text, read as a space, first at hyp.txt:2 [R123 tab-in-text]" in said
    assert world.content("tabs") == world.content("plain")
