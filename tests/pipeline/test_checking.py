"""`rerank check`: the summary, which files findings are about, and clean copies."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from support.language_models import trained, with_texts

from rerank.cli import run
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, check
from rerank.registry import ALL_SYSTEMS

LIST = """\
0 ||| the cat ||| LM0= -1 TM0= 2 0 ||| -1
0 ||| a cat ||| LM0= -2 TM0= 2 1 ||| -2
0 ||| the cat ||| LM0= -3 TM0= 2 2 ||| -3
2 ||| he sleeps ||| LM0= -1 TM0= 2 5 ||| -1
2 |||  ||| LM0= -1 TM0= 2 6 ||| -1
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("dev.kbest").write_text(LIST)
    Path("dev.docs").write_text("a\na\nb\n")
    Path("dev.ref").write_text("a cat\nit is small\nhe sleeps\n")
    return tmp_path


def test_the_summary_counts_what_the_lists_hold(here: Path) -> None:
    result = check(Lists("dev.kbest", "dev.docs"))
    assert result.summary is not None
    found = result.summary.to_dict()
    assert (found["sentences"], found["without_candidates"], found["documents"]) == (3, 1, 2)
    assert (found["candidates"], found["duplicates"], found["empty"]) == (5, 1, 1)
    assert found["k"] == {"min": 2, "median": 2.5, "max": 3}
    assert result.summary.lengths == (2, 1)
    assert [(f.name, f.least, f.most, f.constant) for f in result.summary.features] == [
        ("LM0", -3, -1, "no"),
        ("TM0_0", 2, 2, "yes"),
        ("TM0_1", 0, 6, "no"),
    ]


def test_a_feature_that_is_constant_in_each_list_is_named(here: Path) -> None:
    lines = [line.replace("TM0= 2 ", f"TM0= {line[0]} ") for line in LIST.splitlines()]
    Path("dev.kbest").write_text("".join(f"{line}\n" for line in lines))
    result = check(Lists("dev.kbest", "dev.docs"))
    assert result.summary is not None
    assert [f.constant for f in result.summary.features] == ["no", "in each list", "no"]
    assert "TM0_0" in result.to_text()
    assert "in each list" in result.to_text()


def test_figures_do_not_depend_on_how_lists_are_divided_into_documents(here: Path) -> None:
    one = check(Lists("dev.kbest", no_docs="one"), ["dev.ref"]).summary
    each = check(Lists("dev.kbest", no_docs="each"), ["dev.ref"]).summary
    assert one is not None
    assert each is not None
    first, second = one.to_dict(), each.to_dict()
    assert (first.pop("documents"), second.pop("documents")) == (1, 3)
    assert first == second


def test_bleu_of_first_and_best_candidates_is_that_of_sacrebleu(here: Path) -> None:
    references = ["the dog barks in the yard", "it is small", "he sleeps all the day long"]
    texts = [["a dog barks in the yard", "the dog barks in the yard"], ["it is small"], ["no"]]
    lines = [f"{t} ||| {text} ||| A= 1 ||| 1" for t, group in enumerate(texts) for text in group]
    Path("dev.kbest").write_text("".join(f"{line}\n" for line in lines))
    Path("dev.ref").write_text("".join(f"{line}\n" for line in references))
    result = check(Lists("dev.kbest"), ["dev.ref"])
    assert result.summary is not None
    assert result.summary.bleu is not None
    metric = BLEU(tokenize="none")
    first = metric.corpus_score([group[0] for group in texts], [references])
    oracle = metric.corpus_score([group[-1] for group in texts], [references])
    assert result.summary.bleu.first == pytest.approx(first.score, rel=1e-12)
    assert result.summary.bleu.oracle == pytest.approx(oracle.score, rel=1e-12)
    assert result.summary.bleu.signature == str(metric.get_signature())


