"""`score`: the order of its features, and options that need weights or do not go with them."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.files import read, write_weights
from support.gap import write_lists

from decoders.search import Options
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, Search, score

WEIGHTS = {"LM0": 0.5, "lm": 1.5, "lmoov": -0.5}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with lists and weights."""
    monkeypatch.chdir(tmp_path)
    write_lists()
    write_weights("w.json", WEIGHTS)
    return tmp_path


def test_several_models_are_appended_in_the_order_of_the_options(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    lms = (("b", model_folders["rnnlm"]), ("a", model_folders["hrnnlm"]))
    score(Lists("dev.kbest", "dev.docs", lms=lms), "out.scored", notices=Notices())
    for line in read("out.scored"):
        labels = [token for token in line.split(" ||| ")[2].split() if token.endswith("=")]
        assert labels[-4:] == ["b=", "boov=", "a=", "aoov="]


def test_score_without_a_model_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="at least one --lm NAME=DIR"):
        score(Lists("dev.kbest", "dev.docs"), "out.scored", notices=Notices())


@pytest.mark.parametrize(
    "search", [Search("viterbi"), Search(options=Options(width=3))], ids=["name", "width"]
)
def test_score_searches_only_with_weights(
    folder: Path, model_folders: Mapping[str, Path], search: Search
) -> None:
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["codclm"]),))
    for given in ({"search": search}, {"default_weight": 0.0}):
        with pytest.raises(UsageError, match=r"--search, its options and .* with --weights; give"):
            score(lists, "out.scored", notices=Notices(), **given)


def test_score_takes_a_weight_for_features_that_the_file_lacks(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    """As the message of the fault says."""
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["codclm"]),))
    write_weights("w.json", {name: value for name, value in WEIGHTS.items() if name != "lm"})
    with pytest.raises(InputError, match=r"found none for 'lm'.* or --default-weight 0"):
        score(lists, "out.scored", weights="w.json", notices=Notices())
    score(lists, "out.scored", weights="w.json", default_weight=0.0, notices=Notices())
    zero = read("out.scored")
    write_weights("w.json", {**WEIGHTS, "lm": 0.0})
    score(lists, "out.scored", weights="w.json", notices=Notices())
    assert read("out.scored") == zero


def test_score_refuses_a_search_that_does_not_serve(
    folder: Path, model_folders: Mapping[str, Path]
) -> None:
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["ccdclm"]),))
    with pytest.raises(UsageError, match=r"--search viterbi: .*beam"):
        score(lists, "out.scored", weights="w.json", search=Search("viterbi"), notices=Notices())
