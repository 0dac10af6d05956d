"""`rerank check`: the summary, what findings are about, and clean copies.

That it finds each fault stands in the table of faults.
"""

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from support.world import World

LIST = """\
0 ||| the cat ||| LM0= -1 TM0= 2 0 ||| -1
0 ||| a cat ||| LM0= -2 TM0= 2 1 ||| -2
0 ||| the cat ||| LM0= -3 TM0= 2 2 ||| -3
2 ||| he sleeps ||| LM0= -1 TM0= 2 5 ||| -1
2 |||  ||| LM0= -1 TM0= 2 6 ||| -1
"""
CHECK = "check --kbest dev.kbest --docs dev.docs"


@pytest.fixture
def lists(world: World) -> World:
    world.write("dev.kbest", LIST)
    world.write("dev.docs", "a\na\nb\n")
    world.write("dev.ref", "a cat\nit is small\nhe sleeps\n")
    return world


def checked(world: World, command: str = CHECK, exit: int = 0) -> Any:
    run = world.run(f"{command} --format json")
    assert run.exit == exit, run.out
    assert run.json["exit_code"] == exit
    return run.json


def faults(found: Any) -> list[tuple[str, int, list[int]]]:
    """File, count and lines of each fault."""
    rows = (finding for finding in found["findings"] if finding["level"] == "fault")
    return [(row["file"], row["count"], row["lines"]) for row in rows]


def test_the_summary_counts_what_the_lists_hold(lists: World) -> None:
    result = checked(lists)["summary"]
    assert (result["sentences"], result["without_candidates"], result["documents"]) == (3, 1, 2)
    assert (result["candidates"], result["duplicates"], result["empty"]) == (5, 1, 1)
    assert result["k"] == {"min": 2, "median": 2.5, "max": 3}
    said = lists.ok(CHECK).out
    for row in (r"LM0 -3 -1 no", r"TM0_0 2 2 yes", r"TM0_1 0 6 no"):
        assert row in " ".join(said.split())


def test_bleu_of_first_and_best_candidates_is_that_of_sacrebleu(lists: World) -> None:
    references = ["the dog barks in the yard", "it is small", "he sleeps all the day long"]
    yard = [
        "a dog barks",
        "a dog barks in the yard",
        "one dog barks in a yard",
        "the dog barks in the yard",
    ]
    texts = [yard, ["it is small"], ["no"]]
    lines = [f"{t} ||| {text} ||| A= 1 ||| 1" for t, group in enumerate(texts) for text in group]
    lists.write("dev.kbest", lines)
    lists.write("dev.ref", references)
    result = checked(lists, "check --kbest dev.kbest --ref dev.ref")["summary"]["bleu"]
    metric = BLEU(tokenize="none")
    first = metric.corpus_score([group[0] for group in texts], [references])
    oracle = metric.corpus_score([group[-1] for group in texts], [references])
    assert result["first"] == pytest.approx(first.score, rel=1e-12)
    assert result["oracle"] == pytest.approx(oracle.score, rel=1e-12)
    assert result["signature"] == str(metric.get_signature())
    two = metric.corpus_score([yard[1], "it is small", "no"], [references])
    assert (result["best_of"]["2"], result["better"]) == (pytest.approx(two.score, rel=1e-12), 1)


SYSTEMS = {
    "one": ["one dog barks", "it is so small", "he sleeps"],
    "two": ["the dog barks in a yard", "it is small", "he is asleep"],
    "three": ["a dog is barking", "this is tiny", "he sleeps all day"],
}


