"""`--missing`, `--normalize` and `--systems`: what commands make of lists that are not as they are.

The truth is a list that was so before: with the source line as candidate and zeros for its
features; in Unicode's form NFC; with the outputs of the systems as candidates.
"""

import json
import re
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from unicodedata import normalize

import pytest
from support.world import Folders, World

import rerank

GAP = "0 ||| a b ||| A= -1 B= 2 3 x_y= 1 ||| -4\n0 ||| c ||| A= -2 B= 1 1 ||| -5\n"
GAP += "3 ||| d ||| A= -3 B= 0 1 ||| -6\n3 ||| e f ||| A= -4 B= 4 1 ||| -7\n"
ADDED = [f"{t} ||| {text} ||| A= 0 B= 0 0 ||| 0\n" for t, text in ((1, "elle luit"), (2, "le bar"))]
SOURCE = "--missing source --source dev.src"
GIVEN = "--docs dev.docs"


@pytest.fixture
def gap(world: World) -> World:
    """Lists without hypotheses of the second and third sentence, and with the source line there."""
    world.write("gap", GAP)
    world.write("whole", GAP.replace("3 |||", f"{''.join(ADDED)}3 |||", 1))
    world.write("qe", "1\n2\n3\n4\n")
    world.write("qe.whole", "1\n2\n0\n0\n3\n4\n")
    world.weights("w.json", {"A": 1.0, "B": [0.5, -0.5], "qe": 1.0})
    world.weights("v.json", {"A": 1.0, "B": [0.5, -0.5], "lm": 1.0, "lmoov": -1.0})
    world.write("dev.src", "la lampe\nelle luit\n le bar \npersonne\n")
    return world


@pytest.mark.parametrize(
    "command",
    [
        "first --kbest {}",
        "score --kbest {} --scores qe={qe} --docs dev.docs",
        "decode --kbest {} --docs dev.docs --scores qe={qe} --weights w.json --top 1",
        "decode --kbest {} --docs apart --allow-interleaved --scores qe={qe} --weights w.json",
    ],
)
def test_a_source_line_is_a_candidate_as_if_the_list_had_it(command: str, gap: World) -> None:
    gap.write("apart", "x\ny\nx\ny\n")
    result = gap.ok(f"{command.format('gap', qe='qe')} {SOURCE}").out
    assert result == gap.ok(command.format("whole", qe="qe.whole")).out


def test_without_the_option_the_output_has_an_empty_line(gap: World) -> None:
    gap.weights("u.json", {"A": 1.0, "B": [0.0, 0.0]})
    command = f"decode --kbest gap {GIVEN} --weights u.json"
    for more in ("", "--missing empty"):
        run = gap.ok(f"{command} {more}")
        assert run.lines == ["a b", "", "", "d"]
        assert "2 x source line without hypotheses (ids 1, 2), first at gap" in run.err
    run = gap.ok(f"first --kbest gap {SOURCE}")
    kind = "source line that is its own translation, for lack of hypotheses (ids 1, 2)"
    assert f"2 x {kind}, first at gap" in run.err


def test_a_missing_sentence_ends_it_at_once(gap: World, model_folders: Folders) -> None:
    command = f"decode {GIVEN} --weights v.json --missing error --cache cache --out out"
    command += f" --lm lm={model_folders['codclm']}"
    assert gap.refused(f"{command} --kbest gap -q", exit=3) == (
        "rerank: gap: expected hypotheses of every source line, found none of 2 (ids 1, 2); "
        "translate these lines again, or give --missing empty or --missing source\n"
    )
    assert not [name for name in gap.files() if name.startswith("cache/")]
    gap.ok(f"{command} --kbest whole")


def test_a_list_that_has_its_sources_needs_no_file(world: World) -> None:
    world.write("out", "S-0\tdie lampe\nH-0\t-1\tlamp\nP-0\t-1\nS-1\tdie leere\n")
    expected = ["lamp", "die leere"]
    assert world.ok("first --kbest out --no-docs one --missing source").lines == expected


