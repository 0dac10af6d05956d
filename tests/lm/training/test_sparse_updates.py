"""Updates of tables of hashed features: what they move, by how much, and after an interruption."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.models import config_of
from torch import nn

from lm.checkpoint import ModelError
from lm.corpus import Corpus, encode
from lm.model import DocumentLM
from lm.training.optimisers import OPTIMISERS, sparse_parameters
from lm.training.recipes import STRONG
from lm.training.sparse_updates import SparseAdaGrad
from lm.training.state import load_training, save_training
from lm.training.trainer import Settings, Trainer
from lm.vocabulary import Vocabulary

WORDS = Vocabulary((b"a", b"b", b"c", b"d"))
TEXT = [b"a b", b"b c a", b"", b"c b", b"a", b"c c b", b"", b"b a"] * 3


def text() -> Corpus:
    return encode(TEXT, WORDS)


def trainer_of(name: str, hash_size: int | None = None, optimiser: str = "adamw") -> Trainer:
    config = config_of(name, len(WORDS), 4, 5)
    if hash_size is not None:
        config = type(config)(config.model, len(WORDS), 5, 5, hash_size=hash_size)
    settings = Settings(epochs=2, streams=2, segment=2, learning_rate=1e-2, validations=2)
    settings = replace(settings, optimiser=optimiser)
    return Trainer(DocumentLM.seeded(config, 1), text(), text(), settings=settings)


def test_models_without_hashed_features_have_no_such_optimiser() -> None:
    assert trainer_of("hrnnlm").sparse_optimiser is None


@pytest.mark.parametrize(("name", "rate"), [("adamw", 0.3), ("muon", 0.3), ("adadelta", 0.3)])
def test_the_rate_of_tables_is_the_same_at_the_usual_rate_of_each_optimiser(
    name: str, rate: float
) -> None:
    usual = {"adamw": Settings().learning_rate, "muon": STRONG["learning_rate"], "adadelta": 1.0}
    assert OPTIMISERS[name].sparse_rate * float(usual[name]) == pytest.approx(rate)


def test_beside_sgd_tables_have_its_rate_and_no_state() -> None:
    table = nn.Parameter(torch.zeros(3))
    for layout in (torch.Tensor.to_sparse, torch.Tensor.to_dense):
        row, table = OPTIMISERS["sgd"], nn.Parameter(torch.zeros(3))
        optimiser = row.sparse([table], row.sparse_rate * 0.1, 4)
        for _ in range(2):
            table.grad = layout(torch.tensor([0.0, 2.0, -1.0]))
            optimiser.step()
        torch.testing.assert_close(table.detach(), torch.tensor([0.0, -0.4, 0.2]))
        assert not optimiser.state_dict()["state"]


@pytest.mark.parametrize("name", ["adamw", "muon", "adagrad", "adadelta"])
def test_an_observed_pair_moves_by_about_the_rate_and_a_tiny_gradient_hardly(name: str) -> None:
    """After a first gradient g of a loss divided by d: rate · g / √(1/d² + g²)."""
    gradient = torch.sparse_coo_tensor(
        torch.tensor([[1, 3, 1]]), torch.tensor([0.05, 1e-7, 0.05]), (5,), check_invariants=False
    )
    for given in (gradient, gradient.to_dense()):
        table = nn.Parameter(torch.zeros(5))
        optimiser = OPTIMISERS[name].sparse([table], 0.3, 10)
        table.grad = given
        optimiser.step()
        moved = -table.detach().numpy() / 0.3
        np.testing.assert_allclose(moved, [0, 2**-0.5, 0, 1e-6, 0], rtol=1e-4, atol=0)


@pytest.mark.parametrize("sparse", [True, False])
def test_steps_shrink_with_the_squares_of_all_gradients_before(sparse: bool) -> None:
    """Duchi et al. 2011: the third step of a gradient of 2 is 2 / √(1 + 4 + 4 + 4)."""
    table = nn.Parameter(torch.zeros(1))
    optimiser = SparseAdaGrad([table], lr=1.0, start=1.0)
    for _ in range(3):
        before = float(table.detach())
        gradient = torch.tensor([2.0])
        table.grad = gradient.to_sparse() if sparse else gradient
        optimiser.step()
    assert before - float(table.detach()) == pytest.approx(2 / 13**0.5)


def test_an_update_touches_only_the_rows_of_words_that_were_read() -> None:
    """Each of at most five words, `<s>` among them, has a slot for each of seven words."""
    trainer = trainer_of("rnnlm-lin", hash_size=100_000)
    (table,) = sparse_parameters(trainer.model)
    next(iter(trainer.run()))
    assert table.grad is not None
    assert table.grad.is_sparse
    assert 0 < int((table != 0).sum()) <= 5 * 7
    assert torch.equal((table != 0).nonzero()[:, 0], table.grad.coalesce().indices()[0])


def test_clipping_reads_and_scales_no_gradient_of_a_table() -> None:
    """A norm that is all but zero stops the others."""
    trainer = trainer_of("rnnlm-lin", optimiser="sgd")
    trainer.settings = replace(trainer.settings, clip=1e-20, weight_decay=0.0)
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.enter(0)
    next(iter(trainer.run()))
    moved = {n for n, p in trainer.model.named_parameters() if not torch.equal(p, before[n])}
    assert moved == {"head.hashes.weight"}


@pytest.mark.parametrize("optimiser", ["adamw", "muon", "sgd"])
@pytest.mark.parametrize("name", ["rnnslm", "hrnnlm-lin"])
def test_an_interrupted_training_goes_on_where_it_was(
    name: str, optimiser: str, tmp_path: Path
) -> None:
    whole = trainer_of(name, optimiser=optimiser)
    list(whole.run())
    part, again = trainer_of(name, optimiser=optimiser), trainer_of(name, optimiser=optimiser)
    for update, _ in enumerate(part.run()):
        if update == 3:
            break
    save_training(tmp_path, part)
    load_training(tmp_path, again)
    list(again.run())
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_state_of_another_table_is_refused(tmp_path: Path) -> None:
    save_training(tmp_path, trainer_of("rnnslm", hash_size=100))
    with pytest.raises(ModelError, match="hash_size was 100, is 101"):
        load_training(tmp_path, trainer_of("rnnslm", hash_size=101))