def test_the_choice_by_agreement_is_that_of_decode_without_weights(world: World) -> None:
    for name, own in SYSTEMS.items():
        world.write(f"{name}.txt", own)
    world.write("ref", ["the dog barks in the yard", "it is small", "he sleeps all day"])
    samples = [[own[t] for own in SYSTEMS.values()] for t in range(3)]  # 33 with the repetitions
    lists = [{"hypotheses": [*sample, sample[0], *sample[:1] * 29]} for sample in samples]
    world.write("s.jsonl", "".join(json.dumps(of_list) + "\n" for of_list in lists))
    systems = " ".join(f"--systems {name}={name}.txt" for name in SYSTEMS)
    metric, reference = BLEU(tokenize="none"), [world.lines("ref")]
    for inputs, top in ((systems, ""), ("--kbest s.jsonl", " --top 30")):
        chosen = world.ok(f"decode {inputs} --no-docs one{top}").lines
        result = checked(world, f"check {inputs} --no-docs one --ref ref")["summary"]["bleu"]
        expected = metric.corpus_score(chosen, reference).score
        assert result["agreement"] == pytest.approx(expected, rel=1e-12), inputs
    assert "by agreement of the first 30" in world.ok("check --kbest s.jsonl --ref ref").out


def test_the_gain_of_tuning_is_that_of_tune_mert_on_held_out_documents(world: World) -> None:
    world.ok("tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --out w.json")
    command = "check --kbest dev.kbest --docs dev.docs --ref dev.ref --tune"
    result = checked(world, command)["summary"]["bleu"]["tuned"]
    selection = json.loads(world.text("w.json"))["provenance"]["selection"]
    assert result["bleu"] == selection["held_out_bleu"]
    assert "tuned, on held-out documents" in world.ok(command).out
    systems = "--systems a=base.txt --systems b=hyp.txt --systems c=dev.src --docs dev.docs"
    world.ok(f"tune-mert {systems} --ref dev.ref --out w.json")
    result = checked(world, f"check {systems} --ref dev.ref --tune")["summary"]["bleu"]["tuned"]
    selection = json.loads(world.text("w.json"))["provenance"]["selection"]
    assert result["bleu"] == selection["held_out_bleu"]


# Two texts that should be alike
ALIKE = [
    f"he said \" the {noun} is near the wall , and it 's {n} o'clock \" ."
    for n, noun in enumerate(("lamp", "bridge", "floor", "river", "road", "caf\u00e9") * 2)
]
SIGNS = {
    "@@": lambda line: line.replace("wall", "wa@@ ll").replace("clo-", "clo-@@ "),
    "\u2581": lambda line: ("\u2581" + line.replace("wall", "wa ll").replace(" ",
        " \u2581").replace(" \u2581ll", " ll")),
    "\u0120": lambda line: line.replace(" ", " \u0120"),
    "##": lambda line: line.replace("wall", "wa ##ll"),
    r"\n": lambda line: line.replace(" it", r" \u0069t") + r"\n",
    "\u00c3\u00a9": lambda line: line.encode().decode("cp1252"),
    "\u0661": lambda line: line.translate({ord("0") + n: 0x660 + n for n in range(10)}),
    "\ufb02": lambda line: line.replace("fl", "\ufb02"),
    "'(('": lambda line: f"(({line}))",
    r"'\u202b'": lambda line: f"\u202b{line}",
    "\uffed": lambda line: line.replace("wall", "wa \uffedll").replace("said", "sa\uffed id"),
    "|0-1|": lambda line: line.replace(",", "|0-3| , |4-4|"),
    "factors": lambda line: " ".join(f"{word}|X|y" for word in line.split()),
    "@-@": lambda line: line.replace("-", " @-@ "),
    "Penn": lambda line: line.replace('"', "``", 1).replace('"', "''"),
    "__en__": lambda line: f"__en__ {line}",
    "eng_Latn": lambda line: f"{line} eng_Latn",
    "</s>": lambda line: f"{line}</s>",
    "<|end|>": lambda line: f"{line} <|end|>",
    "[SEP]": lambda line: line.replace(" the", " [SEP] the"),
    "<g …> (tags)": lambda line: line.replace(" the", ' <g id="1" > the </g>').replace(" it",
        "<g /> it"),
    "<b …> (tags)": lambda line: line.replace(" the", " <b> the</b>"),
    "an id": lambda line: f"{re.sub('[^0-9]', '', line)}-utt {line}",
    "ends with": lambda line: f"{line} (spk-u{re.sub('[^0-9]', '', line)})",
    "capitals": str.capitalize,
    "\u201c": lambda line: (line.replace('"', "\u201c", 1) .replace('"', "\u201d") .replace("o'",
        "o\u2019") .replace(" '", " \u2019")),
    "\uff0c": lambda line: line.replace(",", "\uff0c").replace(".", "\u3002"),
    "'Translation:'": lambda line: f"Translation: {line}",
    "'DONE'": lambda line: f"{line} DONE",
}  # fmt: skip


