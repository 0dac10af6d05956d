"""Heads with hashed features, against sums over their definition."""

import math

import pytest
import torch
from support.hashing import first_slot
from torch import Tensor, nn

from lm.backend import Backend
from lm.composition import HEADS
from lm.heads.hashed_softmax import HashedBagSoftmax, HashedSoftmax, LinSoftmax
from lm.heads.hashing import HashTable
from lm.model import Config, DocumentLM, n_parameters
from lm.sentences import Positions
from lm.tiny_models import read_by_words, tiny_model
from lm.training.optimisers import sparse_parameters
from lm.vocabulary import END, START
from lm.zoo import ZOO

V, H, S = 9, 4, 23
Row = list[float]


def drawn(head: HashedSoftmax) -> HashedSoftmax:
    """The head with a table that is not zero."""
    nn.init.normal_(head.hashes.weight)
    return head


def positions_of(words: list[int]) -> Positions:
    """One sentence."""
    place = torch.arange(len(words) + 1)
    return Positions(
        torch.tensor([START, *words]), place - 1, torch.zeros_like(place), place[-1:], len(words)
    )


def row_of(head: HashedSoftmax, history: list[int]) -> Row:
    """The numbers that a history, last word first, adds to the logits."""
    begin = first_slot(history, len(head.hashes.weight), V)
    found: Row = head.hashes.weight[begin : begin + V].tolist()
    return found


def normalised(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits, dim=-1)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_probabilities_have_the_rows_of_the_last_words(order: int, tied: bool) -> None:
    """Bigrams everywhere; trigrams once two words, `<s>` among them, were read."""
    torch.manual_seed(0)
    embedding = nn.Embedding(V, 3)
    head = drawn(HashedSoftmax(H, 0, embedding, tied=tied, hash_size=S, hash_order=order))
    hidden, words = torch.randn(4, H), [5, 3, 5]
    features = head.at_positions(head.features(hidden, None), positions_of(words))
    read = [START, *words]
    for n in range(4):
        logits = head.features(hidden, None)[n] @ head.layer.weight().T + head.layer.bias
        logits += torch.tensor(row_of(head, [read[n]]))
        if order == 3 and n:
            logits += torch.tensor(row_of(head, [read[n], read[n - 1]]))
        found = -head.nll(features[n].expand(V, -1), torch.arange(V))
        torch.testing.assert_close(found, normalised(logits))


@torch.no_grad()
def test_a_bag_adds_the_rows_of_its_words_and_has_no_end() -> None:
    torch.manual_seed(1)
    head = HashedBagSoftmax(0, H, nn.Embedding(V, H), tied=False, hash_size=S)
    drawn(head)
    value = torch.randn(2, H)
    bags = torch.tensor([[8.0, 4, 1], [0, 0, 0]])  # words 7, 3 and 0; none
    both = torch.cat([value, bags], dim=1)
    features = head.features(both[:, :0], both)
    for n, words in enumerate(([7, 3, 0], [])):
        logits = head.layer.weight() @ value[n]
        for word in words:
            logits += torch.tensor(row_of(head, [word]))
        logits[END] = -math.inf
        expected = normalised(logits)
        expected[END] = 0.0
        found = -head.nll(features[n].expand(V, -1), torch.arange(V))
        torch.testing.assert_close(found, expected)
        assert float(found.exp().sum()) - 1 == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("floats", [1, 40, 1 << 19])
@pytest.mark.parametrize("name", ["rnnlm-lin", "rnnslm"])
@torch.no_grad()
def test_normalisers_are_those_of_the_loss_however_few_words_fit_in_memory(
    name: str, floats: int
) -> None:
    model = tiny_model(ZOO[name])
    read = read_by_words(model, [4, 4, 9], model.context.start(1))
    features = model.features(read, model.context.start(1))
    backend = Backend()
    backend.floats = floats
    at, words = torch.arange(4).repeat_interleave(10), torch.arange(10).repeat(4)
    into, leave = model.head.predictor(backend).log_probs(features, at, words)
    torch.testing.assert_close(into, -model.head.nll(features[at], words))
    torch.testing.assert_close(leave, into.view(4, 10)[:, END])


def test_equal_features_have_one_normaliser(monkeypatch: pytest.MonkeyPatch) -> None:
    """All words of a bag are predicted from one context."""
    seen: list[int] = []
    model = tiny_model(ZOO["rnnslm"])
    start = model.context.start(1)
    features = model.features(read_by_words(model, [4, 5, 9, 6], start), start)
    predictor = model.head.predictor(Backend())
    log_sums = type(predictor)._log_sums  # type: ignore[attr-defined]

    def counted(self: object, features: Tensor, slots: Tensor) -> Tensor:
        seen.append(len(features))
        found: Tensor = log_sums(self, features, slots)
        return found

    monkeypatch.setattr(type(predictor), "_log_sums", counted)
    predictor.log_probs(features, torch.arange(4), torch.tensor([4, 5, 9, 6]))
    assert seen == [1]


def test_heads_have_a_table_more_than_a_softmax_and_those_of_lin_no_bias() -> None:
    size = {"hash_size": S}
    tied = HashedSoftmax(H, 2, nn.Embedding(V, 3), tied=True, **size)
    assert n_parameters(tied) == V * 3 + 3 * (H + 2) + V + S
    assert n_parameters(LinSoftmax(H, 2, nn.Embedding(V, 3), tied=False, **size)) == V * (H + 2) + S
    with pytest.raises(ValueError, match="separate input and output matrices"):
        LinSoftmax(H, 0, nn.Embedding(V, H), tied=True)


def test_the_matrix_of_lin_begins_within_one_over_its_columns() -> None:
    """§4.3: U(±1/K2), K2 = H."""
    torch.manual_seed(2)
    weight = LinSoftmax(50, 0, nn.Embedding(200, 50), tied=False, hash_size=200).layer.weight()
    assert 0.019 < float(weight.detach().abs().max()) <= 0.02


def test_the_table_of_the_paper_has_ten_million_slots() -> None:
    model = DocumentLM.without_memory(Config("rnnlm-lin", 100, 30, 30))
    assert [len(table) for table in sparse_parameters(model)] == [10_000_000]


def test_words_whose_ids_float32_cannot_hold_are_refused() -> None:
    config = Config("rnnlm", (1 << 24) + 1, 2, 2, head="hashed", hash_size=1 << 25)
    with pytest.raises(ValueError, match="at most 16777216 words, found 16777217"):
        DocumentLM.without_memory(config)


@pytest.mark.parametrize("head", sorted(HEADS))
def test_only_tables_of_hashed_features_are_sparse(head: str) -> None:
    model = DocumentLM.without_memory(Config("hrnnlm", 100, 3, 3, head=head))
    tables = [m.weight for m in model.modules() if isinstance(m, HashTable)]
    assert [id(p) for p in sparse_parameters(model)] == [id(p) for p in tables]
