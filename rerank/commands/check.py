"""`rerank check`: what is wrong with the files of a run, and what they hold."""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rerank.corpus.documents import DocumentFile
from rerank.corpus.reading import AS_SOURCE, tokenize_option
from rerank.diagnostics import diagnostic
from rerank.errors import InputError, UsageError
from rerank.files.lines import scratch_file, spool
from rerank.files.outputs import atomic_all, check_outputs
from rerank.files.paths import FilePath, base_name, display, file_and_name
from rerank.files.terminal import progress_shown, show
from rerank.notices import Notices, Strictness
from rerank.options import Command, eager, flag, option, optional, optional_file, part, record
from rerank.report.measures import tokenizer_of
from rerank.runs.options import (
    ListFiles,
    Messages,
    ReferenceFiles,
    RunOptions,
    form_option,
    print_result,
)
from rerank.scorers.model_options import LM, GlossaryName, check_names, glossary_value
from rerank.values import FOLDER, DiagnosticName, Pair

if TYPE_CHECKING:
    from rerank.check.findings import CleanCopies, Finding, Findings
    from rerank.check.survey import KnownWords, ListSurvey
    from rerank.runs.lists import Lists, ListSource


@record
class OtherFiles:
    """Files of a run beside its lists."""

    references: ReferenceFiles = part(ReferenceFiles)
    source: str | None = optional_file("Source text, one line per source sentence.")
    weights: str | None = optional_file("Weights file, whose names must be those of the list.")
    embeddings: bool = flag(
        "Warn of candidates that are nearer to another source line than to their own (extra "
        "embeddings).\n\n"
        "The first candidates of a list, all of --systems, by a multilingual encoder; 25 "
        "texts a second.",
        needs={"source": "candidates are compared with the source; give --source FILE"},
    )
    glossary: str | None = optional(
        "Glossary, as of decode, whose terms the source should have; needs --source, and no list.",
        type=GlossaryName(),
        metavar="FILE[,KEY=yes]",
        needs={"source": "its terms are looked for in the source; give --source FILE"},
    )
    lm: tuple[tuple[str, Path], ...] = option(
        "Language model, whose unknown words are counted; repeatable.",
        type=Pair("NAME=DIR, for example codclm=models/codclm", FOLDER),
        default=(),
        metavar="NAME=DIR",
    )

    @property
    def files(self) -> list[str | None]:
        """The files, without the models and the source, which belongs to the lists."""
        terms = glossary_value(self.glossary)[0] if self.glossary else None
        return [*self.references.references, self.weights, terms]


