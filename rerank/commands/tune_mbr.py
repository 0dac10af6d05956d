"""`rerank tune-mbr`: the scale of minimum Bayes risk decoding, fitted to weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rerank.corpus.reading import tokenize_option
from rerank.errors import InputError, UsageError
from rerank.notices import Printer
from rerank.options import Command, option, part, record
from rerank.registry import METRICS
from rerank.report.measures import tokenizer_of
from rerank.runs.options import SHARING, Messages, ReferenceFiles, RunOptions
from rerank.runs.search import AUTO, UTILITY, SearchOptions
from rerank.values import FILE, MemberName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from decoders.result import Posterior
    from rerank.formats.weights import Weights
    from rerank.metrics import Metric, Rows
    from rerank.metrics.consensus import ExpectedUtility
    from rerank.runs.document_run import Batch
    from rerank.runs.search import Search

_SEEN = (
    "the weights were tuned on these lists, on which their path of highest score looks better than "
    "it is; give documents that they were not tuned on"
)


@record
class MbrWeights:
    """Weights to decode with, and where they go with the spread."""

    weights: str = option(
        "Feature weights to decode with: JSON, rescore.ini, moses.ini or run*.dense.", type=FILE
    )
    out: str = option("Weights with the spread: .json (or -) or .ini.", type=FILE)


@record
class CorpusMetricOptions:
    """What the spread maximises."""

    metric: str = option("Corpus metric to maximise.", type=MemberName(METRICS), default="bleu")
    tokenize: str | None = tokenize_option()

    def check(self) -> None:
        """UsageError for a tokenizer of another metric."""
        if self.tokenize is not None and self.metric != "bleu":
            raise UsageError("--tokenize: it is for --metric bleu")

    def load(self, references: Sequence[str], announce: Printer) -> Metric:
        """The metric; BLEU with the tokenizer for these references."""
        from rerank.metrics import metric
        from rerank.metrics.bleu import Bleu

        if self.metric == "bleu":
            return Bleu(tokenizer_of(self.tokenize, references, announce))
        return metric(self.metric)


@record
class TuneMbrOptions:
    """Options of `rerank tune-mbr`."""

    run: RunOptions = part(RunOptions, without=SHARING)
    references: ReferenceFiles = part(
        ReferenceFiles, "Lists and documents", required={"references"}
    )
    weights: MbrWeights = part(MbrWeights, "Weights")
    objective: CorpusMetricOptions = part(CorpusMetricOptions, "What is maximised")
    searching: SearchOptions = part(SearchOptions, "Search", without={"beam", "alpha", "gap"})
    messages: Messages = part(Messages, "Messages")


def tune_mbr(options: TuneMbrOptions) -> None:
    r"""Choose how flat the posterior is for `decode --search mbr`, by held-out documents.

    Its scale has a good default; another is taken if it is better by more than a standard error.
    Give documents that the weights were not tuned on. Every document is decoded once for its path
    of highest score and once for each scale.

    Example:
      rerank tune-mbr --kbest dev2.nbest.gz --docs dev2.docids --ref dev2.en \
        --weights weights.json --out mbr.json
    """
    from rerank.files.lines import InputFiles
    from rerank.files.outputs import check_outputs
    from rerank.files.paths import display
    from rerank.files.signature import run_entries
    from rerank.formats.translations import files_of
    from rerank.formats.weight_files import read_weights
    from rerank.formats.weights import kind_of, write_weights
    from rerank.runs.document_run import LinearModel
    from rerank.runs.list_run import ListRun
    from rerank.runs.lists import read_targets
    from rerank.tuning.scale import choose_spread

    messages, references = options.messages, options.references
    weights, out = options.weights.weights, options.weights.out
    messages.announce_threads(options.run.machine.threads)
    with messages.warnings() as notices:
        lists = options.run.inputs(drop_unreferenced=references.drop_unreferenced)
        search = _mbr(options.searching.chosen())
        metric = options.objective.load(references.references, messages.announce)
        files = [*options.run.files, *files_of(references.references, "reference"), weights]
        inputs = InputFiles(files)
        check_outputs([out], [*files, *options.run.scorers.folders])
        kind_of(out, merged=False)
        given, source = read_weights(weights, notices), display(weights)
        given.refuse_all_zero("mbr needs no scale for them, decode with them", source=source)
        documents, lines = read_targets(lists, references.references, notices, messages.announce)
        with ListRun.open(
            lists,
            notices,
            options.run.as_tuned(given),
            documents=documents,
            announce=messages.announce,
            asked=search.programs(),
        ) as run:
            if _tuned_on(given, lists.kbest):
                notices.add(_SEEN, source=source)
            plain = run.choose_search(AUTO, messages.announce)
            search = run.choose_search(search, messages.announce)
            run.announce_work(plain, messages.announce)
            targets = iter(documents.split(lines))
            sums: list[Rows] = []
            for batch in LinearModel(given, source).batches(run, plain):
                with run.searching():
                    sums += _sums(batch, targets, search, metric)
            if all(one.shape[1] == 1 for one in sums):
                raise InputError("expected candidates to decode, found none", source=run.name)
            run.warn()
            inputs.check()
            run.report(messages.announce, messages.detail)
        choice = choose_spread(sums, metric)
        listed = ", ".join(f"{name}: {score:.2f}" for name, score in choice.by_spread().items())
        messages.announce(f"{metric.name} by spread: {listed}")
        made = {
            **run_entries(files),
            "utility": search.options.utility or UTILITY,
            **search.entries(),
            "word_reward": search.options.word_reward or 0.0,
            "objective": f"corpus {metric.name}",
            "metric": metric.signature(len(lines[0]) if lines else 0),
            **({"unreferenced": documents.n_left_out} if lists.drop_unreferenced else {}),
            **choice.to_provenance(),
            "verdict": choice.verdict(metric.name),
        }
        written = replace(
            given, mbr_spread=choice.spread, provenance={**given.provenance, "mbr": made}
        )
        write_weights(out, written, notices=notices)
    messages.announce(f"verdict: {made['verdict']}")
    messages.announce(f"{metric.name}: {choice.to_text()}")


COMMAND = Command("tune-mbr", TuneMbrOptions, tune_mbr)


def _mbr(search: Search) -> Search:
    """The search, by mbr; UsageError for another one."""
    if search.method not in ("auto", "mbr"):
        raise UsageError(
            f"--search {search.method}: the spread is that of mbr; give --search mbr, or leave it "
            "out"
        )
    return replace(search, method="mbr")


def _tuned_on(weights: Weights, kbest: str | Path) -> bool:
    """Whether the weights' provenance names these lists."""
    from rerank.files.lines import digest

    inputs = weights.provenance.get("inputs")
    if not isinstance(inputs, list) or not Path(kbest).is_file():
        return False
    whole = digest(kbest)
    return any(isinstance(x, dict) and whole.startswith(str(x.get("digest"))) for x in inputs)


