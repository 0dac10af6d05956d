"""The plan of a tuning run: objective, pools, tuner, replicates and held-out documents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rerank.errors import UsageError
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.objectives.options import CORPUS_BLEU_ALONE, ObjectiveOptions
from rerank.tuning.selection import CV, SELECTIONS
from rerank.tuning.tuners.table import MERT, load

POOLS = ("auto", "sentences", "conditional", "exact")


@dataclass(frozen=True, slots=True)
class Plan:
    """How weights are tuned.

    pools: one of `POOLS`; algorithm: `mert`, or a name of `rerank.tuning.tuners.table`
    settings: of MERT; other tuners use the seed alone
    replicates: number of tunings on resampled documents, whose weights are averaged
    held_out: share of the documents that is held out from tuning
    select: `cv` chooses weights between the start weights and the tuned ones by cross-validation,
    `none` takes the tuned ones
    """

    pools: str = "auto"
    algorithm: str = MERT
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)
    settings: MertSettings = field(default_factory=MertSettings)
    replicates: int = 1
    held_out: float = 0.0
    select: str = CV

    def check(self, *, ranges: bool = False, start: bool = True) -> None:
        """UsageError for unknown names and for options without effect, before any work.

        ranges: whether some weights have a range; start: whether start weights are given
        """
        if self.pools not in POOLS:
            raise UsageError(
                f"--pools {self.pools}: no such kind of pools; there are {', '.join(POOLS)}"
            )
        if self.replicates < 1:
            raise UsageError(f"--replicates {self.replicates}: expected at least 1")
        if not 0 <= self.held_out < 1:
            raise UsageError(f"--hold-out {self.held_out:g}: expected a share, at least 0, below 1")
        self.objective.check()
        if self.objective.shrinkage and not start:
            raise UsageError(
                f"--shrink {self.objective.shrinkage:g}: there are no start weights whose "
                "direction could be kept; give some by --start"
            )
        if self.select not in SELECTIONS:
            raise UsageError(f"--select {self.select}: expected {' or '.join(SELECTIONS)}")
        if self.algorithm == MERT:
            return
        load(self.algorithm)
        if self.pools == "exact":
            raise UsageError("--pools exact: its line searches need --algorithm mert")
        other = MertSettings(seed=self.settings.seed, threads=self.settings.threads)
        if ranges or self.objective != ObjectiveOptions() or self.settings != other:
            raise UsageError(
                f"--algorithm {self.algorithm} maximises corpus BLEU in its own way: options of "
                "the objective, ranges and --starts are for --algorithm mert"
            )

    @property
    def objective_options(self) -> ObjectiveOptions:
        """The objective in use: tuners other than MERT maximise corpus BLEU alone.

        With cross-validation there is no price on direction unless it is asked for.
        """
        if self.algorithm != MERT:
            return CORPUS_BLEU_ALONE
        if self.select == CV and self.objective.shrinkage is None:
            return replace(self.objective, shrinkage=0.0)
        return self.objective

    @property
    def searched(self) -> tuple[str, MertSettings]:
        """What the result of a search on a pool depends on, beside the goal."""
        return self.algorithm, replace(self.settings, threads=1)

    def seeded(self, seed: int) -> Plan:
        """The plan with another seed."""
        return replace(self, settings=replace(self.settings, seed=seed))
