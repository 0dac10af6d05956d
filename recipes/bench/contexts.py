"""Speed of scoring under every model: our engine beside packed batches of the same parts.

    python recipes/bench/contexts.py --data DATA [--model NAME …] [--set 'tvsub test']

Random weights, 128 units, 10,000 words, one thread. A model of order 0 scores each candidate
once, one whose contexts only add to the logits after each candidate of the sentence before, the
others after each of 8 contexts. The peer reads the candidates of a list as one packed batch for
each context, with the same weights; it knows neither tries nor products of pairs. Prints
hypotheses, candidates in one context, in a second of CPU, and fails where two scores differ by
more than 1e-3 nats. Side information is made up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import click
import numpy as np
import torch
from lists import FILES, KBest, Set, Text
from numpy.typing import NDArray
from tabulate import tabulate
from torch import Tensor

from lm.batches import PackedBatch
from lm.composition import load
from lm.corpus import Corpus
from lm.laws import read_by_words
from lm.model import Config, DocumentLM
from lm.scoring import ScoringEngine, after, independent, pairs
from lm.sentences import Rows
from lm.side_information import KINDS, LABELS, information_of
from lm.trie import Candidates
from lm.vocabulary import SPECIAL
from lm.zoo import ZOO

WIDTH, RUNS, TOLERANCE = 8, 3, 1e-3
WORDS, SIZE, SOURCE_WORDS, LABELS_MADE_UP = 10_000, 128, 1_000, 8
LARGER = ("rlm-bow-ef-1", "rlm-bow-lf-4", "rlm-seqbow-lf-4", "rlm-seqbow-att-lf-4")
Scores = list[NDArray[np.float32]]  # log-probabilities of the candidates, an array a list


def model_of(name: str) -> DocumentLM:
    """A model with random weights."""
    composition = ZOO[name]
    kinds = information_of(load(composition.context))
    shape = {"vocabulary": WORDS, "embed": SIZE, "hidden": SIZE, "layers": 1}
    sizes = {"source": SOURCE_WORDS, "relations": len(SPECIAL) + LABELS_MADE_UP}
    shape |= {KINDS[kind]: sizes[kind] for kind in kinds if kind in sizes}
    return DocumentLM.seeded(Config(name, **composition.adapted(shape)), 1).eval()


@torch.no_grad()
def contexts_of(model: DocumentLM, data: Set, side: Rows | None) -> list[Rows]:
    """Contexts in which each list is scored.

    One; or after each candidate of the list before where a pass serves all; or after `WIDTH`.
    """
    context, found = model.context, []
    encoded = None if side is None else context.encoded(side)
    most = None if model.additive and model.order == 1 else WIDTH
    following = context.start(1)
    for t, candidates in enumerate(data.lists):
        given = context.start(1) if data.first[t] else following
        if encoded is not None:
            given = context.enter(given, encoded.take(torch.full((len(given),), t)))
        found.append(given.take(slice(0, 1)) if model.order == 0 else given)
        one = given.take(slice(0, 1))
        read = [read_by_words(model, words, one) for words in candidates[:most]]
        following = Rows.cat([context.advance(one, context.summary(words)) for words in read])
    return found


@torch.no_grad()
def packed(model: DocumentLM, candidates: KBest, contexts: Rows) -> NDArray[np.float64]:
    """Scores (N, K) of a list: its candidates as one packed batch for each of N contexts."""
    corpus = Corpus.of([candidates])
    batch = PackedBatch.of(corpus, np.arange(len(candidates)))
    rows = []
    for n in range(len(contexts)):
        given = contexts.take(torch.full((len(candidates),), n))
        features = model.features(model.unroll(batch, given), given)
        nll = model.head.nll(features, batch.targets)
        sums = torch.zeros(len(candidates)).index_add_(0, batch.order[batch.rows], -nll)
        rows.append(sums.numpy())
    return np.stack(rows)


def ours(model: DocumentLM, data: Set, side: Rows | None, contexts: Sequence[Rows]) -> Scores:
    """Scores (N, K) of each list by our engine."""
    engine, lists = ScoringEngine.of(model), Candidates.of(data.lists)
    if model.order == 0 and side is None:
        return [scores[None] for scores in independent(engine, lists)]
    if model.order == 0 or (model.order == 1 and model.additive):
        return pairs(engine, lists, np.array(data.first), side)
    requests = [(lists.part(t, t + 1), given) for t, given in enumerate(contexts)]
    return [scores for scores, _ in after(engine, requests)]


def seconds(work: Callable[[], object], runs: int) -> float:
    """Least CPU time of some runs."""
    least = float("inf")
    for _ in range(runs):
        begin = process_time()
        work()
        least = min(least, process_time() - begin)
    return least


def made_up(kind: str, sentences: int) -> Tensor:
    """Side information of a kind: a label for each sentence, or twelve source words."""
    dice = torch.Generator().manual_seed(1)
    first, last, words = len(SPECIAL) + 1, SOURCE_WORDS, 12
    if kind in LABELS:
        last, words = first + LABELS_MADE_UP, 1
    return torch.randint(first, last, (sentences, words), generator=dice)


def row_of(name: str, data: Set, most: int) -> tuple[dict[str, str], float]:
    """Figures of a model, and the largest difference of two scores; most: the peer's contexts."""
    model, lists, side = model_of(name), data.lists, None
    if model.context.side_information:
        side = Rows.of(*(made_up(kind, len(lists)) for kind in model.context.side_information))
    contexts = contexts_of(model, data, side)
    few = [given.take(slice(0, most)) for given in contexts]
    found = ours(model, data, side, contexts)
    peer = [packed(model, c, given) for c, given in zip(data.lists, few, strict=True)]
    difference = max(float(np.abs(a[: len(b)] - b).max()) for a, b in zip(found, peer, strict=True))
    n_ours = sum(scores.size for scores in found)
    n_peer = sum(scores.size for scores in peer)
    rate = n_ours / seconds(lambda: ours(model, data, side, contexts), RUNS)
    peer_rate = n_peer / seconds(
        lambda: [packed(model, c, given) for c, given in zip(data.lists, few, strict=True)], 1
    )
    cells = {
        "model": f"`{name}`",
        "order": "unbounded" if model.order is None else str(model.order),
        "contexts of a list": f"{np.mean([len(given) for given in contexts]):.0f}",
        "ours": f"{rate:,.0f}",
        "packed": f"{peer_rate:,.0f}",
        "ratio": f"{rate / peer_rate:.{1 if rate > 10 * peer_rate else 2}f}",
    }
    return cells, difference


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--set", "name", type=click.Choice(list(FILES)), default="tvsub test")
@click.option("--model", "models", multiple=True, help="Of `rerank list models` [default: all].")
@click.option("--sentences", default=10, show_default=True, help="Of the set.")
@click.option("--contexts", "most", default=8, show_default=True, help="The peer's, of a list.")
def main(data: Path, name: str, models: tuple[str, ...], sentences: int, most: int) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    text = Text.read(data, name, sentences)
    lists = text.encoded(text.vocabulary(WORDS))
    rows, worst = [], 0.0
    for model in models or (*ZOO, *LARGER):
        cells, difference = row_of(model, lists, most)
        rows.append(cells)
        worst = max(worst, difference)
        click.echo(f"{model}: {cells['ratio']}, differs by {difference:.0e}", err=True)
    align = ["left"] * 2 + ["right"] * 4
    print(tabulate(rows, "keys", tablefmt="github", colalign=align, disable_numparse=True))
    if not worst <= TOLERANCE:
        sys.exit(f"scores differ by more than {TOLERANCE} nats")


if __name__ == "__main__":
    main()
