"""The scorers of a run: their names, what models run on, and where scores are kept."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline.models import Named, Scoring, check_names, open_models
from rerank.registry import SCORE_FILES, attribute
from rerank.scorers.file_scorer import ListInfo
from rerank.scorers.language_model import LanguageModel


def opened(*lms: Named, scoring: Scoring | None = None) -> list[LanguageModel]:
    found = open_models(lms, scoring or Scoring(device="cpu"), None)
    return [model for model in found if isinstance(model, LanguageModel)]


OPTIONS = ("lm", "scores", "pair-scores")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", ["2lm", "l-m", "l_m", "lé", "l m", "lm=", "*", "l\n", "_", ""])
def test_a_scorer_is_called_by_letters_and_digits(option: str, name: str) -> None:
    """Other names are no labels to Moses: with `_` they would be sparse features."""
    with pytest.raises(UsageError, match="letters and digits that begins with a letter"):
        check_names({option: [(name, Path("x"))]})


@pytest.mark.parametrize(
    "given",
    [
        ("lm=lm", "lm=lm"),
        ("lm=lm", "lm=lmoov"),
        ("lm=lmoov", "lm=lm"),
        ("lm=qe", "scores=qe"),
        ("lm=qe", "scores=qeoov"),
        ("scores=scores", "scores=scores"),
        ("scores=a", "pair-scores=a"),
    ],
    ids=" ".join,
)
def test_two_scorers_never_share_a_label(given: tuple[str, str]) -> None:
    options: dict[str, list[Named]] = {}
    for option, _, name in (words.partition("=") for words in given):
        options.setdefault(option, []).append((name, Path("x")))
    (first, _), (second, name) = (words.split("=") for words in given)
    told = f"--{second} {name}=x: the name is taken by another --{first}"
    with pytest.raises(UsageError, match=told):
        check_names(options)


@pytest.mark.parametrize("option", OPTIONS)
def test_no_scorer_is_called_as_the_total(option: str) -> None:
    with pytest.raises(UsageError, match="'total' is the list's total"):
        check_names({option: [("total", Path("x"))]})


def test_the_further_features_of_a_file_are_names_that_are_taken() -> None:
    named = {"ngram": [("a", Path("x"))], "scores": [("aoov", Path("y"))]}
    with pytest.raises(UsageError, match="--scores aoov=y: the name is taken by another --ngram"):
        check_names(named)


def test_names_that_share_no_label_are_accepted() -> None:
    check_names({"lm": [("a", Path("x"))], "scores": [("aoo", Path("y")), ("b", Path("z"))]})


def test_scores_from_outside_are_read_by_the_scorer_of_their_kind(tmp_path: Path) -> None:
    path = tmp_path / "qe"
    path.write_text("1\n")
    given = ListInfo(Documents(("x",), (0, 1)), "dev.kbest", lambda: 1)
    kinds = [SCORE_FILES[option] for option in ("scores", "pair-scores")]
    found = [attribute(kind.scorer)("qe", path, given, Notices()) for kind in kinds]
    assert [(scorer.name, scorer.order) for scorer in found] == [("qe", 0), ("qe", 1)]


def test_scorers_come_in_the_order_of_the_options(model_folders: Mapping[str, Path]) -> None:
    scorers = opened(("b", model_folders["rnnlm"]), ("a", model_folders["codclm"]))
    assert [(scorer.name, scorer.order) for scorer in scorers] == [("b", 0), ("a", 1)]


def test_a_missing_folder_and_one_of_hugging_face_are_refused_with_the_way_to_give_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text('{"model_type": "gpt2"}')
    for name, found in (("gpt2", "none"), ("hf", "a Hugging Face model")):
        with pytest.raises(InputError, match=rf"found {found}; .* --lm NAME=hf:DIR$"):
            opened(("lm", tmp_path / name))


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json.*rerank train-lm"):
        opened(("lm", tmp_path))


def test_the_cache_is_where_it_is_asked_for_or_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Scoring(no_cache=True).open_cache(Notices()) is None
    monkeypatch.setenv("RERANK_CACHE", str(tmp_path / "environment"))
    for given, folder in ((None, tmp_path / "environment"), (tmp_path / "own", tmp_path / "own")):
        cache = Scoring(cache=given).open_cache(Notices())
        assert cache is not None
        assert cache.folder == folder
    with pytest.raises(UsageError, match="exclude each other"):
        Scoring(cache=tmp_path, no_cache=True).open_cache(Notices())
