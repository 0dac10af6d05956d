"""The shipped laws, on parts of other authors, and on parts that break them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend
from lm.composition import Composition
from lm.contexts import Context, NoContext
from lm.contexts.last_hidden import LastHidden
from lm.contexts.last_two_hidden import LastTwoHidden
from lm.contexts.next_target import NextTarget
from lm.contexts.sentence_bags import DualSentenceLevel
from lm.contexts.sentence_recurrence import SentenceRecurrence
from lm.contexts.source_neighbours import NextSource
from lm.fusions import Fusion, Input, NoFusion, Output, Value
from lm.heads import Head, LinearPredictor, Predictor, Softmax
from lm.heads.hashed_softmax import HashedBagSoftmax
from lm.heads.self_normalised import SelfNormalised
from lm.laws import BrokenLaw, check_composition, check_pairs
from lm.normalisers import Pair
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import Positions, ReadSentences
from lm.side_information import DERIVED, TARGET, Derived
from lm.tiny_models import tiny_model
from lm.vocabulary import END
from lm.zoo import ZOO


class HiddenMerge(Fusion):
    """The head sees tanh(h + W c)."""

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.merged = nn.Linear(width, recurrence.hidden, bias=False)

    def output(self, hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, Tensor | None]:
        return torch.tanh(hidden + self.merged(value())), None


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


class LongSentence(LastHidden):
    """Whether the last sentence has more than six words: c_0, or zeros."""

    reads_states = False
    merges_sentences = True

    def summary(self, sentences: ReadSentences) -> Rows:
        _, mask = sentences.words()
        return Rows.of(mask.sum(dim=1, keepdim=True))

    def start(self, batch: int) -> Rows:
        return Rows.of(torch.zeros(batch, 1, dtype=torch.long, device=self.first.device))

    def value(self, contexts: Rows) -> Tensor:
        return (contexts.tensors[0] <= 6) * self.first

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        return bytes(len(words) > 6)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", sorted(name for name in ZOO if ZOO[name].recurrence is None))
def test_a_cell_whose_state_is_one_tensor_fits_every_published_model(
    name: str, layers: int
) -> None:
    check_composition(ZOO[name], recurrence="htanh", layers=layers)


@pytest.mark.parametrize(
    ("context", "fusion", "order"),
    [
        (LastTwoHidden, Output, 2),
        (LastTwoHidden, Input, None),
        (LastTwoHidden, HiddenMerge, 2),
        (LastHidden, HiddenMerge, 1),
        (LastHidden, NoFusion, 0),
        (NoContext, Input, 0),
        (LongSentence, Input, 1),
    ],
)
def test_other_compositions_obey_the_laws_at_the_order_of_their_facts(
    context: type[Context], fusion: type[Fusion], order: int | None
) -> None:
    composition = Composition(context, fusion, "", "")
    assert tiny_model(composition).order == order
    check_composition(composition)


@pytest.mark.parametrize("fusion", [Input, Output])
def test_a_head_that_reads_the_words_before_obeys_the_laws(fusion: type[Fusion]) -> None:
    composition = Composition(LastHidden, fusion, "", "", BigramSoftmax)
    assert not tiny_model(composition).additive
    check_composition(composition)


class Forgetful(LastTwoHidden):
    """States an order of 1, and depends on two sentences."""

    sentences = 1


class OneKey(LastHidden):
    """Takes all sentences for equal."""

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        return b""


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


class Detached(DualSentenceLevel):
    """States that the words' loss ends at the sentence level."""

    end_to_end = False

    def value(self, contexts: Rows) -> Tensor:
        return contexts.tensors[-2]


@pytest.mark.parametrize(
    ("name", "context", "law"),
    [
        ("hrnnlm", Undeclared, "auxiliary parameters: expected .*first.*, found .*next_words"),
        ("hrnnlm-lin", Detached, "end to end False: the loss of the words reaches .*level"),
    ],
)
def test_a_level_that_breaks_a_law_is_named(name: str, context: type[Context], law: str) -> None:
    with pytest.raises(BrokenLaw, match=law):
        check_composition(replace(ZOO[name], context=context))


