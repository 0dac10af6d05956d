"""The scripts that `run.py` times ours against, where `recipes/bench` has none for a GPU.

`Attention` is the model `attention` in plain PyTorch, as a good engineer writes it in an hour:
`nn.LSTM`, the source encoded once a list, candidates in padded batches, a chunk of logits at a
time. `precision` says how products of float32 are computed. Nothing is imported from our engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from lm.model import DocumentLM
from lm.vocabulary import END, START

KBest = Sequence[Sequence[int]]  # word ids of the candidates of one sentence
LOGITS = {"cpu": 1 << 20, "cuda": 1 << 27}  # in memory at once
LISTS = {"cpu": 1, "cuda": 32}  # in a batch


@contextmanager
def precision(name: str, device: torch.device) -> Iterator[None]:
    """Products of float32 in full, or as TF32 on CUDA, or in bfloat16 by autocast."""
    backends: Any = torch.backends
    switches = (backends.cuda.matmul, backends.cudnn.rnn)
    before = [switch.fp32_precision for switch in switches]
    for switch in switches:
        switch.fp32_precision = "ieee" if name == "float32" else "tf32"
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=name == "bfloat16"):
            yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.fp32_precision = value


def _lstm(weights: dict[str, Tensor], names: Sequence[str]) -> nn.LSTM:
    """One layer of `nn.LSTM`, of a direction for each name of ours; gates i, f, g, o."""

    def turned(rows: Tensor) -> Tensor:
        i, f, o, g = rows.chunk(4)
        return torch.cat([i, f, g, o])

    wide, inputs = weights[f"{names[0]}.lower.0"].shape
    result = nn.LSTM(inputs, wide // 4, batch_first=True, bidirectional=len(names) == 2)
    for name, suffix in zip(names, ("", "_reverse"), strict=False):
        of = {"weight_ih": "lower", "weight_hh": "recurrent", "bias_ih": "bias"}
        for theirs, ours in of.items():
            getattr(result, f"{theirs}_l0{suffix}").copy_(turned(weights[f"{name}.{ours}.0"]))
        getattr(result, f"bias_hh_l0{suffix}").zero_()
    return result


class Attention(nn.Module):
    """The model `attention` with an LSTM, with the weights of ours."""

    @torch.no_grad()
    def __init__(self, model: DocumentLM) -> None:
        super().__init__()
        weights = model.state_dict()
        self.words, self.source = (
            nn.Embedding.from_pretrained(weights[f"{of}embedding.weight"].clone())
            for of in ("", "context.")
        )
        self.encoder = _lstm(weights, ["context.ahead", "context.back"])
        self.below, self.above = (_lstm(weights, [n]) for n in ("recurrence", "fusion.upper"))
        self.join = weights["context.join.weight"]
        self.merge = torch.cat(
            [weights["fusion.of_hidden.weight"], weights["fusion.of_value.weight"]], dim=1
        )
        self.merge_bias = weights["fusion.of_hidden.bias"]
        self.output, self.bias = model.head.weight(), model.head.bias
        self.classes, self.class_bias = weights["head.classes"], weights["head.class_bias"]
        self.project = weights.get("head.layer.projection.weight")
        self.eval().to(self.bias.device)

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Log p (N,) of targets: of the class ⌊√id⌋, and of the word among those of the class."""
        own = targets.double().sqrt().long()
        of_class = F.linear(hidden, self.classes, self.class_bias).log_softmax(dim=1)
        if self.project is not None:
            raise ValueError("the script knows a head that is not tied")
        logits = F.linear(hidden, self.output, self.bias).float()
        widest = 2 * math.isqrt(len(self.bias) - 1) + 1
        ids = own.square()[:, None] + torch.arange(widest, device=own.device)
        outside = (ids >= (own + 1).square()[:, None]) | (ids >= len(self.bias))
        within = logits.gather(1, ids.clamp(max=len(self.bias) - 1))
        log_z = within.masked_fill(outside, -torch.inf).logsumexp(dim=1)
        chosen = logits.gather(1, targets[:, None])[:, 0]
        return of_class.gather(1, own[:, None])[:, 0].float() + chosen - log_z

    @torch.inference_mode()
    def scores(self, lists: Sequence[KBest], source: Sequence[Sequence[int]]) -> list[Tensor]:
        """Scores (K,) of each list, given its source sentence, some lists at a time."""
        each, found = LISTS[self.bias.device.type], []
        for begin in range(0, len(lists), each):
            part = slice(begin, begin + each)
            found += self._batch(lists[part], source[part])
        return found

    def _batch(self, lists: Sequence[KBest], source: Sequence[Sequence[int]]) -> list[Tensor]:
        device = self.bias.device
        lines = [torch.tensor(line, dtype=torch.int64) for line in source]
        lengths = torch.tensor([len(line) for line in lines])
        embedded = self.source(pad_sequence(lines, batch_first=True).to(device))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states = F.linear(
            pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0], self.join
        )
        absent = (torch.arange(states.shape[1]) >= lengths[:, None]).to(device)
        texts = [(b, words) for b, candidates in enumerate(lists) for words in candidates]
        rows = torch.tensor([b for b, _ in texts], device=device)
        inputs, targets = (
            pad_sequence([torch.tensor(x) for x in columns], batch_first=True).to(device)
            for columns in ([[START, *w] for _, w in texts], [[*w, END] for _, w in texts])
        )
        sizes = torch.tensor([len(words) + 1 for _, words in texts])
        mask = (torch.arange(inputs.shape[1]) < sizes[:, None]).to(device)

        def attended(hidden: Tensor) -> Tensor:
            energies = torch.bmm(hidden, states[rows].transpose(1, 2))
            shares = energies.masked_fill(absent[rows][:, None], -1e30).softmax(dim=2)
            return torch.cat([hidden, torch.bmm(shares.to(states.dtype), states[rows])], dim=2)

        hidden, _ = self.below(self.words(inputs))
        hidden, _ = self.above(attended(hidden))
        units = torch.tanh(F.linear(attended(hidden)[mask], self.merge, self.merge_bias))
        most = max(64, LOGITS[device.type] // len(self.bias))
        chunks = zip(units.split(most), targets[mask].split(most), strict=True)
        log_probs = torch.zeros(mask.shape, device=device)
        log_probs[mask] = torch.cat([self.log_probs(h, t) for h, t in chunks])
        return list(log_probs.sum(dim=1).cpu().split([len(candidates) for candidates in lists]))
