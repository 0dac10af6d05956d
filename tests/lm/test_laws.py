"""The shipped laws, on parts of other authors, and on parts that break them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend
from lm.composition import Composition
from lm.contexts import Context
from lm.contexts.last_hidden import LastHidden
from lm.contexts.last_two_hidden import LastTwoHidden
from lm.contexts.next_target import NextTarget
from lm.contexts.sentence_recurrence import SentenceRecurrence
from lm.contexts.source_neighbours import NextSource
from lm.fusions import Fusion, Input, NoFusion, Output
from lm.heads import Head, Predictor, Softmax
from lm.laws import BrokenLaw, check_composition
from lm.rows import Rows
from lm.sentences import Positions
from lm.side_information import DERIVED, TARGET, Derived
from lm.tiny_models import tiny_model
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


class Forgetful(LastTwoHidden):
    """States an order of 1, and depends on two sentences."""

    sentences = 1


class Neighbour(LastHidden):
    """Mixes the rows of a batch."""

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        return Rows.of(summary.tensors[0] + summary.tensors[0].mean(dim=0))


class Untrained(LastHidden):
    """Cuts the gradient of its learned start."""

    def start(self, batch: int) -> Rows:
        return super().start(batch).detach()


class Undeclared(SentenceRecurrence):
    """Does not say which parameters its own loss trains."""

    def auxiliary_parameters(self) -> list[nn.Parameter]:
        return [self.first]


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
BROKEN: list[tuple[str, type, str]] = [  # composition, context, message
    ("", Forgetful, "order 1: expected the score not to change with the sentence 2 before"),
    ("", Neighbour, "equals"),
    ("", Untrained, r"finite gradients: context\.first"),
    ("hrnnlm", Undeclared, "auxiliary parameters: expected .*first.*, found .*next"),
    ("dclm-right", Deaf, "expected scores to change with next-source"),
    ("dclm-right-target", AfterNext, "not causal: expected the scores of sentences"),
]


@pytest.mark.parametrize(("name", "part", "law"), BROKEN, ids=[p.__name__ for _, p, _ in BROKEN])
def test_a_broken_law_is_named(
    name: str, part: type, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lm.side_information.DERIVED", {**DERIVED, "after-next": AFTER_NEXT})
    composition = ZOO[name] if name else Composition(LastHidden, Output, "", "")
    with pytest.raises(BrokenLaw, match=law):
        check_composition(replace(composition, context=part))
