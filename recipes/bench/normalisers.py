"""Our log-sums against PyTorch's own ways to them: which is fastest here, and whether they agree.

    python recipes/bench/normalisers.py

`log_sums` of N features over V words; `logsumexp` of the whole matrix of logits;
`cross_entropy`, which is a logit more; and `linear_cross_entropy`, with PyTorch's blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from measuring import best
from tabulate import tabulate
from torch import Tensor
from torch.nn import functional as F

from lm.backend import Backend
from lm.normalisers import log_sums

SHAPES = ((2048, 128, 10_000), (2048, 256, 20_000))


def _ways(features: Tensor, weight: Tensor, machine: Backend) -> dict[str, Callable[[], Tensor]]:
    """Each way to (N,) log-sums; those of a loss add the target's logit, word 0."""
    own = torch.cat([features, features.new_ones(len(features), 1)], dim=1)
    biased = torch.cat([weight, weight.new_zeros(len(weight), 1)], dim=1)
    target = torch.zeros(len(features), dtype=torch.int64)
    first = features @ weight[0]
    ways = {
        "log_sums": lambda: log_sums(own, biased, machine),
        "logsumexp": lambda: torch.logsumexp(features @ weight.T, dim=1),
        "cross_entropy": lambda: (
            F.cross_entropy(F.linear(features, weight), target, reduction="none") + first
        ),
    }
    if hasattr(F, "linear_cross_entropy"):
        blocks = torch.nn.LinearCrossEntropyOptions()
        ways["linear_cross_entropy"] = lambda: (
            F.linear_cross_entropy(features, weight, target, reduction="none", options=blocks)
            + first
        )
    return ways


def main() -> None:
    """Print a row a shape and way."""
    rows = []
    for n, r, v in SHAPES:
        features, weight = torch.randn(n, r), torch.randn(v, r) / r**0.5
        ways = _ways(features, weight, Backend())
        truth = torch.logsumexp(features.double() @ weight.double().T, dim=1)
        fastest = best(ways["log_sums"])[0]
        for name, way in ways.items():
            seconds, found = best(way)
            error = float((found.double() - truth).abs().max())
            rows.append([f"{n} × {r} × {v}", name, seconds * 1e3, seconds / fastest, error])
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}\n")
    header = ["N × R × V", "way", "ms", "of log_sums'", "error"]
    print(tabulate(rows, header, floatfmt=("", "", ".1f", ".2f", ".0e")))


if __name__ == "__main__":
    with torch.no_grad():
        main()
