"""Scores of words by a linear head, against log-softmax."""

import torch

from lm.backend import Backend
from lm.prediction import LinearPredictor
from lm.vocabulary import END


def test_scores_are_the_log_softmax_of_words_and_of_the_end() -> None:
    torch.manual_seed(0)
    predictor = LinearPredictor(torch.randn(9, 4), Backend())
    features = torch.randn(5, 3)
    parents, words = torch.tensor([0, 0, 3]), torch.tensor([3, 8, 2])
    logits = features @ predictor.weight[:, :3].T + predictor.weight[:, 3]
    truth = torch.log_softmax(logits, dim=1)
    into, leave = predictor.log_probs(features, parents, words)
    torch.testing.assert_close(into, truth[parents, words])
    torch.testing.assert_close(leave, truth[:, END])


def test_scores_in_many_contexts_are_those_of_the_shifted_features() -> None:
    torch.manual_seed(1)
    predictor = LinearPredictor(torch.randn(9, 4), Backend())
    features, shifts = torch.randn(5, 3), torch.randn(2, 3)
    parents, words = torch.tensor([1, 4]), torch.tensor([5, 6])
    pair = predictor.pair(features, shifts)
    ((log_z, _),) = predictor.pair_normalisers([pair])
    into, leave = predictor.pair_log_probs(pair, log_z, parents, words)
    for n, shift in enumerate(shifts):
        truth = predictor.log_probs(features + shift, parents, words)
        torch.testing.assert_close(into[:, n], truth[0])
        torch.testing.assert_close(leave[:, n], truth[1])
