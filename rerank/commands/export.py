"""`rerank export`: documents as files, for discourse metrics that run outside."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.run import Messages
from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.options import Command, argument, option, part, record
from rerank.values import FILE, FOLDER, Pair

if TYPE_CHECKING:
    from rerank.corpus.documents import Documents

INDEX = "documents.tsv"


@record
class ExportOptions:
    """Options of `rerank export`."""

    texts: tuple[tuple[str, str], ...] = argument(
        "NAME=FILE...", type=Pair("NAME=FILE, for example ours=test.out", FILE)
    )
    documents: DocumentOptions = part(
        DocumentOptions, without={"no_docs", "allow_interleaved"}, required={"docs"}
    )
    out: Path = option("New folder.", type=FOLDER, metavar="DIR")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def export(options: ExportOptions) -> None:
    """Write documents as files, for BlonDe and other metrics of discourse.

    DIR/NAME/0001.txt has the first document of FILE, a sentence on each line; DIR/documents.tsv
    has the number, the id and the number of sentences of each document.

    Example:
      rerank export --docs test.docids --out documents ours=test.out ref=test.en
    """
    from rerank.files.lines import InputFiles
    from rerank.files.paths import display
    from rerank.formats.document_files import documents_of_file
    from rerank.formats.translations import read_translation

    target, texts, docs = options.out, options.texts, options.documents.file or ""
    _check(target, [name for name, _ in texts])
    with options.messages.warnings() as notices:
        inputs = InputFiles([docs, *(path for _, path in texts)])
        documents = documents_of_file(docs, notices)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        new = scratch / "new"  # with the permissions of a folder that is made, not a temporary one
        try:
            new.mkdir()
            for name, path in texts:
                lines = read_translation(path, documents, notices, model=str(docs))
                _write(new / name, lines, documents)
            rows = (  # ids come from strangers, and never name files
                f"{d + 1}\t{documents.ids[d]}\t{stop - start}\n"
                for d, (start, stop) in enumerate(map(documents.span, range(len(documents))))
            )
            (new / INDEX).write_text("".join(rows), encoding="utf-8")
            inputs.check()
            os.replace(new, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        written = f"{len(documents):,} documents of {len(texts)} texts written"
        options.messages.announce(f"{written} to {display(target)}")


COMMAND = Command("export", ExportOptions, export)


def _check(folder: Path, names: Sequence[str]) -> None:
    """UsageError for an invalid or repeated NAME, and for a folder that is not empty."""
    from rerank.files.outputs import check_folder

    for name in names:
        if not re.fullmatch(r"\w[\w.+-]{0,99}", name):
            raise UsageError(f"{name}: expected letters, digits and . + - _; choose another NAME")
        if names.count(name) > 1:
            raise UsageError(f"{name}: the NAME of two files; choose another one")
    check_folder(folder, str(folder))
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: expected a new or empty folder; name another")


def _write(folder: Path, lines: Sequence[bytes], documents: Documents) -> None:
    """A file for each document; numbers have as many digits as the largest, at least four."""
    folder.mkdir()
    width = max(4, len(str(len(documents))))
    for d in range(len(documents)):
        start, stop = documents.span(d)
        content = b"".join(line + b"\n" for line in lines[start:stop])
        (folder / f"{d + 1:0{width}}.txt").write_bytes(content)
