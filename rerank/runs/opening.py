"""Opening a run of the options of the shell, with its scorers and the files that they need."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.corpus.columns import column_names
from rerank.corpus.documents import Documents
from rerank.corpus.reading import AS_ERROR, AS_SOURCE, AVOID, DROP
from rerank.errors import InputError, SideError, StoppedEarly, UsageError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.cache import Cache
from rerank.files.lines import RereadFile, check_readable, spool
from rerank.files.paths import FilePath, display
from rerank.files.terminal import Interrupts, Stopwatch, Terminated, progress
from rerank.formats.translations import SOURCE, check_files
from rerank.notices import Notices, Printer, log
from rerank.options import settings_of
from rerank.registry import SCORE_FILES, attribute
from rerank.runs.distribution import shard_of
from rerank.runs.lists import MISSING_SOURCE, KBestFile, Lists, ListSource
from rerank.runs.options import RunOptions, ScorerOptions, ScoringMachine
from rerank.runs.run import Run
from rerank.runs.search import Scorers
from rerank.runs.systems import made_lists
from rerank.scorers.agreement import (
    AGREEMENT,
    CONSENSUS,
    VOTES,
    Agreement,
    DefectFeature,
    agreement_of_systems,
)
from rerank.scorers.glossary import GlossaryScores
from rerank.scorers.model_options import check_names, glossary_value
from rerank.scorers.models import open_models, open_scorer
from rerank.scorers.numbers import LineValues, NumberLines, ScoreSource, SystemScores
from rerank.scorers.score_files import FileScorer, ListInfo

if TYPE_CHECKING:
    from rerank.scorers.programs import Estimator  # loads numba


class InputCopies(ExitStack):
    """Input files to read several times; copies of pipes and standard input, deleted at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[RereadFile] = []

    def copied(self, path: FilePath) -> RereadFile:
        """A path to read several times: of standard input, that of a copy."""
        file = self.enter_context(spool(path))
        self.files.append(file)
        return file


def check_scorers(options: ScorerOptions) -> None:
    """UsageError for names of features that are invalid, or taken."""
    added = [(name, "") for name in (AGREEMENT, VOTES, *CONSENSUS) if options.agreement]
    check_names(
        {"agreement": added, **options.names}, [model.name for model in options.lm if model.pmi]
    )


def open_scorers(
    options: ScorerOptions,
    machine: ScoringMachine,
    notices: Notices,
    programs: Sequence[Estimator] = (),
) -> tuple[Scorers, Cache | None]:
    """Models, plug-ins and the glossary, and the cache of their scores and of programs' answers."""
    cache = machine.open_cache(notices) if options.lm or options.scorer or programs else None
    for program in programs:
        program.keep_in(cache, machine.of_models)
    models = open_models(options.lm, cache, **machine.of_models)
    plugins = [open_scorer(name, entry, cache, machine.of_models) for name, entry in options.scorer]
    glossary = None
    if (terms := options.glossary) is not None:
        glossary = GlossaryScores.read(glossary_value(terms)[0], terms, notices)
    return Scorers(models=models, plugins=plugins, glossary=glossary), cache


@contextmanager
def open_run(
    lists: Lists,
    notices: Notices,
    options: RunOptions | None = None,
    *,
    documents: Documents | None = None,
    announce: Printer = lambda line: None,
    programs: Sequence[Estimator] = (),
    metrics: Iterable[tuple[str, FilePath]] = (),
    check_side: bool = True,
    sources: bool = False,
) -> Iterator[Run[ListSource]]:
    """A run through lists; standard input is copied for as long as it is open.

    lists: of the options, or what became of them; without options there are no scorers. What
    models choose by the first lists is announced. programs: beside the scorers, whose answers are
    cached, too; metrics: (name, file) of metrics of other tools, for `Run.metrics`; check_side:
    whether side information that no scorer needs is refused; sources: whether they are wanted even
    so. When the run is stopped, scores that were computed go to the cache (`StoppedEarly`).
    """
    options = options or settings_of(RunOptions)
    with InputCopies() as copies:
        check_scorers(options.scorers)
        watch = Stopwatch()
        with watch.lap("lists"):
            store = ArrayStore.of_process(options.sharing.memory)
            source = open_source(lists, notices, copies, documents, store=store)
        with watch.lap("models"):
            scorers, cache = open_scorers(options.scorers, options.machine, notices, programs)
        needed = _needed(source.lists, scorers, programs)
        _find_side(source, needed, options, check=check_side, sources=sources)
        source.side = {kind: copies.copied(path) for kind, path in source.lists.side.items()}
        if documents is None and isinstance(source, KBestFile):
            source.documents = source.find_documents(notices)
        with watch.lap("scores"):
            numbers = _Numbers(source, copies, notices)
            scorers.score_files = numbers.scorers(options.scorers)
        run = Run(
            source,
            scorers,
            notices,
            origins=options.scorers.origins,
            store=ArrayStore.of_process(options.sharing.memory),
            options=options,
            watch=watch,
            cache=cache,
            programs=programs,
            metrics=numbers.metrics(metrics),
        )
        with watch.lap("lists"):  # before anything is scored
            _read_first(run, announce)
        with _faults(run, copies):
            with watch.lap("models"):
                for model in run.scorers:  # what the options leave to them
                    model.progress = progress
                    if model is not run.scorers_by_kind.agreement:  # which has chosen
                        line = model.choose(kbest for _, kbest in run.read_unreported())
                        if line:
                            announce(line)
            if options.sharing.shard is not None:
                run.shard = shard_of(run, *options.sharing.shard)
            yield run


