"""The classifier of relations: its probabilities by hand, its optimum, and its folder."""

from pathlib import Path

import pytest
import torch

from lm.discourse import SLOTS, Pair, RelationClassifier, features, fit
from lm.shards import ModelError

PAIRS: list[Pair] = [([b"it", b"is"], [word, b"it"]) for word in (b"but", b"so", b"But", b"and")]
LABELS = [b"Comparison", b"Contingency", b"Comparison", b"none"]


def test_features_depend_on_order_and_not_on_case() -> None:
    assert features(*PAIRS[0]).tolist() == features(*PAIRS[2]).tolist()
    first, second = PAIRS[0]
    assert features(first, second).tolist() != features(second, first).tolist()
    assert len(features([], [])) > 0


def test_probabilities_are_those_of_the_formula() -> None:
    generator = torch.Generator().manual_seed(1)
    weight, bias = (torch.randn(n, 2, generator=generator) for n in (SLOTS, 1))
    classifier = RelationClassifier((b"a", b"b"), weight, bias[0])
    slots = features(*PAIRS[1])
    logits = bias[0] + weight[slots].sum(0) / len(slots) ** 0.5
    found = classifier.log_probs(PAIRS)[1]
    torch.testing.assert_close(found, logits - logits.logsumexp(0))


def test_the_gradient_at_the_optimum_is_zero() -> None:
    """∂/∂b of the mean −log p is the mean of p minus the frequency of each label."""
    classifier = fit(PAIRS, LABELS, penalty=0.01, steps=200)
    probabilities = classifier.log_probs(PAIRS).exp().mean(0)
    frequencies = torch.tensor([LABELS.count(label) / 4 for label in classifier.labels])
    torch.testing.assert_close(probabilities, frequencies, atol=1e-3, rtol=0)
    assert classifier.accuracy(PAIRS, LABELS) == 1.0


def test_the_number_of_threads_changes_no_bit() -> None:
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(fit(PAIRS, LABELS))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0].weight, found[1].weight)
    assert torch.equal(found[0].bias, found[1].bias)


def test_the_first_sentence_has_no_relation() -> None:
    classifier = fit(PAIRS, LABELS)
    document = [[b"it", b"is"], [b"but", b"it"]]
    assert classifier.relations(document) == [b"none", b"Comparison"]
    assert classifier.relations(document[:1]) == [b"none"]
    assert classifier.relations([]) == []


def test_a_folder_gives_back_what_was_saved(tmp_path: Path) -> None:
    classifier = fit(PAIRS, LABELS)
    classifier.save(tmp_path, {})
    again = RelationClassifier.load(tmp_path)
    assert again.labels == classifier.labels
    torch.testing.assert_close(again.log_probs(PAIRS), classifier.log_probs(PAIRS), rtol=0, atol=0)
    with pytest.raises(ModelError):
        RelationClassifier.load(tmp_path / "none")
