"""The engine of causal transformers against one forward pass in float64 for each candidate."""

from pathlib import Path

import numpy as np
import pytest
from support import causal

from lm.backend import Backend
from lm.causal.engine import CausalContext, CausalEngine
from lm.causal.folder import CausalModel, open_causal_model
from lm.causal.trees import trees_of
from lm.trie import Candidates

RNG = np.random.default_rng(2)
KINDS = ("gpt2", "llama", "qwen2")


def opened(tmp_path: Path, kind: str) -> CausalModel:
    return open_causal_model(causal.save(tmp_path / kind, kind))


def sentences(n: int, longest: int = 6) -> list[list[int]]:
    """Sentences of three different tokens, so that many prefixes are shared."""
    return [RNG.integers(40, 43, RNG.integers(1, longest)).tolist() for _ in range(n)]


def contexts() -> list[CausalContext]:
    """Contexts of up to three sentences, some of them beginnings of others."""
    found = [CausalContext((0,))]
    for n, sentence in enumerate(sentences(9)):
        found.append(found[n // 2].after(sentence))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deterministic", [False, True], ids=["batched", "deterministic"])
def test_scores_are_those_of_single_forward_passes(
    tmp_path: Path, kind: str, deterministic: bool
) -> None:
    model = opened(tmp_path, kind)
    engine = CausalEngine(model, Backend(deterministic=deterministic))
    engine.check()
    lists = [sentences(7), [*sentences(5), []]]
    trees = [trees_of(Candidates.of([own]), most=8) for own in lists]
    requests = [(context, n % 2) for n, context in enumerate(contexts())]
    found = engine.scores([(context, trees[n]) for context, n in requests])
    for (context, n), scores in zip(requests, found, strict=True):
        expected = [causal.obvious(model, context.ids, one) for one in lists[n]]
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    tokens = sum(len(one) for _, n in requests for one in lists[n])
    assert engine.counts.tokens == tokens
    assert 0 < engine.counts.nodes < tokens + sum(len(c.ids) for c, _ in requests)


def test_a_context_that_grows_is_read_from_where_it_ended(tmp_path: Path) -> None:
    engine = CausalEngine(opened(tmp_path, "gpt2"), Backend())
    trees = trees_of(Candidates.of([[[40, 41], [40, 42]]]))
    context = CausalContext((0,)).after([40, 41, 42]).after([43, 44])
    engine.scores([(context, trees)])
    assert engine.counts.nodes == 5 + 2  # all but the last token, then root and prefix
    engine.scores([(context.after([45, 46]), trees)])
    assert engine.counts.nodes == 7 + 2 + 2


def test_stored_contexts_may_be_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = CausalEngine(opened(tmp_path, "llama"), Backend())
    trees = trees_of(Candidates.of([sentences(4)]))
    requests = [(context, trees) for context in contexts()[:5]]
    whole = engine.scores(requests)
    monkeypatch.setattr("lm.causal.engine.STORED", 0)
    again = [engine.scores([request])[0] for request in requests]
    np.testing.assert_allclose(again, whole, atol=1e-5)
    assert len(engine._stored) <= 2  # what the last request needed
    assert engine._size == sum(t.numel() for pairs in engine._stored.values() for t in pairs)


def test_deterministic_scores_do_not_depend_on_what_was_scored_before(tmp_path: Path) -> None:
    model = opened(tmp_path, "llama")
    trees = trees_of(Candidates.of([sentences(6)]))
    own = contexts()
    two, one = CausalContext((0,)).after([40, 41]), CausalContext((0,)).after([40]).after([41])
    own += [two, one.after([42]), two.after([42])]  # of equal tokens
    backend = Backend(deterministic=True)
    together = CausalEngine(model, backend).scores([(context, trees) for context in own])
    for context, expected in zip(own, together, strict=True):
        (alone,) = CausalEngine(model, backend).scores([(context, trees)])
        np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("kind", ["gemma2", "mamba"])
def test_architectures_that_read_a_tree_otherwise_are_refused(tmp_path: Path, kind: str) -> None:
    engine = CausalEngine(opened(tmp_path, kind), Backend())
    with pytest.raises(ValueError, match="scores a prefix tree otherwise than single texts"):
        engine.check()
