"""Options of commands that evaluate and report: what is measured, and of which files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from rerank.corpus.reading import tokenize_option
from rerank.errors import InputError, UsageError
from rerank.files.paths import FilePath, display, file_of
from rerank.formats.document_files import PREFIX, read_texts
from rerank.notices import Notices, Printer
from rerank.options import flag, option, optional, optional_file, record
from rerank.registry import ESTIMATORS, METRICS, attribute
from rerank.runs.options import form_option
from rerank.scorers.judge_options import OF_METRICS
from rerank.tuning.plan import refuse_repeated
from rerank.values import FILE, FOLDER, SEED, TEXT, MemberName, Pair, Whole

if TYPE_CHECKING:
    from rerank.metrics import TextMetric
    from rerank.metrics.bleu import Bleu
    from rerank.scorers.programs import ProgramMetric

DEFAULT_METRICS = ("bleu", "chrf", "ter")
KINDS_OF_BLEU = {
    "bleu-lc": "rerank.metrics.bleu:LowercaseBleu",
    "d-bleu": "rerank.metrics.bleu:DocumentBleu",
}
OF_DOCUMENTS = {
    "cohesion": "rerank.metrics.discourse:Cohesion",
    "terms": "rerank.metrics.discourse:Terms",
}
DISCOURSE = "discourse"  # stands for the metrics of `rerank.metrics.discourse`
_COUNTS = ("pronouns", "connectives", "tense", "names", "cohesion")
_OTHERS = (*KINDS_OF_BLEU, *OF_DOCUMENTS, DISCOURSE)
SYSTEMS = ("baseline", "decoded")  # of a report
NOT_REPORTED = frozenset({"detokenize", "detruecase", "weights"})  # measures that it has not


class MetricName(MemberName):
    """The name of a metric, or of values, NAME=command:PROGRAM or NAME=judge:MODEL."""

    sections: ClassVar = {"judge:MODEL": OF_METRICS}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, checked."""
        name, mark, rest = value.partition("=")
        if not mark:
            return super().convert(value, param, ctx)
        if not (name and rest.startswith(ESTIMATORS)):
            self.fail(
                f"expected a name, NAME=command:PROGRAM or NAME=judge:MODEL; found {value!r:.60}; "
                "values in a file are given by --scores NAME=HYP:FILE",
                param,
                ctx,
            )
        if name in self.choices:
            self.fail(f"{name}=…: {name} is a metric of rerank; take another name", param, ctx)
        return value


METRIC = MetricName(METRICS, *_OTHERS)


