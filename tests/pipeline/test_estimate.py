"""What is said of the work before it begins."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.files import write
from support.gap import DOCS, LINES

from decoders.table import DECODERS
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Scoring, Search, decode
from rerank.pipeline.estimate import estimate
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists
from rerank.scorers.language_model import LanguageModel


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a list of four sentences, the third without any."""
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", LINES)
    write("dev.docs", DOCS)
    return tmp_path


def estimated(lists: Lists, method: str = "auto") -> list[str]:
    said: list[str] = []
    with KBestSource.open(lists, Notices()) as opened:
        estimate(opened, Search(method), said.append)
    return said


def test_the_estimate_says_how_much_work_there_is(model_folders: Mapping[str, Path]) -> None:
    lms = (("one", model_folders["rnnlm"]), ("two", model_folders["codclm"]))
    (said,) = estimated(Lists("dev.kbest", "dev.docs", lms=lms))
    assert re.fullmatch(
        r"3 documents, 4 sentences, 6 candidates, 14 words; about \d+ s with one, two", said
    )


def test_the_work_ahead_is_not_estimated_where_its_scores_are_in_the_cache(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    lms = (("one", model_folders["rnnlm"]), ("two", model_folders["codclm"]))
    lists = Lists("dev.kbest", "dev.docs", lms=lms, scoring=Scoring(cache=folder / "cache"))
    assert "about" in estimated(lists)[0]
    assert not (folder / "cache").exists()  # what the estimate computes is not kept
    Path("w.json").write_text('{"one": 1, "two": 1}')
    decode(lists, "w.json", "out", default_weight=0.0, notices=Notices())
    assert estimated(lists) == [
        "3 documents, 4 sentences; scores of the first document by one, two need not be computed"
    ]


def test_scores_from_outside_need_not_be_computed_and_are_not_read(
    model_folders: Mapping[str, Path],
) -> None:
    """With a model beside them, zeros stand for them; the file would be found to be wrong."""
    write("dev.pairs", ("x",))
    score_files = {"pair-scores": (("qe", Path("dev.pairs")),)}
    assert estimated(Lists("dev.kbest", "dev.docs", score_files=score_files)) == [
        "3 documents, 4 sentences; scores of the first document by qe need not be computed"
    ]
    lms = (("lm", model_folders["ccdclm"]),)
    (said,) = estimated(Lists("dev.kbest", "dev.docs", lms=lms, score_files=score_files))
    assert re.search(r"about \d+ s with lm, qe$", said)


def test_what_the_estimate_does_is_not_counted(model_folders: Mapping[str, Path]) -> None:
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["rnnlm"]),))
    with KBestSource.open(lists, Notices()) as opened:
        estimate(opened, Search(), lambda line: None)
        (scorer,) = opened.models
        assert isinstance(scorer, LanguageModel)
        assert (scorer.unknown.oov, scorer.unknown.words, scorer.work.nodes) == (0, 0, 0)


def test_the_estimate_reads_infinite_features_as_the_work_does(
    model_folders: Mapping[str, Path],
) -> None:
    write("dev.kbest", tuple(line.replace("LM0= -8", "LM0= -inf") for line in LINES))
    lms = (("lm", model_folders["rnnlm"]),)
    assert estimated(Lists("dev.kbest", "dev.docs", lms=lms, clip_inf=1e4))
    with pytest.raises(InputError, match=r"dev\.kbest:2: .*--clip-inf"):
        estimated(Lists("dev.kbest", "dev.docs", lms=lms))


def test_the_estimate_is_measured_on_a_document_that_has_words(
    model_folders: Mapping[str, Path],
) -> None:
    write("dev.kbest", LINES[4:])
    lists = Lists("dev.kbest", no_docs="one", lms=(("lm", model_folders["codclm"]),))
    assert "2 candidates, 3 words" in estimated(lists)[0]
    write("dev.docs", ("x", "y", "z", "w"))
    assert "2 candidates, 3 words" in estimated(Lists("dev.kbest", "dev.docs", lms=lists.lms))[0]


@pytest.mark.parametrize("model", ["codclm", "ccdclm"])
@pytest.mark.parametrize("method", sorted(DECODERS.keys() - {"viterbi"}))
def test_the_work_of_every_search_is_measured_with_a_scale_or_without(
    model_folders: Mapping[str, Path], method: str, model: str
) -> None:
    """Its size does not depend on the scale, which may come with weights that are not there yet."""
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders[model]),))
    (said,) = estimated(lists, method)
    assert "6 candidates, 14 words; about" in said


@pytest.mark.parametrize(
    ("method", "model", "told"),
    [("viterbi", "ccdclm", "--search viterbi: .*beam"), ("exhaustive", "rnnlm", "10.6|1,000,000")],
)
def test_a_search_that_cannot_serve_is_told_by_the_estimate(
    model_folders: Mapping[str, Path], method: str, model: str, told: str
) -> None:
    write("dev.kbest", tuple(f"{t} ||| w{k} ||| LM0= 0 ||| 0" for t in range(8) for k in range(9)))
    lists = Lists("dev.kbest", no_docs="one", lms=(("lm", model_folders[model]),))
    with pytest.raises(UsageError, match=told):
        estimated(lists, method)
