"""The script one would write to score k-best lists: plain PyTorch, no trick.

It is what `scoring.py` times the engine of `lm.scoring` against, and a second opinion on its
scores: nothing here is imported from that engine. A list is a padded batch, its logits are all
in memory, and every context is a pass of its own. `loop_pairs` is what a second thought gives.
Scores are log p of a candidate's words and `</s>`, in nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from lm.model import DocumentLM
from lm.vocabulary import END, START

KBest = Sequence[Sequence[int]]  # word ids of the candidates of one sentence


class ContextLM(nn.Module):
    """An LSTM language model with a context vector at every input or at the output, or neither."""

    def __init__(self, vocabulary: int, embed: int, hidden: int, place: str, tied: bool) -> None:
        super().__init__()
        features = hidden * (2 if place == "output" else 1)
        self.place = place
        self.embedding = nn.Embedding(vocabulary, embed)
        self.lstm = nn.LSTM(embed + hidden * (place == "input"), hidden, batch_first=True)
        self.projection = nn.Linear(features, embed, bias=False) if tied else nn.Identity()
        self.output = nn.Linear(embed if tied else features, vocabulary)
        self.start = nn.Parameter(torch.zeros(hidden))  # the context before the first sentence

    @classmethod
    @torch.no_grad()
    def of(cls, model: DocumentLM) -> ContextLM:
        """A plain PyTorch model with the weights of `model`."""
        config, weights = model.config, model.state_dict()
        if (config.recurrence, config.layers) != ("lstm", 1):
            raise ValueError("the script knows one LSTM layer")
        place = {"rnnlm": "none", "codclm": "output", "ccdclm": "input"}[config.model]
        script = cls(config.vocabulary, config.embed, config.hidden, place, config.tied)
        script.embedding.weight.copy_(weights["embedding.weight"])
        script.lstm.weight_ih_l0.copy_(reordered(weights["recurrence.lower.0"]))
        script.lstm.weight_hh_l0.copy_(reordered(weights["recurrence.recurrent.0"]))
        script.lstm.bias_ih_l0.copy_(reordered(weights["recurrence.bias.0"]))
        script.lstm.bias_hh_l0.zero_()
        if config.tied:
            script.projection.weight.copy_(weights["head.projection.weight"])
            script.output.weight = script.embedding.weight
        else:
            script.output.weight.copy_(weights["head.output"])
        script.output.bias.copy_(weights["head.bias"])
        if place != "none":
            script.start.copy_(weights["context.first"])
        return script.eval().to(weights["embedding.weight"].device)

    def hidden(self, inputs: Tensor, context: Tensor | None = None) -> Tensor:
        """Hidden states (K, L, H) of inputs (K, L); context: (H,), concatenated to each."""
        x = self.embedding(inputs)
        if context is not None:
            x = torch.cat([x, context.expand(*inputs.shape, -1)], dim=-1)
        states: Tensor = self.lstm(x)[0]
        return states

    def logits(self, hidden: Tensor, context: Tensor | None = None) -> Tensor:
        """Logits (…, V) of hidden states (…, H) with a context (H,), if there is one."""
        if context is not None:
            hidden = torch.cat([hidden, context.expand(*hidden.shape[:-1], -1)], dim=-1)
        logits: Tensor = self.output(self.projection(hidden))
        return logits


def reordered(rows: Tensor) -> Tensor:
    """Gates i, f, o, g in the order of `nn.LSTM`: i, f, g, o."""
    i, f, o, g = rows.chunk(4)
    return torch.cat([i, f, g, o])


@dataclass
class Batch:
    """A list padded to its longest candidate: (K, L) inputs `<s> …`, targets `… </s>`, mask."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor

    @classmethod
    def of(cls, candidates: KBest, device: torch.device) -> Batch:
        """The batch of one list."""
        inputs = pad_sequence([torch.tensor([START, *c]) for c in candidates], batch_first=True)
        targets = pad_sequence([torch.tensor([*c, END]) for c in candidates], batch_first=True)
        lengths = torch.tensor([len(c) + 1 for c in candidates])
        mask = torch.arange(inputs.shape[1]) < lengths[:, None]
        return cls(inputs.to(device), targets.to(device), mask.to(device))

    def scores(self, logits: Tensor) -> Tensor:
        """Log-probabilities (K,) of the candidates, from logits (K, L, V)."""
        log_probs = logits.log_softmax(dim=-1)
        chosen = log_probs.gather(-1, self.targets[..., None])[..., 0]
        return (chosen * self.mask).sum(dim=1)

    def final(self, hidden: Tensor) -> Tensor:
        """Hidden states (K, H) after the last words, from all of them (K, L, H)."""
        last = self.mask.sum(dim=1) - 1
        return hidden[torch.arange(len(hidden), device=hidden.device), last]