class Endless(HashedBagSoftmax):
    """Has a score of `</s>`, although it does not predict it."""

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        return super().nll(features, targets) + 0.5 * (targets == END)


def test_a_head_of_bags_that_scores_ends_is_named() -> None:
    with pytest.raises(BrokenLaw, match="no score of </s>"):
        check_composition(replace(ZOO["rnnslm"], head=Endless))


class Boastful(SelfNormalised):
    """States that logits are log-probabilities."""

    normalised = True


class Defective(Softmax):
    """Leaves a word out of the sum when it scores."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding)

    def predictor(self, backend: Backend) -> Predictor:
        short = Softmax(self.output.shape[1], 0, nn.Embedding(len(self.output), 1))
        short.output.data[:] = self.output
        short.bias.data[3] = -torch.inf
        return short.predictor(backend)


class Truncated(Softmax):
    """Gives a word that ends nothing no share of all probabilities."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding)

    def log_probabilities(self, features: Tensor) -> Tensor:
        return super().log_probabilities(features).index_fill(1, torch.tensor([4]), -50.0)


class LargeNormalisers(LinearPredictor):
    """Takes log Z + 1 for log Z of a pair."""

    def pair_normalisers(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        found = LinearPredictor(self.weight, self.backend).pair_normalisers(pairs)
        return [(log_z + 1, recomputed) for log_z, recomputed in found]


class Unpaired(Softmax):
    """Scores pairs otherwise than one by one."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__(hidden, context, embedding)

    def predictor(self, backend: Backend) -> Predictor:
        return LargeNormalisers(torch.cat([self.output, self.bias[:, None]], dim=1), backend)


@pytest.mark.parametrize(
    ("head", "law"),
    [
        (Boastful, "normalised scores are log-probabilities"),
        (Defective, "predictor equals head: scores of words"),
        (Truncated, "log_probabilities are those of nll"),
        (Unpaired, "batch equals loop: scores"),
    ],
)
def test_a_head_that_breaks_a_law_is_named(head: type[Head], law: str) -> None:
    with pytest.raises(BrokenLaw, match=law):
        check_composition(Composition(LastHidden, Output, "", "", head))


def test_pairs_that_are_scored_otherwise_than_one_by_one_are_named() -> None:
    with pytest.raises(BrokenLaw, match="all pairs equal loop"):
        check_pairs(tiny_model(Composition(LastHidden, Output, "", "", Unpaired)))


class Scaled(LastHidden):
    """Reads the values of the embeddings when it is made."""

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.scale = float(embedding.weight.detach().norm())


@pytest.mark.parametrize(
    ("context", "law"),
    [
        (Scaled, "made without memory: a part needs the values of tensors"),
        (Forgetful, "order 1: expected the score not to change with the sentence 2 before"),
        (OneKey, "equal sentences"),
        (Neighbour, "equals"),
        (Untrained, r"finite gradients: context\.first"),
    ],
)
def test_a_broken_law_is_named(context: type[Context], law: str) -> None:
    with pytest.raises(BrokenLaw, match=law):
        check_composition(Composition(context, Output, "", ""))


class Deaf(NextSource):
    """Needs the next source sentence, and does not use it."""

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        own, following = encoded.tensors
        return super().enter(contexts, Rows.of(own, torch.zeros_like(following)))


def test_a_kind_of_side_information_without_effect_is_named() -> None:
    with pytest.raises(BrokenLaw, match="expected scores to change with next-source"):
        check_composition(replace(ZOO["dclm-right"], context=Deaf))


class AfterNext(NextTarget):
    """Reads the sentence after the next one."""

    side_information = ("after-next",)


def test_a_context_of_other_later_sentences_than_the_next_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after_next = Derived(
        TARGET, (), lambda side, chosen, ends: np.where(chosen + 2 < ends[-1], chosen + 2, -1)
    )
    monkeypatch.setattr("lm.side_information.DERIVED", {**DERIVED, "after-next": after_next})
    with pytest.raises(BrokenLaw, match="not causal: expected the scores of sentences"):
        check_composition(replace(ZOO["dclm-right-target"], context=AfterNext))
