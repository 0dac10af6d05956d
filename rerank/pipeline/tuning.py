"""`rerank tune-mert`: weights of all dense features, for whole documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.references import read_with_documents
from rerank.errors import UsageError
from rerank.files.lines import display, read_lines
from rerank.files.outputs import check_outputs
from rerank.formats.moses_ini import merged
from rerank.formats.weights import Weights, kind_of, read_weights, write_weights
from rerank.metrics.bleu import Tokenizer, corpus_bleu, length_ratio
from rerank.notices import Notices
from rerank.pipeline.estimate import estimate
from rerank.pipeline.lists import KBestSource, Lists
from rerank.pipeline.searching import AUTO, Search, choose_search
from rerank.pipeline.sources import Announce
from rerank.pipeline.tuning_outcome import (
    Tuning,
    by_name,
    figures,
    made_by,
    reached,
    scored,
    surface,
)
from rerank.pipeline.tuning_plan import USUAL, Plan, Task
from rerank.pipeline.tuning_pools import refuse_orders
from rerank.pipeline.tuning_reading import read_set
from rerank.pipeline.tuning_runs import averaged, divided, tuned
from rerank.pipeline.tuning_set import Choices
from rerank.pipeline.wanted import Wanted
from rerank.tuning.rounds import total


@dataclass(frozen=True, slots=True)
class TunedWeights:
    """Which weights are tuned, whence, and where they go.

    features: names of those tuned (default: all dense ones; `total` if it is named, or weighted in
    `start`); the others keep their start weight. ranges: least and greatest weight of some. base: a
    moses.ini that `out` is to be, with the new weights in it. plot: a figure of the objective
    around the weights
    """

    out: str | Path
    features: Sequence[str] = ()
    start: str | Path | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    base: str | Path | None = None
    plot: str | Path | None = None

    @property
    def read(self) -> list[str | Path]:
        """Files that are read."""
        return [path for path in (self.start, self.base) if path]

    def check(self, others: Sequence[str | Path]) -> None:
        """UsageError where nothing can be written, or one of the files read is there."""
        outputs = [self.out, *([self.plot] if self.plot else [])]
        check_outputs(outputs, [*others, *self.read])
        kind_of(self.out, merged=self.base is not None)
        if self.plot:
            from rerank.report.figures import check_figure

            check_figure(self.plot)


def tune_mert(
    lists: Lists,
    references: Sequence[str | Path],
    weights: TunedWeights,
    *,
    search: Search = AUTO,
    tokenize: str = "none",
    plan: Plan = USUAL,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> Tuning:
    """Tune weights on whole documents, by minimum error rate training if nothing else is planned.

    On pools `auto` and `conditional`, features that no scorer's context changes are tuned on one
    pool to convergence; with a context the pool is made anew in every round under the path
    decoded last. Pools of `documents` are lists of paths, which grow in every round; `exact` needs
    none. The scale of the weights is fitted by likelihood under the path that they decode. Memory:
    see `TuningSet`.
    """
    plan.check(ranges=bool(weights.ranges), start=weights.start is not None)
    files = [*references, *weights.read, *plan.aims.files.values()]
    weights.check([*lists.files, *references, *plan.aims.files.values()])
    frame = None if weights.base is None else list(read_lines(weights.base, notices))
    given = None if weights.start is None else read_weights(weights.start, notices)
    wanted = Wanted(weights.features, given, display(weights.start or ""), weights.ranges)
    tokenizer = Tokenizer(tokenize)
    search = _followed(search, plan).at(given.alpha if given else None)
    documents, lines = read_with_documents(lists.docs, lists.no_docs, references, notices)
    with KBestSource.open(lists, notices, documents=documents) as opened:
        search = choose_search(opened, search.listing(plan.n_best), announce).listing(1)
        if opened.scorers:
            estimate(opened, search, announce)
        metrics = plan.aims.metrics(tokenizer, opened.given, opened.copied, notices)
        settings = replace(plan.settings, criterion=plan.criterion(metrics))
        sparse = given.sparse if given else {}
        _refuse(opened, wanted, plan, weights.base, frame, sparse)
        corpus, space = read_set(opened, lines, metrics, wanted, announce)
        if (plan.aims.documents or plan.aims.worst) and len(corpus.gaps) > len(corpus.documents):
            notices.add("documents without any candidate, counted as one more document")
        whole = Task.of(
            opened, corpus, space, search, wanted, plan=plan, settings=settings, notices=notices
        )
        task, held = divided(whole)
        announce(f"maximised: {task.goal.name}")
        baseline = task.corpus.sums(task.corpus.first)
        announce(scored("first candidates", baseline))
        found, made = _searched(task, announce)
        path, sums = task.decode(found)
        if held:
            made |= held.evaluated(found, announce)
        alpha = _scaled(task, path, found, made, announce)
        made |= {"flat": _surface(task, path, found, weights.plot)}
        opened.warn()
        opened.report(announce)
        scores = reached(sums, metrics, len(references))
        if len(scores) > 1:
            announce(f"decoded: {'; '.join(one.to_text() for one in scores)}")
        # while the copy of standard input is there to be digested
        made = {**made_by(opened, files, task), **figures(sums, scores), **made}
    result = Weights(by_name(task.full(found), space), sparse, alpha, made)
    write_weights(weights.out, result, base=frame, notices=notices)
    counts, first = total(sums), total(baseline)
    both = [float(score(c)) for c in (counts, first) for score in (corpus_bleu, length_ratio)]
    return Tuning(result, *both)


def _refuse(
    opened: KBestSource,
    wanted: Wanted,
    plan: Plan,
    base: str | Path | None,
    frame: Sequence[bytes] | None,
    sparse: Mapping[str, float],
) -> None:
    """What would be refused after the work, refused before it: orders, and the file to write."""
    if plan.pools == "exact":
        refuse_orders([scorer.order for scorer in opened.scorers])
    first = opened.first_with_candidates()
    if frame is not None and first is not None:
        space = opened.space(first[1], total=wanted.total)
        begin = by_name(wanted.start(space), space)
        merged(frame, begin, sparse, None, Notices(), source=display(base or ""))


def _followed(search: Search, plan: Plan) -> Search:
    """The search with the seed of the tuner; UsageError for one that tuning cannot follow."""
    if search.method == "mbr":
        raise UsageError(
            "--search mbr: tune-mert follows the path of highest score, for which mbr does not "
            "look; take auto, viterbi, beam, or any other"
        )
    if plan.pools == "exact" and search.method not in ("auto", "viterbi"):
        raise UsageError(
            f"--search {search.method}: --pools exact follows Viterbi search; take that, or others"
        )
    return search.seeded(plan.settings.seed)


def _searched(task: Task, announce: Announce) -> tuple[NDArray[np.float64], dict[str, object]]:
    """Weights (G,), the mean of replicates where there are several, and what to say of them."""
    if task.plan.replicates == 1:
        return tuned(task, announce), {}
    found = averaged(task, announce)
    announce(found.to_text(task.names))
    return found.replicates.mean, found.to_provenance(task.names)


def _scaled(
    task: Task,
    path: Choices,
    found: NDArray[np.float64],
    made: dict[str, object],
    announce: Announce,
) -> float | None:
    """The scale of weights (G,) under the path that they decode, told and noted where there is."""
    with task.opened.searching():
        scale = task.corpus.scale(path, task.full(found), task.notices)
    if scale is None:
        return None
    announce(scale.to_text())
    made |= scale.to_provenance()
    return scale.alpha


def _surface(
    task: Task, path: Choices, found: NDArray[np.float64], plot: str | Path | None
) -> dict[str, list[float | None]]:
    """Flatness around weights (G,) under the path that they decode, drawn where it is asked for."""
    with task.opened.searching():
        pool = task.pool(path)
    return surface(pool, found, task.goal.objective, task.names, plot=plot)
