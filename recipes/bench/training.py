"""Training speed: words a second of each model, beside a plain `nn.LSTM` language model.

    python recipes/bench/training.py --data DATA [--model NAME …] [--size 128] [--paper]

The plain model is what one writes first and well: packed sentences through `nn.LSTM`, a linear
layer over all words, cross-entropy, fused AdamW; it sees no context. That beside `attention` reads
the source by a bidirectional one, attends between and after two more, and has an adaptive softmax,
for the model itself has classes. All models have the same
embedding and hidden size, vocabulary, text and number of sentences in an update. Ours are timed
twice: with the exact softmax and AdamW in float32, as the plain model, and with the recipe
`strong`; with --paper in place of both with the recipe `paper`, whose updates are of few sentences.
Seconds are those of CPU, one thread, updates only; measured in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

import click
import numpy as np
import torch
from attentive import PlainAttention
from tabulate import tabulate
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from lm.corpus import SEGMENTS, Corpus, build_vocabulary, intern, renumber
from lm.model import Config, DocumentLM
from lm.side_information import SideText
from lm.training.settings import Settings, recipe
from lm.training.trainer import Trainer
from lm.vocabulary import END, START
from lm.zoo import ZOO
from rerank.files.lines import read_lines
from rerank.notices import Notices

MODELS = ("rnnlm", "codclm", "ccdclm", "adclm")
TEXT, SOURCE = "tvsub-zh-en/lm.train.en.gz", "tvsub-zh-en/lm.train.zh.xz"
LINES, WORDS = 200_000, 10_000
PLAIN, ATTENTION = "nn.LSTM, plain", "nn.LSTM and attention, plain"
WARM_UP, TURNS = 5, 3


class PlainLM(nn.Module):
    """Embedding, one `nn.LSTM` layer, and a linear layer over V words."""

    def __init__(self, words: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, size)
        self.output = nn.Linear(size, words)

    def loss(self, inputs: PackedSequence, targets: PackedSequence) -> torch.Tensor:
        """Mean −log p of the targets."""
        hidden, _ = self.lstm(inputs._replace(data=self.embedding(inputs.data)))
        return nn.functional.cross_entropy(self.output(hidden.data), targets.data)


class Adaptive(PlainAttention):
    """`PlainAttention` with an adaptive softmax."""

    def __init__(self, words: int, size: int) -> None:
        super().__init__(words, words, size, size)
        self.output = nn.AdaptiveLogSoftmaxWithLoss(size, words, [words // 10, words // 2])

    def loss(
        self, inputs: PackedSequence, targets: PackedSequence, source: PackedSequence
    ) -> torch.Tensor:
        """Mean −log p of the targets, given source sentences in the same order."""
        features = self.features(inputs, self.attend_each(source)).float()
        with torch.autocast(features.device.type, enabled=False):  # which its parts do not survive
            loss: torch.Tensor = self.output(features, targets.data).loss
        return loss


def plain_updates(corpus: Corpus, model: PlainLM | Adaptive, settings: Settings) -> Iterator[int]:
    """Updates of a plain model: the words predicted by each."""
    device = next(model.parameters()).device
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    segments = SEGMENTS[settings.segments](
        corpus, streams=settings.streams, length=settings.segment, seed=1, epoch=0
    )
    for segment in segments:
        chosen = segment.sentences[segment.sentences >= 0]
        bounds = zip(corpus.sentences[chosen], corpus.sentences[chosen + 1], strict=True)
        words = [torch.from_numpy(corpus.tokens[a:b].astype(np.int64)) for a, b in bounds]
        start, end = torch.tensor([START]), torch.tensor([END])
        both = ([torch.cat([start, w]) for w in words], [torch.cat([w, end]) for w in words])
        inputs, targets = (pack_sequence(x, enforce_sorted=False).to(device) for x in both)
        optimiser.zero_grad(set_to_none=True)
        if isinstance(model, Adaptive):
            side = corpus.side["source"].rows(chosen)
            lines = [row[row > 0] - 1 for row in side]
            source = pack_sequence(lines, enforce_sorted=False).to(device)
            torch.autograd.backward(model.loss(inputs, targets, source))
        else:
            torch.autograd.backward(model.loss(inputs, targets))
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        yield len(targets.data)


def our_updates(
    corpus: Corpus, config: Config, settings: Settings, device: torch.device | str = "cpu"
) -> Iterator[int]:
    """Updates of one of our models: the words predicted by each."""
    once = replace(settings, validations=1)  # at the end of an epoch, which is not reached
    model = DocumentLM.seeded(config, 1).to(device)
    trainer = Trainer(model, corpus, corpus, settings=once)
    before = 0
    for _ in trainer.run():
        yield trainer.progress.predictions - before
        before = trainer.progress.predictions


def of_recipe(name: str, model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of a recipe for a model, sizes left out: those of `Config`, and of `Settings`."""
    values = recipe(name, ZOO[model].recipe)
    sizes = {"vocabulary", "embed", "hidden"}
    found: list[dict[str, Any]] = []
    for kind in (Config, Settings):
        fields = kind.__dataclass_fields__.keys() - sizes
        found.append({key: value for key, value in values.items() if key in fields})
    return found[0], found[1]