def test_sources_beside_outputs_of_systems_are_candidates_if_these_have_none(world: World) -> None:
    source = "".join(f"<seg id='{n}'>quelle {n}</seg>" for n in (1, 2))
    outputs = "".join(f"<hyp system='{x}'><seg id='1'>{x.lower()}</seg></hyp>" for x in "AB")
    world.write("t.xml", f"<dataset><doc id='d'><src>{source}</src>{outputs}</doc></dataset>")
    world.weights("w.json", {"sysA": 1.0})
    command = "decode --systems t.xml --weights w.json --default-weight 0"
    assert world.ok(command).lines == ["a", ""]
    assert world.ok(f"{command} --missing source").lines == ["a", "quelle 2"]


def test_without_documents_the_source_says_how_many_lines_there_are(gap: World) -> None:
    gap.write("dev.src", gap.text("dev.src") + "zuletzt\n")
    result = gap.ok(f"first --kbest gap --no-docs one {SOURCE}").lines
    assert result == ["a b", "elle luit", "le bar", "d", "zuletzt"]


@pytest.mark.parametrize("keys", [("document", "source"), ("doc_id", "src")], ids=" ".join)
def test_json_lines_keep_all_documents_and_sources(keys: tuple[str, str], world: World) -> None:
    docs, sources = world.lines("dev.docs"), world.lines("dev.src")
    lines = []
    for *beside, texts in zip(docs, sources, (["lamp"], [], ["no"], []), strict=True):
        own = [{"text": text, "features": {"A": -1.0}} for text in texts]
        lines.append(dict(zip(keys, beside, strict=True)) | {"candidates": own})
    world.write("list", map(json.dumps, lines))
    world.weights("w.json", {"A": 1.0})
    command = "decode --missing source --weights w.json"
    one = world.ok(f"{command} --kbest list --kbest-out again.jsonl").out
    assert world.ok(f"{command} --kbest again.jsonl").out == one
    result = [json.loads(line) for line in world.lines("again.jsonl")]
    assert [one.get(keys[0], one.get("document")) for one in result] == docs
    assert [one.get(keys[1], one.get("source")) for one in result] == sources
    assert all(len(one) == 4 for one in result)  # nothing is there twice


def test_weights_are_those_of_a_list_that_has_it(world: World) -> None:
    world.draw(7, "aaaabbbbcccc", {2, 7})
    world.write("dev.src", [f"quelle {t}" for t in range(12)])
    added = [f"{t} ||| quelle {t} ||| LM0= 0 TM0= 0 0 ||| 0" for t in (2, 7)]
    whole = [*world.lines("dev.kbest"), *added]
    world.write("whole", sorted(whole, key=lambda line: int(str(line).split()[0])))
    tune = "tune-mert --docs dev.docs --ref dev.ref --start start.json --out"
    world.ok(f"{tune} one.json --kbest dev.kbest {SOURCE}")
    world.ok(f"{tune} two.json --kbest whole")
    one, two = world.json("one.json"), world.json("two.json")
    assert one["weights"] == two["weights"]
    assert [x["provenance"].get("missing") for x in (one, two)] == ["source", None]


def test_check_says_what_the_other_commands_would(gap: World) -> None:
    command = "check --kbest gap --docs dev.docs --ref dev.ref --source dev.src"
    assert "gap: source line without hypotheses (ids 1, 2); " in gap.ok(command).out
    refused = gap.run(f"{command} --missing error")
    assert (refused.exit, "found none of 2 (ids 1, 2); translate" in refused.out) == (3, True)
    assert "that is its own translation" in gap.ok(f"{command} --missing source").out
    gap.write("dev.src", "a\nb\n")
    assert gap.run(f"{command} --missing source").out.count("dev.src") == 1


