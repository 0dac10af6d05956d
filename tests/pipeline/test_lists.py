"""Lists, documents and scorers as the options name them; what is refused before any work."""

import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.files import write
from support.gap import DOCS, LINES

from rerank.cli import run
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, StoppedEarly, UsageError
from rerank.files.interrupts import Terminated
from rerank.files.paths import FilePath
from rerank.notices import Notices
from rerank.pipeline import Scoring, sources
from rerank.pipeline import lists as reading_of_lists
from rerank.pipeline.lists import KBestSource, Lists


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a list of four sentences, the third without any."""
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", LINES)
    write("dev.docs", DOCS)
    return tmp_path


def read(lists: Lists, notices: Notices | None = None) -> list[tuple[str, KBest]]:
    with KBestSource.open(lists, notices or Notices()) as opened:
        return [document for batch in opened.batches() for document in batch]


@pytest.mark.parametrize(("name", "label"), [("LM0", "LM0"), ("lm", "lmoov")])
def test_a_model_shares_no_label_with_the_list(
    folder: Path, model_folders: Mapping[str, Path], name: str, label: str
) -> None:
    write("dev.kbest", tuple(line.replace("LM0=", f"{label}=") for line in LINES))
    lists = Lists("dev.kbest", "dev.docs", lms=((name, model_folders["rnnlm"]),))
    with KBestSource.open(lists, Notices()) as opened:
        _, kbest = next(opened.batches())[0]
        told = f"--lm {name}=…: dev.kbest already has a feature '{label}'"
        with pytest.raises(UsageError, match=re.escape(told)):
            opened.space(kbest, total=False)


@pytest.mark.parametrize("option", ["scores", "pair-scores"])
def test_scores_from_outside_share_no_label_with_the_list(folder: Path, option: str) -> None:
    write("dev.qe", ("1",) * len(LINES))
    lists = Lists("dev.kbest", "dev.docs", score_files={option: (("LM0", Path("dev.qe")),)})
    with KBestSource.open(lists, Notices()) as opened:
        _, kbest = next(opened.batches())[0]
        told = f"--{option} LM0=…: dev.kbest already has a feature 'LM0'"
        with pytest.raises(UsageError, match=re.escape(told)):
            opened.space(kbest, total=False)


def test_scorers_come_in_the_order_of_their_features(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    write("dev.qe", ("1",) * len(LINES))
    lists = Lists(
        "dev.kbest",
        "dev.docs",
        lms=(("lm", model_folders["rnnlm"]),),
        score_files={"scores": (("b", Path("dev.qe")), ("a", Path("dev.qe")))},
    )
    with KBestSource.open(lists, Notices()) as opened:
        assert [scorer.name for scorer in opened.scorers] == ["lm", "b", "a"]
        _, kbest = next(opened.batches())[0]
        names = [label.name for label in opened.space(kbest, total=False).labels]
    assert names == ["LM0", "lm", "lmoov", "b", "a"]


def test_scores_on_standard_input_are_copied_and_read_as_often_as_needed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "".join(f"{n}\n" for n in range(len(LINES))).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(content))))
    score_files = {"scores": (("qe", Path("-")),)}
    with KBestSource.open(
        Lists("dev.kbest", "dev.docs", score_files=score_files), Notices()
    ) as opened:
        (scorer,) = opened.score_files
        for _ in range(2):
            (document, *_) = (pair for batch in opened.batches() for pair in batch)
            ((first, _),) = ((s.problem.unary(t) for t in (0, 1)) for s in scorer.score([document]))
            assert first.tolist() == [0, 1, 2]
        assert scorer.report() == "qe: 2 documents from <stdin>"


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


# Standard input, and reading again


def test_standard_input_is_copied_and_read_as_often_as_needed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = gzip.compress(Path("dev.kbest").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with KBestSource.open(Lists("-", no_docs="one"), Notices()) as opened:
        assert opened.file.survey.candidates == len(LINES)
        for _ in range(2):
            (((_, kbest),),) = opened.batches()
            assert (kbest.n, kbest.source) == (len(LINES), "<stdin>")
        copy = opened.file.path
        assert os.path.exists(copy)
    assert not os.path.exists(copy)


def test_the_copy_of_standard_input_goes_after_a_fault_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = sorted(folder.iterdir())
    for text, lists in (("not a list\n", Lists("-", no_docs="one")), ("", Lists("-", "no.docs"))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        with pytest.raises((InputError, UsageError)):
            read(lists)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("together", "abreast", "sizes"),
    [(1, 99, [1, 2]), (3, 99, [1, 2]), (5, 99, [3]), (99, 99, [3]), (99, 3, [1, 2])],
)
def test_documents_come_in_batches_that_fill_the_machine(
    folder: Path,
    model_folders: Mapping[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    together: int,
    abreast: int,
    sizes: list[int],
) -> None:
    """Documents x, y and z have 4, 0 and 2 candidates; those without fill nothing."""
    monkeypatch.setitem(sources.TOGETHER, "cpu", together)
    monkeypatch.setattr(sources, "ABREAST", abreast)
    lms = (("lm", model_folders["rnnlm"]),)
    with KBestSource.open(Lists("dev.kbest", "dev.docs", lms=lms), Notices()) as opened:
        found = list(opened.batches())
    assert [len(batch) for batch in found] == sizes
    assert [name for batch in found for name, _ in batch] == ["x", "y", "z"]


@pytest.mark.parametrize("signal", [KeyboardInterrupt, Terminated])
def test_a_run_that_is_stopped_says_so_if_it_saved_anything(
    folder: Path, model_folders: Mapping[str, Path], signal: type[BaseException]
) -> None:
    lms = (("lm", model_folders["rnnlm"]),)
    lists = Lists("dev.kbest", "dev.docs", lms=lms, scoring=Scoring(cache=folder / "cache"))

    def stopped_after(n: int) -> None:
        with KBestSource.open(lists, Notices()) as opened:
            batch = [pair for batch in opened.batches() for pair in batch if pair[1].n]
            space = opened.space(batch[0][1], total=False)
            opened.prepared(batch[:n], space, {})
            raise signal

    with pytest.raises(signal):
        stopped_after(0)
    with pytest.raises(StoppedEarly, match="in the cache: the same command goes on"):
        stopped_after(1)


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
    read = getattr(reading_of_lists, reading)

    def changing(path: FilePath, *options: Any, **named: Any) -> Any:
        before, content = os.stat(path), Path(path).read_bytes()
        found = read(path, *options, **named)
        found = found if reading == "survey_of" else iter([*found])
        Path(path).write_bytes(rewritten(content))
        if rewritten is other_case:  # its time is restored, so that the digest alone differs
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return found

    monkeypatch.setattr(reading_of_lists, reading, changing)
    Path("w.json").write_text('{"LM0": 1}')
    words = "decode --kbest dev.kbest --no-docs one --weights w.json --out out"
    assert run([*words.split(), "-q"]) == 1
    assert capsys.readouterr().err == (
        "rerank: dev.kbest has changed while it was read; run the command again when no other "
        "program writes the file, or on a copy\n"
    )
    assert not Path("out").exists()
