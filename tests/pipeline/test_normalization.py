"""`--normalize nfc`: commands give what they give for files that were in NFC before."""

from pathlib import Path
from unicodedata import normalize

import pytest
from support.files import read, write, write_weights

import rerank
from rerank.cli import run
from rerank.notices import Notices
from rerank.pipeline import Lists
from rerank.pipeline.kbest_source import KBestSource

LINES = (
    "0 ||| un café ||| LM0= -9 TM0= -1 ||| -4 ||| 0-0",
    "0 ||| le café ||| LM0= -8 TM0= -2 ||| -5 ||| 0-0",
    "1 ||| elle est là ||| LM0= -7 TM0= -1 ||| -3 ||| 0-0",
    "1 ||| il est là ||| LM0= -8 TM0= -3 ||| -6 ||| 0-0",
    "3 ||| hélas ||| LM0= -8 TM0= -1 ||| -4 ||| 0-0",
    "3 ||| été ||| LM0= -9 TM0= -2 ||| -5 ||| 0-0",
)
TEXTS = {
    "dev.kbest": LINES,
    "dev.ref": ("le café", "elle est là", "où", "hélas"),
    "dev.src": ("Käfig", "schön", "wörtlich", "leider"),
    "a.txt": ("un café", "elle est là", "où", "hélas"),
    "b.txt": ("le café", "il est là", "ou", "été"),
}
COMMON = "--kbest dev.kbest --docs dev.docs"
COMMANDS = {
    "decode": f"decode {COMMON} --weights w.json --out out --kbest-out lists --trace trace",
    "decode-missing": f"decode {COMMON} --weights w.json --out out --missing source "
    "--source dev.src",
    "decode-systems": "decode --systems A=a.txt --systems B=b.txt --docs dev.docs --weights "
    "consensus.json --default-weight 0 --out out --kbest-out lists",
    "score": f"score {COMMON} --scorer used=document-cache --out out",
    "score-source": f"score {COMMON} --scorer same=consistency --source dev.src --out out",
    "first": "first --kbest dev.kbest --out out",
    "convert": f"convert {COMMON} --to jsonl --out out",
    "tune-mert": f"tune-mert {COMMON} --ref dev.ref --starts 1 --start w.json --out out.ini",
    "evaluate": "evaluate --docs dev.docs --ref dev.ref --baseline a.txt b.txt --kbest dev.kbest "
    "--format json",
    "check": f"check {COMMON} --ref dev.ref --source dev.src --format json",
    "diversity": "diversity --kbest dev.kbest --format json",
    "pairs": f"lm-eval pairs {COMMON} --ref dev.ref --word-list w=words --class w --out out",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("dev.docs", ("x", "x", "y", "y"))
    write("words", ("un", "le", "il", "elle"))
    write_weights("w.json", {"LM0": 1.0, "TM0": 0.5})
    write_weights("consensus.json", {"consensusbleu": 1.0})
    return tmp_path


def spelled(form: str | None) -> None:
    """Write the texts in this normal form; with None, hypotheses and sources in another one."""
    for name, lines in TEXTS.items():
        own = form or ("NFC" if name in ("dev.ref", "b.txt") else "NFD")
        write(name, [normalize(own, line) for line in lines])  # type: ignore[arg-type]


def outcome(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, dict[str, bytes]]:
    """Exit code, standard output and files that a command writes."""
    before = {path.name for path in Path().iterdir()}
    code = run([*command.split(), *(["-q"] if "check" not in command else [])])
    captured = capsys.readouterr()
    new = [path for path in sorted(Path().iterdir()) if path.name not in before]
    files = {path.name: path.read_bytes() for path in new}
    for path in new:
        path.unlink()
    assert code == 0, captured.err
    return code, captured.out, files


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_give_what_they_give_for_files_in_normal_form(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spelled("NFC")
    truth = outcome(COMMANDS[name], capsys)
    for form in (None, "NFD", "NFC"):
        spelled(form)
        found = outcome(f"{COMMANDS[name]} --normalize nfc", capsys)
        if name == "tune-mert":  # a weights file names the digests of its inputs
            assert found[1] == truth[1]
            weights, others = (
                [line for line in files["out.ini"].splitlines() if not line.startswith(b"#")]
                for files in (found[2], truth[2])
            )
            assert weights == others
        else:
            assert found == truth


def test_by_default_outputs_have_the_characters_of_the_list() -> None:
    spelled("NFD")
    assert run([*COMMANDS["first"].split(), "-q"]) == 0
    assert read("out")[0] == normalize("NFD", "un café")


def test_the_warning_names_the_option_that_is_its_cure(capsys: pytest.CaptureFixture[str]) -> None:
    spelled(None)
    for name in ("check", "evaluate"):
        words = COMMANDS[name].replace("--format json", "").split()
        assert run(words) == 0
        captured = capsys.readouterr()
        assert "NFC: equal words differ; give --normalize nfc" in captured.out + captured.err
        assert run([*words, "--normalize", "nfc"]) == 0
        captured = capsys.readouterr()
        assert "normal" not in captured.out + captured.err


def test_outputs_of_systems_that_differ_in_form_are_one_candidate() -> None:
    write("a.txt", ["e\u0301te\u0301"])
    write("b.txt", ["été"])
    for more, count in (("", 2), (" --normalize nfc", 1)):
        words = f"score --systems A=a.txt --systems B=b.txt --no-docs one --out out -q{more}"
        assert run(words.split()) == 0
        assert len(read("out")) == count


def test_source_lines_that_scorers_read_are_in_it() -> None:
    spelled("NFD")
    lists = Lists(
        "dev.kbest",
        "dev.docs",
        scorers=(("same", "consistency"),),
        side={"source": "dev.src"},
        normalize="nfc",
    )
    with KBestSource.open(lists, Notices()) as source:
        lines = [line.decode() for _, kbest in source.read() for line in kbest.side["source"]]
    assert lines == list(TEXTS["dev.src"])


def test_sources_of_a_list_are_written_in_it() -> None:
    line = normalize("NFD", '{"source": "schön", "candidates": [{"text": "là", "score": 1}]}')
    write("lists.jsonl", [line])
    words = "convert --kbest lists.jsonl --to jsonl --source-out sources --out out -q"
    assert run([*words.split(), "--normalize", "nfc"]) == 0
    assert read("sources") == ["schön"]
    assert '"source": "schön"' in read("out")[0]


def test_clean_copies_are_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    spelled("NFD")
    write("dev.docs", [normalize("NFD", name) for name in ("é", "é", "y", "y")])
    Path("clean").mkdir()
    words = f"{COMMANDS['check'].replace('--format json', '')} --fix clean --normalize nfc"
    assert run(words.split()) == 0
    assert "6 x line written in Unicode form NFC" in capsys.readouterr().out
    for name in ("dev.kbest", "dev.ref", "dev.src"):
        assert read(f"clean/{name}") == list(TEXTS[name])
    assert read("clean/dev.docs") == read("dev.docs")


def test_lists_that_are_read_in_python_are_in_it() -> None:
    spelled("NFD")
    with pytest.warns(rerank.RerankWarning, match="without hypotheses"):
        first, *_ = rerank.read("dev.kbest", "dev.docs", normalize="nfc")
    assert first.texts[0] == ["un café", "le café"]
