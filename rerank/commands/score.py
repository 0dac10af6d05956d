"""`rerank score`: a k-best list with the features of scorers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rerank.errors import UsageError
from rerank.files.outputs import check_outputs
from rerank.options import Command, option, optional_file, part, record
from rerank.runs.options import Messages, RunOptions, default_weight_option
from rerank.runs.search import SearchOptions
from rerank.values import FILE

if TYPE_CHECKING:
    from rerank.notices import Printer
    from rerank.scorers.features import FeatureSource


@record
class ScoredPath:
    """The path after which candidates are scored."""

    weights: str | None = optional_file(
        "Score candidates after the path decoded with these weights [default: after the first "
        "candidates]."
    )
    default_weight: float | None = default_weight_option()
    searching: SearchOptions = part(SearchOptions, without={"gap"})

    def check(self) -> None:
        """UsageError for a search whose path is not asked for; seed and scale are no harm."""
        search = replace(self.searching, alpha=None, seed=None).chosen()
        unused = search != SearchOptions().chosen() or self.default_weight is not None
        if self.weights is None and unused:
            raise UsageError(
                "--search, its options and --default-weight are for the path decoded with "
                "--weights; give these"
            )


@record
class ScoreOptions:
    """Options of `rerank score`."""

    run: RunOptions = part(RunOptions)
    path: ScoredPath = part(ScoredPath, "Path to score after")
    out: str = option("The k-best list with the new features appended.", type=FILE, default="-")
    messages: Messages = part(Messages, "Messages")

    def check(self) -> None:
        """UsageError without anything that gives features."""
        added = self.run.scorers.names or self.run.scorers.agreement
        if not added and not self.run.lists.made:
            raise UsageError("nothing to score with; give at least one --lm NAME=DIR")


def score(options: ScoreOptions) -> None:
    """Append features to a k-best list, for other tuners and decoders.

    All candidates of a sentence are scored in the same context: the first candidates of its
    document's earlier sentences (later ones, for models that read documents from the last
    sentence), or the decoded path where weights are given.

    Example:
      rerank score --kbest dev.nbest --docs dev.docids --lm codclm=models/codclm --out dev.scored
    """
    from rerank.runs.distribution import announce_work, outputs, share_scores
    from rerank.runs.lists import in_source_order
    from rerank.runs.opening import open_run
    from rerank.runs.results import write_list
    from rerank.runs.run import LinearModel

    path, messages = options.path, options.messages
    if not share_scores(score, options):
        return
    messages.announce_threads(options.run.machine.threads)
    with messages.warnings() as notices:
        search = path.searching.chosen()
        read = [*options.run.files, path.weights]
        inputs = check_outputs([options.out], read, options.run.scorers.folders)
        model = None
        if path.weights is not None:
            model = LinearModel.read(path.weights, path.default_weight, notices)
            search = search.at(model.weights)
        context = "first candidates" if model is None else "decoded path"
        if options.run.scorers.names:
            messages.announce(
                f"candidates are scored after the {context} of their document's earlier sentences"
            )
        tuned = options.run.as_tuned(model.weights) if model else options.run
        with open_run(
            tuned.inputs(), notices, tuned, announce=messages.announce, programs=search.programs()
        ) as run:
            for scorer in run.scorers:
                _announce_context(scorer, context, messages.announce)
            if model is not None:
                search = run.choose_search(search, messages.announce)
            if run.shard is None:
                announce_work(run, search if model else None, messages.announce)
            with outputs(run, {"out": options.out}, messages.announce) as files:
                with in_source_order(files["out"], run.source.documents) as write:
                    batches = model.batches(run, search) if model else run.batches()
                    for batch in batches:
                        for _, kbest, features, result in batch.documents:
                            choices: Sequence[int] = result.choices
                            if model is None:
                                choices = () if features is None else features.first()
                            write_list(run.source, write, kbest, features, choices)
                if run.shard is None:
                    run.warn()
                inputs.check()
            run.report(messages.announce, messages.detail)


COMMAND = Command("score", ScoreOptions, score)


def _announce_context(scorer: FeatureSource, context: str, announce: Printer) -> None:
    """Announce other sentences than the earlier ones that a scorer is given."""
    if scorer.given_later:
        announce(
            f"{scorer.name}: after the {context} of later sentences, since its model reads "
            "documents from the last"
        )
    if not scorer.causal:
        announce(
            f"{scorer.name}: given the {context} of both sides, since its model reads the next "
            "sentence, too"
        )
