"""`convert`, `first`, `diversity` and `export`; and that a list may come from standard input."""

import gzip
import json
import re
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.words import edit_distance
from support.world import ROOT, World

DATA = ROOT.parent / "shared" / "data" / "fixtures"
MOSES = (
    "0 ||| the lamp  |||  LM0= -9.5 TM0= -1 -2  ||| -9.50 ||| 0-0 1-1 ",
    "0 ||| a lamp burns |||  LM0= -8.25 TM0= -1 -3 tag_a= 1 ||| -8.250 ||| 0-0 ",
    "2 ||| it &apos;s light  |||  LM0= -7 TM0= 1e-3 +4 ||| -7 ||| ",
)
in_world = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=15,
)


@pytest.fixture
def here(world: World) -> World:
    world.write("m.nbest", MOSES)
    world.write("m.docs", "x\nx\ny\n")
    return world


def convert(world: World, command: str) -> list[str]:
    return world.ok(f"convert {command} -q").lines


def test_a_moses_list_that_stays_one_keeps_every_byte(here: World) -> None:
    assert convert(here, "--kbest m.nbest --to moses") == list(MOSES)
    plain = [line.replace("&apos;", "'") for line in MOSES]
    assert convert(here, "--kbest m.nbest --to moses --escape none") == plain


@pytest.mark.parametrize(("line", "expected"), [
    (
        "0 ||| a b ||| 0-0 1-1 ||| WordScores= -0.2 -0.1 ||| F0=-0.6 F1= 2 ||| -0.3",
        "0 ||| a b ||| F0= -0.6 F1= 2 ||| -0.3 ||| 0-0 1-1",
    ),
    ("0 ||| a ||| F0=+1E+5 ||| 1", "0 ||| a ||| F0= 1e5 ||| 1"),
    ("0 ||| a ||| F0= -1 WordScores= -1 -2 ||| 1", "0 ||| a ||| F0= -1 ||| 1"),
    ("0|||a|||lm=1|||2|||0-0", "0 ||| a ||| lm= 1 ||| 2 ||| 0-0"),
    ("0 ||| a |||  ||| F0=1 ||| 1", "0 ||| a ||| F0= 1 ||| 1 ||| "),
    ("0 ||| a ||| 0-0 ||| F0=1", "0 ||| a ||| F0= 1"),
    *(
        (line, line)
        for line in (
            "0 ||| a b  ||| LM0= -3 TM0= 1e+06 2 t_x= 1  ||| -1.5 ||| 0=0 1=1 ||| 0-0 1-1 ",
            "0 ||| a ||| LM0= 1",
            "0 ||| a ||| 1 -2 ||| 3",
            "0||| a  ||| lm: -3 tm: 1 2 ||| 1",
        )
    ),
])  # fmt: skip
def test_dialects_are_written_as_moses_writes(line: str, expected: str, world: World) -> None:
    world.write("list", f"{line}\n")
    options = "--kbest-format moses --to moses --out out"
    world.ok(f"convert --kbest list {options}")
    assert world.lines("out") == [expected]
    world.ok(f"convert --kbest out {options.replace('out out', 'out again')}")
    assert world.lines("again") == [expected]


def test_a_line_with_bars_in_its_text_stays_as_it_is(world: World) -> None:
    lines = ["0 ||| a ||| F0= 0 ||| 1", "0 ||| a ||| b ||| F0=1 ||| 2"]
    world.write("list", lines)
    assert convert(world, "--kbest list --to moses") == lines


