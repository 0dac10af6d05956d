"""Perplexity under n-gram models: closed form, and sums over documents."""

import math

import pytest
from support.ngrams import TEXT, golden, model_of, scores

from lm.corpus import encode
from lm.ngrams import NGramError
from lm.ngrams.evaluation import perplexity
from lm.ngrams.stupid_backoff import StupidBackoff

DOCUMENTS = ["a b", "d", "", "a b c"]


def test_figures_are_those_of_the_scores_of_the_words() -> None:
    model = golden("pruned.arpa")  # whose scores are in test_model.py
    found = perplexity(
        model, encode([line.encode() for line in ["a b c", "c c b"]], model.vocabulary)
    )
    log10 = -0.25 - 0.125 - 0.1875 - 1.75 - 0.5625 - 0.125
    assert (found.sentences, found.tokens, found.oov) == (2, 6, 0)
    assert found.perplexity_without_eos == pytest.approx(10 ** (-log10 / 6), rel=1e-6)
    assert found.perplexity == pytest.approx(10 ** (-(log10 - 0.25 - 0.3125) / 8), rel=1e-6)
    assert found.documents is None


def test_documents_add_up_and_their_order_does_not_matter() -> None:
    model = golden("pruned.arpa")
    corpus = encode([line.encode() for line in DOCUMENTS], model.vocabulary)
    found = perplexity(model, corpus, per_document=True)
    assert found.documents is not None
    assert [one.oov for one in found.documents] == [1, 0]
    assert sum(one.nats for one in found.documents) == pytest.approx(found.nats, rel=1e-12)
    assert found.documents[1].nats == pytest.approx(-scores(model, ["a b c"]).sum(), rel=1e-12)


def test_stupid_backoff_has_no_perplexity() -> None:
    model = model_of(TEXT, 3, StupidBackoff())
    found = perplexity(model, encode([b"the lamp"], model.vocabulary))
    assert not found.normalised
    assert [*found.as_json()][-1] == "nats_per_token_not_normalised"
    assert "perplexity" not in found.as_json()


def test_a_text_without_probability_is_refused() -> None:
    model = golden("pruned.arpa")
    model.log10_backoffs[:] = -300
    with pytest.raises(NGramError, match="no probability left"):
        perplexity(model, encode([b"d d"], model.vocabulary))
    assert math.isfinite(perplexity(golden("pruned.arpa"), encode([b"d"], model.vocabulary)).nats)
