"""The script that a good engineer writes in an hour: plain PyTorch, no padding, nothing twice.

Equal hypotheses are scored once, sorted by length and packed; contexts are batched; and the
normaliser is computed a chunk at a time, so that the (tokens × vocabulary) logits never exist.
One of the scripts that `scoring.py` times the engine of `lm.scoring` against; nothing here is
imported from that engine. Scores are log p of a candidate's words and `</s>`, in nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from obvious import ContextLM, KBest
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from lm.vocabulary import END, START

ROWS = 64  # positions whose logits are in memory at once
FLOATS = 1 << 20  # logits of pairs in memory at once
BATCH = 4096  # hypotheses that the LSTM reads at once


@dataclass(frozen=True)
class Packed:
    """B distinct hypotheses, longest first and packed; N positions in all.

    inputs: `<s> …`; targets: (N,) `… </s>`; rows: (N,) hypothesis of each position; which: (n,)
    row of each of the n hypotheses that were given.
    """

    inputs: PackedSequence
    targets: Tensor
    rows: Tensor
    which: Tensor

    @classmethod
    def of(cls, hypotheses: KBest, device: torch.device) -> Packed:
        """The batch of some hypotheses, equal ones merged."""
        texts = [tuple(words) for words in hypotheses]
        distinct = sorted(set(texts), key=len, reverse=True)
        row = {words: i for i, words in enumerate(distinct)}
        inputs = pack_sequence([torch.tensor([START, *words]) for words in distinct])
        targets = pack_sequence([torch.tensor([*words, END]) for words in distinct])
        rows = torch.cat([torch.arange(size) for size in inputs.batch_sizes.tolist()])
        which = torch.tensor([row[words] for words in texts])
        tensors = (x.to(device) for x in (targets.data, rows, which))
        return cls(inputs.to(device), *tensors)

    def sums(self, log_probs: Tensor) -> Tensor:
        """Scores (B, …) of the distinct hypotheses from log-probabilities (N, …)."""
        zeros = log_probs.new_zeros(int(self.inputs.batch_sizes[0]), *log_probs.shape[1:])
        return zeros.index_add(0, self.rows, log_probs)


def _read(model: ContextLM, batch: Packed, contexts: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Hidden states (C · N, H) of all positions, and (C · B, H) after the last words.

    contexts: (C, H), concatenated to every input; every context reads the whole batch.
    """
    x = model.embedding(batch.inputs.data)
    sizes = batch.inputs.batch_sizes
    if contexts is not None:  # a time step is the step's positions in every context
        n = len(contexts)
        steps = x.split(sizes.tolist())
        x = torch.cat([step.repeat_interleave(n, dim=0) for step in steps])
        context = torch.cat([contexts.repeat(int(size), 1) for size in sizes])
        x, sizes = torch.cat([x, context], dim=1), sizes * n
    hidden, (last, _) = model.lstm(PackedSequence(x, sizes))
    return hidden.data, last[0]


def _log_probs(model: ContextLM, hidden: Tensor, targets: Tensor) -> Tensor:
    """Log-probabilities (N,) of targets after hidden states (N, H)."""
    chunks = zip(hidden.split(ROWS), targets.split(ROWS), strict=True)
    return torch.cat([-F.cross_entropy(model.logits(h), t, reduction="none") for h, t in chunks])


@torch.inference_mode()
def independent(model: ContextLM, lists: Sequence[KBest]) -> list[Tensor]:
    """Scores (K,) of each list under a model without context; all lists are batched together."""
    device = model.output.weight.device
    hypotheses = sorted({tuple(words) for candidates in lists for words in candidates}, key=len)
    score: dict[tuple[int, ...], float] = {}
    for begin in range(0, len(hypotheses), BATCH):
        texts = hypotheses[begin : begin + BATCH]
        batch = Packed.of(texts, device)
        hidden, _ = _read(model, batch)
        sums = batch.sums(_log_probs(model, hidden, batch.targets))
        score.update(zip(texts, sums[batch.which].tolist(), strict=True))
    return [torch.tensor([score[tuple(words)] for words in candidates]) for candidates in lists]


@torch.inference_mode()
def pairs(model: ContextLM, lists: Sequence[KBest], most: int | None = None) -> list[Tensor]:
    """Scores (K_prev, K) of a document's lists after each candidate of the list before.

    The first matrix is (1, K). Hidden states and their logits are computed once, and each
    context's share of the logits; what remains for a pair is their sum and its normaliser.
    `most`: only that many contexts of each list, the first ones.
    """
    zero = torch.zeros_like(model.start)
    contexts, which, matrices = model.start[None], torch.zeros(1, dtype=torch.int64), []
    for candidates in lists:
        batch = Packed.of(candidates, model.output.weight.device)
        hidden, last = _read(model, batch)
        used, rows = which[:most].unique(return_inverse=True)
        shift = _shifts(model, contexts[used])
        result = []
        size = max(1, FLOATS // shift.numel())
        for h, words in zip(hidden.split(size), batch.targets.split(size), strict=True):
            logits = model.logits(h, zero)[:, None] + shift  # positions × contexts × vocabulary
            chosen = logits.gather(2, words[:, None, None].expand(-1, len(shift), 1))[..., 0]
            result.append(chosen - logits.logsumexp(dim=2))
        sums = batch.sums(torch.cat(result))
        matrices.append(sums[batch.which].T[rows].cpu())
        contexts, which = last, batch.which
    return matrices


def _shifts(model: ContextLM, contexts: Tensor) -> Tensor:
    """What contexts (C, H) add to the logits, (C, V)."""
    both = torch.cat([torch.zeros_like(contexts), contexts], dim=1)
    shift: Tensor = F.linear(model.projection(both), model.output.weight)
    return shift


@torch.inference_mode()
def beam(
    model: ContextLM, lists: Sequence[KBest], width: int
) -> tuple[float, tuple[int, ...], int]:
    """Best path through a document that a beam of `width` paths finds.

    Returns its log-probability, its candidates, and how many hypotheses were scored. All paths
    of a beam read the next sentence in one batch.
    """
    contexts, totals = model.start[None], model.start.new_zeros(1, dtype=torch.float64)
    paths: list[tuple[int, ...]] = [()]
    scored = 0
    for candidates in lists:
        batch, n = Packed.of(candidates, model.output.weight.device), len(contexts)
        hidden, last = _read(model, batch, contexts)
        result = _log_probs(model, hidden, batch.targets.repeat_interleave(n))
        sums = batch.sums(result.view(-1, n))[batch.which].T  # (contexts, K)
        scored += sums.numel()
        best = (totals[:, None] + sums.double()).flatten().topk(min(width, sums.numel()))
        parents, choices = best.indices // len(candidates), best.indices % len(candidates)
        contexts = last.view(-1, n, last.shape[1])[batch.which[choices], parents]
        totals = best.values
        chosen = zip(parents.tolist(), choices.tolist(), strict=True)
        paths = [(*paths[parent], choice) for parent, choice in chosen]
    return float(totals[0]), paths[0], scored
