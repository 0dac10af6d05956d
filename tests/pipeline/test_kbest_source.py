"""Scorers of the lists in a file, their batches, and a run that stops."""

import gzip
import io
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.files import write
from support.gap import LINES, read, write_lists

from rerank.errors import InputError, StoppedEarly, UsageError
from rerank.files.interrupts import Terminated
from rerank.notices import Notices
from rerank.pipeline import Scoring, sources
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a list of four sentences, the third without any."""
    monkeypatch.chdir(tmp_path)
    write_lists()
    return tmp_path


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
