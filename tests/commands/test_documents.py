"""Documents, references and systems of every kind of file; plain or smaller files are the truth."""

import gzip
import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.wmt_xml import WMTXMLDataset
from support.world import ROOT, World

WMT23 = ROOT.parent / "shared" / "data" / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
IDS = "convert --kbest dev.kbest --docs docs --to first --out /dev/null"


def ids(world: World, options: str = "") -> tuple[list[str], str]:
    run = world.ok(f"{IDS} --docs-out - {options}")
    return run.lines, run.err


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\na\nb\nb\n", "aabb"),
        ("3\n3\n4\n4\n", "3344"),  # numbers alone are ids
        ("a 2\nb 2\n", "aabb"),
        ("it is\nlit .\n\nshe left .\nno\n", "1122"),
        ("\n\nit is\nlit .\n \t\n\nshe left .\nno\n\n", "1122"),
        ("灯亮了\n好\n\n她走了\n好\n", "1122"),
        ("it is\nlit .\n=\nshe left .\nno\n", "1122"),
        ('{"doc": "a"}\n{"doc_id": "a"}\n{"document": "b"}\n{"doc": "b"}\n', "aabb"),
        ('{"doc": 7}\n' * 4, "7777"),
        ("<script>\n<script>\n=cmd()\n=cmd()\n", ["<script>"] * 2 + ["=cmd()"] * 2),
        ("a b\na c\nb d\nb d\n", ["a b", "a c", "b d", "b d"]),
        ('{"doc" 1}\n' * 4, ['{"doc" 1}'] * 4),
        (f"{'x' * 5000}\n" * 4, ["x" * 5000] * 4),
    ],
)
def test_content_tells_the_format(content: str, expected: str | list[str], world: World) -> None:
    world.write("docs", content)
    assert ids(world)[0] == list(expected)


@pytest.mark.parametrize("example", ["a 5 9\n", "a 0 5\na 1 6\n", "a 0 5\nb\n", "a b c\n"])
def test_other_lines_are_no_table_of_documents(example: str, world: World) -> None:
    lines = example.splitlines()
    world.write("docs", [*lines, *[lines[-1]] * (4 - len(lines))])
    assert ids(world)[0] == [*lines, *[lines[-1]] * (4 - len(lines))]


@pytest.mark.parametrize(
    ("lines", "cure"),
    [
        ("a 1|a 2|b 1|b 2", "--docs-field 1"),
        ("my talk 7|my talk 8|x 1|x 2", "--docs-field 1"),
        ("a_1|a_2|b_1|b_2", "--docs-format numbered-docids"),
        ("a 1|a 3|b 1|b 3", None),
        ("a 1|a 1|a 1|a 1", None),
        ("a_1|a_3|b_1|b_3", None),
        ("a_1|a_2|a_3|b", None),
        ("_1|_2|_3|_4", None),
    ],
)
def test_ids_of_sentences_are_a_warning(lines: str, cure: str | None, world: World) -> None:
    world.write("docs", lines.split("|"))
    result, said = ids(world)
    assert len(result) == 4
    assert (cure or "--docs-f") in said if cure else "--docs-f" not in said
    if cure:
        assert "--docs-f" not in ids(world, cure)[1]


def test_sizes_and_empty_documents(world: World) -> None:
    world.write("docs", "a 0\nb 4\n")
    result, said = ids(world)
    assert (result, "1 x empty document, first at docs:1" in said) == (["b"] * 4, True)
    world.write("docs", "3\n1\n")
    assert ids(world, "--docs-format sizes")[0] == ["1", "1", "1", "2"]


def test_a_text_parted_as_its_documents_loses_the_blank_lines(world: World) -> None:
    world.write("text", "the lamp\nit is lit .\n\nshe left us .\nwho knows it\n")
    world.write("plain", world.text("text").replace("\n\n", "\n"))
    world.write("docs", "1\n1\n2\n2\n")
    figures = []
    for docs, text in (("text", "text"), ("docs", "plain")):
        command = f"evaluate --docs {docs} --ref {text} --baseline {text} dev.ref -m bleu"
        result = world.ok(f"{command} --format json").out.replace('"text"', '"plain"')
        figures.append([json.loads(result)[key] for key in ("systems", "documents")])
    assert figures[0] == figures[1]