def _sums(
    batch: Batch, targets: Iterator[Sequence[Sequence[bytes]]], search: Search, metric: Metric
) -> list[Rows]:
    """Statistics (C + 1, T, W) of each document's sentences: under each of `SPREADS`, and plain.

    The sentences without candidates are one more, summed.
    """
    import numpy as np

    from decoders.batching import run_batch
    from decoders.marginals import rng_for
    from decoders.mbr import posterior_of, scale, standard_deviation
    from decoders.result import Direction
    from decoders.reversal import direction_of, reversed_posterior, reversed_problem
    from decoders.table import SEED
    from rerank.runs.search import utilities_of
    from rerank.tuning.scale import SPREADS

    documents = [one.features for one in batch.documents if one.features is not None]
    forward = [document.problem(batch.weights) for document in documents]
    turned = [direction_of(problem) is Direction.REVERSED for problem in forward]
    problems = [reversed_problem(p) if turn else p for p, turn in zip(forward, turned, strict=True)]
    names = [document.name for document in documents]
    filled = [one.kbest for one in batch.documents if one.kbest.n]
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
    for _, kbest, document, result in batch.documents:
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
    import numpy as np

    from decoders.mbr import best

    reward = search.options.word_reward or 0.0
    lists = zip(*(one.marginals for one in posteriors), strict=True)
    found = [best(utility, t, np.stack(rows), reward) for t, rows in enumerate(lists)]
    return np.stack(found, axis=1)