@pytest.mark.parametrize("sign", SIGNS)
def test_what_one_text_has_alone_is_named_with_a_cure(sign: str, world: World) -> None:
    plain = [line.replace("o'clock", "o'clo-ck") for line in ALIKE]
    signed = list(map(SIGNS[sign], plain))
    pairs = [f"{t} ||| {x} ||| A= {k} ||| 0" for t, x in enumerate(signed) for k in (-1, -2)]
    for name, lines in (("plain", plain), ("signed", signed), ("list", pairs)):
        world.write(name, lines)
    evaluate, check = "evaluate -m bleu -b --no-docs one", "check --no-docs one --ref plain --kbest"
    for file, command in (
        ("signed", f"{evaluate} --ref plain --baseline plain signed"),
        ("signed", f"{evaluate} --ref signed --baseline plain plain"),
        ("list", f"{check} list"),
    ):
        run = world.ok(command)
        said = run.out + run.err
        assert sign in said or sign in ("factors", "Penn"), said
        cures = re.findall(r" do not; (.*?)(?: \(\d+ times\)|, first at| \[R)", said)
        assert cures, said
        if sign == "@@":
            filter = f"{cures[0].removeprefix('join them with: ')} < {file} > cured"
            subprocess.run(["bash", "-c", filter], cwd=world.folder, check=True)
            run = world.ok(command.replace(file, "cured"))
            assert " do not; " not in run.out + run.err
            assert "100.00" in run.out


@pytest.mark.parametrize("placeholder", ["\u2985ent\uff030\u2986", "__TERM_0__"])
def test_placeholders_that_are_not_filled_in_are_named(placeholder: str, world: World) -> None:
    world.write("plain", ALIKE)
    world.write("held", [line.replace("the ", f"{placeholder} ", 1) for line in ALIKE])
    said = world.ok("evaluate -m bleu --no-docs one --ref plain --baseline plain held").err
    what = "12 x hypotheses have words such as \u2985ent\uff030\u2986 or __TERM_0__ (placeholders)"
    assert f"{what}, references do not; put back what they stand for, first at held" in said


UNLIKE = [
    f"The {' '.join(map(''.join, Random(n).sample([*combinations('abdeilmor', 4)], 6)))} of Bob ."
    for n in range(120)
]
OTHERS = str.maketrans("abdeilmor", "cfghjknpq")
MOVED: dict[str, Callable[[list[str]], list[str]]] = {
    "to 120 fit references 1 line earlier": lambda lines: ["more", *lines[:-1]],
    "lines 11 to 119 fit references 1 line later": lambda lines: [*lines[:10], *lines[11:], "x"],
    "hypotheses fit references of other lines, as line ": sorted,
    "no more like the references of their lines than": lambda lines: [x[::-1] for x in lines],
    "words such as": lambda lines: [x.translate(OTHERS) for x in lines],
    "hypotheses of many lines are the same, 'nan', ref": lambda lines: ["nan"] * 6 + lines[6:],
    "small letters at the beginning of lines": lambda lines: [x[0].lower() + x[1:] for x in lines],
    "references have small letters,": lambda lines: list(map(str.upper, lines)),
    "hypotheses have spaces before punctuation": lambda lines: lines,
}


