"""The self-normalised softmax: loss in closed form, scores that are logits, and what it learns."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from lm.backend import Backend
from lm.corpus import Corpus, encode
from lm.evaluation import perplexity
from lm.heads.self_normalised import ALPHA, SelfNormalised
from lm.model import Config, DocumentLM
from lm.tiny_models import read_by_words
from lm.training.trainer import Settings, Trainer
from lm.vocabulary import END, Vocabulary

V = 40
both_layers = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])


def head_of(tied: bool = True) -> SelfNormalised:
    torch.manual_seed(0)
    head = SelfNormalised(3, 2, nn.Embedding(V, 4), tied=tied)
    nn.init.normal_(head.bias)
    return head


@both_layers
@torch.no_grad()
def test_scores_are_logits_and_the_true_probabilities_are_known_too(tied: bool) -> None:
    head = head_of(tied)
    features = head.features(torch.randn(5, 3), torch.randn(5, 2))
    logits = features @ head.weight().T + head.bias
    parents, words = torch.tensor([0, 0, 3]), torch.tensor([3, 8, 2])
    into, leave = head.predictor(Backend()).log_probs(features, parents, words)
    torch.testing.assert_close(into, logits[parents, words])
    torch.testing.assert_close(leave, logits[:, END])
    torch.testing.assert_close(head.score(features[parents], words), logits[parents, words])
    truth = torch.log_softmax(logits, dim=1)[parents, words]
    torch.testing.assert_close(-head.nll(features[parents], words), truth)


@torch.no_grad()
def test_scores_in_many_contexts_are_those_of_the_shifted_features() -> None:
    predictor = head_of().predictor(Backend())
    features, shifts = torch.randn(5, 4), torch.randn(2, 4)
    parents, words = torch.tensor([1, 4]), torch.tensor([5, 6])
    pair = predictor.pair(features, shifts)
    ((log_z, recomputed),) = predictor.pair_normalisers([pair])
    assert log_z.numel() == recomputed.numel() == 0  # none is computed, none is counted
    into, leave = predictor.pair_log_probs(pair, log_z, parents, words)
    for n, shift in enumerate(shifts):
        truth = predictor.log_probs(features + shift, parents, words)
        torch.testing.assert_close(into[:, n], truth[0])
        torch.testing.assert_close(leave[:, n], truth[1])


def test_the_loss_is_the_nll_and_the_penalty_of_log_z() -> None:
    head, features, targets = head_of(), torch.randn(6, 4), torch.randint(V, (6,))
    logits = (features @ head.weight().T + head.bias).detach().numpy()
    loss = head.loss(features, targets, None, torch.Generator())
    for n, target in enumerate(targets.tolist()):
        log_z = math.log(sum(map(math.exp, logits[n])))
        expected = log_z - logits[n, target] + ALPHA * log_z**2
        assert float(loss[n].detach()) == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
def test_with_negatives_z_is_estimated_from_them_without_bias() -> None:
    """By definition for each draw; on the mean of 2,000 draws within 5 standard errors of Z."""
    head, features, targets = head_of(), torch.randn(6, 4), torch.randint(V, (6,))
    sampler = head.sampler(torch.arange(V), V // 4)
    assert sampler is not None
    exponentials = (features @ head.weight().T + head.bias).double().exp()
    found = []
    for seed in range(2000):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.rand(V, generator=generator) < sampler.inclusion
        shares = exponentials * drawn / sampler.inclusion
        rows = torch.arange(6)
        shares[rows, targets] = exponentials[rows, targets]
        found.append(shares.sum(dim=1))
        if seed < 50:
            generator.manual_seed(seed)
            nll = sampler.nll(features, head.weight(), head.bias, targets, generator)
            generator.manual_seed(seed)
            loss = head.loss(features, targets, sampler, generator)
            expected = nll + ALPHA * found[-1].log().square()
            torch.testing.assert_close(loss.double(), expected.double(), rtol=1e-4, atol=1e-5)
    estimates = torch.stack(found)
    error = estimates.std(dim=0) / math.sqrt(len(found))
    assert bool(((estimates.mean(dim=0) - exponentials.sum(dim=1)).abs() < 5 * error).all())


def test_log_z_starts_near_0() -> None:
    head = SelfNormalised(3, 0, nn.Embedding(V, 4), tied=False)
    log_z = torch.logsumexp(torch.zeros(1, 3) @ head.weight().T + head.bias, dim=1)
    assert float(log_z.detach()) == pytest.approx(0.0, abs=1e-6)


VOCABULARY = Vocabulary(tuple(b"w%d" % i for i in range(21)))


def text(documents: int, seed: int) -> Corpus:
    """Sentences of one word each document, of two words in every sentence."""
    rng = np.random.default_rng(seed)
    lines: list[bytes] = []
    for _ in range(documents):
        words = rng.choice(VOCABULARY.words, 2).tolist()
        lines += [b" ".join(words)] * 3 + [b""]
    return encode(lines, VOCABULARY)


def trained(head: str | None, negatives: int, objective: str = "likelihood") -> Trainer:
    settings = Settings(
        epochs=15, streams=8, learning_rate=0.02, negatives=negatives, objective=objective
    )
    model = DocumentLM.seeded(Config("codclm", len(VOCABULARY), 8, 16, head=head), 1)
    trainer = Trainer(model, text(40, 1), text(12, 2), settings=settings)
    for _ in trainer.run():
        pass
    return trainer


@pytest.mark.parametrize(
    ("negatives", "objective"), [(0, "likelihood"), (6, "likelihood"), (40, "nce")]
)
def test_training_brings_log_z_near_0_and_evaluation_states_it(
    negatives: int, objective: str
) -> None:
    trainer = trained("self-normalised", negatives, objective)
    stated = perplexity(trainer.model, trainer.valid).log_z
    assert stated is not None
    assert abs(stated.mean) < 0.5
    assert stated.sd < 0.7
    model, values = trained(None, 0).model, list[float]()
    with torch.no_grad():  # what it is without the penalty
        for sentence in ([3, 4], [9, 12]):
            context = model.context.start(1)
            features = model.features(read_by_words(model, sentence, context), context)
            logits = features @ model.head.weight().T + model.head.bias
            values += torch.logsumexp(logits, dim=1).tolist()
    assert np.abs(values).mean() > 1.0
    assert perplexity(model, trainer.valid).log_z is None


def test_the_stated_error_is_the_mean_and_deviation_of_log_z_word_by_word() -> None:
    torch.manual_seed(2)
    model = DocumentLM(Config("rnnlm", len(VOCABULARY), 4, 5, head="self-normalised")).eval()
    corpus, values = text(5, 3), list[float]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
        start = model.context.start(1)
        for begin, end in zip(corpus.sentences, corpus.sentences[1:], strict=False):
            read = read_by_words(model, corpus.tokens[begin:end].tolist(), start)
            logits = model.features(read, start) @ model.head.weight().T + model.head.bias
            values += torch.logsumexp(logits, dim=1).tolist()
    stated = perplexity(model, corpus).log_z
    assert stated is not None
    assert stated.mean == pytest.approx(np.mean(values), rel=1e-5)
    assert stated.sd == pytest.approx(np.std(values), rel=1e-4)