# Evaluation sets
TEXTS = {"a": ["the lamp is lit now", "it gives light"], "b": ["she left us", "who knows it"]}
SIDES = {
    "ref": TEXTS,
    "X": {"a": ["a lamp is lit now", "it gives light"], "b": ["she left", "who knows that"]},
    "base": {"a": ["a lamp burns now", "it is light"], "b": ["she left us", "who knows"]},
}
TAGS = {"ref": 'ref translator="A"', "X": 'hyp system="X"', "base": 'hyp system="base"'}


def xml(without: str = "", names: str = "ab") -> str:
    """WMT XML of the documents; one text may be missing, in the reference."""
    parts = ["<dataset>"]
    for name in names:
        parts.append(f'<doc id="{name}"><src><seg id="1">s</seg><seg id="2">s</seg></src>')
        for side, tag in TAGS.items():
            segments = "".join(
                f'<seg id="{n}">{text}</seg>'
                for n, text in enumerate(SIDES[side][name], 1)
                if side != "ref" or text != without
            )
            parts.append(f"<{tag}>{segments}</{tag.split()[0]}>")
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>\n"])


@pytest.fixture
def sets(world: World) -> World:
    world.write("t.xml", xml())
    for name, side in SIDES.items():
        world.write(name, [line for lines in side.values() for line in lines])
    world.write("docs", "a\na\nb\nb\n")
    own = [
        {"system": side, "doc_id": name, "segment_id": n, "src": "s", "hypothesis": text}
        for side in ("X", "base")
        for name in TEXTS
        for n, text in enumerate(SIDES[side][name], 1)
    ]
    world.write("own.jsonl", map(json.dumps, own))
    world.write("mixed.jsonl", map(json.dumps, own[::2] + own[1::2]))
    parts = [
        {"system": side, "doc_id": name, "hypothesis": "\n\n".join(SIDES[side][name])}
        for side in ("X", "base")
        for name in TEXTS
    ]
    world.write("parts.jsonl", map(json.dumps, parts))
    texts = [{"document": name, "refs": [text]} for name in TEXTS for text in TEXTS[name]]
    world.write("ref.jsonl", map(json.dumps, texts))
    rows = [(n, own[n]) for n in range(4) for own in (world.lines("base"), world.lines("X"))]
    world.write("kbest", [f"{n} ||| {text} ||| LM0= {len(text)} ||| 1" for n, text in rows])
    return world


def figures(world: World, command: str) -> Any:
    """All numbers of `evaluate`, without the names of the files."""
    result = world.ok(f"evaluate -m bleu --format json -q {command}").out
    report = json.loads(re.sub(r"mixed\.(?!jsonl)|[a-z]+\.(xml|jsonl)#", "", result))
    return [report[key] for key in ("systems", "documents")]


PLAIN = "--tokenize 13a --docs docs --ref ref --baseline base X"


def test_the_limit_of_json_lines_is_of_the_texts_that_are_kept(world: World) -> None:
    line = json.dumps({"doc": "d", "ref": "a", "spans": " " * (15 << 20)}).encode() + b"\n"
    world.write("ref.jsonl.gz", gzip.compress(line * 9, 1))
    world.write("nine", "a\n" * 9)
    assert world.ok("evaluate --ref ref.jsonl.gz --baseline nine nine -m bleu -b").lines == ["0.00"]


