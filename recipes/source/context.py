"""Perplexity of references in several contexts, under models that read the source and documents.

    python recipes/source/context.py --lm DIR --text test.en --source test.zh --docs test.docids \
        --chosen test.out

Each sentence is read without context (null), after the sentences before it in another document
(other), after those that a decoder has chosen (chosen), and after its own document's (gold), each
with the source sentences beside them; its own source is given in all four. Context counts if
null < chosen < gold: perplexities fall in this order. p is a sign test over documents.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from tabulate import tabulate

from lm.batches import PackedBatch
from lm.checkpoint import SavedModel, load_model
from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.reading import entered, read_on
from lm.sentences import Rows
from rerank.files.lines import read_lines
from rerank.metrics.significance import sign_test
from rerank.notices import Notices

TOGETHER = 256  # sentences scored at once


def corpus_of(saved: SavedModel, text: str, source: str, docs: str) -> Corpus:
    """A text with its source as the model reads them; a blank line is a sentence without words."""
    lines, beside, names = ([*read_lines(path, Notices())] for path in (text, source, docs))
    if not len(lines) == len(beside) == len(names):
        found = ", ".join(map(str, map(len, (lines, beside, names))))
        raise click.UsageError(f"{text}, {source}, {docs}: expected equal lengths, found {found}")
    ids = iter(saved.vocabulary.encode(line.split()) for line in lines)
    documents = [
        [next(ids) for _ in own] for _, own in groupby(names, lambda line: line.split()[0])
    ]
    side = saved.encode_side("source", b"".join(b"%s\n" % line for line in beside))
    return replace(Corpus.of(documents), side={"source": side})


@torch.no_grad()
def contexts(model: DocumentLM, corpus: Corpus) -> Rows:
    """Contexts (S rows) after the sentences before each one of its document."""
    begins, lengths = corpus.documents[:-1], np.diff(corpus.documents)
    rows, found, places = model.context.start(len(begins)), [], []
    for t in range(int(lengths.max())):
        alive = np.flatnonzero(lengths > t)
        index = torch.from_numpy(alive)
        own = rows.take(index)
        found.append(own)
        places.append(begins[alive] + t)
        rows = rows.put(index, read_on(model, corpus, begins[alive] + t, own))
    return Rows.cat(found).take(torch.from_numpy(np.argsort(np.concatenate(places))))


def elsewhere(corpus: Corpus) -> NDArray[np.int64]:
    """For each sentence (S,) the one in its place in the next document, which begins anew there."""
    spans = [*pairwise(corpus.documents.tolist())]
    others = [*spans[1:], *spans[:1]]
    both = zip(spans, others, strict=True)
    return np.concatenate([a + np.arange(end - begin) % (b - a) for (begin, end), (a, b) in both])


@torch.no_grad()
def nats(model: DocumentLM, corpus: Corpus, before: Rows) -> NDArray[np.float64]:
    """−log p (D,) of documents, each sentence read in the context of its row."""
    found = np.zeros(corpus.n_sentences)
    for begin in range(0, corpus.n_sentences, TOGETHER):
        chosen = np.arange(begin, min(begin + TOGETHER, corpus.n_sentences))
        rows = entered(model, corpus, chosen, before.take(torch.from_numpy(chosen)))
        batch = PackedBatch.of(corpus, chosen, rows.device)
        features = model.features(model.unroll(batch, rows), rows)
        nll = model.head.nll(features, batch.targets).double().numpy()
        owners = chosen[batch.order.numpy()[batch.rows.numpy()]]
        np.add.at(found, owners, nll)
    return np.add.reduceat(found, corpus.documents[:-1])


@click.command()
@click.option("--lm", "lms", multiple=True, required=True)
@click.option("--text", required=True)
@click.option("--source", required=True)
@click.option("--docs", required=True)
@click.option("--chosen")
@click.option("--threads", default=1)
def main(
    lms: tuple[str, ...], text: str, source: str, docs: str, chosen: str | None, threads: int
) -> None:
    """A row for each model."""
    torch.set_num_threads(threads)
    rows = []
    for lm in lms:
        saved = load_model(Path(lm))
        model, corpus = saved.model.eval(), corpus_of(saved, text, source, docs)
        gold = contexts(model, corpus)
        read = {
            "null": model.context.start(corpus.n_sentences),
            "other": gold.take(torch.from_numpy(elsewhere(corpus))),
            "gold": gold,
        }
        if chosen is not None:
            read["chosen"] = contexts(model, corpus_of(saved, chosen, source, docs))
        sums = {name: nats(model, corpus, own) for name, own in read.items()}
        n = len(corpus.tokens) + corpus.n_sentences
        row: dict[str, object] = {"model": lm}
        row |= {name: f"{math.exp(own.sum() / n):.3f}" for name, own in sums.items()}
        orders = [("null", "gold"), ("other", "gold"), ("null", "chosen"), ("chosen", "gold")]
        for worse, better in orders:
            if {worse, better} <= sums.keys():
                gains = sums[worse] - sums[better]
                up, down = int((gains > 0).sum()), int((gains < 0).sum())
                p = sign_test(up, down)
                row[f"{worse} < {better}"] = f"{up}/{down}, p {p:.2g}"
        rows.append(row)
    click.echo(tabulate(rows, headers="keys", disable_numparse=True))


if __name__ == "__main__":
    main()
