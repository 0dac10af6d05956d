"""The shipped laws, on parts of other authors, and on parts that break them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend
from lm.composition import Composition
from lm.contexts import Context, LastHidden, LastTwoHidden
from lm.contexts.bags import DualSentenceLevel, SentenceRecurrence
from lm.contexts.document import NextSource, NextTarget
from lm.fusions import Fusion, Input, NoFusion, Output
from lm.heads import Head, LinearPredictor, Predictor, SelfNormalised, Softmax
from lm.heads.hashed_softmax import HashedBagSoftmax
from lm.laws import SENTENCES, BrokenLaw, check_composition, check_pairs, tiny_model
from lm.normalisers import Pair
from lm.recurrences import Recurrence
from lm.sentences import Positions, Rows
from lm.side_information import DERIVED, TARGET, Derived
from lm.vocabulary import END
from lm.zoo import ZOO


class BigramSoftmax(Softmax):
    """Logits plus a number for each pair of the last word and the next."""

    linear = False

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding)
        words = embedding.num_embeddings
        self.bigrams = nn.Parameter(torch.randn(words, words))

    def at_positions(self, features: Tensor, positions: Positions) -> Tensor:
        return torch.cat([features, positions.words[:, None].to(features)], dim=1)

    def table(self, features: Tensor) -> Tensor:
        logits = F.linear(features[:, :-1], self.weight(), self.bias)
        return torch.log_softmax(logits + self.bigrams[features[:, -1].long()], dim=1)

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        return -self.table(features)[torch.arange(len(targets)), targets]

    def loss(self, features: Tensor, targets: Tensor, *_: object) -> Tensor:
        return self.nll(features, targets)

    def predictor(self, backend: Backend) -> Predictor:
        return BigramPredictor(self)


class BigramPredictor:
    def __init__(self, head: BigramSoftmax) -> None:
        self.head = head

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        table = self.head.table(features)
        return table[parents, words], table[:, END]


@pytest.mark.parametrize(
    ("context", "fusion", "order", "head"),
    [
        (LastTwoHidden, Output, 2, Softmax),
        (LastTwoHidden, Input, None, Softmax),
        (LastHidden, NoFusion, 0, Softmax),
        (LastHidden, Input, None, BigramSoftmax),
        (LastHidden, Output, 1, BigramSoftmax),
    ],
)
def test_compositions_of_other_authors_obey_the_laws_at_the_order_of_their_facts(
    context: type[Context], fusion: type[Fusion], order: int | None, head: type[Head]
) -> None:
    composition = Composition(
        context, fusion, "", "", "lm.heads:softmax" if head is Softmax else head
    )
    model = tiny_model(composition)
    assert model.order == order
    assert not (model.additive and head is BigramSoftmax)
    check_composition(composition)


# Parts that break a law
class Scaled(LastHidden):
    """Reads the values of the embeddings when it is made."""

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.scale = float(embedding.weight.detach().norm())


class Growing(LastHidden):
    """Has a larger tensor each time it is made."""

    sizes = count(1)

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.more = nn.Parameter(torch.zeros(next(self.sizes)))


class Averaging(LastHidden):
    """Mixes the values of a batch."""

    def value(self, contexts: Rows) -> Tensor:
        return super().value(contexts) + super().value(contexts).mean(dim=0)


class Neighbour(LastHidden):
    """Mixes the rows of a batch of more than a few."""

    few = 0

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        hidden = summary.tensors[0]
        return Rows.of(hidden + (len(hidden) > self.few) * hidden.mean(dim=0))


class Crowded(Neighbour):
    few = len(SENTENCES)


class Forgetful(LastTwoHidden):
    """States an order of 1, and depends on two sentences."""

    sentences = 1


class OneKey(LastHidden):
    """Takes all sentences for equal."""

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        return b""


class OneHistory(LastTwoHidden):
    """Takes all pairs of sentences for equal."""

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        return b""


class Untrained(LastHidden):
    """Cuts the gradient of its learned start."""

    def start(self, batch: int) -> Rows:
        return super().start(batch).detach()


class Undeclared(SentenceRecurrence):
    """Does not say which parameters its own loss trains."""

    def auxiliary_parameters(self) -> list[nn.Parameter]:
        return [self.first]


class Detached(DualSentenceLevel):
    """States that the words' loss ends at the sentence level."""

    end_to_end = False

    def value(self, contexts: Rows) -> Tensor:
        level: Tensor = contexts.tensors[-2]
        return level


class Deaf(NextSource):
    """Needs the next source sentence, and does not use it."""

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        own, following = encoded.tensors
        return super().enter(contexts, Rows.of(own, torch.zeros_like(following)))