def test_words_unknown_to_a_model_are_counted_and_many_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_texts(tmp_path, monkeypatch)
    trained()
    Path("dev.kbest").write_text(
        "0 ||| the lamp is lit ||| A= 1 ||| 1\n0 ||| the Lamp glows ||| A= 2 ||| 2\n"
    )
    Path("w.ini").write_text("[weight]\nA= 1\ncodclm= 1\ncodclmoov= -1\n")
    lists = Lists("dev.kbest", no_docs="one", lms=(("codclm", Path("lm")),))
    result = check(lists, weights="w.ini")
    assert result.summary is not None
    (unknown,) = result.summary.unknown
    assert (unknown.words, unknown.oov) == (7, 2)
    assert set(unknown.most_frequent) == {"Lamp", "glows"}
    (finding,) = result.findings.all
    assert finding.message.startswith("word unknown to codclm (28.6% of the list's words")
    assert result.exit_code == 0


def test_without_documents_the_lines_of_the_source_or_reference_count(here: Path) -> None:
    Path("dev.ref").write_text("a cat\nit is small\nhe sleeps\nthe end\n")
    result = check(Lists("dev.kbest"), ["dev.ref"])
    assert result.summary is not None
    assert (result.summary.documents, len(result.summary.k)) == (None, 4)
    assert "unknown; decode and tune-mert need --docs FILE" in result.to_text()
    Path("dev.ref").write_text("a cat\nit is small\nhe sleeps\n\n")
    (finding, *_) = check(Lists("dev.kbest"), ["dev.ref"]).findings.of_level(True)
    assert finding.to_text() == (
        "dev.ref: expected 3 lines as dev.kbest has, found 4; 1 blank line more at the end, "
        "remove it"
    )


def test_documents_come_from_the_list_where_it_has_them(here: Path) -> None:
    Path("dev.jsonl").write_text(
        '{"document": "a", "candidates": [{"text": "x", "score": 1}, {"text": "y", "score": 2}]}\n'
        '{"document": "b", "candidates": [{"text": "z", "score": 1}, {"text": "u", "score": 2}]}\n'
    )
    result = check(Lists("dev.jsonl"))
    assert result.summary is not None
    assert (result.summary.documents, result.summary.lengths) == (2, (1, 1))
    assert result.findings.all == []


def test_all_faults_of_all_files_are_found_in_one_run(here: Path) -> None:
    lines = LIST.replace("LM0= -2", "LM0= nan").replace("2 ||| he", "x ||| he")
    Path("dev.kbest").write_text(f"{lines}2 ||| he slept ||| LM0= -1 ||| -1\n")
    Path("dev.docs").write_text("a\nb\na\n")
    Path("dev.ref").write_text("a cat\n")
    Path("w.ini").write_text("[weight]\nLM0= 1\nTM1= 1 1\n")
    result = check(Lists("dev.kbest", "dev.docs"), ["dev.ref"], weights="w.ini")
    places = [(f.source, *f.lines) for f in result.findings.of_level(True)]
    assert places == [
        ("dev.docs", 3),
        ("dev.ref",),
        ("dev.kbest", 2),
        ("dev.kbest", 4),
        ("dev.kbest", 6),
        ("w.ini",),
    ]
    assert result.exit_code == 3


def test_a_fault_on_many_lines_is_one_finding_with_its_count(here: Path) -> None:
    lines = [f"{t} ||| text {t} ||| A= nan ||| 1\n0 ||| x {t} ||| A= 1 ||| 1" for t in range(500)]
    Path("dev.kbest").write_text("".join(f"{line}\n" for line in lines))
    result = check(Lists("dev.kbest"))
    (finding,) = result.findings.of_level(True)
    assert (finding.count, finding.lines) == (500, [1, 3, 5, 7, 9])
    assert finding.to_text().endswith(" (500 times, next on lines 3, 5, 7, 9, …)")


def test_bytes_of_another_encoding_are_one_finding(here: Path) -> None:
    words = ("café", "rôle", "fête", "naïf")
    lines = "".join(f"{t} ||| {word} ||| A= 1 ||| 1\n" for t, word in enumerate(words))
    Path("dev.kbest").write_text(lines, encoding="latin-1")
    (finding,) = check(Lists("dev.kbest")).findings.of_level(True)
    assert (finding.count, finding.lines) == (4, [1, 2, 3, 4])
    assert "iconv -f WINDOWS-1252 -t UTF-8 (4 times, next on lines 2, 3, 4)" in finding.to_text()


