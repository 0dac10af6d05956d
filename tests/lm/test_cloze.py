"""Missing words: eq. 12 of Wang & Cho 2015 against sentences scored one by one."""

import numpy as np
import pytest

from lm.backend import HELD
from lm.cloze import answer_log_probs
from lm.engine import ScoringEngine
from lm.tiny_models import last_score, tiny_model
from lm.zoo import ZOO

DOCUMENT, LEFT, RIGHT = [[3, 4], [5, 6, 3]], [7], [8, 4]
ANSWERS = range(3, 10)


@pytest.mark.parametrize("held", [1, 1 << 25])
@pytest.mark.parametrize("name", ["rlm", "rlm-bow-lf-2", "rlm-seqbow-att-ef-1", "ccdclm"])
def test_an_answer_is_as_probable_as_its_completed_query(
    name: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HELD, "cpu", held)  # one answer at a time, or all
    model = tiny_model(ZOO[name])
    found = answer_log_probs(ScoringEngine.of(model), DOCUMENT, (LEFT, RIGHT), ANSWERS)
    joint = [last_score(model, [*DOCUMENT, [*LEFT, word, *RIGHT]]) for word in ANSWERS]
    expected = np.exp(joint) / np.exp(joint).sum()
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-4)


@pytest.mark.parametrize("query", [(LEFT, []), ([], RIGHT), ([], [])])
def test_the_missing_word_may_be_the_first_the_last_or_the_only_one(
    query: tuple[list[int], list[int]],
) -> None:
    model = tiny_model(ZOO["rlm-bow-ef-1"])
    found = answer_log_probs(ScoringEngine.of(model), DOCUMENT, query, [4, 9])
    scores = [last_score(model, [*DOCUMENT, [*query[0], word, *query[1]]]) for word in (4, 9)]
    assert found[1] - found[0] == pytest.approx(scores[1] - scores[0], abs=1e-4)
    assert np.exp(found).sum() == pytest.approx(1)


def test_words_on_both_sides_and_sentences_before_decide() -> None:
    engine = ScoringEngine.of(tiny_model(ZOO["rlm-bow-lf-1"]))
    base = answer_log_probs(engine, DOCUMENT, (LEFT, RIGHT), ANSWERS)
    for document, query in (
        (DOCUMENT, ([9], RIGHT)),
        (DOCUMENT, (LEFT, [8, 3])),
        ([[3, 4], [9]], (LEFT, RIGHT)),
    ):
        other = answer_log_probs(engine, document, query, ANSWERS)
        assert np.abs(other - base).max() > 1e-3
    same = answer_log_probs(engine, [[9], [5, 3, 6]], (LEFT, RIGHT), ANSWERS)
    np.testing.assert_allclose(same, base, atol=1e-5)