@record
class CheckOptions:
    """Options of `rerank check`."""

    lists: ListFiles = part(ListFiles, "Lists and documents", rare={"kbest_format", "missing"})
    others: OtherFiles = part(OtherFiles, "Other files of the run")
    tokenize: str | None = tokenize_option()
    tune: bool = flag(
        "Tune weights of the list's features, too, for what that gains on held-out documents; "
        "takes the time of tune-mert."
    )
    fix: str | None = optional_file(
        "Write a clean copy of the list to the file OUT, or of all texts into the folder "
        "OUT.\n\n"
        "Only what needs no guess is repaired; the exit code is then 0 if the copies have no "
        "faults, and nothing is written otherwise.",
        metavar="OUT",
    )
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})

    def check(self) -> None:
        """UsageError for tuning without references."""
        if self.tune and not self.others.references.references:
            raise UsageError("--tune: it tunes on references; give --ref FILE")

    @property
    def only_terms(self) -> bool:
        """Whether a glossary is checked against a source, without lists."""
        lists, others, references = self.lists, self.others, self.others.references
        files = [*lists.files_of_lists, *lists.systems, lists.documents.file, self.fix]
        files += [*references.references, others.weights, *(str(path) for _, path in others.lm)]
        asked = others.embeddings or references.drop_unreferenced or any(files)
        return others.glossary is not None and not asked

    def copies(self, lists: Lists) -> dict[FilePath, str | Path]:
        """Where the clean copy of each file goes; UsageError where it cannot."""
        if self.fix is None:
            return {}
        if self.fix == "-":
            raise UsageError("--fix -: the report is on standard output; name a file or a folder")
        if not Path(self.fix).is_dir():
            if lists.made:
                raise UsageError(
                    f"--fix {self.fix}: expected a folder, for copies of all files of --systems; "
                    f"mkdir {shlex.quote(self.fix)}"
                )
            return {lists.kbest: self.fix}
        docs = [] if lists.docs is None else [lists.docs]
        side = lists.side.values()
        outputs = [path for _, path in lists.systems if file_and_name(path)[1] is None]
        files = [*(outputs if lists.made else [lists.kbest]), *docs, *side]
        files += self.others.references.references
        copies: dict[Path, FilePath] = {}
        for path in files:
            copy = Path(self.fix, Path(path).name)
            if copies.setdefault(copy, path) != path:
                raise UsageError(
                    f"--fix {self.fix}: {copies[copy]} and {path} would have one copy, {copy}; "
                    "rename one of them"
                )
        return {path: copy for copy, path in copies.items() if not Path(path).is_dir()}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Findings about the files of a run, and a summary of its lists if they can be read.

    strictness: which warnings fail as faults do; copies: clean ones, if any were asked for.
    """

    findings: Findings
    summary: ListSurvey | None
    strictness: Strictness
    copies: CleanCopies | None = None

    @property
    def exit_code(self) -> int:
        """3 if the files, or else the clean copies asked for, have faults; otherwise 0."""
        findings = self.findings if self.copies is None else self.copies.findings
        return 3 if any(x.fault or self._fails(x) for x in findings.all) else 0

    def _fails(self, warning: Finding) -> bool:
        """Whether a warning is an error."""
        name = warning.kind.name if warning.kind else ""
        return bool(self.strictness.refuses(name, asked=warning.asked))

    def to_dict(self) -> dict[str, object]:
        """The result as JSON values, numbers unrounded."""
        return {
            "schema": 1,
            "exit_code": self.exit_code,
            "summary": None if self.summary is None else self.summary.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings.all],
            "copies": None if self.copies is None else self.copies.to_dict(),
        }

    def to_text(self) -> str:
        """The summary, then the faults and warnings, a line each."""
        summary = self.summary
        parts = [] if summary is None else [summary.to_text()]
        failing = [self._fails(finding) for finding in self.findings.of_level(False)]
        some = "" if all(failing) else f"{sum(failing)} of them "
        option = "--strict" if self.strictness.strict else "--deny" * any(failing)
        strict = f", {some}errors under {option}" if option else ""
        for fault, name, meaning in (
            (True, "fault", ", which decode and tune-mert refuse"),
            (False, "warning", strict),
        ):
            lines = [finding.to_text() for finding in self.findings.of_level(fault)]
            if lines:
                title = f"{len(lines)} {name}{'s' if len(lines) > 1 else ''}{meaning}:"
                parts.append("\n".join([title, *lines, ""]))
        if not self.findings.all:
            parts.append("no faults, no warnings\n")
        if summary is not None and summary.bleu is not None and summary.k.max() > 1:
            parts.append(summary.bleu.to_text(summary.k, limited=summary.of_systems is None))
        if self.copies is not None:
            parts.append(self.copies.to_text())
        return "\n".join(parts)


def check(options: CheckOptions) -> int:
    """Find faults in the files of a run, and summarise its lists.

    All faults and warnings are listed with file, line and cure, each kind once with its count. The
    exit code is 3 if decode or tune-mert would refuse the files; under --strict also for warnings.

    Example:
      rerank check --kbest dev.nbest.gz --docs dev.docids --ref dev.ref --weights w.json
    """
    from rerank.check.findings import CleanCopies, Findings

    others, messages = options.others, options.messages
    lists = options.lists.lists(
        side={} if others.source is None else {"source": others.source},
        drop_unreferenced=others.references.drop_unreferenced,
    )
    if not options.only_terms:
        lists.check()
    targets, files = options.copies(lists), [*lists.files, *others.files]
    inputs = check_outputs(targets.values(), files, [folder for _, folder in others.lm])
    findings, summary = Findings(), None
    copies = CleanCopies({}, findings) if targets else None  # until the lists are read
    with progress_shown(not messages.quiet), ExitStack() as opened:
        models = _known_words(others)
        with findings.counting():
            _check_terms(options, findings)
        source = None
        with findings.counting():
            if not options.only_terms:
                source = _source(lists, others.references.references, findings, opened)
        if source is not None:
            source = _with_sources(source, wanted=others.embeddings)
            findings, summary = _examined(source, options, models, findings)
            if targets:
                copies = _clean(source, lists.kbest, others.references.references, targets)
            if options.tune and summary and not any(findings.of_level(True)):
                _tune(lists if lists.made else source.lists, options, summary)
            inputs.check()
    result = CheckResult(findings, summary, messages.strictness, copies)
    print_result(result, options.form)
    return result.exit_code


def _explain(_ctx: click.Context, word: str) -> None:
    """Print a row of the table of diagnostics, in place of the work."""
    show(diagnostic(word).explained(), for_people=True)
    _ctx.exit()


COMMAND = Command(
    "check",
    CheckOptions,
    check,
    eager(
        "--explain", _explain, type=DiagnosticName(), help="Explain a kind of warning, and exit."
    ),
)


def _known_words(others: OtherFiles) -> list[KnownWords]:
    """The vocabularies of the language models."""
    from rerank.check.survey import KnownWords
    from rerank.scorers.models import open_model

    check_names({LM: others.lm})
    models = {name: open_model(folder, "cpu") for name, folder in others.lm}
    for saved in models.values():
        _ = saved.model  # whose tensors are checked, too
    return [KnownWords(name, saved.vocabulary, saved.about) for name, saved in models.items()]


def _check_terms(options: CheckOptions, findings: Findings) -> None:
    """Find faults of a glossary, and of the source where no lists are checked with it."""
    from rerank.scorers.glossary import check_terms

    others = options.others
    if others.glossary and others.source:
        of_source = findings if options.only_terms else Notices()
        line = check_terms(others.glossary, others.source, findings, of_source)
        options.messages.announce(line)


def _source(
    lists: Lists, references: Sequence[str | Path], findings: Findings, opened: ExitStack
) -> ListSource:
    """The lists, those of systems in memory; `opened` closes what is opened."""
    from rerank.check.findings import Findings
    from rerank.runs.lists import KBestFile, own_documents, read_targets
    from rerank.runs.systems import made_lists

    if not lists.made:
        path = opened.enter_context(spool(lists.kbest)).path
        return KBestFile(path, replace(lists, kbest=path), unreported=Findings())
    if references and lists.drop_unreferenced:
        documents, _ = read_targets(lists, references, Findings(), lambda line: None)
        if count := documents.n_left_out:
            source = display(references[0])
            findings.add("sentence-without-reference", source=source, count=count, asked=True)
        return made_lists(lists, findings, opened, documents)
    return made_lists(lists, findings, opened, own_documents(lists))


def _with_sources(source: ListSource, *, wanted: bool) -> ListSource:
    """The lists with the source lines beside them, where these are candidates, or wanted."""
    from rerank.formats.translations import check_files
    from rerank.runs.lists import MISSING_SOURCE

    lists = source.lists
    if lists.missing == AS_SOURCE or wanted:
        source.side = lists.side
    if lists.missing == AS_SOURCE:
        try:
            source.find_sources()
            check_files(MISSING_SOURCE, source.kinds)
        except InputError:  # reported where the list is read
            return source.without_sources()
    return source


def _examined(
    source: ListSource, options: CheckOptions, models: Sequence[KnownWords], of_files: Findings
) -> tuple[Findings, ListSurvey | None]:
    """All findings, those of the systems' files once, and the figures of the lists."""
    from rerank.check.survey import examine

    others, announce = options.others, options.messages.announce
    references = others.references.references
    findings, summary = examine(
        source,
        references,
        others.weights,
        models,
        tokenize=tokenizer_of(options.tokenize, references, announce),
        embeddings=others.embeddings,
    )
    if source.lists.made:
        known = of_files.kinds
        findings = findings.where(
            lambda fault, name, kind: name != source.name or (fault, kind) not in known
        )
    findings.merge(of_files)
    return findings, summary