@pytest.mark.parametrize("said", MOVED)
def test_lines_that_are_not_where_they_should_be_are_named(said: str, world: World) -> None:
    joined = [line.replace(" .", ".") for line in UNLIKE] if "spaces" in said else UNLIKE
    for name, lines in (("ref", joined), ("hyp", MOVED[said](UNLIKE))):
        world.write(name, lines)
    command = "evaluate -m bleu -b --tokenize 13a --no-docs one --baseline hyp hyp --ref ref"
    result = world.ok(command).err
    assert said in result


def test_other_references_and_other_systems_are_compared_with_the_first(world: World) -> None:
    world.write("ref", UNLIKE)
    for lines, of_references, of_systems in (
        (sorted(UNLIKE), "references in new fit references in ref of", "of b fit outputs of a of"),
        (list(map(str.lower, UNLIKE)), "in ref have capitals, ref", "of a have capitals, those"),
        (UNLIKE, "references identical to those of ref; give each once", "no warnings"),
    ):
        world.write("new", lines)
        command = "evaluate -m bleu --no-docs one --baseline ref ref --ref ref --ref new"
        assert of_references in world.ok(command).err
        command = "check --no-docs one --systems a=ref --systems b=new"
        assert lines is UNLIKE or of_systems in world.ok(command).out


def test_quotes_in_another_script_leave_a_text_in_its_own_script(world: World) -> None:
    """LLMs quote the source; `outputs of b have no spaces between words` would be false."""
    for name, times in (("a", 1), ("b", 40)):
        quoted = [line + " \u6765\u81ea\u4e2d\u6587" * times for line in UNLIKE[:2]]
        world.write(name, quoted + UNLIKE[2:])
    assert "spaces" not in world.ok("check --no-docs one --systems a=a --systems b=b").out


def test_words_unknown_to_a_model_are_counted_and_many_are_a_warning(lists: World) -> None:
    lists.model("codclm", "lm", oov_rate=0.0)
    texts = ("the lamp is lit", "the Lamp glows")
    lists.write("dev.kbest", [f"0 ||| {text} ||| A= 1 ||| 1" for text in texts])
    lists.write("w.ini", "[weight]\nA= 1\nlm= 1\nlmoov= -1\n")
    command = "check --kbest dev.kbest --no-docs one --lm lm=lm --weights w.ini"
    (unknown,) = checked(lists, command)["summary"]["oov"]
    assert (unknown["words"], unknown["oov"]) == (7, 2)
    assert set(unknown["most_frequent"]) == {"Lamp", "glows"}
    assert "word unknown to lm (28.6% of the list's words" in lists.ok(command).out


def test_without_documents_the_lines_of_the_reference_count(lists: World) -> None:
    command = "check --kbest dev.kbest --ref dev.ref"
    lists.write("dev.ref", "a cat\nit is small\nhe sleeps\nthe end\n")
    result = checked(lists, command)["summary"]
    assert (result["documents"], result["sentences"]) == (None, 4)
    assert "unknown; decode and tune-mert need --docs FILE" in lists.ok(command).out


def test_all_faults_of_all_files_are_found_in_one_run(lists: World) -> None:
    lines = LIST.replace("LM0= -2", "LM0= nan").replace("2 ||| he", "x ||| he")
    lists.write("dev.kbest", f"{lines}2 ||| he slept ||| LM0= -1 ||| -1\n")
    lists.write("dev.docs", "a\nb\na\n")
    lists.write("dev.ref", "a cat\n")
    lists.write("w.ini", "[weight]\nLM0= 1\nTM1= 1 1\n")
    result = faults(checked(lists, f"{CHECK} --ref dev.ref --weights w.ini", 3))
    assert [(file, lines) for file, _, lines in result] == [
        ("dev.docs", [3]),
        ("dev.ref", []),
        ("dev.kbest", [2]),
        ("dev.kbest", [4]),
        ("dev.kbest", [6]),
        ("w.ini", []),
    ]


