"""A trie read against its sentences read one at a time, and sums along its paths by hand."""

import numpy as np
import pytest
import torch
from support.models import config_of, without_padding

from lm.backend import Backend
from lm.engine import ScoringEngine
from lm.heads import LinearPredictor
from lm.model import DocumentLM
from lm.rows import Rows
from lm.tiny_models import context_after, read_by_words
from lm.trie import Candidates, build
from lm.vocabulary import END
from lm.zoo import ZOO

LISTS = [[[3, 4, 5], [3, 4], [6]], [[], [3, 7]]]


def engine_of(name: str) -> ScoringEngine:
    return ScoringEngine.of(DocumentLM.seeded(config_of(name, 9, 5, 4), 1))


@pytest.mark.parametrize("name", sorted(ZOO))
@torch.no_grad()
def test_a_trie_gives_the_states_of_every_prefix_in_the_context_of_its_root(name: str) -> None:
    engine = engine_of(name)
    model = engine.model
    contexts = [context_after(model, [[3, 5]] * n) for n in range(2)]
    forest = build(Candidates.of(LISTS), np.arange(5), np.repeat([0, 1], [3, 2]), 2)
    found = engine.read(forest, Rows.cat(contexts))
    assert len(found.hidden) == len(forest)
    summary = model.context.summary(found)
    texts = [(t, words) for t, k_best in enumerate(LISTS) for words in k_best]
    for row, (t, words) in enumerate(texts):
        truth = read_by_words(model, words, contexts[t])
        torch.testing.assert_close(found.hidden[int(forest.end[row])], truth.hidden[-1])
        ours = summary.take(slice(row, row + 1))
        own = model.context.summary(truth)
        torch.testing.assert_close(without_padding(ours), without_padding(own))


@torch.no_grad()
def test_sums_along_paths_are_those_of_the_words_log_probabilities() -> None:
    """In three contexts, whose features are added to the nodes'."""
    forest = build(Candidates.of(LISTS), np.arange(5), np.zeros(5, dtype=np.int64), 1)
    predictor = LinearPredictor(torch.randn(9, 3), Backend())
    pair = predictor.pair(torch.randn(len(forest), 2), torch.randn(3, 2))
    log_probs = torch.log_softmax((pair[0][:, None] + pair[1]) @ predictor.weight.T, dim=2)
    ((log_z, _),) = predictor.pair_normalisers([pair])
    terms = predictor.pair_log_probs(pair, log_z, *forest.edges(log_z.device))
    found = forest.sums(*terms)
    for row, words in enumerate(words for k_best in LISTS for words in k_best):
        node, way = int(forest.end[row]), []
        while node:
            way.append((int(forest.parent[node]), int(forest.token[node])))
            node = int(forest.parent[node])
        assert [token for _, token in reversed(way)] == words
        steps = [*way, (int(forest.end[row]), END)]
        expected = sum(log_probs[parent, :, token] for parent, token in steps)
        np.testing.assert_allclose(found[row], torch.as_tensor(expected).numpy(), atol=1e-5)


def test_the_time_at_work_is_counted() -> None:
    engine = engine_of("rnnlm")
    assert engine.timed(torch.is_grad_enabled) is False
    assert engine.counts.seconds > 0