def _tune(lists: Lists, options: CheckOptions, summary: ListSurvey) -> None:
    """Add to the summary what tuning the list's weights gains, as `rerank tune-mert` finds it."""
    from rerank.check.survey import TunedBleu
    from rerank.formats.weight_files import read_weights
    from rerank.options import settings_of
    from rerank.runs.lists import read_targets
    from rerank.runs.opening import open_run
    from rerank.runs.search import SearchOptions
    from rerank.runs.tuning_set import tune_documents, tuning_search
    from rerank.scorers.agreement import AGREEMENT
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objective import bleu_of
    from rerank.tuning.plan import ObjectiveOptions, Plan

    others = options.others
    plan, unheard = Plan(objective=ObjectiveOptions(tokenize=summary.tokenize)), Notices()
    documents, lines = read_targets(lists, others.references.references, unheard, lambda line: None)
    start = None if others.weights is None else read_weights(others.weights, unheard)
    settings = settings_of(RunOptions)
    settings = settings.with_agreement() if lists.made and start is None else settings
    with open_run(lists, unheard, settings, documents=documents) as run:
        search = tuning_search(SearchOptions().chosen(), plan)
        source, systems = others.weights or "", {} if start else run.source.systems
        tuned = tune_documents(
            run,
            documents.split(lines),
            plan.objective.load_metrics(),
            run.choose_search(search, lambda line: None),
            features=TunedFeatures((), start, source, systems=systems),
            plan=plan,
            announce=lambda line: None,
        )
    if tuned.selection is None or summary.bleu is None:
        return
    shown, agreed = tuned if tuned.first_kept else tuned.selection, summary.bleu.agreement
    bleu, note = bleu_of(shown.statistics), f"tuning: {shown.to_text()}"
    has_agreement = any(feature.name == AGREEMENT for feature in summary.features)
    if not systems and agreed > bleu and not has_agreement:
        note += (
            f"\nthe choice by agreement alone is better: BLEU {agreed:.2f}; tune-mert --agreement "
            "makes it a feature to tune, decode --agreement without --weights chooses by it alone"
        )
    summary.bleu = replace(summary.bleu, tuned=TunedBleu(bleu, note))


