"""`attention` in plain PyTorch: three `nn.LSTM`, packed, and dot attention between and after two.

`training.py` trains it beside ours with an adaptive softmax. `scoring.py` gives it the weights of
a model and times it as a good engineer would score lists: a list is a packed batch of its distinct
candidates, which share the states of the source, and words are sorted by their class. Nothing
here is imported from `lm.scoring`. Scores are log p of a candidate's words and `</s>`, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from good import Packed
from obvious import KBest, reordered
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from lm.model import DocumentLM

Attend = Callable[[PackedSequence], Tensor]  # values (N, H) of packed hidden states


class PlainAttention(nn.Module):
    """Embeddings, `nn.LSTM` over the source, and two over the target, with dot attention."""

    def __init__(self, words: int, source_words: int, embed: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, embed)
        self.source = nn.Embedding(source_words, embed)
        self.encoder = nn.LSTM(embed, hidden, bidirectional=True)
        self.join = nn.Linear(2 * hidden, hidden, bias=False)
        self.lower, self.upper = nn.LSTM(embed, hidden), nn.LSTM(2 * hidden, hidden)
        self.merge = nn.Linear(2 * hidden, hidden)

    def features(self, inputs: PackedSequence, attend: Attend) -> Tensor:
        """What the head receives (N, H) at each position."""
        below, _ = self.lower(inputs._replace(data=self.embedding(inputs.data)))
        joined = torch.cat([below.data, attend(below)], dim=1)
        above, _ = self.upper(below._replace(data=joined))
        return torch.tanh(self.merge(torch.cat([above.data, attend(above)], dim=1)))

    def attend_each(self, source: PackedSequence) -> Attend:
        """Attention of sentences to a source each, in the same order."""
        read, _ = self.encoder(source._replace(data=self.source(source.data)))
        states, lengths = pad_packed_sequence(read, batch_first=True)
        states = self.join(states)
        masked = (torch.arange(states.shape[1]) >= lengths[:, None]).to(states.device)

        def attend(hidden: PackedSequence) -> Tensor:
            queries, sizes = pad_packed_sequence(hidden, batch_first=True)
            energies = torch.bmm(queries, states.transpose(1, 2))
            shares = torch.softmax(energies.masked_fill(masked[:, None], -1e30), dim=2)
            values = torch.bmm(shares, states)
            packed = pack_padded_sequence(values, sizes, batch_first=True, enforce_sorted=False)
            return packed.data

        return attend

    def attend_one(self, source: Sequence[int]) -> Attend:
        """Attention of candidates to the one source that they share."""
        if not source:
            return lambda hidden: torch.zeros_like(hidden.data)
        read, _ = self.encoder(self.source(torch.tensor(source)))
        states = self.join(read)
        return lambda hidden: torch.softmax(hidden.data @ states.T, dim=1) @ states


class TrainedAttention(PlainAttention):
    """With the weights of a model, and its classes of words: class c has the ids c² … c² + 2c."""

    def __init__(self, words: int, source_words: int, embed: int, hidden: int) -> None:
        super().__init__(words, source_words, embed, hidden)
        self.projection = nn.Linear(hidden, embed, bias=False)
        self.classes = nn.Linear(embed, math.isqrt(words - 1) + 1)
        self.bias = nn.Parameter(torch.zeros(words))

    @classmethod
    @torch.no_grad()
    def of(cls, model: DocumentLM) -> TrainedAttention:
        """A copy of the weights of `model`, on a CPU."""
        config, weights = model.config, model.state_dict()
        if (config.recurrence, config.layers, config.tied) != ("lstm", 1, True):
            raise ValueError("the script knows one LSTM layer and tied embeddings")
        script = cls(config.vocabulary, config.source_words or 0, config.embed, config.hidden)
        script.embedding.weight.copy_(weights["embedding.weight"])
        script.source.weight.copy_(weights["context.embedding.weight"])
        for lstm, name, suffix in (
            (script.encoder, "context.ahead", ""),
            (script.encoder, "context.back", "_reverse"),
            (script.lower, "recurrence", ""),
            (script.upper, "fusion.upper", ""),
        ):
            for own, theirs in (("weight_ih", "lower"), ("weight_hh", "recurrent")):
                matrix = reordered(weights[f"{name}.{theirs}.0"])
                getattr(lstm, f"{own}_l0{suffix}").copy_(matrix)
            getattr(lstm, f"bias_ih_l0{suffix}").copy_(reordered(weights[f"{name}.bias.0"]))
            getattr(lstm, f"bias_hh_l0{suffix}").zero_()
        script.join.weight.copy_(weights["context.join.weight"])
        both = weights["fusion.of_hidden.weight"], weights["fusion.of_value.weight"]
        script.merge.weight.copy_(torch.cat(both, dim=1))
        script.merge.bias.copy_(weights["fusion.of_hidden.bias"])
        script.projection.weight.copy_(weights["head.layer.projection.weight"])
        script.classes.weight.copy_(weights["head.classes"])
        script.classes.bias.copy_(weights["head.class_bias"])
        script.bias.copy_(weights["head.bias"])
        return script.eval()

    def log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        """Log-probabilities (N,) of targets: of their class, and within it."""
        features, own = self.projection(features), targets.double().sqrt().long()
        result = -F.cross_entropy(self.classes(features), own, reduction="none")
        for c, rows in enumerate(own.argsort().split(torch.bincount(own).tolist())):
            ids = slice(c * c, (c + 1) ** 2)
            logits = F.linear(features[rows], self.embedding.weight[ids], self.bias[ids])
            result[rows] -= F.cross_entropy(logits, targets[rows] - c * c, reduction="none")
        return result


@torch.inference_mode()
def scores(
    model: TrainedAttention, lists: Sequence[KBest], sources: Sequence[Sequence[int]]
) -> list[Tensor]:
    """Scores (K,) of each list, given its source."""
    batches = [Packed.of(candidates, torch.device("cpu")) for candidates in lists]
    features = [
        model.features(batch.inputs, model.attend_one(source))
        for batch, source in zip(batches, sources, strict=True)
    ]
    result = model.log_probs(torch.cat(features), torch.cat([batch.targets for batch in batches]))
    parts = result.split([len(part) for part in features])
    return [batch.sums(part)[batch.which] for batch, part in zip(batches, parts, strict=True)]