@contextmanager
def _faults(run: Run[ListSource], copies: InputCopies) -> Iterator[None]:
    """Work of a run, whose faults say where they are; scores are kept when it is stopped."""
    try:
        yield
    except InputError as fault:
        for file in copies.files:
            file.check()  # a file that was rewritten is the reason
        if not isinstance(fault, SideError):
            raise
        raise run.source.located(fault) from None
    except (KeyboardInterrupt, Terminated):
        copies.close()
        if run.cache is None:
            raise
        with Interrupts():  # schedulers repeat their signals
            for document in run.unfinished:
                document.save()
        if not run.cache.saved:
            raise
        raise StoppedEarly(
            "stopped, finished work kept in the cache: the same command goes on from there"
        ) from None


def _read_first(run: Run[ListSource], announce: Printer) -> None:
    """Read lists of which all must be known before any is scored; held, where memory allows."""
    if run.options.scorers.agreement or run.defects.mode == AVOID:
        _ = run.sizes
    if run.options.scorers.agreement:
        add_agreement(run, announce, merged=bool(run.source.lists.merged))
    if run.defects.mode == AVOID:
        add_defects(run)
    elif run.source.lists.missing == AS_ERROR:
        deque(run.read_unreported(), maxlen=0)


def open_source(
    lists: Lists,
    notices: Notices,
    copies: InputCopies,
    documents: Documents | None = None,
    *,
    store: ArrayStore = IN_MEMORY,
) -> ListSource:
    """The lists, of a file with its format detected; files that cannot be read are refused."""
    lists.check()
    if lists.made:
        return made_lists(lists, notices, copies, documents, store=store)
    path = copies.copied(lists.kbest)
    scores = copies.copied(lists.kbest_scores) if lists.kbest_scores else None
    file = KBestFile(path, replace(lists, kbest_scores=scores), documents=documents)
    check_readable([lists.docs] if lists.docs else [])
    _ = file.format  # a file that is no list is refused before models are opened
    return file


def _find_side(
    source: ListSource,
    needed: Mapping[str, str],
    options: RunOptions,
    *,
    check: bool,
    sources: bool,
) -> None:
    """Have the side information read that is needed; UsageError for what lacks or is not needed.

    needed: kinds, and an option that needs each; check: whether others are refused; sources:
    whether these are not. They are of use, too, where candidates that repeat them are avoided.
    """
    avoids = options.scorers.defects in (AVOID, DROP)
    if sources or SOURCE in needed or (avoids and isinstance(source, KBestFile)):
        source.find_sources()
    source.needs_sources = SOURCE in needed
    kinds = source.kinds if check else needed.keys() & source.kinds
    check_files(needed, kinds - ({SOURCE} - needed.keys() if avoids or sources else set()))


def _needed(lists: Lists, scorers: Scorers, programs: Sequence[Estimator]) -> dict[str, str]:
    """Kinds of side information that scorers and others need, and an option that needs each."""
    needed = {kind: program.option for program in programs for kind in program.side_information}
    plugins = {f"--scorer {scorer.name}": scorer for scorer in scorers.plugins}
    plugins |= {} if scorers.glossary is None else {"--glossary": scorers.glossary}
    models = {f"--lm {model.name}": model for model in scorers.models}
    for option, scorer in {**plugins, **models}.items():
        needed |= dict.fromkeys(scorer.side_information, option)
    return needed | (MISSING_SOURCE if lists.missing == AS_SOURCE else {})