class AfterNext(NextTarget):
    """Reads the sentence after the next one."""

    side_information = ("after-next",)


AFTER_NEXT = Derived(
    TARGET, (), lambda side, chosen, ends: np.where(chosen + 2 < ends[-1], chosen + 2, -1)
)


# Heads that break a law
class Plain(Softmax):
    """Made as a table of heads makes it."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding)


class Endless(HashedBagSoftmax):
    """Has a score of `</s>`, although it does not predict it."""

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        return super().nll(features, targets) + 0.5 * (targets == END)


class Leaky(Plain):
    """Keeps a tenth of all probability."""

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        return super().nll(features, targets) - math.log(0.9)


class Truncated(Plain):
    """Gives a word that ends nothing no share of all probabilities."""

    def log_probabilities(self, features: Tensor) -> Tensor:
        return super().log_probabilities(features).index_fill(1, torch.tensor([4]), -50.0)


class Boastful(SelfNormalised):
    """States that logits are log-probabilities."""

    normalised = True


class Defective(Plain):
    """Leaves a word out of the sum when it scores."""

    def predictor(self, backend: Backend) -> Predictor:
        short = Plain(self.output.shape[1], 0, nn.Embedding(len(self.output), 1), tied=False)
        short.output.data[:] = self.output
        short.bias.data[3] = -torch.inf
        return short.predictor(backend)


class ShortSentences(LinearPredictor):
    """Takes every end of a sentence for likelier than it is."""

    def log_probs(self, features: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        into, leave = super().log_probs(features, parents, words)
        return into, leave + 0.5


class LargeNormalisers(LinearPredictor):
    """Takes log Z + 1 for log Z of a pair."""

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        return [(log_z + 1, computed) for log_z, computed in super().pair_normalisers(pairs)]


class Hasty(Plain):
    """Scores ends of sentences otherwise than its probabilities say."""

    made: type[LinearPredictor] = ShortSentences

    def predictor(self, backend: Backend) -> Predictor:
        return self.made(torch.cat([self.output, self.bias[:, None]], dim=1), backend)


class Unpaired(Hasty):
    """Scores pairs otherwise than one by one."""

    made = LargeNormalisers


def made(context: type[Context], head: type[Head] | str = "lm.heads:softmax") -> Composition:
    return Composition(context, Output, "", "", head)


BROKEN: list[tuple[Composition, str]] = [
    (made(Scaled), "made without memory: a part needs the values of tensors"),
    (made(Growing), r"made without memory: another tensor context\.more"),
    (replace(made(Averaging), fusion=Input), "unroll equals step: hidden states"),
    (made(Averaging), "unroll equals step: probabilities"),
    (made(Neighbour), "unroll equals step: scores of the next sentence"),
    (made(LastHidden, Unpaired), "batch equals loop: scores: "),
    (made(Crowded), "batch equals loop: scores of the next sentence"),
    (made(Forgetful), "order 1: expected the score not to change with the sentence 2 before"),
    (made(OneKey), "equal sentences"),
    (made(OneHistory), "equal histories"),
    (made(Untrained), r"finite gradients: context\.first"),
    (replace(ZOO["hrnnlm"], context=Undeclared),
        "auxiliary parameters: expected .*first.*, found .*next"),
    (replace(ZOO["hrnnlm-lin"], context=Detached),
        "end to end False: the loss of the words reaches .*level"),
    (replace(ZOO["dclm-right"], context=Deaf),
        "side information: expected scores to change with next-source"),
    (replace(ZOO["dclm-right-target"], context=AfterNext),
        "not causal: expected the scores of sentences"),
    (replace(ZOO["rnnslm"], head=Endless), "no score of </s>"),
    (made(LastHidden, Leaky), "probabilities sum to 1"),
    (made(LastHidden, Truncated), "log_probabilities are those of nll"),
    (made(LastHidden, Boastful), "normalised scores are log-probabilities"),
    (made(LastHidden, Defective), "predictor equals head: scores of words"),
    (made(LastHidden, Hasty), "predictor equals head: scores of </s>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("composition", "law"), BROKEN, ids=[law.partition(" expected")[0] for _, law in BROKEN]
)
def test_a_broken_law_is_named(
    composition: Composition, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lm.side_information.DERIVED", {**DERIVED, "after-next": AFTER_NEXT})
    with pytest.raises(BrokenLaw, match=f"^{law}"):
        check_composition(composition)


def test_pairs_that_are_scored_otherwise_than_one_by_one_are_named() -> None:
    with pytest.raises(BrokenLaw, match=r"^all pairs equal loop: scores"):
        check_pairs(tiny_model(made(LastHidden, Unpaired)))
