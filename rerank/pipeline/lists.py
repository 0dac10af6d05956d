"""K-best lists of a run as the options name them, with their documents and sources."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rerank.corpus.documents import Documents
from rerank.corpus.reading import AS_SOURCE, ReadingOptions
from rerank.corpus.spelling import nfc
from rerank.errors import UsageError
from rerank.files.lines import is_pipe, spool
from rerank.files.paths import FilePath, display, file_of
from rerank.formats.side_information import SOURCE, Files
from rerank.formats.table import annotations_of, check_options
from rerank.formats.translations import documents_in
from rerank.notices import Notices
from rerank.pipeline.models import FLOAT32, LM, PLAIN, SCORER, ModelOptions, Named, Scoring
from rerank.pipeline.systems import Named as NamedSystem
from rerank.pipeline.systems import SystemLists, documents_of_systems, lists_of_systems

PAIR_SCORES = "pair-scores"
MISSING_SOURCE = {SOURCE: "--missing source"}  # side information, and what needs it


@dataclass(frozen=True, slots=True)
class Lists(ReadingOptions):
    """Input of a run, as the options name it: k-best lists, documents, and what scores them.

    kbest: the file of the lists, empty with systems: (NAME, file) of each system of whose outputs
    lists are made, or (`rerank.pipeline.systems.ALL`, file) for all of a file.
    lms: (NAME, folder) of each language model; model_options: of these; scorers: (NAME,
    ENTRY[:ARGUMENT]) of each scorer of the table and of other packages; score_files: (NAME, file)
    of scores of other tools, by their kind in `rerank.registry`; side: files of side information
    for the models, by kind, a line for each source line. drop_unreferenced: leave out sentences
    that a reference does not have, where references are read.
    """

    kbest: str | Path
    docs: FilePath | None = None
    no_docs: str | None = None
    systems: tuple[NamedSystem, ...] = ()
    lms: tuple[Named, ...] = ()
    model_options: ModelOptions = PLAIN
    scorers: tuple[tuple[str, str], ...] = ()
    score_files: Mapping[str, Sequence[Named]] = field(default_factory=dict)
    drop_unreferenced: bool = False
    scoring: Scoring = FLOAT32
    side: Files = field(default_factory=dict)

    @property
    def names(self) -> dict[str, Sequence[tuple[str, str | Path]]]:
        """(NAME, value) of each scorer, by option."""
        return {LM: self.lms, **self.score_files, SCORER: self.scorers}

    @property
    def files(self) -> list[FilePath]:
        """All files that are read, without the models."""
        others = [path for named in self.score_files.values() for _, path in named]
        beside = [path for path in (self.docs, self.kbest_scores) if path is not None]
        lists = [file_of(path) for _, path in self.systems] if self.systems else [self.kbest]
        return [*dict.fromkeys(lists), *beside, *self.side.values(), *others]

    @property
    def name(self) -> str:
        """What messages call the lists."""
        return display(self.kbest) if self.kbest else "the list of the systems"

    def check(self) -> None:
        """UsageError unless there is one kind of input, and for options that it does not use."""
        if bool(self.kbest) == bool(self.systems):
            found = "both" if self.kbest else "neither"
            raise UsageError(
                f"expected --kbest FILE or --systems NAME=FILE, found {found}; give one of them"
            )
        of_a_list = {
            "--kbest-format": self.kbest_format,
            "--kbest-scores": self.kbest_scores,
            "--encoding": not self.encoded.is_plain,
        }
        if self.systems and any(of_a_list.values()):
            option = next(name for name, value in of_a_list.items() if value)
            raise UsageError(f"{option}: not for the lists of --systems; leave it out")
        if self.missing == AS_SOURCE and self.score_files.get(PAIR_SCORES):
            raise UsageError(
                f"--{PAIR_SCORES}: it has no pairs of the source lines that --missing source takes "
                "for translations; leave out one of the two options"
            )
        check_options(self)


def made_lists(
    lists: Lists, notices: Notices, copies: ExitStack, documents: Documents | None = None
) -> tuple[Lists, SystemLists | None]:
    """The lists, those of systems in a temporary file, which is deleted with `copies`.

    documents: of the run [default: those that the options or the files name]. UsageError as
    `Lists.check`; for faults of systems see `rerank.pipeline.systems.read_outputs`.
    """
    lists.check()
    if not lists.systems:
        return lists, None
    docs, no_docs, first_id = lists.docs, lists.no_docs, lists.first_id
    made = lists_of_systems(
        lists.systems,
        documents,
        notices,
        copies,
        docs=docs,
        no_docs=no_docs,
        first_id=first_id,
        change=nfc if lists.in_nfc else None,
    )
    docs = made.docids() if docs is None and no_docs is None else docs
    return replace(lists, kbest=made.path, kbest_format=made.format, docs=docs), made


def with_own_sources(lists: Lists, copies: ExitStack) -> Lists:
    """The lists with a file of the sources in `Lists.side`, if they themselves state all of them.

    A file that an option names stays; copies: deletes temporary files.
    """
    if SOURCE in lists.side:
        return lists
    if lists.systems:
        texts = (file_of(path) for _, path in lists.systems)
        stating = (Path(path) for path in texts if documents_in(path, Notices()))
        own = next(stating, None)
        return lists if own is None else replace(lists, side={**lists.side, SOURCE: own})
    kbest = copies.enter_context(spool(lists.kbest))
    _, sources = annotations_of(kbest, lists)
    if sources is None:
        return replace(lists, kbest=kbest.path)
    folder = copies.enter_context(tempfile.TemporaryDirectory(prefix="rerank-"))
    copy = Path(folder, f"<sources of {Path(lists.kbest).name}>")
    copy.write_bytes(b"".join(line + b"\n" for line in sources))
    return replace(lists, kbest=kbest.path, side={**lists.side, SOURCE: copy})


def own_documents(lists: Lists) -> Documents | None:
    """Documents that the list itself has; None if it has none, or options name others."""
    if lists.docs is not None or lists.no_docs is not None:
        return None
    if lists.systems:
        return documents_of_systems(lists.systems, Notices())
    if is_pipe(lists.kbest):
        return None
    ids, _ = annotations_of(lists.kbest, lists)
    return None if ids is None else Documents.from_lines(ids, source=display(lists.kbest))
