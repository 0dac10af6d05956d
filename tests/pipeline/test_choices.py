"""What is said of a document's choices, and of all documents' together."""

import json
import math

import numpy as np
import pytest

from decoders.posterior import Posterior
from rerank.corpus.documents import Documents
from rerank.corpus.grouping import documents_of
from rerank.corpus.kbest import KBest
from rerank.files.outputs import to_json
from rerank.formats.moses import read_rows
from rerank.notices import Notices
from rerank.pipeline.choices import Choice, Decoding, finite, ranks
from rerank.pipeline.searching import Searched


def kbest(top: int | None = None) -> KBest:
    """Four sentences of three, no, one and four candidates."""
    lines = (
        f"{t} ||| w{k} ||| LM0= 0 ||| 0".encode()
        for t, size in enumerate((3, 0, 1, 4))
        for k in range(size)
    )
    rows = read_rows(lines, Notices())
    (document,) = documents_of(rows, Documents.one(4), Notices(), top=top)
    return document


def found(log_normaliser: float | None = None, score: float = -2.0) -> Searched:
    none = np.zeros((0, 3), np.intp)
    posterior = None
    if log_normaliser is not None:
        rows = (np.ones(3) / 3, np.ones(1), np.ones(4) / 4)
        posterior = Posterior(rows, log_normaliser, True, none, np.zeros(0))
    return Searched((2, 0, 3), score, -3.5, False, "smc", -1.5, True, posterior)


ONE = Choice("x", -2.0, -3.5, -1.5, True, False, "smc", (2, None, 0, 3), 1)
TWO = Choice("y", -1.0, -1.0, -1.0, False, True, "beam", (0, 1), 2)


def test_sentences_without_candidates_have_no_choice() -> None:
    assert ranks(kbest(), (2, 0, 3)) == (2, None, 0, 3)
    assert ranks(kbest(), (0, 0, 0)) == (0, None, 0, 0)


def test_a_choice_among_kept_candidates_is_told_as_its_place_in_the_file() -> None:
    lists = kbest(top=2)
    lists.ranks[:] = [0, 2, 0, 1, 3]  # as a diverse choice of two might have kept them
    assert ranks(lists, (1, 0, 1)) == (2, None, 0, 3)


def test_a_choice_says_what_was_found_and_what_is_the_best_known() -> None:
    choice = Choice.of("x", kbest(), found(), 1)
    assert choice == ONE
    assert choice.gap == 0.5
    said = choice.to_dict()
    assert said["choices"] == [2, None, 0, 3]
    assert (said["best"], said["best_score"], said["gap"]) == ("optimum", -1.5, 0.5)
    assert TWO.to_dict()["best"] == "best known"


@pytest.mark.parametrize(("log_z", "told"), [(None, None), (-7.25, -7.25), (-math.inf, None)])
def test_the_normaliser_is_that_of_a_search_that_samples(
    log_z: float | None, told: float | None
) -> None:
    said = Choice.of("x", kbest(), found(log_z), None).to_dict()
    assert (said["log_normaliser"], said["near_ties"]) == (told, None)


def test_a_document_without_candidates_is_exact_and_scores_nothing() -> None:
    empty = Choice.empty("x", 2)
    assert empty.choices == (None, None)
    assert (empty.score, empty.gap, empty.exact, empty.near_ties) == (0.0, 0.0, True, 0)


def test_totals_are_sums_over_the_documents() -> None:
    said = Decoding((ONE, TWO)).to_dict()
    assert (said["score"], said["baseline_score"], said["best_score"]) == (-3.0, -4.5, -2.5)
    assert (said["gap"], said["sentences"], said["changed"]) == (0.5, 6, 3)
    assert (said["exact"], said["best"], said["near_ties"]) == (False, "best known", 3)


def test_near_ties_that_were_not_counted_of_one_document_are_not_known_of_all() -> None:
    uncounted = Choice("z", 0.0, 0.0, 0.0, True, True, "beam", (0,))
    assert Decoding((ONE, uncounted)).to_dict()["near_ties"] is None


def test_the_line_for_people_says_how_far_the_best_known_path_is() -> None:
    assert Decoding((ONE, TWO), "sig").to_text() == (
        "2 documents, 6 sentences, 3 changed; model score -3.000 (first candidates -4.500, best "
        "known -2.500, gap 0.500); search beam, smc, not exact\nsig"
    )
    optimal = Decoding((ONE,)).to_text()
    assert "optimum -1.500, gap 0.500" in optimal
    assert "\n" not in optimal


def test_impossible_paths_are_valid_json_and_have_no_gap_to_one_another() -> None:
    impossible = Choice("x", -math.inf, -math.inf, -math.inf, True, True, "viterbi", (0,), 0)
    assert impossible.gap == 0.0
    said = json.loads(to_json(Decoding((impossible, ONE)).to_dict()))
    assert said["score"] is said["documents"][0]["score"] is None
    assert said["gap"] == 0.5
    assert "model score -inf" in Decoding((impossible,)).to_text()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_json_has_no_number_for_what_is_not_finite(value: float) -> None:
    assert finite(value) is None
    assert finite(np.float64(0.5)) == 0.5
