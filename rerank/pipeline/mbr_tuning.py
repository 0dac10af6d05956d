"""`rerank tune-mbr`: the scale of minimum Bayes risk decoding, fitted to weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.batching import run_batch
from decoders.marginals import rng_for
from decoders.mbr import best, posterior_of, scale, standard_deviation
from decoders.result import Direction, Posterior
from decoders.reversal import direction_of, reversed_posterior, reversed_problem
from decoders.table import SEED
from rerank.commands.document_run import Batch, LinearModel, ListRun, choose_search
from rerank.commands.lists import Lists, read_targets
from rerank.commands.search import AUTO, UTILITY, Search, utilities_of
from rerank.errors import InputError, UsageError
from rerank.files.lines import InputFiles, digest
from rerank.files.outputs import check_outputs
from rerank.files.paths import display
from rerank.formats.translations import files_of
from rerank.formats.weights import Weights, kind_of, read_weights, refuse_all_zero, write_weights
from rerank.metrics import Metric, Rows
from rerank.metrics import metric as named_metric
from rerank.metrics.bleu import Bleu
from rerank.metrics.consensus import ExpectedUtility
from rerank.notices import Notices, Printer
from rerank.tuning.spread import SPREADS, SpreadChoice, choose_spread, folds_of
from rerank.version import __version__

_SEEN = (
    "the weights were tuned on these lists, on which their path of highest score looks better than "
    "it is; give documents that they were not tuned on"
)


@dataclass(frozen=True, slots=True)
class MbrTuning:
    """The weights that `tune_mbr` has written, and how their spread was chosen."""

    weights: Weights
    choice: SpreadChoice
    metric: str

    def to_text(self) -> str:
        """One line for people."""
        return f"{self.metric}: {self.choice.to_text()}"


def tune_mbr(
    lists: Lists,
    references: Sequence[str | Path],
    weights: str | Path,
    out: str | Path,
    *,
    search: Search = AUTO,
    metric: str = "bleu",
    tokenize: str = "none",
    notices: Notices,
    announce: Printer = lambda line: None,
    details: Printer = lambda line: None,
) -> MbrTuning:
    """Choose the spread of mbr for given weights; write these with it.

    search: options of mbr, without a scale; metric: a name of `rerank.registry.METRICS`; tokenize:
    for BLEU. Every document is decoded once for its path of highest score and once for each of
    `SPREADS`. Memory: a batch of documents, and 8 W bytes for each spread and sentence.
    """
    if search.method not in ("auto", "mbr"):
        raise UsageError(
            f"--search {search.method}: the spread is that of mbr; give --search mbr, or leave it "
            "out"
        )
    search = replace(search, method="mbr")
    if tokenize != "none" and metric != "bleu":
        raise UsageError("--tokenize: it is for --metric bleu")
    measure = Bleu(tokenize) if metric == "bleu" else named_metric(metric)
    files = [*lists.files, *files_of(references, "reference"), weights]
    inputs = InputFiles(files)
    check_outputs([out], files)
    kind_of(out, merged=False)
    given, source_name = read_weights(weights, notices), display(weights)
    refuse_all_zero(given, "mbr needs no scale for them, decode with them", source=source_name)
    model = LinearModel(given, source_name)
    documents, lines = read_targets(lists, references, notices, announce)
    with ListRun.open(lists, notices, documents=documents) as source:
        if _tuned_on(given, lists.kbest):
            notices.add(_SEEN, source=source_name)
        plain = choose_search(source, AUTO, announce)
        search = choose_search(source, search, announce)
        if source.scorers:
            source.estimate(plain, announce)
        targets = iter(documents.split(lines))
        sums: list[Rows] = []
        for batch in model.batches(source, plain):
            with source.searching():
                sums += _sums(batch, targets, search, measure)
        if all(one.shape[1] == 1 for one in sums):
            raise InputError("expected candidates to decode, found none", source=source.name)
        source.warn()
        inputs.check()
        source.report(announce, details)
    folds = folds_of([one.shape[1] for one in sums])
    whole = np.concatenate(sums, axis=1)
    *mbr, highest = np.stack([whole[:, fold].sum(axis=1) for fold in folds], axis=1)
    choice = choose_spread(np.stack(mbr), highest, measure)
    listed = ", ".join(f"{name}: {score:.2f}" for name, score in choice.by_spread().items())
    announce(f"{measure.name} by spread: {listed}")
    made = {
        **given.provenance,
        "mbr": {
            "rerank": __version__,
            "utility": search.options.utility or UTILITY,
            "word_reward": search.options.word_reward or 0.0,
            "objective": f"corpus {measure.name}",
            "metric": measure.signature(len(lines[0]) if lines else 0),
            **({"unreferenced": documents.n_left_out} if lists.drop_unreferenced else {}),
            **choice.to_provenance(),
        },
    }
    written = replace(given, mbr_spread=choice.spread, provenance=made)
    write_weights(out, written, notices=notices)
    return MbrTuning(written, choice, measure.name)


def _tuned_on(weights: Weights, kbest: str | Path) -> bool:
    """Whether the weights' provenance names these lists."""
    inputs = weights.provenance.get("inputs")
    if not isinstance(inputs, list) or not Path(kbest).is_file():
        return False
    found = digest(kbest)
    return any(isinstance(one, dict) and one.get("digest") == found for one in inputs)