def test_a_fault_on_many_lines_is_one_finding_with_its_count(lists: World) -> None:
    lines = [f"{t} ||| text {t} ||| A= nan ||| 1\n0 ||| x {t} ||| A= 1 ||| 1" for t in range(50)]
    lists.write("dev.kbest", lines)
    expected = [("dev.kbest", 50, [1, 3, 5, 7, 9])]
    assert faults(checked(lists, "check --kbest dev.kbest", 3)) == expected
    said = lists.run("check --kbest dev.kbest").out
    assert " (50 times, next on lines 3, 5, 7, 9, …)\n" in said


def test_a_kind_of_warning_is_explained_by_its_code_or_its_name(lists: World) -> None:
    told = lists.run("check --explain R105")
    assert told.exit == 0
    assert told.out == lists.run("check --explain likely-costs").out
    assert told.out.splitlines() == [
        "R105 likely-costs (warning)",
        "likely costs (positive, and rising in each list) in place of scores",
        "cure: give negative weights",
        "example: warning: 3 x likely costs (positive, and rising in each list) in place of "
        "scores; give negative weights, first at dev.kbest:7 [R105 likely-costs]",
    ]
    refused = lists.refused("check --explain likly-costs")
    assert "no kind of warning 'likly-costs'; did you mean likely-costs?" in refused


def test_more_kinds_of_faults_than_people_read_are_summed_up(lists: World) -> None:
    lines = [f"0 ||| a ||| A= 1 {'x' * n}= 1 ||| 1" for n in range(1, 201)]
    lists.write("dev.kbest", ["0 ||| a ||| A= 1 ||| 1", *lines])
    result = faults(checked(lists, "check --kbest dev.kbest", 3))
    assert (len(result), sum(count for _, count, _ in result)) == (51, 200)
    assert "further faults of other kinds; mend those above" in lists.run(CHECK).out


FAIRSEQ = """\
S-0\tx
H-0\t-1\ta b
P-0\t-1 -1
H-0\tnone\ta c
P-0\t-1 -1
H-0\t-3
S-1\ty
H-1\t-2\tb
P-1\t-1 z
H-1\t-2\tc
"""
JSONL = """\
{"candidates": [{"text": "a", "score": 1}, {"text": "b", "score": 2}]}
{"candidates": [{"text": "a", "score": "x"}, {"text": "b", "score": 2}]}
{"candidates": [{"text": 3, "score": 1}]}
{"candidates": [{"text": "a"
"""
SOCKEYE = """\
{"sentence_id": 0, "translations": ["a", "b"], "scores": [[1], [2]], "translation": "a"}
{"sentence_id": 1, "translations": ["a", "b"], "scores": [[1]], "translation": "a"}
{"sentence_id": 2, "translations": ["a", 3], "scores": [[1], [2]], "translation": "a"}
"""
CDEC = """\
0 ||| a b ||| LM=-1 TM=2 ||| -1
x ||| a c ||| LM=-1 TM=2 ||| -1
1 ||| a d ||| LM=-1,5 TM=2 ||| -1
1 ||| a e ||| LM=-1 TM=2 ||| -1
"""


@pytest.mark.parametrize(
    ("content", "lines"),
    [(FAIRSEQ, [4, 6, 9, 10]), (JSONL, [2, 3, 4]), (SOCKEYE, [2, 3]), (CDEC, [2, 3])],
    ids=["fairseq", "jsonl", "sockeye", "cdec"],
)
def test_lists_are_read_on_after_a_fault(content: str, lines: list[int], lists: World) -> None:
    lists.write("dev.out", content)
    result = faults(checked(lists, "check --kbest dev.out", 3))
    assert sorted({line for _, _, own in result for line in own}) == lines


