r"""Exact line search over all paths of documents: CPU seconds per direction, and what it sees.

    python recipes/bench/documents.py --kbest LIST --docs DOCIDS --ref REF --lm NAME=DIR \
        --start WEIGHTS [--directions 20]

Along each direction every path of every document is a line; the search visits each interval on
which no document's best path changes. What it promises for its best step is checked against
Viterbi search of `decoders` at that step: any difference stops the script. The model is one of
order 1. CPU seconds are those of this process, one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from rerank.commands.list_run import ListRun
from rerank.commands.run import RunOptions
from rerank.commands.search import Search, search_documents
from rerank.commands.tuning_set import read_set
from rerank.formats.translations import read_with_documents
from rerank.formats.weight_files import read_weights
from rerank.metrics.bleu import Bleu, corpus_bleu
from rerank.notices import Notices
from rerank.options import settings_of
from rerank.scorers.model_options import LanguageModelOption
from rerank.tuning.exact.ascent import ChainSet, document_line
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import BLEU_GOAL
from rerank.tuning.objective import bleu_counts

CONTEXT = 0.1  # weight of a feature that the start weights lack


def main() -> None:
    """Read, search, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--kbest", "--docs", "--ref", "--lm", "--start"):
        parser.add_argument(option, required=True)
    parser.add_argument("--directions", type=int, default=20)
    options = parser.parse_args()
    notices = Notices()
    model = LanguageModelOption.of(*options.lm.split("=", 1))
    run = settings_of(RunOptions, kbest=options.kbest, docs=options.docs, lm=(model,))
    documents, lines = read_with_documents(options.docs, None, [options.ref], notices)
    given = read_weights(options.start, notices)
    with ListRun.open(run.inputs(), notices, run, documents=documents) as opened:
        features = TunedFeatures((), given, options.start)
        corpus = read_set(opened, documents.split(lines), [Bleu()], features, lambda line: None)
    weights = features.start(corpus.documents[0].space)
    weights[weights == 0] = CONTEXT
    began = time.process_time()
    chains = ChainSet.of_documents(corpus)
    print(f"chains of {len(corpus.documents)} documents: {time.process_time() - began:.2f} s")
    began = time.process_time()
    here = BLEU_GOAL.value(chains.decode(weights), weights)
    print(f"decoding them: {time.process_time() - began:.3f} s, BLEU {here:.3f}")
    rng, seconds, breaks = np.random.default_rng(1), [], []
    for n in range(options.directions + 1):
        direction = rng.standard_normal(len(weights)) / np.maximum(chains.spreads, 1e-12)
        if n < len(weights):
            direction = np.eye(len(weights))[n]
        if not (direction * chains.spreads).any():
            continue
        began = time.process_time()
        line = document_line(chains, chains.unaries(weights), (weights, direction), notices=notices)
        step = BLEU_GOAL.best(line, here)
        seconds.append(time.process_time() - began)
        breaks.append(len(line.breaks))
        there = weights + step.size * direction
        found = search_documents(corpus.documents, there, Search("viterbi"))
        sums = corpus.sums(tuple(one.choices for one in found))
        decoded = float(corpus_bleu(bleu_counts(sums)))
        if step.size and abs(decoded - step.value) > 1e-9:
            raise SystemExit(f"promised BLEU {step.value}, decoded {decoded}")
    del seconds[0]  # compilation
    print(
        f"{len(seconds)} directions: {np.mean(seconds):.3f} s each ({min(seconds):.3f} to "
        f"{max(seconds):.3f}), {min(breaks):,} to {max(breaks):,} changes of paths"
    )


if __name__ == "__main__":
    main()