def test_json_has_the_summary_and_every_finding(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("dev.docs").write_text("a\na\nb\nb\n")
    arguments = ["check", "--kbest", "dev.kbest", "--docs", "dev.docs", "--ref", "dev.ref"]
    assert run([*arguments, "--format", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["exit_code"], found["copies"]) == (1, 3, None)
    assert found["summary"]["candidates"] == 5
    faults = [one for one in found["findings"] if one["level"] == "fault"]
    assert [(one["file"], one["count"]) for one in faults] == [("dev.ref", 1)]
    assert {one["level"] for one in found["findings"]} == {"fault", "warning"}


def test_the_list_may_come_from_standard_input(here: Path) -> None:
    program = [sys.executable, "-m", "rerank", "check", "--kbest", "-", "--docs", "dev.docs"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        program, input=LIST.encode(), capture_output=True, check=False, env={"PYTHONPATH": root}
    )
    assert done.returncode == 0
    assert b"<stdin> (moses)" in done.stdout
    assert b"<stdin>:3: duplicate hypothesis, kept; " in done.stdout


# Clean copies


def test_a_clean_copy_keeps_every_byte_that_needs_no_repair(here: Path) -> None:
    lines = LIST.splitlines()
    broken = [f"{lines[3]}  ", "", lines[0].replace("-1", "nan", 1), lines[1], lines[2]]
    Path("dev.kbest").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(broken).encode())
    result = check(Lists("dev.kbest", "dev.docs"), fix="clean.kbest")
    assert Path("clean.kbest").read_text() == f"{lines[1]}\n{lines[2]}\n{lines[3]}  \n"
    assert result.exit_code == 0
    assert result.copies is not None
    assert result.copies.written
    assert result.copies.to_dict()["repairs"] == {
        "clean.kbest": {
            "byte-order mark removed": 1,
            "CRLF line end written as LF": 4,
            "hypothesis that cannot be read left out": 1,
            "blank line left out": 1,
            "line sorted by sentence": 3,
        }
    }
    again = check(Lists("clean.kbest", "dev.docs"))
    assert not any(again.findings.of_level(True))


def test_a_folder_gets_copies_of_all_text_files(here: Path) -> None:
    Path("dev.ref").write_bytes(b"\xef\xbb\xbfa cat\r\nit is small\r\nhe sleeps\r\n\r\n")
    Path("dev.src").write_text("un chat\npetit\nil dort\n")
    Path("dev.kbest.gz").write_bytes(gzip.compress(LIST.encode()) + b"junk")
    Path("clean").mkdir()
    lists = Lists("dev.kbest.gz", "dev.docs", side={"source": "dev.src"})
    result = check(lists, ["dev.ref"], fix="clean")
    assert (result.exit_code, any(result.findings.of_level(True))) == (0, True)
    names = sorted(path.name for path in Path("clean").iterdir())
    assert names == ["dev.docs", "dev.kbest.gz", "dev.ref", "dev.src"]
    assert Path("clean/dev.ref").read_text() == "a cat\nit is small\nhe sleeps\n"
    assert gzip.decompress(Path("clean/dev.kbest.gz").read_bytes()) == LIST.encode()


def test_no_copy_is_written_that_would_have_faults(here: Path) -> None:
    Path("dev.kbest").write_text(LIST.replace("2 ||| he", "7 ||| he"))
    Path("clean.kbest").write_text("old\n")
    result = check(Lists("dev.kbest", "dev.docs"), fix="clean.kbest")
    assert (result.exit_code, Path("clean.kbest").read_text()) == (3, "old\n")
    assert "no clean copy is written, since these faults remain:\n" in result.to_text()
    assert "found id 7, which needs 8" in result.to_text()


def test_a_copy_does_not_replace_its_original(here: Path) -> None:
    with pytest.raises(UsageError, match=r"output dev\.kbest is also the input dev\.kbest"):
        check(Lists("dev.kbest", "dev.docs"), fix="dev.kbest")
    with pytest.raises(UsageError, match="is also the input"):
        check(Lists("dev.kbest", "dev.docs"), fix=here)


def test_a_copy_goes_to_a_file(here: Path) -> None:
    with pytest.raises(UsageError, match="--fix -: the report is on standard output; name a file"):
        check(Lists("dev.kbest", "dev.docs"), fix="-")


def test_more_kinds_of_faults_than_people_read_are_summed_up(here: Path) -> None:
    lines = [f"0 ||| a ||| A= 1 {'x' * n}= 1 ||| 1\n" for n in range(1, 201)]
    Path("dev.kbest").write_text("0 ||| a ||| A= 1 ||| 1\n" + "".join(lines))
    found = list(check(Lists("dev.kbest")).findings.of_level(True))
    assert len(found) == 51
    assert sum(one.count for one in found) == 200
    assert found[-1].message.startswith("further faults of other kinds; mend those above")


def test_a_missing_file_is_an_error_of_usage(here: Path) -> None:
    with pytest.raises(UsageError, match=r"no file dev\.kbes; did you mean dev\.kbest\?"):
        check(Lists("dev.kbes", "dev.docs"))


def test_strict_fails_for_warnings_and_lists_all_of_them(here: Path) -> None:
    result = check(Lists("dev.kbest", "dev.docs"), notices=Notices(strict=True))
    assert result.exit_code == 3
    kinds = {finding.message.partition(";")[0] for finding in result.findings.all}
    assert kinds == {
        "duplicate hypothesis, kept",
        "empty hypothesis",
        "source line without hypotheses (ids 1)",
    }


def test_check_without_a_model_loads_no_torch(here: Path) -> None:
    program = """
import sys
from rerank.cli import run
assert run("check --kbest dev.kbest --docs dev.docs --ref dev.ref".split()) == 0
assert "torch" not in sys.modules"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, env={"PYTHONPATH": root}
    )
    assert done.returncode == 0, done.stderr


def test_an_id_far_beyond_the_list_needs_no_memory(here: Path) -> None:
    Path("dev.kbest").write_text(LIST.replace("2 ||| he", "2000000000 ||| he"))
    result = check(Lists("dev.kbest"))
    assert any("without large gaps" in one.message for one in result.findings.of_level(True))
    assert result.summary is not None
    assert len(result.summary.k) < 100


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
def test_lists_of_other_tools_are_read_on_after_a_fault(
    content: str, lines: list[int], here: Path
) -> None:
    Path("dev.out").write_text(content)
    result = check(Lists("dev.out"))
    found = {line for one in result.findings.of_level(True) for line in one.lines}
    assert sorted(found) == lines


def test_a_fault_of_systems_is_named_once(here: Path) -> None:
    """The file has two no-break spaces, of the reference and of A; the lists have one of them."""
    texts = {
        "src lang='x'": "a",
        "ref lang='y'": "the\u00a0cat",
        "hyp system='A'": "the\u00a0cat",
        "hyp system='B'": "a cat\u200b",
    }
    parts = [
        f"<{start}><p><seg id='1'>{text}</seg>\n</p></{start[:3]}>" for start, text in texts.items()
    ]
    Path("t.xml").write_text(f"<dataset><doc id='d'>{''.join(parts)}</doc></dataset>\n")
    found = check(Lists("", systems=((ALL_SYSTEMS, Path("t.xml")),)), ["t.xml"]).findings.all
    of_spaces = [one for one in found if "space U+" in one.message]
    assert [(one.source, one.lines, one.message[:8], one.count) for one in of_spaces] == [
        ("t.xml", [2], "no-break", 2),
        ("t.xml", [4], "zero-wid", 1),
    ]


def test_lists_of_systems_are_checked_as_they_are_made(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("one").write_text("a cat\nit is small\nhe sleeps\n")
    Path("two").write_text("the cat\nit is small\nhe sleeps\r\n")
    options = ["--docs", "dev.docs", "--ref", "dev.ref"]
    assert run(["check", "--systems", "A=one", "--systems", "B=two", *options]) == 0
    found = capsys.readouterr().out
    assert "hypotheses  4; k min 1, median 1, max 2" in found
    assert "sysA" in found
    assert "two:3: " in found  # its line end
    Path("two").write_text("the cat\n")
    assert run(["check", "--systems", "A=one", "--systems", "B=two", *options]) == 3
    assert "two: expected 3 lines" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--fix out: there is no list of --systems to copy"):
        check(Lists("", "dev.docs", systems=(("A", "one"), ("B", "two"))), fix="out")
    assert run(["check", *options]) == 2
    assert "expected --kbest FILE or --systems" in capsys.readouterr().err
