"""Perplexity and accuracy of the next sentence's topic: Tables 4 and 5 of Ghosh et al. 2016.

    python recipes/studies/ptb/topics.py --data DATA [--text 'bbc.{part}.txt'] \
      [--work WORK] [--epochs 4]

Learns topics on the training text and labels all texts with them (`rerank topics`), trains a
predictor for every row of the table and every hidden size, and measures it on the test text. DATA
holds the training, validation and test text, as `bbc.py` makes them. What was measured is kept in
WORK, and not trained again.

A predictor gives log p(T_{i+1} | s_i, T_i) (arXiv:1602.06291, §5). What the paper leaves open, and
what is done here: the topic is predicted once, after the last word of a sentence; every sentence
begins with `<s>`, so that one without words is read, too; the topic of a sentence enters every
cell, the first one included; a paragraph is a document; the LSTMs have peepholes as in eq. 1.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.contexts import ThoughtVector
from lm.corpus import (
    Corpus,
    PackedBatch,
    Segment,
    build_vocabulary,
    carried_segments,
    encode,
    intern,
    segments,
)
from lm.reading import WITHOUT_NOISE, Noise, generator_of
from lm.recurrences.gated import Peephole
from lm.sentences import Rows
from lm.side_information import SideText

HERE = Path(__file__).parent
PARTS = ("train", "valid", "test")
VOCABULARY, SEED = 10_000, 1
STREAMS, LENGTH = 16, 8  # documents side by side in training, sentences that gradients go through
RATE, DECAY, CLIP, DROPOUT = 3e-3, 1e-2, 5.0, 0.2
NONE = -1  # no topic, where there is no sentence
UNKNOWN_TOPIC = 2  # less than the id of the first label of a vocabulary by one
Topics: TypeAlias = NDArray[np.int64]
Predictions: TypeAlias = tuple[Tensor, Tensor, Tensor, Rows]
"""Logits (M, C) and targets (M,) of a segment's sentences that have a target, Σ −log p of the words
of a joint target, and the contexts after the segment."""


@dataclass(frozen=True)
class Row:
    """A row: where it is in the paper, its inputs there, and its predictor.

    kind: `unrolled`, an LSTM for each sentence; `rolled-up`, one for all sentences of a document;
    `bag`, a feed-forward network over the mean of a sentence's embeddings. joint: whether the words
    are predicted as well; next_words: whether those of the sentence whose topic is predicted are
    read, beside the topic of the sentence before (§5.3).
    """

    place: str
    inputs: str
    kind: str
    reads: tuple[str, ...]
    joint: bool = False
    next_words: bool = False


ROWS = (
    Row("Table 4", "W", "unrolled", ("words",)),
    Row("Table 4", "ST", "unrolled", ("topics",)),
    Row("Table 4", "W + ST", "unrolled", ("words", "topics")),
    Row("§5.1", "W", "rolled-up", ("words",)),
    Row("§5.1", "ST", "rolled-up", ("topics",)),
    Row("§5.1", "W + ST", "rolled-up", ("words", "topics")),
    Row("Table 5", "W + PST", "rolled-up", ("words", "thought")),
    Row("§5, joint target", "W + ST", "unrolled", ("words", "topics"), joint=True),
    Row("§5.3, next words", "W", "bag", ("words",), next_words=True),
    Row("§5.3, next words", "W + ST", "unrolled", ("words", "topics"), next_words=True),
)


@dataclass(frozen=True)
class Figures:
    """Of predicted topics: how many, how many were the most probable one, and Σ −log p."""

    predictions: int
    correct: int
    nats: float = math.inf

    def cell(self) -> str:
        """`2.43 / 71.0%`: perplexity and accuracy."""
        perplexity = (
            f"{math.exp(self.nats / self.predictions):.2f}" if self.nats < math.inf else "–"
        )
        return f"{perplexity} / {self.correct / self.predictions:.1%}"


@dataclass(frozen=True)
class Text:
    """A text, and the topics (S,) of its sentences: 0 for one that the training text has not."""

    corpus: Corpus
    topics: Topics

    @property
    def follows(self) -> NDArray[np.bool_]:
        """Whether (S,) sentences have one before them in their document."""
        result = np.ones(len(self.topics), dtype=np.bool_)
        result[self.corpus.documents[:-1][np.diff(self.corpus.documents) > 0]] = False
        return result


@dataclass(frozen=True)
class Task:
    """A text as the predictor of a row reads it.

    known: (S,) topic that is known of a sentence, its own or that of the one before; targets: (S,)
    topic that is to be predicted; `NONE` where there is none.
    """

    corpus: Corpus
    known: Topics
    targets: Topics

    @classmethod
    def of(cls, text: Text, row: Row) -> Task:
        """A text without words where the row reads none."""
        corpus, topics, follows = text.corpus, text.topics, text.follows
        place = np.flatnonzero(follows)
        before, after = (np.full(len(topics), NONE) for _ in range(2))
        before[place], after[place - 1] = topics[place - 1], topics[place]
        if "words" not in row.reads:
            corpus = Corpus(corpus.tokens[:0], corpus.sentences * 0, corpus.documents)
        if row.next_words:
            return cls(corpus, before, np.where(follows, topics, NONE))
        return cls(corpus, topics, after)


class Predictor(nn.Module, ABC):
    """Base: p(T) = softmax(W h + b), with embeddings of the words and topics that are read."""

    def __init__(self, row: Row, words: int, topics: int, size: int) -> None:
        super().__init__()
        self.row, self.size = row, size
        self.embedding = table(words, size) if "words" in row.reads else None
        self.topics = table(topics, size) if "topics" in row.reads else None
        self.output = nn.Linear(size, topics)

    def start(self, batch: int) -> Rows:
        """Contexts (B rows) of the first sentences of documents; here nothing."""
        return Rows.of(self.output.bias.new_zeros(batch, 0))

    @abstractmethod
    def read(
        self, task: Task, segment: Segment, contexts: Rows, noise: Noise | None
    ) -> Predictions:
        """Predictions after the sentences of a segment, in contexts (B rows)."""

    def of_topics(self, known: Topics) -> Tensor:
        """Embeddings (M, K) of topics (M,); 0 for `NONE`."""
        if self.topics is None:
            raise TypeError("this predictor reads no topics")
        ids = torch.from_numpy(known)
        vectors: Tensor = self.topics(ids.clamp(min=0))
        return vectors * (ids >= 0)[:, None]

    def predicted(self, task: Task, chosen: Topics, h: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and targets of those of the sentences `chosen` (N,) with a target; h: (N, H)."""
        targets = torch.from_numpy(task.targets[chosen])
        return self.output(h[targets >= 0]), targets[targets >= 0]