def test_a_fault_of_systems_is_named_once(lists: World) -> None:
    """The file has two no-break spaces, of the reference and of A; the lists have one of them."""
    texts = {"src lang='x'": "a", "ref lang='y'": "the\u00a0cat"}
    texts |= {"hyp system='A'": "the\u00a0cat", "hyp system='B'": "a cat\u200b"}
    parts = (
        f"<{start}><p><seg id='1'>{text}</seg>\n</p></{start[:3]}>" for start, text in texts.items()
    )
    lists.write("t.xml", f"<dataset><doc id='d'>{''.join(parts)}</doc></dataset>\n")
    result = checked(lists, "check --systems t.xml --ref t.xml")["findings"]
    of_spaces = [one for one in result if "space U+" in one["message"]]
    assert [(one["file"], one["lines"], one["message"][:8], one["count"]) for one in of_spaces] == [
        ("t.xml", [2], "no-break", 2),
        ("t.xml", [4], "zero-wid", 1),
    ]


def test_lists_of_systems_are_checked_as_they_are_made(lists: World) -> None:
    lists.write("one", "a cat\nit is small\nhe sleeps\n")
    lists.write("two", "the cat\nit is small\nhe sleeps\r\n")
    command = "check --systems A=one --systems B=two --docs dev.docs --ref dev.ref"
    result = lists.ok(command).out
    assert "hypotheses  4; k min 1, median 1, max 2" in result
    assert "sysA" in result
    assert "two:3: " in result  # its line end
    refused = lists.run(f"{command} --fix new")
    assert (refused.exit, refused.err.endswith("; mkdir new\n")) == (2, True)
    subprocess.run(refused.err.rpartition("; ")[2].split(), check=True)
    assert "clean copy new/two: 1 x CRLF line end" in lists.ok(f"{command} --fix new").out
    cured = lists.ok(command.replace("one", "new/one").replace("two", "new/two")).out
    assert "line ends" not in cured
    (lists.folder / "old").mkdir()
    for name, text, said in (
        ("old/one", "a cat\nno\nhe\n", "one and old/one would have one copy, new/one; rename one"),
        (
            "bad",
            b"a cat\n\xe9\nhe\n",
            "no clean copy is written, since these faults remain:\nbad:2",
        ),
        ("short,align=yes", "a cat\r\nhe sleeps\r\n", "copy new/short: 2 x CRLF line end"),
    ):
        lists.write(name.partition(",")[0], text)
        more = lists.run(f"{command.replace('B=two', f'B={name}')} --fix new")
        assert said in more.out + more.err
    lists.write("two", "the cat\n \nhe sleeps\n")
    assert "two:2: empty hypothesis" in lists.ok(command).out
    told = "first at two:2 ["
    assert told in lists.ok(command.replace("check", "decode").replace("--ref dev.ref", "")).err
    lists.write("two", "the cat\n")
    assert "two: expected 3 lines" in lists.run(command).out


# Clean copies
def test_a_clean_copy_keeps_every_byte_that_needs_no_repair(lists: World) -> None:
    lines = LIST.splitlines()
    broken = [f"{lines[3]}  ", "", lines[0].replace("-1", "nan", 1), lines[1], lines[2]]
    lists.write("dev.kbest", b"\xef\xbb\xbf" + "\r\n".join(broken).encode())
    repairs = checked(lists, f"{CHECK} --fix clean.kbest")["copies"]["repairs"]
    assert lists.text("clean.kbest") == f"{lines[1]}\n{lines[2]}\n{lines[3]}  \n"
    assert repairs == {
        "clean.kbest": {"byte-order mark removed": 1, "CRLF line end written as LF": 4,
            "hypothesis that cannot be read left out": 1, "blank line left out": 1,
            "line sorted by sentence": 3},
    }  # fmt: skip
    lists.ok("check --kbest clean.kbest --fix again.kbest")  # also without documents
    assert lists.content("again.kbest") == lists.content("clean.kbest")


