"""The context after a candidate: one at a time, and the same bits in any batch."""

import pytest
import torch

from lm.backend import Backend
from lm.composition import RECURRENCES
from lm.engine import ScoringEngine
from lm.model import Config, DocumentLM
from lm.rows import Rows
from rerank.scorers.following import advanced


@pytest.mark.parametrize("recurrence", sorted(RECURRENCES))
@pytest.mark.parametrize("hidden", [6, 64, 256])
def test_a_context_advances_with_the_same_bits_alone_and_among_others(
    hidden: int, recurrence: str
) -> None:
    """As a beam, a move and a made-up history advance it; products differ with their rows."""
    config = Config("hrnnlm", 15, embed=hidden, hidden=hidden, recurrence=recurrence)
    model = DocumentLM.seeded(config, 0)
    generator = torch.Generator().manual_seed(0)
    shapes = [tensor.shape for tensor in model.context.start(17).tensors]
    contexts = Rows(tuple(torch.randn(shape, generator=generator) for shape in shapes))
    summaries = Rows.of(torch.randn(17, hidden, generator=generator))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        scorer = ScoringEngine.of(model, Backend(deterministic=True))
        rows = [torch.tensor([m]) for m in range(17)]
        alone = [advanced(scorer, contexts.take(m), summaries.take(m)) for m in rows]
        torch.set_num_threads(3)
        for begin, end in [(0, 17), (1, 3), (2, 7), (5, 6), (8, 16)]:
            some = slice(begin, end)
            found = advanced(scorer, contexts.take(some), summaries.take(some))
            expected = Rows.cat(alone[some])
            assert all(map(torch.equal, found.tensors, expected.tensors))
    finally:
        torch.set_num_threads(threads)
