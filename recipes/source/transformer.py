"""An encoder-decoder Transformer in plain PyTorch beside `attention`, at equal words seen.

    python recipes/source/transformer.py --train train.en --source train.zh --valid valid.en \
        --valid-source valid.zh --words 2000000 --rate attention=0.002 --rate transformer=0.001

Both have the words, the batches and their order, the head, the precision, the optimiser (AdamW,
clipped) and the schedule of the rate in common, and about as many parameters; only the network
differs. Prints perplexity a word of the validation text, `</s>` included, for each `--rate`, and
the training's minutes of CPU. Without dropout: no text is read twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
import torch
from torch import Tensor, nn

from lm.batches import SEGMENTS
from lm.corpus import Corpus, build_vocabulary, intern, renumber, spelled
from lm.heads.class_softmax import ClassSoftmax
from lm.model import Config, DocumentLM, n_parameters
from lm.side_information import SideText
from lm.training.optimisers import SCHEDULES, Position, clip
from lm.training.settings import Settings
from lm.training.trainer import Trainer
from lm.vocabulary import END, START
from rerank.files.lines import read_lines
from rerank.notices import Notices

GROUPS = 4  # of a batch's sentences, by length, each padded on its own
LAYERS, HEADS, INNER, LONGEST = 2, 4, 2, 512  # INNER: times the columns
CLIP = {"attention": 5.0, "transformer": 1.0}


class Transformer(nn.Module):
    """log p(target | source) of a pre-norm Transformer under the class-factored softmax."""

    def __init__(self, words: int, source_words: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.source = nn.Embedding(source_words + 1, size)  # 0 is padding
        for table in (self.embedding, self.source):
            nn.init.normal_(table.weight, std=size**-0.5)
        own: Any = {"dropout": 0.0, "batch_first": True, "norm_first": True, "activation": "gelu"}
        layer = nn.TransformerEncoderLayer(size, HEADS, INNER * size, **own)
        end = nn.LayerNorm(size)
        encoder = nn.TransformerEncoder(layer, LAYERS, end, enable_nested_tensor=False)
        shape = (size, HEADS, LAYERS, LAYERS, INNER * size)
        self.layers = nn.Transformer(*shape, **own, custom_encoder=encoder)
        self.head = ClassSoftmax(size, 0, self.embedding, tied=True)
        angles = torch.arange(LONGEST)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
        places = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
        self.register_buffer("places", places, persistent=False)

    def placed(self, embedded: Tensor) -> Tensor:
        """Scaled embeddings (B, L, D) and sinusoids of their places."""
        size = embedded.shape[2]
        return embedded * size**0.5 + self.get_buffer("places")[: embedded.shape[1]]

    def forward(self, inputs: Tensor, source: Tensor, targets: Tensor) -> Tensor:
        """−log p (N,) of the targets (B, L), of which −1 is padding."""
        padding = source == 0
        states = self.layers(
            self.placed(self.source(source)),
            self.placed(self.embedding(inputs)),
            tgt_mask=self.layers.generate_square_subsequent_mask(
                inputs.shape[1], device=inputs.device
            ).bool(),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        present = targets >= 0
        features = self.head.features(states[present], None)
        return self.head.exact_loss(features, targets[present])


def ended(rows: Tensor, end: int) -> Tensor:
    """Rows (B, L) of ids, padded with zeros, with one more id at the end of each."""
    longer = torch.cat([rows, rows.new_zeros(len(rows), 1)], dim=1)
    return longer.scatter(1, (rows > 0).sum(dim=1, keepdim=True), end)


def losses(model: Transformer, corpus: Corpus, chosen: np.ndarray) -> list[Tensor]:
    """−log p of the words and ends of some sentences, a tensor for each group of similar length."""
    lengths, device = np.diff(corpus.sentences)[chosen], model.embedding.weight.device
    found = []
    for group in np.array_split(chosen[np.argsort(lengths, kind="stable")], GROUPS):
        if len(group):
            rows, source = (side.rows(group).to(device) for side in (corpus, corpus.side["source"]))
            inputs = torch.cat([rows.new_full((len(rows), 1), START), (rows - 1).clamp(0)], dim=1)
            found.append(model(inputs, ended(source, END + 1), ended(rows, END + 1) - 1))
    return found


@dataclass(frozen=True, slots=True)
class Texts:
    """Training and validation text with their source sentences, in ids."""

    train: Corpus
    valid: Corpus
    source_words: int
    words: int

    @classmethod
    def read(cls, files: tuple[tuple[Path, Path], tuple[Path, Path]], size: int) -> Texts:
        """Target and source of both texts; words and characters as `train-lm` has them."""
        interned = [[intern(read_lines(path, Notices())) for path in pair] for pair in files]
        target, known = (build_vocabulary(*interned[0][side], size) for side in (0, 1))
        own = build_vocabulary(*spelled(*interned[0][1], known), size)
        both = []
        for (words, text), source in interned:
            read, beside = spelled(*source, known)
            beside = renumber(beside, read, own)
            side = {"source": SideText(beside.tokens, beside.sentences)}
            both.append(replace(renumber(text, words, target), side=side))
        return cls(*both, source_words=len(own), words=len(target))


def transformer(
    texts: Texts, settings: Settings, size: int, device: torch.device
) -> tuple[float, int]:
    """Perplexity on the validation text after a training, and the number of parameters."""
    torch.manual_seed(settings.seed)
    model = Transformer(texts.words, texts.source_words, size).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=settings.weight_decay)
    segments = SEGMENTS["carried"]
    of_epoch = partial(segments, texts.train, streams=settings.streams, length=settings.segment)
    epoch = list(of_epoch(seed=settings.seed, epoch=0))
    predictions = len(texts.train.tokens) + texts.train.n_sentences
    updates = max(1, round((settings.words or 0) * len(epoch) / predictions))
    for update in range(updates):
        number, place = divmod(update, len(epoch))
        if number and not place:
            epoch = list(of_epoch(seed=settings.seed, epoch=number))
        chosen = epoch[place].sentences
        with torch.autocast(device.type, torch.bfloat16):
            nats = torch.cat(losses(model, texts.train, chosen[chosen >= 0]))
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(nats.mean())
        clip(model.parameters(), settings.clip)
        now = Position(update, updates, update / updates, 0)
        for group in optimiser.param_groups:
            group["lr"] = SCHEDULES["annealed"](settings.learning_rate, now)
        optimiser.step()
    parts = np.array_split(np.arange(texts.valid.n_sentences), 1 + texts.valid.n_sentences // 500)
    with torch.no_grad():
        every = torch.cat([x for part in parts for x in losses(model, texts.valid, part)])
    return math.exp(float(every.double().mean())), n_parameters(model)


def attention(
    texts: Texts, settings: Settings, size: int, device: torch.device
) -> tuple[float, int]:
    """Those of our model."""
    shape = {"embed": size, "hidden": size, "source_words": texts.source_words}
    model = DocumentLM.seeded(Config("attention", texts.words, **shape), settings.seed)
    run = Trainer(model.to(device), texts.train, texts.valid, settings=settings).run()
    *_, report = (report for report in run if report is not None)
    return report.valid_perplexity, n_parameters(model)


MODELS = {"attention": attention, "transformer": transformer}


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--train", type=Path, required=True)
@click.option("--source", type=Path, required=True)
@click.option("--valid", type=Path, required=True)
@click.option("--valid-source", type=Path, required=True)
@click.option("--words", type=int, required=True, help="Read in training, </s> among them.")
@click.option("--rate", "rates", multiple=True, required=True, help="MODEL=LEARNING-RATE.")
@click.option("--vocab", default=16_000, show_default=True)
@click.option("--size", default=256, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--device", default="cpu", show_default=True)
def main(
    rates: tuple[str, ...], words: int, size: int, seed: int, device: str, **files: Any
) -> None:
    """Train each model at each rate, and print a row for it."""
    torch.set_num_threads(1)
    pairs = (files["train"], files["source"]), (files["valid"], files["valid_source"])
    texts = Texts.read(pairs, files["vocab"])
    common = Settings(words=words, seed=seed, precision="bfloat16", optimiser="adamw", streams=64)
    common = replace(common, dropout=0.0, negatives=0, validations=1)
    for one in rates:
        name, _, rate = one.partition("=")
        settings = replace(common, learning_rate=float(rate), clip=CLIP[name])
        began, cpu = perf_counter(), process_time()
        perplexity, parameters = MODELS[name](texts, settings, size, torch.device(device))
        minutes, cpu = (perf_counter() - began) / 60, (process_time() - cpu) / 60
        click.echo(
            f"{name}\t{parameters:,} parameters\t{words:,} words\trate {rate}\t"
            f"perplexity {perplexity:.2f}\t{minutes:.1f} min, {cpu:.1f} of CPU"
        )


if __name__ == "__main__":
    main()
