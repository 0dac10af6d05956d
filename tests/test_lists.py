"""Lists, documents and scorers as the options name them; what is refused before any work."""

import gzip
import io
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rerank.errors import InputError, UsageError
from rerank.kbest import KBest
from rerank.notices import Notices
from rerank.pipeline.lists import Lists, Opened, open_scorers

LINES = (
    "0 ||| the lamp is lit ||| LM0= -9 ||| -4",
    "0 ||| a lamp burns ||| LM0= -8 ||| -5",
    "0 ||| lamp ||| LM0= -7 ||| -6",
    "1 ||| it gives light ||| LM0= -7 ||| -3",
    "3 ||| no one ||| LM0= -8 ||| -4",
    "3 ||| one ||| LM0= -9 ||| -5",
)
DOCS = ("x", "x", "y", "z")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a list of four sentences, the third without any."""
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", LINES)
    write("dev.docs", DOCS)
    return tmp_path


def write(name: str, lines: tuple[str, ...]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read(lists: Lists, notices: Notices | None = None) -> list[tuple[str, KBest]]:
    with Opened(lists, notices or Notices()) as opened:
        return list(opened)


def estimated(lists: Lists, method: str = "auto") -> list[str]:
    said: list[str] = []
    with Opened(lists, Notices()) as opened:
        opened.estimate(method=method, beam=2, announce=said.append)
    return said


# Names of models


@pytest.mark.parametrize("name", ["2lm", "l-m", "l_m", "lé", "l m", "lm=", "*", "l\n", "_"])
def test_a_model_is_called_by_letters_and_digits(name: str, tmp_path: Path) -> None:
    """Other names are no labels to Moses: with `_` they would be sparse features."""
    with pytest.raises(UsageError, match="letters and digits that begins with a letter"):
        open_scorers(Lists("dev.kbest", lms=((name, tmp_path),)))


@pytest.mark.parametrize("names", [("lm", "lm"), ("lm", "lmoov"), ("lmoov", "lm")], ids="-".join)
def test_two_models_never_share_a_label(
    names: tuple[str, str], model_folders: Mapping[str, Path]
) -> None:
    lms = tuple((name, model_folders["rnnlm"]) for name in names)
    with pytest.raises(UsageError, match=f"--lm {names[1]}=.*taken by another --lm"):
        open_scorers(Lists("dev.kbest", lms=lms))


def test_no_model_is_called_as_the_total(model_folders: Mapping[str, Path]) -> None:
    with pytest.raises(UsageError, match="'total' is the list's total"):
        open_scorers(Lists("dev.kbest", lms=(("total", model_folders["rnnlm"]),)))


@pytest.mark.parametrize(("name", "label"), [("LM0", "LM0"), ("lm", "lmoov")])
def test_a_model_shares_no_label_with_the_list(
    folder: Path, model_folders: Mapping[str, Path], name: str, label: str
) -> None:
    write("dev.kbest", tuple(line.replace("LM0=", f"{label}=") for line in LINES))
    lists = Lists("dev.kbest", "dev.docs", lms=((name, model_folders["rnnlm"]),))
    with Opened(lists, Notices()) as opened:
        _, kbest = next(iter(opened))
        told = f"--lm {name}=…: dev.kbest already has a feature '{label}'"
        with pytest.raises(UsageError, match=re.escape(told)):
            opened.space(kbest, total=False)


def test_scorers_come_in_the_order_of_the_options(model_folders: Mapping[str, Path]) -> None:
    lms = (("b", model_folders["rnnlm"]), ("a", model_folders["codclm"]))
    scorers = open_scorers(Lists("dev.kbest", lms=lms))
    assert [(scorer.name, scorer.order) for scorer in scorers] == [("b", 0), ("a", 1)]


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json.*rerank train-lm"):
        open_scorers(Lists("dev.kbest", lms=(("lm", tmp_path),)))


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
    with Opened(Lists("-", no_docs="one"), Notices()) as opened:
        assert opened.survey.lines == len(LINES)
        for _ in range(2):
            ((_, kbest),) = list(opened)
            assert (kbest.n, kbest.source) == (len(LINES), "<stdin>")
        copy = opened.path
        assert copy.exists()
    assert not copy.exists()


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


# Figures and the estimate


@pytest.mark.parametrize(("top", "figures"), [(None, (6, 14)), (2, (5, 13)), (1, (3, 9))])
def test_the_survey_counts_what_is_kept(
    folder: Path, top: int | None, figures: tuple[int, int]
) -> None:
    with Opened(Lists("dev.kbest", "dev.docs", top=top), Notices()) as opened:
        survey = opened.survey
        kept = [(row, kbest) for _, kbest in opened for row in range(kbest.n)]
    assert (survey.lines, survey.words) == figures
    assert figures == (len(kept), sum(len(kbest.tokens(row)) for row, kbest in kept))
    assert survey.last_id == 3


def test_the_estimate_says_how_much_work_there_is(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    lms = (("one", model_folders["rnnlm"]), ("two", model_folders["ccdclm"]))
    (said,) = estimated(Lists("dev.kbest", "dev.docs", lms=lms))
    assert re.fullmatch(
        r"3 documents, 4 sentences, 6 candidates, 14 words; about \d+ s with one, two", said
    )


def test_a_list_without_the_columns_of_one_is_refused(folder: Path) -> None:
    write("dev.kbest", ("", "the lamp is lit"))
    with pytest.raises(InputError, match=r"dev\.kbest:2: expected 'id \|\|\| text"):
        read(Lists("dev.kbest", no_docs="each"))


def test_words_of_the_estimate_are_not_counted_twice(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["rnnlm"]),))
    with Opened(lists, Notices()) as opened:
        opened.estimate(method="auto", beam=2, announce=lambda line: None)
        assert (opened.scorers[0].oov, opened.scorers[0].words) == (0, 0)


def test_the_estimate_reads_infinite_features_as_the_work_does(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    write("dev.kbest", tuple(line.replace("LM0= -8", "LM0= -inf") for line in LINES))
    lms = (("lm", model_folders["rnnlm"]),)
    assert estimated(Lists("dev.kbest", "dev.docs", lms=lms, clip_inf=1e4))
    with pytest.raises(InputError, match=r"dev\.kbest:2: .*--clip-inf"):
        estimated(Lists("dev.kbest", "dev.docs", lms=lms))


def test_the_estimate_is_measured_on_a_document_that_has_words(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    write("dev.kbest", LINES[4:])
    lists = Lists("dev.kbest", no_docs="one", lms=(("lm", model_folders["codclm"]),))
    assert "2 candidates, 3 words" in estimated(lists)[0]
    write("dev.docs", ("x", "y", "z", "w"))
    assert "2 candidates, 3 words" in estimated(Lists("dev.kbest", "dev.docs", lms=lists.lms))[0]


@pytest.mark.parametrize(
    ("method", "model", "told"),
    [("viterbi", "ccdclm", "--search viterbi: .*beam"), ("exhaustive", "rnnlm", "10.6|1,000,000")],
)
def test_a_search_that_cannot_serve_is_told_by_the_estimate(
    folder: Path, model_folders: Mapping[str, Path], method: str, model: str, told: str
) -> None:
    write("dev.kbest", tuple(f"{t} ||| w{k} ||| LM0= 0 ||| 0" for t in range(8) for k in range(9)))
    lists = Lists("dev.kbest", no_docs="one", lms=(("lm", model_folders[model]),))
    with pytest.raises(UsageError, match=told):
        estimated(lists, method)


def test_a_model_of_other_words_is_told_with_the_share_that_it_does_not_know(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    """It did not know a quarter of its training text: more than twice that and 0.01 is told."""
    notices = Notices()
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["rnnlm"]),))
    with Opened(lists, notices) as opened:
        opened.scorers[0].oov, opened.scorers[0].words = 51, 100
        opened.warn_of_unknown_words()
        assert notices.lines() == []
        opened.scorers[0].oov = 52
        opened.warn_of_unknown_words()
    (told,) = notices.lines()
    assert told.startswith("52 x word unknown to lm (52.0% of the list's words, 25.0% of its")