def _sums(
    batch: Batch, targets: Iterator[Sequence[Sequence[bytes]]], search: Search, metric: Metric
) -> list[Rows]:
    """Statistics (C + 1, T, W) of each document's sentences: under each of `SPREADS`, and plain.

    The sentences without candidates are one more, summed.
    """
    forward = [document.problem(batch.weights) for document in batch.documents]
    turned = [direction_of(problem) is Direction.REVERSED for problem in forward]
    problems = [reversed_problem(p) if turn else p for p, turn in zip(forward, turned, strict=True)]
    names = [document.name for document in batch.documents]
    filled = [kbest for _, kbest in batch.lists if kbest.n]
    utilities = iter(utilities_of(search, filled))
    seed = SEED if search.options.seed is None else search.options.seed
    asked = search.options.given()
    given: dict[str, Any] = {name: asked[name] for name in ("particles", "lag") if name in asked}
    with np.errstate(over="ignore"):  # scores beyond float64 are −inf
        deviations = run_batch(problems, [standard_deviation.steps(one) for one in problems])
        posteriors = [
            run_batch(
                problems,
                [
                    posterior_of.steps(
                        problem, alpha=scale(spread, deviation), rng=rng_for(seed, name), **given
                    )
                    for problem, deviation, name in zip(problems, deviations, names, strict=True)
                ],
            )
            for spread in SPREADS
        ]
    of_documents = (
        tuple(reversed_posterior(one) if turn else one for one in own)
        for *own, turn in zip(*posteriors, turned, strict=True)
    )
    found = []
    for _, kbest, document, result in batch.each():
        rows, gaps = metric.of_lists(kbest, next(targets))
        chosen = np.zeros((len(SPREADS) + 1, 0, metric.width), rows.dtype)
        if document is not None:
            choices = _choices(next(of_documents), next(utilities), search)
            paths = np.stack([*choices, np.array(result.choices)])
            chosen = rows[document.offsets[:-1] + paths]
        found.append(np.concatenate([chosen, np.tile(gaps, (len(chosen), 1, 1))], axis=1))
    return found


def _choices(
    posteriors: Sequence[Posterior], utility: ExpectedUtility, search: Search
) -> NDArray[np.intp]:
    """Choices (C, S) of mbr under each of C posteriors of a document."""
    reward = search.options.word_reward or 0.0
    lists = zip(*(one.marginals for one in posteriors), strict=True)
    found = [best(utility, t, np.stack(rows), reward) for t, rows in enumerate(lists)]
    return np.stack(found, axis=1)