@pytest.mark.parametrize(("line", "keys"), [
    ("0 ||| a ||| 0-0 1-1 ||| WordScores= -1 -2 ||| F0=-0.5 F1= 2 ||| -0.25",
        {"alignment": "0-0 1-1", "word_scores": "-1 -2"}),
    ("0 ||| a ||| F0= 1 ||| 2 ||| 0=0 1=1 ||| 0-0 1-1",
        {"segmentation": "0=0 1=1", "alignment": "0-0 1-1"}),
    ("0 ||| a ||| F0= -1 WordScores= -1 -2 ||| 1", {"word_scores": "-1 -2"}),
    ("0 ||| a ||| F0= 1 ||| 2 ||| ", {"alignment": ""}),
    ("0 ||| a ||| 0-0 1-1 ||| F0= 1", {"alignment": "0-0 1-1"}),
], ids=["marian", "moses", "word scores among features", "no point", "no total"])  # fmt: skip
def test_other_columns_are_keys_of_json(line: str, keys: dict[str, str], world: World) -> None:
    world.write("list", f"{line}\n")
    world.ok("convert --kbest list --to jsonl --out lists.jsonl")
    (candidate,) = json.loads(world.text("lists.jsonl"))["candidates"]
    assert {k: v for k, v in candidate.items() if k not in ("text", "score", "features")} == keys
    (back,) = convert(world, "--kbest lists.jsonl --to moses")
    columns = [keys[key] for key in ("segmentation", "alignment") if key in keys]
    begin, end = (4, None) if "score" in candidate else (2, -1)
    assert back.split(" ||| ")[begin:end] == columns
    assert convert(world, "--kbest lists.jsonl --to jsonl") == world.lines("lists.jsonl")


def test_columns_that_are_left_out_are_counted(world: World) -> None:
    world.write("list", "0 ||| a ||| F0=1 WordScores= -1 ||| 2\n")
    assert "word scores" in world.ok("convert --kbest list --to moses").err
    world.write("list", "0 ||| a ||| LM0= 1 ||| 2 ||| (S x)\n")
    assert "1 x column" in world.ok("convert --kbest list --to jsonl").err


def test_keys_of_another_tool_are_written_as_they_came(world: World) -> None:
    one = {"text": "a", "score": -1.0, "features": {"lp": -2.0}, "model": "m"}
    world.write("list", json.dumps({"document": "d", "more": [1], "candidates": [one]}) + "\n")
    assert json.loads(world.ok("convert --kbest list --to jsonl").out)["candidates"] == [one]
    world.write("qe", "3\n")
    scored = json.loads(world.ok("score --kbest list --scores qe=qe").out)
    assert scored["candidates"] == [{**one, "features": {"lp": -2.0, "qe": 3.0}}]
    assert scored["document"] == "d"


def test_json_lines_have_the_documents_and_come_back(here: World) -> None:
    here.ok("convert --kbest m.nbest --docs m.docs --to jsonl --out m.jsonl")
    result = [json.loads(line) for line in here.lines("m.jsonl")]
    expected = [(0, "x", 2), (1, "x", 0), (2, "y", 1)]
    assert [(one["id"], one["document"], len(one["candidates"])) for one in result] == expected
    back = convert(here, "--kbest m.jsonl --to moses --docs-out docs")
    assert here.lines("docs") == ["x", "x", "y"]
    assert back[1] == "0 ||| a lamp burns ||| LM0= -8.25 TM0= -1 -3 tag_a= 1 ||| -8.25 ||| 0-0"
    assert convert(here, "--kbest m.jsonl --to jsonl") == here.lines("m.jsonl")


def test_escapes_are_those_of_moses_and_html_and_change_the_text_alone(world: World) -> None:
    from sacremoses import MosesTokenizer

    texts = ["a & b | < > ' \" [ ]", "&amp;lt; &apos;s &bar; &#39;&#x27; &no;", "&#124; x"]
    world.write("list", [f"0 |||  {text}  ||| A= 1 ||| 7 ||| 's" for text in texts[1:]])
    plain = convert(world, "--kbest list --to moses --escape none")
    assert plain[0] == "0 |||  &lt; 's | '' &no;  ||| A= 1 ||| 7 ||| 's"
    world.write("list", json.dumps({"candidates": texts}) + "\n")
    escaped = convert(world, "--kbest list --to moses --escape moses")
    assert escaped[0].split("|||")[1].strip() == MosesTokenizer().escape_xml(texts[0])
    assert escaped[1].split("|||")[1].strip() == "&amp;lt; &apos;s &#124; &apos;&apos; &amp;no;"


