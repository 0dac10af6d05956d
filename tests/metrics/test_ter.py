"""TER beside sacrebleu's own corpus score, which is the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.ter import TER

from rerank.metrics.ter import Ter

LINES = st.lists(st.sampled_from(["a", "A", "b", "c", "d", "é", ".", "\xa0"]), max_size=7)
TEXTS = LINES.map(" ".join)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Hypotheses (T,) and references, one list (T,) per reference file, as sacrebleu takes them."""
    n = draw(st.integers(1, 4))
    texts = st.lists(TEXTS, min_size=n, max_size=n)
    return draw(texts), draw(st.lists(texts, min_size=1, max_size=3))


@given(corpora())
def test_the_score_of_a_sum_is_the_negative_of_sacrebleus(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    hypotheses, references = corpus
    rows = Ter().statistics(
        [[line.encode()] for line in hypotheses],
        [[line.encode() for line in lines] for lines in zip(*references, strict=True)],
    )
    truth = TER()._extract_corpus_statistics(hypotheses, references)
    assert rows.tolist() == [list(map(float, row)) for row in truth]
    score = float(Ter().scores(rows.sum(axis=0)))
    # relative: mean lengths of three references are summed in another order
    assert Ter().shown(score) == pytest.approx(TER().corpus_score(*corpus).score, rel=1e-14)


def test_equal_hypotheses_of_a_sentence_have_equal_rows() -> None:
    rows = Ter().statistics([[b"a", b"b", b"a"], [], [b"a"]], [[b"a"], [b"c"], [b"b c", b"b"]])
    assert rows.tolist() == [[0, 1], [1, 1], [0, 1], [1, 1.5]]


def test_larger_is_better_and_shown_as_people_know_it() -> None:
    sums = np.array([[[0.0, 4.0], [1.0, 4.0], [5.0, 4.0]], [[0.0, 0.0], [2.0, 0.0], [3.0, 3.0]]])
    sums.flags.writeable = False
    scores = Ter().scores(sums)
    assert scores.tolist() == [[0, -25, -125], [0, -100, -100]]
    assert not np.signbit(scores[:, 0]).any()
    assert [Ter().shown(score) for score in scores[0].tolist()] == [0, 25, 125]


def test_no_hypotheses_have_no_statistics() -> None:
    assert Ter().statistics([[]], [[b"a"]]).shape == (0, 2)


def test_statistics_must_be_of_the_same_sentences() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        Ter().statistics([[b"a"]], [])
    with pytest.raises(ValueError, match="without a reference"):
        Ter().statistics([[b"a"]], [[]])


def test_signature_is_sacrebleus() -> None:
    truth = TER()
    truth.corpus_score(["a"], [["a"], ["b"]])
    assert Ter().signature(2) == str(truth.get_signature())
