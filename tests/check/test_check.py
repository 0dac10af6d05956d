"""`rerank check` finds every fault of the catalogue's rows 1 to 57, and passes sound files.

The same files are given to decode and tune-mert, which end as the catalogue says.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import test_faults as faults
from hypothesis import given, settings
from hypothesis import strategies as st
from support.broken_files import (
    BROKEN,
    CLEAN,
    DOCS,
    FAULT,
    KBEST,
    OTHER_ROWS,
    REF,
    SOUND,
    SOURCE,
    WARNING,
    WEIGHTS,
    Case,
    Change,
    as_fairseq,
    as_jsonl,
    as_moses,
)
from support.cli import start

from rerank.cli import run

ROWS = range(1, 58)
READ = {  # options of `check` that are those of decode and tune-mert
    *("--kbest", "--docs", "--no-docs", "--ref", "--weights", "--first-id", "--max-k", "--top"),
    *("--clip-inf", "--kbest-format", "--kbest-scores", "--encoding", "--encoding-errors"),
    *("--missing", "--source", "--normalize"),
}
CHECK = ["check", "--kbest", KBEST, "--docs", DOCS, "--ref", REF, "--source", SOURCE]
DECODE = ["decode", "--kbest", KBEST, "--docs", DOCS, "--weights", WEIGHTS, "--out", "-"]
TUNE = ["tune-mert", "--kbest", KBEST, "--docs", DOCS, "--ref", REF, "--out", "tuned.ini"]
TUNE += ["--starts", "1", "--start", WEIGHTS]
PLACED = re.compile(r"(\S+?)(:\d+)?: .+")

every_case = pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
every_clean_case = pytest.mark.parametrize("case", CLEAN, ids=lambda case: case.id)


def lay_out(case: Case, folder: Path, patch: pytest.MonkeyPatch) -> None:
    case.lay_out(faults.SOUND, folder)
    patch.chdir(folder)


def checked(case: Case, *options: str) -> int:
    weights = [] if case.decoded is None and WEIGHTS not in case.changes else ["--weights", WEIGHTS]
    if case.row in (35, 42):  # sparse weights are missing, so that totals differ
        weights = []
    return run([*CHECK, *weights, *case.options, *options])


def test_every_row_has_three_cases_or_a_reason_to_have_none() -> None:
    rows = Counter(case.row for case in BROKEN)
    assert set(rows) | set(OTHER_ROWS) == set(ROWS)
    assert not set(rows) & set(OTHER_ROWS)
    assert {row: n for row, n in rows.items() if n < 3} == {}
    assert len({case.id for case in BROKEN}) == len(BROKEN)


@every_case
def test_check_finds_the_fault_with_place_and_cure(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(case, tmp_path, monkeypatch)
    before = faults.listing(tmp_path)
    code = checked(case)
    text, errors = capsys.readouterr()
    assert code == (3 if case.level == FAULT else 0), text
    assert re.search(f"^{case.finding}", text, re.MULTILINE), text
    assert (errors, faults.listing(tmp_path)) == ("", before)
    titles = [one for one in text.splitlines() if re.match(r"\d+ (fault|warning)s?[,:]", one)]
    expected = {FAULT: "fault", WARNING: "warning"}.get(case.level, "")
    assert not expected or any(expected in title for title in titles)
    assert case.level != WARNING or len(titles) == 1


@every_case
def test_strict_makes_faults_of_warnings(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(case, tmp_path, monkeypatch)
    assert checked(case, "--strict") == (0 if case.level == SOUND else 3)


@every_case
def test_decode_and_tune_mert_end_as_the_catalogue_says(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(case, tmp_path, monkeypatch)
    for command, code in ((DECODE, case.decoded), (TUNE, case.tuned)):
        if code is not None:
            before = faults.listing(tmp_path)
            found = run([*command, *case.options])
            message = capsys.readouterr().err
            assert (command[0], found) == (command[0], code), message
            assert "Traceback" not in message
            assert code == 0 or faults.listing(tmp_path) == before


@every_clean_case
def test_sound_files_pass(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(case, tmp_path, monkeypatch)
    assert checked(case, "--strict") == 0
    assert "no faults, no warnings" in capsys.readouterr().out


REPAIRED = {1, 2, 6, 7, 10, 21, 22, 23, 24, 26, 29, 30, 31, 32, 33}  # all lists of these rows


@every_case
def test_a_clean_copy_passes_or_is_not_written(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(case, tmp_path, monkeypatch)
    before = faults.listing(tmp_path)
    Path("clean").mkdir()
    code = checked(case, "--fix", "clean", "-q")
    text = capsys.readouterr().out
    written = {path.name for path in Path("clean").iterdir()}
    if case.row in REPAIRED and set(case.changes) == {KBEST} and "formats tried" not in text:
        assert code == 0, text
    if code:
        assert (code, written) == (3, set())
        assert "no clean copy is written, since these faults remain:\n" in text
        assert faults.listing(tmp_path) == before
        return
    assert written == {KBEST, DOCS, REF, SOURCE}
    for name in written:
        Path(name).write_bytes(Path("clean", name).read_bytes())
    assert checked(case) == 0
    again = capsys.readouterr().out
    assert "fault" not in again.replace("no faults", "")
    assert "--fix" not in again
    if case.level != SOUND and case.row in REPAIRED:
        assert re.search(r"clean copy clean/\S+: \d", text), text


OF_THE_HARNESS = [
    name
    for name in faults.CASES
    if int(name[:2]) in ROWS
    and faults.arguments(name)[0] in ("decode", "tune-mert")
    and not name.startswith(("50-no", "56-control-characters-in-a"))  # options; models
]


@pytest.mark.parametrize("name", OF_THE_HARNESS)
def test_check_refuses_what_other_commands_refuse(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each case of tests/faults about the rows that check reads."""
    faults.lay_out(name, tmp_path, monkeypatch)
    stdin = faults.FAULTS / name / "stdin"
    words, options = faults.arguments(name), ["check"]
    for option, value in zip(words, [*words[1:], ""], strict=True):
        if option in READ:
            options += [option, value]
        elif option in ("--diverse", "--strict"):
            options.append(option)
    with open(stdin if stdin.exists() else os.devnull) as file:
        monkeypatch.setattr(sys, "stdin", file)
        code = run(options)
    text, errors = capsys.readouterr()
    expected = faults.expected(name)[0]
    assert code == expected, text + errors
    for pattern in faults.expected(name)[1]:
        if expected == 3 and not pattern.startswith("!") and "--strict" not in pattern:
            assert re.search(pattern, text), text