@record
class MeasureOptions:
    """What is measured of translations, and by which tokens."""

    metrics: tuple[str, ...] = option(
        "Metric beside BLEU, of `rerank list metrics`; repeatable [default: bleu, chrf and "
        "ter].\n\n"
        "bleu-lc: of texts in lower case; d-bleu: of documents as one line each (Liu et al. "
        "2020). discourse: what BLEU hardly sees, of English alone: F1 of pronouns, by what "
        "they refer to, of connectives, by relation, of tense, of names, and of cohesion, "
        "words that a document repeats; each is a metric of this name, too. terms: what the "
        "source repeats and the reference renders alike, how often HYP renders it alike, "
        "too, in any language; needs --source. NAME=command:PROGRAM: the mean of what a "
        "program answers of each line, as tune-mert asks it, with --source unless source=no "
        "is behind it.",
        "--metric",
        "-m",
        type=METRIC,
        default=(),
    )
    tokenize: str | None = tokenize_option()
    scores: tuple[tuple[str, str], ...] = option(
        "Values of metric NAME by another tool, such as COMET, for the lines of HYP; "
        "repeatable.\n\n"
        "A number a line, NA for none; give one for each HYP and for --baseline (`report`: "
        "for decoded, for baseline, and for each --beside by its name). The mean of the "
        "lines for which all have values is reported.",
        type=Pair("NAME=HYP:FILE, for example comet=test.out:test.out.comet", TEXT),
        default=(),
        metavar="NAME=HYP:FILE",
    )
    detokenize: str | None = optional(
        "Score the texts detokenised, too, by the rules of the Moses detokenizer for a language, "
        "such as en; BLEU with the tokenizer 13a.",
        type=TEXT,
        metavar="LANGUAGE",
    )
    detruecase: bool = flag(
        "With --detokenize: begin sentences of the detokenised texts with capitals.",
        rare=True,
        needs={"detokenize": "it is for detokenised texts; add --detokenize LANGUAGE"},
    )
    weights: str | None = optional_file(
        "Weights file of a tuning command (.json): which metrics were optimised.\n\n"
        "Its objective says which metrics are marked as optimised, and which as not; its "
        "length ratio is compared with that of each HYP.",
        rare=True,
    )

    def check(self) -> None:
        """UsageError for two programs of one name."""
        programs = [name for name, mark, _ in self._metrics if mark]
        refuse_repeated(
            "--metric",
            [*programs, *dict(self.scores)],
            "two kinds of values of one name; take another name",
        )

    @property
    def _metrics(self) -> list[tuple[str, str, str]]:
        """Name of each metric, `=` before a program or a judge, and this."""
        return [metric.partition("=") for metric in self.metrics or DEFAULT_METRICS]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics, each once, in place of `discourse` those that it stands for."""
        names = [_COUNTS if name == DISCOURSE else (name,) for name, *_ in self._metrics]
        return tuple(dict.fromkeys(chain(*names)))

    def loaded_metrics(
        self, notices: Notices
    ) -> tuple[Bleu, dict[str, TextMetric | ProgramMetric]]:
        """BLEU and the other metrics by name, programs started; UsageError for unknown ones."""
        from rerank.metrics import bleu, metric

        metrics: dict[str, TextMetric | ProgramMetric] = {}
        tokenize = self.tokenize or "none"
        programs = {name: program for name, mark, program in self._metrics if mark}
        for name in self.names:
            if name in programs:
                metrics[name] = _program_metric(name, programs[name], notices)
            elif name in KINDS_OF_BLEU:
                metrics[name] = attribute(KINDS_OF_BLEU[name])(tokenize)
            elif name in OF_DOCUMENTS:
                metrics[name] = attribute(OF_DOCUMENTS[name])()
            elif name != "bleu":
                metrics[name] = metric(name)
        return bleu.Bleu(tokenize), metrics

    def score_files(self, systems: Sequence[str | Path]) -> dict[str, list[str]]:
        """File of values of each system, the baseline first, by name of the metric.

        UsageError for a file of no system, for a system without one, and for a name that is taken.
        """
        names = list(map(str, systems))
        by_metric: dict[str, dict[str, str]] = {}
        for name, value in self.scores:
            option = f"--scores {name}={value}"
            if name in METRICS or name in _OTHERS:
                raise UsageError(f"{option}: {name} is a metric of rerank; take another name")
            known = [x for x in names if value.startswith(f"{x}:") and value != f"{x}:"]
            if not known:
                raise UsageError(
                    f"{option}: expected HYP:FILE with HYP one of {', '.join(names)}, as they are "
                    "given"
                )
            system = max(known, key=len)
            if system in by_metric.setdefault(name, {}):
                raise UsageError(f"{option}: two files for {system}; give one")
            by_metric[name][system] = value.removeprefix(f"{system}:")
        for name, files in by_metric.items():
            for system in names:
                if system not in files:
                    raise UsageError(
                        f"--scores {name}=…: expected values of all translations, found none of "
                        f"{system}; add --scores {name}={system}:FILE"
                    )
        return {name: [files[system] for system in names] for name, files in by_metric.items()}


@record
class Page:
    """How the report is shown."""

    title: str | None = optional("Title of the page.", type=TEXT)
    show_documents: int = option(
        "Number of documents whose changed sentences are shown: the best, the worst, and some by "
        "chance.",
        type=Whole(),
        default=250,
        rare=True,
    )
    seed: int = option(
        "Random seed of intervals, tests and chance.", type=SEED, default=1, rare=True
    )
    form: str = form_option("html", "json", help="A page for people, or its numbers for machines.")
    out: str = option("The page.", type=FILE, default="-")
    figures: Path | None = optional(
        "Folder for figures for papers, as PDF and SVG: gains of documents, what features add.",
        type=FOLDER,
        metavar="DIR",
    )


def _program_metric(name: str, program: str, notices: Notices) -> ProgramMetric:
    """The metric of a program, whose answers go to the score cache."""
    from rerank.files.cache import Cache, cache_folder, cache_limit
    from rerank.scorers.judge import estimator_of
    from rerank.scorers.programs import ProgramMetric

    metric = ProgramMetric(name, estimator_of(f"--metric {name}=", program))
    metric.estimator.keep_in(Cache(cache_folder(), notices, cache_limit()))
    return metric


def tokenizer_of(chosen: str | None, references: Sequence[FilePath], announce: Printer) -> str:
    """The tokenizer of BLEU: the chosen one, or 13a for references in formats of untokenised texts.

    Such are XML, SGML, JSON and test sets; plain lines are tokenised. The choice of 13a is said.
    """
    if chosen is not None:
        return chosen
    for path in references:
        file, named = file_of(path), False
        with suppress(InputError):  # reported where the text is read
            named = str(file).startswith(PREFIX) or read_texts(file, Notices()) is not None
        if named:
            announce(
                f"BLEU with the tokenizer 13a, since {display(path)} is no text of plain lines; "
                "--tokenize none counts words between white space"
            )
            return "13a"
    return "none"