@pytest.mark.parametrize(
    "command",
    [
        "--ref t.xml --baseline t.xml#base t.xml#X",
        "--ref t.xml#A --docs t.xml --baseline base X",
        "--tokenize 13a --ref ref --docs t.xml --baseline t.xml#base X",
        "--ref t.xml --baseline t.xml#base t.xml#X --drop-unreferenced",
        "--ref ref.jsonl --baseline base X",
        *(f"--ref t.xml --baseline {n}.jsonl#base {n}.jsonl#X" for n in ("own", "mixed", "parts")),
    ],
)
def test_wmt_xml_is_evaluated_as_the_files_unwrapped_from_it(command: str, sets: World) -> None:
    assert figures(sets, command) == figures(sets, PLAIN)


def test_documents_of_a_set_are_matched_by_name_not_by_order(sets: World) -> None:
    sets.write("t.xml", xml(names="ba"))
    assert figures(sets, f"{PLAIN.replace('--ref ref', '--ref t.xml#A')}") == figures(sets, PLAIN)


def test_collections_segments_and_further_text_of_wmt_xml(world: World) -> None:
    """Segments by number; the id of a second collection tells which one it is."""
    world.write("t.xml", """<?xml version='1.0' encoding='utf-8'?>
<dataset id="t"><collection id="general"><doc id="d1" origlang="ru">
<src lang="ru"><p><seg id="10">zehn</seg></p><p><seg id="2">zwei &amp; &#228;</seg></p></src>
<hyp system="X"><p><seg id="2">  two
   lines </seg><seg id="10"/></p></hyp>
<hyp system="Y"><p><seg id="10">10</seg><seg id="11">11</seg></p></hyp>
<supplemental type="note"><p><seg id="1">no text</seg></p></supplemental></doc></collection>
<collection id="tests"><doc id="d1" testsuite="s"><src><p><seg id="1">eins</seg></p></src>
<hyp system="X"><seg id="1">one</seg></hyp><hyp system="Y"><seg id="1">1</seg></hyp></doc>
</collection></dataset>
""")  # fmt: skip
    run = world.ok("score --systems t.xml")
    rows = [line.split(" ||| ")[:2] for line in run.lines]
    assert rows == [["0", "two lines"], ["1", ""], ["1", "10"], ["2", "one"], ["2", "1"]]
    assert "1 x segment that the source does not have, left out, first at t.xml" in run.err
    assert "1 x segment without translation" in run.err
    world.write("two.kbest", [f"{t} ||| a ||| A= 1 ||| 0" for t in range(3)])
    source = "--missing source --source t.xml"
    world.write("one.kbest", "0 ||| a ||| A= 1 ||| 0\n")
    found = world.ok(f"first --kbest one.kbest --docs t.xml {source}")
    assert found.lines == ["a", "zehn", "eins"]
    found = world.ok("convert --kbest two.kbest --docs t.xml --to first --out o --docs-out -")
    assert found.lines == ["d1", "d1", "tests/d1"]


def test_sgml_and_its_traps(world: World) -> None:
    """`&amp;` is decoded once; Moses' `&#124;` and a bare & stay; a tag may break its line."""
    world.write("s.sgm", """<srcset setid="t" srclang="zh">
<DOC genre="news" docid="d1"><hl>
<seg id=1> eins </seg>
</hl><p>
<SEG id='2'>
 zwei
 Teile
</SEG></p></DOC>
<doc docid="d2"><seg id="1">AT&T, R&amp;D &lt; &#124;</seg></doc></srcset>
""")  # fmt: skip
    world.write("kbest", "0 ||| a ||| A= 1 ||| 0\n")
    run = world.ok("first --kbest kbest --docs s.sgm --missing source --source s.sgm")
    assert run.lines == ["a", "zwei Teile", "AT&T, R&D < &#124;"]
    world.write("r.sgm", """<refset setid="t">
<doc sysid="r1" docid="d2"><seg id="1">AT&T rose</seg></doc>
<doc sysid="r1" docid="d1"><seg id="2">two parts</seg><seg id="1">one</seg></doc>
<doc docid="d1" sysid="r2"><seg id="1">uno</seg><seg id="2">dos partes</seg></doc>
<doc docid="d2" sysid="r2"><seg id="1">NO BEST TRANSLATION</seg></doc></refset>
""")  # fmt: skip
    world.write("r1", "one\ntwo parts\nAT&T rose\n")
    command = "evaluate --docs s.sgm --baseline r1 r1 -m chrf"
    run = world.ok(f"{command} --ref r.sgm#r1 --format json")
    assert run.json["systems"][0]["metrics"]["chrf"]["score"] == pytest.approx(100)
    world.write("system.sgm", world.text("r.sgm").replace("refset", "tstset"))
    run = world.ok(f"{command.replace('r1 r1', 'system.sgm#r2 r1')} --ref r.sgm#r1")
    assert "1 x NO BEST TRANSLATION, read as an empty translation, first at system.sgm:5" in run.err


