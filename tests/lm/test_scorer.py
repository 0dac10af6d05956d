"""A trie walked against its sentences read one at a time, and sums along its paths by hand."""

import numpy as np
import pytest
import torch

from lm.model import Config, DocumentLM
from lm.scorer import Scorer, along_paths, walk, with_last
from lm.trie import Candidates, build
from lm.vocabulary import END
from lm.zoo import ZOO

LISTS = [[[3, 4, 5], [3, 4], [6]], [[], [3, 7]]]


def scorer_of(name: str) -> Scorer:
    return Scorer.of(DocumentLM.seeded(Config(name, 9, 5, 4), 1))


@pytest.mark.parametrize("name", sorted(ZOO))
@torch.no_grad()
def test_a_walk_gives_the_states_of_every_prefix_in_the_context_of_its_root(name: str) -> None:
    scorer = scorer_of(name)
    model = scorer.model
    contexts = torch.randn(2, model.context.size)
    rows = np.arange(5)
    forest = build(Candidates.of(LISTS), rows, np.repeat([0, 1], [3, 2]), 2)
    walked = walk(scorer, forest, contexts)
    assert len(walked.hidden) == len(forest)
    texts = [(t, words) for t, k_best in enumerate(LISTS) for words in k_best]
    for row, (t, words) in enumerate(texts):
        state = model.start(contexts[t : t + 1], scorer.inputs)
        for word in words:
            state = model.step(state, torch.tensor([word]), scorer.inputs)
        torch.testing.assert_close(walked.hidden[int(forest.end[row])], model.hidden(state)[0])
        torch.testing.assert_close(walked.summary[row], model.summary(state)[0])


@torch.no_grad()
def test_sums_along_paths_are_those_of_the_words_log_probabilities() -> None:
    """In three contexts, whose features are added to the nodes'."""
    candidates = Candidates.of(LISTS)
    forest = build(candidates, np.arange(5), np.zeros(5, dtype=np.int64), 1)
    nodes, shifts = with_last(torch.randn(len(forest), 2), 1.0), with_last(torch.randn(3, 2), 0.0)
    weight = torch.randn(9, 3)
    log_probs = torch.log_softmax((nodes[:, None] + shifts) @ weight.T, dim=2)
    log_z = torch.logsumexp((nodes[:, None] + shifts) @ weight.T, dim=2)
    found = along_paths(forest, nodes, weight, log_z, shifts)
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
    scorer = scorer_of("rnnlm")
    assert scorer.at_work(torch.is_grad_enabled) is False
    assert scorer.work.seconds > 0