def strong(name: str) -> Settings:
    """The recipe `strong` of a model, in bfloat16."""
    own = of_recipe("strong", name)[1] | {"precision": "bfloat16"}
    if ZOO[name].order == 0:  # without earlier sentences
        own |= {"context_noise": 0.0}
    if name == "attention":  # which has classes
        own |= {"negatives": 0}
    return Settings(**own)


def exact_softmax(name: str) -> Settings:
    """The training of the plain model, with as many sentences in an update as `strong` has."""
    return Settings(streams=strong(name).streams, negatives=0, dropout=0.0, context_dropout=0.0)


Runs: TypeAlias = dict[tuple[str, str], Callable[[], Iterator[int]]]


def paper_runs(corpus: Corpus, models: Sequence[str], size: int) -> Runs:
    """Updates by the recipe `paper`, and of the plain model on as many sentences."""
    runs: Runs = {}
    for name in models:
        shape, training = of_recipe("paper", name)
        config, settings = Config(name, WORDS + 3, size, size, **shape), Settings(**training)
        runs.setdefault(
            (PLAIN, "paper"),
            lambda s=settings: plain_updates(corpus, PlainLM(WORDS + 3, size), s),
        )
        runs[name, "paper"] = lambda c=config, s=settings: our_updates(corpus, c, s)
    return runs


def runs_of(corpus: Corpus, models: Sequence[str], size: int) -> Runs:
    """Updates with the exact softmax and by the recipe `strong`, and of the plain models."""
    vocabulary = WORDS + 3
    exact = {name: exact_softmax(name) for name in ("rnnlm", *models)}
    runs: Runs = {
        (PLAIN, "exact softmax"): lambda: plain_updates(
            corpus, PlainLM(vocabulary, size), exact["rnnlm"]
        )
    }
    if "attention" in models:
        runs[ATTENTION, "adaptive softmax"] = lambda: plain_updates(
            corpus, Adaptive(vocabulary, size), exact["attention"]
        )
    for name in models:
        for label, settings, tied in (
            ("exact softmax", exact[name], False),
            ("strong", strong(name), True),
        ):
            config = Config(name, vocabulary, size, size, tied=tied)
            if name == "attention":
                config = replace(config, source_words=vocabulary)
            runs[name, label] = lambda c=config, s=settings: our_updates(corpus, c, s)
    return runs


def rate(updates: Iterator[int], number: int) -> float:
    """Words a second of CPU of the next updates."""
    began = process_time()
    words = sum(islice(updates, number))
    return words / (process_time() - began)


def read_text(data: Path) -> Corpus:
    """The beginning of the subtitles with their source, in ids."""
    texts = []
    for name in (TEXT, SOURCE):
        words, corpus = intern(islice(read_lines(data / name, Notices()), LINES))
        texts.append(renumber(corpus, words, build_vocabulary(words, corpus, WORDS)))
    text, source = texts
    return replace(text, side={"source": SideText(source.tokens, source.sentences)})


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--model", "models", multiple=True, default=MODELS)
@click.option("--size", default=128, show_default=True, help="Embedding and hidden size.")
@click.option("--updates", default=30, show_default=True, help="Updates in a turn, of three.")
@click.option("--paper", is_flag=True, help="The recipe `paper`; its size is 48.")
def main(data: Path, models: tuple[str, ...], size: int, updates: int, paper: bool) -> None:
    """Print words a second of CPU, and times the plain model's time a word."""
    torch.set_num_threads(1)
    corpus = read_text(data)
    runs = (paper_runs if paper else runs_of)(corpus, models, size)
    started = {key: make() for key, make in runs.items()}
    for updates_of in started.values():
        rate(updates_of, WARM_UP)
    rates: dict[tuple[str, str], list[float]] = {key: [] for key in started}
    for _ in range(TURNS):
        for key, updates_of in started.items():
            rates[key].append(rate(updates_of, updates))
    plain = {name: float(np.median(found)) for (name, _), found in rates.items()}
    rows = []
    for (name, label), found in rates.items():
        beside = plain[ATTENTION if name in (ATTENTION, "attention") else PLAIN]
        rate_of = float(np.median(found))
        rows.append([name, label, f"{rate_of:,.0f}", f"{beside / rate_of:.2f}"])
    headings = ["model", "training", "words/s", "time ÷ plain"]
    print(tabulate(rows, headings, tablefmt="github", colalign=("left", "left", "right", "right")))


if __name__ == "__main__":
    main()
