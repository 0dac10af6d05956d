"""Contextual LSTMs from lists to search: all paths scored by scalar code from the paper."""

from itertools import product

import numpy as np
import pytest
from support.lists import kbest
from support.models import enlarged
from support.scalar import models as scalar

from decoders.search import Options, decode
from lm.checkpoint import SavedModel
from lm.model import Config, DocumentLM
from lm.vocabulary import Vocabulary
from rerank.scorers.language_model import LanguageModel

WORDS = ("the", "a", "lamp", "is", "lit", "it", "burns", "no", "one")
LISTS = [
    ["the lamp", "lamp the", "it"],
    ["it", "the lamp", "is the lamp"],
    ["no one", "a lamp is lit", "it burns"],
    ["the lamp burns", "one", "it is"],
]


def saved(name: str) -> SavedModel:
    vocabulary = Vocabulary(tuple(word.encode() for word in WORDS))
    topics = 4 if name in scalar.FEATURES else None
    config = Config(name, len(vocabulary), 6, 8, "peephole", topics_number=topics)
    model = enlarged(DocumentLM.seeded(config, 1)).eval()
    return SavedModel(model, vocabulary, name, {})


def all_paths(own: SavedModel) -> dict[tuple[int, ...], float]:
    ids = [[own.vocabulary.encode(text.encode().split()) for text in texts] for texts in LISTS]
    found = {}
    for path in product(*(range(len(texts)) for texts in LISTS)):
        document = [texts[k] for texts, k in zip(ids, path, strict=True)]
        found[path] = sum(map(sum, scalar.scores(own.model, document)))
    return found


@pytest.mark.parametrize(
    ("name", "order", "method"),
    [
        ("clstm-prevsent", 1, "viterbi"),
        ("clstm-sentseg", 0, "viterbi"),
        ("clstm-prevsent-sentseg", 1, "viterbi"),
        ("clstm-paraseg", None, "beam"),
        ("clstm-sentseg-paraseg", None, "beam"),
        ("clstm-thought", None, "beam"),
        ("hlstm", None, "beam"),
    ],
)
def test_exact_search_finds_the_best_of_all_paths(
    name: str, order: int | None, method: str
) -> None:
    own = saved(name)
    scorer = LanguageModel("lm", own)
    (scored,) = scorer.score([("evening", kbest(LISTS))])
    assert scored.problem.order == scorer.order == order
    found = decode(scored.problem, method, Options(width=3**4 if method == "beam" else None)).paths[
        0
    ]
    truth = all_paths(own)
    best = max(truth, key=lambda path: truth[path])
    assert found.score == pytest.approx(truth[best], abs=1e-3)
    assert found.choices == best
    assert sorted(truth.values())[-2] < truth[best] - 1e-3  # no tie decides


def test_candidates_of_one_topic_are_one_search_state() -> None:
    """Each list is read once for each topic of the list before, not for each candidate."""
    own = saved("clstm-prevsent")
    scorer = LanguageModel("lm", own)
    scorer.score([("evening", kbest(LISTS))])
    encode, key = own.vocabulary.encode, own.model.context.sentence_key
    topics = [
        {key(np.array(encode(text.encode().split()), dtype=np.int32)) for text in texts}
        for texts in LISTS
    ]
    assert len(topics[0]) < len(LISTS[0])  # the lamp, and lamp the
    nodes = [len({tuple(text.split()[:n]) for text in texts for n in range(9)}) for texts in LISTS]
    shared = len({tuple(text.split()[:n]) for texts in LISTS for text in texts for n in range(9)})
    after = sum(len(t) * n for t, n in zip([{b""}, *topics], nodes, strict=False))
    assert scorer.work.nodes == shared + after
