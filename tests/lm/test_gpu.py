"""Models on a CUDA device against the CPU: `pytest -m gpu`, where there is one."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.devices import DEVICE, on_device, without_tf32
from support.models import beside, config_of, enlarged, entered
from torch import Tensor

from lm.backend import FEWEST, Backend
from lm.composition import HEADS
from lm.corpus import Corpus
from lm.evaluation import perplexity
from lm.model import DocumentLM
from lm.normalisers import KERNEL_LEAST, _kernel, log_sums
from lm.scoring import ScoringEngine, after, independent, pairs
from lm.training.optimisers import OPTIMISERS
from lm.training.settings import Settings
from lm.training.trainer import Trainer, Validation
from lm.trie import Candidates
from lm.zoo import ZOO

pytestmark = on_device
V = 60
MODELS: list[tuple[str, str | None]] = [
    *((name, None) for name in [*sorted(ZOO), "rlm-bow-lf-2", "rlm-seqbow-att-ef-2"])
]
MODELS += [("codclm", head) for head in HEADS]
every_model = pytest.mark.parametrize(("name", "head"), MODELS)
STILL: dict[str, Any] = {"dropout": 0.0, "context_dropout": 0.0, "negatives": 0}


@pytest.fixture(autouse=True)
def full_precision() -> None:
    without_tf32()


def model_of(name: str, head: str | None = None, device: str = "cpu") -> DocumentLM:
    config = config_of(name, V, 12, 16, layers=2, head=head)
    return enlarged(DocumentLM.seeded(config, 3), 2.0).eval().to(device)


def text(documents: int = 8) -> Corpus:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, (documents, 3))
    return beside(Corpus.of([[rng.integers(3, V, n).tolist() for n in size] for size in sizes]))


def lists(n: int = 3, k: int = 12) -> Candidates:
    rng = np.random.default_rng(4)
    return Candidates.of(
        [[rng.integers(3, V, rng.integers(0, 9)).tolist() for _ in range(k)] for _ in range(n)]
    )


@torch.no_grad()
def scores(model: DocumentLM, backend: Backend) -> NDArray[np.float64]:
    """Scores of lists after each other, of all pairs where there are any, and of a text."""
    engine, own, corpus = ScoringEngine.of(model, backend), lists(), text()
    contexts, found = model.context.start(1), list[NDArray[Any]]()
    for t in range(len(own)):
        contexts = entered(model, corpus, contexts, t)
        ((scored, summary),) = after(engine, [(own.part(t, t + 1), contexts)])
        found.append(scored.ravel())
        contexts = model.context.advance(contexts, summary.take(slice(scored.size - 1, None)))
    if not model.context.side_information:
        alone = independent(engine, own) if model.order == 0 else []
        both = pairs(engine, own, np.array([True, False, True])) if model.order == 1 else []
        found += [scored.ravel() for scored in (*alone, *both)]
    documents = perplexity(model, corpus, per_document=True, streams=3, length=2).documents or ()
    return np.concatenate([*found, [document.nats for document in documents]]).astype(np.float64)


@every_model
def test_scores_are_those_of_the_cpu(name: str, head: str | None) -> None:
    """Within 1e-4 nats in float32; of a model that is moved, its tensors included."""
    expected = scores(model_of(name, head), Backend())
    result = scores(model_of(name, head, DEVICE), Backend(DEVICE))
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)


def trained(
    name: str, head: str | None, device: str, **changes: Any
) -> tuple[Validation, dict[str, Tensor]]:
    """One update, of a text as long as a segment."""
    settings = Settings(
        **{"epochs": 1, "streams": 8, "segment": 3, "validations": 1, **STILL, **changes}
    )
    trainer = Trainer(model_of(name, head, device), text(32), text(), settings=settings)
    report = next(report for report in trainer.run() if report)
    return report, {n: p.detach().cpu() for n, p in trainer.model.named_parameters()}


@every_model
def test_an_update_is_that_of_the_cpu(name: str, head: str | None) -> None:
    changes = {"optimiser": "sgd", "learning_rate": 0.1, "weight_decay": 0.0}
    (expected, weights), (found, own) = (trained(name, head, d, **changes) for d in ("cpu", DEVICE))
    assert found.training_nats == pytest.approx(expected.training_nats, abs=1e-4)
    assert found.valid_perplexity == pytest.approx(expected.valid_perplexity, rel=1e-4)
    for place, weight in weights.items():
        torch.testing.assert_close(own[place], weight, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_every_optimiser_and_precision_trains_with_noise(optimiser: str, precision: str) -> None:
    noise = {"dropout": 0.2, "context_dropout": 0.2}
    changes = {**noise, "negatives": 20, "optimiser": optimiser, "precision": precision}
    report, weights = trained("hrnnlm", None, DEVICE, **changes)
    assert report.valid_perplexity < 10 * V
    assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm", "dam", "hrnnlm-lin"])
def test_deterministic_scores_have_the_same_bits_twice_and_beside_others(name: str) -> None:
    model = model_of(name, device=DEVICE)
    one, other = (scores(model, Backend(DEVICE, deterministic=True)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    engine, own = ScoringEngine.of(model, Backend(DEVICE, deterministic=True)), lists()
    start = model.context.start(1)
    (alone, _), *_ = after(engine, [(own.part(1, 2), start)])
    together = after(engine, [(own.part(t, t + 1), start) for t in range(3)])
    np.testing.assert_array_equal(alone, together[1][0])


@pytest.mark.parametrize(("dtype", "nats"), [("tf32", 0.125), ("bfloat16", 0.5)])
@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm"])
def test_lower_precision_stays_near_full_precision(name: str, dtype: str, nats: float) -> None:
    model, matmul = model_of(name, device=DEVICE), torch.backends.cuda.matmul
    expected, result = (scores(model, Backend(DEVICE, dtype=d)) for d in ("float32", dtype))
    np.testing.assert_allclose(result, expected, atol=nats, rtol=0.02)
    assert matmul.fp32_precision == "ieee"  # as before


@pytest.fixture
def scarce() -> Iterator[int]:
    """Little memory, and a number of words whose logits do not fit."""
    if not DEVICE.startswith("cuda"):
        pytest.skip("needs a device with a limit of its own")
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(DEVICE).total_memory
    held = torch.cuda.memory_reserved(DEVICE)
    number = torch.device(DEVICE).index or 0
    torch.cuda.set_per_process_memory_fraction((held + (300 << 20)) / total, number)
    yield 60_000
    torch.cuda.set_per_process_memory_fraction(1.0, number)


@pytest.mark.parametrize("name", ["rnnlm", "codclm"])
def test_out_of_memory_ends_in_smaller_batches_and_the_same_scores(name: str, scarce: int) -> None:
    model = DocumentLM.seeded(config_of(name, scarce, 8, 16), 3).eval().to(DEVICE)
    rng = np.random.default_rng(1)
    candidates = Candidates.of([rng.integers(3, scarce, (100, 30)).tolist() for _ in range(2)])

    def scored(floats: int) -> tuple[NDArray[Any], int]:
        """Scores and shortages with so many logits at once, of which nothing is held after it."""
        backend = Backend(DEVICE)
        backend.floats = floats
        engine = ScoringEngine.of(model, backend)
        first = np.array([True, True])
        zero = model.order == 0
        result = independent(engine, candidates) if zero else pairs(engine, candidates, first)
        return np.concatenate(result, None), backend.shortages

    one, shortages = scored(1 << 30)  # 4 GB of logits, as if no other process held any
    other, none = scored(FEWEST)
    assert shortages > none == 0
    np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.fixture
def kernel() -> Any:
    """The fused kernel of exponential sums, where the device is one that it is written for."""
    if not DEVICE.startswith("cuda") or torch.cuda.get_device_capability(DEVICE)[0] != 9:
        pytest.skip("needs a CUDA device of compute capability 9")
    result = _kernel(torch.device(DEVICE))
    assert result is not None  # Triton and a C compiler are there
    return result


def of_significant_bits(matrix: Tensor, bits: int) -> NDArray[np.float64]:
    """A matrix in the nearest numbers of so many bits."""
    mantissa, exponent = np.frexp(matrix.cpu().double().numpy())
    return np.asarray(np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent))


@pytest.mark.parametrize("bits", [8, 11])  # of bfloat16 and of TF32
@pytest.mark.parametrize(
    ("rows", "words", "units"), [(1024, 300, 7), (1500, 5000, 129), (2500, 2049, 64), (1, 5, 1)]
)
def test_the_fused_kernel_rounds(kernel: Any, rows: int, words: int, units: int, bits: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    features, weight = (
        (torch.randn(n, units, generator=generator) * 2 / units**0.5).to(DEVICE)
        for n in (rows, words)
    )
    result = kernel(features, weight, bits == 8)
    a, b = (of_significant_bits(matrix, bits) for matrix in (features, weight))
    np.testing.assert_allclose(result.cpu(), np.exp(a @ b.T).sum(axis=1), rtol=2e-5)
    some = kernel(features[rows // 3 :], weight, bits == 8)
    torch.testing.assert_close(some, result[rows // 3 :], rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_nan_or_infinity_in_the_weights_is_in_every_sum(kernel: Any, bfloat16: bool) -> None:
    features, weight = torch.ones(5, 40, device=DEVICE), torch.ones(3000, 40, device=DEVICE)
    weight[2999, 7] = torch.inf
    assert kernel(features, weight, bfloat16).isinf().all()
    all_ones = torch.tensor(2**31 - 1, dtype=torch.int32)  # the NaN that CUDA's arithmetic makes
    weight[2999, 7] = all_ones.view(torch.float32)
    assert kernel(features, weight, bfloat16).isnan().all()


@pytest.mark.parametrize("dtype", ["tf32", "bfloat16"])
def test_normalisers_of_many_rows_are_those_of_few_also_where_sums_overflow(
    kernel: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, generator = list[int](), torch.Generator().manual_seed(1)

    def counted(features: Tensor, *others: Any) -> Any:
        calls.append(len(features))
        return kernel(features, *others)

    monkeypatch.setattr("lm.normalisers._kernel", lambda device: counted)
    features, weight = (torch.randn(n, 24, generator=generator).to(DEVICE) for n in KERNEL_LEAST)
    features[7] *= 100
    backend = Backend(DEVICE, dtype=dtype)
    with backend.inference():
        result = log_sums(features, weight, backend)
        few = torch.cat([log_sums(rows, weight, backend) for rows in torch.split(features, 1000)])
    assert calls == [len(features)]
    assert result[7] > 88  # log of the largest float32
    torch.testing.assert_close(result, few, atol=0.02 if dtype == "bfloat16" else 2e-3, rtol=1e-3)
