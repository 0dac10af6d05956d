"""A run whose k-best lists are in a file: what is opened, in which order, held and written."""

from __future__ import annotations

import math
import os
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import BinaryIO

import numpy as np

from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.reading import AS_ERROR, AS_SOURCE
from rerank.errors import InputError, RerankError, SideError, StoppedEarly, UsageError
from rerank.files.cache import Cache
from rerank.files.lines import RereadFile, check_readable, is_pipe, scratch_file, spool
from rerank.files.outputs import atomic_all
from rerank.files.paths import FilePath, display
from rerank.files.terminal import Interrupts, Terminated, progress
from rerank.formats.table import lines_of, opened
from rerank.formats.translations import SOURCE, check_files
from rerank.notices import Notices, Printer
from rerank.options import settings_of
from rerank.registry import SCORE_FILES, attribute
from rerank.runs.distribution import cost, deal
from rerank.runs.document_run import Array, Run, Stopwatch
from rerank.runs.lists import (
    MISSING_SOURCE,
    KBestFile,
    LineWriter,
    Lists,
    with_own_sources,
)
from rerank.runs.options import RunOptions, ScorerOptions
from rerank.runs.search import Search, row_of
from rerank.runs.systems import made_lists
from rerank.scorers.agreement import AGREEMENT, CONSENSUS, VOTES, Agreement, has_scores
from rerank.scorers.features import DocumentFeatures, FeatureSource
from rerank.scorers.glossary import GlossaryScores
from rerank.scorers.model_options import GLOSSARY, check_names, glossary_value
from rerank.scorers.models import open_models, open_scorer
from rerank.scorers.programs import Estimator
from rerank.scorers.score_files import FileScorer, ListInfo
from rerank.scorers.system_scores import ScoreSource, SystemScores

_HELD = 4  # lists of which so many would fit into memory beside the rest are held there


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