def test_documents_that_are_read_in_python_have_it(gap: World) -> None:
    gap.write("gap", GAP.replace(" x_y= 1", ""))
    with pytest.warns(rerank.RerankWarning, match="its own translation"):
        result = list(rerank.read("gap", "dev.docs", side={"source": "dev.src"}, missing="source"))
    expected = [[["a b", "c"], ["elle luit"]], [["le bar"], ["d", "e f"]]]
    assert [document.texts for document in result] == expected
    features = [dict(features) for _, features in result[0].sentences[0]]
    assert features == [{"A": -1, "B_0": 2, "B_1": 3}, {"A": -2, "B_0": 1, "B_1": 1}]
    assert result[1].sentences[0][0][1] == {"A": 0.0, "B_0": 0.0, "B_1": 0.0}


# Unicode's form NFC
LINES = (
    "0 ||| un café ||| LM0= -9 TM0= -1 ||| -4 ||| 0-0",
    "0 ||| le café ||| LM0= -8 TM0= -2 ||| -5 ||| 0-0",
    "1 ||| elle est là ||| LM0= -7 TM0= -1 ||| -3 ||| 0-0",
    "1 ||| il est là 각 Đà ||| LM0= -8 TM0= -3 ||| -6 ||| 0-0",
    "3 ||| hélas ||| LM0= -8 TM0= -1 ||| -4 ||| 0-0",
    "3 ||| été \u0338 ≠ ||| LM0= -9 TM0= -2 ||| -5 ||| 0-0",
)
SPELLED = {
    "dev.kbest": LINES,
    "dev.ref": ("le café", "elle est là", "où", "hélas"),
    "dev.src": ("Käfig", "schön", "wörtlich", "leider"),
    "a.txt": ("un café", "elle est là", "où", "hélas"),
    "b.txt": ("le café", "il est là", "ou", "été"),
    "p.kbest": [f"0 ||| {x} était ||| LM0= 0 ||| 0" for x in ("he", "she")],
    "p.ref": ("he était",),
    "list.fairseq": [f"H-{t}\t-1\t{x}\nP-{t}\t-1" for t, x in enumerate(("là", "où"))],
    "list.jsonl": ['{"source": "schön", "candidates": [{"text": "là", "score": 1, "x": 2}]}'],
}
COMMON = "--kbest dev.kbest --docs dev.docs"
COMMANDS = {
    "decode": f"decode {COMMON} --weights u.json --kbest-out lists --trace trace",
    "decode-missing": f"decode {COMMON} --weights u.json {SOURCE}",
    "systems": "decode --systems A=a.txt --systems B=b.txt --docs dev.docs --default-weight 0 "
    "--weights consensus.json --kbest-out lists",
    "score": f"score {COMMON} --scorer used=document-cache",
    "score-source": f"score {COMMON} --scorer same=consistency --source dev.src",
    "first": "first --kbest dev.kbest",
    "convert": f"convert {COMMON} --to jsonl",
    "fairseq": "convert --kbest list.fairseq --to moses",
    "json": "convert --kbest list.jsonl --to jsonl --source-out sources",
    "evaluate": "evaluate --docs dev.docs --ref dev.ref --baseline a.txt b.txt --kbest dev.kbest "
    "--format json",
    "check": f"check {COMMON} --ref dev.ref --source dev.src --format json",
    "diversity": "diversity --kbest dev.kbest --format json",
    "pairs": "lm-eval pairs --kbest p.kbest --no-docs one --ref p.ref --out pairs",
}


def spelled(world: World, form: str | None) -> None:
    """Write the texts in this normal form; with None, hypotheses and sources in another one."""
    for name, lines in SPELLED.items():
        own = form or ("NFC" if name in ("dev.ref", "b.txt") else "NFD")
        world.write(name, [normalize(own, line) for line in lines])  # type: ignore[arg-type]