def test_lists_of_documents_have_a_separator_after_each_sentence_and_sums(here: World) -> None:
    assert convert(here, "--kbest m.nbest --docs m.docs --to documents --n-best 2") == [
        r"0 ||| a lamp burns \n \n  ||| LM0= -8.25 TM0= -1 -3 tag_a= 1 ||| -8.25",
        r"0 ||| the lamp \n \n  ||| LM0= -9.5 TM0= -1 -2 ||| -9.5",
        r"1 ||| it &apos;s light \n  ||| LM0= -7 TM0= 0.001 4 ||| -7",
    ]
    lines = ("0 ||| a ||| A= -1 t_a= 1 ||| -1", "2 ||| b ||| A= -4 t_a= 2 ||| -2")
    here.write("list", lines)
    command = "--kbest list --no-docs one --to documents"
    assert convert(here, command) == [r"0 ||| a \n \n b \n  ||| A= -5 t_a= 3 ||| -3"]
    here.write("list", [line.rpartition(" |||")[0] for line in lines])
    assert convert(here, command) == [r"0 ||| a \n \n b \n  ||| A= -5 t_a= 3"]


@in_world
@given(
    totals=st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=3), min_size=1, max_size=4),
    n=st.integers(1, 9),
)
def test_the_best_documents_are_best_of_all(totals: list[list[int]], n: int, world: World) -> None:
    rows = [(t, k, total) for t, own in enumerate(totals) for k, total in enumerate(own)]
    world.write("list", [f"{t} ||| w{t}{k} ||| A= {total} ||| {total}" for t, k, total in rows])
    result = convert(world, f"--kbest list --no-docs one --to documents --n-best {n}")
    expected = sorted(map(sum, product(*totals)), reverse=True)[:n]
    assert [float(line.split("||| ")[-1]) for line in result] == expected
    assert len({line.split("|||")[1] for line in result}) == len(result)
    for line in result:
        chosen = re.findall("w(.)(.)", line)
        assert sum(totals[int(t)][int(k)] for t, k in chosen) == float(line.split("||| ")[-1])


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
@pytest.mark.parametrize("name", ["moses-extractor.1", "moses-mert-iteration1"])
def test_real_lists_keep_every_byte_and_every_number(name: str, world: World) -> None:
    with gzip.open(DATA / f"{name}.nbest.gz", "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    assert convert(world, f"--kbest {DATA / name}.nbest.gz --to moses") == lines
    world.ok(f"convert --kbest {DATA / name}.nbest.gz --to jsonl --out lists.jsonl")
    lists = map(json.loads, world.lines("lists.jsonl"))
    found = [(of_list["id"], candidate) for of_list in lists for candidate in of_list["candidates"]]
    for line, (sentence, one) in zip(lines, found, strict=True):
        number, text, features, total = line.split("|||")
        values = [float(token) for token in features.split() if token[-1:] not in ":="]
        own = [v for w in one["features"].values() for v in (w if isinstance(w, list) else [w])]
        assert (sentence, one["text"], own) == (int(number), text.strip(), values)
        assert one["score"] == float(total)


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
def test_a_real_list_of_portage_is_read(world: World) -> None:
    options = f"--kbest-scores {DATA}/portage-hansard.ffvals.gz --encoding cp1252"
    command = f"first --kbest {DATA}/portage-hansard.100best.gz --kbest-format portage:100"
    assert len(world.ok(f"{command} {options}").lines) == 100


def test_long_documents_are_converted_in_pieces(world: World) -> None:
    ids = range(2100)
    world.write("list", [f"{t} ||| text {t} ||| F= {t} ||| {t}" for t in ids])
    world.write("turned", [f"{t} ||| text {t} ||| F= {t} ||| {t}" for t in (1, 0, *ids[2:])])
    for name in ("list", "turned"):
        result = convert(world, f"--kbest {name} --no-docs one --to jsonl")
        rows = [json.loads(line) for line in result]
        expected = [(t, [{"text": f"text {t}", "score": t, "features": {"F": t}}]) for t in ids]
        assert [(row["id"], row["candidates"]) for row in rows] == expected
    assert "1 of 2,100 sentences" in world.ok("check --kbest list --no-docs one").out


# From standard input
PIPED = {
    "first": "",
    "convert --to moses": "",
    "decode --docs dev.docs --weights w.ini": "",
    "score --docs dev.docs --scores lm=scores": "",
    "check --docs dev.docs --ref dev.ref": "check",
    "diversity --docs dev.docs": "check",
    "tune-mert --docs dev.docs --ref dev.ref --starts 1 -q": "weights",
}


@pytest.mark.parametrize("command", PIPED)
def test_a_piped_list_gives_the_bytes_of_a_file(command: str, world: World) -> None:
    world.write("scores", [-n % 5 for n in range(9)])
    out = {"": "--out -", "check": "", "weights": "--out w.json"}[PIPED[command]]
    content = world.content("dev.kbest")
    file = world.ok(f"{command} --kbest dev.kbest {out}")
    stdin = gzip.compress(content) if command == "first" else content
    pipe = world.ok(f"{command} --kbest - {out.replace('w.json', '-')}", stdin=stdin)
    if PIPED[command] == "weights":  # a file that also says what it was made of
        one, other = world.json("w.json"), pipe.json
        assert [one.get(key) for key in ("weights", "alpha")] == [other["weights"], other["alpha"]]
    else:
        assert pipe.out.replace("<stdin>", "dev.kbest") == file.out


def test_copies_of_input_are_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(world.folder / "tmp"))
    (world.folder / "tmp").mkdir()
    for stdin, code in ((world.content("dev.kbest"), 0), (b"no list\n", 3), (b"", 3)):
        assert world.run("first --kbest -", stdin=stdin).exit == code
        assert not list(Path("tmp").iterdir())