def test_a_folder_gets_copies_of_all_text_files(lists: World) -> None:
    lists.write("dev.ref", b"\xef\xbb\xbfa cat\r\nit is small\r\nhe sleeps\r\n\r\n")
    lists.write("dev.src", "un chat\npetit\nil dort\n")
    lists.write("dev.kbest.gz", gzip.compress(LIST.encode()) + b"junk")
    (lists.folder / "clean").mkdir()
    words = "check --kbest dev.kbest.gz --docs dev.docs --source dev.src --ref dev.ref --fix clean"
    lists.ok(words)
    names = sorted(path.name for path in (lists.folder / "clean").iterdir())
    assert names == ["dev.docs", "dev.kbest.gz", "dev.ref", "dev.src"]
    assert lists.text("clean/dev.ref") == "a cat\nit is small\nhe sleeps\n"
    assert gzip.decompress(lists.content("clean/dev.kbest.gz")) == LIST.encode()


@pytest.mark.parametrize(
    ("fix", "message"),
    [
        ("dev.kbest", "output dev.kbest is also the input dev.kbest"),
        (".", "is also the input"),
        ("-", "--fix -: the report is on standard output; name a file"),
    ],
)
def test_a_copy_does_not_replace_its_original(fix: str, message: str, lists: World) -> None:
    run = lists.run(f"{CHECK} --fix {fix}")
    assert (run.exit, lists.text("dev.kbest")) == (2, LIST)
    assert message in run.err


RAW = """
灯已经点亮了。|她昨天离开了。 ; 灯点亮了。|她离开了。 ; in Han .* --tokenize zh ; --tokenize zh
彼女は家を出た。|雨が降っている。 ; 彼女は出た。|雨が降った。 ; mecab, or char ; --tokenize char
ไฟถูกเปิดแล้วในบ้าน|ฝนตกในเมือง ; ไฟถูกเปิดในบ้าน|ฝนตกในเมือง ; in Thai ; --tokenize char
灯 点亮 了 。|她 离开 了 。 ; 灯点亮了。|她离开了。 ; hypotheses in Han ; --tokenize zh
It is lit.|She left. ; it is lit .|she left . ; references look detok.* 13a ; --tokenize 13a
u1 it is|u2 she left ; u1 it was|u2 she left ; begins with an id such as u1 ; remove
u1 it is|u2 she left ; u2 she left|u1 it was ; id such as u2, in another order ; remove
it is (a-1)|she left (a-2) ; it was (a-1)|she left (a-2) ; ends with an id such as .a-1 ; remove
don't|it's ; don&#39;t|it&#x27;s ; mixed escaping: hypotheses contain &#39; ; html.unescape
"""


@pytest.mark.parametrize("row", RAW.strip().splitlines())
def test_raw_texts_and_ids_of_lines_are_named_with_a_cure(row: str, world: World) -> None:
    reference, hypothesis, said, cure = row.split(" ; ")
    world.write("ref", reference.split("|"))
    world.write("hyp", hypothesis.split("|"))
    command = "evaluate -m bleu -b --no-docs one --baseline hyp hyp --ref ref"
    result = world.ok(command).err
    assert re.search(said, result), result
    if not cure.startswith("--"):
        assert cure in result
    else:
        assert not re.search(said, world.ok(f"{command} {cure}").err)


def test_a_system_is_compared_with_the_others(world: World) -> None:
    for name, before in (("A", ""), ("B", ""), ("C", "sure : ")):
        world.write(name, [f"{before}{line[: 60 - n]}" for n, line in enumerate(ALIKE)])
    systems = "".join(f" --systems {name}={name}" for name in "ABC")
    said = world.ok(f"check{systems} --no-docs one").out
    assert "outputs of C have 'sure :' at the beginning, those of the other systems do " in said
    assert said.count(" do not; ") == 1


def test_a_table_of_many_features_ends_and_json_has_all(world: World) -> None:
    features = " ".join(f"f{i}= {i}" for i in range(100))
    world.write("many", f"0 ||| a b ||| {features} ||| 1\n0 ||| a c ||| {features} ||| 1\n")
    assert "… and 40 other features" in world.run("check --kbest many").out
    assert len(world.run("check --kbest many --format json").json["summary"]["features"]) == 100
