"""Documents whose lines stand apart: every output is that of sorted files, in the input's order."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.files import read, write, write_weights

from rerank.cli import run
from rerank.corpus.documents import Documents
from rerank.pipeline.input_order import in_source_order

ORDER = (3, 0, 1, 4, 2, 5)  # line i of the mixed files is line ORDER[i] of the sorted ones
DOCS = ("a", "a", "a", "b", "b", "b")
TEXTS = ("the lamp", "it burns", "the lamp burns", "she left", "she went", "who left")
MIXED = "--kbest mixed.kbest --docs mixed.docs"


def hypotheses(line: int, sentence: int) -> list[str]:
    texts = (TEXTS[line], TEXTS[line - 1], TEXTS[line - 2] + " now")
    return [
        f"{sentence} ||| {text} ||| LM0= -{k + line} TM0= {k} ||| -{k}"
        for k, text in enumerate(texts)
    ]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a list of two documents, sorted and with lines that alternate."""
    monkeypatch.chdir(tmp_path)
    for stem, order in (("sorted", range(6)), ("mixed", ORDER)):
        write(f"{stem}.kbest", [x for n, p in enumerate(order) for x in hypotheses(p, n)])
        for name, lines in (("docs", DOCS), ("ref", TEXTS)):
            write(f"{stem}.{name}", [lines[p] for p in order])
    write_weights("w.json", {"LM0": [1.0], "TM0": [1.0], "c": [2.0]})
    write_weights("s.json", {"LM0": [1.0], "TM0": [0.5]})
    return tmp_path


def moved(lines: list[str]) -> list[list[str]]:
    """The lines of each sentence of a list without their ids, in the order of the mixed files."""
    own: dict[int, list[str]] = {}
    for line in lines:
        sentence, rest = line.split(" ", 1)
        own.setdefault(int(sentence), []).append(rest)
    return [own[p] for p in ORDER]


def by_sentence(lines: list[str]) -> list[list[str]]:
    """The lines of each sentence of a list without their ids; the ids must be in order."""
    own: list[list[str]] = []
    for line in lines:
        sentence, rest = line.split(" ", 1)
        if int(sentence) == len(own):
            own.append([])
        own[int(sentence)].append(rest)
    return own


def test_lines_come_out_in_the_order_of_the_source() -> None:
    documents = Documents(("a", "b"), (0, 2, 3), (0, 2, 1), 3)
    file = io.BytesIO()
    with in_source_order(file, documents) as put:
        put([(0, b"0"), (1, b"2"), (1, b"2 again")])
        put([(2, b"1")])
    assert file.getvalue() == b"0\n1\n2\n2 again\n"


def test_a_fault_leaves_interleaved_lines_out() -> None:
    file = io.BytesIO()
    documents = Documents(("a", "b"), (0, 2, 3), (0, 2, 1), 3)
    with pytest.raises(IndexError), in_source_order(file, documents) as put:
        put([(0, b"0"), (3, b"none")])
    assert file.getvalue() == b""


def test_interleaved_documents_are_decoded_as_sorted_ones() -> None:
    options = "--weights w.json --scorer c=document-cache --search beam -q"
    sorted_command = f"decode --kbest sorted.kbest --docs sorted.docs {options}"
    assert run([*sorted_command.split(), "--out", "one", "--kbest-out", "one.kbest"]) == 0
    command = f"decode {MIXED} --allow-interleaved {options}"
    assert run([*command.split(), "--out", "two", "--kbest-out", "two.kbest"]) == 0
    one = read("one")
    assert read("two") == [one[p] for p in ORDER]
    assert by_sentence(read("two.kbest")) == moved(read("one.kbest"))


def test_lists_of_interleaved_documents_are_scored_as_sorted_ones() -> None:
    files, scorer = "--kbest sorted.kbest --docs sorted.docs", "--scorer c=document-cache"
    assert run(f"score {files} {scorer} --out one".split()) == 0
    assert run(f"score {MIXED} --allow-interleaved {scorer} --out two".split()) == 0
    assert by_sentence(read("two")) == moved(read("one"))