# Diversity

Words = list[list[str]]


def write_words(world: World, lists: list[Words]) -> None:
    rows = [(t, " ".join(words)) for t, of_list in enumerate(lists) for words in of_list]
    world.write("list", [f"{t} ||| {text} ||| A= {n} ||| 1" for n, (t, text) in enumerate(rows)])


@pytest.mark.parametrize("n_words", [2, 100])
def test_distances_of_long_candidates_are_those_of_the_table(n_words: int, world: World) -> None:
    """Lengths around 64 and 128, where blocks of the table end."""
    lengths = [0, 1, 62, 63, 64, 65, 127, 128, 129, 200]
    own = [[f"w{(7 * i * i + 3 * n) % n_words}" for i in range(n)] for n in lengths]
    pairs = [[a, b] for a, b in combinations(own, 2)]
    write_words(world, pairs)
    result = [line.split("\t")[3] for line in world.ok("diversity --kbest list --format tsv").lines]
    assert result[1:] == [f"{float(edit_distance(a, b))}" for a, b in pairs]


def test_the_summary_of_diversity_is_of_the_lists_that_have_the_figure(world: World) -> None:
    lists: list[Words] = [[["a", "b", "c"], ["a", "b", "d"], ["a", "b", "c"], ["x", "y"]], [["a"]]]
    write_words(world, lists)
    result = world.ok("diversity --kbest list --format json").json
    # distances 1 0 3 1 3 3 of the first list, which has pairs: shares 1/3 0 1 1/3 1 1
    assert result["mean"] == {
        "candidates": 2.5, "distinct": 2.0, "distance": pytest.approx(11 / 6),
        "relative": pytest.approx((1 / 3 + 0 + 1 + 1 / 3 + 1 + 1) / 6),
    }  # fmt: skip
    text = world.ok("diversity --kbest list").out
    assert "2 lists, 5 candidates, 4 distinct\n" in text
    spread = {row.split()[0]: row.split()[1:] for row in text.splitlines()[2:8]}
    assert list(spread) == ["mean", "least", "10%", "50%", "90%", "most"]
    assert spread["least"][:3] == ["1.0", "1.0", "1.83"]
    assert spread["most"][:3] == ["4.0", "3.0", "1.83"]
    one = world.ok("diversity --kbest list --top 1 --format json").json
    assert one["mean"]["distance"] is None


# Documents as files


def test_each_document_is_a_file_of_each_text(world: World) -> None:
    world.write("dev.docs", "../a\n../a\nb c\nb c\n")
    (world.folder / "out").mkdir()  # an empty folder is fine
    run = world.ok("export ours=hyp.txt ref=dev.ref --docs dev.docs --out out")
    assert "2 documents of 2 texts written to out" in run.err
    files = {name: text for name, text in world.files().items() if name.startswith("out/")}
    texts = {f"out/{side}/000{d}.txt" for side in ("ours", "ref") for d in (1, 2)}
    assert set(files) == {*texts, "out/documents.tsv"}
    assert world.lines("out/ours/0001.txt") == world.lines("hyp.txt")[:2]
    assert world.lines("out/ref/0002.txt") == world.lines("dev.ref")[2:]
    assert world.lines("out/documents.tsv") == ["1\t../a\t2", "2\tb c\t2"]