def _clean(
    source: ListSource,
    kbest: FilePath,
    references: Sequence[str | Path],
    targets: Mapping[FilePath, str | Path],
) -> CleanCopies:
    """Write clean copies to the targets, unless one of them would have faults.

    kbest: the list as the user named it.
    """
    from rerank.check.findings import CleanCopies, Findings, cleaned_list, cleaned_text, in_nfc
    from rerank.check.survey import documents_of_run, examine
    from rerank.runs.lists import KBestFile

    lists = source.lists
    if not lists.made:
        source = KBestFile(lists.kbest, lists, unreported=Findings())
    documents, _ = documents_of_run(source, references, Findings())
    repairs: dict[str, Counter[str]] = {}
    with ExitStack() as scratch:
        copies: dict[FilePath, Path] = {}
        faults = Findings()
        with faults.counting():
            for path, target in targets.items():
                name = f"<clean copy of {base_name(path)}>"
                copies[path] = scratch.enter_context(scratch_file(name))
                done = repairs[display(target)] = Counter()
                if path == kbest:
                    cleaned = cleaned_list(lists.kbest, lists, done)
                else:
                    cleaned = cleaned_text(path, documents.n_sentences, done)
                if lists.in_nfc and path != lists.docs:
                    cleaned = in_nfc(cleaned, done)
                with copies[path].open("wb") as copy:
                    copy.writelines(line + b"\n" for line in cleaned)
        if faults.first_fault is not None:
            return CleanCopies({}, faults)
        source.lists = _in_copies(replace(lists, kbest=copies.get(kbest, lists.kbest)), copies)
        if not lists.made:
            source = KBestFile(source.lists.kbest, source.lists, unreported=Findings())
        source = _with_sources(source, wanted=False)
        findings, _ = examine(source, [copies.get(path, path) for path in references])
        names = set(map(display, copies.values()))
        findings = findings.where(lambda fault, source, kind: source in names)
        if any(findings.of_level(True)):
            return CleanCopies({}, findings)
        with atomic_all(list(targets.values())) as files:
            for path, out in zip(targets, files, strict=True):
                with copies[path].open("rb") as copy:
                    shutil.copyfileobj(copy, out)
    return CleanCopies(repairs, findings)


def _in_copies(lists: Lists, copies: Mapping[FilePath, Path]) -> Lists:
    """The lists with the copies of the files beside them, where there are copies."""
    docs = None if lists.docs is None else copies.get(lists.docs, lists.docs)
    if isinstance(lists.docs, DocumentFile) and docs is not None:
        docs = replace(lists.docs, path=docs)
    side = {kind: copies.get(path, path) for kind, path in lists.side.items()}
    return replace(lists, docs=docs, side=side)
