"""Lists in a file: their documents and figures, and what is refused before any work."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files import write
from support.gap import LINES, read, write_lists

from rerank.cli import run
from rerank.errors import InputError, UsageError
from rerank.files.paths import FilePath
from rerank.notices import Notices
from rerank.pipeline import kbest_file
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a list of four sentences, the third without any."""
    monkeypatch.chdir(tmp_path)
    write_lists()
    return tmp_path


# Documents


def test_each_document_comes_with_its_lists_gaps_included(folder: Path) -> None:
    notices = Notices()
    found = read(Lists("dev.kbest", "dev.docs"), notices)
    assert [(name, kbest.counts.tolist()) for name, kbest in found] == [
        ("x", [3, 1]),
        ("y", [0]),
        ("z", [2]),
    ]
    (told,) = notices.lines()
    assert told == "1 x source line without hypotheses (ids 2), first at dev.kbest"


def test_without_documents_each_line_is_one_or_all_are_one(folder: Path) -> None:
    each, one = (read(Lists("dev.kbest", no_docs=form)) for form in ("each", "one"))
    assert [(name, kbest.n) for name, kbest in each] == [("0", 3), ("1", 1), ("2", 0), ("3", 2)]
    assert [(name, kbest.n) for name, kbest in one] == [("all", 6)]


def test_ids_may_begin_elsewhere(folder: Path) -> None:
    write("dev.kbest", tuple(f"{int(line[0]) + 1}{line[1:]}" for line in LINES))
    for lists in (
        Lists("dev.kbest", "dev.docs", first_id=1),
        Lists("dev.kbest", no_docs="one", first_id=1),
    ):
        assert sum(kbest.n for _, kbest in read(lists)) == len(LINES)


@pytest.mark.parametrize("form", ["each", "one"])
def test_a_first_id_above_all_ids_is_told(folder: Path, form: str) -> None:
    with pytest.raises(InputError, match="expected ids from 7 on, found 0"):
        read(Lists("dev.kbest", no_docs=form, first_id=7))


@pytest.mark.parametrize("form", ["each", "one"])
def test_an_id_far_beyond_the_list_is_refused_before_it_costs_memory(
    folder: Path, form: str
) -> None:
    write("dev.kbest", (*LINES, "2147483647 ||| it ||| LM0= -1 ||| -1"))
    with pytest.raises(InputError, match=r"dev\.kbest: .*found id 2147483647 in a list of 7"):
        read(Lists("dev.kbest", no_docs=form))


def test_an_id_of_too_many_digits_is_refused_where_it_stands(folder: Path) -> None:
    write("dev.kbest", (*LINES, f"{10**30} ||| it ||| LM0= -1 ||| -1"))
    with pytest.raises(InputError, match=r"dev\.kbest:7: expected a sentence id below 2\^31"):
        read(Lists("dev.kbest", no_docs="one"))


@pytest.mark.parametrize(
    "lists",
    [Lists("dev.kbest"), Lists("dev.kbest", "dev.docs", "each")],
    ids=["neither", "both"],
)
def test_documents_are_told_in_one_way(folder: Path, lists: Lists) -> None:
    with pytest.raises(UsageError, match=r"one of --docs FILE .* --no-docs each .* --no-docs one"):
        read(lists)


# Figures


@pytest.mark.parametrize(("top", "figures"), [(None, (6, 14)), (2, (5, 13)), (1, (3, 9))])
def test_the_survey_counts_what_is_kept(
    folder: Path, top: int | None, figures: tuple[int, int]
) -> None:
    with KBestSource.open(Lists("dev.kbest", "dev.docs", top=top), Notices()) as opened:
        survey = opened.file.survey
        kept = [
            (row, kbest)
            for batch in opened.batches()
            for _, kbest in batch
            for row in range(kbest.n)
        ]
    assert (survey.candidates, survey.words) == figures
    assert figures == (len(kept), sum(len(kbest.tokens(row)) for row, kbest in kept))
    assert (survey.last_id, survey.last_line) == (3, 6)


def test_the_last_line_is_the_last_that_is_not_blank(folder: Path) -> None:
    write("dev.kbest", ("", *LINES[:2], "", LINES[3], "", ""))
    with KBestSource.open(Lists("dev.kbest", "dev.docs", top=1), Notices()) as opened:
        assert (opened.file.survey.candidates, opened.file.survey.last_line) == (2, 5)


def test_a_list_without_the_columns_of_one_is_refused(folder: Path) -> None:
    write("dev.kbest", ("", "the lamp is lit"))
    with pytest.raises(InputError, match=r"dev\.kbest:2: expected a k-best list"):
        read(Lists("dev.kbest", no_docs="each"))


# Lists that change


def twice(content: bytes) -> bytes:
    return content + content


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def other_case(content: bytes) -> bytes:
    return content.replace(b"lamp", b"LAMP")


@pytest.mark.parametrize(
    ("reading", "rewritten"),
    [
        *(("survey_of", change) for change in (twice, cut, other_case)),
        *(("read_documents", change) for change in (twice, cut)),
    ],
)
def test_a_list_that_changes_while_it_is_read_ends_the_run_without_an_output(
    rewritten: Callable[[bytes], bytes],
    reading: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without document ids it is read for its ids, and again for its candidates."""
    read = getattr(kbest_file, reading)

    def changing(path: FilePath, *options: Any, **named: Any) -> Any:
        before, content = os.stat(path), Path(path).read_bytes()
        found = read(path, *options, **named)
        found = found if reading == "survey_of" else iter([*found])
        Path(path).write_bytes(rewritten(content))
        if rewritten is other_case:  # its time is restored, so that the digest alone differs
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return found

    monkeypatch.setattr(kbest_file, reading, changing)
    Path("w.json").write_text('{"LM0": 1}')
    words = "decode --kbest dev.kbest --no-docs one --weights w.json --out out"
    assert run([*words.split(), "-q"]) == 1
    assert capsys.readouterr().err == (
        "rerank: dev.kbest has changed while it was read; run the command again when no other "
        "program writes the file, or on a copy\n"
    )
    assert not Path("out").exists()
