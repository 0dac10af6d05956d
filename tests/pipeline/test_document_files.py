"""Commands on lists whose documents, and references, come in any of the formats."""

import re
from pathlib import Path

import pytest

from rerank.cli import run

LINES = (
    "0 ||| the lamp is lit ||| LM0= -9.5 ||| -9.5",
    "0 ||| a lamp burns ||| LM0= -8.25 ||| -8.25",
    "1 ||| it gives light ||| LM0= -7 ||| -7",
    "2 ||| she left ||| LM0= -3 ||| -3",
    "2 ||| she has left ||| LM0= -2 ||| -2",
)
TEXTS = {"x": ["the lamp is lit", "it gives light"], "y": ["she has left"]}
DOCS = {
    "ids": "x\nx\ny\n",
    "field": "1 x\n2 x\n1 y\n",
    "sizes": "x 2\ny 1\n",
    "spans": "x 0 2\ny 2 3\n",
    "blank": "a b\nc d\n\ne f\n",
    "jsonl": '{"doc": "x"}\n{"doc": "x"}\n{"doc": "y"}\n',
    "sgml": '<refset refid="r">\n'
    + "".join(
        f'<doc docid="{name}">'
        + "".join(f'<seg id="{n}">{text}</seg>\n' for n, text in enumerate(texts, 1))
        + "</doc>\n"
        for name, texts in TEXTS.items()
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("kbest").write_text("".join(f"{line}\n" for line in LINES))
    Path("w.json").write_text('{"schema": 1, "weights": {"LM0": [1.0]}}\n')
    for name, content in DOCS.items():
        Path(name).write_text(content)
    return tmp_path


@pytest.mark.parametrize("name", DOCS)
def test_decode_has_the_documents_of_any_format(name: str, here: Path) -> None:
    field = ["--docs-field", "2"] if name == "field" else []
    command = f"decode --kbest kbest --docs {name} --weights w.json --out out --trace t.jsonl -q"
    assert run([*command.split(), *field]) == 0
    assert Path("out").read_text() == "a lamp burns\nit gives light\nshe has left\n"
    ids = [line.split('"document": "')[1][0] for line in Path("t.jsonl").read_text().splitlines()]
    assert ids == (["1", "1", "2"] if name == "blank" else ["x", "x", "y"])


def test_tuning_takes_references_and_documents_from_one_file(here: Path) -> None:
    Path("ref").write_text("".join(f"{line}\n" for lines in TEXTS.values() for line in lines))
    common = "tune-mert --kbest kbest --starts 2 -q --out"
    assert run([*common.split(), "plain.json", "--docs", "ids", "--ref", "ref"]) == 0
    assert run([*common.split(), "sgml.json", "--ref", "sgml#r"]) == 0
    plain, sgml = (Path(f"{name}.json").read_text() for name in ("plain", "sgml"))
    assert plain.split('"provenance"')[0] == sgml.split('"provenance"')[0]


@pytest.mark.parametrize(
    ("docs", "message"),
    [
        ("x 2\ny 0\n", "kbest:4: expected ids of 2 source lines, found id 2"),
        ("<dataset>\n<doc", "docs:2: expected valid XML"),
        ("<!DOCTYPE a>\n<dataset/>", "docs:1: .*entities are not allowed"),
    ],
)
def test_faults_of_documents_are_bad_input(
    docs: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("docs").write_text(docs)
    command = "decode --kbest kbest --docs docs --weights w.json --out out -q"
    assert run(command.split()) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error)
    assert not Path("out").exists()


NUMBERS = "if these numbers are sizes of documents, give --docs-format sizes"
NAMES = (
    "if these are ids and sizes of documents, give each document an id of its own, and "
    "--docs-format sizes"
)


@pytest.mark.parametrize(
    ("docs", "message", "cure"),
    [
        ("2\n1\n", "expected {} 2 ", NUMBERS),
        ("1\n1\n", "expected {} 2 ", NUMBERS),
        ("2\n1\n2\n", "docs:3: expected each document in one run of lines, but '2'", NUMBERS),
        ("x 2\nx 1\n", "expected {} 2 ", NAMES),
        ("x 2\ny 1\nx 2\n", "docs:3: expected each document in one run of lines, but", NAMES),
    ],
    ids=["numbers", "equal numbers", "a number that resumes", "equal names", "a name that resumes"],
)
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("decode --kbest kbest --weights w.json --out out", "ids of"),
        ("convert --kbest kbest --to first --out out", "ids of"),
        ("tune-mert --kbest kbest --ref ref --out out.json", ""),
        ("evaluate --ref ref --baseline ref ref", ""),
        ("export r=ref --out out", ""),
    ],
    ids=lambda value: value.split()[0] if value else "",
)
def test_ids_that_may_be_sizes_name_the_format(
    command: str,
    expected: str,
    docs: str,
    message: str,
    cure: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("docs").write_text(docs)
    Path("ref").write_text("a\nb\nc\n")
    assert run([*command.split(), "--docs", "docs"]) == 3
    (said,) = (line for line in capsys.readouterr().err.splitlines() if "expected" in line)
    assert message.format(expected).replace("  ", " ") in said
    assert cure in said


def test_lines_that_stand_apart_may_be_sizes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("docs").write_text("2\n1\n2\n1\n")
    Path("text").write_text("a\n" * 6)
    command = "evaluate --ref text --baseline text text --docs docs --allow-interleaved"
    assert run(command.split()) == 3
    assert f"text: expected 4 lines as docs has, found 6; {NUMBERS}" in capsys.readouterr().err
    assert run([*command.split(), "--docs-format", "sizes"]) == 0
