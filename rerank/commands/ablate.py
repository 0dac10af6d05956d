"""`rerank ablate`: what the contexts of a decoding are worth."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from rerank.errors import UsageError
from rerank.files.lines import spool
from rerank.files.outputs import check_outputs
from rerank.notices import Notices
from rerank.options import Command, option, part, record
from rerank.report.measures import MeasureOptions
from rerank.runs.options import (
    Messages,
    ReferenceFiles,
    RunOptions,
    default_weight_option,
    form_option,
    printed,
)
from rerank.runs.search import SearchOptions
from rerank.values import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rerank.corpus.kbest import KBest
    from rerank.report.evaluation import Evaluation
    from rerank.runs.lists import ListSource
    from rerank.runs.run import LinearModel, Run
    from rerank.runs.search import Search
    from rerank.scorers.features import DocumentFeatures

EMPTIED, OTHER, DECODED, REFERENCE, FIRST = ROWS = (
    *("no context", "another document", "as decoded", "references", "first candidates"),
)


@record
class AblatedWeights:
    """Weights under which candidates are chosen."""

    weights: str = option("Feature weights, as of decode.", type=FILE)
    default_weight: float | None = default_weight_option()


@record
class AblateOptions:
    """Options of `rerank ablate`."""

    run: RunOptions = part(RunOptions, without={"shard", "ray", "memory"})
    references: ReferenceFiles = part(ReferenceFiles, "References", required={"references"})
    searching: SearchOptions = part(SearchOptions, "Search")
    weights: AblatedWeights = part(AblatedWeights, "Weights")
    form: str = form_option("text", "json", "tsv", "latex", "markdown")
    messages: Messages = part(Messages, "Messages")


@printed
def ablate(options: AblateOptions, notices: Notices) -> Evaluation:
    r"""Say what the contexts of a decoding are worth, under the same weights.

    The candidates are chosen in the contexts of the decoding, in none, in those of another
    document, and in those of the references. In a given context the best candidate of each sentence
    is chosen by itself. The contexts of another document are those that the decoding chose there,
    from the first sentence on and around again; each document has another one, by --seed.

    Example:
      rerank ablate --kbest test.nbest.gz --docs test.docids --lm codclm=models/codclm \
        --weights weights.json --ref test.en
    """
    from rerank.formats.translations import files_of
    from rerank.runs.distribution import announce_work
    from rerank.runs.lists import read_targets
    from rerank.runs.opening import open_run
    from rerank.runs.run import LinearModel

    announce, references = options.messages.announce, options.references.references
    weights = options.weights
    read = [*files_of(references, "reference"), weights.weights, *options.run.files]
    inputs = check_outputs([], read)
    model = LinearModel.read(weights.weights, weights.default_weight, notices)
    search = options.searching.chosen().at(model.weights)
    lists = options.run.inputs(drop_unreferenced=options.references.drop_unreferenced)
    with ExitStack() as opened:
        if lists.kbest:  # its own documents are read before the lists
            lists = replace(lists, kbest=opened.enter_context(spool(lists.kbest)).path)
        documents, targets = read_targets(lists, references, notices, announce)
        run = opened.enter_context(
            open_run(
                lists,
                notices,
                options.run.as_tuned(model.weights),
                documents=documents,
                announce=announce,
                programs=search.programs(),
            )
        )
        _check_contexts(run)
        search = run.choose_search(search, announce)
        announce_work(run, search, announce, passes=3)
        decoded, idle = _decoded(run, model, search)
        run.warn()  # of words that are counted once: the lists are scored again
        for scorer in run.scorers:
            scorer.score_on_demand()  # in a context that is given, all other histories are in vain
        lines = {row: list[bytes]() for row in ROWS}
        lines[DECODED] = [line for texts in decoded for line in texts]
        seed = search.options.seed or 1
        for row, texts in _in_contexts(run, model, decoded, targets, seed):
            lines[row] += texts
        run.report(announce, options.messages.detail)
        inputs.check()
        return _evaluation(run, targets, lines, idle, seed)


COMMAND = Command("ablate", AblateOptions, ablate)


def _check_contexts(run: Run[ListSource]) -> None:
    """UsageError unless a scorer depends on other sentences, and all have scores without them."""
    from rerank.scorers.features import have_contexts, lacking_scores_without_context

    if not have_contexts(run.scorers):
        raise UsageError("no scorer here depends on other sentences; give --lm NAME=DIR of one")
    if names := lacking_scores_without_context(run.scorers):
        raise UsageError(
            f"--pair-scores {names[0]}: a file has no scores in other contexts; leave it out"
        )


def _decoded(
    run: Run[ListSource], model: LinearModel, search: Search
) -> tuple[list[list[bytes]], str]:
    """The texts that a decoding chooses, and which language models contribute nothing."""
    from rerank.runs.results import ModelUse

    decoded, use = list[list[bytes]](), ModelUse(run.scorers, run.scorers_by_kind.models)
    for batch in model.batches(run, search):
        for _, kbest, document, result in batch.documents:
            decoded.append(kbest.chosen(result.choices))
            if document is not None:
                use.add(document, result.choices, batch.weights)
    return decoded, use.to_text()


def _in_contexts(
    run: Run[ListSource],
    model: LinearModel,
    decoded: Sequence[Sequence[bytes]],
    targets: Sequence[Sequence[bytes]],
    seed: int,
) -> Iterator[tuple[str, list[bytes]]]:
    """Name of a kind of context and the texts chosen in it, document by document."""
    import numpy as np

    from rerank.scorers.features import after_texts, without_context

    n = len(run.source.documents)
    order = np.random.default_rng(seed).permutation(n).tolist()
    others = dict(zip(order, order[1:] + order[:1], strict=True)) if n > 1 else {}
    documents = (document for batch in model.batches(run) for document in batch.documents)
    for d, (_, kbest, document, _) in enumerate(documents):
        start, stop = run.source.documents.span(d)
        if document is None:
            for row in (EMPTIED, REFERENCE, FIRST, *([OTHER] if others else [])):
                yield row, [b""] * (stop - start)
            continue
        yield FIRST, kbest.chosen(document.first())
        alone = without_context(document, run.scorers, kbest)
        yield EMPTIED, _best(alone, document, kbest, model, run.notices)
        contexts = {REFERENCE: [lines[0] for lines in targets[start:stop]]}
        if others:  # in one cycle through all documents
            other = decoded[others[d]]
            contexts[OTHER] = [other[t % len(other)] for t in range(stop - start)]
        for row, texts in contexts.items():
            features = after_texts(document, run.scorers, kbest, texts)
            yield row, _best(features, document, kbest, model, run.notices)


def _best(
    features: NDArray[np.float64],
    document: DocumentFeatures,
    kbest: KBest,
    model: LinearModel,
    notices: Notices,
) -> list[bytes]:
    """Text of each sentence's candidate with the largest total."""
    import numpy as np

    weights = model.vector(document.space, notices)
    totals = features @ weights + kbest.sparse.dot(model.weights.sparse)
    lists = np.split(totals, document.offsets[1:-1])
    return kbest.chosen([int(scores.argmax()) for scores in lists])


def _evaluation(
    run: Run[ListSource],
    targets: Sequence[Sequence[bytes]],
    lines: Mapping[str, Sequence[bytes]],
    idle: str,
    seed: int,
) -> Evaluation:
    """The rows that have lines, scored; only the decoding has a verdict."""
    from rerank.formats.run_records import first_named
    from rerank.report.comparison import EvaluatedTexts, SystemText, evaluate

    names = {FIRST: first_named(next(iter(run.source.systems.values()), None))}
    texts = [SystemText(names.get(row, row), of_row) for row, of_row in lines.items() if of_row]
    result = evaluate(
        run.source.documents,
        EvaluatedTexts(targets, texts),
        run.notices,
        metrics=MeasureOptions().loaded_metrics(run.notices),
        seed=seed,
    )
    changed = {
        text.name: sum(a != b for a, b in zip(text.lines, lines[DECODED], strict=True))
        for text in texts
    }
    systems = tuple(
        system if system.name == DECODED else replace(system, verdict=None)
        for system in result.systems
    )
    return replace(result, systems=systems, changed=changed, idle=idle)
