"""What the engine computes and whose fault it is when it cannot; tries against their prefixes.

Scores against the definition, word by word, are in `tests/agreement/test_models.py`; in smaller
batches in `tests/runs/test_memory.py`.
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.models import config_of, enlarged

from lm.backend import HELD, Backend
from lm.laws import context_after
from lm.model import DocumentLM
from lm.scoring import LogProbError, ScoringEngine, after, independent
from lm.sentences import Rows
from lm.trie import Candidates, Forest, build
from lm.vocabulary import START

V = 23
Lists = list[list[list[int]]]


def model_of(name: str, head: str | None = None, **shape: Any) -> DocumentLM:
    torch.manual_seed(5)
    config = config_of(name, V, 6, 8, **{"tied": True, "head": head, **shape})
    return enlarged(DocumentLM(config)).eval()


@pytest.mark.parametrize(
    ("name", "passes"), [("dclm", 1), ("dclm-two-sentence", 1), ("ccdclm", 5), ("rlm-bow-ef-2", 5)]
)
def test_contexts_that_add_to_the_logits_share_one_pass(name: str, passes: int) -> None:
    engine = ScoringEngine.of(model_of(name))
    contexts = Rows.cat([context_after(engine.model, [[n], [5, n]]) for n in range(3, 8)])
    after(engine, [(Candidates.of([[[3, 4], [3, 5, 6]]]), contexts)])
    assert engine.counts.nodes == 5 * passes  # <s>, 3, 4, 5, 6
    assert engine.counts.seconds > 0
    assert after(engine, []) == []


@pytest.mark.parametrize(
    ("weight", "value", "lists", "place"),
    [
        ("embedding.weight", torch.nan, [[[3]], [[5], [3]]], (1, 0)),
        ("head.bias", torch.inf, [[[3], [5]]], (0, 1)),
    ],
)
def test_a_fault_in_the_scores_names_the_candidate(
    weight: str, value: float, lists: Lists, place: tuple[int, int]
) -> None:
    """NaN and +∞ of word 5; the logits of a self-normalised head may be positive."""
    model = model_of("rnnlm", "self-normalised", tied=False)
    with torch.no_grad():
        model.head.get_parameter("bias")[:] = 100.0
        assert (independent(ScoringEngine.of(model), Candidates.of(lists))[0] > 100).all()
        model.get_parameter(weight)[5] = value
    with pytest.raises(LogProbError) as fault:
        independent(ScoringEngine.of(model), Candidates.of(lists))
    assert (fault.value.list, fault.value.candidate) == place


def test_a_fault_in_a_later_run_of_lists_names_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HELD, "cpu", 1)  # a run for each list
    model = model_of("rnnlm", "self-normalised", tied=False)
    with torch.no_grad():
        model.embedding.weight[5] = torch.nan
    with pytest.raises(LogProbError) as fault:
        independent(ScoringEngine.of(model), Candidates.of([[[3]], [[4], [4, 3]], [[], [3], [5]]]))
    assert (fault.value.list, fault.value.candidate) == (2, 2)


def test_two_threads_that_work_ahead_score_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CUDA, with a run for each list."""
    monkeypatch.setitem(HELD, "cpu", 1)
    rng = np.random.default_rng(2)
    lists = Candidates.of([rng.integers(3, V, (4, t % 3 + 1)).tolist() for t in range(20)])
    model, ahead = model_of("rnnlm"), Backend()
    monkeypatch.setattr(ahead, "overlapped", Backend("cuda").overlapped)
    one, other = ScoringEngine.of(model), ScoringEngine.of(model, ahead)
    for mine, theirs in zip(independent(one, lists), independent(other, lists), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (one.counts.nodes, one.counts.tokens) == (other.counts.nodes, other.counts.tokens)


# Tries against prefixes written out
candidate = st.lists(st.sampled_from([0, 3, 4, 5, 9_999]), max_size=4)


def prefix(forest: Forest, node: int) -> tuple[int, tuple[int, ...]]:
    """What a node stands for: its root, and the words from there."""
    words: list[int] = []
    while forest.parent[node] != node:
        words.append(int(forest.token[node]))
        node = int(forest.parent[node])
    return node, tuple(reversed(words))


@given(st.lists(st.lists(candidate, max_size=5), min_size=1, max_size=4), st.integers(0, 99))
def test_nodes_are_distinct_prefixes_level_by_level(lists: Lists, seed: int) -> None:
    """And sums along paths are those of each candidate's words and its end, −∞ included."""
    roots = np.repeat(np.arange(len(lists)), [len(k_best) for k_best in lists])
    forest = build(Candidates.of(lists), np.arange(len(roots)), roots, len(lists))
    written = [(t, tuple(words)) for t, k_best in enumerate(lists) for words in k_best]
    result = [prefix(forest, node) for node in range(len(forest))]
    expected = {(t, words[:n]) for t, words in written for n in range(len(words) + 1)}
    assert sorted(result) == sorted(expected | {(t, ()) for t in range(len(lists))})
    assert [result[end] for end in forest.end] == written
    assert forest.root.tolist() == [t for t, _ in result]
    assert forest.token[: len(lists)].tolist() == [START] * len(lists)
    assert (forest.levels[:2], forest.levels[-1]) == ((0, len(lists)), len(forest))
    for depth, (start, stop) in enumerate(zip(forest.levels, forest.levels[1:], strict=False)):
        assert {len(words) for _, words in result[start:stop]} == {depth}
        assert (np.diff(forest.parent[start:stop]) >= 0).all()
    rng, n = np.random.default_rng(seed), len(lists)
    into, leave = (-rng.exponential(size=(size, 3)) for size in (len(forest) - n, len(forest)))
    leave[0] = -np.inf
    sums = forest.sums(torch.from_numpy(into.copy()), torch.from_numpy(leave.copy()))
    place = {own: node for node, own in enumerate(result)}
    truth = [
        sum((into[place[t, w[:i]] - n] for i in range(1, len(w) + 1)), leave[place[t, w]])
        for t, w in written
    ]
    np.testing.assert_allclose(sums, np.reshape(truth, sums.shape), rtol=1e-12)