class SentenceLSTM(Predictor):
    """An LSTM over `<s>` and a sentence's words, whose last state predicts a topic (§5.1, §5.4).

    The input of every cell is [x_t T u] (eq. 3): the word's embedding, that of the topic, and the
    thought vector u of the previous sentence's last hidden state (fig. 8). Without words each
    sentence is one input. A joint target adds a softmax over the words and `</s>`. Contexts are
    the states after the last sentence, in which the next one begins if `rolled-up`.
    """

    def __init__(self, row: Row, words: int, topics: int, size: int) -> None:
        super().__init__(row, words, topics, size)
        self.carried = row.kind == "rolled-up"
        self.thought = ThoughtVector(size, None) if "thought" in row.reads else None
        columns = size * (("words" in row.reads) + ("topics" in row.reads))
        columns += 0 if self.thought is None else self.thought.width
        self.recurrence = Peephole(columns, size)
        self.words = nn.Linear(size, words) if row.joint else None

    def start(self, batch: int) -> Rows:
        """The state of zeros."""
        return Rows(self.recurrence.start(batch))

    def read(
        self, task: Task, segment: Segment, contexts: Rows, noise: Noise | None
    ) -> Predictions:
        """All sentences are one batch where none depends on the one before; else those of a row."""
        begins = torch.from_numpy(segment.begins)
        contexts = contexts.put(begins, self.start(len(contexts)).take(begins))
        if not self.carried and self.thought is None:
            chosen = segment.sentences[segment.sentences >= 0]
            logits, targets, nll, _ = self.sentences(task, chosen, self.start(len(chosen)), noise)
            return logits, targets, nll, contexts
        columns = []
        for row in segment.sentences:
            index = np.flatnonzero(row >= 0)
            if not len(index):
                break
            alive = torch.from_numpy(index)
            *result, after = self.sentences(task, row[index], contexts.take(alive), noise)
            columns.append(result)
            contexts = contexts.put(alive, after)
        logits, targets, nlls = zip(*columns, strict=True)
        return torch.cat(logits), torch.cat(targets), torch.stack(nlls).sum(), contexts

    def sentences(
        self, task: Task, chosen: Topics, before: Rows, noise: Noise | None
    ) -> Predictions:
        """Those after B sentences side by side; the words are left out without noise."""
        drop = (noise or WITHOUT_NOISE).features
        batch = PackedBatch.of(task.corpus, chosen)
        sentence, inputs = batch.order[batch.rows], []
        if self.embedding is not None:
            inputs.append(self.embedding(batch.inputs))
        if self.topics is not None:
            inputs.append(self.of_topics(task.known[chosen])[sentence])
        if self.thought is not None:
            inputs.append(self.thought(self.recurrence.output(before.tensors))[sentence])
        initial = before.tensors if self.carried else self.recurrence.start(len(chosen))
        initial = tuple(tensor[batch.order] for tensor in initial)
        projected = self.recurrence.project(drop(torch.cat(inputs, dim=1)))
        states = self.recurrence.unroll(projected, initial, batch.sizes)
        after = Rows(tuple(tensor[batch.positions.last] for tensor in states))
        h = drop(self.recurrence.output(after.tensors))
        nll = h.new_zeros(())
        if noise and self.words is not None:
            logits = self.words(drop(self.recurrence.output(states)))
            nll = F.cross_entropy(logits, batch.targets, reduction="sum")
        return *self.predicted(task, chosen, h), nll, after


