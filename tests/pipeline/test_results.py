"""Results of documents and of a run, as text and as JSON."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from support.lists import kbest_of_sizes

from decoders.problem import Path
from decoders.result import SearchResult
from rerank.corpus.kbest import KBest
from rerank.files.outputs import to_json
from rerank.pipeline.results import CorpusResult, DocumentResult, finite, ranks


def kbest(top: int | None = None) -> KBest:
    """Four sentences of three, no, one and four candidates."""
    return kbest_of_sizes((3, 0, 1, 4), top=top)


FOUND = SearchResult(
    (Path((2, 0, 3), -2.0), Path((2, 0, 1), -2.5)),
    decoder="smc",
    baseline_score=-3.5,
    best_score=-1.5,
    optimal=True,
    log_normaliser=-7.25,
    margins=(0.5, math.inf, -0.25),
    near_ties=1,
)
ONE = DocumentResult("x", FOUND, ((2, None, 0, 3), (2, None, 0, 1)))
TWO = DocumentResult(
    "y",
    SearchResult(
        (Path((0, 1), -1.0),),
        decoder="beam",
        exact=True,
        baseline_score=-1.0,
        best_score=-1.0,
        near_ties=2,
    ),
    ((0, 1),),
)


def test_sentences_without_candidates_have_no_choice() -> None:
    assert ranks(kbest(), (2, 0, 3)) == (2, None, 0, 3)
    assert ranks(kbest(), (0, 0, 0)) == (0, None, 0, 0)


def test_a_choice_among_kept_candidates_is_given_as_its_place_in_the_file() -> None:
    lists = kbest(top=2)
    lists.ranks[:] = [0, 2, 0, 1, 3]  # as a diverse choice of two might have kept them
    assert ranks(lists, (1, 0, 1)) == (2, None, 0, 3)


def test_a_document_says_what_was_found_and_what_is_the_best_known() -> None:
    result = DocumentResult.of("x", kbest(), FOUND)
    assert result == ONE
    said = result.to_dict()
    assert said["choices"] == [2, None, 0, 3]
    assert said["further"] == [{"score": -2.5, "choices": [2, None, 0, 1]}]
    assert (said["best"], said["best_score"], said["gap"]) == ("optimum", -1.5, 0.5)
    assert (said["log_normaliser"], said["near_ties"]) == (-7.25, 1)
    assert TWO.to_dict()["best"] == "best known"


def test_margins_stand_beside_the_choices_of_sentences_with_candidates() -> None:
    assert ONE.margins == (0.5, None, math.inf, -0.25)
    known = replace(FOUND, path_margins=(0.5, math.inf, 0.125))
    assert replace(ONE, search=known).margins == (0.5, None, math.inf, 0.125)
    assert TWO.margins == (None, None)  # they were not computed


def test_a_document_without_candidates_is_exact_and_scores_nothing() -> None:
    empty = DocumentResult.of("x", kbest(top=0))
    assert empty.choices == (None,) * 4
    assert (empty.score, empty.exact, empty.search.gap, empty.search.near_ties) == (0, True, 0, 0)


def test_totals_are_sums_over_the_documents() -> None:
    said = CorpusResult((ONE, TWO)).to_dict()
    assert (said["score"], said["baseline_score"], said["best_score"]) == (-3.0, -4.5, -2.5)
    assert (said["gap"], said["sentences"], said["changed"]) == (0.5, 6, 3)
    assert (said["exact"], said["best"], said["near_ties"]) == (False, "best known", 3)


def test_near_ties_that_were_not_counted_of_one_document_are_not_known_of_all() -> None:
    uncounted = DocumentResult("z", replace(FOUND, near_ties=None), ONE.ranks)
    assert CorpusResult((ONE, uncounted)).to_dict()["near_ties"] is None


def test_the_line_for_people_says_how_far_the_best_known_path_is() -> None:
    assert CorpusResult((ONE, TWO), "sig").to_text() == (
        "2 documents, 6 sentences, 3 changed; model score -3.000 (first candidates -4.500, best "
        "known -2.500, gap 0.500); search beam, smc, not exact\nsig"
    )
    optimal = CorpusResult((ONE,)).to_text()
    assert "optimum -1.500, gap 0.500" in optimal
    assert "\n" not in optimal


def test_impossible_paths_are_valid_json_and_have_no_gap_to_one_another() -> None:
    worst = -math.inf
    paths = (Path((0,), worst),)
    search = SearchResult(paths, baseline_score=worst, best_score=worst, optimal=True, near_ties=0)
    impossible = DocumentResult("x", search, ((0,),))
    said = json.loads(to_json(CorpusResult((impossible, ONE)).to_dict()))
    assert said["score"] is said["documents"][0]["score"] is None
    assert said["gap"] == 0.5
    assert "model score -inf" in CorpusResult((impossible,)).to_text()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_json_has_no_number_for_what_is_not_finite(value: float) -> None:
    assert finite(value) is None
    assert finite(np.float64(0.5)) == 0.5