class _Numbers:
    """Files with a number for each line of the lists, or for each sentence of each system."""

    def __init__(self, source: ListSource, copies: InputCopies, notices: Notices) -> None:
        self.source, self.copies, self.notices, lists = source, copies, notices, source.lists
        self.info = ListInfo(
            source.documents,
            source.name,
            lambda: (source.survey.last_line, source.survey.blank),
            lists.top,
            lists.clip_inf,
        )

    def scorers(self, options: ScorerOptions) -> list[FileScorer]:
        """Scorers whose values are in files; UsageError for pairs of incomplete documents."""
        scorers: list[FileScorer] = []
        for option, named in options.score_files.items():
            if option == "pair-scores" and self.source.documents.n_left_out:
                raise UsageError(
                    f"--{option}: its lines number the sentences of whole documents, of which "
                    "--drop-unreferenced leaves some out; leave out one of the two options"
                )
            file_scorer = attribute(SCORE_FILES[option].scorer)
            for name, file in named:
                # of `--scores NAME=…` one file, or one for each system
                values = [str(v) for key, v in options.scores if key == name and option == "scores"]
                path = self.path(option, name, values) if values else self.copies.copied(file)
                scorers.append(file_scorer(name, path, self.info, self.notices))
        return scorers

    def metrics(self, files: Iterable[tuple[str, FilePath]]) -> dict[str, NumberLines]:
        """Scores of metrics of other tools, by name; files: (name, value) as they are given."""
        values: dict[str, list[str]] = {}
        for name, value in files:
            values.setdefault(name, []).append(str(value))
        return {
            name: self.info.numbers(name, self.path("metric", name, files_of_name), self.notices)
            for name, files_of_name in values.items()
        }

    def path(self, option: str, name: str, values: Sequence[str]) -> FilePath:
        """The file of NAME=FILE; of scores by system, numbers for the lines of the list.

        values: as they are given; UsageError for a system that there is not.
        """
        lists, systems = self.source.lists, self.source.systems
        known = [*systems.values(), *filter(None, [lists.list_name])]
        sources = [ScoreSource.of(value, known) for value in values]
        tables = [bool(systems) and source.is_table for source in sources]
        merged = {system for system, _ in lists.merged} if systems else set[str]()
        for value, source, is_table in zip(values, sources, tables, strict=True):
            plain = len(sources) == 1 and not (source.names_system or source.kept)
            if not (plain or source.system or is_table):
                raise UsageError(
                    f"--{option} {name}={value}: expected SYSTEM:FILE with SYSTEM one of "
                    f"{', '.join(known) or 'those of --systems'}; a path with a colon is ./PATH"
                )
            if source.system in merged:
                raise UsageError(
                    f"--{option} {name}={value}: {source.system} is a k-best list, with several "
                    f"candidates of a segment; {self._scored(name, source.system, source.path)}, "
                    "and leave this out"
                )
        if not systems or not (sources[0].system or tables[0]):
            if systems:
                sources[0].check_numbers(systems.values())
            return self.copies.copied(sources[0].path)
        cures = {system: self._scored(name, system, "FILE") for system in merged}
        files = {display(path): system for system, path in lists.systems}
        scores = SystemScores(name, systems, files, cures, self.source.documents, option)
        for source in sources:
            path = self.copies.copied(source.path)
            scores.read(replace(source, path=path), self.notices)
        numbers = np.zeros(self.source.survey.last_line)
        for document, kbest in self.source.read(Notices()):
            lines = np.asarray(kbest.line_numbers)
            numbers[lines[lines > 0] - 1] = scores.values(document, kbest)[lines > 0]
        return LineValues(f"<{name} of the systems>", numbers)

    def _scored(self, name: str, system: str, scores: FilePath) -> str:
        """How the scores of a list that is merged with others become a feature of its own."""
        lists = self.source.lists
        path = dict(lists.merged)[system]
        options = {"--kbest": path, "--scores": f"{name}={scores}", "--out": f"{path}.{name}"}
        options |= {"--docs": lists.docs} if lists.docs else {"--no-docs": lists.no_docs or "one"}
        words = " ".join(f"{key} {shlex.quote(str(value))}" for key, value in options.items())
        return (
            f"put its scores, a number for each of its lines, into the list: `rerank score {words}`"
            f", give --kbest {shlex.quote(f'{system}={path}.{name}')} in place of it"
        )


def add_agreement(run: Run[Any], announce: Printer = log.info, *, merged: bool = False) -> None:
    """Add the feature `agreement`, where the lists do not have it; they are read once more.

    merged: whether lists are merged with outputs of systems, whose agreement in all sentences is
    then not counted.
    """
    run.source.keep()
    lists = [kbest for _, kbest in islice(run.read_unreported(), 1)]
    for kbest in lists:
        if AGREEMENT in column_names(kbest.labels) and not run.options.scorers.agreement:
            return
    counted = None
    systems = run.source.systems
    if systems and not merged:
        counted = agreement_of_systems((kbest for _, kbest in run.read_unreported()), systems)
    run.scorers_by_kind.agreement = Agreement(systems, counted)
    if line := run.scorers_by_kind.agreement.choose(kbest for _, kbest in run.read_unreported()):
        announce(line)


def add_defects(run: Run[Any]) -> None:
    """Add the feature `defects` if the lists have some, of a run that avoids them."""
    run.source.keep()
    deque(run.read_unreported(), maxlen=0)
    if run.defects.some:
        run.scorers_by_kind.defects = DefectFeature()