def test_hostile_runs_of_letters_and_blanks_are_read_in_linear_time(world: World) -> None:
    """A million of each; patterns that try each of their positions would take hours."""
    blanks, letters = " " * 1_000_000, "x" * 1_000_000
    world.write("t", f'<refset {letters}>\n<doc docid="d"><seg id="1">a{blanks}b</seg></doc>')
    world.write("kbest", "0 ||| a ||| A= 1 ||| 0\n")
    world.ok("convert --kbest kbest --docs t --to first --out out")


def test_a_file_that_is_read_again_warns_once(world: World) -> None:
    world.write("t.xml", xml().replace(">s<", ">\xa0s<", 1))
    world.write("base", "a\nb\nc\nd\n")
    said = world.ok("evaluate --ref t.xml --baseline base t.xml#X -m bleu").err
    assert said.count("no-break space U+00A0") == 1
    assert "1 x no-break space" in said


@pytest.mark.skipif(not WMT23.is_file(), reason="the corpora are not here")
def test_wmt23_reads_as_sacrebleu_reads_it(world: World, tmp_path: Path) -> None:
    world.write("all.xml", gzip.decompress(WMT23.read_bytes()))
    expected = WMTXMLDataset._unwrap_wmt21_or_later(  # type: ignore[no-untyped-call]
        tmp_path / "all.xml"
    )
    world.write("kbest", "0 ||| a ||| A= 1 ||| 0\n")
    source = world.ok("first --kbest kbest --docs all.xml --missing source --source all.xml -q")
    assert source.lines[1:] == [" ".join(line.split()) for line in expected["src"]][1:]
    names = ["ONLINE-A", "ONLINE-B"]
    for name in names:
        world.write(name, [text.strip(" \n") for text in expected[name]])
    world.write("ref", [text.strip(" \n") for text in expected["ref:refA"]])
    one = figures(world, f"--ref all.xml#refA --baseline all.xml#{names[0]} all.xml#{names[1]}")
    other = figures(
        world, PLAIN.replace("docs docs", "docs all.xml").replace("base X", " ".join(names))
    )
    scores = [[system["metrics"]["bleu"]["score"] for system in found[0]] for found in (one, other)]
    assert scores[0] == scores[1]


