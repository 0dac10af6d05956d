"""`rerank convert` and `rerank first`, from file to file."""

import gzip
import json
import random
from pathlib import Path

import pytest
from support.files import read, write, write_weights

from rerank.cli import run

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "fixtures"
MOSES = (
    "0 ||| the lamp  |||  LM0= -9.5 TM0= -1 -2  ||| -9.50 ||| 0-0 1-1 ",
    "0 ||| a lamp burns |||  LM0= -8.25 TM0= -1 -3 tag_a= 1 ||| -8.250 ||| 0-0 ",
    "2 ||| it &apos;s light  |||  LM0= -7 TM0= 1e-3 +4 ||| -7 ||| ",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("m.nbest", MOSES)
    write("m.docs", ["x", "x", "y"])
    return tmp_path


def convert(words: str) -> list[str]:
    """The lines of the file `out` after a conversion."""
    assert run(["convert", *words.split(), "--out", "out", "-q"]) == 0
    return read("out")


def test_a_moses_list_that_stays_one_keeps_every_byte() -> None:
    assert convert("--kbest m.nbest --to moses") == list(MOSES)
    assert convert("--kbest m.nbest --to moses --escape none") == [
        line.replace("&apos;", "'") for line in MOSES
    ]


def test_a_list_of_marian_becomes_one_that_moses_reads_and_keeps_its_alignments() -> None:
    write("marian", ["0 ||| a b ||| 0-0 1-1 ||| WordScores= -1 -2 ||| F0=-0.5 F1= 2 ||| -0.25"])
    moses = ["0 ||| a b ||| F0= -0.5 F1= 2 ||| -0.25 ||| 0-0 1-1"]
    assert convert("--kbest marian --to moses") == moses
    (line,) = convert("--kbest marian --to jsonl")
    (candidate,) = json.loads(line)["candidates"]
    assert (candidate["alignment"], candidate["word_scores"]) == ("0-0 1-1", "-1 -2")
    Path("out").rename("lists.jsonl")
    assert convert("--kbest lists.jsonl --to jsonl") == [line]
    assert convert("--kbest lists.jsonl --to moses") == moses


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
@pytest.mark.parametrize("name", ["moses-oldstyle-europarl", "moses-extractor.1"])
def test_real_lists_keep_every_byte(name: str) -> None:
    with gzip.open(DATA / f"{name}.nbest.gz", "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    assert convert(f"--kbest {DATA / name}.nbest.gz --to moses") == lines
    assert len(convert(f"--kbest {DATA / name}.nbest.gz --to jsonl")) == 1 + int(
        lines[-1].split("|")[0]
    )
    Path("out").rename("lists.jsonl")
    fields = [line.split("|||")[1].strip() for line in convert("--kbest lists.jsonl --to moses")]
    assert fields == [line.split("|||")[1].strip() for line in lines]


def test_json_lines_have_the_documents_and_come_back() -> None:
    found = [*map(json.loads, convert("--kbest m.nbest --docs m.docs --to jsonl"))]
    assert [(one["id"], one["document"], len(one["candidates"])) for one in found] == [
        (0, "x", 2),
        (1, "x", 0),
        (2, "y", 1),
    ]
    Path("out").rename("m.jsonl")
    back = convert("--kbest m.jsonl --to moses --docs-out docs")
    assert read("docs") == ["x", "x", "y"]
    assert back[1] == "0 ||| a lamp burns ||| LM0= -8.25 TM0= -1 -3 tag_a= 1 ||| -8.25 ||| 0-0"
    assert convert("--kbest m.jsonl --to jsonl") == read("m.jsonl")


def test_sources_of_a_list_are_written_beside() -> None:
    write("f.out", ["S-0\tdie lampe", "H-0\t-1\tthe lamp", "P-0\t-1 -1"])
    (line,) = convert("--kbest f.out --to moses --source-out src")
    assert line.startswith("0 ||| the lamp ||| logprob= -1.386294361119890")
    assert read("src") == ["die lampe"]


def test_first_candidates_are_lines() -> None:
    assert run(["first", "--kbest", "m.nbest", "--out", "out", "-q"]) == 0
    assert read("out") == ["the lamp", "", "it &apos;s light"]
    assert convert("--kbest m.nbest --to first --escape none") == ["the lamp", "", "it 's light"]


def test_documents_are_lines() -> None:
    assert convert("--kbest m.nbest --docs m.docs --to documents --n-best 2") == [
        r"0 ||| a lamp burns \n \n  ||| LM0= -8.25 TM0= -1 -3 tag_a= 1 ||| -8.25",
        r"0 ||| the lamp \n \n  ||| LM0= -9.5 TM0= -1 -2 ||| -9.5",
        r"1 ||| it &apos;s light \n  ||| LM0= -7 TM0= 0.001 4 ||| -7",
    ]


JSON = (
    '{"document": "x", "candidates": [{"text": "a lamp burns all night", "features": {"lp": -1}}, '
    '{"text": "the lamp burns all night", "features": {"lp": -2}}]}',
    '{"document": "y", "candidates": [{"text": "it gives light to us", "features": {"lp": -1}}]}',
)
CHOSEN = ["the lamp burns all night", "it gives light to us"]


def test_decoding_and_tuning_take_the_documents_of_the_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("j.jsonl", JSON)
    write("j.ref", CHOSEN)
    write_weights("w.json", {"lp": -1})
    words = "--kbest j.jsonl --weights w.json --kbest-out kept.jsonl --out out"
    assert run(["decode", *words.split()]) == 0
    assert "2 documents" in capsys.readouterr().err
    assert read("out") == CHOSEN
    assert [json.loads(line)["document"] for line in read("kept.jsonl")] == ["x", "y"]
    tune = "tune-mert --kbest j.jsonl --ref j.ref --out v.json -q"
    assert run([*tune.split(), "--starts", "1"]) == 0
    assert json.loads(Path("v.json").read_text(encoding="utf-8"))["weights"]["lp"][0] < 0
    capsys.readouterr()
    write("j.ref", CHOSEN[:1])
    assert run(tune.split()) == 3
    assert "expected 2 lines as j.jsonl has, found 1" in capsys.readouterr().err


def test_a_list_in_which_a_document_comes_back_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("j.jsonl", [*JSON, JSON[0]])
    assert run(["convert", "--kbest", "j.jsonl", "--to", "moses", "--out", "out", "-q"]) == 3
    assert "expected each document in one run of lines" in capsys.readouterr().err


def test_scores_of_other_tools_go_to_the_hypotheses_in_the_order_of_the_file() -> None:
    write("f.out", ["H-1\t-1\ta", "P-1\t-1", "H-0\t-1\tb", "P-0\t-1"])
    write("qe", ["10", "20"])
    words = "score --kbest f.out --no-docs each --scores qe=qe --out out -q"
    assert run(words.split()) == 0
    assert [(line.split()[2], line.split("qe= ")[1].split()[0]) for line in read("out")] == [
        ("b", "20"),
        ("a", "10"),
    ]


def test_flat_text_is_named_with_its_scores() -> None:
    write("t", ["a", "b ||| c"])
    write("s", ["1 2", "3 4"])
    words = "--kbest t --kbest-format flat:2 --kbest-scores s --to moses --escape moses"
    assert convert(words) == [
        "0 ||| a ||| F0= 1 F1= 2",
        "0 ||| b &#124;&#124;&#124; c ||| F0= 3 F1= 4",
    ]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--kbest t --to moses", 3, "looks like plain text"),
        ("--kbest t --kbest-format flat --to moses", 2, "expected flat:K"),
        ("--kbest t --kbest-format flat:0 --to moses", 2, "expected a number of lines"),
        ("--kbest t --kbest-format flta:2 --to moses", 2, "did you mean flat"),
        ("--kbest t --kbest-format moses:2 --to moses", 2, "moses takes no number"),
        ("--kbest t --kbest-format portage:2 --to moses", 2, "--kbest-scores FILE"),
        ("--kbest m.nbest --kbest-scores t --to moses", 2, "flat:K"),
        ("--kbest t --kbest-format flat:2 --to moses", 3, "give --escape moses"),
        ("--kbest m.nbest --to documents", 2, "--no-docs one"),
        ("--kbest m.nbest --to moses --n-best 2", 2, "--n-best: only --to documents"),
        ("--kbest m.nbest --to moses --docs-out d", 2, "no document ids"),
        ("--kbest m.nbest --to moses --source-out d", 2, "no sources"),
        ("--kbest sgm --to moses", 3, "SGML or XML"),
        ("--kbest dat --to moses", 3, "tune-moses"),
        ("--kbest lm.arpa --to moses", 3, "--ngram"),
        ("--kbest x.json --to moses", 3, "no list of candidates"),
    ],
)
def test_what_cannot_be_converted_is_said_in_a_line_and_nothing_is_written(
    words: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("t", ["a", "b ||| c"])
    write("sgm", ['<srcset setid="s">'])
    write("dat", ["FEATURES_TXT_BEGIN_0 0 1 1 A_0 "])
    write("lm.arpa", ["\\data\\"])
    write("x.json", ['{"a": 1}'])
    assert run(["convert", *words.split(), "--out", "out", "-q"]) == code
    found = capsys.readouterr().err
    assert message in found
    assert found.count("\n") == 1
    assert not Path("out").exists()


def test_a_damaged_file_is_refused_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes of every format, changed at random, end as a list or as one line."""
    examples = {
        "fairseq": "S-0\tx\nH-0\t-1\ta b\nD-0\t-1\ta b\nP-0\t-1 -1\n",
        "sockeye": '{"translation": "a", "score": 1, "sentence_id": 1}\n',
        "jsonl": '{"candidates": [{"text": "a", "score": -1, "features": {"x": 1}}]}\n',
        "cdec": "0 ||| a ||| LM=1 P_0=2 ||| 3\n0 ||| b ||| LM=1 ||| 3\n",
        "joshua": "0 ||| a ||| lm_0=1 ||| 3\n",
        "travatar": "0 ||| a ||| 3 ||| lm=1 x=2\n",
        "mlm-scoring": '{"u": {"ref": "a", "hyp_1": {"score": 1, "text": "a"}}}\n',
        "mbr-nmt": "NC=1\na\n",
    }
    generator = random.Random(1)
    for name, text in examples.items():
        for _ in range(25):
            content = bytearray(text.encode() * 2)
            for _ in range(generator.randint(1, 4)):
                content[generator.randrange(len(content))] = generator.choice(b'\t|{}[]"0x-=: \n,e')
            Path("bad").write_bytes(content)
            words = ["convert", "--kbest", "bad", "--kbest-format", name, "--to", "jsonl"]
            code = run([*words, "--out", "out", "-q"])
            found = capsys.readouterr().err
            assert code in (0, 2, 3), (name, bytes(content), found)
            assert "internal error" not in found
            assert found.count("\n") == (code != 0)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)], ids=["in order", "interleaved"])
def test_long_documents_are_converted_in_pieces(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], order: tuple[int, ...]
) -> None:
    write("m.nbest", [f"{t} ||| text {t} ||| F= {t} ||| {t}" for t in order for _ in range(2)])
    write("m.docs", ["x", "x", "x"])
    whole = convert("--kbest m.nbest --docs m.docs --to jsonl")
    assert [json.loads(line)["document"] for line in whole] == ["x"] * 3
    checking = ["check", "--kbest", "m.nbest", "--docs", "m.docs", "--ref", "m.docs"]
    run(checking)
    summary, found = capsys.readouterr().out.split("warning", 1)
    monkeypatch.setattr("rerank.pipeline.kbest_file.PIECE", 1)
    assert convert("--kbest m.nbest --docs m.docs --to jsonl") == whole
    capsys.readouterr()
    run(checking)
    again, findings = capsys.readouterr().out.split("warning", 1)
    assert again == summary
    assert ("duplicate" in findings, "duplicate" in found) == (True, True)
