"""What is read of sentences, from packed batches and from tries alike."""

import numpy as np
import pytest
import torch

from lm.batches import PackedBatch
from lm.corpus import Corpus
from lm.sentences import Positions, ReadSentences, embedding_sums
from lm.trie import Candidates, build

SENTENCES = [[3, 4, 5], [], [3, 4], [6, 3]]


def packed() -> Positions:
    tokens = np.array([w for s in SENTENCES for w in s], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, SENTENCES)])
    return PackedBatch.of(Corpus(tokens, offsets, np.array([0, 4])), np.arange(4)).positions


def trie() -> Positions:
    forest = build(Candidates.of([SENTENCES]), np.arange(4), np.zeros(4, dtype=np.int64), 1)
    return forest.positions(torch.device("cpu"))


@pytest.mark.parametrize("positions", [packed(), trie()], ids=["packed", "trie"])
def test_words_and_states_of_each_sentence_come_in_reading_order(positions: Positions) -> None:
    hidden = positions.words[:, None].float() + 100
    read = ReadSentences(positions, hidden)
    words, mask = read.words()
    states, _ = read.hidden_states()
    for sentence, own, state, counts in zip(SENTENCES, words, states, mask, strict=True):
        assert own[counts].tolist() == sentence
        assert state[counts][:, 0].tolist() == [word + 100 for word in sentence]
    ends = [(sentence or [1])[-1] + 100 for sentence in SENTENCES]
    assert read.last_hidden()[:, 0].tolist() == ends
    with pytest.raises(TypeError, match="carries a state"):
        read.last_states()


@pytest.mark.parametrize("positions", [packed(), trie()], ids=["packed", "trie"])
def test_the_previous_position_is_that_of_the_prefix_and_zero_at_the_first(
    positions: Positions,
) -> None:
    found = positions.previous(positions.words.float())
    for word, before in zip(positions.words.tolist(), found.tolist(), strict=True):
        assert before in {1: [0], 3: [1, 6], 4: [3], 5: [4], 6: [1]}[word]


def test_sums_of_embeddings_are_added_from_the_left() -> None:
    weight = torch.randn(9, 5)
    words, mask = torch.randint(0, 9, (4, 30)), torch.rand(4, 30) < 0.8
    mask[2] = False
    expected = torch.zeros(4, 5)
    for column, counts in zip(words.T, mask.T, strict=True):
        expected[counts] += weight[column[counts]]
    assert torch.equal(embedding_sums(weight, words, mask), expected)