class BagNetwork(Predictor):
    """BOW-DNN (§5.3): h = tanh(W x + b) of x, the mean of a sentence's embeddings."""

    def __init__(self, row: Row, words: int, topics: int, size: int) -> None:
        super().__init__(row, words, topics, size)
        self.hidden = nn.Linear(size, size)

    def read(
        self, task: Task, segment: Segment, contexts: Rows, noise: Noise | None
    ) -> Predictions:
        """The sentences of a segment are one batch."""
        if self.embedding is None:
            raise TypeError("a bag has words")
        drop = (noise or WITHOUT_NOISE).features
        chosen = segment.sentences[segment.sentences >= 0]
        own = SideText(task.corpus.tokens, task.corpus.sentences).take(chosen)
        words, begins = (torch.from_numpy(x.astype(np.int64)) for x in (own.tokens, own.sentences))
        means = F.embedding_bag(words, self.embedding.weight, begins[:-1], mode="mean")
        h = drop(torch.tanh(self.hidden(drop(means))))
        return *self.predicted(task, chosen, h), h.new_zeros(()), contexts


def table(rows: int, columns: int) -> nn.Embedding:
    """Embeddings of U(±0.1)."""
    result = nn.Embedding(rows, columns)
    nn.init.uniform_(result.weight, -0.1, 0.1)
    return result


@torch.no_grad()
def measure(model: Predictor, task: Task) -> Figures:
    """Figures of a predictor on a text."""
    model.eval()
    contexts, order = model.start(32), range(task.corpus.n_documents)
    nats, correct, predictions = 0.0, 0, 0
    for segment in segments(task.corpus, order, streams=32, length=16):
        logits, targets, _, contexts = model.read(task, segment, contexts, None)
        nats += float(F.cross_entropy(logits, targets, reduction="none").double().sum())
        correct += int((logits.argmax(dim=1) == targets).sum())
        predictions += len(targets)
    return Figures(predictions, correct, nats)