class ListRun(Run):
    """A run whose k-best lists are in a file; made by `ListRun.open`, with its models loaded.

    agreement, models, score_files, plugins: the scorers, in the order of their features, as the
    options name them; info: the documents, and what files of scores need of the lists; systems:
    name of each system by the label of its indicator feature, if the lists are made of their
    outputs.
    """

    def __init__(
        self,
        lists: Lists,
        notices: Notices,
        options: RunOptions,
        documents: Documents | None,
        copies: InputCopies,
        *,
        asked: Sequence[Estimator],
        check_side: bool,
    ) -> None:
        watch, given = Stopwatch(), options.scorers
        added = [(name, "") for name in (AGREEMENT, VOTES, *CONSENSUS) if given.agreement]
        names = {"agreement": added, **given.names}
        check_names(names, [one.name for one in given.lm if one.pmi])
        with watch.lap("lists"):
            lists, documents, self.systems, counted = made_lists(
                lists, notices, copies, documents, agreement=given.agreement
            )
            known = None  # the format is detected before models are opened
            if not is_pipe(lists.kbest):
                known, _ = opened(lists.kbest, Notices(), lists)
            check_readable([lists.docs] if lists.docs else [])
        cache = options.machine.open_cache(notices) if given.lm or given.scorer else None
        with watch.lap("models"):
            self.models = open_models(given.lm, cache, **options.machine.of_models)
            self.plugins = [open_scorer(name, entry, cache) for name, entry in given.scorer]
        self.glossary = None
        if (terms := given.glossary) is not None:
            self.glossary = GlossaryScores.read(glossary_value(terms)[0], terms, notices)
        glossary = [] if self.glossary is None else [self.glossary]
        needed = _needed(lists, self.models, [*self.plugins, *glossary], asked)
        lists = with_own_sources(lists, copies, known) if SOURCE in needed else lists
        check_files(needed, lists.side if check_side else needed.keys() & lists.side)
        self.lists = lists
        side = {kind: copies.copied(path) for kind, path in lists.side.items()}
        scores = copies.copied(lists.kbest_scores) if lists.kbest_scores else None
        listed = replace(lists, kbest_scores=scores)
        file = KBestFile(copies.copied(lists.kbest), listed, side, known=known)
        self.file, self.documents = file, documents or file.documents(notices)
        self.form = "" if lists.made else file.format.name
        self.info = ListInfo(
            self.documents, file.name, lambda: file.survey.last_line, lists.top, lists.clip_inf
        )
        with watch.lap("scores"):
            self.score_files = self._open_score_files(given, notices, copies)
        self.agreement = Agreement(self.systems, counted) if given.agreement else None
        agreement = [] if self.agreement is None else [self.agreement]
        super().__init__(
            [*agreement, *self.models, *self.score_files, *self.plugins, *glossary],
            notices,
            name=file.name,
            origins=given.origins,
            watch=watch,
            memory=options.sharing.memory,
        )
        for scorer in self.scorers:
            scorer.progress = progress
        self.options, self.cache, self.copies = options, cache, copies
        self._held: list[NamedLists] = []
        self.asked = asked
        for one in asked:
            one.keep_in(self.opened_cache())

    def _open_score_files(
        self, given: ScorerOptions, notices: Notices, copies: InputCopies
    ) -> list[FileScorer]:
        """Scorers whose values are in files; UsageError for pairs of incomplete documents."""
        found: list[FileScorer] = []
        for option, named in given.score_files.items():
            if option == "pair-scores" and self.documents.n_left_out:
                raise UsageError(
                    f"--{option}: its lines number the sentences of whole documents, of which "
                    "--drop-unreferenced leaves some out; leave out one of the two options"
                )
            file_scorer = attribute(SCORE_FILES[option].scorer)
            for name, file in named:
                path: FilePath = file
                if option == "scores":
                    path = self.numbers_of(option, name, given.values_of(name), notices, copies)
                found.append(file_scorer(name, copies.copied(path), self.info, notices))
        return found

    def numbers_of(
        self, option: str, name: str, values: Sequence[str], notices: Notices, copies: InputCopies
    ) -> FilePath:
        """The file of NAME=FILE; of scores by system, a file with a number for each line of a list.

        values: as they are given; UsageError for a system that there is not.
        """
        known = [*self.systems.values(), *filter(None, [self.lists.list_name])]
        sources = [ScoreSource.of(value, known) for value in values]
        tables = [bool(self.systems) and source.is_table for source in sources]
        merged = {own for own, _ in self.lists.merged} if self.systems else set[str]()
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
        if not self.systems or not (sources[0].system or tables[0]):
            if self.systems:
                sources[0].check_numbers(self.systems.values())
            return sources[0].path
        cures = {system: self._scored(name, system, "FILE") for system in merged}
        files = {display(path): system for system, path in self.lists.systems}
        scores = SystemScores(name, self.systems, files, cures, self.documents, option)
        for source in sources:
            scores.read(replace(source, path=copies.copied(source.path)), notices)
        numbers = np.zeros(self.file.survey.last_line)
        for document, kbest in self.file.read(self.documents, Notices()):
            lines = np.asarray(kbest.line_numbers)
            numbers[lines[lines > 0] - 1] = scores.values(document, kbest)[lines > 0]
        made = copies.enter_context(scratch_file(f"<{name} of the systems>"))
        made.write_text("".join(f"{value!r}\n" for value in numbers.tolist()))
        return made

    def _scored(self, name: str, system: str, scores: FilePath) -> str:
        """How the scores of a list that is merged with others become a feature of its own."""
        lists, path = self.lists, dict(self.lists.merged)[system]
        options = {"--kbest": path, "--scores": f"{name}={scores}", "--out": f"{path}.{name}"}
        docs = lists.docs if lists.docs and not display(lists.docs).startswith("<") else None
        options |= {"--docs": docs} if docs else {"--no-docs": lists.no_docs or "one"}
        words = " ".join(f"{key} {shlex.quote(str(value))}" for key, value in options.items())
        return (
            f"put its scores, a number for each of its lines, into the list: `rerank score {words}`"
            f", give --kbest {shlex.quote(f'{system}={path}.{name}')} in place of it"
        )

    def metric_file(self, name: str, values: Iterable[tuple[str, FilePath]]) -> FilePath:
        """The numbers of a metric of another tool; values: of all of them."""
        own = [str(value) for one, value in values if one == name]
        return self.copies.copied(self.numbers_of("metric", name, own, self.notices, self.copies))

    @classmethod
    @contextmanager
    def open(
        cls,
        lists: Lists,
        notices: Notices,
        options: RunOptions | None = None,
        *,
        documents: Documents | None = None,
        announce: Printer = lambda line: None,
        asked: Sequence[Estimator] = (),
        check_side: bool = True,
    ) -> Iterator[ListRun]:
        """A run; standard input is copied for as long as it is open.

        lists: of the options, or what became of them; without options there are no scorers.
        What models choose by the first lists is announced. asked: programs beside
        the scorers, whose answers are cached, too; check_side: whether side information that no
        scorer needs is refused. When the run is stopped, scores that were computed go to the cache
        (`StoppedEarly`).
        """
        with InputCopies() as copies:
            given = options or settings_of(RunOptions)
            run = cls(lists, notices, given, documents, copies, asked=asked, check_side=check_side)
            if lists.missing == AS_ERROR:
                with run.watch.lap("lists"):  # before anything is scored
                    deque(run.read_unreported(), maxlen=0)
            try:
                with run.watch.lap("models"):
                    for model in run.scorers:
                        if line := model.choose(kbest for _, kbest in run.read_unreported()):
                            announce(line)
                yield run
            except InputError as fault:
                for file in copies.files:
                    file.check()  # a file that was rewritten is the reason
                if isinstance(fault, SideError):
                    raise run.located(fault) from None
                raise
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

    def report(self, announce: Printer, details: Printer) -> None:
        """As of a run, and what programs beside the scorers have answered."""
        for one in self.asked:
            announce(f"{one.option}: {one.report()}")
        super().report(announce, details)

    def located(self, fault: SideError) -> InputError:
        """An error about side information of a sentence, with file and line."""
        begin, _ = self.documents.span(self.documents.ids.index(fault.document))
        line = self.documents.line(begin + fault.sentence) + 1
        return fault.located(display(self.lists.side[fault.kind]), line)

    def opened_cache(self) -> Cache | None:
        """The cache, also for runs without a model; None where there must be none."""
        self.cache = self.cache or self.options.machine.open_cache(self.notices)
        return self.cache

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence."""
        return self.n_candidates / max(1, self.documents.n_sentences)

    @property
    def n_candidates(self) -> int:
        """Number of candidates; the lists are read, as for `sizes`."""
        return sum(map(sum, self.sizes[0]))

    @cached_property
    def sizes(self) -> tuple[list[list[int]], int]:
        """Candidates of each list of each document, and words of all; read at the first use.

        Documents that fit into memory are held there, so that no other pass reads them again.
        """
        notices = Notices(strict=self.notices.strict, allowed=self.notices.allowed)
        counts: list[list[int]] = []
        words = size = 0
        held: list[NamedLists] | None = []
        read = self.file.read(self.documents, notices, self.store)
        for name, kbest in self.watch.timed(read, "lists"):
            counts.append(kbest.counts[kbest.counts > 0].tolist())
            words += sum(len(text.split()) for text in kbest.texts.to_list())
            size += len(kbest.texts.blob) + kbest.dense.nbytes
            if held is not None and self.store.has_room(_HELD * size):
                held.append((name, kbest))
            else:
                held = None
        if held is not None:
            self._held = held
            for one in notices:
                self.notices.take(one)
        return counts, words

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, with a progress bar."""
        found = self._held or self.file.read(self.documents, self.notices, self.store)
        timed = self.watch.timed(found, "lists")
        total = len(self.documents)
        if self.sharded is not None:
            own, total = self.sharded, len(self.sharded)
            timed = (named for d, named in enumerate(timed) if d in own)
        return progress(timed, label="documents", unit="documents", total=total)

    @cached_property
    def sharded(self) -> frozenset[int] | None:
        """Numbers of the documents of the shard; None for all documents."""
        if self.options.sharing.shard is None:
            return None
        number, total = self.options.sharing.shard
        with self.watch.lap("shard"):
            return frozenset(deal(self.costs, total)[number - 1])

    @cached_property
    def costs(self) -> list[int]:
        """Predicted cost of scoring each document (`rerank.runs.distribution.cost`)."""
        return [cost(kbest, self.order) for _, kbest in self.read_unreported()]

    @contextmanager
    def scoring_shard(self, announce: Printer) -> Iterator[None]:
        """Scoring of a shard: announced, and an error if its scores are not in the cache."""
        shard, own = "/".join(map(str, self.options.sharing.shard or ())), self.sharded or ()
        if not any(scorer.cacheable for scorer in self.scorers):
            raise UsageError(
                "there is nothing to share: the score cache has scores of language models and of "
                "scorers with a digest, and this run has none; run it in one process"
            )
        costs = self.costs
        share = sum(costs[d] for d in own) / max(1, sum(costs))
        announce(
            f"shard {shard}: {len(own):,} of {len(costs):,} documents, {share:.1%} of the work"
        )
        for scorer in self.scorers:
            if not scorer.cacheable and scorer.runs_on != "file":
                announce(
                    f"{scorer.name}: not in the score cache; computed again by the run at the end"
                )
        yield
        if self.cache is not None and not self.cache.writable:
            faults = "; ".join(one.sentence for one in self.notices if "cache" in one.kind.name)
            raise RerankError(f"shard {shard}: {faults}; its scores are lost")
        announce(f"shard {shard}: the scores are in the cache")

    @contextmanager
    def outputs(
        self, paths: Mapping[str, FilePath], announce: Printer
    ) -> Iterator[dict[str, BinaryIO]]:
        """Files to write, by name, which appear when the block ends; those of a shard do not."""
        if self.sharded is None:
            with atomic_all(list(paths.values())) as files:
                yield dict(zip(paths, files, strict=True))
        else:
            nowhere = [os.devnull] * len(paths)
            with self.scoring_shard(announce), atomic_all(nowhere) as files:
                yield dict(zip(paths, files, strict=True))

    def read_unreported(self) -> Iterable[NamedLists]:
        """Each document, without notices and progress."""
        return self._held or self.file.read(self.documents, Notices(), self.store)

    def has_scores(self) -> bool:
        """Whether the lists' own numbers, but votes, tell candidates apart; reads them once."""
        if self.lists.systems and not self.lists.merged:
            return False
        made = {*self.systems, *CONSENSUS} if self.systems else ()
        lists = self.read_unreported() if self.n_candidates else ()
        return any(has_scores(kbest, made) for _, kbest in lists)

    def terms(self) -> dict[str, object]:
        """What was kept of the terms of a glossary, under its name; empty without one."""
        return {} if self.glossary is None else {GLOSSARY: self.glossary.to_dict()}

    def scorer_entries(self) -> dict[str, dict[str, dict[str, object]]]:
        """What weights files and traces state of models and of scorers of `--scorer`, by name.

        Model, digests and, of a program, its own name and version; kinds that there are not are
        left out.
        """
        given = self.options.scorers
        models = {
            one.name: {
                "folder": one.value.name,
                "digest": scorer.digest,
                **one.provenance,
                **scorer.chosen,
            }
            for scorer, one in zip(self.models, given.lm, strict=True)
        }
        plugins = {
            one.name: {"entry": entry, "digest": one.digest, **one.chosen}
            for one, (_, entry) in zip(self.plugins, given.scorer, strict=True)
        }
        return {kind: own for kind, own in [("models", models), ("scorers", plugins)] if own}

    def first_with_candidates(self) -> NamedLists | None:
        """The first document that has any candidates; gives no notices."""
        return next((named for named in self.read_unreported() if named[1].n), None)

    def announce_work(
        self, search: Search | None, announce: Printer, *, passes: int = 0, dry_run: bool = False
    ) -> None:
        """Announce, from counting alone, how much slow scorers are asked; all in a dry run.

        search: None for a run that only scores the path of first candidates; passes: over the lists
        in other contexts than those of the search.
        """
        if not (dry_run or any(scorer.slow_unit for scorer in self.scorers)):
            return
        (counts, words), most = self.sizes, math.inf
        candidates = self.n_candidates
        if search is not None and search.method != "auto":
            most = row_of(search.method).histories(search.options)
        scored = []
        for scorer in self.scorers:
            unit, texts = scorer.slow_unit, float(candidates)
            if scorer.order is None:
                unit += " for each history" * bool(unit)
            else:
                texts *= len(scorer.columns) + (passes if scorer.order else 0)
                texts += sum(_n_scored(lists, scorer.order, most) for lists in counts)
            scored.append(f"{scorer.name} (at most {texts:,.0f} {unit})" if unit else scorer.name)
        by = f"; scored by {', '.join(scored)}" if scored else ""
        announce(
            f"{len(self.documents):,} documents, {self.documents.n_sentences:,} sentences, "
            f"{candidates:,} candidates, {words:,} words{by}"
        )

    def write_list(
        self,
        write: LineWriter,
        kbest: KBest,
        document: DocumentFeatures | None,
        choices: Sequence[int],
        *,
        weights: Array | None = None,
    ) -> int:
        """Write a document's lines with features under a path and, given weights, totals.

        document: None without any candidates, for which JSON lines have lines, too.
        Returns in how many sentences another total is larger than that of the path's candidate.
        """
        kbest = self.file.with_annotations(kbest, self.documents)
        names: list[str] = []
        added, totals = np.zeros((kbest.n, 0)), None
        if document is not None:
            space = document.space
            features = document.under(choices)
            totals = None if weights is None else features @ weights + document.sparse
            added = features[:, space.list_width :]
            names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
        first_id = self.lists.first_id
        write(
            lines_of(
                self.file.format, kbest, self.documents, names, added, totals, first_id=first_id
            )
        )
        if document is None or totals is None or not len(document.present):
            return 0
        largest = np.maximum.reduceat(totals, document.offsets[:-1])
        return int((largest > totals[document.chosen_rows(choices)]).sum())


def _n_scored(counts: Sequence[int], order: int, most: float) -> float:
    """How many scores of candidates after histories lists need, for at most so many histories."""
    return sum(
        k * min(most, math.prod(counts[max(0, t - order) : t])) for t, k in enumerate(counts)
    )


def _needed(
    lists: Lists,
    models: Sequence[FeatureSource],
    plugins: Sequence[FeatureSource],
    asked: Sequence[Estimator],
) -> dict[str, str]:
    """Kinds of side information that scorers and others need, and an option that needs each."""
    needed = {kind: program.option for program in asked for kind in program.side_information}
    needed |= {
        kind: "--glossary" if scorer.name == GLOSSARY else f"--scorer {scorer.name}"
        for scorer in plugins
        for kind in scorer.side_information
    }
    needed |= {kind: f"--lm {model.name}" for model in models for kind in model.side_information}
    return needed | (MISSING_SOURCE if lists.missing == AS_SOURCE else {})
