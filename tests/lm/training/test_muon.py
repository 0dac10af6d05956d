"""Muon for hidden matrices beside AdamW for the rest."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.training import TRAIN, VALID, VOCABULARY, figures, interrupted, same, tensors
from torch import Tensor, nn

from lm.model import Config, DocumentLM
from lm.products import fast_bfloat16
from lm.training import muon
from lm.training.optimisers import OPTIMISERS
from lm.training.trainer import Settings, Trainer

RATE, DECAY = 0.1, 0.01


def by_formula(matrix: Tensor) -> Tensor:
    """Newton–Schulz iterations as Jordan et al. 2024 print them, in float64."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x: Tensor = matrix / (matrix.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x


def test_matrices_follow_the_formula_of_muon() -> None:
    torch.manual_seed(0)
    gradients = torch.randn(3, 4, 6, dtype=torch.float64)
    matrix = nn.Parameter(torch.randn(4, 6))
    expected, momentum = matrix.detach().double(), torch.zeros(4, 6, dtype=torch.float64)
    optimiser = OPTIMISERS["muon"].create([matrix], RATE, DECAY)
    for gradient in gradients:
        matrix.grad = gradient.float()
        optimiser.step()
        momentum = 0.95 * momentum + 0.05 * gradient
        update = by_formula(0.05 * gradient + 0.95 * momentum)  # Nesterov's form
        expected = expected * (1 - RATE * DECAY) - RATE * 0.2 * 6**0.5 * update
    # where the hardware is fast with bfloat16, of 8 bits, it is used; the updates are of size 0.02
    tolerance = 0.004 if fast_bfloat16(matrix.device) else 1e-6
    torch.testing.assert_close(matrix.detach().double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (6, 6), (1, 4)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_iterations_in_each_precision(
    shape: tuple[int, int], dtype: torch.dtype, tolerance: float
) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    found = muon.orthogonal(matrix, dtype).double()
    torch.testing.assert_close(found, by_formula(matrix.double()), rtol=0, atol=tolerance)
    singular = torch.linalg.svdvals(found)
    assert singular.min() > 0.5
    assert singular.max() < 1.3


def test_a_matrix_without_gradient_is_left_alone() -> None:
    matrices = [nn.Parameter(torch.ones(2, 3)) for _ in range(2)]
    optimiser = OPTIMISERS["muon"].create(matrices, RATE, DECAY)
    matrices[0].grad = torch.randn(2, 3)
    optimiser.step()
    assert [bool((m == 1).all()) for m in matrices] == [False, True]


def test_vectors_and_tables_of_words_are_left_to_adamw() -> None:
    words = 12
    parts = [torch.randn(*shape) for shape in ((5, 3), (words, 3), (7,), (words,))]
    ended = []
    for name in ("muon", "adamw"):
        torch.manual_seed(1)
        own = [nn.Parameter(part.clone()) for part in parts]
        optimiser = OPTIMISERS[name].create(own, RATE, DECAY, words)
        for parameter in own:
            parameter.grad = torch.randn_like(parameter)
        optimiser.step()
        ended.append(own)
    alike = [torch.equal(a, b) for a, b in zip(*ended, strict=True)]
    assert alike == [False, True, True, True]


def trainer() -> Trainer:
    settings = Settings(epochs=2, streams=3, segment=2, negatives=6, optimiser="muon")
    model = DocumentLM.seeded(Config("codclm", len(VOCABULARY), 6, 8), 1)
    return Trainer(model, TRAIN, VALID, settings=settings)


def test_a_run_of_muon_can_be_resumed(tmp_path: Path) -> None:
    whole = trainer()
    expected = [figures(report) for report in whole.run()]
    resumed, reports = interrupted(trainer, tmp_path, 3)
    assert same(tensors(resumed), tensors(whole))
    assert reports == expected


def test_one_rate_serves_both_parts() -> None:
    one = trainer()
    for _ in zip(range(3), one.run(), strict=False):
        pass
    rates = {group["lr"] for group in one.optimiser.param_groups}
    assert len(rates) == 1
    other = Trainer(
        one.model, TRAIN, VALID, settings=replace(one.settings, learning_rate=0.0, epochs=1)
    )
    before = {name: tensor.clone() for name, tensor in one.model.state_dict().items()}
    for _ in other.run():
        pass
    assert same(before, one.model.state_dict())