def train(model: Predictor, task: Task, valid: Task, epochs: int, patience: int) -> None:
    """Train a predictor; in the end it has the weights of the best validation.

    The loss is the mean −log p of the topics of an update, and with a joint target that of the
    words beside it. The learning rate rises over the first 2 % of the updates, then falls to zero.
    """
    parameters = list(model.parameters())
    matrices, vectors = ([p for p in parameters if (p.ndim > 1) is wide] for wide in (True, False))
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(
        groups, lr=RATE, weight_decay=DECAY, betas=(0.9, 0.99), fused=True
    )
    streams = max(1, min(STREAMS, task.corpus.n_documents // 4))
    best, best_weights, failures, update = math.inf, model.state_dict(), 0, 0
    for epoch in range(epochs):
        sizes = {"streams": streams, "length": LENGTH, "seed": SEED, "epoch": epoch}
        parts = list(carried_segments(task.corpus, **sizes))
        contexts, updates = model.start(streams), epochs * len(parts)
        model.train()
        for segment in parts:
            noise = Noise(DROPOUT, 0.0, generator_of(SEED, update))
            logits, targets, word_nll, after = model.read(task, segment, contexts, noise)
            contexts = after.detach()
            if n := len(targets):
                warm = min(1.0, (update + 1) / min(200.0, 0.02 * updates + 1))
                for group in optimiser.param_groups:
                    group["lr"] = RATE * warm * max(1.0 - update / updates, 1e-3)
                optimiser.zero_grad(set_to_none=True)
                nll = F.cross_entropy(logits, targets, reduction="none").sum()
                torch.autograd.backward((nll + word_nll) / n)
                nn.utils.clip_grad_norm_(parameters, CLIP)
                optimiser.step()
            update += 1
        result = measure(model, valid)
        print(f"epoch {epoch + 1}  valid {result.cell()}", file=sys.stderr, flush=True)
        failures += 1
        if (now := result.nats / result.predictions) < best:
            best, failures = now, 0
            best_weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        if failures >= patience > 0:
            break
    model.load_state_dict(best_weights)


def baselines(train: Text, test: Text, n_topics: int) -> Iterator[tuple[str, Figures]]:
    """Figures on the test text of what counts of the training text give.

    p(T) has one more for each topic; p(T | T′) is interpolated with it as Witten & Bell 1991 do:
    (n(T′, T) + t p(T)) / (n(T′) + t), with the number t of topics that follow T′.
    """
    (own_before, own_after), (before, after) = map(neighbours, (train, test))
    counts = np.zeros((n_topics, n_topics))
    np.add.at(counts, (own_before, own_after), 1)
    frequencies = counts.sum(axis=0) + 1
    frequencies /= frequencies.sum()
    kinds = np.count_nonzero(counts, axis=1)[:, None]
    given = (counts + kinds * frequencies) / np.maximum(counts.sum(axis=1)[:, None] + kinds, 1)
    given[kinds[:, 0] == 0] = frequencies
    n = len(after)
    nats = -float(np.log(frequencies[after]).sum())
    yield "most frequent topic", Figures(n, int((after == frequencies.argmax()).sum()), nats)
    yield "topic of the sentence before", Figures(n, int((after == before).sum()))
    nats = -float(np.log(given[before, after]).sum())
    yield "bigram of topics", Figures(n, int((given[before].argmax(axis=1) == after).sum()), nats)


def neighbours(text: Text) -> tuple[Topics, Topics]:
    """Topics (N,) of each sentence of a document with a next one, and of the next one."""
    place = np.flatnonzero(text.follows)
    return text.topics[place - 1], text.topics[place]


def lines_of(path: Path) -> list[bytes]:
    """The lines of a text, or of the file of its topics."""
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


def in_ids(files: Sequence[Path], most: int) -> tuple[list[Corpus], int]:
    """Texts in ids of the words of the first one, and the size of its vocabulary."""
    words, raw = intern(lines_of(files[0]))
    vocabulary = build_vocabulary(words, raw, most)
    return [encode(lines_of(file), vocabulary) for file in files], len(vocabulary)


def learn_topics(data: Path, name: str, label: Path, kind: str, number: int) -> None:
    """Learn the topics of the training text and label all texts, unless that was done."""
    if not (label / "topics.json").exists():
        options = ["--topic-model", kind, "--topics-number", str(number), "--out", str(label)]
        rerank(["topics", "learn", str(data / name.format(part="train")), *options])
    for part in PARTS:
        out = label.with_name(f"{label.name}.{part}")
        if not out.exists():
            text = str(data / name.format(part=part))
            rerank(["topics", "label", "--model", str(label), text, "--out", str(out)])


def rerank(command: Sequence[str]) -> None:
    """Run a command of rerank, which is shown."""
    print("$ rerank", *command, file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "rerank", *command], stdout=sys.stderr, check=True)


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--text", default="bbc.{part}.txt", show_default=True)
@click.option("--work", type=click.Path(path_type=Path), default=HERE / "work")
@click.option("--topic-model", default="kmeans", show_default=True)
@click.option("--topics-number", default=50, show_default=True)
@click.option("--hidden", multiple=True, default=(64, 128), show_default=True)
@click.option("--epochs", default=10, show_default=True, help="At most.")
@click.option("--patience", default=3, show_default=True, help="Epochs without a new best; 0: all.")
@click.option("--threads", default=1, show_default=True)
def main(
    data: Path,
    text: str,
    work: Path,
    topic_model: str,
    topics_number: int,
    hidden: tuple[int, ...],
    epochs: int,
    patience: int,
    threads: int,
) -> None:
    """Print the table: perplexity / accuracy of the topics of next sentences in the test text."""
    torch.set_num_threads(threads)
    work.mkdir(parents=True, exist_ok=True)
    label = work / f"topics-{topic_model}-{topics_number}"
    learn_topics(data, text, label, topic_model, topics_number)
    columns, words = in_ids([data / text.format(part=part) for part in PARTS], VOCABULARY)
    labels, topics = in_ids([label.with_name(f"{label.name}.{part}") for part in PARTS], 1 << 31)
    texts = {
        part: Text(column, np.maximum(beside.tokens.astype(np.int64) - UNKNOWN_TOPIC, 0))
        for part, column, beside in zip(PARTS, columns, labels, strict=True)
    }
    topics -= UNKNOWN_TOPIC
    print(f"| paper | inputs | {' | '.join(f'{size} hidden units' for size in hidden)} |")
    print("|---|---|" + "---|" * len(hidden), flush=True)
    for number, row in enumerate(ROWS):
        cells = []
        for size in hidden:
            name = f"{label.name}-row{number}-hidden{size}-epochs{epochs}-patience{patience}.json"
            done = work / name
            if not done.exists():
                print(f"{row}, {size} hidden units", file=sys.stderr, flush=True)
                torch.manual_seed(SEED)
                kind = BagNetwork if row.kind == "bag" else SentenceLSTM
                model = kind(row, words, topics, size)
                tasks = {part: Task.of(own, row) for part, own in texts.items()}
                train(model, tasks["train"], tasks["valid"], epochs, patience)
                result = measure(model, tasks["test"])
                done.write_text(json.dumps(vars(result)))
            cells.append(Figures(**json.loads(done.read_text())).cell())
        print(f"| {row.place} | {row.inputs} | {' | '.join(cells)} |", flush=True)
    for baseline, figures in baselines(texts["train"], texts["test"], topics):
        cells = " | ".join([figures.cell()] * len(hidden))
        print(f"| baseline | {baseline} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