def test_converted_lists_and_first_candidates_keep_the_order_of_the_input() -> None:
    assert run(f"first {MIXED} --allow-interleaved --out first -q".split()) == 0
    assert read("first") == [TEXTS[p] for p in ORDER]
    command = f"convert {MIXED} --allow-interleaved --to jsonl --out out --docs-out ids -q"
    assert run(command.split()) == 0
    assert read("ids") == read("mixed.docs")
    found = [json.loads(line) for line in read("out")]
    assert [one["id"] for one in found] == list(range(6))
    assert [one["document"] for one in found] == read("mixed.docs")
    assert run(f"convert {MIXED} --allow-interleaved --to documents --out out -q".split()) == 0
    firsts = [line.split(" ||| ")[1] for line in read("out")]
    groups = [("b", 3, 6), ("a", 0, 3)]  # documents in the order of their first lines
    texts = ["".join(f"{text} \\n " for text in TEXTS[i:j]).strip() for _, i, j in groups]
    assert [first.strip() for first in firsts] == texts


def test_weights_tuned_on_interleaved_documents_are_those_of_sorted_ones() -> None:
    files, start = "--kbest sorted.kbest --docs sorted.docs --ref sorted.ref", "--start s.json -q"
    assert run(f"tune-mert {files} {start} --out one.json".split()) == 0
    files = f"{MIXED} --ref mixed.ref --allow-interleaved"
    assert run(f"tune-mert {files} {start} --out two.json".split()) == 0
    one, two = (json.loads(Path(name).read_text()) for name in ("one.json", "two.json"))
    assert one["provenance"]["bleu"] == two["provenance"]["bleu"]


def test_the_report_of_interleaved_documents_is_that_of_sorted_ones() -> None:
    def reported(stem: str, option: str = "") -> dict[str, Any]:
        files = f"--docs {stem}.docs {option} -q"
        command = f"decode --kbest {stem}.kbest {files} --weights s.json --trace t --out {stem}.out"
        assert run(command.split()) == 0
        write(f"{stem}.scores", [str(len(text)) for text in read(f"{stem}.out")])
        scores = " ".join(f"--scores x={name}:{stem}.scores" for name in ("decoded", "baseline"))
        command = f"report --trace t {files} --ref {stem}.ref --source {stem}.ref {scores}"
        assert run([*command.split(), "--format", "json", "--out", "page.json"]) == 0
        found: dict[str, Any] = json.loads(Path("page.json").read_text())["evaluation"]
        return found

    one, two = reported("sorted"), reported("mixed", "--allow-interleaved")
    assert sorted(map(str, one["documents"])) == sorted(map(str, two["documents"]))
    assert [system["metrics"] for system in one["systems"]] == [
        system["metrics"] for system in two["systems"]
    ]


def test_items_of_interleaved_documents_are_those_of_sorted_ones() -> None:
    write("own", [word for text in TEXTS for word in text.split()])
    options = "--class own --word-list own=own -q"
    files = "--kbest sorted.kbest --docs sorted.docs --ref sorted.ref"
    assert run(f"lm-eval pairs {files} {options} --out one".split()) == 0
    files = f"{MIXED} --ref mixed.ref --allow-interleaved"
    assert run(f"lm-eval pairs {files} {options} --out two".split()) == 0
    assert sorted(read("two")) == sorted(read("one")) != []


def test_diversity_of_interleaved_documents_has_the_ids_of_the_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = "diversity --kbest sorted.kbest --format tsv -q"
    assert run(command.split()) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    figures = [row.partition("\t")[2] for row in rows]
    assert run(f"diversity {MIXED} --allow-interleaved --format tsv -q".split()) == 0
    moved_figures = [f"{n}\t{figures[p]}" for n, p in enumerate(ORDER)]
    assert capsys.readouterr().out.splitlines() == [header, *moved_figures]


def test_check_reads_interleaved_documents() -> None:
    assert run(f"check {MIXED} --ref mixed.ref --allow-interleaved".split()) == 0


@pytest.mark.parametrize(
    "command",
    [
        "decode --weights w.json",
        "convert --to moses",
        "first",
        "check --ref mixed.ref",
        "lm-eval pairs --ref mixed.ref",
    ],
)
def test_without_the_option_interleaved_documents_are_refused_with_it_as_cure(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = "" if command.startswith("check") else " --out out"
    assert run([*command.split(), *MIXED.split(), *out.split()]) == 3
    said = "".join(capsys.readouterr())
    assert "mixed.docs:4: expected each document in one run of lines, but 'b'" in said
    assert "or give --allow-interleaved" in said


def test_a_command_without_the_option_does_not_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    command = "lm-eval pairs --kbest mixed.kbest --docs mixed.docs --ref mixed.ref --lm c=lm"
    run(command.split())
    assert "--allow-interleaved" not in capsys.readouterr().err
