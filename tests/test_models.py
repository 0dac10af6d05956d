"""The language models of a run: their names, what they run on, what is said of them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline.models import Scoring, open_scorers, warn_of_unknown_words, work_of
from rerank.scorers.language_model import LanguageModel


def opened(*lms: tuple[str, Path], scoring: Scoring | None = None) -> list[LanguageModel]:
    return open_scorers(lms, scoring or Scoring(device="cpu"), None)


@pytest.mark.parametrize("name", ["2lm", "l-m", "l_m", "lé", "l m", "lm=", "*", "l\n", "_"])
def test_a_model_is_called_by_letters_and_digits(name: str, tmp_path: Path) -> None:
    """Other names are no labels to Moses: with `_` they would be sparse features."""
    with pytest.raises(UsageError, match="letters and digits that begins with a letter"):
        opened((name, tmp_path))


@pytest.mark.parametrize("names", [("lm", "lm"), ("lm", "lmoov"), ("lmoov", "lm")], ids="-".join)
def test_two_models_never_share_a_label(
    names: tuple[str, str], model_folders: Mapping[str, Path]
) -> None:
    with pytest.raises(UsageError, match=f"--lm {names[1]}=.*taken by another --lm"):
        opened(*((name, model_folders["rnnlm"]) for name in names))


def test_no_model_is_called_as_the_total(model_folders: Mapping[str, Path]) -> None:
    with pytest.raises(UsageError, match="'total' is the list's total"):
        opened(("total", model_folders["rnnlm"]))


def test_scorers_come_in_the_order_of_the_options(model_folders: Mapping[str, Path]) -> None:
    scorers = opened(("b", model_folders["rnnlm"]), ("a", model_folders["codclm"]))
    assert [(scorer.name, scorer.order) for scorer in scorers] == [("b", 0), ("a", 1)]


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


def test_a_model_of_other_words_is_told_with_the_share_that_it_does_not_know(
    model_folders: Mapping[str, Path],
) -> None:
    """It did not know a quarter of its training text: more than twice that and 0.01 is told."""
    notices = Notices()
    scorers = opened(("lm", model_folders["rnnlm"]))
    scorers[0].oov, scorers[0].words = 51, 100
    warn_of_unknown_words(scorers, "dev.kbest", notices)
    assert notices.lines() == []
    scorers[0].oov = 52
    warn_of_unknown_words(scorers, "dev.kbest", notices)
    (told,) = notices.lines()
    assert told.startswith("52 x word unknown to lm (52.0% of the list's words, 25.0% of its")
    assert "dev.kbest" in told


def test_what_a_model_did_is_told_in_a_line(model_folders: Mapping[str, Path]) -> None:
    (scorer,) = opened(("lm", model_folders["codclm"]))
    assert work_of(scorer) == "lm: nothing to score"
    scorer.remembered = 3
    work = scorer.work
    work.seconds, work.tokens, work.nodes = 1.26, 26_000, 10_000
    work.normalisers, work.recomputed = 10_000, 25
    assert work_of(scorer) == (
        "lm: 3 documents from the cache, 26,000 tokens read as 10,000 trie nodes (2.60 a node) "
        "in 1.3 s, 10,000 normalisers of pairs, 0.25% of them formed twice"
    )