def _batches(model: ContextLM, lists: Sequence[KBest]) -> Iterator[Batch]:
    device = model.output.weight.device
    return (Batch.of(candidates, device) for candidates in lists)


@torch.no_grad()
def independent(model: ContextLM, lists: Sequence[KBest]) -> list[Tensor]:
    """Scores (K,) of each list under a model without context, one list a batch."""
    return [b.scores(model.logits(model.hidden(b.inputs))).cpu() for b in _batches(model, lists)]


@torch.no_grad()
def pairs(model: ContextLM, lists: Sequence[KBest], most: int | None = None) -> list[Tensor]:
    """Scores (K_prev, K) of a document's lists after each candidate of the list before.

    The first matrix is (1, K). The list is scored anew for each context, as a script does that
    has a function for it. `most`: only that many contexts of each list, the first ones.
    """
    contexts, matrices = model.start[None], []
    for batch in _batches(model, lists):
        rows = [
            batch.scores(model.logits(model.hidden(batch.inputs), context))
            for context in contexts[:most]
        ]
        matrices.append(torch.stack(rows).cpu())
        contexts = batch.final(model.hidden(batch.inputs))
    return matrices


@torch.no_grad()
def loop_pairs(model: ContextLM, lists: Sequence[KBest], most: int | None = None) -> list[Tensor]:
    """Scores as by `pairs`, but what does not depend on the context is computed once a list.

    The context is added to the logits, so that logits = A + B[l]: A (tokens, V) of the hidden
    states, padding left out, and B (K_prev, V) of the contexts. Only the sum and its normaliser
    are repeated.
    """
    contexts, matrices = model.start[None], []
    for batch in _batches(model, lists):
        hidden = model.hidden(batch.inputs)
        candidate, targets = batch.mask.nonzero()[:, 0], batch.targets[batch.mask]
        zero = torch.zeros_like(model.start)
        a = model.logits(hidden[batch.mask], zero)
        used = contexts[:most]
        b = torch.stack([model.logits(zero, context) for context in used]) - model.output.bias
        numerators = a.gather(1, targets[:, None])[:, 0]
        rows = []
        for shift in b:
            log_probs = numerators + shift[targets] - (a + shift).logsumexp(dim=1)
            rows.append(log_probs.new_zeros(len(hidden)).index_add(0, candidate, log_probs))
        matrices.append(torch.stack(rows).cpu())
        contexts = batch.final(hidden)
    return matrices


@torch.no_grad()
def beam(
    model: ContextLM, lists: Sequence[KBest], width: int
) -> tuple[float, tuple[int, ...], int]:
    """Best path through a document that a beam of `width` paths finds.

    Returns its log-probability, its candidates, and how many hypotheses were scored. The context
    is at every input, so that each path scores the whole list of the next sentence anew.
    """
    paths: list[tuple[float, tuple[int, ...], Tensor]] = [(0.0, (), model.start)]
    scored = 0
    for batch in _batches(model, lists):
        totals, finals = [], []
        for total, _, context in paths:
            hidden = model.hidden(batch.inputs, context)
            totals.append(batch.scores(model.logits(hidden)).double() + total)
            finals.append(batch.final(hidden))
        n = len(batch.inputs)
        scored += len(paths) * n
        best = torch.cat(totals).topk(min(width, len(paths) * n))
        extended = zip(best.values.tolist(), best.indices.tolist(), strict=True)
        paths = [(s, (*paths[i // n][1], i % n), finals[i // n][i % n]) for s, i in extended]
    return paths[0][0], paths[0][1], scored
