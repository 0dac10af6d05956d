"""The plan of a tuning run: records of options that commands, `rerank.tune` and tuners share.

Nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from rerank.corpus.reading import tokenize_option
from rerank.errors import UsageError
from rerank.files.paths import FilePath
from rerank.files.signature import run_entries
from rerank.options import option, optional, optional_file, part, record
from rerank.registry import ESTIMATORS, METRICS
from rerank.tuning.tuners import ALGORITHMS, MERT
from rerank.values import (
    FILE,
    LENGTH_RATIO,
    METRIC_WEIGHT,
    PRICE,
    SEED,
    Interval,
    Pair,
    Real,
    Whole,
    WordOr,
)

if TYPE_CHECKING:
    from rerank.files.lines import InputFiles
    from rerank.formats.weights import Weights
    from rerank.metrics import Metric
    from rerank.metrics.bleu import Bleu
    from rerank.notices import Notices
    from rerank.scorers.programs import ProgramMetric

CV, NONE = SELECTIONS = ("cv", "none")
BLEU = "bleu"
FIGURES = (".svg", ".png", ".pdf")  # suffixes of --plot
SHRINKAGE = 1.0  # generalised best from few documents, and cost nothing with many
LENGTH_PRICE = (
    5.0  # BLEU that a length ratio off by 1 costs, by recipes/studies/new-documents/lengths.py
)
_MOST_THREADS = 512  # that a process should start
Length: TypeAlias = Literal["auto", "keep", "free"] | float


@record
class ObjectiveOptions:
    """What tuning maximises: a metric or two with their weights, less prices.

    length: `auto` is for cross-validation to choose (`rerank.tuning.selection`), any without it
    shrinkage: None is `SHRINKAGE`, 0 with files
    """

    metrics: tuple[tuple[str, float], ...] = option(
        "Metric to maximise, or a --metric; two are added [default: bleu].\n\n"
        f"{', '.join(METRICS)}; error rates are negated. Two have weights of 1 unless given.",
        "--objective",
        type=Pair("NAME or NAME=WEIGHT", METRIC_WEIGHT, default=1.0),
        metavar="NAME[=WEIGHT]",
        default=((BLEU, 1.0),),
    )
    files: tuple[tuple[str, FilePath], ...] = option(
        "Scores of hypotheses by another tool, command:PROGRAM or judge:MODEL, larger is better; "
        "repeatable.\n\n"
        "A number for each line of --kbest, or SYSTEM:FILE of each system, or a table, as of "
        "--scores. A program is asked with references, and with --source unless source=no is "
        "behind it.",
        "--metric",
        type=Pair("NAME=FILE", FILE),
        default=(),
        metavar="NAME=FILE",
        rare=True,
    )
    tokenize: str | None = tokenize_option()
    length: Length = option(
        "Length of the output ÷ that of the references: auto, keep, free, or a number to hold.\n\n"
        "auto, for --select cv, sets a price on other ratios than that of the start weights, keep "
        "on others than that of the first candidates, a number on others than this; free is "
        "whatever maximises the objective.",
        "--length-ratio",
        type=WordOr(("auto", "keep", "free"), LENGTH_RATIO),
        metavar="RATIO",
        default="auto",
        rare=True,
    )
    price: float | None = optional(
        "Price of a length ratio off by 1, in points of the objective [default: 5].",
        "--length-price",
        type=PRICE,
        metavar="POINTS",
        rare=True,
    )
    shrinkage: float | None = optional(
        "Price of leaving the direction of the start weights, in points of the objective.\n\n"
        "POINTS · (1 − cosine); features that start at 0 are free. 0 maximises the metric "
        "alone. Default: 0; with --select none 1, but 0 with a --metric.",
        "--shrink",
        type=PRICE,
        metavar="POINTS",
        rare=True,
    )

    def __post_init__(self) -> None:
        if not self.metrics:  # of a command line without any
            object.__setattr__(self, "metrics", ((BLEU, 1.0),))

    @property
    def length_price(self) -> float:
        """The price of length in use, 0 where length has none."""
        if self.length in ("auto", "free"):
            return 0.0
        return LENGTH_PRICE if self.price is None else self.price

    @property
    def shrinkage_price(self) -> float:
        """The price in use; the default is 0 where the range of a metric is not known."""
        default = 0.0 if self.files else SHRINKAGE
        return default if self.shrinkage is None else self.shrinkage

    def check(self) -> None:
        """UsageError for values that make no objective, before any work."""
        if self.length in ("auto", "free") and self.price is not None:
            raise UsageError(
                f"--length-price: --length-ratio {self.length} has no price; add --length-ratio "
                "keep, or leave the price out"
            )
        names, files = [name for name, _ in self.metrics], [name for name, _ in self.files]
        programs = self.programs  # of files of systems, as SYSTEM:FILE, a metric may have several
        whole = [n for n, file in self.files if n in programs or ":" not in str(file)]
        refuse_repeated("--metric", whole)
        if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
            raise UsageError(
                f"--objective: expected one metric, or two different ones, found {' '.join(names)}"
            )
        for name in files:
            if name in METRICS:
                raise UsageError(
                    f"--metric {name}=…: {name} is a metric of rerank; take another name"
                )
            if name not in names:
                raise UsageError(f"--metric {name}=…: not used; add --objective {name}")
        if self.price == 0:
            ratio = self.length if isinstance(self.length, str) else f"{self.length:g}"
            raise UsageError(
                f"--length-ratio {ratio}: --length-price 0 switches it off; leave one of them out"
            )

    @property
    def paths(self) -> list[FilePath]:
        """The files of scores of other tools."""
        from rerank.scorers.numbers import file_of_scores

        programs = self.programs
        return [file_of_scores(str(path)) for name, path in self.files if name not in programs]

    @property
    def programs(self) -> dict[str, str]:
        """The programs and judges that score, by the name of the metric."""
        named = [(name, str(value)) for name, value in self.files]
        return {name: value for name, value in named if value.startswith(ESTIMATORS)}

    def program_metrics(self) -> dict[str, ProgramMetric]:
        """The metrics of programs and judges by name, these started."""
        if not self.programs:
            return {}
        from rerank.scorers.judge import estimator_of
        from rerank.scorers.programs import ProgramMetric

        programs = self.programs.items()
        return {n: ProgramMetric(n, estimator_of(f"--metric {n}=", value)) for n, value in programs}

    def load_metrics(
        self, bleu: Bleu | None = None, read: Callable[[str], Metric] | None = None
    ) -> tuple[Metric, ...]:
        """The metrics to count: BLEU (of `tokenize` by default), then those that are named.

        Where BLEU has a tokenizer, BLEU of the words as they are comes last, for the report. read:
        makes the metric of a name in `files`.
        """
        from rerank.metrics import metric
        from rerank.metrics.bleu import Bleu

        bleu = bleu or Bleu(self.tokenize or "none")
        metrics: list[Metric] = [bleu]
        for name, _ in self.metrics:
            if read is not None and name in dict(self.files):
                metrics.append(read(name))
            elif name != BLEU:
                try:
                    metrics.append(metric(name))
                except UsageError as fault:
                    cure = f"; scores of another tool are given by --metric {name or 'NAME'}=FILE"
                    cure *= read is not None
                    raise UsageError(f"--objective {name}: {fault}{cure}") from fault
        return (*metrics, *([Bleu()] if bleu.tokenize != "none" else []))


@record
class MertSettings:
    """Effort of a search; results do not depend on the threads, one by default.

    kicks: of each of the two chains; pools of more than 200,000 candidates get fewer than 15
    """

    random_starts: int = option(
        "Random starts of a search on all documents.\n\n"
        "Beside the given weights, zeros and the maximum of expected BLEU; cross-validation "
        "takes none.",
        "--starts",
        type=Whole(0),
        default=0,
        rare=True,
    )
    seed: int = option("Seed of all random numbers.", type=SEED, default=1, rare=True)
    threads: int | None = optional(
        "Starts or folds in parallel, and CPU threads for language models.\n\n"
        "Default: one; for large models more. Other tuners than mert use one thread for a "
        "search.",
        type=Whole(1, _MOST_THREADS),
        rare=True,
    )
    kicks: int = 15


@record
class Plan:
    """How weights are tuned. settings: of MERT; other tuners use the seed alone."""

    objective: ObjectiveOptions = part(
        ObjectiveOptions, "What is maximised", rare={"tokenize"}, default_factory=ObjectiveOptions
    )
    algorithm: str = option(
        "The tuner; all but mert maximise corpus BLEU and nothing else.",
        type=click.Choice([MERT, *ALGORITHMS]),
        default=MERT,
        rare=True,
    )
    select: str = option(
        "cv: go as far from the start as is better on documents left out; none: all the way.\n\n"
        "cv: tune on four fifths of the documents at a time, and go as far from the start "
        "weights towards the tuned ones as is better on the documents left out, if at all "
        "(blocks of lines where there are under four documents). none: take the tuned "
        "weights.",
        type=click.Choice(SELECTIONS),
        default=CV,
    )
    settings: MertSettings = part(MertSettings, without={"kicks"}, default_factory=MertSettings)
    replicates: int = option(
        "Number of tunings on resampled documents, whose weights are averaged.\n\n"
        "1 averages those of the folds of cross-validation.",
        type=Whole(),
        default=1,
        rare=True,
    )
    held_out: float = option(
        "Hold out this share of the documents from tuning, and report BLEU there.",
        "--hold-out",
        type=Real(0, 1, below=True),
        metavar="SHARE",
        default=0.0,
        rare=True,
    )

    def check(self, *, ranges: bool = False, start: bool = True) -> None:
        """UsageError for options without effect; whether there are ranges, and start weights."""
        self.objective.check()
        if self.objective.shrinkage and not start:
            raise UsageError(
                f"--shrink {self.objective.shrinkage:g}: there are no start weights whose "
                "direction could be kept; give some by --start"
            )
        if self.algorithm == MERT:
            return
        length: Length = "free" if self.objective.length == "free" else "auto"
        plain = ObjectiveOptions(tokenize=self.objective.tokenize, length=length)
        other = MertSettings(seed=self.settings.seed, threads=self.settings.threads)
        if ranges or self.objective != plain or self.settings != other:
            raise UsageError(
                f"--algorithm {self.algorithm} maximises corpus BLEU in its own way: options of "
                "the objective, ranges and --starts are for --algorithm mert"
            )

    @property
    def objective_options(self) -> ObjectiveOptions:
        """The objective in use; cross-validation has no price on direction unless asked for."""
        if self.algorithm != MERT:
            return ObjectiveOptions(shrinkage=0.0)
        if self.select == CV and self.objective.shrinkage is None:
            return replace(self.objective, shrinkage=0.0)
        return self.objective

    @property
    def holds_length(self) -> bool:
        """Whether the length of the start is held, unless its evidence is settled."""
        auto = self.objective.length == "auto" and not self.objective.files  # scores of any range
        return self.select == CV and auto

    @property
    def searched(self) -> tuple[str, MertSettings]:
        """What the result of a search on a pool depends on, beside the goal."""
        return self.algorithm, replace(self.settings, threads=1)

    def seeded(self, seed: int) -> Plan:
        """The plan with another seed."""
        return replace(self, settings=replace(self.settings, seed=seed))

    def entries(self, objective: str, files: Sequence[FilePath]) -> dict[str, object]:
        """Entries of every weights file about its making: command, inputs, tuner, seed."""
        settings = self.settings
        starts = {"random_starts": settings.random_starts} if self.algorithm == MERT else {}
        return {
            **run_entries(files),
            "algorithm": self.algorithm,
            "select": self.select,
            "objective": objective,
            "seed": settings.seed,
            **starts,
            "threads": settings.threads or 1,
        }


@record
class TunedWeights:
    """The weights file that a tuning writes, where the weights start, and their ranges."""

    out: str = option(
        "Weights file to write: .json (or -) or .ini (with --base, moses.ini).", type=FILE
    )
    base: str | None = optional_file(
        "moses.ini that --out is to be, with the new weights in it.", rare=True
    )
    start: str | None = optional_file(
        "Weights to start from, sparse ones too: moses.ini, run*.dense, weights.txt, JSON; "
        "features it lacks begin at 0."
    )
    ranges: tuple[tuple[str, tuple[float, float]], ...] = option(
        "Least and greatest weight of a feature, as LM0=0: or TM0_1=-1:1; repeatable.",
        "--range",
        type=Pair("NAME=LOW:HIGH, as LM0=0: or TM0=-1:1", Interval(), last=True),
        default=(),
        metavar="NAME=LOW:HIGH",
        rare=True,
    )
    plot: str | None = optional_file(
        "Draw the objective along each feature around the tuned weights: .svg, .png or .pdf "
        "(needs matplotlib).",
        metavar="FILE",
        rare=True,
    )

    @property
    def inputs(self) -> list[FilePath]:
        """Files that are read."""
        return [path for path in (self.start, self.base) if path]

    def read(self, notices: Notices) -> tuple[list[bytes] | None, Weights | None]:
        """Lines of the moses.ini that is written again, and the start weights."""
        from rerank.formats.weight_files import read_base, read_start_weights

        lines = None if self.base is None else read_base(self.base, notices)
        return lines, None if self.start is None else read_start_weights(self.start, notices)

    def check(self) -> None:
        """UsageError for two ranges of one name."""
        refuse_repeated("--range", [name for name, _ in self.ranges])

    def check_files(
        self, files: Sequence[FilePath], folders: Sequence[FilePath] = ()
    ) -> InputFiles:
        """The files that are read, as they are now; UsageError as of `check_outputs`."""
        from rerank.files.outputs import check_matplotlib, check_outputs
        from rerank.formats.weights import kind_of

        inputs = check_outputs((self.out, self.plot), files, folders)
        kind_of(self.out, merged=self.base is not None)
        if self.plot:
            if Path(self.plot).suffix not in FIGURES:
                raise UsageError(f"--plot {self.plot}: expected a file {', '.join(FIGURES)}")
            check_matplotlib("--plot")
        return inputs


def refuse_repeated(
    flag: str, names: Sequence[str], why: str = "two of one name; give one"
) -> None:
    """UsageError for a name that is repeated in the values NAME=… of an option."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{flag} {twice[0]}=…: {why}")
