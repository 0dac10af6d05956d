"""What commands share: their messages, and the printing of their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rerank.corpus.reading import DocumentOptions, ReadingOptions
from rerank.files.terminal import progress_shown, say, show
from rerank.notices import Notices
from rerank.options import option, part, record
from rerank.torchrun import process_number
from rerank.values import FILE, TEXT, Whole

if TYPE_CHECKING:
    from rerank.pipeline.lists import Lists

KBEST_HELP = (
    "K-best list of Moses, Marian, fairseq and others, plain or compressed (gzip, xz, bzip2); "
    "- is standard input."
)
REFERENCE_HELP = (
    "Reference translation, one line per source sentence; or WMT XML, NIST SGML or JSON lines, of "
    "which all references are read, or one as FILE#NAME; or sacrebleu:TESTSET/PAIR, as "
    "sacrebleu:wmt23/ru-en, from the cache of sacrebleu; repeatable."
)
LM_HELP = "Language model made by train-lm."
CACHE_HELP = (
    "Folder of the score cache [default: $RERANK_CACHE, or rerank in the user's cache folder]."
)
DEVICE_HELP = "Device for language models: cpu, cuda, cuda:N, or auto, CUDA where there is one."
THREADS_HELP = "CPU threads for language models [default: one; more for large models]."
MOST_THREADS = 512  # that a process should start


@record
class ListFiles:
    """K-best lists in a file, and the documents of their sentences."""

    kbest: str = option(KBEST_HELP, type=FILE, once=True)
    documents: DocumentOptions = part(DocumentOptions)
    reading: ReadingOptions = part(ReadingOptions)

    def lists(self, **more: Any) -> Lists:
        """The lists as a run takes them; more: further fields."""
        from rerank.pipeline.lists import Lists

        docs, no_docs = self.documents.file, self.documents.no_docs
        return Lists(self.kbest, docs, no_docs, **asdict(self.reading), **more)


@record
class Machine:
    """What language models run on."""

    device: str = option(DEVICE_HELP, type=TEXT, default="auto", metavar="DEVICE")
    threads: int | None = option(THREADS_HELP, type=Whole(1, MOST_THREADS), default=None)


@record
class Messages:
    """What a command prints for its user, on standard error; the first process speaks for all."""

    strict: bool = option("Treat every warning as an error (exit code 3).", default=False)
    quiet: bool = option("Print results and errors only.", "-q", "--quiet", default=False)
    verbose: bool = option("Print counters of the scoring engine, too.", "-v", default=False)

    def announce_threads(self, threads: int | None) -> None:
        """Print the number of threads if the user chose it."""
        if threads is not None:
            self.announce(f"CPU threads for language models: {threads}")

    def announce(self, lines: str) -> None:
        """Print lines unless the command is quiet."""
        if not (self.quiet or process_number() > 0):
            say(lines)

    def detail(self, line: str) -> None:
        """Print a line that is of interest only under `-v`."""
        if self.verbose:
            self.announce(line)

    @contextmanager
    def warnings(self) -> Iterator[Notices]:
        """Collector of counted warnings, which are printed when the block ends.

        Progress of long work is shown in the block, unless the command is quiet.
        """
        notices = Notices(strict=self.strict)
        try:
            with progress_shown(not self.quiet):
                yield notices
        finally:
            for line in notices.lines():
                self.announce(f"warning: {line}")


def form_option(*forms: str, help: str) -> Any:
    """`--format`: the field of a record for the form of what is printed or written."""
    return option(help, "--format", type=click.Choice(forms), default=forms[0])


def print_result(result: Any, form: str) -> None:
    """Print a result on standard output in a form: `to_dict()` as JSON, `to_tsv()`, …."""
    if form == "json":
        text = json.dumps(result.to_dict(), allow_nan=False)
    else:
        text = getattr(result, f"to_{form}")()
    show(text.removesuffix("\n"))