@pytest.fixture
def accents(world: World) -> World:
    world.weights("u.json", {"LM0": 1.0, "TM0": 0.5})
    world.weights("consensus.json", {"consensusbleu": 1.0})
    return world


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_give_what_they_give_for_files_in_normal_form(name: str, accents: World) -> None:
    def outcome(more: str = "") -> tuple[str, dict[str, bytes]]:
        run = accents.ok(f"{COMMANDS[name]} {more}")
        files = {x: y for x, y in accents.files().items() if x not in SPELLED}
        return run.out, {x: re.sub(rb'"run": .*?\]', b"", y) for x, y in files.items()}

    spelled(accents, "NFC")
    truth = outcome()
    for form in (None, "NFD"):
        spelled(accents, form)
        assert outcome("--normalize nfc") == truth
    if name == "first":  # by default every byte stays
        assert outcome()[0].split("\n")[0] == normalize("NFD", "un café")


def test_clean_copies_and_documents_in_python_are_in_it(accents: World) -> None:
    spelled(accents, "NFD")
    Path("clean").mkdir()
    command = COMMANDS["check"].replace("--format json", "--fix clean --normalize nfc")
    assert "6 x line written in Unicode form NFC" in accents.ok(command).out
    for name in ("dev.kbest", "dev.ref", "dev.src"):
        assert accents.lines(f"clean/{name}") == list(SPELLED[name])
    with pytest.warns(rerank.RerankWarning, match="without hypotheses"):
        first, *_ = rerank.read("dev.kbest", "dev.docs", normalize="nfc")
    assert first.texts[0] == ["un café", "le café"]


# Outputs of several systems
OUTPUTS = {
    "A": ("the lamp is lit now", "it gives light", "who knows", "she left us there"),
    "B-1": ("a lamp is lit now", "it gives light", "who could know", "she left us"),
    "C": ("the lamp burns", "it is  light", "who knows", "she went away"),
}
SYSTEMS = "--docs dev.docs " + " ".join(f"--systems {name}={name}.txt" for name in OUTPUTS)


@pytest.fixture
def systems(world: World) -> World:
    for name, lines in OUTPUTS.items():
        world.write(f"{name}.txt", lines)
    world.write("ref", "the lamp is lit now\nit gives light\nwho knows that\nshe left us\n")
    world.weights("votes.json", {"votes": 0.25, "consensusbleu": 0.01, "sysC": 0.5})
    return world


@pytest.mark.parametrize("names", [("系統二", "系統一"), ("Müller", "Möller"), ("b-1", "b1")])
def test_features_of_systems_are_equal_in_any_order(names: tuple[str, str], world: World) -> None:
    """Also consensusdocbleu of c d and of d c, which are as good beside the other sentence."""
    world.write("a", ["c d", "d"])
    world.write("b", ["d c", "d e"])
    world.weights("w.json", {"consensusdocbleu": 1.0})
    systems = [f"--systems {name}={file}" for name, file in zip(names, "ab", strict=True)]
    result = set()
    for order in permutations(systems):
        given = f"--no-docs one {' '.join(order)} --out"
        rows = [line.split(" ||| ") for line in world.ok(f"score {given} -").lines]
        features = [(row[1], *sorted(re.findall(r"\w+= \S+", row[2]))) for row in rows]
        decoded = world.ok(f"decode {given} o --weights w.json --default-weight 0 -v")
        for said in ("consensusdocbleu: approximate", "viterbi, approximate", "exact:approximate"):
            assert said in decoded.err
        result.add((*sorted(features), *world.lines("o")))
    assert len(result) == 1
    assert len({*re.findall(r"sys\w+", str(result))}) == 2


