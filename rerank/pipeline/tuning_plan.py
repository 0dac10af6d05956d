"""The plan of a tuning run, and its task: which weights may move, towards what, by which tuner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.labels import column_names
from rerank.errors import UsageError
from rerank.metrics import Metric
from rerank.notices import Notices
from rerank.pipeline.criteria import Aims
from rerank.pipeline.lists import KBestSource
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning_set import Choices, TuningSet
from rerank.pipeline.wanted import Wanted
from rerank.scorers.features import FeatureSpace
from rerank.tuning.algorithms import ALGORITHMS, named
from rerank.tuning.ascent import Axes, Optimum
from rerank.tuning.bounds import Bounds
from rerank.tuning.criterion import BLEU_ALONE, Criterion
from rerank.tuning.goals import SearchGoal
from rerank.tuning.mert import Settings
from rerank.tuning.objectives import Sums
from rerank.tuning.path_pool import Paths
from rerank.tuning.pool import Pool
from rerank.tuning.pool_tuner import MERT, PoolTuner
from rerank.tuning.rounds import Find, Step

Floats = NDArray[np.float64]
POOLS = ("auto", "sentences", "conditional", "documents", "exact")


@dataclass(frozen=True, slots=True)
class Plan:
    """How weights are tuned.

    pools: one of `POOLS`; n_best: paths of each document that a decoding adds to pools of
    documents; algorithm: `mert`, or a name of `rerank.tuning.algorithms`; settings: of minimum
    error rate training; replicates: tunings on documents drawn anew, whose weights are averaged;
    held_out: share of the documents that is kept from tuning
    """

    pools: str = "auto"
    n_best: int = 1
    algorithm: str = MERT
    aims: Aims = field(default_factory=Aims)
    settings: Settings = field(default_factory=Settings)
    replicates: int = 1
    held_out: float = 0.0

    def check(self, *, ranges: bool = False, start: bool = True) -> None:
        """UsageError for what there is none of, and for options that would do nothing.

        ranges: whether some weights have one; start: whether start weights are given
        """
        if self.pools not in POOLS:
            kinds = ", ".join(POOLS)
            raise UsageError(f"--pools {self.pools}: no such kind of pools; there are {kinds}")
        if self.n_best > 1 and self.pools != "documents":
            raise UsageError(
                f"--n-best {self.n_best}: only pools of documents hold paths; add --pools "
                "documents, or leave it out"
            )
        if self.settings.criterion != BLEU_ALONE:
            raise UsageError("settings have a criterion; say what to maximise by the plan's aims")
        if self.aims.window and self.pools == "documents":
            raise UsageError(
                f"--window {self.aims.window}: pools of documents go by what single points decode "
                "to, which nothing smooths; take other --pools"
            )
        if self.replicates < 1:
            raise UsageError(f"--replicates {self.replicates}: expected at least 1")
        if not 0 <= self.held_out < 1:
            raise UsageError(f"--hold-out {self.held_out:g}: expected a share, at least 0, below 1")
        self.aims.check()
        if self.aims.shrinkage and not start:
            raise UsageError(
                f"--shrink {self.aims.shrinkage:g}: no start weights are there to keep to; "
                "give some by --start"
            )
        if self.pools == "exact" and self.settings.directions == "gradient":
            raise UsageError("--directions gradient: --pools exact has none; take another")
        if ranges and self.pools == "documents":
            raise UsageError("--range: pools of documents do not keep to it; take other --pools")
        if self.algorithm == MERT:
            return
        if self.algorithm not in ALGORITHMS:
            named(self.algorithm)
        if self.pools == "exact":
            raise UsageError("--pools exact: these are line searches, for --algorithm mert alone")
        usual = Settings(seed=self.settings.seed)
        if ranges or self.aims != Aims() or self.settings != usual:
            raise UsageError(
                f"--algorithm {self.algorithm} goes its own way to corpus BLEU: objectives, "
                "ranges, starts, directions and threads are for mert"
            )

    def criterion(self, metrics: Sequence[Metric]) -> Criterion:
        """What its aims amount to on statistics of these metrics; for other tuners corpus BLEU."""
        return self.aims.criterion(metrics) if self.algorithm == MERT else BLEU_ALONE

    def kept_to(self, criterion: Criterion, start: Floats, *, settled: bool) -> Criterion:
        """The criterion, without shrinkage where no direction of tuned weights is there to keep to.

        settled: whether a part of the scores is not tuned. UsageError where shrinkage was asked for
        """
        if criterion.shrinkage == 0 or (start.any() and not settled):
            return criterion
        if self.aims.shrinkage:
            why = (
                "a part of the scores is not tuned, beside which the size of the weights matters, "
                "not their direction"
                if settled
                else "all weights that are tuned start at 0"
            )
            raise UsageError(f"--shrink {self.aims.shrinkage:g}: {why}; leave it out")
        return replace(criterion, shrinkage=0.0)


USUAL = Plan()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A tuning set, how it is searched, which weights may move, and whence, and how.

    Of F columns the weights of G are tuned. goal: for weights (G,)
    """

    opened: KBestSource
    corpus: TuningSet
    space: FeatureSpace
    search: Search
    wanted: Wanted
    plan: Plan
    settings: Settings
    goal: SearchGoal
    notices: Notices

    @classmethod
    def of(
        cls,
        opened: KBestSource,
        corpus: TuningSet,
        space: FeatureSpace,
        search: Search,
        wanted: Wanted,
        *,
        plan: Plan,
        settings: Settings,
        notices: Notices,
    ) -> Task:
        """The task; `settings` are the plan's, with the criterion that its aims amount to."""
        tuned, start = wanted.columns(space), wanted.start(space)
        scale = np.zeros(len(tuned))
        settled = _settled(corpus, start, tuned)
        criterion = plan.kept_to(settings.criterion, start[tuned], settled=settled)
        settings = replace(settings, criterion=criterion)
        if settings.criterion.shrinkage > 0:
            scale = Axes.of(corpus.pool(corpus.first, tuned, start)).scale
        first = corpus.sums(corpus.first).sum(axis=0)
        goal = settings.criterion.goal(first, start[tuned], scale)
        return cls(opened, corpus, space, search, wanted, plan, settings, goal, notices)

    def on(self, corpus: TuningSet, seed: int) -> Task:
        """The same for other documents, with their own length, and another seed."""
        return Task.of(
            self.opened,
            corpus,
            self.space,
            self.search,
            self.wanted,
            plan=self.plan,
            settings=replace(self.settings, seed=seed),
            notices=self.notices,
        )

    @property
    def tuned(self) -> NDArray[np.int64]:
        """Columns (G,) of the weights that may move."""
        return self.wanted.columns(self.space)

    @property
    def start(self) -> Floats:
        """All weights (F,) to start from."""
        return self.wanted.start(self.space)

    @property
    def bounds(self) -> Bounds:
        """Ranges of the weights that may move."""
        bounds = self.wanted.bounds(self.space)
        return Bounds(bounds.low[self.tuned], bounds.high[self.tuned])

    @property
    def names(self) -> list[str]:
        """Names of the tuned columns."""
        names = column_names(self.space.labels)
        return [names[column] for column in self.tuned]

    @property
    def contextual(self) -> bool:
        """Whether a feature depends on earlier choices."""
        return any(problem.order != 0 for problem in self.corpus.documents[0].problems)

    @property
    def fixed(self) -> bool:
        """Whether scores have a part that is not tuned."""
        return _settled(self.corpus, self.start, self.tuned)

    def full(self, weights: Floats) -> Floats:
        """All weights (F,) from those of the tuned columns (G,)."""
        full = self.start
        full[self.tuned] = weights
        return full

    def norm(self, weights: Floats) -> float:
        """Norm of weights (G,) that is to be 1; 1 for all weights where their scale is settled."""
        order = {"l1": 1, "l2": 2}[self.settings.norm]
        free = not self.fixed and self.bounds.free_of_scale and weights.any()
        return float(np.linalg.norm(weights, order)) if free else 1.0

    def value(self, step: Step) -> float:
        """What is maximised, of a step with weights (G,); a window smooths lines, not steps."""
        return self.goal.value(step.statistics, step.weights)

    def pool(self, path: Choices) -> Pool:
        """All candidates under a path."""
        return self.corpus.pool(path, self.tuned, self.start)

    def decode(self, weights: Floats) -> tuple[Choices, Sums]:
        """The path that weights (G,) choose, and its summed statistics (D, W)."""
        with self.opened.searching():
            return self.corpus.decode(self.full(weights), self.search)

    def list_paths(self, weights: Floats) -> tuple[Paths, ...]:
        """The path that weights (G,) choose in each document, and the `n_best` best ones."""
        path, _ = self.decode(weights)
        listed: list[tuple[tuple[int, ...], ...]] = [(choices,) for choices in path]
        if self.plan.n_best > 1:  # a beam is as wide as the list, so its first path may be another
            with self.opened.searching():
                further = self.corpus.list_paths(
                    self.full(weights), self.search.listing(self.plan.n_best)
                )
            listed = [(*first, *rest) for first, rest in zip(listed, further, strict=True)]
        return self.corpus.paths(listed, self.tuned, self.start)

    def tuner(self, notices: Notices) -> Find:
        """The tuner of the plan, for pools of these features.

        All rounds begin at the same random points, so that rounds that change nothing end alike;
        what is constant is told of the first pool.
        """
        how = PoolTuner(self.plan.algorithm, self.settings, self.names, self.bounds, self.goal)
        history: list[Floats] = []  # optima of earlier rounds are starts of later ones

        def find(pool: Pool, start: Floats) -> Optimum:
            told = Notices() if history else notices
            best = how.tune(pool, start, told, tuple(history)).best
            history.append(best.weights)
            return best

        return find


def _settled(corpus: TuningSet, start: Floats, tuned: NDArray[np.int64]) -> bool:
    """Whether scores have a part that is not tuned, which settles the scale of the others."""
    return bool(np.delete(start, tuned).any()) or any(d.sparse.any() for d in corpus.documents)