@pytest.fixture
def cache(sets: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A test set in a cache that the test makes; nothing may be downloaded."""
    monkeypatch.setattr(DATASETS["wmt23"], "_outdir", str(sets.folder))
    for field, name in (("docid", "docs"), ("ref-refA", "ref"), ("src", "ref"), ("ref-refB", "X")):
        sets.write(f"wmt23.ru-en.{field}", sets.text(name))
    sets.write("wmt23.ru-en.ref", "")  # a download that was broken off
    sets.write("wmt23.ru-en.reference-notes", "x\n")
    return sets


def test_sources_of_a_cached_test_set_are_those_of_its_file(cache: World) -> None:
    command = "first --kbest kbest --docs docs --missing source --source"
    cache.write("kbest", cache.lines("kbest")[2:])
    name = "sacrebleu:wmt23/ru-en"
    assert cache.ok(f"{command} {name}").lines == cache.ok(f"{command} ref").lines
    assert cache.ok(f"{command} {name}").lines[0] == cache.lines("ref")[0]
    Path("wmt23.ru-en.src").unlink()
    assert "not in the cache of sacrebleu (" in cache.refused(f"{command} {name}")


def test_a_reference_from_a_pipe_is_that_of_a_file(sets: World) -> None:
    command = PLAIN.replace("--ref ref", "--ref -")
    result = sets.ok(f"evaluate -m bleu --format json {command}", stdin=sets.content("ref")).json
    assert [result["systems"], result["documents"]] == figures(sets, PLAIN)
    sets.write("text", "it\nis\n\nlit .\nnow\n")
    apart = command.replace("--docs docs", "--docs text")
    result = sets.ok(f"evaluate -m bleu --format json {apart}", stdin=sets.content("ref")).json
    assert result["systems"] == figures(sets, PLAIN)[0]


def test_all_references_of_a_cached_test_set_are_read(cache: World) -> None:
    both = figures(cache, PLAIN.replace("--ref ref", "--ref ref --ref X"))
    assert figures(cache, "-t wmt23 -l ru-en --baseline base X") == both
    refused = cache.refused("evaluate -t wmt23 -l en-de --baseline base X")
    assert "not in the cache of sacrebleu (" in refused
    assert "fetch it with: sacrebleu -t wmt23 -l en-de <" in refused
    run = cache.run("evaluate --ref sacrebleu:wmt23/ru-en#C --no-docs one --baseline base X")
    assert "no reference 'C'; there are: refA, refB" in run.err
    Path("wmt23.ru-en.docid").unlink()
    run = cache.run("evaluate -t wmt23 -l ru-en --baseline base X")
    assert "has no document ids; give --docs or --no-docs" in run.err


# Documents whose lines stand apart: every output is that of sorted files, in the input's order

ORDER = (2, 0, 3, 1)  # line i of the mixed files is line ORDER[i] of the sorted ones
MIXED = "--kbest mixed.kbest --docs mixed.docs --allow-interleaved"
SORTED = "--kbest kbest --docs docs"


@pytest.fixture
def mixed(sets: World) -> World:
    for name in ("docs", "ref", "X", "base"):
        lines = sets.lines(name)
        sets.write(f"mixed.{name}", [lines[place] for place in ORDER])
    own = [list(rows) for _, rows in groupby(sets.lines("kbest"), lambda line: line[0])]
    rows = [f"{n}{line[1:]}" for n, place in enumerate(ORDER) for line in own[place]]
    sets.write("mixed.kbest", rows)
    sets.weights("w.json", {"LM0": 1.0, "c": 2.0})
    sets.weights("s.json", {"LM0": -1.0})
    return sets


def by_sentence(lines: list[str]) -> list[list[str]]:
    """The lines of each sentence of a list, without their ids."""
    return [
        [line.split(" ", 1)[1] for line in own]
        for _, own in groupby(lines, lambda line: line.split(" ", 1)[0])
    ]


@pytest.mark.parametrize(
    ("command", "lists"),
    [
        ("decode {} --weights w.json --scorer c=document-cache --search beam", False),
        ("score {} --scorer c=document-cache", True),
        ("first {}", False),
        ("convert {} --to moses", True),
    ],
)
def test_interleaved_documents_are_as_sorted_ones(command: str, lists: bool, mixed: World) -> None:
    one, two = (mixed.ok(command.format(given)).lines for given in (SORTED, MIXED))
    if lists:
        assert by_sentence(two) == [by_sentence(one)[place] for place in ORDER]
    else:
        assert two == [one[place] for place in ORDER]


def test_lists_of_interleaved_documents_keep_the_order_of_the_input(mixed: World) -> None:
    command = "decode {} --weights s.json --kbest-out {}.lists --out out"
    mixed.ok(command.format(SORTED, "one"))
    mixed.ok(command.format(MIXED, "two"))
    one = by_sentence(mixed.lines("one.lists"))
    assert by_sentence(mixed.lines("two.lists")) == [one[place] for place in ORDER]
    mixed.ok(f"convert {MIXED} --to jsonl --out out --docs-out ids")
    assert mixed.lines("ids") == mixed.lines("mixed.docs")
    result = [json.loads(line) for line in mixed.lines("out")]
    assert [one["id"] for one in result] == list(range(4))
    assert [one["document"] for one in result] == mixed.lines("mixed.docs")
    # documents in the order of their first lines
    rows = mixed.ok(f"convert {MIXED} --to documents").lines
    texts = [[t.strip() for t in row.split(" ||| ")[1].split("\\n")[:2]] for row in rows]
    assert texts == [SIDES["base"]["b"], SIDES["base"]["a"]]


def test_figures_of_interleaved_documents_are_those_of_sorted_ones(mixed: World) -> None:
    evaluate = PLAIN.replace(" ref", " mixed.ref").replace("base X", "mixed.base mixed.X")
    evaluate = evaluate.replace("--docs docs", "--docs mixed.docs --allow-interleaved")
    for name in ("base", "X"):
        values = [t % (1 + len(name)) / 4 for t in range(4)]
        mixed.write(f"{name}.q", values)
        mixed.write(f"mixed.{name}.q", [values[place] for place in ORDER])
    scores = " --scores qe={0}base:{0}base.q --scores qe={0}X:{0}X.q"
    one = figures(mixed, PLAIN + scores.format(""))
    two = figures(mixed, evaluate + scores.format("mixed."))
    for own, other in zip(one[0], two[0], strict=True):
        assert own["metrics"] == other["metrics"]
        assert own["scores"]["qe"] | {"signature": 0} == other["scores"]["qe"] | {"signature": 0}
    oracles = [
        mixed.ok(f"evaluate {given} --kbest {kbest} -m bleu --format json").json["oracle"]
        for given, kbest in ((PLAIN, "kbest"), (evaluate, "mixed.kbest"))
    ]
    assert oracles[0] == oracles[1]
    rows = [mixed.ok(f"diversity {given} --format tsv").lines for given in (SORTED, MIXED)]
    plain = [row.partition("\t")[2] for row in rows[0][1:]]
    assert rows[1][1:] == [f"{n}\t{plain[place]}" for n, place in enumerate(ORDER)]
    assert mixed.run(f"check {MIXED} --ref mixed.ref").exit == 0


# Sentences without reference, left out
DROP = "--drop-unreferenced"


@pytest.fixture
def less(sets: World) -> World:
    """XML in which document b has no reference; `less.*` are the files of document a alone."""
    head, tail = xml().split('<seg id="1">she left us</seg><seg id="2">who knows it</seg>')
    sets.write("all.xml", head + tail)
    sets.write("less.xml", xml(names="a"))
    sets.write("less.kbest", sets.lines("kbest")[:4])
    sets.weights("w.json", {"LM0": 1.0})
    return sets


@pytest.mark.parametrize("lists", ["--kbest {}kbest", "--systems {}xml"], ids=["list", "systems"])
def test_weights_are_tuned_on_the_sentences_that_have_references(lists: str, less: World) -> None:
    whole = f"tune-mert {lists.format('all.').replace('all.kbest', 'kbest')} --ref all.xml#A"
    refused = less.refused(f"{whole} --out two.json", exit=3)
    assert f"or leave these sentences out with {DROP}" in refused
    less.ok(f"tune-mert {lists.format('less.')} --ref less.xml#A --out one.json")
    run = less.ok(f"{whole} {DROP} --out two.json")
    one, two = less.json("one.json"), less.json("two.json")
    assert two["weights"] == one["weights"]
    assert two["provenance"]["unreferenced"] == 2
    assert run.err.count("sentence without reference") == 1
    assert f"2 x sentence without reference, left out ({DROP})" in run.err


def test_other_commands_see_the_sentences_that_have_references(less: World) -> None:
    result = []
    for stem, drop in (("less.", ""), ("", DROP)):
        files = f"--kbest {stem}kbest --ref {stem or 'all.'}xml --weights w.json {drop} -q"
        scorer = "--scorer c=document-cache --default-weight 1"
        ablated = less.ok(f"ablate {files} {scorer} --format json").json
        result.append(ablated)
    assert result[0] == result[1]
    assert less.run("check --kbest kbest --ref all.xml#A").exit == 3
    for lists in ("--kbest kbest", "--systems all.xml"):
        said = less.ok(f"check {lists} --ref all.xml#A {DROP}").out
        assert "sentences   2" in said
        assert f"sentence without reference, left out ({DROP}); nothing to do (2 times)" in said


def test_check_takes_the_documents_of_the_reference_as_tuning_does(sets: World) -> None:
    assert "documents   2 of 2 sentences" in sets.ok("check --kbest kbest --ref t.xml#A").out
    lines = [{"document": name, "ref": text} for name in TEXTS for text in TEXTS[name]]
    sets.write("ref.jsonl", map(json.dumps, lines))
    assert "documents   2 of 2 sentences" in sets.ok("check --kbest kbest --ref ref.jsonl").out


# References: what is worth a warning
def test_blank_missing_and_escaped_references_are_counted(world: World) -> None:
    world.write("a", "the\n \nNO TRANSLATION AVAILABLE\n\n")
    said = world.ok("evaluate --no-docs one --ref a --baseline base.txt hyp.txt -m bleu").err
    assert "2 x blank reference, first at a:2" in said
    assert "1 x reference that only says there is no translation, first at a:3" in said
    world.write("a", "x\nit &apos;s\n&quot;\nz\n")
    world.write("b", "x\nit 's\ny\nz\n")
    command = "evaluate --no-docs one --baseline base.txt hyp.txt -m bleu"
    said = world.ok(f"{command} --ref b --ref a").err
    assert "2 x mixed escaping: references in a contain &apos; and similar, references in b" in said
    assert "first at a:2" in said
    for both in ("--ref a --ref a", "--ref b --ref b"):
        assert "mixed escaping: references in" not in world.ok(f"{command} {both}").err


@pytest.mark.parametrize(
    ("hypotheses", "references", "sides"),
    [
        ("it &apos;s|&quot;", "it 's|&quot;", ["hypotheses"]),
        ("it 's|&quot;", "it &apos;s|&quot;", ["references"]),
        ("it &apos;s|a & b", "it 's|a &amp; b", ["hypotheses", "references"]),
        ("it &apos;s|&quot;", "a|&quot;", []),
        ("&amp; &apos;|x", "&apos; &lt;|x", []),
        *((f"a|it {e} s {e}", "it 's|& ;", ["hypotheses"]) for e in ("&apos;", "&#91;")),
        ("it 's|& ;", "a|it &lt; s", ["references"]),
        ("&nbsp;|a", "b|&nbsp;", []),
        ("a|cafe\u0301", "café|b", ["NFD hypotheses"]),
        ("a|café", "cafe\u0301|b", ["NFD references"]),
        ("cafe\u0301|a", "a|cafe\u0301", []),
    ],
)
def test_characters_spelled_otherwise_on_one_side_are_named_with_the_cure(
    hypotheses: str, references: str, sides: list[str], world: World
) -> None:
    world.write("hyp", hypotheses.split("|"))
    world.write("ref", references.split("|"))
    world.write(
        "list", [f"{t} ||| {x} ||| A= 1 ||| 0" for t, x in enumerate(hypotheses.split("|"))]
    )
    said = world.ok("evaluate --no-docs one --ref ref --baseline ref hyp -m bleu").err
    checked = world.run("check --kbest list --no-docs one --ref ref").out
    for side in ("hypotheses", "references"):
        escaped = f"mixed escaping: {side} contain &"
        assert (escaped in said) == (escaped in checked) == (side in sides), said + checked
        decomposed = f"{side} in Unicode form NFD"
        assert (decomposed in said) == (decomposed in checked) == (f"NFD {side}" in sides)
        if side in sides:
            assert f"unescape the {side} with Moses' deescape-special-chars.perl" in said
        if side in sides and side == "hypotheses":
            assert "with: rerank convert --kbest list --escape none --to moses --out NEW" in checked