def test_lists_are_decoded_as_of_a_file(systems: World, model_folders: Folders) -> None:
    systems.ok(f"score {SYSTEMS} --out lists")
    systems.write("values", range(10))
    systems.weights("w.json", {"votes": 0.5, "consensusbleu": 0.01, "lm": 1.0, "qe": 0.1})
    more = f"--weights w.json --default-weight 0 --lm lm={model_folders['codclm']} --no-cache "
    more += "--scores qe=values --kbest-out kbest --trace trace --summary s.json"
    result = []
    for given in (SYSTEMS, "--kbest lists --docs dev.docs"):
        out = systems.ok(f"decode {given} {more}").out
        documents = systems.json("s.json")["documents"]
        assert all(("engines" in document) == (given == SYSTEMS) for document in documents)
        apart = [{key: one[key] for key in one if key != "engines"} for one in documents]
        result.append((out, systems.text("kbest"), apart))
        traced = [json.loads(line) for line in systems.lines("trace")]
        names = [
            [name for name, lines in OUTPUTS.items() if " ".join(lines[t].split()) == text]
            for t, text in enumerate(out.splitlines())
        ]
        assert [one.get("systems") for one in traced] == (names if given == SYSTEMS else [None] * 4)
    assert result[0] == result[1]
    systems.ok(f"decode {SYSTEMS} --weights votes.json --default-weight 0 --trace t --out o")
    assert "  systems     " in systems.ok("explain t town:1").out


def test_a_text_that_holds_the_separator_of_moses_is_kept(systems: World) -> None:
    systems.write("B-1.txt", ("a ||| lamp", *OUTPUTS["B-1"][1:]))
    systems.weights("w.json", {"sysB1": 1.0})
    run = systems.ok(f"decode {SYSTEMS} --weights w.json --default-weight 0 --kbest-out kbest")
    first = json.loads(systems.lines("kbest")[0])
    assert run.lines[0] == "a ||| lamp"
    expected = [OUTPUTS["A"][0], "a ||| lamp", OUTPUTS["C"][0]]
    assert [candidate["text"] for candidate in first["candidates"]] == expected


def xml(systems: Mapping[str, tuple[str, ...]]) -> str:
    """WMT XML of the documents, `-` for a segment that a system lacks."""
    parts = ["<dataset>"]
    for name, part in (("x", slice(0, 2)), ("y", slice(2, 4))):
        parts.append(f'<doc id="{name}"><src><seg id="1">s</seg><seg id="2">s</seg></src>')
        for system, lines in systems.items():
            texts = ((n, x) for n, x in enumerate(lines[part], 1) if x != "-")
            segments = (f'<seg id="{n}">{x}</seg>' for n, x in texts)
            parts.append(f'<hyp system="{system}">{"".join(segments)}</hyp>')
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>\n"])


def test_xml_brings_systems_and_documents_and_nothing_is_invented(systems: World) -> None:
    systems.write("t.xml", xml(OUTPUTS))
    assert systems.ok("score --systems t.xml").out == systems.ok(f"score {SYSTEMS}").out
    each = systems.ok("score --no-docs each --systems A=t.xml#A --systems B=t.xml#C").lines
    assert [line.split(" ||| ")[1] for line in each if line[0] == "2"] == ["who knows"]
    systems.write("some", "y\ny\n")
    some = systems.ok("score --systems t.xml --docs some").lines
    assert [line.split(" ||| ")[1] for line in some][:2] == ["who knows", "who could know"]
    systems.write("u.xml", xml({"A": OUTPUTS["A"], "B": ("-", *OUTPUTS["B-1"][1:])}))
    run = systems.ok("score --systems u.xml")
    assert run.lines[0].startswith("0 ||| the lamp is lit now ||| sysA= 1 sysB= 0 votes= 1 ")
    kind = "segment without translation, for which the system has no candidate"
    assert f"1 x {kind}, first at u.xml#B" in run.err
    same = systems.ok("score --docs dev.docs --systems A=A.txt --systems B=A.txt")
    assert (len(same.lines), "there is nothing to rerank" in same.err) == (4, True)


def test_labels_are_of_letters_and_digits_and_all_different(systems: World) -> None:
    systems.write("t.xml", xml({"X-1": OUTPUTS["A"], "X/1": OUTPUTS["C"]}))
    words = ["score", "--systems", "t.xml", "--systems", "é 4=A.txt"]
    expected = ["sysX19cc37f=", "sysX156acec=", "sys43081c5="]
    assert systems.ok(words).lines[0].split(" ||| ")[2].split()[:6:2] == expected