@pytest.mark.parametrize("change", [as_moses, as_jsonl, as_fairseq])
def test_50_lists_without_documents_are_summarised_but_not_decoded(
    change: Change,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lay_out(CLEAN[0], tmp_path, monkeypatch)
    Path(KBEST).write_bytes(change(Path(KBEST).read_bytes()))
    assert run(["check", "--kbest", KBEST, "--ref", REF]) == 0
    assert "documents   unknown; decode and tune-mert need --docs FILE" in capsys.readouterr().out
    for command in (DECODE, TUNE):
        assert run([word for word in command if word not in ("--docs", DOCS)]) == 2
        message = capsys.readouterr().err
        assert all(cure in message for cure in ("--docs FILE", "--no-docs each", "--no-docs one"))


def test_19_the_locale_changes_no_byte_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(CLEAN[0], tmp_path, monkeypatch)
    Path(DOCS).write_text("café\na\ncafé\na\n", encoding="utf-8")
    found = []
    for locale in (
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    ):
        program = start(*CHECK, stdout=subprocess.PIPE, env=locale)
        found.append(program.communicate()[0])
        assert program.returncode == 3
    assert found[0] == found[1]
    assert "'café', which began on line 1".encode() in found[0]


PIECES = [b"\n", b"\r", b"|||", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan", b"{", b'"', b"=", b"_"]
PIECES += [b" ", b"\t", b"9" * 12, b"", b"&apos;", b"<s>", b"\xe2\x80\xa8", b"H-9", b"null", b","]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damage_of_any_kind_is_reported_and_mended_or_left(data: st.DataObject) -> None:
    """Bytes at random places: an exit code 0 or 3, no other error, and copies without faults."""
    sound = data.draw(st.sampled_from(CLEAN))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        lay_out(sound, Path(folder), patch)
        for name in data.draw(st.sets(st.sampled_from([KBEST, DOCS, REF, SOURCE]), min_size=1)):
            old = Path(name).read_bytes()
            start, size = data.draw(st.integers(0, len(old))), data.draw(st.integers(0, 9))
            piece = data.draw(st.sampled_from(PIECES))
            Path(name).write_bytes(old[:start] + piece + old[start + size :])
        Path("clean").mkdir()
        patch.setenv("RERANK_TRACEBACK", "1")
        code = checked(sound, "--fix", "clean", "-q")
        assert code in (0, 3)
        assert len(list(Path("clean").iterdir())) == (0 if code else 4)
        if code == 0:
            for path in Path("clean").iterdir():
                Path(path.name).write_bytes(path.read_bytes())
            # without weights, which are not copied: a damaged first line changes the features
            assert run([*CHECK, *sound.options]) == 0
